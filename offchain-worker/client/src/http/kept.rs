//! The inputs that are kept, each for the clients that gave it.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use surety_access::KeptInputs;
use surety_chain_client::{AccountId, address, parse_address};
use surety_network::{Bytes, DataPlane, FetchOptions, PlaneError};
use surety_types::ContentHash;

use super::error::HttpError;
use crate::{error::ClientError, files::write_atomically};

/// How long an input is kept that no open task asks for.
const UNUSED_MAX: Duration = Duration::from_secs(3_600);

/// Most inputs that are kept at once, counted for each of their clients.
const KEPT_MAX: usize = 1_024;

/// An input, and a client that gave it.
pub(super) type Given = (ContentHash, AccountId);

/// Inputs that are kept, by who gave them, and since when nobody has asked for them.
///
/// A provider's results lie in the same store, and whoever knows a hash can post a task with it: what is not
/// here is served to nobody.
pub struct Kept {
    inputs: Mutex<BTreeMap<Given, Instant>>,
    /// Held while something is added or dropped, until it is listed.
    writing: tokio::sync::Mutex<()>,
    /// Where they are listed for the next start.
    list: PathBuf,
    unused_max: Duration,
}

impl Kept {
    /// Takes up what was kept at the last start, as `list` has it.
    ///
    /// # Errors
    /// When the list, or what it names, cannot be read.
    pub async fn open(list: PathBuf, plane: &dyn DataPlane) -> Result<Self, ClientError> {
        let text = match std::fs::read(&list) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            Err(e) => return Err(ClientError::file(&list)(e)),
        };
        let mut inputs = BTreeMap::new();
        for line in String::from_utf8_lossy(&text).lines() {
            let Some(given) = parse(line) else {
                tracing::warn!(list = %list.display(), line, "this line names no input");
                continue;
            };
            match plane.fetch(given.0, &[], &FetchOptions::default()).await {
                Ok(blob) => {
                    plane.publish(blob).await?;
                    inputs.insert(given, Instant::now());
                }
                Err(PlaneError::NoSources(_)) => {
                    tracing::warn!(input = ?given.0, "an input that was kept is lost");
                }
                Err(e) => return Err(e.into()),
            }
        }
        Ok(Self {
            inputs: Mutex::new(inputs),
            writing: tokio::sync::Mutex::default(),
            list,
            unused_max: UNUSED_MAX,
        })
    }

    /// Drops what no open task has asked for so long.
    #[must_use]
    pub fn unused_for(mut self, unused_max: Duration) -> Self {
        self.unused_max = unused_max;
        self
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Given, Instant>> {
        self.inputs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps an input of a client for a while.
    pub(super) async fn keep(
        &self,
        plane: &dyn DataPlane,
        client: AccountId,
        blob: Bytes,
    ) -> Result<ContentHash, HttpError> {
        let _one_after_the_other = self.writing.lock().await;
        let given = (surety_engine::content_hash(&blob), client);
        let is_known = self.lock().contains_key(&given);
        if !is_known && self.lock().len() >= KEPT_MAX {
            return Err(HttpError::TooMany(KEPT_MAX));
        }
        // Also what is known: the file may have been damaged since.
        plane.publish(blob).await?;
        if self.lock().insert(given.clone(), Instant::now()).is_some() {
            // One pin is enough.
            plane.release(given.0).await;
            return Ok(given.0);
        }
        if let Err(e) = self.write_list() {
            self.lock().remove(&given);
            plane.release(given.0).await;
            return Err(e.into());
        }
        Ok(given.0)
    }

    /// What is in use now is kept anew; what was not for long is kept no longer.
    pub(super) async fn make_room(&self, plane: &dyn DataPlane, used: &[Given]) {
        let _one_after_the_other = self.writing.lock().await;
        let unused: Vec<Given> = {
            let mut inputs = self.lock();
            for given in used {
                inputs
                    .entry(given.clone())
                    .and_modify(|since| *since = Instant::now());
            }
            let is_over = |given: &Given, since: &mut Instant| {
                !used.contains(given) && since.elapsed() >= self.unused_max
            };
            inputs.extract_if(.., is_over).map(|(given, _)| given).collect()
        };
        for (input, _) in &unused {
            plane.release(*input).await;
        }
        if !unused.is_empty()
            && let Err(e) = self.write_list()
        {
            tracing::warn!(error = %e, "inputs that were dropped are looked for at the next start");
        }
    }

    fn write_list(&self) -> Result<(), ClientError> {
        let line = |(input, client): &Given| format!("{} {}\n", hex::encode(input), address(client));
        let lines: String = self.lock().keys().map(line).collect();
        write_atomically(&self.list, lines.as_bytes())
    }
}

impl KeptInputs for Kept {
    fn has(&self, client: &AccountId, input: ContentHash) -> bool {
        self.lock().contains_key(&(input, client.clone()))
    }
}

/// A line of the list.
fn parse(line: &str) -> Option<Given> {
    let (input, client) = line.split_once(' ')?;
    let input: [u8; 32] = hex::decode(input).ok()?.try_into().ok()?;
    Some((input.into(), parse_address(client)?))
}
