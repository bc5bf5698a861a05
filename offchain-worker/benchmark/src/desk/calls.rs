//! The calls of a round: a commitment, and what opens it.

use std::{
    fmt,
    time::{Duration, Instant},
};

use surety_chain_client::{Call, ChainError, ErrorClass, Remedy, SubmitOptions, Until};
use tokio::time::timeout;

use super::{Back, Desk};
use crate::journal::{Key, Promise};

/// Calls of one kind for one promise that were refused in a block, and paid for.
const REFUSALS_MAX: u32 = 3;

/// Which of them. What becomes of one says nothing of the other: a commitment that was refused may have been
/// in a block before, or on another node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Which {
    Commitment,
    Opening,
}

impl fmt::Display for Which {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Commitment => "commitment",
            Self::Opening => "opening",
        })
    }
}

impl Desk {
    pub(super) fn may_send(&self, key: Key, which: Which) -> bool {
        let refusals = self.refusals.get(&(key, which)).copied().unwrap_or_default();
        let is_seen = self.block.is_some_and(|block| block.number >= self.send_from);
        self.sending.is_none() && is_seen && refusals < REFUSALS_MAX
    }

    pub(super) fn commit(&mut self, promise: &Promise, ends: Instant) {
        let call = Call::CommitRun {
            entropy: promise.entropy,
            plan: promise.plan,
            root: promise.root,
        };
        let left = ends.saturating_duration_since(Instant::now());
        self.send((promise.key(), Which::Commitment), call, Some(left));
    }

    pub(super) fn send(&mut self, (key, which): (Key, Which), call: Call, time: Option<Duration>) {
        self.sending = Some(key);
        let parts = self.parts.clone();
        self.away.spawn(async move {
            let options = SubmitOptions {
                until: Until::Included,
                // Other calls of the agent wait for it: without a tip those of others would go first.
                tip: parts.tip,
            };
            let sent = parts.chain.submit(&parts.signer, call, options);
            let sent = match time {
                Some(time) => timeout(time, sent).await,
                None => Ok(sent.await),
            };
            let unknown = |_| {
                Err(ChainError::Unknown {
                    reason: "its time is over".into(),
                })
            };
            let sent = sent.unwrap_or_else(unknown);
            Back::Sent(key, which, sent.map(|included| included.block.number))
        });
    }

    /// What was refused in a block has cost its fee, and what is refused for good is not sent again.
    pub(super) fn refused(&mut self, key: Key, which: Which, error: &ChainError) {
        let refusals = self.refusals.entry((key, which)).or_default();
        *refusals = match (error.class(), error.remedy()) {
            (ErrorClass::Failed, Some(Remedy::Look | Remedy::Wait)) => refusals.saturating_add(1),
            (ErrorClass::Refused, _) if error.is_retryable() => *refusals,
            _ => REFUSALS_MAX,
        };
        match *refusals < REFUSALS_MAX {
            true => tracing::warn!(round = key.0, %error, "the {which} is in no block, trying again"),
            false => tracing::error!(round = key.0, %error, "the {which} is refused"),
        }
    }
}
