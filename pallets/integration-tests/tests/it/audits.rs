//! Verifiers draw themselves, seal what they found, and open it.

use frame_support::{assert_noop, assert_ok};
use sp_core::H256;
use sp_runtime::{FixedU128, traits::Zero};
use surety_audit_economics::audit_seed;
use surety_pallet_test_kit::{MockEntropy, MockStake};
use surety_types::{
    limits::{AUDITS_MAX, AUDITS_PER_MEMBER_MAX, REDUNDANCY_MAX},
    stake::Role,
    task::SecurityLevel,
    traits::{ENTROPY_BLOCKS, ENTROPY_PATIENCE_BLOCKS, Jail, TaskTrust},
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
            seal,
        });
        assert_eq!(events(), [announced]);
    });
}

#[test]
fn all_but_the_seed_is_fixed_with_the_last_commitment_and_the_seed_by_the_block_after_it() {
    TestExt::new().round_of(1).execute_with(|| {
        pass(9);
        assert_ok!(commit(1, 9));
        let draw = round().unwrap().draw.unwrap();
        let stake = BOND * Balance::from(VERIFIERS as u32);
        let randomness = EpochRandomness::get();
        assert_eq!(
            (draw.begun_at, draw.settled_by),
            (10, 10 - BlockNumber::from(AUDIT_SEASONING))
        );
        assert_eq!((draw.verifier_stake, draw.epoch_randomness), (stake, randomness));
        assert_eq!(draw.seed, None);
        MockStake::bond(VERIFIER, agent_of(VERIFIER), Role::Verifier, BOND);
        pass(SEED_BLOCKS);
        let seeded = round().unwrap().draw.unwrap();
        let seed = audit_seed(&genesis(), TASK, &randomness, Some(&MockEntropy::output_of(11)));
        assert_eq!(
            seeded,
            AuditDrawOf::<Test> {
                seed: Some(seed),
                ..draw
            }
        );
        pass(1);
        assert_eq!(round().unwrap().draw.unwrap(), seeded);
    });
}

#[test]
fn before_the_seed_is_known_nobody_audits_and_nobody_reveals() {
    TestExt::new().round_of(1).execute_with(|| {
        HasEntropy::set(false);
        assert_ok!(commit(1, 9));
        pass(AUDIT_WINDOW + 20);
        assert_noop!(announce(VERIFIER, 1, 9), ResultsError::WrongPhase);
        assert_noop!(reveal(1, 9), ResultsError::WrongPhase);
        HasEntropy::set(true);
        pass(1);
        // Auditors have their whole window from here on.
        pass(AUDIT_WINDOW);
        assert_ok!(announce(VERIFIER, 1, 9));
        assert_noop!(reveal(1, 9), ResultsError::WrongPhase);
        pass(1);
        assert_ok!(reveal(1, 9));
    });
}

#[test]
fn without_entropy_for_long_auditors_draw_themselves_with_the_epochs_randomness() {
    TestExt::new().round_of(1).execute_with(|| {
        HasEntropy::set(false);
        assert_ok!(commit(1, 9));
        pass(ENTROPY_PATIENCE_BLOCKS.into());
        assert!(round().unwrap().awaits_seed());
        events();
        pass(1);
        let seed = audit_seed(&genesis(), TASK, &EpochRandomness::get(), None);
        let until = System::block_number() + AUDIT_WINDOW;
        assert_eq!(
            events(),
            [RuntimeEvent::Results(ResultsEvent::AuditorsSeeded {
                task: TASK,
                seed,
                entropy: None,
                until
            })]
        );
        assert_ok!(announce(VERIFIER, 1, 9));
    });
}

#[test]
fn whoever_asks_and_whenever_gets_the_same_seed() {
    let seeded_after = |blocks, forgotten_before| {
        let mut seed = None;
        TestExt::new().round_of(1).execute_with(|| {
            assert_ok!(commit(1, 9));
            pass_unattended(blocks);
            MockEntropy::forget_before(forgotten_before);
            assert_ok!(Results::advance(TASK));
            seed = round().unwrap().draw.unwrap().seed;
        });
        seed.unwrap()
    };
    let mut chain = H256::zero();
    TestExt::new().execute_with(|| chain = genesis());
    let expected = |block| {
        audit_seed(
            &chain,
            TASK,
            &EpochRandomness::get(),
            Some(&MockEntropy::output_of(block)),
        )
    };
    for blocks in [SEED_BLOCKS, 3, 50, u64::from(ENTROPY_BLOCKS)] {
        assert_eq!(seeded_after(blocks, 0), expected(2));
    }
    // When that block may be forgotten no other one counts: whoever asks would choose it.
    let without = audit_seed(&chain, TASK, &EpochRandomness::get(), None);
    for forgotten_before in [0, 700] {
        assert_eq!(seeded_after(1_000, forgotten_before), without);
    }
}

#[test]
fn keys_and_stake_have_to_be_older_than_the_draw_and_what_its_author_could_know() {
    TestExt::new().round_of(1).execute_with(|| {
        pass(9);
        all_commit(&[(1, 9)]);
        pass(1);
        let since_begun = (System::block_number() - round().unwrap().draw.unwrap().begun_at) as u32;
        for (settled_for, refused) in [
            (0, true),
            (since_begun, true),
            (since_begun + AUDIT_SEASONING - 1, true),
            (since_begun + AUDIT_SEASONING, false),
        ] {
            MockStake::settle(VERIFIER, settled_for);
            if refused {
                assert_noop!(announce(VERIFIER, 1, 9), ResultsError::Unsettled);
            } else {
                assert_ok!(announce(VERIFIER, 1, 9));
            }
        }
    });
}

#[test]
fn how_many_auditors_are_expected_is_settled_with_the_seat() {
    auditing(|| {
        let drawn = round().unwrap().members[0].audits.expected;
        assert_eq!(drawn, Results::auditors_expected(&1, SecurityLevel::Standard));
        // Neither a parameter nor what the provider does elsewhere makes the work of who was drawn worthless.
        AuditorsExpected::set(FixedU128::zero());
        AuditorsNewcomer::set(FixedU128::zero());
        assert_eq!(round().unwrap().members[0].audits.expected, drawn);
        assert_ok!(announce(VERIFIER, 1, 9));
    });
}

#[test]
fn only_who_drew_itself_audits() {
    auditing(|| {
        Rounds::<Test>::mutate(TASK, |round| {
            let members = &mut round.as_mut().unwrap().members;
            members[0].audits.expected = FixedU128::from_rational(15, 100);
        });
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
        assert_ok!(reveal(1, 9));
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
        pass(COMMIT_WINDOW + 1 + SEED_BLOCKS);
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
fn a_result_takes_so_many_audits_and_no_more_and_leaves_those_of_others_alone() {
    TestExt::new().round_of(2).execute_with(|| {
        all_commit(&[(1, 9), (2, 9)]);
        for place in 0..AccountId::from(AUDITS_PER_MEMBER_MAX) {
            let verifier = 10_000 + place;
            MockStake::bond(verifier, agent_of(verifier), Role::Verifier, BOND);
            assert_ok!(announce(verifier, 1, 9));
        }
        assert_noop!(announce(VERIFIER, 1, 9), ResultsError::TooManyAudits);
        assert_ok!(announce(VERIFIER, 2, 9));
    });
}

#[test]
fn the_largest_round_takes_all_the_audits_of_all_its_providers() {
    TestExt::new().round_of(REDUNDANCY_MAX).execute_with(|| {
        let members = 1..=AccountId::from(REDUNDANCY_MAX);
        all_commit(&members.clone().map(|stash| (stash, 9)).collect::<Vec<_>>());
        for place in 0..AccountId::from(AUDITS_PER_MEMBER_MAX) {
            let verifier = 10_000 + place;
            MockStake::bond(verifier, agent_of(verifier), Role::Verifier, 10 * BOND);
            for provider in members.clone() {
                assert_ok!(announce(verifier, provider, 9));
            }
        }
        assert_eq!(round().unwrap().audits.len(), AUDITS_MAX as usize);
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
fn who_announces_and_never_opens_loses_its_bond_and_the_round_ends() {
    audited(9, || {
        pass(OPENING_WINDOW + 1);
        assert_eq!(faults(), [(VERIFIER, FaultKind::AuditNoShow)]);
        assert_eq!(slashes()[0].lock, AUDIT_BOND);
        assert_eq!(MockStake::locked(VERIFIER), AUDIT_BOND);
        assert_eq!(phase(), None);
        assert_eq!(decision(), Some(agreed(9, &[1], &[], &[])));
    });
}

#[test]
fn a_verifier_that_never_opens_gets_no_audits_for_a_while() {
    audited(9, || {
        pass(OPENING_WINDOW + 1);
        assert!(TrustLock::is_jailed(&VERIFIER));
        assert_ok!(open(TASK, [1]));
        all_commit(&[(1, 9)]);
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
