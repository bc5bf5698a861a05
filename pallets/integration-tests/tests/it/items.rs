//! Audits of some of a task's items.

use codec::Encode;
use frame_support::{assert_noop, assert_ok, dispatch::DispatchResult};
use sp_core::H256;
use surety_audit_economics::answer_hash;
use surety_pallet_test_kit::{MockOutcome, MockStake};
use surety_types::trust::{
    AuditAnswer, AuditState, FaultKind, ItemFound, ItemLeaves, ItemsFound, ItemsOpened,
};

use surety_pallet_integration_tests::{
    item_shown as shown, items_answer as answer, items_found as found, refute as refute_audit, *,
};

const VERIFIER: AccountId = FIRST_VERIFIER;
const STRANGER: AccountId = FIRST_STRANGER;

fn seal(found: &ItemsFound) -> H256 {
    seal_of_items(VERIFIER, 1, found)
}

fn opening(found: &ItemsFound, answer: AuditAnswer) -> ResultsCall {
    opening_items(VERIFIER, 1, found, answer)
}

fn open_items(found: &ItemsFound, answer: AuditAnswer) -> DispatchResult {
    send_opening(opening(found, answer))
}

/// Stash 1 says `said`; the verifier has found what comes of `result`, and the provider has revealed.
fn audited(said: u8, result: u8, test: impl FnOnce()) {
    TestExt::new().round_of(1).execute_with(|| {
        Rounds::<Test>::mutate(TASK, |round| {
            round.as_mut().unwrap().members[0].audits.items = OWN_ITEMS
        });
        all_commit(&[(1, said)]);
        assert_ok!(announce_sealed(VERIFIER, 1, seal(&found(result))));
        pass(AUDIT_WINDOW + 1);
        all_reveal(&[(1, said)]);
        test();
    });
}

fn state() -> AuditState {
    round().unwrap().audits[0].state.clone()
}

#[test]
fn an_auditor_of_items_that_agrees_is_paid() {
    audited(9, 9, || {
        assert_ok!(open_items(&found(9), answer(true)));
        assert_eq!(state(), AuditState::Confirmed);
        // Where the opening can be read, for whoever would refute it.
        let block = u32::try_from(System::block_number()).unwrap();
        let opened = ItemsOpened {
            seal: seal(&found(9)),
            block,
        };
        assert_eq!(round().unwrap().audits[0].items, Some(opened));
        assert_noop!(open_items(&found(9), answer(true)), ResultsError::AlreadyRevealed);
        pass(200);
        assert_eq!(MockOutcome::audits_to_pay(TASK), [(1, VERIFIER)]);
        assert_eq!(MockStake::locked(VERIFIER), 0);
    });
}

#[test]
fn a_confirmation_gives_time_to_refute_it_however_late_it_comes() {
    audited(9, 9, || {
        // The window for challenges is over; the round waits for the seal alone.
        pass(CHALLENGE_WINDOW + 1);
        assert_ok!(open_items(&found(9), answer(true)));
        pass(CHALLENGE_WINDOW);
        assert_eq!(state(), AuditState::Confirmed);
        pass(2);
        assert!(round().is_none());
    });
}

#[test]
fn whoever_carries_an_opening_cannot_turn_its_answer() {
    audited(9, 9, || {
        let right = answer(true);
        let turned = AuditAnswer {
            agrees: false,
            ..right
        };
        assert_noop!(open_items(&found(9), turned), ResultsError::SealMismatch);
        let swapped = AuditAnswer {
            agrees: false,
            salt: right.other,
            other: answer_hash(&right.salt),
        };
        assert_noop!(open_items(&found(9), swapped), ResultsError::SealMismatch);
        assert_noop!(open_items(&found(8), right), ResultsError::SealMismatch);
        assert_ok!(open_items(&found(9), right));
    });
}

#[test]
fn an_auditor_of_items_that_differs_plays_and_a_liar_is_convicted_by_a_cell() {
    audited(8, 9, || {
        assert_ok!(open_items(&found(9), answer(false)));
        assert!(matches!(state(), AuditState::Disputed(_)));
        while slashes().is_empty() {
            play_out(&[(1, 8), (VERIFIER, 9)]);
            pass(1);
        }
        let slash = &slashes()[0];
        assert_eq!((slash.offender, slash.kind), (1, FaultKind::WrongResult));
        assert_eq!(slash.finders.to_vec(), [VERIFIER]);
    });
}

#[test]
fn an_auditor_that_contradicts_what_is_right_loses_its_bond_by_a_game_and_not_by_its_seal() {
    audited(9, 8, || {
        assert_ok!(open_items(&found(8), answer(false)));
        assert!(slashes().is_empty());
        while slashes().is_empty() {
            play_out(&[(1, 9), (VERIFIER, 8)]);
            pass(1);
        }
        assert_eq!(
            (slashes()[0].offender, slashes()[0].kind),
            (VERIFIER, FaultKind::FalseAudit)
        );
    });
}

#[test]
fn nobody_confirms_less_than_was_its_own() {
    for change in [
        (|found: &mut ItemsFound| found.clear()) as fn(&mut ItemsFound),
        |found| found.try_push(ItemFound::default()).unwrap(),
    ] {
        TestExt::new().round_of(1).execute_with(|| {
            Rounds::<Test>::mutate(TASK, |round| {
                round.as_mut().unwrap().members[0].audits.items = OWN_ITEMS
            });
            let mut less = found(9);
            change(&mut less);
            all_commit(&[(1, 9)]);
            assert_ok!(announce_sealed(VERIFIER, 1, seal(&less)));
            pass(AUDIT_WINDOW + 1);
            all_reveal(&[(1, 9)]);
            assert_noop!(open_items(&less, answer(true)), ResultsError::IncompleteAudit);
            // It may say that it differs, and has to play.
            assert_ok!(open_items(&less, answer(false)));
        });
    }
}

#[test]
fn where_all_items_are_asked_for_none_alone_confirm() {
    TestExt::new().round_of(1).execute_with(|| {
        Rounds::<Test>::mutate(TASK, |round| {
            round.as_mut().unwrap().members[0].audits.items = CLAIMED_UNITS;
        });
        all_commit(&[(1, 9)]);
        assert_ok!(announce_sealed(VERIFIER, 1, seal(&found(9))));
        pass(AUDIT_WINDOW + 1);
        all_reveal(&[(1, 9)]);
        assert_noop!(open_items(&found(9), answer(true)), ResultsError::IncompleteAudit);
    });
}

#[test]
fn who_confirmed_its_items_is_not_asked_about_others() {
    // The provider gives up to a stranger; who confirmed the whole would be next.
    audited(8, 8, || {
        assert_ok!(open_items(&found(8), answer(true)));
        assert_ok!(challenge(STRANGER, 1));
        while slashes().is_empty() {
            play_out(&[(1, 8), (STRANGER, 9)]);
            pass(1);
        }
        pass(200);
        assert!(slashes().iter().all(|slash| slash.offender == 1));
        assert_eq!(MockStake::locked(VERIFIER), 0);
        assert_eq!(MockOutcome::audits_to_pay(TASK), []);
    });
}

fn refute(found: ItemsFound, place: u32, shown: ItemLeaves) -> DispatchResult {
    refute_audit((VERIFIER, 1), found, place, shown)
}

#[test]
fn a_lazy_auditor_that_confirms_what_it_has_not_computed_loses_its_bond() {
    let mut guessed = found(9);
    guessed[0].leaves = H256::repeat_byte(7);
    let seal_of_guess = seal(&guessed);
    TestExt::new().round_of(1).execute_with(|| {
        Rounds::<Test>::mutate(TASK, |round| {
            round.as_mut().unwrap().members[0].audits.items = OWN_ITEMS
        });
        all_commit(&[(1, 9)]);
        assert_ok!(announce_sealed(VERIFIER, 1, seal_of_guess));
        pass(AUDIT_WINDOW + 1);
        all_reveal(&[(1, 9)]);
        assert_noop!(refute(guessed.clone(), 0, shown(9)), ResultsError::NothingRefuted);
        assert_ok!(open_items(&guessed, answer(true)));
        assert_noop!(refute(found(9), 0, shown(9)), ResultsError::SealMismatch);
        assert_noop!(refute(guessed.clone(), 1, shown(9)), ResultsError::NothingRefuted);
        // Leaves that are not the provider's.
        assert_noop!(refute(guessed.clone(), 0, shown(8)), ResultsError::NothingRefuted);
        assert_ok!(refute(guessed.clone(), 0, shown(9)));
        let slash = &slashes()[0];
        assert_eq!(
            (slash.offender, slash.kind),
            (VERIFIER, FaultKind::ConfirmedWrong)
        );
        assert_eq!(slash.finder, Some(STRANGER));
        pass(200);
        assert_eq!(MockOutcome::audits_to_pay(TASK), []);
    });
}

#[test]
fn an_honest_auditor_cannot_be_refuted() {
    audited(9, 9, || {
        assert_ok!(open_items(&found(9), answer(true)));
        assert_noop!(refute(found(9), 0, shown(9)), ResultsError::NothingRefuted);
    });
}

#[test]
fn a_pool_takes_an_opening_of_items_once_and_no_other() {
    use sp_runtime::transaction_validity::{InvalidTransaction, TransactionValidityError::Invalid};

    audited(9, 9, || {
        let validity = |call: ResultsCall| validity_of(&call);
        assert!(validity(opening(&found(9), answer(true))).is_ok());
        let other = validity(opening(&found(8), answer(true)));
        assert_eq!(other.unwrap_err(), Invalid(InvalidTransaction::BadProof));
        assert_ok!(open_items(&found(9), answer(true)));
        let again = validity(opening(&found(9), answer(true)));
        assert_eq!(again.unwrap_err(), Invalid(InvalidTransaction::Stale));
        assert!(opening(&found(9), answer(true)).encode().len() < 13_000);
    });
}
