//! Inputs that are demanded.

use alloc::vec::Vec;
use frame_benchmarking::v2::account;
use sp_core::H256;
use surety_pallet_trust_lock::Pallet as TrustLock;
use surety_proofs::{PartOpening, SegmentOpening, content_hash};
use surety_types::{
    limits,
    task::{MemberProgress, RoundPhase},
    traits::TaskOutcome,
};

use super::setup::{TASK, full_round, lock_all};
use crate::{Config, HoldReason, InputDemandOf, Pallet, RoundOf, Rounds, asset};

/// What is demanded of the input.
const SEGMENT: u32 = 5;

/// How long an input can be.
pub(super) const INPUT_BYTES: u32 = limits::INPUT_BYTES_MAX;

fn largest() -> Vec<u8> {
    alloc::vec![7; INPUT_BYTES as usize]
}

/// A part of it.
pub(super) fn largest_part() -> PartOpening {
    PartOpening::new(&largest(), SEGMENT).expect("there is such a part")
}

/// Makes a task known whose input is as long as one can be. Returns the piece that is demanded of it.
pub(super) fn post<T: Config>() -> SegmentOpening {
    let input = largest();
    let client = account("client", 0, 0);
    asset::endow::<T>(&client, T::Balance::from(1u32));
    T::Outcome::post_for_benchmark(TASK, &client, (content_hash(&input), input.len() as u32));
    SegmentOpening::new(&input, SEGMENT).expect("there is such a segment")
}

/// Makes a task known whose input has as many parts as one demand names. No input has more than 128, but the
/// leaves of a trace do, and an output.
pub(super) fn post_parts<T: Config>() {
    let client = account("client", 0, 0);
    asset::endow::<T>(&client, T::Balance::from(1u32));
    let bytes = limits::DEMAND_PARTS_MAX * limits::PART_BYTES;
    T::Outcome::post_for_benchmark(TASK, &client, (H256::repeat_byte(6), bytes));
}

/// The first provider has demanded a piece, for which its agent has money on hold.
pub(super) fn demanded<T: Config>(round: &mut RoundOf<T>) {
    let by: T::AccountId = account("agent", 0, 0);
    let price = T::Balance::from(1_000_000u32);
    asset::endow::<T>(&by, price);
    frame_support::assert_ok!(asset::hold::<T>(HoldReason::Demand, &by, price));
    round.input_demand = Some(InputDemandOf::<T> {
        provider: account("provider", 0, 0),
        by,
        segment: SEGMENT,
        price,
        until: TrustLock::<T>::now(),
    });
}

/// A full round in which everybody waits for the input.
pub(super) fn working_round<T: Config>() -> RoundOf<T> {
    let until = TrustLock::<T>::now();
    full_round::<T>(RoundPhase::Committing { until }, |_| MemberProgress::Working)
}

/// Such a round as it ends: with all that it keeps, and a demand that nobody has met.
pub(super) fn put_withheld<T: Config>() {
    let mut round = working_round::<T>();
    lock_all::<T>(&mut round);
    demanded::<T>(&mut round);
    for member in &round.members {
        Pallet::<T>::note_commitment(TASK, &member.provider, &member.provider, H256::zero());
    }
    Rounds::<T>::insert(TASK, round);
}
