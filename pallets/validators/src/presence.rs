//! Who made its blocks. Absent validators are chilled and never slashed: a line may fail.

use alloc::{collections::BTreeMap, vec::Vec};
use core::cmp::Reverse;
use frame_system::pallet_prelude::BlockNumberFor;
use pallet_authorship::EventHandler;
use pallet_session::Pallet as Session;
use sp_runtime::traits::{BlockNumberProvider, Saturating};
use surety_types::traits::{MILLIONTHS, PoolLedger, Service, ServicePay, ValidatorPenalties};

use crate::{Authored, BeganAt, Candidates, ChillReason, Config, Pallet, StoodStill};

/// Blocks that are expected of a validator in sessions in a row, of which it made none, before it is absent.
/// Authors are drawn with equal chances: one of N that is there misses 30 N draws in a row with
/// `(1 - 1/N)^(30 N) < e^-30 < 10^-13`.
pub const ABSENT_BLOCKS: u64 = 30;

/// One of so many validators at most, and one at least, is chilled in a session, so that no partition empties
/// the set.
const CHILLED_PART: usize = 10;

impl<T: Config> EventHandler<T::AccountId, BlockNumberFor<T>> for Pallet<T> {
    fn note_author(author: T::AccountId) {
        Authored::<T>::mutate(author, |blocks| *blocks = blocks.saturating_add(1));
    }
}

impl<T: Config> Pallet<T> {
    /// Counts what each validator did in the session that ends. One in which finality moved by less than half
    /// of its blocks counts for nobody: while it stands still the network is at fault.
    pub(crate) fn count_session() {
        let made: BTreeMap<_, _> = Authored::<T>::drain().collect();
        let blocks = made
            .values()
            .fold(0u32, |sum, blocks| sum.saturating_add(*blocks));
        let moved = T::BlockNumberProvider::current_block_number().saturating_sub(BeganAt::<T>::get());
        let stood_still = moved.saturating_mul(2u32.into()) < blocks.into();
        StoodStill::<T>::put(stood_still);
        if !stood_still {
            Self::count_blocks(&made, blocks);
        }
    }

    fn count_blocks(made: &BTreeMap<T::AccountId, u32>, blocks: u32) {
        let validators = Session::<T>::validators();
        let count = u64::try_from(validators.len()).unwrap_or(u64::MAX);
        let all = u64::from(blocks).saturating_mul(MILLIONTHS);
        let expected = all.checked_div(count).unwrap_or_default();
        let mut absent = Vec::new();
        for validator in &validators {
            // Who is in jail is disabled: it cannot make blocks, and is paid for none.
            if T::Penalties::is_in_jail(validator) {
                continue;
            }
            let made = made.get(validator).copied().unwrap_or_default();
            let counted = Candidates::<T>::mutate_exists(validator, |kept| {
                let candidate = kept.as_mut()?;
                if made > 0 {
                    candidate.missed_millionths = 0;
                    candidate.proven = true;
                } else {
                    candidate.missed_millionths = candidate.missed_millionths.saturating_add(expected);
                }
                Some(*candidate)
            });
            let Some(candidate) = counted else { continue };
            let service = Service {
                made,
                expected_millionths: expected,
                owed: T::Pay::session_pay(T::Pools::backing(validator)),
                paid: (0, 0),
            };
            Self::add_service(validator, service);
            if candidate.wants_to && candidate.missed_millionths >= ABSENT_BLOCKS.saturating_mul(MILLIONTHS) {
                absent.push((Reverse(candidate.missed_millionths), validator));
            }
        }
        absent.sort_unstable();
        let most = validators
            .len()
            .checked_div(CHILLED_PART)
            .unwrap_or_default()
            .max(1);
        for (_, validator) in absent.into_iter().take(most) {
            Self::chill_absent(validator);
        }
    }

    fn chill_absent(validator: &T::AccountId) {
        // It is suspended for that. When it comes back, it begins anew, and has to show that it is there.
        Candidates::<T>::mutate_exists(validator, |kept| {
            if let Some(candidate) = kept {
                candidate.missed_millionths = 0;
                candidate.proven = false;
            }
        });
        Self::stop(validator, ChillReason::Absent);
        T::Penalties::note_missed(validator);
    }
}
