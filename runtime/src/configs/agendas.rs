//! The scheduler's agendas as referenda use them: a little later where one is full, and charged as if they
//! were as full as can be. Whoever fills one with referenda of its own would else keep what was approved from
//! being done, and others from waking up, or have blocks take longer than their votes are charged for.

use core::marker::PhantomData;
use frame_support::{
    traits::{
        Bounded,
        schedule::{
            DispatchTime, Period, Priority,
            v3::{Anon, Named, TaskName},
        },
    },
    weights::Weight,
};
use pallet_scheduler::{Agenda, WeightInfo as _};
use sp_runtime::{DispatchError, traits::BlakeTwo256};

use crate::{BlockNumber, OriginCaller, Runtime, RuntimeCall, Scheduler, System};

/// Most calls in an agenda: what the scheduler's weights were measured with.
pub const SCHEDULED_MAX: u32 = 512;

/// Blocks beyond the one that was asked for in which a referendum's call may be made, or it may wake up.
pub const LATER_MAX: BlockNumber = 8;

/// Parameters that referenda's tracks are made of.
const PARAMETERS: u64 = 3;

type Call = Bounded<RuntimeCall, BlakeTwo256>;
type Address = <Scheduler as Anon<BlockNumber, RuntimeCall, OriginCaller>>::Address;

/// The scheduler, but the first of the next blocks whose agenda has room.
pub struct FirstRoom;

fn first_room(
    when: DispatchTime<BlockNumber>,
    schedule: impl Fn(DispatchTime<BlockNumber>) -> Result<Address, DispatchError>,
) -> Result<Address, DispatchError> {
    // As the scheduler has it.
    let first = match when {
        DispatchTime::At(block) => block,
        DispatchTime::After(blocks) => System::block_number().saturating_add(blocks).saturating_add(1),
    };
    let blocks = first..=first.saturating_add(LATER_MAX);
    // To read nine full ones takes milliseconds, their lengths next to nothing.
    let has_room =
        |block: &BlockNumber| Agenda::<Runtime>::decode_len(block).unwrap_or(0) < SCHEDULED_MAX as usize;
    if let Some(block) = blocks.clone().find(has_room) {
        return schedule(DispatchTime::At(block));
    }
    // What was cancelled has left gaps: to make many is cheaper than to fill an agenda.
    let full = Err(DispatchError::Exhausted);
    let mut placed = blocks.map(|block| schedule(DispatchTime::At(block)));
    placed.find(|placed| *placed != full).unwrap_or(full)
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

/// `W`, measured with short agendas and constant tracks, and what full ones and parameters cost beside.
pub struct WithAgendas<W>(PhantomData<W>);

type AgendaWeight = <Runtime as pallet_scheduler::Config>::WeightInfo;

/// A call takes the last place of an agenda, those before it being full. (Where all are, to find a gap takes
/// longer than that: it costs more than 40,000 SURE to have eight without one.)
fn placed() -> Weight {
    let reads = PARAMETERS.saturating_add(LATER_MAX.into());
    let reads = <Runtime as frame_system::Config>::DbWeight::get().reads(reads);
    AgendaWeight::schedule_named(SCHEDULED_MAX).saturating_add(reads)
}

/// A call gives up its place in a full agenda, and takes another.
fn moved() -> Weight {
    AgendaWeight::cancel(SCHEDULED_MAX).saturating_add(placed())
}

/// A referendum that was approved has its call placed, and another one wakes up.
fn approved() -> Weight {
    placed().saturating_add(placed())
}

fn nothing() -> Weight {
    Weight::zero()
}

macro_rules! weights {
    ($($more:ident: $($name:ident)*;)*) => {
        $($(fn $name() -> Weight { W::$name().saturating_add($more()) })*)*
    };
}

impl<W: pallet_referenda::weights::WeightInfo> pallet_referenda::weights::WeightInfo for WithAgendas<W> {
    weights! {
        nothing: refund_decision_deposit refund_submission_deposit set_some_metadata clear_metadata;
        placed: submit nudge_referendum_requeued_insertion nudge_referendum_requeued_slide
            nudge_referendum_queued nudge_referendum_not_queued nudge_referendum_no_deposit
            nudge_referendum_preparing nudge_referendum_timed_out nudge_referendum_begin_deciding_failing
            nudge_referendum_begin_deciding_passing nudge_referendum_begin_confirming
            nudge_referendum_end_confirming nudge_referendum_continue_not_confirming
            nudge_referendum_continue_confirming nudge_referendum_rejected;
        approved: nudge_referendum_approved;
        moved: place_decision_deposit_preparing place_decision_deposit_queued
            place_decision_deposit_not_queued place_decision_deposit_passing place_decision_deposit_failing
            cancel kill one_fewer_deciding_queue_empty one_fewer_deciding_failing
            one_fewer_deciding_passing;
    }
}

impl<W: pallet_conviction_voting::weights::WeightInfo> pallet_conviction_voting::weights::WeightInfo
    for WithAgendas<W>
{
    weights! {
        nothing: unlock;
        // Whoever is the other itself removes a vote in a referendum that goes on.
        moved: vote_new vote_existing remove_vote remove_other_vote;
    }

    fn delegate(referenda: u32) -> Weight {
        W::delegate(referenda).saturating_add(moved().saturating_mul(referenda.into()))
    }

    fn undelegate(referenda: u32) -> Weight {
        W::undelegate(referenda).saturating_add(moved().saturating_mul(referenda.into()))
    }
}
