//! What verifiers do with points: as many as there can be.

use alloc::vec;

use frame_benchmarking::v2::account;
use frame_support::{BoundedVec, assert_ok};
use sp_core::H256;
use sp_runtime::FixedU128;
use surety_audit_economics::channels::{POINTS_MEAN_MAX, SURE, drawn_points};
use surety_channels::{
    BatchNumber, Batched, ChunkStatement, End, Ending, POINTS_MAX, PointsFound, Request, points_seal,
};
use surety_types::{stake::Role, traits::StakeLedger, trust::ItemLeaves};

use super::{
    receipts::{LAST, batched},
    setup::{BATCH, CHANNEL, RICH, SETTLED, at, fill_batches, late, provider, put_root, stash},
};
use crate::{
    ANNOUNCED_MAX, Call, Config, Convictions, Pallet, PointsAudit, PointsAudits, PointsState, ReceiptReferee,
};

/// The seed that verifiers draw with in the benchmarks. Of as many that were tried it gives the agent of
/// `draw_for_benchmark` most points over the runtime: 37. Nobody finds one that gives it 64.
fn seed() -> H256 {
    let mut seed = [0; 32];
    seed[24..].copy_from_slice(&128_799u64.to_be_bytes());
    H256(seed)
}

/// An output with which as many points are drawn as can be.
const OUTPUT: H256 = H256::repeat_byte(u8::MAX);

/// What the batch costs that points are on, in plancks.
const PRICE: u128 = SURE;

/// Stake that is locked for them, in plancks.
const BOND: u128 = SURE;

const SALT: H256 = H256::repeat_byte(4);

fn mean() -> FixedU128 {
    FixedU128::from_u32(POINTS_MEAN_MAX)
}

/// Something at each of them.
pub(super) fn found() -> PointsFound {
    BoundedVec::truncate_from(vec![H256::repeat_byte(5); POINTS_MAX as usize])
}

/// A verifier with stake, which this agent acts for.
fn verifier<T: Config>(place: u32, agent: &T::AccountId) -> T::AccountId {
    let verifier = account("verifier", place, 0);
    T::Stake::endow(&verifier, agent, Role::Verifier, RICH);
    verifier
}

/// One more verifier has announced its points on a batch.
pub(super) fn audit<T: Config>(place: u32, batch: BatchNumber, state: PointsState) -> T::AccountId {
    let verifier = verifier::<T>(place, &account("agent of verifier", place, 0));
    assert_ok!(T::Stake::lock(&verifier, BOND));
    let audit = PointsAudit {
        bond: BOND,
        output: OUTPUT,
        mean: mean(),
        state,
    };
    PointsAudits::<T>::insert((stash::<T>(), batch), &verifier, audit);
    Pallet::<T>::change_batch(&stash::<T>(), batch, |record| {
        record.announced = record.announced.saturating_add(1);
    });
    verifier
}

/// It was opened long ago.
fn opened() -> PointsState {
    PointsState::Opened {
        found: found(),
        at: 0,
    }
}

/// It was never opened.
pub(super) const fn sealed() -> PointsState {
    PointsState::Sealed(H256::zero())
}

/// More audits of an old batch than are ended at once.
pub(super) const LEFT: u32 = 8;

/// Nobody has opened or ended so many audits of the second of the provider's batches, and as many convictions
/// are kept as can be.
pub(super) fn leave_sealed<T: Config>() {
    for place in 0..LEFT {
        audit::<T>(place, 1, sealed());
    }
    T::Convictions::fill_for_benchmark();
}

/// A verifier with this agent may draw on the last of the provider's batches, which has one place left: after
/// the block in which its stake came.
pub(super) fn drawing<T: Config>(agent: &T::AccountId) -> T::AccountId {
    let verifier = verifier::<T>(0, agent);
    at::<T>(SETTLED, late::<T>());
    fill_batches::<T>(late::<T>());
    Pallet::<T>::change_batch(&stash::<T>(), BATCH, |record| {
        record.announced = ANNOUNCED_MAX - 1;
        record.draw.seed = Some(seed());
        // More points than anybody may expect.
        record.rate = FixedU128::from_u32(u32::MAX);
    });
    verifier
}

/// Opens what a verifier has sealed, when announcements are over.
pub(super) fn opening<T: Config>() -> (Call<T>, T::AccountId) {
    let (provider, _) = provider::<T>();
    let now = late::<T>();
    fill_batches::<T>(now);
    Pallet::<T>::change_batch(&provider, BATCH, |record| {
        record.announce_until = now.saturating_sub(1)
    });
    let verifier = account("verifier", 0, 0);
    let seal = points_seal(&provider, BATCH, &verifier, &found(), &SALT);
    audit::<T>(0, BATCH, PointsState::Sealed(seal));
    let call = Call::open_points {
        provider,
        batch: BATCH,
        verifier: verifier.clone(),
        found: found(),
        salt: SALT,
    };
    (call, verifier)
}

/// What refutes the last point of a verifier: it is in the first of the most items of a receipt.
pub(super) type Refutation<T> = (
    Batched<<T as frame_system::Config>::AccountId>,
    Request,
    Option<ItemLeaves>,
);

/// Has a verifier opened its points on a batch of items that is over, and found something else at the last of
/// them. Returns the verifier, that point's place, and what shows it.
pub(super) fn refutable<T: Config>() -> (T::AccountId, u32, Refutation<T>) {
    let (provider, _) = provider::<T>();
    fill_batches::<T>(late::<T>().saturating_sub(1));
    let (request, claim, leaves) = T::Referee::item_for_benchmark();
    let points = drawn_points(&OUTPUT.0, PRICE, mean());
    let last = points.last().copied().expect("there are some");
    // The receipt goes on to the end of the batch, and begins less than an item's price before the point.
    let unit_price = PRICE.saturating_sub(last).div_ceil(claim.units.into());
    let request = Request {
        unit_price,
        ..request
    };
    let price = request.price(claim.units).expect("less than the batch costs");
    let ending = Ending {
        how: End::Length,
        trace_root: claim.trace_root,
    };
    let statement = ChunkStatement {
        channel: CHANNEL,
        payee: provider,
        nonce: LAST,
        request: request.hash(),
        bytes: 1,
        output: claim.output,
        units: claim.units,
        price,
        end: Some(ending),
    };
    let (root, batched) = batched::<T>(statement, PRICE.saturating_sub(price));
    put_root::<T>(BATCH, root);
    let verifier = audit::<T>(0, BATCH, opened());
    (
        verifier,
        POINTS_MAX.saturating_sub(1),
        (batched, request, Some(leaves)),
    )
}
