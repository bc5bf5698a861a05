//! A client has to show pieces of its input on chain, or loses its lock.

use frame_support::{assert_noop, assert_ok, traits::fungible::Mutate};
use frame_system::RawOrigin;
use proptest::{collection::vec, prelude::*};
use sp_runtime::TokenError;
use surety_pallet_test_kit::{MockClock, MockOutcome, MockStake};
use surety_types::{
    limits::INPUT_DEMANDS_MAX,
    task::{FailureReason, Verdict},
    traits::TaskTrust,
};

use surety_pallet_integration_tests::*;

const CLIENT: AccountId = MockOutcome::CLIENT;
const ANYBODY: AccountId = FIRST_STRANGER;

/// A round of as many providers, of a task with an input.
fn waiting(redundancy: u32, test: impl FnOnce()) {
    TestExt::new().round_of(redundancy).execute_with(|| {
        post_input();
        events();
        test();
    });
}

/// Everything that is left when a client has withheld its input.
fn assert_withheld(waited: &[AccountId]) {
    assert_eq!(round(), None);
    assert_eq!(decision(), Some(Verdict::Failed(FailureReason::InputWithheld)));
    assert_eq!(MockOutcome::withheld(), [(TASK, waited.to_vec())]);
    assert_eq!((faults(), MockStake::locked_in_all()), (Vec::new(), 0));
}

#[test]
fn of_a_demands_price_the_client_gets_that_of_the_piece_whoever_supplied_it() {
    waiting(3, || {
        let (_, commit_until) = phase().unwrap();
        let until = System::block_number() + INPUT_WINDOW;
        assert_ok!(demand_input(2, 1));
        assert_eq!(money(agent_of(2)), AGENT_MONEY - PART_PRICE);
        pass(INPUT_WINDOW);
        assert_ok!(supply_input(ANYBODY, &input(), 1));
        assert_eq!(
            (money(CLIENT), money(agent_of(2)), money(ANYBODY)),
            (1 + price(&input()[1_024..2_048]), AGENT_MONEY - PART_PRICE, MONEY)
        );
        let commit_until = commit_until + INPUT_WINDOW;
        assert_eq!(
            events(),
            [
                RuntimeEvent::Results(ResultsEvent::InputDemanded {
                    task: TASK,
                    provider: 2,
                    segment: 1,
                    until,
                    commit_until
                }),
                RuntimeEvent::Results(ResultsEvent::InputSupplied {
                    task: TASK,
                    segment: 1,
                    by: ANYBODY
                }),
            ]
        );
        assert_eq!(phase(), Some((PhaseName::Committing, commit_until)));
        all_commit(&[(1, 9), (2, 9), (3, 9)]);
    });
}

#[test]
fn a_client_that_withholds_its_input_fails_the_task_and_nobody_else_loses_anything() {
    waiting(3, || {
        Records::<Test>::mutate(1, |record| record.clean_tasks = 4);
        assert_ok!(commit(3, 9));
        assert_ok!(demand_input(1, 2));
        events();
        pass(INPUT_WINDOW);
        assert!(round().is_some());
        pass(1);
        assert_withheld(&[1, 2, 3]);
        assert_eq!(money(agent_of(1)), AGENT_MONEY);
        assert_eq!(Records::<Test>::get(1).clean_tasks, 4);
        let verdict = Verdict::Failed(FailureReason::InputWithheld);
        assert_eq!(
            events(),
            [
                RuntimeEvent::Results(ResultsEvent::InputWithheld {
                    task: TASK,
                    provider: 1,
                    segment: 2
                }),
                RuntimeEvent::Results(ResultsEvent::VerdictReached { task: TASK, verdict }),
                RuntimeEvent::Results(ResultsEvent::RoundClosed { task: TASK }),
            ]
        );
    });
}

#[test]
fn what_comes_too_late_is_refused_whether_or_not_the_agenda_was_there() {
    waiting(3, || {
        assert_ok!(demand_input(1, 0));
        pass_unattended(INPUT_WINDOW + 1);
        assert_noop!(supply_input(CLIENT, &input(), 0), ResultsError::WrongPhase);
        pass(1);
        assert_withheld(&[1, 2, 3]);
    });
}

#[test]
fn an_agent_without_money_demands_with_its_stashs() {
    waiting(3, || {
        let agent = agent_of(1);
        assert_ok!(Balances::transfer_all(
            RawOrigin::Signed(agent).into(),
            CLIENT,
            false
        ));
        assert_ok!(Balances::mint_into(&1, MONEY));
        let before = money(1);
        assert_ok!(demand_input(1, 0));
        assert!(money(1) < before);
        assert_ok!(supply_input(CLIENT, &input(), 0));
        assert_eq!(money(agent), 0);
    });
}

#[test]
fn nothing_but_the_piece_itself_will_do() {
    waiting(3, || {
        assert_noop!(supply_input(CLIENT, &input(), 0), ResultsError::NotDemanded);
        assert_ok!(demand_input(1, 1));
        let mut other = input();
        other[1_100] ^= 1;
        assert_noop!(supply_input(CLIENT, &other, 1), ResultsError::WrongSegment);
        assert_noop!(supply_input(CLIENT, &input(), 0), ResultsError::WrongSegment);
        // The specification says how long the input is.
        assert_noop!(
            supply_input(CLIENT, &input()[..2_400], 1),
            ResultsError::WrongSegment
        );
        assert_ok!(supply_input(CLIENT, &input(), 1));
        assert_noop!(supply_input(CLIENT, &input(), 1), ResultsError::NotDemanded);
    });
}

#[test]
fn an_input_of_another_length_than_was_posted_cannot_be_supplied() {
    waiting(3, || {
        let hash = surety_proofs::content_hash(&input());
        MockOutcome::set_input(TASK, (hash, 1_000));
        assert_ok!(demand_input(1, 0));
        assert_noop!(supply_input(CLIENT, &input(), 0), ResultsError::WrongSegment);
        pass(INPUT_WINDOW + 1);
        assert_withheld(&[1, 2, 3]);
    });
}

#[test]
fn only_who_waits_for_the_input_can_demand_it_and_only_what_there_is() {
    TestExt::new().round_of(3).reserves([5]).execute_with(|| {
        post_input();
        assert_noop!(demand_input(9, 0), ResultsError::NotMember);
        let by_anybody = send_as(
            ANYBODY,
            ResultsCall::demand_input {
                task: TASK,
                segment: 0,
            },
        );
        assert_eq!(by_anybody, Err(ResultsError::NotProviderAgent.into()));
        let elsewhere = send(1, ResultsCall::demand_input { task: 99, segment: 0 });
        assert_eq!(elsewhere, Err(ResultsError::UnknownRound.into()));
        assert_noop!(demand_input(1, 3), ResultsError::NoSuchSegment);
        assert_ok!(commit(1, 9));
        assert_noop!(demand_input(1, 0), ResultsError::AlreadyCommitted);
        assert_ok!(demand_input(2, 0));
        assert_noop!(demand_input(3, 0), ResultsError::AlreadyDemanded);
        assert_ok!(supply_input(CLIENT, &input(), 0));
        assert_ok!(commit(3, 9));
        assert_noop!(demand_input(2, 0), ResultsError::EnoughCommitted);
        // The newcomer in a seat has to see that a majority has it, too.
        pass(COMMIT_WINDOW + INPUT_WINDOW + 1);
        assert_eq!(members(), [1, 5, 3]);
        assert_noop!(demand_input(2, 0), ResultsError::NotMember);
        assert_noop!(demand_input(5, 0), ResultsError::EnoughCommitted);
        assert_ok!(commit(5, 9));
        assert_noop!(demand_input(5, 0), ResultsError::WrongPhase);
    });
}

#[test]
fn who_was_found_at_fault_demands_nothing() {
    waiting(3, || {
        let (one, other) = (promised(1, 8), promised(1, 9));
        assert_ok!(report(one, Some(other)));
        assert_noop!(demand_input(1, 0), ResultsError::AlreadyAtFault);
        // And gets nothing when the client is.
        assert_ok!(demand_input(2, 0));
        pass(INPUT_WINDOW + 1);
        assert_eq!(MockOutcome::withheld(), [(TASK, vec![2, 3])]);
    });
}

#[test]
fn a_demand_after_the_deadline_is_too_late() {
    waiting(3, || {
        pass_unattended(COMMIT_WINDOW + 1);
        assert_noop!(demand_input(1, 0), ResultsError::WrongPhase);
    });
}

#[test]
fn who_cannot_pay_demands_nothing() {
    TestExt::new().round_of(1).execute_with(|| {
        MockOutcome::set_input(TASK, (surety_proofs::content_hash(&input()), 2_500));
        assert_noop!(demand_input(1, 0), TokenError::FundsUnavailable);
    });
}

#[test]
fn each_member_has_a_few_demands_of_its_own_and_the_deadline_moves_with_each() {
    waiting(3, || {
        let (_, before) = phase().unwrap();
        for stash in 1..=3 {
            for _ in 0..INPUT_DEMANDS_MAX {
                assert_ok!(demand_input(stash, 0));
                assert_ok!(supply_input(CLIENT, &input(), 0));
            }
            assert_noop!(demand_input(stash, 0), ResultsError::TooManyDemands);
        }
        let moved = 3 * BlockNumber::from(INPUT_DEMANDS_MAX) * INPUT_WINDOW;
        assert_eq!(phase(), Some((PhaseName::Committing, before + moved)));
        assert_eq!(MockClock::last_wake(TASK), Some(before + moved));
        // Time alone ends it all the same.
        pass(COMMIT_WINDOW + moved + CHALLENGE_WINDOW + 3);
        assert_eq!(decision(), Some(Verdict::Failed(FailureReason::NotEnoughResults)));
    });
}

#[test]
fn no_deadline_passes_while_a_demand_is_open() {
    waiting(1, || {
        pass(COMMIT_WINDOW);
        assert_ok!(demand_input(1, 0));
        pass(INPUT_WINDOW);
        assert_ok!(supply_input(CLIENT, &input(), 0));
        assert_ok!(commit(1, 9));
        assert_eq!(phase().map(|(name, _)| name), Some(PhaseName::Auditing));
    });
}

#[test]
fn who_commits_has_the_input_and_pays_for_its_demand() {
    waiting(3, || {
        assert_ok!(demand_input(1, 0));
        assert_ok!(commit(1, 9));
        assert_eq!(demanded_input(), None);
        assert_eq!((money(CLIENT), money(agent_of(1))), (1, AGENT_MONEY - PART_PRICE));
        assert_eq!(
            events().pop(),
            Some(RuntimeEvent::Results(ResultsEvent::InputDemandLifted {
                task: TASK,
                provider: 1
            }))
        );
        pass(INPUT_WINDOW + 1);
        assert!(round().is_some());
        assert_noop!(supply_input(CLIENT, &input(), 0), ResultsError::NotDemanded);
    });
}

#[test]
fn what_a_majority_has_is_not_withheld() {
    waiting(3, || {
        assert_ok!(demand_input(1, 0));
        assert_ok!(commit(2, 9));
        assert_eq!(demanded_input(), Some(0));
        assert_ok!(commit(3, 9));
        assert_eq!(demanded_input(), None);
        pass(COMMIT_WINDOW + INPUT_WINDOW + 1);
        assert_eq!(phase().map(|(name, _)| name), Some(PhaseName::Auditing));
    });
}

#[test]
fn the_last_commitment_ends_the_phase_and_the_demand_together() {
    waiting(1, || {
        assert_ok!(demand_input(1, 0));
        assert_ok!(commit(1, 9));
        assert_eq!(demanded_input(), None);
        assert_eq!(phase().map(|(name, _)| name), Some(PhaseName::Auditing));
    });
}

#[test]
fn a_task_that_cannot_be_told_stays_as_it_was() {
    waiting(3, || {
        assert_ok!(demand_input(1, 0));
        pass_unattended(INPUT_WINDOW + 1);
        MockOutcome::refuse(true);
        assert_noop!(
            <Results as TaskTrust<_, _, _>>::advance(TASK),
            MockOutcome::REFUSED
        );
        MockOutcome::refuse(false);
        assert_ok!(Results::advance(TASK));
        assert_withheld(&[1, 2, 3]);
    });
}

#[derive(Clone, Debug)]
enum Step {
    Demand(AccountId, u32),
    Commit(AccountId),
    /// A piece, of the input or of something else.
    Supply(u32, bool),
    Pass(BlockNumber),
    PassUnattended(BlockNumber),
}

fn any_step() -> impl Strategy<Value = Step> {
    let stash = || 1..=6u64;
    prop_oneof![
        5 => (stash(), 0..4u32).prop_map(|(stash, segment)| Step::Demand(stash, segment)),
        2 => stash().prop_map(Step::Commit),
        2 => (0..3u32, any::<bool>()).prop_map(|(segment, right)| Step::Supply(segment, right)),
        3 => (1..4u64).prop_map(Step::Pass),
        1 => (1..8u64).prop_map(Step::PassUnattended),
    ]
}

/// Whatever was refused changed nothing.
fn take(step: &Step) {
    let _refused = match step {
        Step::Demand(stash, segment) => demand_input(*stash, *segment),
        Step::Commit(stash) => commit(*stash, 9),
        Step::Supply(segment, right) => {
            let bytes = if *right { input() } else { output(9) };
            supply_input(ANYBODY, &bytes, *segment)
        }
        Step::Pass(blocks) => {
            pass(*blocks);
            Ok(())
        }
        Step::PassUnattended(blocks) => {
            pass_unattended(*blocks);
            Ok(())
        }
    };
}

/// Longest that providers, all of them hostile, can keep such a round from ending.
fn longest(seats: BlockNumber, reserves: BlockNumber) -> BlockNumber {
    let demands = (seats + reserves) * BlockNumber::from(INPUT_DEMANDS_MAX) * INPUT_WINDOW;
    (reserves + 1) * (COMMIT_WINDOW + 1) + demands + AUDITING + REVEAL_WINDOW + CHALLENGE_WINDOW + 4
}

proptest! {
    #![proptest_config(proptest::test_runner::contextualize_config(ProptestConfig::with_cases(300)))]

    #[test]
    fn whatever_is_demanded_a_round_ends_by_time_and_no_money_goes_missing(
        seats in 1..=5u64, reserves in 0..=1u64, steps in vec(any_step(), 0..60),
    ) {
        let redundancy = seats as u32;
        TestExt::new().round_of(redundancy).reserves(seats + 1..=seats + reserves).execute_with(|| {
            post_input();
            let issued = Balances::total_issuance();
            for step in &steps {
                take(step);
                check();
            }
            let was_open = demanded_input().is_some();
            pass(longest(seats, reserves));
            assert_eq!(round(), None);
            // Only agents have spent anything: what the client has not got of it was burned.
            let spent: Balance = (1..=STASHES).map(|stash| AGENT_MONEY - money(agent_of(stash))).sum();
            assert_eq!(Balances::total_issuance(), issued - (spent - (money(CLIENT) - 1)));
            let withheld = decision() == Some(Verdict::Failed(FailureReason::InputWithheld));
            assert!(!was_open || withheld, "a demand that led nowhere");
            pass(DEFERRAL + 1);
            assert_eq!(MockStake::locked_in_all(), 0);
        });
    }

    #[test]
    fn a_client_that_looks_once_a_window_is_never_robbed(
        seats in 1..=5u64, reserves in 0..=1u64, steps in vec(any_step(), 0..60),
    ) {
        let redundancy = seats as u32;
        TestExt::new().round_of(redundancy).reserves(seats + 1..=seats + reserves).execute_with(|| {
            post_input();
            for step in &steps {
                // It looks before time passes, and never less than that.
                let time = match step {
                    Step::Pass(blocks) | Step::PassUnattended(blocks) => *blocks,
                    other => {
                        take(other);
                        continue;
                    }
                };
                for _ in 0..time.div_ceil(INPUT_WINDOW) {
                    if let Some(segment) = demanded_input() {
                        assert_ok!(supply_input(CLIENT, &input(), segment));
                    }
                    take(&match step {
                        Step::PassUnattended(_) => Step::PassUnattended(INPUT_WINDOW.min(time)),
                        _ => Step::Pass(INPUT_WINDOW.min(time)),
                    });
                }
            }
            if let Some(segment) = demanded_input() {
                assert_ok!(supply_input(CLIENT, &input(), segment));
            }
            pass(longest(seats, reserves));
            assert_eq!((round(), MockOutcome::withheld()), (None, Vec::new()));
        });
    }
}
