use frame_support::assert_ok;
use surety_pallet_test_kit::{MockEscrow, MockProviders, MockStake};
use surety_types::{
    stake::Role,
    traits::{StakeLedger, TaskOutcome},
};

use crate::{Substitutes, TaskStateOf, mock::*};

fn take(task: u64, count: u32) -> Vec<(AccountId, Balance)> {
    let taken = <TaskAuction as TaskOutcome<_, _>>::take_reserves(task, count);
    assert_sound();
    taken
        .into_iter()
        .map(|reserve| (reserve.provider, reserve.price))
        .collect()
}

#[test]
fn reserves_come_best_first_and_once() {
    TestExt::new().providers(4).execute_with(|| {
        let task = assign(1, &[100, 200, 300, 400]);
        assert_eq!(take(task, 2), [(stash(1), 200), (stash(2), 300)]);
        assert_eq!(take(task, 0), []);
        assert_eq!(take(task, 2), [(stash(3), 400)]);
        assert_eq!(take(task, 2), []);
    });
}

#[test]
fn a_substitute_is_paid_what_it_was_offered() {
    TestExt::new().providers(2).execute_with(|| {
        let task = assign(1, &[100, 200]);
        assert_eq!(take(task, 1), [(stash(1), 200)]);
        assert_ok!(decide(task, agreed(&[1], 100)));
        assert_eq!(MockEscrow::paid_to(stash(1)), 200);
        assert_eq!(Substitutes::<Test>::iter().count(), 0);
    });
}

#[test]
fn who_cannot_start_now_is_passed_over_for_good() {
    TestExt::new().providers(4).execute_with(|| {
        let task = assign(1, &[100, 200, 300, 400]);
        MockProviders::set_available(stash(1), false);
        assert_ok!(MockStake::lock(&stash(2), STAKE));
        assert_eq!(take(task, 1), [(stash(3), 400)]);
        MockProviders::set_available(stash(1), true);
        MockStake::bond(stash(2), agent_of(stash(2)), Role::Provider, STAKE);
        assert_eq!(take(task, 4), []);
    });
}

#[test]
fn only_running_tasks_have_reserves() {
    TestExt::new().providers(3).execute_with(|| {
        assert_eq!(take(7, 1), []);
        assert_eq!(take(post(1), 1), []);
        let task = assign(1, &[100, 200, 300]);
        assert_ok!(decide(task, agreed(&[0], 100)));
        assert_eq!(take(task, 1), []);
        assert!(matches!(state(task), TaskStateOf::<Test>::Settled { .. }));
    });
}
