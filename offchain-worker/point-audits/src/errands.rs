//! Calls on their way to the chain: one at a time for each purpose, and after a failure none for some blocks.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use surety_chain_client::{BlockNumber, Call, ChainError, Remedy, Until, When};
use tokio::time::timeout;

use crate::{
    Parts,
    book::{Purpose, Stake, Went},
    sight,
};

/// How many are on their way at once. Those with a last time do not wait for that.
const AT_ONCE: usize = 16;

/// For so long a call is tried to be brought into a block.
const SUBMIT_TIME: Duration = Duration::from_secs(300);

/// Pauses that are over are forgotten after so many blocks.
const KEPT: BlockNumber = 300;

#[derive(Clone, Copy, Debug)]
struct Pause {
    until: BlockNumber,
    failures: u32,
}

/// Why a call is in no block, as far as is known.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unsent {
    #[error(transparent)]
    Chain(#[from] ChainError),
    #[error("the verifier's stake has changed in the newest block: points are drawn anew once that is final")]
    OtherStake,
}

/// What is on its way, and what waits.
#[derive(Default)]
pub(crate) struct Errands {
    away: BTreeSet<Purpose>,
    pauses: BTreeMap<Purpose, Pause>,
}

impl Errands {
    /// Whether a call for this purpose is to be sent now, by a block of this height. It is on its way then.
    pub(crate) fn take(&mut self, purpose: &Purpose, block: BlockNumber) -> bool {
        let is_free = is_urgent(purpose) || self.away.len() < AT_ONCE;
        let is_over = |pause: &Pause| pause.until <= block;
        let may = is_free && self.pauses.get(purpose).is_none_or(is_over);
        may && self.away.insert(purpose.clone())
    }

    /// One is back.
    pub(crate) fn back(&mut self, purpose: &Purpose, sent: &Result<BlockNumber, Unsent>, block: BlockNumber) {
        self.away.remove(purpose);
        let before = self.pauses.get(purpose).map_or(0, |pause| pause.failures);
        let pause = match sent {
            // From that block on what is due is due again.
            Ok(included) => Pause {
                until: *included,
                failures: 0,
            },
            Err(_) => Pause {
                until: block.saturating_add(1u32 << patience(purpose, before)),
                failures: before.saturating_add(1),
            },
        };
        self.pauses.insert(purpose.clone(), pause);
        self.pauses
            .retain(|_, pause| pause.until.saturating_add(KEPT) > block);
    }
}

/// How many doublings of a block it waits after so many failures. The pot may lack what an audit is paid for
/// days, and each try costs a fee.
fn patience(purpose: &Purpose, failures: u32) -> u32 {
    match purpose {
        Purpose::End(_) => failures.saturating_add(6).min(14),
        _ if is_urgent(purpose) => failures.min(2),
        _ => failures.min(6),
    }
}

fn is_urgent(purpose: &Purpose) -> bool {
    matches!(
        purpose,
        Purpose::Open(_) | Purpose::Dispute(..) | Purpose::Play(_) | Purpose::Announce(_)
    )
}

/// Announces points that this stake has drawn. With another in the newest block they would be others than
/// were sealed: nothing is sent then, and it is due again once that block is final.
pub(crate) async fn announce(parts: &Parts, call: Call, stake: Option<Stake>) -> Result<BlockNumber, Unsent> {
    if sight::stake(parts, When::Best).await? != stake {
        return Err(Unsent::OtherStake);
    }
    send(parts, call).await
}

/// Sends a call. Returns the height of the block that it is in.
pub(crate) async fn send(parts: &Parts, call: Call) -> Result<BlockNumber, Unsent> {
    let submitted = parts.chain.submit(&parts.signer, call, Until::Included.into());
    match timeout(SUBMIT_TIME, submitted).await {
        Ok(submitted) => Ok(submitted?.block.number),
        Err(_) => Err(Unsent::Chain(ChainError::Unknown {
            reason: "it is in no block after five minutes".into(),
        })),
    }
}

/// What that comes to.
pub(crate) fn went(purpose: &Purpose, sent: &Result<BlockNumber, Unsent>) -> Went {
    let error = match sent {
        Ok(_) => return Went::Done,
        Err(Unsent::OtherStake) => return Went::Later,
        Err(Unsent::Chain(error)) => error,
    };
    match error.remedy() {
        Some(Remedy::Look | Remedy::Never) => Went::Over,
        // Its provider has nothing to lose any more.
        Some(Remedy::Mend) if !matches!(purpose, Purpose::Announce(_)) => Went::Over,
        Some(Remedy::Mend | Remedy::Wait | Remedy::Split) | None => Went::Later,
    }
}

#[cfg(test)]
mod tests {
    use surety_chain_client::AccountId;

    use super::*;

    #[test]
    fn an_audit_that_waits_for_its_pay_for_nine_days_costs_few_fees() {
        const NINE_DAYS: BlockNumber = 9 * 24 * 1_800;
        let purpose = Purpose::End((AccountId::new([1; 32]), 0));
        let (mut errands, mut tries) = (Errands::default(), 0);
        for block in 0..NINE_DAYS {
            if errands.take(&purpose, block) {
                tries += 1;
                errands.back(&purpose, &Err(Unsent::OtherStake), block);
            }
        }
        assert!((10..40).contains(&tries), "{tries} tries");
    }
}
