//! Getting a task's output from its providers.

use std::{fmt::Write, path::Path};

use surety_access::is_open_to_client;
use surety_chain_client::{AccountId, Chain, ChainError, TaskInfo, When, short};
use surety_engine::{Embeddings, content_hash, generation::Generation};
use surety_network::{Bytes, DataPlane, FetchOptions, OutputLocation, Ticket};
use surety_types::{
    ContentHash, TaskId,
    limits::WIDTH_MAX,
    model::Operation,
    multiaddr::Endpoint,
    task::{MemberProgress, ResultClaim, RoundPhase, TaskSpec, TaskState, Verdict},
};

use crate::statement;

/// What is looked for, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// What it is the output of.
    pub operation: Operation,
    /// Tokens of the prompt, of a generation.
    pub prompt_tokens: u32,
    /// Its hash, once the chain has decided; before that, whatever a provider says and signs.
    pub hash: Option<ContentHash>,
    /// How many units must be in it, where that is known.
    pub units: Option<u32>,
    /// Who should have it.
    pub providers: Vec<AccountId>,
    /// Most bytes that it can have, by what the client pays for.
    pub bytes_max: u64,
    /// Whether they have to have it, also where it lies here.
    pub anew: bool,
}

/// Most bytes that an output of a task can have: the client need not know its model.
fn bytes_max(spec: &TaskSpec) -> u64 {
    /// Before the numbers of embeddings there are their names, types and shape.
    const HEADER_BYTES: u64 = 1024;
    let units = u64::from(spec.units_max);
    match spec.operation {
        // A word for each token and one for why it ends.
        Operation::Generate => units.saturating_add(1).saturating_mul(4),
        Operation::Embed => {
            let vector = u64::from(WIDTH_MAX).saturating_mul(4);
            units.saturating_mul(vector).saturating_add(HEADER_BYTES)
        }
    }
}

/// The result that the chain has decided on, and who has it. A verdict that can still be challenged counts.
pub fn decided(info: &TaskInfo) -> Option<(&ResultClaim, Vec<AccountId>)> {
    match &info.task.state {
        TaskState::Settled { claim, payments, .. } => {
            Some((claim, payments.iter().map(|p| p.provider.clone()).collect()))
        }
        _ => match &info.round.as_ref()?.phase {
            RoundPhase::Challengeable {
                verdict: Verdict::Agreed { claim, majority, .. },
                ..
            } => Some((claim, majority.to_vec())),
            _ => None,
        },
    }
}

/// The output that the chain has decided on.
pub fn wanted_for_good(info: &TaskInfo) -> Option<Wanted> {
    let (claim, providers) = decided(info)?;
    Some(Wanted {
        operation: info.task.spec.operation,
        prompt_tokens: info.task.spec.work().prompt_tokens(),
        hash: Some(claim.output),
        units: Some(claim.units),
        providers,
        bytes_max: bytes_max(&info.task.spec),
        anew: false,
    })
}

/// What can be fetched now: what the chain has decided on, else what somebody has committed to, once the
/// round is audited: nobody serves it before.
pub fn wanted(info: &TaskInfo) -> Wanted {
    if let Some(wanted) = wanted_for_good(info) {
        return wanted;
    }
    let round = info.round.as_ref().filter(|round| is_open_to_client(round));
    let members = round.map(|round| round.members.iter());
    let done = members.into_iter().flatten().filter(|member| {
        matches!(
            member.progress,
            MemberProgress::Committed(_) | MemberProgress::Revealed(_)
        )
    });
    Wanted {
        operation: info.task.spec.operation,
        prompt_tokens: info.task.spec.work().prompt_tokens(),
        hash: None,
        units: None,
        providers: done.map(|member| member.provider.clone()).collect(),
        bytes_max: bytes_max(&info.task.spec),
        anew: false,
    }
}

/// An output that has arrived.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// Its hash, which it was checked against.
    pub hash: ContentHash,
    /// The blob.
    pub bytes: Bytes,
    /// Whose it is.
    pub from: String,
}

/// Why there is no delivery.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Undelivered {
    /// What each provider did instead, and the chain, one line each.
    pub attempts: String,
    /// What went wrong that is nobody's refusal: whoever waits is told of it at once.
    pub warning: Option<String>,
}

/// Fetches the output from the first provider that has it, or reads it where it was shown on the chain. Those
/// whose word it is taken on have signed it, and their statements are kept in `home`. The ticket is for
/// providers who do not know this peer as the client.
///
/// # Errors
/// What was tried, and came to nothing.
pub async fn fetch(
    chain: &dyn Chain,
    plane: &dyn DataPlane,
    home: &Path,
    task: TaskId,
    wanted: &Wanted,
    ticket: Option<&Ticket>,
) -> Result<Delivery, Undelivered> {
    let mut failures = String::new();
    for provider in &wanted.providers {
        match from_one(chain, plane, home, task, (wanted, ticket), provider).await {
            Ok(delivery) => return Ok(delivery),
            Err(reason) => {
                let reason = reason.replace('\n', "\n  ");
                // Writing to a string cannot fail.
                write!(failures, "\n  {}: {reason}", short(provider)).ok();
            }
        }
    }
    match shown(chain, task, wanted).await {
        Ok(Some(delivery)) => Ok(delivery),
        Ok(None) => Err(Undelivered {
            attempts: failures,
            warning: None,
        }),
        Err(e) => {
            let warning = format!("whether the output was shown on the chain cannot be read: {e}");
            write!(failures, "\n  {warning}").ok();
            Err(Undelivered {
                attempts: failures,
                warning: Some(warning),
            })
        }
    }
}

/// What was shown on the chain because somebody was not served it.
async fn shown(chain: &dyn Chain, task: TaskId, wanted: &Wanted) -> Result<Option<Delivery>, ChainError> {
    let Some(hash) = wanted.hash else {
        return Ok(None);
    };
    let bytes = chain.shown(When::Best, task, hash).await?;
    let is_it = content_hash(&bytes) == hash && check(wanted, &bytes).is_ok();
    Ok(is_it.then(|| Delivery {
        hash,
        bytes: bytes.into(),
        from: "the chain".into(),
    }))
}

async fn from_one(
    chain: &dyn Chain,
    plane: &dyn DataPlane,
    home: &Path,
    task: TaskId,
    (wanted, ticket): (&Wanted, Option<&Ticket>),
    provider: &AccountId,
) -> Result<Delivery, String> {
    let record = chain
        .provider(When::Best, provider)
        .await
        .map_err(|e| e.to_string())?
        .ok_or("is no longer registered")?;
    let (hash, bytes) = match wanted.hash {
        Some(hash) => (hash, None),
        None => {
            let found = locate(plane, task, &record.endpoints, ticket).await?;
            statement::accept(chain, home, task, provider, &found)
                .await
                .map_err(|e| e.to_string())?;
            if found.bytes > wanted.bytes_max {
                return Err(format!(
                    "says that it has {} bytes, more than is paid for",
                    found.bytes
                ));
            }
            (found.hash, Some(found.bytes))
        }
    };
    let options = FetchOptions {
        bytes,
        bytes_max: Some(wanted.bytes_max),
        ticket: ticket.cloned(),
        anew: wanted.anew,
        ..FetchOptions::default()
    };
    let bytes = plane
        .fetch(hash, &record.endpoints, &options)
        .await
        .map_err(|e| e.to_string())?;
    check(wanted, &bytes)?;
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
    ticket: Option<&Ticket>,
) -> Result<OutputLocation, String> {
    let mut last = "has no address".to_owned();
    for endpoint in endpoints {
        match plane.locate_output(task, endpoint, ticket).await {
            Ok(found) => return Ok(found),
            Err(e) => last = e.to_string(),
        }
    }
    Err(last)
}

/// A blob with the right hash may still be nonsense, as long as the chain has not decided.
fn check(wanted: &Wanted, bytes: &[u8]) -> Result<(), String> {
    let (found, what) = match wanted.operation {
        Operation::Embed => {
            let embeddings = Embeddings::decode(bytes).map_err(|e| format!("sent no embeddings: {e}"))?;
            (embeddings.len(), "vectors")
        }
        Operation::Generate => {
            let made = Generation::decode(bytes).map_err(|e| format!("sent no generation: {e}"))?;
            let prompt = usize::try_from(wanted.prompt_tokens).unwrap_or(usize::MAX);
            (made.tokens.len().saturating_add(prompt), "tokens")
        }
    };
    match wanted.units {
        Some(units) if found as u64 != u64::from(units) => Err(format!("sent {found} {what}, not {units}")),
        _ => Ok(()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use surety_chain_client::FakeChain;
    use surety_engine::generation::FinishReason;
    use surety_network::memory::MemoryNet;

    use super::*;

    #[test]
    fn an_output_must_be_the_operation_s_and_as_long_as_is_claimed() {
        let made = Generation {
            tokens: vec![7, 8],
            finish_reason: FinishReason::Stop,
        };
        let blob = made.encode();
        let wanted = |operation, units| Wanted {
            operation,
            prompt_tokens: 3,
            hash: None,
            units,
            providers: Vec::new(),
            bytes_max: 100,
            anew: false,
        };
        assert_eq!(check(&wanted(Operation::Generate, Some(5)), &blob), Ok(()));
        assert_eq!(check(&wanted(Operation::Generate, None), &blob), Ok(()));
        assert!(check(&wanted(Operation::Generate, Some(4)), &blob).is_err());
        assert!(check(&wanted(Operation::Embed, None), &blob).is_err());
        assert!(check(&wanted(Operation::Generate, None), b"{}").is_err());
    }

    #[test]
    fn an_output_has_no_more_bytes_than_is_paid_for() {
        let mut spec = surety_chain_client::sample::records::tasks().remove(0).spec;
        spec.units_max = 9;
        spec.operation = Operation::Generate;
        assert_eq!(bytes_max(&spec), 40);
        spec.operation = Operation::Embed;
        assert_eq!(bytes_max(&spec), 9 * 16_384 * 4 + 1024);
    }

    #[tokio::test]
    async fn a_chain_that_cannot_be_read_is_not_taken_for_one_that_shows_nothing() {
        let (chain, home) = (FakeChain::new(), tempfile::tempdir().unwrap());
        let plane = MemoryNet::default().join(Endpoint::try_from(b"client".to_vec()).unwrap());
        let wanted = Wanted {
            operation: Operation::Embed,
            prompt_tokens: 0,
            hash: Some(ContentHash::zero()),
            units: None,
            providers: Vec::new(),
            bytes_max: 100,
            anew: false,
        };
        let tried = async || {
            fetch(&chain, &plane, home.path(), 1, &wanted, None)
                .await
                .unwrap_err()
        };
        assert_eq!(tried().await, Undelivered::default());
        chain.set_unreachable(true);
        let failed = tried().await;
        let warning = failed.warning.unwrap();
        assert!(warning.contains("the test has cut it off"), "{warning}");
        assert!(failed.attempts.contains(&warning));
    }
}
