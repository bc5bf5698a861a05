//! How much is asked of one provider: no more than what it stands behind.
//!
//! A wrong answer that no batch has meets no point, and costs its provider nothing before somebody demands
//! it. So what clients have asked of a provider, and no final batch has, must be worth less to it than the
//! lock that it loses then. That lock is for a cap `E`, and larger than `v E / b`: whatever is wrong of
//! answers that cost `E` is a loss.
//!
//! What others have asked nobody here sees. What they have deposited, less what final batches have of it, is
//! at least as much. Where all deposits together are beyond the cap each payer keeps to its part of it, by
//! what it has deposited: so all whose deposits are there are within the cap together.
//!
//! **Not more than that.** What earlier payers have asked is not taken back when others come: of `n` that
//! come one after the other with equal deposits, each having asked its part by then, all together have asked
//! `1 + 1/2 + ... + 1/n` caps; with growing deposits nearly one each. What came within [`KEPT`] blocks is not
//! seen, nor what a provider has given back. And what is counted is taken to be what was signed: no payer
//! compares the two.

use sp_core::U256;
use surety_chain_client::{BlockRef, ChainError, When};
use surety_channels::{ChannelId, Purse};

use crate::{AccountId, config::Config};

/// Blocks after which it is looked again what others have deposited.
const KEPT: u32 = 10;

/// What a provider stands behind, and whom it stands behind that for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cover {
    /// What its lock covers, in plancks.
    pub cap: u128,
    /// What others have deposited to it, and no final batch has, in plancks.
    pub others: u128,
    /// The block that says so.
    pub block: u32,
}

/// What a payer has deposited and asked that no final batch has, in plancks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Promised {
    pub deposited: u128,
    /// What the provider has signed of requests that are over.
    pub over: u128,
    /// Most that those cost which are open.
    pub open: u128,
}

impl Promised {
    pub const fn and(self, other: Self) -> Self {
        Self {
            deposited: self.deposited.saturating_add(other.deposited),
            over: self.over.saturating_add(other.over),
            open: self.open.saturating_add(other.open),
        }
    }
}

impl Cover {
    /// What one may ask for that has deposited so much, in plancks.
    fn part(&self, deposited: u128) -> u128 {
        let all = self.others.saturating_add(deposited);
        if all <= self.cap {
            return self.cap;
        }
        let whole = U256::from(self.cap).checked_mul(U256::from(deposited));
        let part = whole.and_then(|whole| whole.checked_div(U256::from(all)));
        part.and_then(|part| u128::try_from(part).ok()).unwrap_or(0)
    }

    /// What may be asked for still, in plancks: now, and once what is open has cost nothing.
    pub fn left(&self, promised: Promised) -> (u128, u128) {
        let later = self.part(promised.deposited).saturating_sub(promised.over);
        (later.saturating_sub(promised.open), later)
    }

    /// Whether it is to be looked again.
    pub const fn is_old(&self, block: u32) -> bool {
        block >= self.block.saturating_add(KEPT)
    }
}

/// What no final batch has of a deposit, in plancks.
pub(crate) const fn uncounted(purse: &Purse) -> u128 {
    purse.deposit.saturating_sub(purse.counted)
}

/// By the chain. Channels that are older than a conviction pay nothing more, and nobody is asked over them.
pub(crate) async fn read(
    config: &Config,
    block: BlockRef,
    provider: &AccountId,
) -> Result<Cover, ChainError> {
    let (when, own) = (When::At(block.hash), config.signer.account());
    let standing = config.channels.standing(when, provider).await?;
    let standing = standing.filter(|standing| standing.lock > 0);
    let (cap, since) = standing.map_or((0, ChannelId::MAX), |standing| {
        (standing.cap, standing.since_channel)
    });
    let channels = config.channels.channels_of(when, provider).await?;
    let others = channels.iter().filter(|channel| {
        let is_own = channel.payer == *own && channel.key == *own;
        channel.channel >= since && !is_own
    });
    let others = others.fold(0u128, |sum, channel| {
        sum.saturating_add(uncounted(&channel.purse))
    });
    let block = block.number;
    Ok(Cover { cap, others, block })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::arithmetic_side_effects)]

    use super::*;
    use proptest::{collection::vec, prelude::*};

    proptest! {
        #[test]
        fn all_payers_together_stay_within_what_a_lock_covers_whatever_each_has_deposited(
            cap in 0u128..1 << 80,
            deposits in vec(0u128..1 << 80, 1..12),
        ) {
            let all: u128 = deposits.iter().sum();
            let asked = deposits.iter().map(|deposited| {
                let cover = Cover { cap, others: all - deposited, block: 0 };
                let (left, _) = cover.left(Promised { deposited: *deposited, ..Promised::default() });
                // No more is signed than was deposited.
                left.min(*deposited)
            });
            let asked: u128 = asked.sum();
            prop_assert!(asked <= cap);
            // Nobody is kept from anything that all may have.
            prop_assert!(asked + deposits.len() as u128 >= all.min(cap));
        }

        #[test]
        fn what_was_asked_and_is_not_final_takes_of_it(
            (cap, others) in (0u128..1_000, 0u128..1_000),
            (deposited, over, open) in (1u128..1_000, 0u128..1_000, 0u128..1_000),
        ) {
            let cover = Cover { cap, others, block: 0 };
            let none = Promised { deposited, ..Promised::default() };
            let (now, later) = cover.left(Promised { deposited, over, open });
            let (most, _) = cover.left(none);
            prop_assert_eq!(later, most.saturating_sub(over));
            prop_assert_eq!(now, most.saturating_sub(over).saturating_sub(open));
        }
    }

    #[test]
    fn whoever_locks_up_more_leaves_others_less_and_never_more_than_the_cap() {
        let cover = |others| Cover {
            cap: 100,
            others,
            block: 0,
        };
        let left = |others| {
            let deposited = 50;
            cover(others)
                .left(Promised {
                    deposited,
                    ..Promised::default()
                })
                .0
        };
        assert_eq!([left(0), left(50), left(150), left(950)], [100, 100, 25, 5]);
    }
}
