//! Rounds in which providers are measured.

use frame_support::{
    parameter_types,
    traits::{ConstU32, ConstU64, Get},
};

use super::consensus::{NoRoomForAnswers, RunningClock};
use crate::{
    Balance, BlockEntropy, BlockNumber, Runtime, Staking, Timestamp, params::dynamic, units::DAYS, weights,
};

/// Time for a run, in milliseconds: half a minute. What tiers say rests on it.
pub const RUN_WINDOW_MS: u64 = 30_000;

/// Blocks with room that there have to be in it, of fifteen slots.
pub const RUN_BLOCKS_MIN: u32 = 10;

parameter_types! {
    /// Whatever is set, a round ends within a day of running finality.
    pub OpenWindow: BlockNumber = dynamic::gpu_proofs::OpenWindow::get().min(DAYS);
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
    type OpenWindow = OpenWindow;
    type WeightInfo = weights::surety_pallet_gpu_proofs::WeightInfo<Runtime>;
}
