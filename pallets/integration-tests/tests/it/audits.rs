//! Verifiers draw themselves, seal what they found, and open it.

use frame_support::{assert_noop, assert_ok};
use sp_core::H256;
use sp_runtime::FixedU128;
use surety_pallet_test_kit::MockStake;
use surety_types::{
    limits::AUDITS_MAX,
    stake::Role,
    task::SecurityLevel,
    traits::Jail,
    trust::{AuditState, FaultKind},
};

use super::{after, revealed_with};
use surety_pallet_integration_tests::*;

const VERIFIER: AccountId = FIRST_VERIFIER;

/// A round of stash 1 in its audit window.
fn auditing(test: impl FnOnce()) {
    TestExt::new().round_of(1).execute_with(|| {
        all_commit(&[(1, 9)]);
        test();
    });
}

/// A round of stash 1 with an audit of this result, revealed by the provider.
fn audited(result: u8, test: impl FnOnce()) {
    TestExt::new().round_of(1).execute_with(|| {
        revealed_with(&[(VERIFIER, 1, result)], &[9]);
        test();
    });
}

#[test]
fn an_audit_locks_its_bond_and_is_sealed() {
    auditing(|| {
        events();
        assert_ok!(announce(VERIFIER, 1, 9));
        assert_eq!(MockStake::locked(VERIFIER), AUDIT_BOND);
        let seal = seal_of(VERIFIER, 1, 9);
        assert_eq!(audit_state(VERIFIER, 1), Some(AuditState::Sealed(seal)));
        let announced = RuntimeEvent::Results(ResultsEvent::AuditAnnounced {
            task: TASK,
            provider: 1,
            verifier: VERIFIER,
            tranche: 0,
            seal,
        });
        assert_eq!(events(), [announced]);
    });
}

#[test]
fn the_draw_is_fixed_when_the_audit_window_opens() {
    auditing(|| {
        let draw = round().unwrap().draw.unwrap();
        assert_eq!(draw.seed, H256::repeat_byte(0xe9));
        assert_eq!(draw.verifier_stake, BOND * Balance::from(VERIFIERS as u32));
        assert_eq!(draw.tranche, 0);
        MockStake::bond(VERIFIER, agent_of(VERIFIER), Role::Verifier, BOND);
        assert_eq!(round().unwrap().draw.unwrap(), draw);
    });
}

#[test]
fn only_who_drew_itself_audits() {
    auditing(|| {
        AuditorsExpected::set(FixedU128::from_rational(15, 100));
        AuditorsNewcomer::set(FixedU128::from_rational(15, 100));
        let input = input_of(1);
        let announced = |agent: AccountId, proof_agent: AccountId, draw: u8| {
            let proof = proof_of(proof_agent, &input, draw);
            let seal = H256::zero();
            let call = ResultsCall::announce_audit {
                task: TASK,
                provider: 1,
                proof,
                seal,
            };
            send_as(agent, call)
        };
        let agent = agent_of(VERIFIER);
        // Ten alike: 15 in 1,000 is about 3.8 in 256.
        assert_noop!(announced(agent, agent, 5), ResultsError::NotDrawn);
        // The proof of another key, and one of another task.
        assert_noop!(announced(agent, agent + 1, 0), ResultsError::NotDrawn);
        let elsewhere = surety_audit_economics::AuditInput {
            task: TASK + 1,
            ..input.clone()
        };
        let proof = proof_of(agent, &elsewhere, 0);
        let call = ResultsCall::announce_audit {
            task: TASK,
            provider: 1,
            proof,
            seal: H256::zero(),
        };
        assert_noop!(send_as(agent, call), ResultsError::NotDrawn);
        assert_ok!(announced(agent, agent, 3));
    });
}

#[test]
fn new_providers_are_audited_more_than_proven_ones() {
    TestExt::new().execute_with(|| {
        assert_eq!(
            Results::auditors_expected(&1, SecurityLevel::Standard),
            FixedU128::from_u32(3)
        );
        Records::<Test>::mutate(1, |record| record.clean_tasks = 5);
        assert_eq!(
            Results::auditors_expected(&1, SecurityLevel::Standard),
            FixedU128::from_u32(2)
        );
        Records::<Test>::mutate(1, |record| record.clean_tasks = 10);
        assert_eq!(
            Results::auditors_expected(&1, SecurityLevel::Standard),
            FixedU128::from_u32(1)
        );
    });
}

#[test]
fn a_clean_task_counts_for_those_who_were_paid() {
    after(&[9, 9], || {
        pass(CHALLENGE_WINDOW + 1);
        assert_eq!(Records::<Test>::get(1).clean_tasks, 1);
        assert_eq!(Records::<Test>::get(3).clean_tasks, 0);
    });
}

#[test]
fn only_agents_of_verifiers_audit() {
    auditing(|| {
        assert_noop!(announce(2, 1, 9), ResultsError::NotVerifierAgent);
    });
}

#[test]
fn an_audit_is_announced_once_in_the_audit_window() {
    auditing(|| {
        assert_ok!(announce(VERIFIER, 1, 9));
        assert_noop!(announce(VERIFIER, 1, 8), ResultsError::AlreadyAuditing);
        assert_noop!(announce(VERIFIER + 1, 2, 9), ResultsError::NotMember);
        pass_unattended(AUDIT_WINDOW + 1);
        assert_noop!(announce(VERIFIER + 1, 1, 9), ResultsError::WrongPhase);
    });
    TestExt::new().execute_with(|| {
        let call = ResultsCall::announce_audit {
            task: TASK,
            provider: 1,
            proof: surety_types::trust::AuditProof {
                pre_output: [0; 32],
                proof: [0; 64],
            },
            seal: H256::zero(),
        };
        assert_noop!(send(VERIFIER, call), ResultsError::UnknownRound);
    });
}

#[test]
fn there_is_nothing_to_audit_of_who_committed_nothing() {
    TestExt::new().round_of(3).execute_with(|| {
        all_commit(&[(1, 9), (2, 9)]);
        pass(COMMIT_WINDOW + 1);
        assert_noop!(announce(VERIFIER, 3, 9), ResultsError::NotDisputable);
    });
}

#[test]
fn a_verifier_needs_free_stake_for_the_bond() {
    TestExt::new().round_of(4).build().execute_with(|| {
        all_commit(&[(1, 9), (2, 9), (3, 9), (4, 9)]);
        for provider in 1..=3 {
            assert_ok!(announce(VERIFIER, provider, 9));
        }
        assert_noop!(announce(VERIFIER, 4, 9), MockStake::NOT_ENOUGH);
    });
}

#[test]
fn a_task_takes_so_many_audits_and_no_more() {
    auditing(|| {
        for place in 0..AccountId::from(AUDITS_MAX) {
            let verifier = 10_000 + place;
            MockStake::bond(verifier, agent_of(verifier), Role::Verifier, BOND);
            assert_ok!(announce(verifier, 1, 9));
        }
        assert_noop!(announce(VERIFIER, 1, 9), ResultsError::TooManyAudits);
    });
}

#[test]
fn an_audit_is_opened_only_when_its_provider_has_revealed() {
    TestExt::new().round_of(2).execute_with(|| {
        all_commit(&[(1, 9), (2, 9)]);
        assert_ok!(announce(VERIFIER, 1, 9));
        assert_noop!(reveal_audit(VERIFIER, 1, 9), ResultsError::WrongPhase);
        pass(AUDIT_WINDOW + 1);
        assert_noop!(reveal_audit(VERIFIER, 1, 9), ResultsError::NotRevealed);
        assert_ok!(reveal(1, 9));
        assert_noop!(reveal_audit(VERIFIER, 3, 9), ResultsError::NotMember);
        assert_noop!(reveal_audit(VERIFIER + 1, 1, 9), ResultsError::NotAuditor);
        assert_noop!(reveal_audit(VERIFIER, 1, 8), ResultsError::SealMismatch);
        assert_ok!(reveal_audit(VERIFIER, 1, 9));
        assert_noop!(reveal_audit(VERIFIER, 1, 9), ResultsError::AlreadyRevealed);
    });
}

#[test]
fn an_audit_that_agrees_costs_nothing() {
    audited(9, || {
        assert_ok!(reveal_audit(VERIFIER, 1, 9));
        assert_eq!(audit_state(VERIFIER, 1), Some(AuditState::Confirmed));
        pass(CHALLENGE_WINDOW + 1);
        assert_eq!(decision(), Some(agreed(9, &[1], &[], &[])));
        assert_eq!(
            (MockStake::locked(VERIFIER), MockStake::bonded(VERIFIER)),
            (0, BOND)
        );
    });
}

#[test]
fn an_audit_that_differs_opens_a_dispute() {
    audited(8, || {
        events();
        assert_ok!(reveal_audit(VERIFIER, 1, 8));
        assert_eq!(pairs(), [(1, VERIFIER)]);
        let id = disputes()[0].0;
        assert_eq!(audit_state(VERIFIER, 1), Some(AuditState::Disputed(id)));
        assert!(matches!(
            events()[..],
            [
                RuntimeEvent::Results(ResultsEvent::AuditRevealed {
                    verifier: VERIFIER,
                    agrees: false,
                    ..
                }),
                RuntimeEvent::Disputes(DisputesEvent::DisputeOpened { bond: 0, .. }),
            ]
        ));
    });
}

#[test]
fn an_auditor_that_is_wrong_loses_its_bond_to_burn_provider_and_pool() {
    audited(8, || {
        assert_ok!(reveal_audit(VERIFIER, 1, 8));
        play_out(&[(1, 9), (VERIFIER, 8)]);
        assert_eq!(faults(), [(VERIFIER, FaultKind::FalseAudit)]);
        pass(DEFERRAL + 1);
        assert_eq!(MockStake::slashed(VERIFIER), AUDIT_BOND);
        assert_eq!((MockStake::awarded(1), MockStake::awarded(POOL)), (90, 60));
        assert_eq!(decision(), Some(agreed(9, &[1], &[], &[])));
        assert!(TrustLock::is_jailed(&VERIFIER));
    });
}

#[test]
fn a_lone_provider_that_lied_is_found_by_an_honest_auditor() {
    TestExt::new().round_of(1).execute_with(|| {
        revealed_with(&[(VERIFIER, 1, 9)], &[8]);
        assert_ok!(reveal_audit(VERIFIER, 1, 9));
        play_out(&[(1, 8), (VERIFIER, 9)]);
        assert_eq!(faults(), [(1, FaultKind::WrongResult)]);
        assert_eq!(slashes()[0].finder, Some(VERIFIER));
        assert_eq!(MockStake::locked(VERIFIER), 0);
    });
}

/// Six auditors that differ from stash 2, which loses to stash 1 before they are done with.
#[test]
fn auditors_of_a_loser_are_let_go_a_few_at_a_time() {
    let over = || {
        let audits = round().unwrap().audits;
        audits
            .iter()
            .filter(|audit| audit.state == AuditState::Over)
            .count()
    };
    TestExt::new().round_of(2).execute_with(|| {
        let audits: Vec<_> = verifiers().take(6).map(|verifier| (verifier, 2, 9)).collect();
        revealed_with(&audits, &[9, 8]);
        // They wait as they would for room.
        Rounds::<Test>::mutate(TASK, |round| {
            for audit in &mut round.as_mut().unwrap().audits {
                audit.state = AuditState::Differs;
            }
        });
        play_out(&[(1, 9), (2, 8)]);
        assert_eq!(faults(), [(2, FaultKind::LostDispute)]);
        assert_eq!(over(), OPENED_AT_ONCE as usize);
        pass(1);
        assert_eq!((over(), disputes().len()), (6, 0));
        assert!(verifiers().all(|verifier| MockStake::locked(verifier) == 0));
        pass(CHALLENGE_WINDOW + OPENING_WINDOW + 2);
        assert_eq!(round(), None);
    });
}

#[test]
fn who_announces_and_never_opens_loses_its_bond_and_others_are_drawn() {
    audited(9, || {
        events();
        pass(OPENING_WINDOW + 1);
        assert_eq!(faults(), [(VERIFIER, FaultKind::AuditNoShow)]);
        assert_eq!(slashes()[0].lock, AUDIT_BOND);
        assert_eq!(MockStake::locked(VERIFIER), AUDIT_BOND);
        let (name, until) = phase().unwrap();
        assert_eq!(
            (name, until),
            (
                PhaseName::Challengeable,
                System::block_number() + CHALLENGE_WINDOW
            )
        );
        let drawn = RuntimeEvent::Results(ResultsEvent::AuditorsDrawnAgain {
            task: TASK,
            tranche: 1,
            until,
        });
        assert!(events().contains(&drawn));

        // The next one draws itself over the claim, which is open now, and may come to another result.
        assert_ok!(announce(VERIFIER + 1, 1, 9));
        assert_ok!(reveal_audit(VERIFIER + 1, 1, 9));
        // Nor may the first one, when its suspension is over.
        Records::<Test>::mutate(VERIFIER, |record| record.suspended_until = None);
        assert_noop!(announce(VERIFIER, 1, 9), ResultsError::AlreadyAuditing);
        pass(CHALLENGE_WINDOW + 1);
        assert_eq!(decision(), Some(agreed(9, &[1], &[], &[])));
    });
}

#[test]
fn auditors_are_not_drawn_again_for_ever() {
    audited(9, || {
        pass(OPENING_WINDOW + 2);
        assert_ok!(announce(VERIFIER + 1, 1, 9));
        pass(CHALLENGE_WINDOW + OPENING_WINDOW + 2);
        assert_ok!(announce(VERIFIER + 2, 1, 9));
        pass(CHALLENGE_WINDOW + OPENING_WINDOW + 2);
        assert_eq!(phase(), None);
        assert_eq!(NextSlashId::<Test>::get(), 3);
    });
}

#[test]
fn a_verifier_that_never_opens_gets_no_audits_for_a_while() {
    TestExt::new().round_of(1).execute_with(|| {
        revealed_with(&[(VERIFIER, 1, 9)], &[9]);
        pass(OPENING_WINDOW + 1);
        assert!(TrustLock::is_jailed(&VERIFIER));
        assert_noop!(announce(VERIFIER, 1, 9), ResultsError::InJail);
    });
}

#[test]
fn an_audit_that_is_opened_makes_good_for_a_missed_one() {
    audited(9, || {
        Records::<Test>::mutate(VERIFIER, |record| record.missed = 2);
        assert_ok!(reveal_audit(VERIFIER, 1, 9));
        assert_eq!(Records::<Test>::get(VERIFIER).missed, 1);
    });
}

#[test]
fn the_auditor_of_a_provider_that_never_reveals_is_not_fined() {
    TestExt::new().round_of(1).execute_with(|| {
        all_commit(&[(1, 9)]);
        assert_ok!(announce(VERIFIER, 1, 9));
        pass(AUDIT_WINDOW + REVEAL_WINDOW + OPENING_WINDOW + 4);
        assert_eq!(phase(), None);
        assert_eq!(faults(), [(1, FaultKind::NoReveal)]);
        assert_eq!(MockStake::locked(VERIFIER), 0);
    });
}
