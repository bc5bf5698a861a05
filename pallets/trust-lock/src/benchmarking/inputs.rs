//! Inputs that are demanded.

use alloc::vec::Vec;
use frame_benchmarking::v2::account;
use surety_types::traits::TaskOutcome;
use surety_verification::{content_hash, SegmentOpening, SEGMENT_BYTES};

use super::setup::TASK;
use crate::{asset, Config, HoldReason, InputDemandOf, RoundOf};

/// What is demanded of the input.
const SEGMENT: u32 = 5;

/// Makes a task known whose input is as long as one can be by default: 16 MiB. Returns the piece that is demanded of it.
pub(super) fn post<T: Config>() -> SegmentOpening {
    let input: Vec<u8> = core::iter::repeat_n(7u8, 16 * 1024 * SEGMENT_BYTES as usize).collect();
    let client = account("client", 0, 0);
    asset::endow::<T>(&client, T::Balance::from(1u32));
    T::Outcome::post_for_benchmark(TASK, &client, (content_hash(&input), input.len() as u32));
    SegmentOpening::new(&input, SEGMENT).expect("there is such a segment")
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
        until: frame_system::Pallet::<T>::block_number(),
    });
}
