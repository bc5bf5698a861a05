//! What a task asks of its providers.

use frame_support::{assert_noop, assert_ok};
use surety_pallet_test_kit::{MockEscrow, MockProviders, MockStake};
use surety_types::{
    TaskId,
    region::Region,
    speed::{MeasuredView, Requirements, Tier},
    task::{FailureReason, TaskSpec},
    traits::Escrow,
};

use crate::{Error, NextTaskId, TaskStateOf, mock::*};

const ASKED: Requirements = Requirements {
    tier: Some(Tier::B),
    memory_mib: 24 << 10,
    region: None,
};

fn measure(index: u64, tier: Tier, memory_mib: u32) {
    let measured = MeasuredView {
        tier,
        giga_operations: 1,
        memory_mib,
        rounds_missed: 0,
    };
    MockProviders::set_measured(stash(index), Some(measured));
}

fn region(letters: &str) -> Option<Region> {
    letters.parse().ok()
}

fn declare(index: u64, letters: &str) {
    MockProviders::set_region(stash(index), region(letters));
}

fn post_asking() -> TaskId {
    post_for(ASKED)
}

/// A task for who says that it is in this region, measured or not.
fn post_in(letters: &str) -> TaskId {
    post_for(Requirements {
        region: region(letters),
        ..Default::default()
    })
}

fn post_for(requirements: Requirements) -> TaskId {
    let id = NextTaskId::<Test>::get();
    let spec = TaskSpec {
        requirements,
        ..spec(1)
    };
    assert_ok!(TaskAuction::post(signed(CLIENT), spec, CAP));
    id
}

/// Goes on from block 1 to the draw, with these bids opened on the way.
fn draw(task: TaskId, bids: &[(u64, Balance)]) {
    run_to(1 + BID_WINDOW + 1);
    for (index, price) in bids {
        assert_ok!(open(task, *index, *price));
    }
    run_to(1 + BID_WINDOW + REVEAL_WINDOW + 3);
}

#[test]
fn who_has_not_shown_what_a_task_asks_for_cannot_bid() {
    TestExt::new().providers(5).execute_with(|| {
        measure(1, Tier::C, ASKED.memory_mib);
        measure(2, Tier::A, ASKED.memory_mib - 1);
        measure(3, Tier::B, ASKED.memory_mib);
        measure(4, Tier::A, ASKED.memory_mib);
        let task = post_asking();
        for index in 0..3 {
            assert_noop!(place(task, index, 500), Error::<Test>::RequirementsUnmet);
        }
        assert_ok!(place(task, 3, 500));
        assert_ok!(place(task, 4, 500));
        // Of one that asks for nothing, nothing has to be shown.
        assert_ok!(place(post(1), 0, 500));
    });
}

#[test]
fn who_has_lost_it_since_it_bid_is_not_drawn_and_loses_nothing_else() {
    TestExt::new().providers(2).execute_with(|| {
        measure(0, Tier::A, ASKED.memory_mib);
        measure(1, Tier::B, ASKED.memory_mib);
        let task = post_asking();
        assert_ok!(place(task, 0, 100));
        assert_ok!(place(task, 1, 200));
        MockProviders::set_measured(stash(0), None);
        draw(task, &[(0, 100), (1, 200)]);
        let TaskStateOf::<Test>::Running {
            assignments,
            reserves,
        } = state(task)
        else {
            panic!("not running: {:?}", state(task));
        };
        assert_eq!(assignments.len(), 1);
        assert_eq!(assignments[0].provider, stash(1));
        assert!(reserves.is_empty());
        assert_eq!(MockStake::locked(stash(0)), 0);
    });
}

#[test]
fn who_says_to_be_elsewhere_or_nowhere_cannot_bid() {
    TestExt::new().providers(4).execute_with(|| {
        declare(0, "DE");
        declare(1, "FR");
        measure(1, Tier::A, u32::MAX);
        let task = post_in("DE");
        for index in [1, 2] {
            assert_noop!(place(task, index, 500), Error::<Test>::RequirementsUnmet);
        }
        assert_ok!(place(task, 0, 500));
        // A region is asked for besides what is measured, not in its place.
        let both = post_for(Requirements {
            region: region("DE"),
            ..ASKED
        });
        declare(3, "DE");
        measure(3, Tier::B, ASKED.memory_mib);
        for index in 0..3 {
            assert_noop!(place(both, index, 500), Error::<Test>::RequirementsUnmet);
        }
        assert_ok!(place(both, 3, 500));
        // And nobody is kept from tasks that ask for none.
        assert_ok!(place(post(1), 1, 500));
    });
}

#[test]
fn who_has_moved_since_it_bid_is_not_drawn_and_loses_nothing_else() {
    TestExt::new().providers(2).execute_with(|| {
        declare(0, "DE");
        declare(1, "DE");
        let task = post_in("DE");
        assert_ok!(place(task, 0, 100));
        assert_ok!(place(task, 1, 200));
        declare(0, "FR");
        draw(task, &[(0, 100), (1, 200)]);
        let TaskStateOf::<Test>::Running { assignments, .. } = state(task) else {
            panic!("not running: {:?}", state(task));
        };
        let given: Vec<_> = assignments.iter().map(|given| given.provider).collect();
        assert_eq!(given, [stash(1)]);
        assert_eq!(MockStake::locked(stash(0)), 0);
    });
}

#[test]
fn a_region_in_which_nobody_is_costs_the_client_nothing() {
    TestExt::new().providers(1).execute_with(|| {
        declare(0, "FR");
        let task = post_in("DE");
        assert_noop!(place(task, 0, 100), Error::<Test>::RequirementsUnmet);
        draw(task, &[]);
        let reason = FailureReason::NotEnoughBids;
        assert!(matches!(state(task), TaskStateOf::<Test>::Failed { reason: found, .. } if found == reason));
        assert_eq!(MockEscrow::held(task), 0);
        assert_eq!(MockStake::locked(stash(0)), 0);
    });
}

#[test]
fn where_nobody_meets_it_any_more_the_client_has_its_money_back() {
    TestExt::new().providers(1).execute_with(|| {
        measure(0, Tier::B, ASKED.memory_mib);
        let task = post_asking();
        assert_ok!(place(task, 0, 100));
        measure(0, Tier::C, ASKED.memory_mib);
        draw(task, &[(0, 100)]);
        let reason = FailureReason::NotEnoughBids;
        assert!(matches!(state(task), TaskStateOf::<Test>::Failed { reason: found, .. } if found == reason));
        assert_eq!(MockEscrow::held(task), 0);
        assert_eq!(MockStake::locked(stash(0)), 0);
    });
}
