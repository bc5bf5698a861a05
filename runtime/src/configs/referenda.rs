//! How holders of SURE decide: referenda, and votes with what is free, staked or on hold alike.

#![allow(clippy::arithmetic_side_effects, reason = "constants of the configuration")]

use frame_support::{
    parameter_types,
    traits::{
        Bounded, ConstU32, ConstU128, TotalIssuanceOf,
        schedule::{
            DispatchTime, Period, Priority,
            v3::{Anon, Named, TaskName},
        },
    },
};
use frame_system::{EnsureRoot, EnsureSigned};
use pallet_referenda::{ReferendumIndex, ReferendumInfo, ReferendumInfoFor};
use sp_runtime::{DispatchError, traits::BlakeTwo256};

use super::{
    origins::{ReferendumCanceller, RootOr},
    tracks::{ALARM_INTERVAL, GovernanceUnit, SLASH_VETO, Tracks},
};
use crate::{
    AccountId, Balances, BlockNumber, OriginCaller, Preimage, Referenda, Runtime, RuntimeCall, RuntimeEvent,
    Scheduler, System, units::SURE,
};

/// Blocks beyond the one that was asked for in which a referendum's call may be made, or it may wake up.
pub const LATER_MAX: BlockNumber = 8;

parameter_types! {
    /// Blocks within which a referendum has to have its deposit, and then its turn.
    pub UndecidingTimeout: BlockNumber = 14 * GovernanceUnit::get();
    /// Blocks for which conviction locks a vote that was won, doubled with each degree of it.
    pub VoteLockingPeriod: BlockNumber = 7 * GovernanceUnit::get();
}

impl pallet_referenda::Config for Runtime {
    type RuntimeCall = RuntimeCall;
    type RuntimeEvent = RuntimeEvent;
    type WeightInfo = pallet_referenda::weights::SubstrateWeight<Runtime>;
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

/// The scheduler, a little later where a block's agenda is full. What was approved would else never be done,
/// and a referendum not wake up, where somebody has filled one agenda with referenda of its own.
pub struct FirstRoom;

type Call = Bounded<RuntimeCall, BlakeTwo256>;
type Address = <Scheduler as Anon<BlockNumber, RuntimeCall, OriginCaller>>::Address;

fn first_room(
    when: DispatchTime<BlockNumber>,
    schedule: impl Fn(DispatchTime<BlockNumber>) -> Result<Address, DispatchError>,
) -> Result<Address, DispatchError> {
    // As the scheduler has it.
    let first = match when {
        DispatchTime::At(block) => block,
        DispatchTime::After(blocks) => System::block_number().saturating_add(blocks).saturating_add(1),
    };
    let mut placed = schedule(DispatchTime::At(first));
    for later in 1..=LATER_MAX {
        if placed != Err(DispatchError::Exhausted) {
            break;
        }
        placed = schedule(DispatchTime::At(first.saturating_add(later)));
    }
    placed
}

impl Anon<BlockNumber, RuntimeCall, OriginCaller> for FirstRoom {
    type Address = Address;
    type Hasher = BlakeTwo256;

    fn schedule(
        when: DispatchTime<BlockNumber>,
        periodic: Option<Period<BlockNumber>>,
        priority: Priority,
        origin: OriginCaller,
        call: Call,
    ) -> Result<Address, DispatchError> {
        first_room(when, |when| {
            <Scheduler as Anon<_, _, _>>::schedule(when, periodic, priority, origin.clone(), call.clone())
        })
    }

    fn cancel(address: Address) -> Result<(), DispatchError> {
        <Scheduler as Anon<_, _, _>>::cancel(address)
    }

    fn reschedule(address: Address, when: DispatchTime<BlockNumber>) -> Result<Address, DispatchError> {
        <Scheduler as Anon<_, _, _>>::reschedule(address, when)
    }

    fn next_dispatch_time(address: Address) -> Result<BlockNumber, DispatchError> {
        <Scheduler as Anon<_, _, _>>::next_dispatch_time(address)
    }
}

impl Named<BlockNumber, RuntimeCall, OriginCaller> for FirstRoom {
    type Address = Address;
    type Hasher = BlakeTwo256;

    fn schedule_named(
        id: TaskName,
        when: DispatchTime<BlockNumber>,
        periodic: Option<Period<BlockNumber>>,
        priority: Priority,
        origin: OriginCaller,
        call: Call,
    ) -> Result<Address, DispatchError> {
        first_room(when, |when| {
            let (origin, call) = (origin.clone(), call.clone());
            <Scheduler as Named<_, _, _>>::schedule_named(id, when, periodic, priority, origin, call)
        })
    }

    fn cancel_named(id: TaskName) -> Result<(), DispatchError> {
        <Scheduler as Named<_, _, _>>::cancel_named(id)
    }

    fn reschedule_named(id: TaskName, when: DispatchTime<BlockNumber>) -> Result<Address, DispatchError> {
        <Scheduler as Named<_, _, _>>::reschedule_named(id, when)
    }

    fn next_dispatch_time(id: TaskName) -> Result<BlockNumber, DispatchError> {
        <Scheduler as Named<_, _, _>>::next_dispatch_time(id)
    }
}

impl pallet_conviction_voting::Config for Runtime {
    type RuntimeEvent = RuntimeEvent;
    type WeightInfo = pallet_conviction_voting::weights::SubstrateWeight<Runtime>;
    type Currency = Balances;
    type Polls = Referenda;
    // Of what the treasury has, too: no payment out of it changes how much support a referendum needs.
    type MaxTurnout = TotalIssuanceOf<Balances, AccountId>;
    type MaxVotes = ConstU32<128>;
    type VoteLockingPeriod = VoteLockingPeriod;
    type BlockNumberProvider = System;
    type VotingHooks = ();
}
