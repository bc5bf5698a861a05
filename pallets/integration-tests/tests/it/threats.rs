//! Each threat that the protocol names, and its answer here. Some are answered elsewhere: see the README's
//! list.

use frame_support::{assert_noop, assert_ok};
use sp_core::H256;
use surety_dispute_game::bisection::Move;
use surety_pallet_test_kit::{MockOutcome, MockStake};
use surety_types::{
    limits::AUDITS_MAX,
    stake::Role,
    task::{FailureReason, Verdict},
    traits::{Jail, StakeLedger},
    trust::FaultKind,
};

use super::{after, copied_opening, revealed_with};
use surety_pallet_integration_tests::*;

const VERIFIER: AccountId = FIRST_VERIFIER;
const STRANGER: AccountId = FIRST_STRANGER;

#[test]
fn copying_a_commitment_opens_for_nobody_else() {
    TestExt::new().round_of(2).execute_with(|| {
        assert_ok!(commit(1, 9));
        let copied = seal(1, &claim(9));
        let agent = RuntimeOrigin::signed(agent_of(2));
        assert_ok!(Results::commit(agent, TASK, copied));
        pass(AUDITING + 1);
        assert_ok!(reveal(1, 9));
        assert_noop!(send_opening(copied_opening()), ResultsError::CommitmentMismatch);
    });
}

#[test]
fn copying_an_auditors_seal_opens_for_nobody_else() {
    TestExt::new().round_of(1).execute_with(|| {
        all_commit(&[(1, 9)]);
        assert_ok!(announce(VERIFIER, 1, 9));
        let copied = ResultsCall::announce_audit {
            task: TASK,
            provider: 1,
            proof: proof_of(agent_of(VERIFIER + 1), &input_of(1), 0),
            seal: seal_of(VERIFIER, 1, 9),
        };
        assert_ok!(send(VERIFIER + 1, copied));
        pass(AUDIT_WINDOW + 1);
        assert_ok!(reveal(1, 9));
        assert_ok!(reveal_audit(VERIFIER, 1, 9));
        assert_noop!(reveal_audit(VERIFIER + 1, 1, 9), ResultsError::SealMismatch);
    });
}

#[test]
fn a_lazy_auditor_cannot_know_what_to_confirm_and_pays_for_guessing() {
    TestExt::new().round_of(1).execute_with(|| {
        // It guesses that the provider is honest, which it is not; somebody else finds out.
        revealed_with(&[(VERIFIER, 1, 8), (VERIFIER + 1, 1, 9)], &[8]);
        assert_ok!(reveal_audit(VERIFIER, 1, 8));
        assert_ok!(reveal_audit(VERIFIER + 1, 1, 9));
        play_out(&[(1, 8), (VERIFIER + 1, 9)]);
        assert_eq!(pairs(), [(VERIFIER, VERIFIER + 1)]);
        play_out(&[(VERIFIER, 8), (VERIFIER + 1, 9)]);
        assert_eq!(
            faults(),
            [(1, FaultKind::WrongResult), (VERIFIER, FaultKind::ConfirmedWrong)]
        );
        assert_eq!(MockStake::locked(VERIFIER + 1), 0);
    });
}

#[test]
fn a_majority_of_colluding_providers_loses_to_one_that_is_honest() {
    after(&[8, 8, 8, 8, 9], || {
        play_out(&[(1, 8), (2, 8), (3, 8), (4, 8), (5, 9)]);
        pass(CHALLENGE_WINDOW + 1);
        assert_eq!(decision(), Some(agreed(9, &[5], &[1, 2, 3, 4], &[])));
    });
}

#[test]
fn colluding_providers_who_are_alone_lose_to_an_auditor() {
    TestExt::new().round_of(3).execute_with(|| {
        revealed_with(&[(VERIFIER, 2, 9)], &[8, 8, 8]);
        assert_ok!(reveal_audit(VERIFIER, 2, 9));
        play_out(&[(1, 8), (2, 8), (3, 8), (VERIFIER, 9)]);
        assert_eq!(faults().len(), 3);
        pass(CHALLENGE_WINDOW + 1);
        assert_eq!(decision(), Some(Verdict::Failed(FailureReason::NoAgreement)));
        assert_eq!(money(900), 1 + PRICE);
    });
}

#[test]
fn many_names_draw_no_more_audits_than_one_with_their_stake() {
    TestExt::new().execute_with(|| {
        let small = 20_000;
        MockStake::bond(small, agent_of(small), Role::Verifier, AUDIT_BOND);
        AuditorsExpected::set(1.into());
        AuditorsNewcomer::set(1.into());
        assert_ok!(open(TASK, [1]));
        all_commit(&[(1, 9)]);
        let announced = |verifier: AccountId, draw: u8| {
            let proof = proof_of(agent_of(verifier), &input_of(1), draw);
            let call = ResultsCall::announce_audit {
                task: TASK,
                provider: 1,
                proof,
                seal: seal_of(verifier, 1, 9),
            };
            send(verifier, call)
        };
        // 300 of 10,300, and 1,000 of 10,300: 7 and 24 of 256.
        assert_noop!(announced(small, 10), ResultsError::NotDrawn);
        assert_ok!(announced(VERIFIER, 10));
        assert_ok!(announced(small, 5));
    });
}

#[test]
fn challenging_oneself_for_a_refund_costs_what_is_burned() {
    after(&[8], || {
        assert_ok!(challenge(STRANGER, 1));
        play_out(&[(1, 8), (STRANGER, 9)]);
        pass(CHALLENGE_WINDOW + DEFERRAL + 2);
        let lost = MockStake::slashed(1);
        let back = MockStake::awarded(STRANGER) + MockStake::awarded(900) + (money(900) - 1);
        // Provider, challenger and client may be one: they are poorer by more than the work is worth.
        assert!(lost > back, "lost {lost}, got {back}");
        assert!(lost / 2 >= PRICE);
    });
}

#[test]
fn false_disputes_and_delay_are_paid_by_who_makes_them() {
    after(&[9], || {
        for number in 0..3 {
            assert_ok!(challenge(STRANGER + number, 1));
        }
        // They never move again; the honest side answers what is its own to answer.
        for _ in 0..3 * CLOCK {
            play_out(&[(1, 9)]);
            pass(1);
        }
        assert_eq!(phase(), None);
        assert_eq!(decision(), Some(agreed(9, &[1], &[], &[])));
        let bonds = 3 * CHALLENGE_BOND;
        let left: Balance = (0..3).map(|number| money(STRANGER + number)).sum();
        assert_eq!(left, 3 * MONEY - bonds);
        assert_eq!(money(1), 1 + bonds / 2);
    });
}

#[test]
fn a_provider_that_withholds_its_trace_runs_out_of_time() {
    after(&[8], || {
        assert_ok!(challenge(STRANGER, 1));
        pass(u64::from(CLOCK) + 1);
        assert_eq!(faults(), [(1, FaultKind::LostDispute)]);
        assert_eq!(slashes()[0].lock, LOCK);
    });
}

#[test]
fn a_client_that_denies_delivery_can_be_answered_on_chain() {
    after(&[9], || {
        endow_demanders();
        assert_ok!(demand(CLIENT, 1, of_output([0])));
        assert_ok!(show_output(1, 9));
        assert_eq!(money(1), 1 + price(&output(9)));
    });
}

#[test]
fn a_challenge_that_is_run_in_front_of_takes_nothing_from_the_one_behind() {
    after(&[8], || {
        let (accomplice, honest) = (STRANGER, STRANGER + 1);
        assert_ok!(challenge(accomplice, 1));
        assert_ok!(challenge(honest, 1));
        // The accomplice gives up so that the challenge is spent.
        assert_ok!(play(agent_of(1), 0, next_move(0, 8)));
        assert_ok!(play(accomplice, 0, Move::Concede));
        play_out(&[(1, 8), (honest, 9)]);
        assert_eq!(faults(), [(1, FaultKind::WrongResult)]);
        assert_eq!(slashes()[0].finder, Some(honest));
        assert_eq!(money(honest), MONEY);
    });
}

#[test]
fn grinding_commitments_changes_nothing_of_what_anybody_draws_with() {
    let drawn_with = |commitment| {
        let mut input = None;
        TestExt::new().round_of(1).execute_with(|| {
            let agent = RuntimeOrigin::signed(agent_of(1));
            assert_ok!(Results::commit(agent, TASK, commitment));
            pass(SEED_BLOCKS);
            input = Some(input_of(1));
        });
        input.unwrap()
    };
    let first = drawn_with(H256::zero());
    assert!((1..200).all(|salt| drawn_with(H256::repeat_byte(salt)) == first));
}

#[test]
fn the_seed_is_the_doing_of_a_block_after_the_last_commitment() {
    // All that the chain knows while commitments are taken is the same each time.
    let seeded_by = |author_of: BlockNumber| {
        let mut seed = None;
        TestExt::new().round_of(1).execute_with(|| {
            HasEntropy::set(false);
            assert_ok!(commit(1, 9));
            pass(author_of - 1);
            HasEntropy::set(true);
            pass(1);
            seed = round().unwrap().draw.unwrap().seed;
        });
        seed
    };
    let seeds: std::collections::BTreeSet<_> = (2..20).map(seeded_by).collect();
    assert!(!seeds.contains(&None));
    assert_eq!(seeds.len(), 18);
}

#[test]
fn a_key_found_after_the_seed_audits_nothing() {
    TestExt::new().round_of(1).execute_with(|| {
        pass(9);
        all_commit(&[(1, 9)]);
        // Another agent, of which it has seen that it is drawn. It is settled since this block.
        MockStake::settle(VERIFIER, 0);
        assert_noop!(announce(VERIFIER, 1, 9), ResultsError::Unsettled);
        // Nor does it ever become old enough for this round.
        pass(AUDIT_WINDOW);
        MockStake::settle(VERIFIER, AUDIT_WINDOW as u32);
        assert_noop!(announce(VERIFIER, 1, 9), ResultsError::Unsettled);
    });
}

#[test]
fn stake_moved_to_a_name_that_is_drawn_audits_nothing() {
    TestExt::new().round_of(1).execute_with(|| {
        pass(9);
        all_commit(&[(1, 9)]);
        let drawn = 20_000;
        MockStake::bond(drawn, agent_of(drawn), Role::Verifier, 100 * BOND);
        MockStake::settle(drawn, 0);
        assert_noop!(announce(drawn, 1, 9), ResultsError::Unsettled);
    });
}

#[test]
fn many_verifiers_of_one_owner_are_drawn_no_more_than_their_stake_is() {
    TestExt::new().round_of(2).execute_with(|| {
        // As much stake as all others together have, in as many names as a round has places.
        let owners = 20_000..20_000 + AccountId::from(AUDITS_MAX);
        let each = BOND * Balance::from(VERIFIERS as u32) / Balance::from(AUDITS_MAX);
        for name in owners.clone() {
            MockStake::bond(name, agent_of(name), Role::Verifier, each);
        }
        all_commit(&[(1, 8), (2, 9)]);
        // Each of them is drawn with 1 in 256, and an honest one that has a twentieth of all stake with 38.
        for name in owners {
            assert_noop!(announce_with(name, 1, 8, 2), ResultsError::NotDrawn);
        }
        assert_ok!(announce_with(VERIFIER, 1, 9, 37));
    });
}

#[test]
fn an_author_that_withholds_its_block_gets_one_other_draw_and_knows_nobody_elses_part_in_it() {
    let inputs_without = |withheld: BlockNumber| {
        let mut found = None;
        TestExt::new().round_of(1).execute_with(|| {
            HasEntropy::set(false);
            assert_ok!(commit(1, 9));
            pass(1 + withheld);
            HasEntropy::set(true);
            pass(1);
            let input = input_of(1);
            // Whatever the seed is, the proof of somebody else's key is worth nothing.
            let proof = proof_of(agent_of(VERIFIER + 1), &input, 0);
            let seal = seal_of(VERIFIER, 1, 9);
            let call = ResultsCall::announce_audit {
                task: TASK,
                provider: 1,
                proof,
                seal,
            };
            assert_noop!(send(VERIFIER, call), ResultsError::NotDrawn);
            assert_ok!(announce(VERIFIER, 1, 9));
            found = Some(input);
        });
        found.unwrap()
    };
    assert_ne!(inputs_without(0), inputs_without(1));
}

#[test]
fn moves_that_are_censored_while_nothing_becomes_final_cost_no_time() {
    after(&[9, 9, 8], || {
        FinalityStoppedAt::set(Some(System::block_number()));
        pass(1_000);
        assert_eq!(faults(), []);
        play_out(&[(1, 9), (3, 8)]);
        assert_eq!(faults(), [(3, FaultKind::WrongResult)]);
    });
}

#[test]
fn an_auditor_that_is_kept_off_the_network_has_hours_and_anybody_carries_its_opening() {
    TestExt::new().round_of(1).execute_with(|| {
        revealed_with(&[(VERIFIER, 1, 9)], &[8]);
        MockStake::dismiss_agent(VERIFIER);
        pass(OPENING_WINDOW);
        assert_eq!(decision(), None);
        assert_ok!(reveal_audit(VERIFIER, 1, 9));
        assert_eq!(pairs(), [(1, VERIFIER)]);
        // It is back, and plays.
        MockStake::bond(VERIFIER, agent_of(VERIFIER), Role::Verifier, 0);
        play_out(&[(1, 8), (VERIFIER, 9)]);
        assert_eq!(faults(), [(1, FaultKind::WrongResult)]);
    });
}

#[test]
fn where_all_auditors_are_silenced_whoever_differs_challenges() {
    TestExt::new().round_of(1).execute_with(|| {
        audit_items(CLAIMED_UNITS);
        revealed_with(&[(VERIFIER, 1, 9)], &[8]);
        assert_ok!(challenge(STRANGER, 1));
        play_out(&[(1, 8), (STRANGER, 9)]);
        assert_eq!(faults(), [(1, FaultKind::WrongResult)]);
        pass(OPENING_WINDOW + 1);
        assert_eq!(faults(), [(VERIFIER, FaultKind::AuditNoShow)]);
    });
}

#[test]
fn stake_that_a_task_has_locked_cannot_be_unbonded_before_its_dispute_is_over() {
    after(&[9, 9, 8], || {
        assert_eq!(MockStake::unlocked_stake(&3), BOND - LOCK);
        play_out(&[(1, 9), (3, 8)]);
        // Not when it is convicted either: the slash keeps it.
        assert_eq!(MockStake::unlocked_stake(&3), BOND - LOCK);
    });
}

#[test]
fn a_convicted_provider_gets_no_work() {
    after(&[9, 9, 8], || {
        play_out(&[(1, 9), (3, 8)]);
        assert!(TrustLock::is_jailed(&3));
        assert!(!TrustLock::is_jailed(&1));
    });
}

#[test]
fn seals_and_draws_of_one_task_are_worth_nothing_on_another() {
    TestExt::new().round_of(1).execute_with(|| {
        all_commit(&[(1, 9)]);
        let input = surety_audit_economics::AuditInput {
            task: 8,
            ..input_of(1)
        };
        let proof = proof_of(agent_of(VERIFIER), &input, 0);
        let seal = seal_of(VERIFIER, 1, 9);
        let call = ResultsCall::announce_audit {
            task: TASK,
            provider: 1,
            proof,
            seal,
        };
        assert_noop!(send(VERIFIER, call), ResultsError::NotDrawn);
        let elsewhere = surety_proofs::commitment(8, &1, &claim(9), &salt_of(1));
        assert_ne!(elsewhere, surety_pallet_integration_tests::seal(1, &claim(9)));
    });
}

#[test]
fn a_client_that_withholds_its_input_loses_its_lock_and_one_that_does_not_cannot_be_robbed() {
    TestExt::new().round_of(3).execute_with(|| {
        post_input();
        // An honest one shows a single piece each time, and is paid for it.
        assert_ok!(demand_input(1, 0));
        assert_ok!(supply_input(MockOutcome::CLIENT, &input(), 0));
        assert_eq!(MockOutcome::withheld(), []);
        assert_ok!(demand_input(2, 1));
        pass(INPUT_WINDOW + 1);
        assert_eq!(MockOutcome::withheld(), [(TASK, vec![1, 2, 3])]);
        assert_eq!(MockStake::locked_in_all(), 0);
    });
}
