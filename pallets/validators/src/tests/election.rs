//! Who works in which session.

use std::collections::BTreeSet;

use frame_support::assert_ok;
use proptest::prelude::*;
use sp_runtime::testing::UintAuthorityId;

use crate::{Candidates, Event, mock::*};

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

/// Whether a set finalises while those are away: GRANDPA needs `n - (n - 1) / 3` votes.
fn finalises(validators: &[u64], away: &BTreeSet<u64>) -> bool {
    let votes = validators
        .iter()
        .filter(|validator| !away.contains(validator))
        .count();
    votes >= validators.len() - (validators.len() - 1) / 3
}

#[test]
fn names_that_are_never_there_do_not_stop_finality_however_many_and_large_they_are() {
    let sizes = (3..=20)
        .map(|proven| (proven, 100))
        .chain((4..=20).map(|proven| (proven, proven as u32)));
    for (proven, most) in sizes {
        TestExt::new(proven).set_size(1, most).execute_with(|| {
            let names: BTreeSet<_> = (101..=140).collect();
            Absent::set(names.clone());
            for name in &names {
                join(*name, 10 * BACKING);
            }
            pass_sessions(2);
            let validators = Session::validators();
            assert!(validators.iter().any(|validator| names.contains(validator)));
            assert!(finalises(&validators, &names), "{validators:?}");
        });
    }
}

#[test]
fn who_never_comes_is_chilled_one_after_the_other_while_finality_goes_on_and_others_join_after_them() {
    TestExt::new(4)
        .session_blocks(150)
        .set_size(4, 100)
        .execute_with(|| {
            let names: BTreeSet<_> = [101, 102, 103].into();
            Absent::set(names.clone());
            for name in &names {
                join(*name, 10 * BACKING);
            }
            join(7, BACKING);
            for _ in 0..12 {
                pass_sessions(1);
                assert!(finalises(&Session::validators(), &names));
                // The running clock moves with finality.
                Finalizes::set(finalises(&Session::validators(), &names));
            }
            assert_eq!(Suspended::get(), names);
            assert_eq!(Session::validators(), [1, 2, 3, 4, 7]);
        });
}

#[test]
fn newcomers_join_as_fast_as_those_before_them_make_blocks() {
    TestExt::new(4).session_blocks(20).execute_with(|| {
        for operator in [7, 8, 9] {
            join(operator, BACKING);
        }
        let sizes = [4, 5, 5, 6, 6, 7];
        for size in sizes {
            pass_sessions(1);
            assert_eq!(Session::validators().len(), size);
        }
    });
    TestExt::new(40)
        .session_blocks(200)
        .set_size(4, 100)
        .execute_with(|| {
            for operator in 51..=60 {
                join(operator, BACKING);
            }
            pass_sessions(2);
            assert_eq!(Session::validators().len(), 44);
            pass_sessions(2);
            assert_eq!(Session::validators().len(), 48);
        });
}

#[test]
fn who_was_absent_has_to_show_that_it_is_there_as_one_that_is_new() {
    TestExt::new(5).session_blocks(200).execute_with(|| {
        Absent::set([5].into());
        pass_sessions(2);
        assert_eq!(Session::validators(), [1, 2, 3, 4]);
        Suspended::take();
        Absent::take();
        join(7, BACKING);
        assert_ok!(Validators::validate(RuntimeOrigin::signed(5)));
        pass_sessions(2);
        assert_eq!(Session::validators(), [1, 2, 3, 4, 5]);
        pass_sessions(2);
        assert_eq!(Session::validators(), [1, 2, 3, 4, 5, 7]);
    });
}

#[test]
fn one_alone_and_two_take_others_in() {
    // In `dev` and `local`: finality waits there until the newcomer has come.
    TestExt::new(1).session_blocks(20).execute_with(|| {
        for operator in [7, 8] {
            join(operator, BACKING);
        }
        pass_sessions(2);
        assert_eq!(Session::validators(), [1, 7]);
        pass_sessions(2);
        assert_eq!(Session::validators(), [1, 7, 8]);
    });
}

#[test]
fn who_wants_to_leave_a_set_that_is_short_of_candidates_is_relieved_by_newcomers_one_by_one() {
    TestExt::new(4)
        .session_blocks(20)
        .set_size(4, 10)
        .execute_with(|| {
            for operator in [3, 4] {
                assert_ok!(Validators::chill(RuntimeOrigin::signed(operator)));
            }
            for operator in [7, 8] {
                join(operator, BACKING);
            }
            pass_sessions(2);
            assert_eq!(Session::validators(), [1, 2, 3, 4, 7]);
            pass_sessions(2);
            assert_eq!(Session::validators(), [1, 2, 7, 8]);
        });
}

#[test]
fn who_never_came_makes_room_for_the_next_in_a_set_that_is_short_of_candidates() {
    TestExt::new(4)
        .session_blocks(200)
        .set_size(4, 10)
        .execute_with(|| {
            for operator in [3, 4] {
                assert_ok!(Validators::chill(RuntimeOrigin::signed(operator)));
            }
            Absent::set([7, 8].into());
            join(7, BACKING);
            pass_sessions(4);
            assert_eq!(Suspended::get(), [7].into());
            // Nobody is there for its place.
            assert_eq!(Session::validators(), [1, 2, 3, 4, 7]);
            join(8, BACKING);
            pass_sessions(2);
            assert_eq!(Session::validators(), [1, 2, 3, 4, 8]);
        });
}

#[test]
fn who_has_nothing_of_its_own_left_leaves_a_set_that_is_short_of_candidates() {
    TestExt::new(7).set_size(7, 10).execute_with(|| {
        let lose_all = |operators: &[u64]| {
            for operator in operators {
                set_stake(*operator, 0, BACKING);
            }
        };
        // Who has something left, though too little, stays.
        set_stake(4, SELF_BOND / 2, BACKING);
        lose_all(&[5, 6, 7]);
        // Not more at once than finality can do without.
        for left in [vec![1, 2, 3, 4, 7], vec![1, 2, 3, 4]] {
            pass_sessions(1);
            assert!(Session::validators().len() > left.len());
            let queued: Vec<_> = Session::queued_keys().into_iter().map(|(one, _)| one).collect();
            assert_eq!(queued, left);
        }
        lose_all(&[1, 2, 3, 4]);
        pass_sessions(9);
        assert_eq!(Session::validators(), [2, 3, 4]);
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
    proven: bool,
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
        prop::bool::weighted(0.7),
    )
        .prop_map(
            |(own, more, no_keys, in_jail, suspended, chilled, proven)| Given {
                own,
                more,
                has_keys: !no_keys,
                in_jail,
                suspended,
                wants_to: !chilled && !in_jail,
                proven,
            },
        )
}

/// The elected, one after the other: the best of those that are left.
fn naive(candidates: &[(u64, Given)], most: usize) -> BTreeSet<u64> {
    let can = |given: &Given| {
        given.own >= SELF_BOND && given.has_keys && !given.in_jail && !given.suspended && given.wants_to
    };
    let mut left: Vec<_> = candidates.iter().filter(|(_, given)| can(given)).collect();
    let proven = left.iter().filter(|(_, given)| given.proven).count();
    let mut unproven = (proven.min(most) / 10).max(1);
    let mut elected = BTreeSet::new();
    while elected.len() < most {
        left.retain(|(operator, given)| !elected.contains(operator) && (given.proven || unproven > 0));
        let best = left.iter().max_by(|(one, given), (other, than)| {
            let (stake, other_stake) = (given.own + given.more, than.own + than.more);
            stake.cmp(&other_stake).then(other.cmp(one))
        });
        let Some((operator, given)) = best else { break };
        unproven -= usize::from(!given.proven);
        elected.insert(*operator);
    }
    elected
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn the_elected_are_those_of_a_naive_sort(
        candidates in prop::collection::vec(given(), 0..60),
        (min, max) in (1u32..8).prop_flat_map(|min| (Just(min), min..32)),
    ) {
        TestExt::new(2).set_size(min, max).execute_with(|| {
            for operator in [1, 2] {
                assert_ok!(Validators::chill(RuntimeOrigin::signed(operator)));
            }
            let candidates: Vec<_> = (10..).zip(candidates).collect();
            for (operator, given) in &candidates {
                join(*operator, 0);
                set_stake(*operator, given.own, given.own + given.more);
                Candidates::<Test>::mutate(operator, |kept| kept.as_mut().unwrap().proven = given.proven);
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
            let mut expected = naive(&candidates, max as usize);
            if expected.len() < min as usize {
                // Those before them stay beside them, as far as there are places.
                let places = max as usize - expected.len();
                expected.extend([1, 2].into_iter().take(places));
            }
            pass_sessions(2);
            assert_eq!(Session::validators(), expected.into_iter().collect::<Vec<_>>());
        });
    }
}
