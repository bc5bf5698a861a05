//! Agendas that somebody has filled neither keep referenda from anything, nor blocks from their end.

use frame_support::{assert_ok, dispatch::GetDispatchInfo, traits::Get};
use frame_system::RawOrigin;
use pallet_referenda::{ReferendumInfo, ReferendumInfoFor, TracksInfo};
use pallet_scheduler::WeightInfo as _;
use sp_keyring::Sr25519Keyring::Alice;
use surety_runtime::{
    BlockNumber, Runtime, RuntimeCall, Scheduler,
    configs::{
        agendas::{LATER_MAX, SCHEDULED_MAX},
        governance::SchedulerWeight,
        origins::Origin,
        tracks,
    },
    params::dynamic::auction,
    units::SURE,
};

use crate::{
    chain::{Chain, account},
    presets::preset,
    referenda::{bid_window, dev, enacted, propose, vote},
};

/// Fills the agenda of a block.
fn crowd(block: BlockNumber) {
    let remark = || RuntimeCall::from(frame_system::Call::remark { remark: Vec::new() });
    for _ in 0..SCHEDULED_MAX {
        assert_ok!(Scheduler::schedule(
            RawOrigin::Root.into(),
            block,
            None,
            0,
            Box::new(remark())
        ));
    }
}

/// A chain on which something was approved, its number, and the block in which it is to be done.
fn approved() -> (Chain, u32, BlockNumber) {
    let mut chain = dev();
    let index = propose(&mut chain, Origin::ParameterAdmin.into(), bid_window(3));
    let confirmed = || match ReferendumInfoFor::<Runtime>::get(index) {
        Some(ReferendumInfo::Ongoing(status)) => status.deciding?.confirming,
        _ => None,
    };
    chain.run_until(20, || confirmed().is_some());
    let track = chain.query(|| tracks::Tracks::info(tracks::PARAMETERS)).unwrap();
    let block = chain.query(confirmed).unwrap() + track.min_enactment_period;
    (chain, index, block)
}

#[test]
fn what_was_approved_is_done_a_little_later_where_a_blocks_agenda_is_full() {
    let (mut chain, index, block) = approved();
    chain.query(|| (block..block + LATER_MAX).for_each(crowd));
    assert_eq!(enacted(&mut chain, index), Ok(()));
    assert_eq!(chain.number(), block + LATER_MAX);
    assert_eq!(chain.query(auction::BidWindow::get), 3);
}

#[test]
fn where_all_agendas_are_full_a_gap_in_one_of_them_is_found() {
    let (mut chain, index, block) = approved();
    chain.query(|| {
        (block..=block + LATER_MAX).for_each(crowd);
        assert_ok!(Scheduler::cancel(
            RawOrigin::Root.into(),
            block + 2,
            SCHEDULED_MAX / 2
        ));
    });
    assert_eq!(enacted(&mut chain, index), Ok(()));
    assert_eq!(chain.number(), block + 2);
}

type AgendaWeight = <Runtime as pallet_scheduler::Config>::WeightInfo;

#[test]
fn a_vote_is_charged_for_agendas_as_full_as_can_be() {
    preset("testnet", || {
        let reads = <Runtime as frame_system::Config>::DbWeight::get().reads(LATER_MAX.into());
        let moved = AgendaWeight::cancel(SCHEDULED_MAX) + AgendaWeight::schedule(SCHEDULED_MAX) + reads;
        let weight = |call: RuntimeCall| call.get_dispatch_info().call_weight;
        let remove = pallet_conviction_voting::Call::remove_vote {
            class: None,
            index: 0,
        };
        let other = pallet_conviction_voting::Call::remove_other_vote {
            target: account(Alice).into(),
            class: tracks::ROOT,
            index: 0,
        };
        for call in [vote(0, true, SURE), remove.into(), other.into()] {
            assert!(weight(call).all_gt(moved));
        }
    });
}

/// Else the last of them, a veto maybe, would wait for another block.
#[test]
fn as_many_referenda_as_an_agenda_has_wake_up_in_one_block() {
    use pallet_referenda::weights::WeightInfo;

    type Nudge = <Runtime as pallet_referenda::Config>::WeightInfo;
    preset("testnet", || {
        // Of those that cost their author 10 SURE, and of a veto at last.
        let nudge = Nudge::nudge_referendum_no_deposit().max(Nudge::nudge_referendum_timed_out());
        let each = AgendaWeight::service_task_base() + nudge;
        let all = AgendaWeight::service_agendas_base()
            + AgendaWeight::service_agenda_base(SCHEDULED_MAX)
            + each.saturating_mul(SCHEDULED_MAX.into())
            + Nudge::nudge_referendum_approved();
        assert!(SchedulerWeight::get().all_gt(all), "{all}");
    });
}
