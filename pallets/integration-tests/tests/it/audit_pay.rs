//! Whose audits are paid.

use frame_support::dispatch::Pays;
use sp_core::H256;
use sp_runtime::traits::Dispatchable;
use surety_pallet_test_kit::MockOutcome;
use surety_types::task::Verdict;

use super::revealed_with;
use surety_pallet_integration_tests::*;

const VERIFIER: AccountId = FIRST_VERIFIER;

/// Providers and auditors have all revealed.
fn audited_with(audits: &[(AccountId, AccountId, u8)], results: &[u8]) {
    revealed_with(audits, results);
    for (verifier, provider, result) in audits {
        assert_eq!(reveal_audit(*verifier, *provider, *result), Ok(()));
    }
}

/// Everything that time can do to the round.
fn end() {
    pass(200);
    assert!(round().is_none());
}

#[test]
fn an_announcement_costs_a_fee_only_where_it_is_refused() {
    TestExt::new().round_of(1).execute_with(|| {
        all_commit(&[(1, 9)]);
        let announced = || {
            let call = RuntimeCall::from(ResultsCall::announce_audit {
                task: TASK,
                provider: 1,
                proof: proof_of(agent_of(VERIFIER), &input_of(1), 0),
                seal: H256::zero(),
            });
            call.dispatch(RuntimeOrigin::signed(agent_of(VERIFIER)))
        };
        assert_eq!(announced().unwrap().pays_fee, Pays::No);
        let again = announced().unwrap_err();
        assert_eq!(again.error, ResultsError::AlreadyAuditing.into());
        assert_eq!(again.post_info.pays_fee, Pays::Yes);
    });
}

#[test]
fn an_audit_that_confirms_what_is_paid_is_paid() {
    TestExt::new().round_of(3).execute_with(|| {
        audited_with(
            &[(VERIFIER, 1, 9), (VERIFIER, 2, 9), (VERIFIER + 1, 1, 9)],
            &[9, 9, 9],
        );
        end();
        let paid = [(1, VERIFIER), (2, VERIFIER), (1, VERIFIER + 1)];
        assert_eq!(MockOutcome::audits_to_pay(TASK), paid);
    });
}

#[test]
fn an_audit_that_is_not_shown_is_not_paid() {
    TestExt::new().round_of(1).execute_with(|| {
        all_commit(&[(1, 9)]);
        announce(VERIFIER, 1, 9).unwrap();
        pass(AUDIT_WINDOW + 1);
        all_reveal(&[(1, 9)]);
        end();
        assert_eq!(MockOutcome::audits_to_pay(TASK), []);
    });
}

#[test]
fn an_audit_that_is_contradicted_by_a_lost_dispute_is_not_paid() {
    // The auditor says that a right result is wrong, and then does not play.
    TestExt::new().round_of(1).execute_with(|| {
        audited_with(&[(VERIFIER, 1, 8)], &[9]);
        for _ in 0..20 {
            play_out(&[(1, 9)]);
            pass(1);
        }
        end();
        assert!(matches!(decision(), Some(Verdict::Agreed { .. })));
        assert_eq!(MockOutcome::audits_to_pay(TASK), []);
    });
}

#[test]
fn confirming_what_loses_is_not_paid() {
    // Two agree on a wrong result and confirm it; the honest third plays them.
    TestExt::new().round_of(3).execute_with(|| {
        audited_with(&[(VERIFIER, 1, 8), (VERIFIER + 1, 3, 9)], &[8, 8, 9]);
        for _ in 0..20 {
            play_out(&[(1, 8), (2, 8), (3, 9)]);
            pass(1);
        }
        end();
        assert_eq!(decision(), Some(agreed(9, &[3], &[1, 2], &[])));
        assert_eq!(MockOutcome::audits_to_pay(TASK), [(3, VERIFIER + 1)]);
    });
}

#[test]
fn nobody_is_paid_for_audits_of_a_task_that_fails() {
    TestExt::new().model(Model::Native).round_of(2).execute_with(|| {
        audited_with(&[(VERIFIER, 1, 9)], &[9, 8]);
        end();
        assert!(matches!(decision(), Some(Verdict::Failed(_))));
        assert_eq!(MockOutcome::audits_to_pay(TASK), []);
    });
}
