//! How holders of SURE decide: referenda, and votes with what is free, staked or on hold alike.

#![allow(clippy::arithmetic_side_effects, reason = "constants of the configuration")]

use frame_support::{
    parameter_types,
    traits::{ConstU32, ConstU128, TotalIssuanceOf},
};
use frame_system::{EnsureRoot, EnsureSigned};
use pallet_referenda::{ReferendumIndex, ReferendumInfo, ReferendumInfoFor};

use super::{
    agendas::{FirstRoom, WithAgendas},
    origins::{ReferendumCanceller, RootOr},
    tracks::{ALARM_INTERVAL, GovernanceUnit, SLASH_VETO, Tracks},
};
use crate::{
    AccountId, Balances, BlockNumber, Preimage, Referenda, Runtime, RuntimeCall, RuntimeEvent, System,
    units::SURE,
};

parameter_types! {
    /// Blocks within which a referendum has to have its deposit, and then its turn.
    pub UndecidingTimeout: BlockNumber = 14 * GovernanceUnit::get();
    /// Blocks for which conviction locks a vote that was won, doubled with each degree of it.
    pub VoteLockingPeriod: BlockNumber = 7 * GovernanceUnit::get();
}

impl pallet_referenda::Config for Runtime {
    type RuntimeCall = RuntimeCall;
    type RuntimeEvent = RuntimeEvent;
    type WeightInfo = WithAgendas<pallet_referenda::weights::SubstrateWeight<Runtime>>;
    type Scheduler = FirstRoom;
    type Currency = Balances;
    type SubmitOrigin = EnsureSigned<AccountId>;
    type CancelOrigin = RootOr<ReferendumCanceller>;
    type KillOrigin = EnsureRoot<AccountId>;
    // Burned.
    type Slash = ();
    type Votes = pallet_conviction_voting::VotesOf<Runtime>;
    type Tally = pallet_conviction_voting::TallyOf<Runtime>;
    type SubmissionDeposit = ConstU128<{ 10 * SURE }>;
    type MaxQueued = ConstU32<100>;
    type UndecidingTimeout = UndecidingTimeout;
    type AlarmInterval = ConstU32<ALARM_INTERVAL>;
    type Tracks = Tracks;
    type Preimages = Preimage;
    // The scheduler's.
    type BlockNumberProvider = System;
}

/// Whether a referendum that goes on is about a slash's veto.
pub fn is_veto(index: ReferendumIndex) -> bool {
    match ReferendumInfoFor::<Runtime>::get(index) {
        Some(ReferendumInfo::Ongoing(status)) => status.track == SLASH_VETO,
        _ => false,
    }
}

impl pallet_conviction_voting::Config for Runtime {
    type RuntimeEvent = RuntimeEvent;
    type WeightInfo = WithAgendas<pallet_conviction_voting::weights::SubstrateWeight<Runtime>>;
    type Currency = Balances;
    type Polls = Referenda;
    // Of what the treasury has, too: no payment out of it changes how much support a referendum needs.
    type MaxTurnout = TotalIssuanceOf<Balances, AccountId>;
    type MaxVotes = ConstU32<128>;
    type VoteLockingPeriod = VoteLockingPeriod;
    type BlockNumberProvider = System;
    type VotingHooks = ();
}
