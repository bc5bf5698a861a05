//! Getting a task's output from its providers.

use std::fmt::Write;

use surety_chain_client::{AccountId, Chain, When};
use surety_engine::Embeddings;
use surety_network::{Bytes, DataPlane};
use surety_types::{multiaddr::Endpoint, ContentHash, TaskId};

use crate::keys::short;

/// What is looked for, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    /// Its hash, once the chain has decided; before that, whatever a provider says.
    pub(super) hash: Option<ContentHash>,
    /// How many vectors must be in it, where that is known.
    pub(super) units: Option<u32>,
    /// Who should have it.
    pub(super) providers: Vec<AccountId>,
}

/// An output that has arrived.
#[derive(Clone, Debug)]
pub(super) struct Delivery {
    pub(super) hash: ContentHash,
    pub(super) bytes: Bytes,
    /// Whose it is.
    pub(super) from: String,
}

/// Fetches the output from the first provider that has it.
///
/// # Errors
/// What each provider did instead, one line each.
pub(super) async fn fetch(
    chain: &dyn Chain,
    plane: &dyn DataPlane,
    task: TaskId,
    wanted: &Wanted,
) -> Result<Delivery, String> {
    let mut failures = String::new();
    for provider in &wanted.providers {
        match from_one(chain, plane, task, wanted, provider).await {
            Ok(delivery) => return Ok(delivery),
            Err(reason) => {
                let reason = reason.replace('\n', "\n  ");
                // Writing to a string cannot fail.
                write!(failures, "\n  {}: {reason}", short(provider)).ok();
            }
        }
    }
    Err(failures)
}

async fn from_one(
    chain: &dyn Chain,
    plane: &dyn DataPlane,
    task: TaskId,
    wanted: &Wanted,
    provider: &AccountId,
) -> Result<Delivery, String> {
    let record = chain
        .provider(When::Best, provider)
        .await
        .map_err(|e| e.to_string())?
        .ok_or("is no longer registered")?;
    let (hash, bytes, endpoints) = match wanted.hash {
        Some(hash) => (hash, None, record.endpoints.to_vec()),
        None => locate(plane, task, &record.endpoints).await?,
    };
    let bytes = plane
        .fetch(hash, bytes, &endpoints)
        .await
        .map_err(|e| e.to_string())?;
    check(&bytes, wanted.units)?;
    Ok(Delivery {
        hash,
        bytes,
        from: short(provider),
    })
}

/// Asks at each of a provider's addresses.
async fn locate(
    plane: &dyn DataPlane,
    task: TaskId,
    endpoints: &[Endpoint],
) -> Result<(ContentHash, Option<u64>, Vec<Endpoint>), String> {
    let mut last = "has no address".to_owned();
    for endpoint in endpoints {
        match plane.locate_output(task, endpoint).await {
            Ok(found) => return Ok((found.hash, Some(found.bytes), endpoints.to_vec())),
            Err(e) => last = e.to_string(),
        }
    }
    Err(last)
}

/// A blob with the right hash may still be nonsense, as long as the chain has not decided.
fn check(bytes: &[u8], units: Option<u32>) -> Result<(), String> {
    let embeddings = Embeddings::decode(bytes).map_err(|e| format!("sent no embeddings: {e}"))?;
    match units {
        Some(units) if embeddings.len() as u64 != u64::from(units) => {
            Err(format!("sent {} vectors, not {units}", embeddings.len()))
        }
        _ => Ok(()),
    }
}
