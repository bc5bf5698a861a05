use frame_support::{assert_noop, assert_ok};
use surety_types::{
    limits,
    task::{FailureReason, Verdict},
};

use crate::{BidCounts, Bids, Error, Event, OpenTasks, Substitutes, TaskStateOf, Tasks, mock::*};

#[test]
fn a_finished_task_can_be_read_for_a_while_and_then_nothing_is_left_of_it() {
    let bids_max = u64::from(limits::BIDS_MAX);
    TestExt::new().providers(bids_max).execute_with(|| {
        let task = assign(1, &vec![500; bids_max as usize]);
        let TaskStateOf::<Test>::Running { assignments, .. } = state(task) else {
            unreachable!()
        };
        assert_ok!(decide(task, agreed(&[assignments[0].provider - stash(0)], 1)));
        let end = System::block_number();
        run_to(end + RETENTION);
        assert!(matches!(state(task), TaskStateOf::<Test>::Settled { .. }));
        assert_noop!(advance(task), Error::<Test>::NotDue);
        events();
        run_to(end + RETENTION + 1);
        assert_eq!(events(), [Event::TaskRemoved { task }]);
        assert!(!Tasks::<Test>::contains_key(task));
        assert_eq!(Bids::<Test>::iter().count(), 0);
        assert_eq!(BidCounts::<Test>::iter().count(), 0);
        assert_eq!(Substitutes::<Test>::iter().count(), 0);
        assert_noop!(advance(task), Error::<Test>::UnknownTask);
    });
}

#[test]
fn anybody_can_have_an_old_task_removed_when_nobody_sweeps() {
    TestExt::new().execute_with(|| {
        let task = post(1);
        assert_ok!(TaskAuction::cancel(signed(CLIENT), task));
        skip_to(1 + RETENTION);
        assert_noop!(advance(task), Error::<Test>::NotDue);
        skip_to(1 + RETENTION + 1);
        assert_ok!(advance(task));
        assert_noop!(advance(task), Error::<Test>::UnknownTask);
    });
}

#[test]
fn removing_one_task_leaves_the_others() {
    TestExt::new().providers(2).execute_with(|| {
        let (gone, kept) = (post(1), post(1));
        for task in [gone, kept] {
            assert_ok!(place(task, 0, 500));
        }
        assert_ok!(TaskAuction::cancel(signed(CLIENT), gone));
        run_to(1 + RETENTION + 1);
        assert!(!Tasks::<Test>::contains_key(gone));
        assert_eq!(Bids::<Test>::iter_prefix(kept).count(), 1);
    });
}

#[test]
fn a_task_is_listed_as_open_until_it_is_settled_fails_or_is_cancelled() {
    TestExt::new().providers(1).run(|| {
        let listed = || {
            let mut tasks: Vec<_> = OpenTasks::<Test>::iter_keys().collect();
            tasks.sort();
            tasks
        };
        let (settled, failed, cancelled) = (assign(1, &[500]), assign(1, &[500]), post(1));
        assert_eq!(listed(), [settled, failed, cancelled]);
        assert_ok!(decide(settled, agreed(&[0], 1)));
        assert_eq!(listed(), [failed, cancelled]);
        let reason = FailureReason::NoAgreement;
        assert_ok!(decide(failed, Verdict::Failed(reason)));
        assert_eq!(listed(), [cancelled]);
        assert_ok!(TaskAuction::cancel(signed(CLIENT), cancelled));
        assert_eq!(listed(), Vec::<u64>::new());
    });
}
