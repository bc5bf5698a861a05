//! A drawn auditor that is served nothing demands it before the reveal, openly.

use frame_support::{assert_noop, assert_ok, traits::fungible::Mutate};
use frame_system::RawOrigin;
use proptest::prelude::*;
use sp_runtime::TokenError;
use surety_pallet_test_kit::{MockOutcome, MockStake};
use surety_proofs::content_hash;
use surety_types::{
    limits::{INPUT_BYTES_MAX, PART_BYTES},
    trust::{AuditState, Content, FaultKind},
};

use surety_pallet_integration_tests::*;

const AUDITOR: AccountId = FIRST_VERIFIER;
const OTHER: AccountId = FIRST_VERIFIER + 1;

/// Providers have committed to these results of a generation, and auditors may draw themselves.
fn committed(results: &[u8], test: impl FnOnce()) {
    let results: Vec<_> = (1..).zip(results.iter().copied()).collect();
    TestExt::new().round_of(results.len() as u32).execute_with(|| {
        endow_demanders();
        post_input();
        generates();
        all_commit(&results);
        test();
    });
}

/// What an auditor of a generation needs: a short prompt, and an answer of at most three parts.
fn everything() -> surety_types::trust::DemandedParts {
    let parts = of_input([0]).into_iter().chain(of_output(0..3));
    surety_types::trust::DemandedParts::truncate_from(parts.collect())
}

fn auditor_money(verifier: AccountId) -> Balance {
    money(agent_of(verifier))
}

#[test]
fn the_longest_input_of_embeddings_is_shown_whole_to_an_auditor_that_nobody_serves() {
    let long: Vec<u8> = (0..INPUT_BYTES_MAX).map(|at| (at / 7) as u8).collect();
    let all = INPUT_BYTES_MAX / PART_BYTES;
    let of_long = |test: &dyn Fn()| {
        TestExt::new().round_of(1).execute_with(|| {
            endow_demanders();
            MockOutcome::set_input(TASK, (content_hash(&long), INPUT_BYTES_MAX));
            all_commit(&[(1, 9)]);
            assert_ok!(demand_unserved(AUDITOR, 1, of_input(0..all)));
            assert_eq!(auditor_money(AUDITOR), MONEY - Balance::from(all) * PART_PRICE);
            test();
        });
    };
    of_long(&|| {
        for part in 0..all {
            assert_eq!(Results::shown(TASK, content_hash(&long)), None);
            assert_ok!(show(1, Content::Input, &long, part));
        }
        assert_eq!(Results::shown(TASK, content_hash(&long)).as_ref(), Some(&long));
        assert_eq!(auditor_money(AUDITOR), MONEY - half_price(&long));
        assert_eq!(money(1), 1 + half_price(&long));
        pass(AUDIT_WINDOW);
        assert_ok!(announce(AUDITOR, 1, 9));
    });
    of_long(&|| {
        for part in (0..all).filter(|part| *part != 77) {
            assert_ok!(show(1, Content::Input, &long, part));
        }
        pass(SUPPLY_WINDOW + 1);
        assert_eq!(faults(), [(1, FaultKind::WithheldData)]);
        assert_eq!(slashes()[0].finder, Some(AUDITOR));
    });
}

#[test]
fn a_provider_that_serves_no_auditor_and_shows_nothing_is_convicted() {
    committed(&[8], || {
        assert_ok!(demand_unserved(AUDITOR, 1, everything()));
        assert_eq!(auditor_money(AUDITOR), MONEY - 4 * PART_PRICE);
        // It cannot open its commitment meanwhile, as if nobody had asked.
        pass(AUDIT_WINDOW + 1);
        assert!(reveal(1, 8).is_err());
        assert_eq!(phase().map(|(name, _)| name), Some(PhaseName::Auditing));
        pass(SUPPLY_WINDOW);
        assert_eq!(faults(), [(1, FaultKind::WithheldData)]);
        assert_eq!((slashes()[0].finder, slashes()[0].lock), (Some(AUDITOR), LOCK));
        assert_eq!(auditor_money(AUDITOR), MONEY);
        // Nobody waits for it any more.
        pass(1);
        assert_noop!(reveal(1, 8), ResultsError::WrongPhase);
        pass(200);
        assert_eq!(
            decision(),
            Some(surety_types::task::Verdict::Failed(
                surety_types::task::FailureReason::NoAgreement
            ))
        );
        assert!(MockStake::slashed(1) > 0);
    });
}

#[test]
fn who_is_shown_what_it_demanded_bears_half_and_is_paid_for_its_audit() {
    committed(&[9], || {
        assert_ok!(demand_unserved(AUDITOR, 1, everything()));
        pass(SUPPLY_WINDOW);
        assert_ok!(show(1, Content::Input, &input(), 0));
        assert_ok!(show_output(1, 9));
        let cost = half_price(&input()) + half_price(&output(9));
        assert_eq!(auditor_money(AUDITOR), MONEY - cost);
        assert_eq!(money(1), 1 + cost);
        assert_eq!(Results::shown(TASK, claim(9).output), Some(output(9)));
        // The window begins again, so that there is time to compute.
        let until = System::block_number() + AUDIT_WINDOW;
        assert_eq!(phase(), Some((PhaseName::Auditing, until)));
        pass(AUDIT_WINDOW);
        assert_ok!(announce(AUDITOR, 1, 9));
        pass(1);
        assert_ok!(reveal(1, 9));
        assert_ok!(reveal_audit(AUDITOR, 1, 9));
        pass(CHALLENGE_WINDOW + 1);
        assert_eq!(decision(), Some(agreed(9, &[1], &[], &[])));
        assert_eq!(MockOutcome::audits_to_pay(TASK), [(1, AUDITOR)]);
        assert_eq!(MockStake::slashed(1), 0);
    });
}

#[test]
fn an_auditor_whose_agent_has_no_money_demands_with_its_stashs() {
    committed(&[9], || {
        let agent = agent_of(AUDITOR);
        assert_ok!(Balances::transfer_all(
            RawOrigin::Signed(agent).into(),
            CLIENT,
            false
        ));
        let demand = || demand_unserved(AUDITOR, 1, everything());
        assert_noop!(demand(), TokenError::FundsUnavailable);
        assert_ok!(Balances::mint_into(&AUDITOR, MONEY));
        assert_ok!(demand());
        assert_eq!(money(AUDITOR), MONEY - 4 * PART_PRICE);
        assert_ok!(show(1, Content::Input, &input(), 0));
        assert_ok!(show_output(1, 9));
        assert_eq!(
            (money(AUDITOR), money(agent)),
            (MONEY - half_price(&input()) - half_price(&output(9)), 0)
        );
    });
}

#[test]
fn another_output_than_was_shown_is_two_things_said_and_its_auditor_goes_free() {
    committed(&[9, 9], || {
        assert_ok!(demand_unserved(AUDITOR, 1, of_output([0])));
        assert_ok!(show_output(1, 7));
        // One that saw only what others were served stands by that.
        assert_ok!(announce(OTHER, 1, 9));
        assert_ok!(announce(AUDITOR, 1, 7));
        pass(AUDIT_WINDOW + 1);
        all_reveal(&[(1, 9), (2, 9)]);
        assert_eq!(faults(), [(1, FaultKind::Equivocation)]);
        assert_eq!((slashes()[0].finder, slashes()[0].lock), (Some(AUDITOR), LOCK));
        assert_ok!(reveal_audit(AUDITOR, 1, 7));
        assert_eq!(audit_state(AUDITOR, 1), Some(AuditState::Over));
        assert_eq!(MockStake::locked(AUDITOR), 0);
        assert_ok!(reveal_audit(OTHER, 1, 9));
        assert_eq!(audit_state(OTHER, 1), Some(AuditState::Confirmed));
        assert_eq!(pairs(), []);
        pass(200);
        assert_eq!(decision(), Some(agreed(9, &[2], &[1], &[])));
        assert_eq!(MockStake::slashed(AUDITOR), 0);
    });
}

#[test]
fn the_first_part_names_the_output_and_its_length() {
    committed(&[9], || {
        assert_ok!(demand_unserved(AUDITOR, 1, of_output(0..3)));
        let long = [9; 20_000];
        assert_ok!(show(1, Content::Output, &long, 1));
        for other in [&[8; 20_000], &[9; 20_001][..20_000], &[9; 20_001][..]] {
            let is_it = other == long;
            let shown = show(1, Content::Output, other, 0);
            assert_eq!(shown.is_ok(), is_it, "{:?}", shown);
        }
        assert_ok!(show(1, Content::Output, &long, 2));
        assert_eq!(round().unwrap().demands, 0);
        // It claims one that is shorter.
        pass(AUDIT_WINDOW + 1);
        assert_ok!(reveal(1, 9));
        assert_eq!(faults(), [(1, FaultKind::Equivocation)]);
    });
}

#[test]
fn a_statement_about_another_output_than_was_shown_is_two_things_said() {
    committed(&[9], || {
        assert_noop!(report(promised(1, 9), None), ResultsError::NoEquivocation);
        assert_ok!(demand_unserved(AUDITOR, 1, of_output([0])));
        assert_ok!(show_output(1, 7));
        assert_ok!(report(promised(1, 9), None));
        assert_eq!(faults(), [(1, FaultKind::Equivocation)]);
    });
}

#[test]
fn one_showing_serves_everybody_and_only_the_first_pays() {
    committed(&[9], || {
        let auditors = FIRST_VERIFIER..FIRST_VERIFIER + 4;
        for auditor in auditors.clone() {
            assert_ok!(demand_unserved(auditor, 1, of_output([0])));
        }
        assert_eq!(round().unwrap().demands, 4);
        assert_ok!(show_output(1, 9));
        assert_eq!(round().unwrap().demands, 0);
        let paid: Vec<_> = auditors
            .clone()
            .map(|auditor| MONEY - auditor_money(auditor))
            .collect();
        assert_eq!(paid, [half_price(&output(9)), 0, 0, 0]);
        // Who comes later reads it for nothing.
        assert_ok!(demand_unserved(auditors.end, 1, of_output([0])));
        assert_eq!(
            (round().unwrap().demands, auditor_money(auditors.end)),
            (0, MONEY)
        );
        assert_eq!(money(1), 1 + half_price(&output(9)));
    });
}

#[test]
fn a_showing_by_another_provider_meets_a_demand_of_the_input() {
    committed(&[9, 9], || {
        assert_ok!(demand_unserved(AUDITOR, 1, of_input([0])));
        assert_ok!(demand_unserved(AUDITOR, 2, of_input([0])));
        assert_ok!(show(2, Content::Input, &input(), 0));
        pass(SUPPLY_WINDOW + 1);
        assert_eq!((faults(), round().unwrap().demands), (vec![], 0));
        assert_eq!(auditor_money(AUDITOR), MONEY - half_price(&input()));
        // Who has waited for it has a whole window all the same.
        let until = System::block_number() + AUDIT_WINDOW;
        assert_eq!(phase(), Some((PhaseName::Auditing, until)));
        pass(AUDIT_WINDOW);
        assert_ok!(announce(AUDITOR, 1, 9));
    });
}

#[test]
fn who_shows_what_others_have_shown_is_not_paid_for_it() {
    committed(&[9, 9], || {
        for provider in [1, 2] {
            assert_ok!(demand_unserved(AUDITOR, provider, of_input([0])));
        }
        for provider in [1, 2] {
            assert_ok!(show(provider, Content::Input, &input(), 0));
        }
        assert_eq!((money(1), money(2)), (1 + half_price(&input()), 1));
        assert_eq!(auditor_money(AUDITOR), MONEY - half_price(&input()));
    });
}

#[test]
fn what_is_demanded_can_be_shown_at_no_price_too() {
    committed(&[9], || {
        PricePerKib::set(0);
        assert_ok!(demand_unserved(AUDITOR, 1, of_input([0])));
        assert_ok!(show(1, Content::Input, &input(), 0));
        assert_eq!(round().unwrap().demands, 0);
        PricePerKib::set(SUPPLY_PRICE);
    });
}

#[test]
fn nobody_demands_before_the_reveal_but_drawn_auditors_that_have_sealed_nothing() {
    committed(&[9], || {
        let wanted = || of_output([0]);
        for by in [CLIENT, FIRST_STRANGER, agent_of(AUDITOR)] {
            assert_noop!(demand(by, 1, wanted()), ResultsError::WrongPhase);
        }
        let with = |signer, proof| {
            let call = ResultsCall::demand {
                task: TASK,
                provider: 1,
                parts: wanted(),
                proof: Some(proof),
            };
            send_as(signer, call)
        };
        let (agent, input) = (agent_of(AUDITOR), input_of(1));
        assert_noop!(with(agent, proof_of(agent, &input, 255)), ResultsError::NotDrawn);
        let others = proof_of(agent, &input, 0);
        assert_noop!(with(agent_of(OTHER), others), ResultsError::NotDrawn);
        assert_noop!(with(FIRST_STRANGER, others), ResultsError::NotVerifierAgent);
        assert_noop!(demand_unserved(AUDITOR, 2, wanted()), ResultsError::NotMember);
        assert_ok!(demand_unserved(AUDITOR, 1, wanted()));
        assert_noop!(
            demand_unserved(AUDITOR, 1, of_input([0])),
            ResultsError::AlreadyDemanded
        );
        assert_ok!(announce(OTHER, 1, 9));
        assert_noop!(demand_unserved(OTHER, 1, wanted()), ResultsError::AlreadyAuditing);
        pass(1);
        assert_ok!(show_output(1, 9));
        pass(AUDIT_WINDOW);
        // The second window is for computing.
        assert_eq!(phase().map(|(name, _)| name), Some(PhaseName::Auditing));
        assert_noop!(
            demand_unserved(AUDITOR + 2, 1, of_input([0])),
            ResultsError::WrongPhase
        );
    });
}

#[test]
fn of_embeddings_auditors_need_no_output_and_the_posted_input() {
    TestExt::new().round_of(1).execute_with(|| {
        endow_demanders();
        post_input();
        all_commit(&[(1, 9)]);
        assert_noop!(
            demand_unserved(AUDITOR, 1, of_output([0])),
            ResultsError::NotRevealed
        );
        assert_ok!(demand_unserved(AUDITOR, 1, of_input([0])));
        assert_noop!(show(1, Content::Input, &output(9), 0), ResultsError::WrongSegment);
        assert_ok!(show(1, Content::Input, &input(), 0));
    });
}

#[test]
fn a_stall_of_finality_costs_a_provider_nothing() {
    committed(&[9], || {
        assert_ok!(demand_unserved(AUDITOR, 1, of_output([0])));
        FinalityStoppedAt::set(Some(System::block_number()));
        pass(100);
        assert_eq!(faults(), []);
        assert_ok!(show_output(1, 9));
        FinalityStoppedAt::set(None);
    });
}

#[test]
fn a_demand_on_who_is_convicted_meanwhile_keeps_nobody_waiting() {
    committed(&[9, 9], || {
        assert_ok!(demand_unserved(AUDITOR, 1, of_output([0])));
        let mut lie = promise(1, TASK, 9);
        lie.commitment = Default::default();
        assert_ok!(report(signed_by(agent_of(1), lie, &genesis()), None));
        pass(AUDIT_WINDOW + 1);
        assert_eq!(auditor_money(AUDITOR), MONEY);
        assert_eq!(phase().map(|(name, _)| name), Some(PhaseName::Revealing));
    });
}

/// What verifiers and providers may do in an audit window.
#[derive(Clone, Debug)]
enum Step {
    Demand(AccountId, AccountId, bool),
    Show(AccountId, bool),
    Pass(BlockNumber),
}

fn any_step() -> impl Strategy<Value = Step> {
    let (verifier, provider) = (FIRST_VERIFIER..FIRST_VERIFIER + 6, 1..=2u64);
    prop_oneof![
        (verifier, provider.clone(), any::<bool>()).prop_map(|(who, of, input)| Step::Demand(who, of, input)),
        (provider, any::<bool>()).prop_map(|(who, input)| Step::Show(who, input)),
        (1u64..4).prop_map(Step::Pass),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_audit_window_ends_by_time_whatever_is_demanded(
        steps in proptest::collection::vec(any_step(), 0..60),
    ) {
        committed(&[9, 9], || {
            let begun = System::block_number();
            // The first window, the longest demand in it, and as long again for what is shown last.
            let longest = begun + AUDIT_WINDOW + SUPPLY_WINDOW + AUDIT_WINDOW;
            let before = Balances::total_issuance();
            let is_auditing = || phase().is_some_and(|(name, _)| name == PhaseName::Auditing);
            for step in steps.into_iter().chain([Step::Pass(100)]) {
                match step {
                    Step::Demand(who, of, input) if is_auditing() => {
                        let parts = if input { of_input([0]) } else { of_output([0]) };
                        let _ = demand_unserved(who, of, parts);
                    }
                    Step::Show(who, true) => {
                        let _ = show(who, Content::Input, &input(), 0);
                    }
                    Step::Show(who, false) => {
                        let _ = show_output(who, 9);
                    }
                    Step::Demand(..) => {}
                    Step::Pass(blocks) => {
                        for _ in 0..blocks {
                            pass(1);
                            check();
                            // Each demand that is overdue takes a step of its own.
                            let late = System::block_number() > longest + 12;
                            assert!(!(late && is_auditing()), "a window that does not end");
                        }
                    }
                }
            }
            assert_eq!(Demands::<Test>::iter().count(), 0);
            // What is slashed is stake.
            assert_eq!(Balances::total_issuance(), before);
        });
    }
}
