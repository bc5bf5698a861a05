use frame_support::{assert_ok, weights::Weight};
use surety_pallet_test_kit::{MockEscrow, MockTrust};
use surety_types::traits::{ENTROPY_PATIENCE_BLOCKS, TaskClock};

use crate::{
    Agenda, AgendaSweptTo, Event, Pallet, TaskStateOf, mock::*, tick::RETRY_BLOCKS, weights::WeightInfo,
};

/// Room for exactly this many tasks on the agenda of one block, each at its worst.
fn room_for(tasks: u64) -> Weight {
    let per_task = Pallet::<Test>::step_weight_max() + <() as WeightInfo>::sweep_task();
    // Four looks for draws that wait, one for the agenda.
    <() as WeightInfo>::sweep_base() + <() as WeightInfo>::sweep_look() * 9 + per_task * tasks
}

fn revealing(tasks: &[u64]) -> usize {
    let opened = |task: &&u64| matches!(state(**task), TaskStateOf::<Test>::Revealing { .. });
    tasks.iter().filter(opened).count()
}

fn decide_for_provider_0(task: u64) -> frame_support::dispatch::DispatchResult {
    decide(task, agreed(&[0], 100))
}

#[test]
fn a_task_goes_from_posting_to_removal_by_time_and_its_bidders_alone() {
    TestExt::new().providers(2).execute_with(|| {
        MockTrust::on_advance(decide_for_provider_0);
        let task = assign(1, &[500, 600]);
        let drawn = System::block_number();
        run_to(drawn + ROUND_BLOCKS + 1);
        assert!(matches!(state(task), TaskStateOf::<Test>::Settled { .. }));
        run_to(drawn + ROUND_BLOCKS + 1 + RETENTION + 1);
        assert_eq!(crate::Tasks::<Test>::iter().count(), 0);
        // What the steps before their time had left behind is gone as well.
        assert_eq!(Agenda::<Test>::iter().count(), 0);
    });
}

#[test]
fn the_sweep_stays_within_its_weight_and_goes_on_in_the_next_block() {
    TestExt::new().execute_with(|| {
        let tasks: Vec<_> = (0..40).map(|_| post(1)).collect();
        skip_to(1 + BID_WINDOW);
        let room = room_for(1);
        let mut blocks = 0;
        while revealing(&tasks) < tasks.len() {
            let before = revealing(&tasks);
            let used = next_block_with(room);
            assert!(used.all_lte(room), "{used:?} of {room:?}");
            // The first blocks go into catching up with the agenda's empty blocks.
            blocks += 1;
            assert!(revealing(&tasks) > before || blocks < 10);
            assert_sound();
        }
        assert!(blocks > 2, "one block had room for everything");
        assert_eq!(MockEscrow::open_count(), 40);
    });
}

#[test]
fn without_room_nothing_is_done_and_nothing_lost() {
    TestExt::new().execute_with(|| {
        let task = post(1);
        skip_to(1 + BID_WINDOW);
        assert_eq!(next_block_with(Weight::zero()), Weight::zero());
        for _ in 0..10 {
            next_block_with(<() as WeightInfo>::sweep_base());
        }
        assert_eq!(AgendaSweptTo::<Test>::get(), 0);
        assert_eq!(revealing(&[task]), 0);
        next_block_with(Weight::MAX);
        assert_eq!(revealing(&[task]), 1);
        assert_eq!(AgendaSweptTo::<Test>::get(), System::block_number());
    });
}

#[test]
fn the_cursor_stays_before_a_block_in_which_something_is_left() {
    TestExt::new().execute_with(|| {
        let tasks = [post(1), post(1), post(1)];
        run_to(1 + BID_WINDOW);
        // With room for the worst step of one task and for the cheap one it turns out to be, a second one is
        // begun, but not a third.
        let cheap = <() as WeightInfo>::open_reveals() + <() as WeightInfo>::sweep_task();
        next_block_with(room_for(1) + cheap);
        assert_eq!(revealing(&tasks), 2);
        assert_eq!(AgendaSweptTo::<Test>::get(), 1 + BID_WINDOW);
        assert_sound();
        next_block_with(room_for(2));
        assert_eq!(revealing(&tasks), 3);
        assert_eq!(AgendaSweptTo::<Test>::get(), System::block_number());
    });
}

#[test]
fn a_task_that_fails_is_tried_again_later_and_holds_nobody_up() {
    TestExt::new().providers(1).execute_with(|| {
        let broken = assign(1, &[500]);
        let drawn = System::block_number();
        let due = drawn + ROUND_BLOCKS + 1;
        skip_to(due - 1 - BID_WINDOW);
        let other = post(1);
        MockTrust::on_advance(decide_for_provider_0);
        MockEscrow::break_settle(true);
        run_to(due - 1);
        events();
        run_to(due);
        let until = due + BlockNumber::from(RETRY_BLOCKS);
        // Events keep no text of an error.
        let error = sp_runtime::DispatchError::Other("");
        assert_eq!(
            events(),
            [Event::AdvancePostponed {
                task: broken,
                error,
                until
            }]
        );
        assert_eq!(revealing(&[other]), 1);

        MockEscrow::break_settle(false);
        run_to(until);
        assert!(matches!(state(broken), TaskStateOf::<Test>::Running { .. }));
        run_to(until + 1);
        assert!(matches!(state(broken), TaskStateOf::<Test>::Settled { .. }));
    });
}

#[test]
fn what_a_failed_step_did_is_undone() {
    TestExt::new().providers(1).execute_with(|| {
        fn writes_and_fails(task: u64) -> frame_support::dispatch::DispatchResult {
            crate::Tasks::<Test>::remove(task);
            Err(MockTrust::REFUSED)
        }
        let task = assign(1, &[500]);
        MockTrust::on_advance(writes_and_fails);
        run_to(System::block_number() + ROUND_BLOCKS + 1);
        assert!(matches!(state(task), TaskStateOf::<Test>::Running { .. }));
    });
}

#[test]
fn nothing_is_put_on_the_agenda_for_a_block_that_may_be_swept() {
    TestExt::new().execute_with(|| {
        run_to(10);
        for until in [0, 9, 10] {
            TaskAuction::wake_after(7, until);
            assert_eq!(Agenda::<Test>::iter_keys().collect::<Vec<_>>(), [(11, 7)]);
        }
        TaskAuction::wake_after(7, 11);
        assert!(Agenda::<Test>::contains_key(12, 7));
    });
}

#[test]
fn waking_a_task_too_early_does_nothing_but_wake_it_again() {
    TestExt::new().execute_with(|| {
        let task = post(1);
        TaskAuction::wake_after(task, 1);
        events();
        run_to(2);
        assert_eq!(
            state(task),
            TaskStateOf::<Test>::Bidding {
                until: 1 + BID_WINDOW
            }
        );
        assert_eq!(events(), []);
        assert_eq!(
            Agenda::<Test>::iter_keys().collect::<Vec<_>>(),
            [(2 + BID_WINDOW, task)]
        );
    });
}

#[test]
fn a_task_advanced_by_hand_needs_no_sweep() {
    TestExt::new().providers(1).execute_with(|| {
        let task = post(1);
        assert_ok!(place(task, 0, 500));
        skip_to(2 + BID_WINDOW);
        assert_ok!(advance(task));
        assert_ok!(open(task, 0, 500));
        skip_to(1 + BID_WINDOW + REVEAL_WINDOW + 1);
        assert_ok!(advance(task));
        skip_to(1 + BID_WINDOW + REVEAL_WINDOW + 3);
        assert_ok!(advance(task));
        MockTrust::on_advance(decide_for_provider_0);
        assert_ok!(advance(task));
        assert!(matches!(state(task), TaskStateOf::<Test>::Settled { .. }));
    });
}

#[test]
fn advance_gives_back_the_weight_it_did_not_need() {
    TestExt::new().execute_with(|| {
        let task = post(1);
        skip_to(2 + BID_WINDOW);
        let info = TaskAuction::advance(signed(ANYBODY), task).unwrap();
        assert_eq!(info.actual_weight, Some(<() as WeightInfo>::open_reveals()));
        let error = TaskAuction::advance(signed(ANYBODY), task).unwrap_err();
        let waits = <() as WeightInfo>::open_reveals() + <() as WeightInfo>::sweep_entropy();
        assert_eq!(error.post_info.actual_weight, Some(waits));
    });
}

#[test]
fn the_configuration_lets_the_sweep_get_on() {
    TestExt::new().execute_with(Pallet::<Test>::check_configuration);
}

#[test]
fn a_round_that_waits_for_entropy_is_looked_at_by_blocks_though_the_clock_stands_still() {
    TestExt::new().providers(1).execute_with(|| {
        let task = assign(1, &[500]);
        let since = System::block_number();
        ClockStoppedAt::set(Some(since));
        TaskAuction::wake_with_entropy(task, since);
        let looked_at = || MockTrust::advanced().iter().filter(|of| **of == task).count();
        let before = looked_at();
        run_to(since + 1);
        assert_eq!(looked_at(), before);
        run_to(since + 2);
        assert_eq!(looked_at(), before + 1);
        run_to(since + 50);
        assert_eq!(looked_at(), before + 1);
    });
}

#[test]
fn nobody_waits_for_entropy_for_ever() {
    TestExt::new().providers(1).execute_with(|| {
        let task = assign(1, &[500]);
        let since = System::block_number();
        HasEntropy::set(false);
        ClockStoppedAt::set(Some(since));
        TaskAuction::wake_with_entropy(task, since);
        let before = MockTrust::advanced().len();
        let last = since + BlockNumber::from(ENTROPY_PATIENCE_BLOCKS);
        run_to(last);
        assert_eq!(MockTrust::advanced().len(), before);
        run_to(last + 1);
        assert_eq!(MockTrust::advanced().len(), before + 1);
    });
}

#[test]
fn a_round_that_fails_when_it_has_entropy_is_tried_again_like_any() {
    TestExt::new().providers(1).execute_with(|| {
        let task = assign(1, &[500]);
        TaskAuction::wake_with_entropy(task, System::block_number());
        MockTrust::on_advance(|_| Err(sp_runtime::DispatchError::Other("")));
        events();
        run_to(System::block_number() + 2);
        assert!(matches!(events()[..], [Event::AdvancePostponed { task: of, .. }] if of == task));
        run_to(System::block_number() + 2);
        assert_eq!(events(), []);
    });
}

#[test]
fn a_round_takes_of_a_block_what_it_says_that_it_cost() {
    TestExt::new().providers(1).execute_with(|| {
        assign(1, &[500]);
        run_to(System::block_number() + ROUND_BLOCKS);
        let used = next_block_with(Weight::MAX);
        assert_eq!(MockTrust::advanced().len(), 1);
        let round = MockTrust::ADVANCE_WEIGHT + <() as WeightInfo>::take_reserves();
        // Four looks for what waits for entropy, one that finds the task and one that finds nothing more.
        let looks = <() as WeightInfo>::sweep_base() + <() as WeightInfo>::sweep_look() * 10;
        assert_eq!(used, looks + round + <() as WeightInfo>::sweep_task());
    });
}
