//! Who gets a task and what it is paid: pure functions of the bids and a seed, so that anybody can recompute
//! a draw from its `TaskAssigned` event.
//!
//! A bid's *score* is price / weight; the lowest is best. Equal scores are ordered by the seconds promised,
//! then by `blake2_256(seed ‖ stash)`. With k = 1 the best wins. With k > 1 the 2k best are shortlisted and k
//! of them drawn: the k whose `blake2_256("lot" ‖ seed ‖ stash)` is lowest. The price rule is the same for
//! both: a provider is paid the score of the first bid outside the shortlist times its own weight, or the
//! limit when there is no such bid; never less than it asked, never more than the limit.

use alloc::vec::Vec;
use codec::{Decode, DecodeWithMemTracking, Encode, MaxEncodedLen};
use core::cmp::Ordering;
use scale_info::TypeInfo;
use sp_core::{H256, U256};
use sp_crypto_hashing::blake2_256;
use surety_types::{
    TaskId,
    task::{Assignment, shortlist},
};

use crate::Balance;

/// Separates lots from tie breaks: otherwise whoever a tie puts on the shortlist would also be likelier to be
/// drawn.
const LOT_DOMAIN: &[u8; 3] = b"lot";

/// An opened bid of a provider that could do the work.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct Candidate<AccountId> {
    /// Bidder's stash.
    pub provider: AccountId,
    /// What it asks, in plancks.
    pub price: Balance,
    /// Seconds within which it expects to commit.
    pub seconds: u32,
    /// By the speed that was measured, in thousandths of a neutral provider.
    pub weight: u32,
}

/// The outcome of a draw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drawn<AccountId> {
    /// The k providers that get the task, best score first.
    pub winners: Vec<Assignment<AccountId, Balance>>,
    /// Everybody else, best score first; what is left of the shortlist comes first.
    pub reserves: Vec<Assignment<AccountId, Balance>>,
}

/// The seed of a draw: `blake2_256` in SCALE of `"auction seed"`, the task, the salts, which must come in the
/// order of the bidders' stashes, and entropy that nobody could know while bids were still being opened.
pub fn seed<'a>(task: TaskId, salts: impl IntoIterator<Item = &'a H256>, entropy: &H256) -> H256 {
    let salts: Vec<_> = salts.into_iter().collect();
    H256(blake2_256(&(b"auction seed", task, salts, entropy).encode()))
}

/// Draws `redundancy` providers from `candidates`, which must be of distinct providers. Candidates that ask
/// more than `limit`, and those without weight, are left out.
///
/// `None` when fewer than `redundancy` are left, or none is asked for.
pub fn draw<AccountId: Clone + Encode + Ord>(
    candidates: &[Candidate<AccountId>],
    redundancy: u32,
    limit: Balance,
    seed: H256,
) -> Option<Drawn<AccountId>> {
    let ranked = rank(candidates, limit, seed);
    let wanted = usize::try_from(redundancy)
        .ok()
        .filter(|k| *k > 0 && *k <= ranked.len())?;
    let shortlisted = usize::try_from(shortlist(redundancy)).map_or(ranked.len(), |k| k.min(ranked.len()));
    let outside = ranked.get(shortlisted);

    let mut lots: Vec<_> = ranked
        .iter()
        .take(shortlisted)
        .map(|candidate| lot(seed, candidate))
        .collect();
    lots.sort();
    let last_lot = lots.into_iter().nth(wanted.checked_sub(1)?)?;

    let mut drawn = Drawn {
        winners: Vec::with_capacity(wanted),
        reserves: Vec::new(),
    };
    for (place, candidate) in ranked.iter().enumerate() {
        let assignment = Assignment {
            provider: candidate.provider.clone(),
            price: rule_price(candidate, outside, limit),
        };
        if place < shortlisted && lot(seed, candidate) <= last_lot {
            drawn.winners.push(assignment);
        } else {
            drawn.reserves.push(assignment);
        }
    }
    Some(drawn)
}

/// What is paid for `units` of at most `units_max` units at `price`: the proportion, rounded down, but at
/// least 1.
pub fn metered(price: Balance, units: u32, units_max: u32) -> Balance {
    let part = U256::from(price).saturating_mul(units.min(units_max).into());
    let payment = part.checked_div(units_max.into()).unwrap_or_default();
    // Not above `price`, as `units` is capped: it fits.
    Balance::try_from(payment).unwrap_or(price).max(1)
}

/// Acceptable candidates, best first.
fn rank<AccountId: Clone + Encode>(
    candidates: &[Candidate<AccountId>],
    limit: Balance,
    seed: H256,
) -> Vec<Candidate<AccountId>> {
    let mut ranked: Vec<_> = candidates
        .iter()
        .filter(|candidate| candidate.price <= limit && candidate.weight > 0)
        .map(|candidate| (blake2_256(&(seed, &candidate.provider).encode()), candidate))
        .collect();
    ranked.sort_by(|(a_tie, a), (b_tie, b)| {
        by_score(a, b)
            .then(a.seconds.cmp(&b.seconds))
            .then_with(|| a_tie.cmp(b_tie))
    });
    ranked
        .into_iter()
        .map(|(_, candidate)| candidate.clone())
        .collect()
}

/// Compares price / weight without dividing: the products fit 160 bits.
fn by_score<AccountId>(a: &Candidate<AccountId>, b: &Candidate<AccountId>) -> Ordering {
    let a_scaled = U256::from(a.price).saturating_mul(b.weight.into());
    let b_scaled = U256::from(b.price).saturating_mul(a.weight.into());
    a_scaled.cmp(&b_scaled)
}

/// A candidate's place in the lottery. The provider is part of it so that no two are equal.
fn lot<AccountId: Clone + Encode>(seed: H256, candidate: &Candidate<AccountId>) -> ([u8; 32], AccountId) {
    let hash = blake2_256(&(LOT_DOMAIN, seed, &candidate.provider).encode());
    (hash, candidate.provider.clone())
}

fn rule_price<AccountId>(
    candidate: &Candidate<AccountId>,
    outside: Option<&Candidate<AccountId>>,
    limit: Balance,
) -> Balance {
    let by_rule = outside.map_or(limit, |outside| {
        U256::from(outside.price)
            .saturating_mul(candidate.weight.into())
            .checked_div(outside.weight.into())
            .and_then(|price| Balance::try_from(price).ok())
            .unwrap_or(limit)
    });
    // A reserve with a score worse than the first outside the shortlist gets what it asked. Nobody works for
    // nothing.
    by_rule.max(candidate.price).max(1).min(limit)
}
