//! What a provider reveals and serves nobody is demanded on chain.

use frame_support::{assert_noop, assert_ok};
use surety_pallet_results::{DisputeContexts, SHOWN_MAX, Shown};
use surety_pallet_test_kit::{MockClock, MockOutcome, MockStake};
use surety_proofs::{PART_BYTES, PartOpening, content_hash};
use surety_types::{
    task::{MemberProgress, Verdict},
    trust::{Content, ContentPart, FaultKind},
};

use super::{after, revealed_with};
use surety_pallet_integration_tests::*;

/// After the reveal of these results the client has money.
fn demanding(results: &[u8], test: impl FnOnce()) {
    after(results, || {
        endow_demanders();
        test();
    });
}

#[test]
fn a_client_pays_for_what_it_has_shown() {
    demanding(&[9, 9], || {
        events();
        assert_ok!(demand(CLIENT, 2, of_output([0])));
        let until = System::block_number() + SUPPLY_WINDOW;
        assert_eq!(MockClock::last_wake(TASK), Some(until));
        assert_eq!(money(CLIENT), MONEY + 1 - PART_PRICE);
        let before = money(2);
        assert_ok!(show_output(2, 9));
        assert_eq!(money(2), before + price(&output(9)));
        assert_eq!(money(CLIENT), MONEY + 1 - price(&output(9)));
        let (task, provider, content) = (TASK, 2, Content::Output);
        let told = [
            ResultsEvent::DataDemanded {
                task,
                provider,
                by: CLIENT,
                parts: of_output([0]),
                until,
            },
            ResultsEvent::DataSupplied {
                task,
                provider,
                part: ContentPart { content, part: 0 },
                shown: claim(9).output,
                bytes: OUTPUT_BYTES,
            },
        ];
        assert_eq!(events(), told.map(RuntimeEvent::Results));
        assert_eq!(Results::shown(TASK, claim(9).output), Some(output(9)));
        pass(CHALLENGE_WINDOW + 1);
        assert_eq!(decision(), Some(agreed(9, &[1, 2], &[], &[])));
    });
}

#[test]
fn the_last_part_answers_for_parts_that_there_are_not() {
    demanding(&[9], || {
        assert_ok!(demand(CLIENT, 1, of_output([3, 7, 5])));
        assert_eq!(money(CLIENT), MONEY + 1 - PART_PRICE);
        assert_ok!(show_output(1, 9));
    });
}

#[test]
fn nothing_but_the_part_itself_will_do() {
    demanding(&[9], || {
        assert_noop!(show_output(1, 9), ResultsError::NotDemanded);
        assert_ok!(demand(CLIENT, 1, of_output([0])));
        assert_noop!(show_output(1, 8), ResultsError::WrongSegment);
        let shown = |content, bytes: &[u8]| show(1, content, bytes, 0);
        assert_noop!(shown(Content::Input, &output(9)), ResultsError::WrongSegment);
        // The claim says how long the output is.
        assert_noop!(
            shown(Content::Output, &output(9)[..2_000]),
            ResultsError::WrongSegment
        );
        assert_noop!(show_output(2, 9), ResultsError::NotMember);
        assert_noop!(show_output(FIRST_VERIFIER, 9), ResultsError::NotProviderAgent);
        assert_ok!(show_output(1, 9));
    });
}

#[test]
fn who_withholds_its_output_loses_its_lock_and_the_price_comes_back() {
    demanding(&[9, 9, 9], || {
        assert_ok!(demand(CLIENT, 2, of_output([0])));
        pass_unattended(SUPPLY_WINDOW + 1);
        assert_noop!(show_output(2, 9), ResultsError::WrongPhase);
        pass(1);
        assert_eq!(faults(), [(2, FaultKind::WithheldData)]);
        assert_eq!(slashes()[0].finder, Some(CLIENT));
        assert_eq!((slashes()[0].lock, money(CLIENT)), (LOCK, MONEY + 1));
        pass(CHALLENGE_WINDOW + 1);
        assert_eq!(decision(), Some(agreed(9, &[1, 3], &[2], &[])));
    });
}

#[test]
fn a_round_waits_for_what_was_demanded_and_no_longer() {
    demanding(&[9], || {
        pass(CHALLENGE_WINDOW);
        assert_ok!(demand(CLIENT, 1, of_output([0])));
        pass(SUPPLY_WINDOW);
        assert!(round().is_some());
        assert_ok!(show_output(1, 9));
        // Not when the time for it would have been over.
        assert_eq!(MockClock::last_wake(TASK), Some(System::block_number()));
        pass(1);
        assert_eq!(phase(), None);
    });
}

#[test]
fn a_demand_on_somebody_who_was_convicted_is_dropped() {
    demanding(&[8, 9], || {
        assert_ok!(demand(CLIENT, 1, of_output([0])));
        play_out(&[(1, 8), (2, 9)]);
        pass(2);
        assert_eq!(Demands::<Test>::iter().count(), 0);
        assert_eq!(money(CLIENT), MONEY + 1);
        assert_eq!(faults(), [(1, FaultKind::WrongResult)]);
    });
}

#[test]
fn demands_are_made_in_time_one_at_a_time_and_by_those_whom_it_concerns() {
    TestExt::new().round_of(1).execute_with(|| {
        endow_demanders();
        let auditor = FIRST_VERIFIER;
        assert_noop!(demand(CLIENT, 1, of_output([0])), ResultsError::WrongPhase);
        revealed_with(&[(auditor, 1, 9)], &[9]);
        let one = || of_output([0]);
        assert_noop!(demand(CLIENT, 2, one()), ResultsError::NotMember);
        assert_noop!(demand(FIRST_STRANGER, 1, one()), ResultsError::MayNotDemand);
        let other = agent_of(FIRST_VERIFIER + 1);
        assert_noop!(demand(other, 1, one()), ResultsError::MayNotDemand);
        assert_ok!(demand(CLIENT, 1, one()));
        assert_noop!(demand(CLIENT, 1, one()), ResultsError::AlreadyDemanded);
        // An auditor's demand is beside the client's, and one showing serves both.
        assert_ok!(demand(agent_of(auditor), 1, one()));
        assert_ok!(show_output(1, 9));
        assert_eq!(money(CLIENT), MONEY + 1 - price(&output(9)));
        assert_eq!(money(agent_of(auditor)), MONEY);
        // What is there costs nothing.
        assert_ok!(demand(CLIENT, 1, one()));
        assert_eq!(round().unwrap().demands, 0);
        assert_eq!(money(CLIENT), MONEY + 1 - price(&output(9)));
    });
    TestExt::new().execute_with(|| {
        assert_noop!(demand(CLIENT, 1, of_output([0])), ResultsError::UnknownRound);
    });
}

#[test]
fn who_cannot_pay_demands_nothing() {
    after(&[9], || {
        let refused = demand(CLIENT, 1, of_output([0]));
        assert!(refused.is_err());
        assert_eq!(Demands::<Test>::iter().count(), 0);
    });
}

#[test]
fn input_can_be_demanded_of_any_size_and_part() {
    demanding(&[9], || {
        let input: Vec<u8> = (0..100_000u32).map(|at| (at / 5) as u8).collect();
        MockOutcome::set_input(TASK, (content_hash(&input), 100_000));
        assert_noop!(demand(CLIENT, 1, of_input([13])), ResultsError::NoSuchSegment);
        assert_ok!(demand(CLIENT, 1, of_input([12, 3, 3])));
        assert_eq!(money(CLIENT), MONEY + 1 - 2 * PART_PRICE);
        let part = |part| show(1, Content::Input, &input, part);
        assert_noop!(part(4), ResultsError::WrongSegment);
        assert_ok!(part(3));
        assert_noop!(part(3), ResultsError::WrongSegment);
        assert_eq!(round().unwrap().demands, 1);
        assert_ok!(part(12));
        let prices = price(&input[3 * 8_192..4 * 8_192]) + price(&input[12 * 8_192..]);
        assert_eq!(money(CLIENT), MONEY + 1 - prices);
        assert_eq!(money(1), 1 + prices);
    });
}

#[test]
fn what_is_shown_in_part_is_withheld_and_only_that_part_is_paid_for() {
    demanding(&[9, 9, 9], || {
        let input: Vec<u8> = (0..20_000u32).map(|at| (at / 5) as u8).collect();
        MockOutcome::set_input(TASK, (content_hash(&input), 20_000));
        assert_ok!(demand(CLIENT, 1, of_input(0..3)));
        assert_ok!(show(1, Content::Input, &input, 1));
        pass(SUPPLY_WINDOW + 2);
        assert_eq!(faults(), [(1, FaultKind::WithheldData)]);
        assert_eq!(money(CLIENT), MONEY + 1 - PART_PRICE);
    });
}

#[test]
fn however_much_was_shown_is_forgotten_a_bounded_part_at_a_time() {
    const PARTS: u32 = 72;
    let mut ext = TestExt::new().round_of(1).build();
    ext.execute_with(|| {
        revealed_with(&[], &[9]);
        endow_demanders();
        let input: Vec<u8> = (0..600_000u32).map(|at| (at / 5) as u8).collect();
        MockOutcome::set_input(TASK, (content_hash(&input), 600_000));
        for first in (0..PARTS).step_by(4) {
            assert_ok!(demand(CLIENT, 1, of_input(first..first + 4)));
            for part in first..first + 4 {
                assert_ok!(show(1, Content::Input, &input, part));
            }
        }
        pass(CHALLENGE_WINDOW);
    });
    let shown = || Shown::<Test>::iter().count() as u32;
    for left in [PARTS - SHOWN_MAX, 0] {
        // What one block writes counts for the next.
        ext.commit_all().unwrap();
        ext.execute_with(|| {
            pass(1);
            assert_eq!((shown(), round().is_some()), (left, left > 0));
            check();
        });
    }
    ext.execute_with(|| assert_eq!(decision(), Some(agreed(9, &[1], &[], &[]))));
}

#[test]
fn of_who_did_not_reveal_nothing_can_be_demanded() {
    TestExt::new().round_of(3).execute_with(|| {
        endow_demanders();
        all_commit(&[(1, 9), (2, 9), (3, 9)]);
        pass(AUDIT_WINDOW + 1);
        all_reveal(&[(1, 9), (2, 9)]);
        pass(REVEAL_WINDOW + 1);
        assert_noop!(demand(CLIENT, 3, of_output([0])), ResultsError::NotRevealed);
    });
}

#[test]
fn a_lone_provider_that_withholds_fails_the_task_and_the_client_is_insured() {
    demanding(&[9], || {
        assert_ok!(demand(CLIENT, 1, of_output([0])));
        pass(SUPPLY_WINDOW + CHALLENGE_WINDOW + 3);
        assert!(matches!(decision(), Some(Verdict::Failed(_))));
        // The verdict that was announced did not hold.
        assert_eq!(money(CLIENT), MONEY + 1 + PRICE);
        assert_eq!(money(POOL), POOL_MONEY - PRICE);
        assert_eq!(MockStake::bonded(CLIENT), 0);
    });
}

#[test]
fn the_first_part_says_how_long_an_output_is_of_which_its_claim_does_not() {
    demanding(&[9, 9, 9], || {
        // No referee knows what the task makes. Five parts, of which four hang on the left of the root.
        DisputeContexts::<Test>::remove(TASK);
        let output: Vec<u8> = (0..4 * PART_BYTES + 100).map(|at| (at / 9) as u8).collect();
        Rounds::<Test>::mutate(TASK, |round| {
            let member = &mut round.as_mut().unwrap().members[0];
            let MemberProgress::Revealed(claim) = &mut member.progress else {
                panic!("{member:?}");
            };
            claim.output = content_hash(&output);
        });
        assert_ok!(demand(CLIENT, 1, of_output([0, 1, 2])));
        let left = content_hash(&output[..4 * PART_BYTES as usize]);
        let as_second_of_two = PartOpening {
            siblings: vec![left].try_into().unwrap(),
            part: 1,
            ..PartOpening::new(&output, 4).unwrap()
        };
        let bytes = PART_BYTES + 100;
        let call = ResultsCall::supply {
            task: TASK,
            content: Content::Output,
            bytes,
            opening: as_second_of_two,
        };
        assert_ok!(send(1, call));
        // It has no first part of that length, and none of another is taken.
        assert_noop!(show(1, Content::Output, &output, 0), ResultsError::WrongSegment);
        pass(SUPPLY_WINDOW + 2);
        assert_eq!(faults(), [(1, FaultKind::WithheldData)]);
    });
}
