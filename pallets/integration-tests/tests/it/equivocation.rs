//! Providers that say two different things of one task.

use frame_support::{assert_noop, assert_ok};
use sp_core::H256;
use surety_dispute_game::{bisection::Move, quorum_streak};
use surety_pallet_test_kit::MockStake;
use surety_types::{
    stake::Role,
    task::{FailureReason, Verdict},
    traits::Jail,
    trust::{AuditState, DisputeId, FaultKind},
};

use super::{after, revealed, revealed_with};
use surety_pallet_integration_tests::*;

const REPORTER: AccountId = FIRST_STRANGER;
const FRIEND: AccountId = FIRST_STRANGER + 1;

/// A round of stashes 1 and 2 in its audit window; both have committed to 9.
fn committed(test: impl FnOnce()) {
    TestExt::new().round_of(2).execute_with(|| {
        all_commit(&[(1, 9), (2, 9)]);
        events();
        test();
    });
}

#[track_caller]
fn refused(
    statement: surety_proofs::SignedStatement<AccountId>,
    other: Option<surety_proofs::SignedStatement<AccountId>>,
    error: ResultsError,
) {
    assert_noop!(report(statement, other), error);
}

#[test]
fn two_signed_results_for_one_task_cost_the_lock_a_part_of_the_stake_and_work() {
    committed(|| {
        assert_ok!(report(promised(1, 9), Some(promised(1, 8))));
        let slash = slashes().pop().unwrap();
        assert_eq!((slash.offender, slash.kind), (1, FaultKind::Equivocation));
        assert_eq!((slash.lock, slash.finder), (LOCK, Some(REPORTER)));
        assert!(!slash.part.is_zero() && TrustLock::is_jailed(&1));
        let reported = RuntimeEvent::Results(ResultsEvent::EquivocationReported {
            task: TASK,
            provider: 1,
            by: REPORTER,
        });
        assert_eq!(events().pop(), Some(reported));
        pass(DEFERRAL + 1);
        // 5 % of what is left beside the lock; the reporter gets three tenths.
        assert_eq!(MockStake::slashed(1), LOCK + (BOND - LOCK) / 20);
        assert_eq!(MockStake::awarded(REPORTER), 72);
    });
}

#[test]
fn who_was_convicted_before_the_reveal_makes_nobody_wait() {
    committed(|| {
        assert_ok!(report(promised(1, 9), Some(promised(1, 8))));
        pass(AUDITING + 1);
        assert_ok!(reveal(2, 9));
        assert_eq!(phase().map(|(name, _)| name), Some(PhaseName::Challengeable));
        let before = round();
        assert_noop!(reveal(1, 9), ResultsError::AlreadyAtFault);
        assert_eq!(round(), before);
        pass(CHALLENGE_WINDOW + 1);
        assert_eq!(decision(), Some(agreed(9, &[2], &[], &[1])));
    });
}

#[test]
fn who_is_convicted_while_it_is_waited_for_is_waited_for_no_longer() {
    committed(|| {
        pass(AUDITING + 1);
        assert_ok!(reveal(2, 9));
        assert_eq!(phase().map(|(name, _)| name), Some(PhaseName::Revealing));
        assert_ok!(report(promised(1, 9), Some(promised(1, 8))));
        pass(2);
        assert_eq!(phase().map(|(name, _)| name), Some(PhaseName::Challengeable));
    });
}

#[test]
fn where_all_were_convicted_before_the_reveal_there_is_none() {
    committed(|| {
        for provider in [1, 2] {
            assert_ok!(report(promised(provider, 9), Some(promised(provider, 8))));
        }
        pass(AUDITING + 2);
        assert_eq!(phase().map(|(name, _)| name), Some(PhaseName::Challengeable));
        pass(CHALLENGE_WINDOW + 1);
        assert_eq!(decision(), Some(Verdict::Failed(FailureReason::NoAgreement)));
    });
}

#[test]
fn a_statement_that_is_not_what_was_committed_to_is_enough() {
    committed(|| {
        assert_ok!(report(promised(1, 8), None));
        assert_eq!(faults(), [(1, FaultKind::Equivocation)]);
    });
}

#[test]
fn a_promised_output_that_is_not_the_revealed_one_is_enough() {
    after(&[9, 9, 9], || {
        let mut lie = promise(1, TASK, 9);
        lie.output = H256::repeat_byte(1);
        assert_ok!(report(signed_by(agent_of(1), lie, &genesis()), None));
        assert_eq!(faults(), [(1, FaultKind::Equivocation)]);
        pass(200);
        assert_eq!(decision(), Some(agreed(9, &[2, 3], &[1], &[])));
    });
}

#[test]
fn a_commitment_still_counts_when_it_was_opened() {
    after(&[9, 9], || {
        let mut lie = promise(1, TASK, 9);
        lie.commitment = H256::repeat_byte(1);
        assert_ok!(report(signed_by(agent_of(1), lie, &genesis()), None));
    });
}

#[test]
fn an_honest_provider_cannot_be_reported_with_what_it_signed() {
    committed(|| {
        refused(promised(1, 9), None, ResultsError::NoEquivocation);
        refused(promised(1, 9), Some(promised(1, 9)), ResultsError::NoEquivocation);
        pass(AUDIT_WINDOW + 1);
        all_reveal(&[(1, 9), (2, 9)]);
        refused(promised(1, 9), None, ResultsError::NoEquivocation);
    });
}

#[test]
fn statements_of_different_providers_or_tasks_contradict_nothing() {
    committed(|| {
        refused(promised(1, 9), Some(promised(2, 8)), ResultsError::NoEquivocation);
        let elsewhere = signed_by(agent_of(1), promise(1, TASK + 1, 8), &genesis());
        refused(
            promised(1, 9),
            Some(elsewhere.clone()),
            ResultsError::NoEquivocation,
        );
        refused(elsewhere, None, ResultsError::UnknownRound);
    });
}

#[test]
fn a_statement_for_another_chain_is_no_evidence_here() {
    committed(|| {
        let elsewhere = signed_by(agent_of(1), promise(1, TASK, 8), &H256::repeat_byte(7));
        refused(elsewhere.clone(), None, ResultsError::BadSignature);
        refused(promised(1, 9), Some(elsewhere), ResultsError::BadSignature);
    });
}

#[test]
fn a_statement_signed_by_another_key_is_no_evidence() {
    committed(|| {
        // By its author, by an agent of somebody else, and with the agent's name over another key's
        // signature.
        let stranger = signed_by(REPORTER, promise(1, TASK, 8), &genesis());
        refused(stranger.clone(), None, ResultsError::WrongSigner);
        let rival = signed_by(agent_of(2), promise(1, TASK, 8), &genesis());
        refused(rival, None, ResultsError::WrongSigner);
        let mut forged = stranger;
        forged.agent = agent_of(1);
        refused(forged.clone(), None, ResultsError::BadSignature);
        refused(promised(1, 9), Some(forged), ResultsError::BadSignature);
    });
}

#[test]
fn an_agent_that_was_replaced_answers_for_what_it_signed_when_it_committed() {
    committed(|| {
        let (signed, as_new) = (promised(1, 8), agent_of(1) + 5_000);
        MockStake::bond(1, as_new, Role::Provider, 0);
        assert_ok!(report(signed, None));
    });
}

#[test]
fn a_new_agent_answers_for_what_it_signs() {
    committed(|| {
        let as_new = agent_of(1) + 5_000;
        MockStake::bond(1, as_new, Role::Provider, 0);
        assert_ok!(report(signed_by(as_new, promise(1, TASK, 8), &genesis()), None));
    });
}

#[test]
fn a_provider_is_convicted_once() {
    committed(|| {
        assert_ok!(report(promised(1, 8), None));
        refused(promised(1, 7), None, ResultsError::AlreadyAtFault);
        assert_eq!(slashes().len(), 1);
    });
}

#[test]
fn nobody_is_reported_when_the_round_is_closed() {
    after(&[9, 9], || {
        pass(200);
        refused(promised(1, 9), Some(promised(1, 8)), ResultsError::UnknownRound);
        assert_eq!(CommitNotes::<Test>::iter().count(), 0);
    });
}

#[test]
fn who_is_not_on_the_task_cannot_be_reported() {
    committed(|| refused(promised(3, 9), Some(promised(3, 8)), ResultsError::NotMember));
}

#[test]
fn two_statements_are_enough_before_anything_is_committed() {
    TestExt::new().round_of(2).reserves([5]).execute_with(|| {
        refused(promised(1, 9), None, ResultsError::NoEquivocation);
        assert_ok!(report(promised(1, 9), Some(promised(1, 8))));
        assert_ok!(commit(2, 9));
        pass(COMMIT_WINDOW + 1);
        // Its seat goes to a reserve, and the slash is carried out all the same.
        assert_eq!(members(), [5, 2]);
        assert_eq!(MockStake::slashed(1), LOCK + (BOND - LOCK) / 20);
    });
}

#[test]
fn the_only_provider_of_a_task_fails_it() {
    TestExt::new().round_of(1).execute_with(|| {
        revealed(&[9]);
        let mut lie = promise(1, TASK, 9);
        lie.output = H256::repeat_byte(1);
        assert_ok!(report(signed_by(agent_of(1), lie, &genesis()), None));
        pass(200);
        assert_eq!(decision(), Some(Verdict::Failed(FailureReason::NoAgreement)));
    });
}

#[test]
fn a_dispute_of_who_is_convicted_is_over() {
    after(&[9, 8, 9], || {
        assert_eq!(pairs().len(), 1);
        let mut lie = promise(2, TASK, 8);
        lie.output = H256::repeat_byte(1);
        assert_ok!(report(signed_by(agent_of(2), lie, &genesis()), None));
        pass(3);
        assert_eq!(pairs(), []);
        pass(200);
        assert_eq!(decision(), Some(agreed(9, &[1, 3], &[2], &[])));
    });
}

/// A verifier that was shown 7 by stash 1, which reveals 9 like stash 2.
const SHOWN_ANOTHER: AccountId = FIRST_VERIFIER;

fn two_faced(test: impl FnOnce()) {
    TestExt::new().round_of(2).execute_with(|| {
        let confirms = FIRST_VERIFIER + 1;
        generates();
        revealed_with(&[(SHOWN_ANOTHER, 1, 7), (confirms, 1, 9)], &[9, 9]);
        assert_ok!(reveal_audit(confirms, 1, 9));
        test();
        assert_eq!(audit_state(SHOWN_ANOTHER, 1), Some(AuditState::Over));
        assert_eq!(MockStake::locked(SHOWN_ANOTHER), 0);
        assert_eq!(disputes(), []);
        assert_eq!(audit_state(confirms, 1), Some(AuditState::Confirmed));
        pass(200);
        assert_eq!(decision(), Some(agreed(9, &[2], &[1], &[])));
        assert_eq!(MockStake::slashed(SHOWN_ANOTHER), 0);
        assert!(MockStake::slashed(1) > 0);
    });
}

/// What stash 1 signed for its auditor.
fn shown_another() -> surety_proofs::SignedStatement<AccountId> {
    let mut lie = promise(1, TASK, 9);
    lie.output = claim(7).output;
    signed_by(agent_of(1), lie, &genesis())
}

#[test]
fn an_auditor_that_was_shown_another_output_loses_nothing_once_that_is_reported() {
    two_faced(|| {
        assert_ok!(reveal_audit(SHOWN_ANOTHER, 1, 7));
        assert_eq!(pairs(), [(1, SHOWN_ANOTHER)]);
        assert_ok!(report(shown_another(), None));
        pass(1);
    });
}

#[test]
fn a_seal_over_another_output_that_opens_after_the_report_is_void() {
    two_faced(|| {
        assert_ok!(report(shown_another(), None));
        assert_ok!(reveal_audit(SHOWN_ANOTHER, 1, 7));
    });
}

/// An auditor that was shown a lie by stash 1 plays `defender`, who says the right thing like stash 1 in the
/// end, before a committee that has sealed, when stash 1 is reported. Returns the dispute and its members.
fn voided_before_a_committee(defender: AccountId, test: impl FnOnce(DisputeId, Vec<AccountId>)) {
    TestExt::new().round_of(2).execute_with(|| {
        generates();
        // Wrong in the tokens, which no block can compute.
        let lie = TOO_LARGE + 1;
        revealed_with(&[(SHOWN_ANOTHER, 1, lie)], &[9, 9]);
        assert_ok!(reveal_audit(SHOWN_ANOTHER, 1, lie));
        if defender != 1 {
            let (first, _) = disputes()[0];
            assert_ok!(play(agent_of(1), first, Move::Concede));
            pass(1);
        }
        assert_eq!(pairs(), [(defender, SHOWN_ANOTHER)]);
        play_out(&[(defender, 9), (SHOWN_ANOTHER, lie)]);
        let (dispute, _) = disputes()[0];
        let question = Committees::<Test>::get(dispute).unwrap().state.question();
        let members: Vec<_> = (FIRST_VERIFIER + 1..FIRST_VERIFIER + 5).collect();
        for verifier in &members {
            let seal = quorum_streak::seal(question, 0, verifier, VALUE, salt_of(*verifier));
            let call = DisputesCall::join_committee {
                dispute,
                ballot: 0,
                proof: None,
                seal,
            };
            assert_ok!(send(*verifier, call));
        }
        let mut shown = promise(1, TASK, 9);
        shown.output = claim(lie).output;
        assert_ok!(report(signed_by(agent_of(1), shown, &genesis()), None));
        pass(1);
        test(dispute, members);
        assert_eq!(MockStake::locked(SHOWN_ANOTHER), 0);
        pass(200);
        assert_eq!(MockStake::slashed(SHOWN_ANOTHER), 0);
        assert_eq!(decision(), Some(agreed(9, &[2], &[1], &[])));
    });
}

/// What members of the committee answer.
const VALUE: H256 = H256([1; 32]);

#[test]
fn an_auditor_whose_seal_is_void_pays_for_nothing_in_a_game_with_another() {
    voided_before_a_committee(2, |dispute, _| {
        assert_eq!((pairs(), Committees::<Test>::get(dispute)), (vec![], None));
    });
}

#[test]
fn a_two_faced_provider_that_is_reported_pays_the_committee_of_its_own_game() {
    voided_before_a_committee(1, |dispute, members| {
        for verifier in &members {
            assert_ok!(send_opening(opening_vote(dispute, *verifier, VALUE)));
        }
        pass(BlockNumber::from(VOTE_WINDOW) + 2);
        assert_eq!(Committees::<Test>::get(dispute), None);
        assert!(members.iter().all(|member| MockStake::awarded(*member) > 0));
    });
}

/// Stash 1 gives up to a friend that challenges it, so that it cannot be convicted again. The friend goes on
/// against whoever says the same.
fn loses_to_a_friend() {
    assert_ok!(challenge(FRIEND, 1));
    assert_ok!(play(agent_of(1), game_of_friend(), Move::Concede));
    assert_eq!(faults().last(), Some(&(1, FaultKind::LostDispute)));
    pass(1);
}

fn game_of_friend() -> DisputeId {
    let of_friend = |dispute: &DisputeOf<Test>| *dispute.challenger.account() == FRIEND;
    let mut open = disputes().into_iter();
    open.find(|(_, dispute)| of_friend(dispute)).unwrap().0
}

/// The friend cannot win against who is right, and stash 1 has lost once.
fn friend_loses() {
    pass(1);
    assert_eq!(pairs(), [(2, FRIEND)]);
    play_out(&[(2, 9), (FRIEND, 7)]);
    assert_eq!(slashes().iter().filter(|slash| slash.offender == 1).count(), 1);
}

#[test]
fn losing_to_a_friend_keeps_no_report_from_freeing_an_auditor_that_plays() {
    two_faced(|| {
        assert_ok!(reveal_audit(SHOWN_ANOTHER, 1, 7));
        loses_to_a_friend();
        assert!(pairs().contains(&(2, SHOWN_ANOTHER)), "{:?}", pairs());
        assert_ok!(report(shown_another(), None));
        refused(shown_another(), None, ResultsError::AlreadyAtFault);
        friend_loses();
    });
}

#[test]
fn losing_to_a_friend_keeps_no_report_from_voiding_a_seal_that_opens_later() {
    two_faced(|| {
        loses_to_a_friend();
        assert_ok!(report(shown_another(), None));
        assert_ok!(reveal_audit(SHOWN_ANOTHER, 1, 7));
        friend_loses();
    });
}

#[test]
fn a_report_after_a_loss_costs_nothing_more_and_gives_everybody_the_whole_window() {
    TestExt::new().round_of(2).execute_with(|| {
        generates();
        revealed(&[8, 8]);
        loses_to_a_friend();
        let id = game_of_friend();
        assert_ok!(play(agent_of(2), id, next_move(id, 8)));
        assert_ok!(play(FRIEND, id, Move::Concede));
        let (slash, lost) = (slashes(), TrustLock::is_jailed(&1));
        pass(CHALLENGE_WINDOW - 2);
        let mut lie = promise(1, TASK, 8);
        lie.output = H256::repeat_byte(1);
        assert_ok!(report(signed_by(agent_of(1), lie, &genesis()), None));
        assert_eq!((slashes(), TrustLock::is_jailed(&1)), (slash, lost));
        pass(CHALLENGE_WINDOW - 1);
        assert_ok!(challenge(FIRST_STRANGER, 2));
        play_out(&[(2, 8), (FIRST_STRANGER, 9)]);
        pass(200);
        assert!(MockStake::slashed(2) > 0);
    });
}

#[test]
fn auditors_of_embeddings_go_on_against_whoever_says_the_same_as_a_provider_that_reports_itself() {
    TestExt::new().round_of(2).execute_with(|| {
        let auditor = FIRST_VERIFIER;
        revealed_with(&[(auditor, 1, 9)], &[8, 8]);
        assert_ok!(reveal_audit(auditor, 1, 9));
        assert_eq!(pairs(), [(1, auditor)]);
        let mut lie = promise(1, TASK, 8);
        lie.output = H256::repeat_byte(1);
        assert_ok!(report(signed_by(agent_of(1), lie, &genesis()), None));
        pass(3);
        assert_eq!(pairs(), [(2, auditor)]);
        play_out(&[(2, 8), (auditor, 9)]);
        pass(200);
        assert_eq!(decision(), Some(Verdict::Failed(FailureReason::NoAgreement)));
        assert!(MockStake::slashed(2) > 0);
        assert_eq!(MockStake::slashed(auditor), 0);
    });
}

#[test]
fn everybody_has_the_whole_window_against_whoever_says_the_same_as_a_provider_that_reports_itself() {
    TestExt::new().round_of(2).execute_with(|| {
        generates();
        revealed(&[8, 8]);
        pass(CHALLENGE_WINDOW - 1);
        let mut lie = promise(1, TASK, 8);
        lie.output = H256::repeat_byte(1);
        assert_ok!(report(signed_by(agent_of(1), lie, &genesis()), None));
        pass(CHALLENGE_WINDOW - 1);
        assert_ok!(challenge(FIRST_STRANGER, 2));
        play_out(&[(2, 8), (FIRST_STRANGER, 9)]);
        pass(200);
        assert!(MockStake::slashed(2) > 0);
    });
}
