//! Stake behind validators: who backs whom, who is elected by that, and what SURE is minted for.

use frame_support::{PalletId, parameter_types, traits::Get};
use sp_staking::SessionIndex;
use surety_pallet_delegation::{POOLS_MAX, SESSIONS_TO_LEAVE};
use surety_pallet_emission::OPERATORS_MAX;
use surety_types::traits::Sessions;

use super::{
    compute::ValidatorPot,
    consensus::{FinalityProgress, RunningClock, SESSIONS_KEPT, VALIDATORS_MAX},
    tracks::DEFERRAL_MIN,
};
use crate::{
    Balance, Balances, BlockNumber, Delegation, Emission, Runtime, RuntimeHoldReason, Session, Staking,
    TrustLock, Validators, params::dynamic, units::EPOCH_SLOTS, weights,
};

// Each pool may be a candidate, each candidate a validator, and each validator is paid.
const _: () = assert!(POOLS_MAX == VALIDATORS_MAX && POOLS_MAX == OPERATORS_MAX);

/// Shortest time for stake of providers and verifiers to leave: twice that for a veto.
pub const UNBONDING_MIN: BlockNumber = 2 * DEFERRAL_MIN;

/// Shortest time for stake to leave a pool: until its operator does no more work, and a veto of what that is
/// slashed for.
pub const POOL_UNBONDING_MIN: BlockNumber = SESSIONS_TO_LEAVE * EPOCH_SLOTS as u32 + DEFERRAL_MIN;

parameter_types! {
    /// Whatever is set, twice as long as a slash waits: who takes stake out as it is convicted, or a little
    /// before, has it still when it is slashed.
    pub UnbondingPeriod: BlockNumber = dynamic::staking::UnbondingPeriod::get().max(UNBONDING_MIN);
    /// Whatever is set, who leaves a pool leaves after what its operator signs for it.
    pub PoolUnbondingPeriod: BlockNumber =
        dynamic::delegation::UnbondingPeriod::get().max(POOL_UNBONDING_MIN);
    /// Where rewards of pools wait until they are claimed.
    pub const PoolsPot: PalletId = PalletId(*b"sur/pool");
    /// As many as there may be pools.
    pub const CandidatesMax: u32 = POOLS_MAX;
    /// Sessions for which it can be proved who held which keys.
    pub const SessionsKept: SessionIndex = SESSIONS_KEPT;
    /// Whatever is set, consensus has room for them.
    pub ValidatorsMax: u32 = dynamic::validators::ValidatorsMax::get().clamp(1, VALIDATORS_MAX);
    /// Whatever is set, as many can be elected.
    pub ValidatorsMin: u32 = dynamic::validators::ValidatorsMin::get().clamp(1, ValidatorsMax::get());
}

/// The session that runs.
pub struct RunningSession;

impl Sessions for RunningSession {
    fn current() -> SessionIndex {
        Session::current_index()
    }

    #[cfg(feature = "runtime-benchmarks")]
    fn set_for_benchmark(session: SessionIndex) {
        pallet_session::CurrentIndex::<Runtime>::put(session);
    }
}

impl surety_pallet_delegation::Config for Runtime {
    type Currency = Balances;
    type RuntimeHoldReason = RuntimeHoldReason;
    type Ledgers = Staking;
    type Sessions = RunningSession;
    type SessionsKept = SessionsKept;
    type BlockNumberProvider = RunningClock;
    type UnbondingPeriod = PoolUnbondingPeriod;
    type MinSelfBond = dynamic::delegation::MinSelfBond;
    type MinDelegation = dynamic::delegation::MinDelegation;
    type PotId = PoolsPot;
    type Pay = Emission;
    type OnClosed = (Validators, TrustLock);
    type WeightInfo = weights::surety_pallet_delegation::WeightInfo<Runtime>;
}

impl surety_pallet_validators::Config for Runtime {
    type Balance = Balance;
    type Pools = Delegation;
    type Penalties = TrustLock;
    type Jail = TrustLock;
    type Pay = Emission;
    type BlockNumberProvider = FinalityProgress;
    type MinSelfBond = dynamic::delegation::MinSelfBond;
    type ValidatorsMin = ValidatorsMin;
    type ValidatorsMax = ValidatorsMax;
    type CandidatesMax = CandidatesMax;
    type SessionsKept = SessionsKept;
    type WeightInfo = weights::surety_pallet_validators::WeightInfo<Runtime>;
}

impl surety_pallet_emission::Config for Runtime {
    type Balance = Balance;
    type Currency = Balances;
    type Pools = Delegation;
    type Services = Validators;
    type Stake = Staking;
    type Reliability = TrustLock;
    type ValidatorPot = ValidatorPot;
    type ValidatorShare = dynamic::billing::ValidatorShare;
    type RewardSessions = dynamic::emission::RewardSessions;
    type WeightInfo = weights::surety_pallet_emission::WeightInfo<Runtime>;
}
