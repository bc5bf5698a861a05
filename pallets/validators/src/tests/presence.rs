//! Who made its blocks.

use frame_support::{assert_ok, traits::Hooks, weights::Weight};
use proptest::prelude::*;
use surety_types::traits::{MILLIONTHS, Service, ValidatorService};

use crate::{Candidates, ChillReason, Event, mock::*};

fn chilled() -> Vec<u64> {
    let absent = |event| match event {
        RuntimeEvent::Validators(Event::Chilled {
            operator,
            reason: ChillReason::Absent,
        }) => Some(operator),
        _ => None,
    };
    System::events()
        .into_iter()
        .filter_map(|record| absent(record.event))
        .collect()
}

#[test]
fn one_of_four_is_out_after_a_session_without_a_block_and_loses_nothing() {
    TestExt::new(4).session_blocks(150).execute_with(|| {
        Absent::set([3].into());
        pass_sessions(1);
        assert_eq!(chilled(), [3]);
        assert_eq!(Suspended::get(), [3].into());
        assert!(Slashes::get().is_empty() && Jailed::get().is_empty());
        // The next session was planned with it.
        assert_eq!(Session::validators(), [1, 2, 3, 4]);
        pass_sessions(1);
        assert_eq!(Session::validators(), [1, 2, 4]);
        // It has not missed anything when it comes back.
        Suspended::take();
        Absent::take();
        assert_ok!(Validators::validate(RuntimeOrigin::signed(3)));
        pass_sessions(4);
        assert_eq!(Session::validators(), [1, 2, 3, 4]);
        assert_eq!(chilled(), [3]);
    });
}

#[test]
fn one_of_a_hundred_is_out_after_twenty_sessions() {
    TestExt::new(100)
        .session_blocks(150)
        .set_size(4, 100)
        .execute_with(|| {
            let mut random = Random(1);
            Absent::set([42].into());
            pass_drawn_sessions(19, &mut random);
            assert!(chilled().is_empty());
            pass_drawn_sessions(2, &mut random);
            assert_eq!(chilled(), [42]);
        });
}

#[test]
fn one_block_makes_good_for_all_that_was_missed() {
    TestExt::new(10).session_blocks(100).execute_with(|| {
        Absent::set([5].into());
        pass_sessions(2);
        let missed = Candidates::<Test>::get(5).unwrap().missed_millionths;
        assert_eq!(missed, 20 * MILLIONTHS);
        Absent::take();
        pass_sessions(1);
        assert_eq!(Candidates::<Test>::get(5).unwrap().missed_millionths, 0);
        Absent::set([5].into());
        pass_sessions(2);
        assert!(chilled().is_empty());
        pass_sessions(1);
        assert_eq!(chilled(), [5]);
    });
}

#[test]
fn coming_and_going_undoes_no_absence() {
    TestExt::new(10).session_blocks(100).execute_with(|| {
        Absent::set([5].into());
        pass_sessions(2);
        assert_ok!(Validators::chill(RuntimeOrigin::signed(5)));
        assert_ok!(Validators::validate(RuntimeOrigin::signed(5)));
        pass_sessions(1);
        assert_eq!(chilled(), [5]);
    });
}

#[test]
fn a_tenth_of_the_set_and_one_at_least_is_chilled_in_a_session() {
    TestExt::new(30)
        .session_blocks(930)
        .set_size(4, 30)
        .execute_with(|| {
            Absent::set((11..=20).collect());
            // The first three have left the third session.
            for session in 1..=4 {
                pass_sessions(1);
                assert_eq!(chilled().len(), [3, 6, 8, 10][session - 1]);
            }
            // Who has missed as much as others goes in the order of accounts.
            assert_eq!(chilled(), (11..=20).collect::<Vec<_>>());
        });
    TestExt::new(4).session_blocks(150).execute_with(|| {
        // None of the two has made the first block.
        Absent::set([3, 4].into());
        pass_sessions(1);
        assert_eq!(chilled(), [3]);
        pass_sessions(1);
        assert_eq!(chilled(), [3, 4]);
    });
}

#[test]
fn a_session_in_which_finality_stands_still_counts_for_nobody() {
    TestExt::new(4).session_blocks(150).execute_with(|| {
        pass_sessions(1);
        let before = service(1);
        Absent::set([3].into());
        Finalizes::set(false);
        pass_sessions(5);
        assert!(chilled().is_empty());
        // The last session before it counted as it ended.
        let after = service(1);
        assert_eq!(after, before);
        // It is over all the same.
        assert_eq!(EndedSessions::get(), [0, 1, 2, 3, 4, 5]);
        Finalizes::set(true);
        pass_sessions(1);
        assert_eq!(chilled(), [3]);
        assert!(service(1).made > after.made);
    });
}

#[test]
fn service_is_counted_once_and_taken_once() {
    TestExt::new(4).session_blocks(100).execute_with(|| {
        Absent::set([4].into());
        pass_sessions(1);
        let made: Vec<_> = (1..=4).map(|operator| service(operator).made).collect();
        assert_eq!(made.iter().sum::<u32>(), 100);
        assert_eq!(made[3], 0);
        let taken = Validators::take_services();
        assert_eq!(taken.len(), 4);
        for (_, service) in &taken {
            let promised = (service.expected_millionths, service.owed);
            assert_eq!(promised, (25 * MILLIONTHS, BACKING / 1_000));
        }
        assert!(Validators::take_services().is_empty());
    });
}

#[test]
fn what_one_is_owed_is_taken_without_the_others_and_its_blocks_stay() {
    TestExt::new(4).session_blocks(100).execute_with(|| {
        pass_sessions(1);
        let served = service(2);
        assert_eq!(Validators::take_owed(&2), Some(served));
        assert_eq!(served.owed, BACKING / 1_000);
        let left = Service {
            paid: (served.made, served.expected_millionths),
            ..Default::default()
        };
        assert_eq!(service(2), left);
        assert_eq!(Validators::take_owed(&2), None);
        assert!(Present::take().is_empty());
        assert_eq!(service(3).owed, BACKING / 1_000);
    });
}

#[test]
fn whoever_has_what_it_is_owed_taken_early_was_there_no_more_than_it_was() {
    TestExt::new(4).session_blocks(100).execute_with(|| {
        Absent::set([2].into());
        pass_sessions(1);
        Validators::take_owed(&2);
        Absent::set([].into());
        pass_sessions(1);
        Validators::take_services();
        assert!(!Present::get().contains(&2), "{:?}", Present::get());
        assert!(Present::get().contains(&3));
    });
}

#[test]
fn that_it_was_there_is_to_the_credit_of_who_made_nine_tenths_of_what_was_expected() {
    TestExt::new(4).session_blocks(100).execute_with(|| {
        Absent::set([4].into());
        pass_sessions(1);
        Validators::take_services();
        let mut present = Present::take();
        present.sort_unstable();
        assert_eq!(present, [1, 2, 3]);
        // One block is not enough.
        pass_block();
        Absent::set([2, 3, 4].into());
        pass_sessions(1);
        Validators::take_services();
        assert_eq!(Present::take(), [1]);
    });
}

#[test]
fn who_has_no_pool_is_owed_nothing() {
    TestExt::new(3).execute_with(|| {
        Candidates::<Test>::remove(2);
        pass_sessions(1);
        assert_eq!(service(2), Default::default());
        assert!(service(1).owed > 0);
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    /// Of four, of twenty and of a hundred, with some absent: authors are drawn at random, as they are.
    #[test]
    fn who_is_there_is_never_chilled_whatever_is_drawn(
        seed in any::<u64>(),
        (count, absent) in prop_oneof![Just((4u64, 1u64)), Just((20, 3)), Just((100, 12))],
    ) {
        TestExt::new(count).session_blocks(150).set_size(1, 100).execute_with(|| {
            let mut random = Random(seed);
            Absent::set((1..=absent).collect());
            pass_drawn_sessions(60, &mut random);
            let mut chilled = chilled();
            chilled.sort_unstable();
            assert_eq!(chilled, (1..=absent).collect::<Vec<_>>());
        });
    }

    /// No more is expected in all than was made, and no less but for what does not divide.
    #[test]
    fn what_is_expected_of_all_is_what_all_made(seed in any::<u64>(), count in 1u64..40, blocks in 1u64..60) {
        TestExt::new(count).session_blocks(blocks).set_size(1, 40).execute_with(|| {
            pass_drawn_sessions(3, &mut Random(seed));
            let services = Validators::take_services();
            let made: u64 = services.iter().map(|(_, service)| u64::from(service.made)).sum();
            let expected: u64 = services.iter().map(|(_, service)| service.expected_millionths).sum();
            assert_eq!(made, 3 * blocks);
            assert!(expected <= made * MILLIONTHS && expected + 3 * count > made * MILLIONTHS);
        });
    }
}

#[test]
#[should_panic(expected = "in which a day is paid has to fit into a block")]
fn a_session_that_ends_a_day_has_to_fit_into_a_block() {
    TestExt::new(1).execute_with(|| {
        DayWeight::set(Weight::MAX);
        Validators::integrity_test();
    });
}
