//! Who signed two of a kind.

use frame_support::{assert_err, assert_ok};
use proptest::prelude::*;
use sp_runtime::{PerThing, Perbill};
use sp_staking::offence::OffenceError;
use surety_types::traits::{EquivocationSpared, StashClosed};

use crate::{Candidates, ChillReason, Event, Punished, Services, missing, mock::*};

fn parts() -> Vec<(u64, u32, Perbill)> {
    let slashes = Slashes::get();
    slashes
        .iter()
        .map(|slash| (slash.operator, slash.session, slash.part))
        .collect()
}

/// `min((3k/n)^2, 1)`.
fn part(offenders: u32, validators: u32) -> Perbill {
    Perbill::from_rational(3 * offenders, validators).square()
}

#[test]
fn who_signs_twice_is_convicted_once_and_works_and_earns_no_more() {
    TestExt::new(4).execute_with(|| {
        pass_sessions(1);
        assert!(Services::<Test>::contains_key(2));
        assert_ok!(report(2, 5));
        assert_eq!(parts(), [(2, 1, part(1, 4))]);
        assert_eq!(Session::disabled_validators(), [1]);
        assert!(!Candidates::<Test>::get(2).unwrap().wants_to);
        assert!(!Services::<Test>::contains_key(2));
        System::assert_has_event(
            Event::Chilled {
                operator: 2,
                reason: ChillReason::Convicted,
            }
            .into(),
        );
        System::assert_has_event(
            Event::Equivocated {
                operator: 2,
                session: 1,
                part: part(1, 4),
            }
            .into(),
        );
        // The same report, and another of the same session.
        assert_err!(report(2, 5), OffenceError::DuplicateReport);
        assert_ok!(report(2, 6));
        assert_eq!(parts().len(), 1);
        // It is in the next session still, disabled, and not paid.
        pass_sessions(1);
        assert_eq!(
            (Session::validators(), Session::disabled_validators()),
            (vec![1, 2, 3, 4], vec![1])
        );
        pass_sessions(1);
        assert_eq!(Session::validators(), [1, 3, 4]);
        assert!(Session::disabled_validators().is_empty());
        assert!(!Services::<Test>::contains_key(2));
    });
}

#[test]
fn all_that_can_be_reported_within_a_day_is_one_offence_whatever_session_reports_name() {
    TestExt::new(10).execute_with(|| {
        let once = (2, 3, part(1, 10));
        // It takes the place of the convict.
        join(11, BACKING);
        pass_sessions(3);
        assert_ok!(report(2, 50));
        for session in [0, 1, 2, 3, 4] {
            assert_ok!(report_in(session, 2, 100 + u64::from(session)));
        }
        assert_eq!(parts(), [once]);
        Slashes::mutate(|slashes| slashes[0].carried_out = true);
        pass_sessions(SessionsKept::get());
        assert_ok!(report(2, 200));
        assert_eq!(parts(), [once]);
        // It has come back since.
        pass_sessions(1);
        assert_ok!(report(2, 300));
        assert_eq!(parts(), [once, (2, 10, part(1, 10))]);
        // Older ones are no offences of their own either.
        assert_ok!(report_in(5, 2, 400));
        assert_eq!(parts().len(), 2);
    });
}

#[test]
fn who_is_named_again_in_the_report_of_another_session_is_not_convicted_again() {
    TestExt::new(10).execute_with(|| {
        assert_ok!(report(2, 5));
        pass_sessions(1);
        assert_ok!(report(3, 5));
        assert_eq!(parts(), [(2, 0, part(2, 10)), (3, 1, part(2, 10))]);
    });
}

#[test]
fn what_is_signed_after_a_veto_was_not_forgiven() {
    TestExt::new(10).execute_with(|| {
        assert_ok!(report(2, 5));
        Validators::spared(&2, 0);
        Slashes::mutate(|slashes| slashes[0].carried_out = true);
        Jailed::take();
        assert_ok!(report(2, 6));
        assert_eq!(parts().len(), 1);
        pass_sessions(1);
        assert_ok!(report(2, 7));
        assert_eq!(parts(), [(2, 0, part(1, 10)), (2, 1, part(1, 10))]);
        // A veto of the first one comes too late to spare it the second.
        Validators::spared(&2, 0);
        assert_ok!(report(3, 7));
        assert_eq!(parts()[1..], [(2, 1, part(2, 10)), (3, 1, part(2, 10))]);
    });
}

#[test]
fn as_more_do_the_same_all_of_them_lose_more() {
    TestExt::new(10).execute_with(|| {
        assert_ok!(report(2, 5));
        assert_ok!(report(3, 5));
        assert_eq!(parts(), [(2, 0, part(2, 10)), (3, 0, part(2, 10))]);
        // Whoever did it at another time loses what it would alone.
        assert_ok!(report(4, 6));
        assert_ok!(report(5, 5));
        let (three, one) = (part(3, 10), part(1, 10));
        assert_eq!(
            parts(),
            [(2, 0, three), (3, 0, three), (4, 0, one), (5, 0, three)]
        );
    });
}

#[test]
fn what_was_carried_out_is_followed_by_what_is_missing() {
    TestExt::new(10).execute_with(|| {
        assert_ok!(report(2, 5));
        Slashes::mutate(|slashes| slashes[0].carried_out = true);
        Jailed::take();
        assert_ok!(report(3, 5));
        let (one, two, three) = (part(1, 10), part(2, 10), part(3, 10));
        assert_eq!(parts(), [(2, 0, one), (2, 0, missing(one, two)), (3, 0, two)]);
        // It is in jail again.
        assert_eq!(Jailed::get(), [2, 3].into());
        // The second slash waits: it is raised.
        assert_ok!(report(4, 5));
        let expected = [
            (2, 0, one),
            (2, 0, missing(one, three)),
            (3, 0, three),
            (4, 0, three),
        ];
        assert_eq!(parts(), expected);
        let lost = Perbill::one() - (one.left_from_one() * missing(one, three).left_from_one());
        assert!(
            lost >= three && lost <= three + Perbill::from_parts(2),
            "{lost:?} {three:?}"
        );
    });
}

#[test]
fn after_a_veto_nothing_more_is_asked_for() {
    TestExt::new(10).execute_with(|| {
        assert_ok!(report(2, 5));
        Validators::spared(&2, 0);
        // As trust-lock does.
        Slashes::mutate(|slashes| slashes[0].carried_out = true);
        Jailed::take();
        pass_sessions(1);
        assert!(Session::disabled_validators().is_empty());
        assert_ok!(Validators::validate(RuntimeOrigin::signed(2)));
        assert_ok!(report_in(0, 3, 5));
        assert_eq!(parts(), [(2, 0, part(1, 10)), (3, 0, part(2, 10))]);
        assert!(Candidates::<Test>::get(2).unwrap().wants_to);
    });
}

#[test]
fn a_veto_gives_back_what_a_convict_had_not_been_paid_for_and_a_slash_that_is_carried_out_does_not() {
    TestExt::new(10).execute_with(|| {
        pass_sessions(2);
        let served = service(2);
        assert!(served.owed > 0 && served.made > 0 && service(3).owed > 0);
        for offender in [2, 3] {
            assert_ok!(report(offender, 5));
            assert_eq!(service(offender), Default::default());
        }
        assert_ok!(Validators::do_try_state());
        // Not for another offence than that.
        Validators::spared(&2, 1);
        assert_eq!(service(2), Default::default());
        Validators::spared(&2, 2);
        assert_eq!(service(2), served);
        // And once.
        Validators::spared(&2, 2);
        assert_eq!(service(2), served);
        assert_ok!(Validators::do_try_state());

        // Of the second one what was missing is vetoed: what was withheld for the first is lost.
        Slashes::mutate(|slashes| slashes[1].carried_out = true);
        assert_ok!(report(4, 5));
        assert_eq!(parts().last(), Some(&(4, 2, part(3, 10))));
        Validators::spared(&3, 2);
        assert_eq!(service(3), Default::default());
    });
}

#[test]
fn whoever_has_no_pool_any_more_gets_nothing_back() {
    TestExt::new(10).execute_with(|| {
        pass_sessions(2);
        assert_ok!(report(2, 5));
        Validators::closed(&2);
        Validators::spared(&2, 2);
        assert_eq!(service(2), Default::default());
    });
}

#[test]
fn a_convict_that_stays_for_want_of_others_is_disabled_until_its_jail_is_over() {
    TestExt::new(4).set_size(4, 10).execute_with(|| {
        assert_ok!(report(2, 5));
        for _ in 0..5 {
            pass_sessions(1);
            assert_eq!(
                (Session::validators(), Session::disabled_validators()),
                (vec![1, 2, 3, 4], vec![1])
            );
        }
        Jailed::take();
        pass_sessions(1);
        assert!(Session::disabled_validators().is_empty());
    });
}

#[test]
fn a_convict_is_disabled_again_when_a_set_comes_in_that_was_planned_before() {
    TestExt::new(4).execute_with(|| {
        // Planned as session 1 begins, for session 2.
        join(7, BACKING);
        pass_sessions(1);
        assert_ok!(report(2, 5));
        pass_sessions(1);
        assert_eq!(Session::validators(), [1, 2, 3, 4, 7]);
        assert_eq!(Session::disabled_validators(), [1]);
    });
}

#[test]
fn no_more_are_disabled_than_finality_can_do_without() {
    TestExt::new(7).set_size(7, 10).execute_with(|| {
        for offender in [2, 3, 4, 5] {
            assert_ok!(report(offender, offender));
        }
        for _ in 0..3 {
            assert_eq!(Session::disabled_validators(), [1, 2]);
            pass_sessions(1);
        }
        assert_eq!(parts().len(), 4);
    });
}

#[test]
fn what_was_punished_is_forgotten_when_nothing_can_be_reported_any_more() {
    TestExt::new(10).execute_with(|| {
        assert_ok!(report(2, 5));
        Slashes::mutate(|slashes| slashes[0].carried_out = true);
        pass_sessions(2 * SessionsKept::get());
        assert!(Punished::<Test>::contains_key(2));
        pass_sessions(1);
        assert!(!Punished::<Test>::contains_key(2));
    });
}

#[test]
fn a_veto_gives_back_what_was_withheld_however_long_the_slash_has_waited_for_it() {
    TestExt::new(10).execute_with(|| {
        pass_sessions(2);
        let served = service(2);
        assert_ok!(report(2, 5));
        assert_ok!(report(3, 5));
        // As where finality stands still.
        pass_sessions(2 * SessionsKept::get() + 1);
        Slashes::mutate(|slashes| slashes[1].carried_out = true);
        // Its own stake has left, and its place is wanted.
        set_stake(2, 0, 10);
        CandidatesMost::set(10);
        pass_sessions(1);
        assert!(Candidates::<Test>::contains_key(2) && Punished::<Test>::contains_key(2));
        assert!(!Punished::<Test>::contains_key(3));
        Validators::spared(&2, 2);
        assert_eq!(service(2), served);
        // Though another slash of its might wait.
        pass_sessions(1);
        assert!(!Punished::<Test>::contains_key(2));
    });
}

#[test]
fn who_has_no_stake_of_its_own_left_makes_room_once_its_slash_is_carried_out() {
    TestExt::new(10).execute_with(|| {
        assert_ok!(report(2, 5));
        set_stake(2, 0, 10);
        CandidatesMost::set(10);
        // It is out of the set by then.
        pass_sessions(3);
        assert!(Candidates::<Test>::contains_key(2));
        Slashes::mutate(|slashes| slashes[0].carried_out = true);
        pass_sessions(1);
        assert!(!Candidates::<Test>::contains_key(2));
    });
}

#[test]
fn all_who_were_punished_are_forgotten_though_there_may_be_fewer_candidates_by_then() {
    let mut ext = TestExt::new(10).build();
    ext.execute_with(|| {
        for offender in 2..=6 {
            assert_ok!(report(offender, 5));
        }
        Slashes::mutate(|slashes| slashes.iter_mut().for_each(|slash| slash.carried_out = true));
    });
    // As a block ends: a limit would count what is in the database alone.
    assert_ok!(ext.commit_all());
    ext.execute_with(|| {
        CandidatesMost::set(3);
        assert_eq!(Punished::<Test>::iter().count(), 5);
        pass_sessions(2 * SessionsKept::get() + 1);
        assert_eq!(Punished::<Test>::iter().count(), 0);
        CandidatesMost::set(10);
        assert_ok!(Validators::do_try_state());
    });
}

proptest! {
    /// What two slashes take one after the other is what one would have taken, rounded up.
    #[test]
    fn what_is_missing_makes_up_for_a_slash_that_was_too_small(
        (before, part) in (0u32..=1_000_000_000).prop_flat_map(|before| (Just(before), before..=1_000_000_000)),
        stake in 0u128..1_000_000_000_000_000_000,
    ) {
        let (before, part) = (Perbill::from_parts(before), Perbill::from_parts(part));
        let left = stake - before.mul_ceil(stake);
        let taken = stake - left + missing(before, part).mul_ceil(left);
        let once = part.mul_ceil(stake);
        prop_assert!(taken >= once.min(stake), "{taken} {once}");
        prop_assert!(taken <= once + 2 + stake / 1_000_000_000, "{taken} {once}");
    }
}
