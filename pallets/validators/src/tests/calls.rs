//! Who can be elected.

use frame_support::{assert_noop, assert_ok};
use sp_runtime::DispatchError;
use surety_types::traits::{StashClosed, ValidatorService};

use crate::{Candidates, ChillReason, Error, Event, mock::*};

fn validate(operator: u64) -> Result<(), DispatchError> {
    Validators::validate(RuntimeOrigin::signed(operator))
}

fn chill(operator: u64) -> Result<(), DispatchError> {
    Validators::chill(RuntimeOrigin::signed(operator))
}

#[test]
fn an_operator_with_keys_and_stake_of_its_own_can_be_elected_until_it_does_not_want_to() {
    TestExt::new(2).execute_with(|| {
        assert_noop!(chill(7), Error::<Test>::NotCandidate);
        set_stake(7, SELF_BOND, BACKING);
        assert_noop!(validate(7), Error::<Test>::NoKeys);
        set_keys(7, key(7));
        set_stake(7, SELF_BOND - 1, BACKING);
        assert_noop!(validate(7), Error::<Test>::OwnBondTooLow);
        set_stake(7, SELF_BOND, SELF_BOND);
        assert_ok!(validate(7));
        System::assert_last_event(Event::Validates { operator: 7 }.into());
        assert_noop!(validate(7), Error::<Test>::AlreadyCandidate);
        assert_ok!(chill(7));
        System::assert_last_event(
            Event::Chilled {
                operator: 7,
                reason: ChillReason::Asked,
            }
            .into(),
        );
        assert_noop!(chill(7), Error::<Test>::NotCandidate);
        assert_ok!(validate(7));
    });
}

#[test]
fn nobody_calls_without_a_signature() {
    TestExt::new(2).execute_with(|| {
        assert_noop!(
            Validators::validate(RuntimeOrigin::none()),
            DispatchError::BadOrigin
        );
        assert_noop!(Validators::chill(RuntimeOrigin::root()), DispatchError::BadOrigin);
    });
}

#[test]
fn a_convict_comes_back_when_its_jail_is_over_and_its_slash_is_carried_out() {
    TestExt::new(4).execute_with(|| {
        assert_ok!(report(2, 1));
        assert_noop!(validate(2), Error::<Test>::Jailed);
        Jailed::take();
        assert_noop!(validate(2), Error::<Test>::SlashPending);
        Slashes::mutate(|slashes| slashes[0].carried_out = true);
        assert_ok!(validate(2));
    });
}

#[test]
fn who_is_suspended_waits() {
    TestExt::new(2).execute_with(|| {
        assert_ok!(chill(2));
        Suspended::set([2].into());
        assert_noop!(validate(2), Error::<Test>::Jailed);
        Suspended::take();
        assert_ok!(validate(2));
    });
}

#[test]
fn there_are_as_many_candidates_as_there_may_be_and_a_closed_pool_leaves_room() {
    TestExt::new(3).execute_with(|| {
        CandidatesMost::set(3);
        set_stake(7, SELF_BOND, BACKING);
        set_keys(7, key(7));
        assert_noop!(validate(7), Error::<Test>::TooManyCandidates);
        // Who comes back has its place still.
        assert_ok!(chill(3));
        assert_ok!(validate(3));
        pass_sessions(1);
        Stakes::mutate(|stakes| stakes.remove(&3));
        Validators::closed(&3);
        assert_eq!(Candidates::<Test>::get(3), None);
        assert_eq!(service(3), Default::default());
        assert_ok!(validate(7));
        pass_sessions(2);
        assert_eq!(Session::validators(), [1, 2, 7]);
    });
}

#[test]
fn who_has_taken_its_own_stake_out_keeps_no_place_from_others() {
    TestExt::new(2).execute_with(|| {
        CandidatesMost::set(3);
        join(3, BACKING);
        set_keys(7, key(7));
        set_stake(7, SELF_BOND, BACKING);
        // A friend's little stake keeps its pool.
        set_stake(3, 0, 10);
        assert_noop!(validate(7), Error::<Test>::TooManyCandidates);
        pass_sessions(1);
        assert_eq!(Candidates::<Test>::get(3), None);
        System::assert_has_event(
            Event::Chilled {
                operator: 3,
                reason: ChillReason::NoBond,
            }
            .into(),
        );
        assert_ok!(validate(7));
        pass_sessions(2);
        assert_eq!(Session::validators(), [1, 2, 7]);
    });
}

#[test]
fn who_has_taken_its_own_stake_out_keeps_its_place_while_nobody_needs_it() {
    TestExt::new(2).execute_with(|| {
        join(3, BACKING);
        set_stake(3, 0, 10);
        pass_sessions(3);
        assert!(Candidates::<Test>::contains_key(3));
        assert_eq!(Session::validators(), [1, 2]);
    });
}

#[test]
fn who_works_still_or_was_not_paid_yet_keeps_its_place_until_then() {
    TestExt::new(3).execute_with(|| {
        CandidatesMost::set(3);
        set_keys(7, key(7));
        set_stake(7, SELF_BOND, BACKING);
        pass_sessions(1);
        set_stake(3, 0, 10);
        for validators in [3, 2] {
            pass_sessions(1);
            assert_eq!(Session::validators().len(), validators);
            assert_noop!(validate(7), Error::<Test>::TooManyCandidates);
        }
        let owed = Validators::take_services();
        assert!(
            owed.iter()
                .any(|(operator, service)| *operator == 3 && service.owed > 0)
        );
        pass_sessions(1);
        assert_ok!(validate(7));
    });
}
