//! Whatever is called and whenever blocks have room: every task ends, and its money is accounted for.

use std::cell::Cell;

use frame_support::{dispatch::DispatchResult, weights::Weight};
use proptest::{prelude::*, test_runner::TestRunner};
use surety_pallet_test_kit::{MockEscrow, MockProviders, MockStake, MockTrust};
use surety_types::{
    task::{FailureReason, Verdict},
    traits::{ENTROPY_PATIENCE_BLOCKS, TaskClock, TaskOutcome},
};

use crate::{
    Agenda, AwaitingEntropy, Bids, Error, Event, NextTaskId, TaskStateOf, Tasks, mock::*, tick::RETRY_BLOCKS,
};

const PROVIDERS: u64 = 8;

/// Random walks tried.
const CASES: u32 = 100;

/// What somebody does to a task, or what happens to everybody.
#[derive(Clone, Debug, PartialEq)]
enum Action {
    Post {
        redundancy: u32,
    },
    /// The task is named by how many were posted after it.
    OfTask {
        back: u64,
        act: TaskAction,
    },
    Pass {
        blocks: u64,
        weight: u64,
    },
    Available {
        provider: u64,
        available: bool,
    },
    EntropyIs(bool),
    FinalityRuns(bool),
    SettlingWorks(bool),
    RoundsOpen(bool),
}

#[derive(Clone, Debug, PartialEq)]
enum TaskAction {
    /// The providers whose bits are set place their bids.
    Bid(u8),
    /// The providers whose bits are set open their bids.
    Open(u8),
    Cancel,
    Advance,
    Wake {
        until: BlockNumber,
    },
    AwaitEntropy,
    TakeReserves(u32),
    Agree,
    Disagree,
}

/// Each provider with three chances in four.
fn many() -> impl Strategy<Value = u8> {
    any::<(u8, u8)>().prop_map(|(some, others)| some | others)
}

fn task_action() -> impl Strategy<Value = TaskAction> {
    prop_oneof![
        6 => many().prop_map(TaskAction::Bid),
        8 => many().prop_map(TaskAction::Open),
        1 => Just(TaskAction::Cancel),
        3 => Just(TaskAction::Advance),
        1 => (0..60u64).prop_map(|until| TaskAction::Wake { until }),
        1 => Just(TaskAction::AwaitEntropy),
        1 => (0..4u32).prop_map(TaskAction::TakeReserves),
        1 => Just(TaskAction::Agree),
        1 => Just(TaskAction::Disagree),
    ]
}

fn action() -> impl Strategy<Value = Action> {
    let mostly = || prop::bool::weighted(0.8);
    let weight = prop_oneof![1 => Just(0), 2 => 0..3_000_000u64, 4 => Just(u64::MAX)];
    prop_oneof![
        2 => (0..4u32).prop_map(|redundancy| Action::Post { redundancy }),
        24 => (0..2u64, task_action()).prop_map(|(back, act)| Action::OfTask { back, act }),
        8 => (1..4u64, weight).prop_map(|(blocks, weight)| Action::Pass { blocks, weight }),
        1 => (0..PROVIDERS, mostly())
            .prop_map(|(provider, available)| Action::Available { provider, available }),
        1 => mostly().prop_map(Action::EntropyIs),
        1 => mostly().prop_map(Action::FinalityRuns),
        1 => mostly().prop_map(Action::SettlingWorks),
        1 => mostly().prop_map(Action::RoundsOpen),
    ]
}

/// What a provider asks; the last one more than any limit.
fn price_of(provider: u64) -> Balance {
    if provider + 1 == PROVIDERS {
        CAP
    } else {
        100 * Balance::from(provider + 1)
    }
}

/// Has the providers whose bits are set do something, and returns the first refusal.
fn each_of(providers: u8, act: impl Fn(u64) -> DispatchResult) -> DispatchResult {
    let mut outcome = Ok(());
    for index in (0..PROVIDERS).filter(|index| providers >> index & 1 == 1) {
        // Not `?`: the others act whether or not this one was refused.
        outcome = outcome.and(act(index));
    }
    outcome
}

/// Whoever was drawn first agrees, whatever came of the others.
fn verdict_of_the_drawn(task: u64) -> DispatchResult {
    let Some(TaskStateOf::<Test>::Running { assignments, .. }) =
        Tasks::<Test>::get(task).map(|task| task.state)
    else {
        return Ok(());
    };
    let members: Vec<_> = assignments
        .iter()
        .map(|member| member.provider - stash(0))
        .collect();
    decide(task, agreed(&members, 50))
}

fn carry_out(action: Action) -> DispatchResult {
    match action {
        Action::Post { redundancy } => TaskAuction::post(signed(CLIENT), spec(redundancy), CAP),
        Action::OfTask { back, act } => {
            let newest = NextTaskId::<Test>::get().saturating_sub(1);
            carry_out_of_task(newest.saturating_sub(back), act)
        }
        Action::Pass { blocks, weight } => {
            for _ in 0..blocks {
                next_block_with(Weight::from_parts(weight, u64::MAX));
            }
            Ok(())
        }
        Action::Available { provider, available } => {
            MockProviders::set_available(stash(provider), available);
            Ok(())
        }
        Action::EntropyIs(there) => {
            HasEntropy::set(there);
            Ok(())
        }
        Action::FinalityRuns(runs) => {
            // When it runs again, the clock catches up in one go.
            ClockStoppedAt::set((!runs).then(|| ClockStoppedAt::get().unwrap_or_else(System::block_number)));
            Ok(())
        }
        Action::SettlingWorks(works) => {
            MockEscrow::break_settle(!works);
            Ok(())
        }
        Action::RoundsOpen(open) => {
            MockTrust::refuse(!open);
            Ok(())
        }
    }
}

fn carry_out_of_task(task: u64, act: TaskAction) -> DispatchResult {
    match act {
        TaskAction::Bid(providers) => each_of(providers, |index| place(task, index, price_of(index))),
        TaskAction::Open(providers) => each_of(providers, |index| open(task, index, price_of(index))),
        TaskAction::Cancel => TaskAuction::cancel(signed(CLIENT), task)
            .map(|_| ())
            .map_err(|error| error.error),
        TaskAction::Advance => frame_support::storage::with_storage_layer(|| advance(task)),
        TaskAction::Wake { until } => {
            TaskAuction::wake_after(task, until);
            Ok(())
        }
        TaskAction::AwaitEntropy => {
            // Rounds ask for it, and there is one while a task is running.
            let state = Tasks::<Test>::get(task).map(|task| task.state);
            if matches!(state, Some(TaskStateOf::<Test>::Running { .. })) {
                TaskAuction::wake_with_entropy(task, System::block_number());
            }
            Ok(())
        }
        TaskAction::TakeReserves(count) => {
            <TaskAuction as TaskOutcome<_, _>>::take_reserves(task, count);
            Ok(())
        }
        TaskAction::Agree => verdict_of_the_drawn(task),
        TaskAction::Disagree => decide(task, Verdict::Failed(FailureReason::NoAgreement)),
    }
}

fn deposits_at_stake() -> Balance {
    let auctioned = |task: &u64| {
        matches!(
            Tasks::<Test>::get(task).map(|task| task.state),
            Some(
                TaskStateOf::<Test>::Bidding { .. }
                    | TaskStateOf::<Test>::Revealing { .. }
                    | TaskStateOf::<Test>::Drawing { .. }
            )
        )
    };
    Bids::<Test>::iter()
        .filter(|(task, _, bid)| bid.opened.is_none() && auctioned(task))
        .map(|(_, _, bid)| bid.deposit)
        .sum()
}

/// Carries out the actions, then lets time pass. Returns how many rounds were opened, and how many tasks were
/// paid.
fn live_through(actions: Vec<Action>) -> (usize, usize) {
    let mut reached = (0, 0);
    TestExt::new().providers(PROVIDERS).execute_with(|| {
        MockTrust::on_advance(verdict_of_the_drawn);
        post(1);
        for action in actions {
            // Refusals are part of life, but this one would be a defect.
            assert_ne!(carry_out(action), Err(Error::<Test>::Overflow.into()));
            assert_sound();
            assert_eq!(MockStake::locked_in_all(), deposits_at_stake());
        }
        // From here on time passes and nobody calls. Settlements work; entropy and rounds stay as they are.
        MockEscrow::break_settle(false);
        ClockStoppedAt::set(None);
        let patience = BlockNumber::from(ENTROPY_PATIENCE_BLOCKS + 2 * RETRY_BLOCKS);
        let longest = BID_WINDOW + REVEAL_WINDOW + patience + ROUND_BLOCKS + RETENTION;
        for _ in 0..longest + 20 {
            next_block_with(Weight::MAX);
        }
        assert_sound();
        assert_eq!(Tasks::<Test>::iter().count(), 0);
        assert_eq!(Bids::<Test>::iter().count(), 0);
        assert_eq!(Agenda::<Test>::iter().count(), 0);
        assert_eq!(AwaitingEntropy::<Test>::iter().count(), 0);
        assert_eq!(MockEscrow::open_count(), 0);
        assert_eq!(MockStake::locked_in_all(), 0);
        let settled = |event: &&Event<Test>| matches!(event, Event::TaskSettled { .. });
        reached = (MockTrust::opened().len(), events().iter().filter(settled).count());
    });
    reached
}

#[test]
fn every_state_has_an_exit_by_time_alone() {
    let reached = Cell::new((0, 0));
    let walks = prop::collection::vec(action(), 0..240);
    let config = proptest::test_runner::contextualize_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(CASES)
    });
    let outcome = TestRunner::new(config).run(&walks, |actions| {
        let (opened, paid) = live_through(actions);
        let (opened_before, paid_before) = reached.get();
        reached.set((opened_before + opened, paid_before + paid));
        Ok(())
    });
    assert_eq!(outcome, Ok(()));
    // Walks are of use only while some of them get to the end of the road.
    let (opened, paid) = reached.get();
    assert!(opened >= 20 && paid >= 10, "{opened} rounds, {paid} paid");
}
