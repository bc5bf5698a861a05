//! Rounds in which providers are measured.

use frame_support::{
    dispatch::DispatchClass,
    traits::{ConstU32, ConstU64, Get},
};
use surety_pallet_gpu_proofs::WeightInfo;

use super::{
    consensus::{NoRoomForAnswers, RunningClock},
    system::{RuntimeBlockLength, RuntimeBlockWeights},
};
use crate::{
    Balance, BlockEntropy, Runtime, Staking, System, Timestamp,
    params::{UpToADay, dynamic},
    units::DAYS,
    weights,
};

/// Time for a run, in milliseconds: a minute. What tiers say rests on it. In half a minute the commitments of
/// all who use their time came into one block, or two: one author could leave them out.
pub const RUN_WINDOW_MS: u64 = 60_000;

/// Blocks with room that there have to be in it, of thirty slots.
pub const RUN_BLOCKS_MIN: u32 = 20;

/// Bytes of the longest extrinsic that shows samples, and what is around them.
const SHOWING_BYTES: u32 = 190 * 1024;

/// Whether a block that is about to end had no room for one more showing, in what there is for calls that no
/// room is kept for.
pub struct NoRoomForShowing;

impl Get<bool> for NoRoomForShowing {
    fn get() -> bool {
        let limits = RuntimeBlockWeights::get();
        let class = limits.get(DispatchClass::Normal);
        let one = <Runtime as surety_pallet_gpu_proofs::Config>::WeightInfo::open_run()
            .saturating_add(class.base_extrinsic);
        let used = System::block_weight();
        let of_class = used.get(DispatchClass::Normal).saturating_add(one);
        let fits = class.max_total.is_none_or(|most| of_class.all_lte(most))
            && used.total().saturating_add(one).all_lte(limits.max_block);
        let bytes = System::block_size().saturating_add(SHOWING_BYTES);
        !fits || bytes > *RuntimeBlockLength::get().max.get(DispatchClass::Normal)
    }
}

impl surety_pallet_gpu_proofs::Config for Runtime {
    type Balance = Balance;
    type Stake = Staking;
    type Entropy = BlockEntropy;
    type Time = Timestamp;
    type Clock = RunningClock;
    type RoundEvery = dynamic::gpu_proofs::RoundEvery;
    type RunWindow = ConstU64<RUN_WINDOW_MS>;
    type BlocksMin = ConstU32<RUN_BLOCKS_MIN>;
    // A commitment takes less than the dearest answer does.
    type IsFull = NoRoomForAnswers;
    type OpenWindow = UpToADay<dynamic::gpu_proofs::OpenWindow>;
    type IsFullForShowing = NoRoomForShowing;
    type LongerMax = ConstU32<DAYS>;
    type WeightInfo = weights::surety_pallet_gpu_proofs::WeightInfo<Runtime>;
}
