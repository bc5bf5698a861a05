//! Who works in which session.

use std::collections::BTreeSet;

use frame_support::assert_ok;
use proptest::prelude::*;
use sp_runtime::testing::UintAuthorityId;

use crate::{Event, mock::*};

fn elections() -> usize {
    let elected = |event: &RuntimeEvent| matches!(event, RuntimeEvent::Validators(Event::Elected { .. }));
    let events = System::events();
    events.iter().filter(|record| elected(&record.event)).count()
}

#[test]
fn who_is_elected_as_a_session_begins_works_from_the_next_one_on() {
    TestExt::new(3).execute_with(|| {
        join(7, BACKING);
        pass_sessions(1);
        assert_eq!(Session::validators(), [1, 2, 3]);
        System::assert_has_event(
            Event::Elected {
                session: 2,
                validators: 4,
            }
            .into(),
        );
        pass_sessions(1);
        assert_eq!(Session::validators(), [1, 2, 3, 7]);
        // The same the other way round.
        assert_ok!(Validators::chill(RuntimeOrigin::signed(2)));
        pass_sessions(1);
        assert_eq!(Session::validators(), [1, 2, 3, 7]);
        pass_sessions(1);
        assert_eq!(Session::validators(), [1, 3, 7]);
    });
}

#[test]
fn more_stake_takes_a_place_and_of_as_much_the_lower_account_has_it() {
    TestExt::new(3).set_size(1, 3).execute_with(|| {
        join(9, BACKING);
        pass_sessions(2);
        assert_eq!(Session::validators(), [1, 2, 3]);
        set_stake(9, SELF_BOND, BACKING + 1);
        pass_sessions(2);
        assert_eq!(Session::validators(), [1, 2, 9]);
    });
}

#[test]
fn nothing_changes_while_the_elected_and_their_keys_stay_the_same() {
    TestExt::new(4).execute_with(|| {
        for round in 0..6u128 {
            // Whose stake moves within the set is elected all the same.
            set_stake(1 + round as u64 % 4, SELF_BOND, BACKING + round * 17);
            pass_sessions(1);
            assert!(!pallet_session::QueuedChanged::<Test>::get());
        }
        assert_eq!(elections(), 0);
    });
}

#[test]
fn who_cannot_work_is_left_out() {
    type Hinder = fn(u64);
    let hindrances: [Hinder; 5] = [
        |operator| {
            Jailed::mutate(|jailed| jailed.insert(operator));
        },
        |operator| {
            Suspended::mutate(|suspended| suspended.insert(operator));
        },
        |operator| {
            assert_ok!(Session::purge_keys(RuntimeOrigin::signed(operator)));
        },
        |operator| set_stake(operator, SELF_BOND - 1, 10 * BACKING),
        |operator| {
            assert_ok!(Validators::chill(RuntimeOrigin::signed(operator)));
        },
    ];
    for hinder in hindrances {
        TestExt::new(3).execute_with(|| {
            join(7, BACKING);
            pass_sessions(2);
            assert_eq!(Session::validators(), [1, 2, 3, 7]);
            hinder(7);
            pass_sessions(2);
            assert_eq!(Session::validators(), [1, 2, 3]);
            // Whoever is jailed is chilled, too: that it was not is no sound state (VALIDATOR-3).
            Jailed::take();
        });
    }
}

#[test]
fn too_few_candidates_leave_the_set_as_it_is_but_for_its_keys() {
    TestExt::new(4).set_size(4, 10).execute_with(|| {
        assert_ok!(Validators::chill(RuntimeOrigin::signed(2)));
        pass_sessions(3);
        assert_eq!((Session::validators(), elections()), (vec![1, 2, 3, 4], 0));
        set_keys(3, UintAuthorityId(77));
        pass_sessions(2);
        let running = crate::RunningKeys::<Test>::get();
        assert_eq!(running[2], (3, UintAuthorityId(77)));
        assert_eq!((running.len(), elections()), (4, 1));
        // With one more it changes.
        join(7, BACKING);
        pass_sessions(2);
        assert_eq!(Session::validators(), [1, 3, 4, 7]);
    });
}

#[test]
fn nobody_is_elected_while_finality_stands_still() {
    TestExt::new(3).execute_with(|| {
        Finalizes::set(false);
        pass_sessions(1);
        join(7, BACKING);
        pass_sessions(4);
        assert_eq!((Session::validators(), elections()), (vec![1, 2, 3], 0));
        Finalizes::set(true);
        // The first session in which it moves elects as it ends.
        pass_sessions(3);
        assert_eq!(Session::validators(), [1, 2, 3, 7]);
    });
}

/// What a candidate of the property is like.
#[derive(Clone, Copy, Debug)]
struct Given {
    own: u128,
    more: u128,
    has_keys: bool,
    in_jail: bool,
    suspended: bool,
    wants_to: bool,
}

fn given() -> impl Strategy<Value = Given> {
    let rarely = || prop::bool::weighted(0.15);
    // Few different stakes, so that many are alike.
    (
        SELF_BOND - 1..SELF_BOND + 4,
        0u128..6,
        rarely(),
        rarely(),
        rarely(),
        rarely(),
    )
        .prop_map(|(own, more, no_keys, in_jail, suspended, chilled)| Given {
            own,
            more,
            has_keys: !no_keys,
            in_jail,
            suspended,
            wants_to: !chilled && !in_jail,
        })
}

/// The elected, one after the other: the best of those that are left.
fn naive(candidates: &[(u64, Given)], most: usize) -> BTreeSet<u64> {
    let mut elected = BTreeSet::new();
    while elected.len() < most {
        let left = candidates.iter().filter(|(operator, given)| {
            !elected.contains(operator)
                && given.own >= SELF_BOND
                && given.has_keys
                && !given.in_jail
                && !given.suspended
                && given.wants_to
        });
        let best = left.max_by(|(one, given), (other, than)| {
            let (stake, other_stake) = (given.own + given.more, than.own + than.more);
            stake.cmp(&other_stake).then(other.cmp(one))
        });
        match best {
            Some((operator, _)) => elected.insert(*operator),
            None => break,
        };
    }
    elected
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn the_elected_are_those_of_a_naive_sort(
        candidates in prop::collection::vec(given(), 0..30),
        (min, max) in (1u32..8).prop_flat_map(|min| (Just(min), min..16)),
    ) {
        TestExt::new(2).set_size(min, max).execute_with(|| {
            for operator in [1, 2] {
                assert_ok!(Validators::chill(RuntimeOrigin::signed(operator)));
            }
            let candidates: Vec<_> = (10..).zip(candidates).collect();
            for (operator, given) in &candidates {
                join(*operator, 0);
                set_stake(*operator, given.own, given.own + given.more);
                if !given.wants_to {
                    assert_ok!(Validators::chill(RuntimeOrigin::signed(*operator)));
                }
                if !given.has_keys {
                    assert_ok!(Session::purge_keys(RuntimeOrigin::signed(*operator)));
                }
                if given.in_jail {
                    Jailed::mutate(|jailed| jailed.insert(*operator));
                }
                if given.suspended {
                    Suspended::mutate(|suspended| suspended.insert(*operator));
                }
            }
            let expected = naive(&candidates, max as usize);
            pass_sessions(2);
            let validators = Session::validators();
            if expected.len() < min as usize {
                assert_eq!(validators, [1, 2]);
            } else {
                assert_eq!(validators, expected.into_iter().collect::<Vec<_>>());
            }
        });
    }
}
