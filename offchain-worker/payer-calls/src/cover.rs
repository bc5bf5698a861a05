//! How much is asked of one provider: no more than what it stands behind.
//!
//! A wrong answer that no batch has meets no point, and costs its provider nothing before somebody demands
//! it. So what clients have asked of a provider, and no final batch has, must be worth less to it than the
//! lock that it loses then. That lock is for a cap `E`, and larger than `v E / b`: whatever is wrong of
//! answers that cost `E` is a loss. Nor is what was counted settled before it was shown to be what was
//! signed.
//!
//! What others have asked nobody here sees. What they have deposited, less what final batches have of it, is
//! at least as much, also where their provider has given it back. So whatever all that leaves of the cap may
//! be asked. Where it leaves less, each payer keeps to its part of the cap, by what it has deposited.
//!
//! What earlier payers have asked is not taken back when others come, or deposit more: so a deposit counts
//! in full only once it has stood for [`deposit_season`], by what the chain says, in which whatever was asked
//! before it is shown, or demanded and withheld. Before that an eighth does ([`NEW_PART`]). So with `n` that
//! come one after the other meanwhile, and whatever each deposits, all together have asked `1 + n/8` caps at
//! most, and `1 + (1 + ln g)/8` where all deposits together grow `g`-fold: with 185 equal ones 1.8 caps, with
//! seven of which each deposits ten times as much as all before it, 1.9. By the simulation lies pay from some
//! six on.
//!
//! [`deposit_season`]: surety_channels::deposit_season

use sp_core::U256;
use surety_chain_client::{BlockRef, ChainError, When};
use surety_channels::{ChannelId, Purse, Time};

use crate::{AccountId, config::Config};

/// Blocks after which it is looked again what others have deposited.
const KEPT: u32 = 10;

/// What is new of a deposit counts for so much less.
const NEW_PART: u128 = 8;

/// What a provider stands behind, and whom it stands behind that for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cover {
    /// What its lock covers, in plancks.
    pub cap: u128,
    /// What others have deposited to it, and no final batch has, in plancks.
    pub others: u128,
    /// What this payer has had deposited for so long that all of it counts, in plancks.
    pub seasoned: u128,
    /// The first channel after its last conviction.
    pub since: ChannelId,
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
        let left = self.cap.saturating_sub(self.others);
        let all = self.others.saturating_add(deposited);
        let seasoned = self.seasoned.min(deposited);
        let new = deposited.saturating_sub(seasoned);
        let counts = seasoned.saturating_add(new.checked_div(NEW_PART).unwrap_or(0));
        let whole = U256::from(self.cap).checked_mul(U256::from(counts));
        let part = whole.and_then(|whole| whole.checked_div(U256::from(all)));
        let part = part.and_then(|part| u128::try_from(part).ok()).unwrap_or(0);
        left.max(part)
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

/// What no final batch has of a deposit that is there, in plancks.
pub(crate) const fn deposited(purse: &Purse) -> u128 {
    purse.deposit.saturating_sub(purse.counted)
}

/// What of that has stood for so long that all of it counts, in plancks: what is counted was deposited first.
pub(crate) fn seasoned(purse: &Purse, now: Time, supply: Time) -> u128 {
    purse.stood(now, supply).saturating_sub(purse.counted)
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
        sum.saturating_add(channel.purse.uncounted())
    });
    Ok(Cover {
        cap,
        others,
        seasoned: 0,
        since,
        block: block.number,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

    use super::*;
    use proptest::{collection::vec, prelude::*};
    use surety_channels::deposit_season;

    /// Of one that nobody else has anything with.
    fn cover(cap: u128, others: u128, seasoned: u128) -> Cover {
        Cover {
            cap,
            others,
            seasoned,
            since: 0,
            block: 0,
        }
    }

    fn asks(cover: Cover, deposited: u128) -> u128 {
        let promised = Promised {
            deposited,
            ..Promised::default()
        };
        // No more is signed than was deposited.
        cover.left(promised).0.min(deposited)
    }

    proptest! {
        #[test]
        fn all_payers_together_stay_within_what_a_lock_covers_whatever_each_has_deposited(
            cap in 0u128..1 << 80,
            deposits in vec(0u128..1 << 80, 1..12),
        ) {
            let all: u128 = deposits.iter().sum();
            let asked = deposits.iter().map(|deposited| {
                asks(cover(cap, all - deposited, *deposited), *deposited)
            });
            let asked: u128 = asked.sum();
            prop_assert!(asked <= cap);
            // Nobody is kept from anything that all may have.
            prop_assert!(asked + deposits.len() as u128 >= all.min(cap));
        }

        #[test]
        fn payers_that_come_one_after_the_other_ask_little_more_than_what_a_lock_covers(
            cap in 1u128 << 40..1 << 50,
            first in 1u128..1 << 60,
            // What each deposits, in hundredths of all before it.
            grows in vec(0u128..100_000, 1..40),
        ) {
            let (mut all, mut asked) = (0u128, 0u128);
            for (at, grows) in grows.iter().enumerate() {
                let more = (all / 100).saturating_mul(*grows).min(1 << 100);
                let deposited = if at == 0 { first } else { more };
                asked += asks(cover(cap, all, 0), deposited);
                all += deposited;
            }
            prop_assert!(asked <= cap + grows.len() as u128 * cap / 8);
            let folds = (all as f64 / first as f64).ln() + 1.0;
            prop_assert!(asked as f64 <= cap as f64 * (1.0 + folds / 8.0) * 1.000_001);
        }

        #[test]
        fn whoever_tops_up_or_comes_again_asks_no_more_at_once_than_whoever_is_new(
            steps in vec((0usize..6, 1u128..1_000, 0u32..60), 1..40),
        ) {
            const SUPPLY: Time = 60;
            let mut deposits = [0u128; 6];
            let mut purses = [Purse::new(0, 0, 0); 6];
            // What was asked and when: a season later it is shown, or its provider was convicted.
            let mut asked: Vec<(usize, Time, u128)> = Vec::new();
            let (cap, mut now) = (1_000u128, 0);
            for (who, more, later) in steps {
                now += later;
                deposits[who] += more;
                assert_eq!(purses[who].top_up(more, now, SUPPLY), Ok(()));
                asked.retain(|(_, at, _)| now <= at + deposit_season(SUPPLY));
                for payer in 0..6 {
                    let deposited = deposits[payer];
                    let seasoned = seasoned(&purses[payer], now, SUPPLY);
                    let others = deposits.iter().sum::<u128>() - deposited;
                    let own: u128 = asked.iter().filter(|(of, ..)| *of == payer).map(|(.., sum)| sum).sum();
                    let part = asks(cover(cap, others, seasoned), deposited);
                    asked.push((payer, now, part.saturating_sub(own)));
                }
                let all: u128 = asked.iter().map(|(.., sum)| sum).sum();
                let folds = (deposits.iter().sum::<u128>() as f64).ln() + 1.0;
                prop_assert!(all as f64 <= cap as f64 * (1.0 + folds / 8.0), "{all}");
            }
        }

        #[test]
        fn what_was_asked_and_is_not_final_takes_of_it(
            (cap, others) in (0u128..1_000, 0u128..1_000),
            (deposited, over, open) in (1u128..1_000, 0u128..1_000, 0u128..1_000),
        ) {
            let cover = cover(cap, others, deposited);
            let none = Promised { deposited, ..Promised::default() };
            let (now, later) = cover.left(Promised { deposited, over, open });
            let (most, _) = cover.left(none);
            prop_assert_eq!(later, most.saturating_sub(over));
            prop_assert_eq!(now, most.saturating_sub(over).saturating_sub(open));
        }
    }

    #[test]
    fn whoever_locks_up_more_leaves_others_less_and_never_more_than_the_cap() {
        let left = |others| asks(cover(100, others, 50), 50);
        assert_eq!([left(0), left(50), left(150), left(950)], [50, 50, 25, 5]);
    }

    #[test]
    fn a_deposit_counts_in_full_once_it_has_stood_for_a_season() {
        const SUPPLY: Time = 60;
        assert_eq!(deposit_season(SUPPLY), 100);
        let mut purse = Purse::new(7, 80, 1_000);
        let at = |purse: &Purse, now| seasoned(purse, now, SUPPLY);
        assert_eq!([1_000, 1_099, 1_100].map(|now| at(&purse, now)), [0, 0, 80]);
        // So does what is added to it, whenever somebody begins to look.
        assert_eq!(purse.top_up(10, 1_150, SUPPLY), Ok(()));
        assert_eq!([1_150, 1_249, 1_250].map(|now| at(&purse, now)), [80, 80, 90]);
        // What is counted was deposited first.
        purse.counted = 50;
        assert_eq!(purse.top_up(50, 1_300, SUPPLY), Ok(()));
        assert_eq!([1_399, 1_400].map(|now| at(&purse, now)), [40, 90]);
    }
}
