//! Which part of a task an auditor computes again.
//!
//! Catching a cheat that has all items wrong takes one item; one that has a single item wrong is met by
//! `m` of `n` with a probability of `m / n`. In between, what `m` items meet of a wrong share is concave
//! in the share, and what the cheat gains is a straight line: where both ends are a loss, everything is.

use alloc::vec::Vec;
use codec::Encode;
use sp_arithmetic::{FixedPointNumber, FixedU128};
use sp_core::U256;
use sp_crypto_hashing::blake2_256;
use surety_types::limits::AUDIT_ITEMS_MAX;

use crate::{AuditPolicy, Refusal, Terms};

impl AuditPolicy {
    /// How many of a task's `n` items each auditor computes again, so that a single wrong item is a loss to
    /// whoever has locked `lock` plancks: the least number above `(saved + n outside) / (p (reward + lost))`,
    /// and all of them where that is fewer, or where so many are more than [`AUDIT_ITEMS_MAX`].
    ///
    /// What holds for `n` items of which all are paid for holds for fewer, paid in proportion: nobody has to
    /// know how many there are before an auditor counts them.
    ///
    /// # Errors
    /// [`Refusal::NobodyAble`] and [`Refusal::NeverPunished`].
    #[allow(
        clippy::arithmetic_side_effects,
        reason = "sums and products of 128 bits, and of 60, are in 256"
    )]
    pub fn items(&self, n: u32, expected: FixedU128, terms: &Terms, lock: u128) -> Result<u32, Refusal> {
        let caught = self.punished(expected)?;
        let lost = self.burned.mul_floor(lock);
        let gain = U256::from(terms.saved) + U256::from(terms.outside) * U256::from(n);
        let risk = (U256::from(terms.reward) + U256::from(lost)) * U256::from(caught.deconstruct());
        let least = (gain * U256::from(FixedU128::DIV)).checked_div(risk);
        let least = least.and_then(|least| u32::try_from(least).ok());
        let sampled = least.and_then(|least| least.checked_add(1));
        Ok(sampled.filter(|m| *m <= AUDIT_ITEMS_MAX).unwrap_or(n).min(n))
    }
}

/// The items that an auditor computes: `count` of `items`, all different, in ascending order, each equally
/// likely. `output` is that of its VRF.
///
/// Floyd's way of sampling: `count` draws, whatever there is to draw from. No more than [`AUDIT_ITEMS_MAX`]
/// are drawn; who computes all items draws none.
#[allow(clippy::arithmetic_side_effects, reason = "the divisor is at least one")]
pub fn drawn_items(output: &[u8; 32], items: u32, count: u32) -> Vec<u32> {
    let count = count.min(items).min(AUDIT_ITEMS_MAX);
    let mut drawn = Vec::with_capacity(count as usize);
    for last in items.saturating_sub(count)..items {
        let hash = blake2_256(&(b"audit item", output, last).encode());
        let number = hash.first_chunk().map_or(0, |low| u128::from_le_bytes(*low));
        let item = (number % (u128::from(last).saturating_add(1))) as u32;
        let place = match drawn.binary_search(&item) {
            Err(place) => Some((place, item)),
            // It is greater than any that was drawn before.
            Ok(_) => Some((drawn.len(), last)),
        };
        if let Some((place, item)) = place {
            drawn.insert(place, item);
        }
    }
    drawn
}
