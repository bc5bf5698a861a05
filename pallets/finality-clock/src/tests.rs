//! The invariants are checked after every test.
#![allow(clippy::unwrap_used)]

use frame_support::{
    assert_err, assert_noop, assert_ok,
    inherent::ProvideInherent,
    traits::{Get, Hooks},
};
use proptest::prelude::*;
use sp_runtime::{DispatchError, traits::BlockNumberProvider};

use crate::{
    AT_ONCE_MAX, Call, Elapsed, Error, Finalized, Notes, Progress, Progressed, Running,
    inherent::InherentError, mock::*,
};

fn shown() -> u64 {
    <FinalityClock as Get<u64>>::get()
}

fn running() -> u64 {
    Running::<Test>::current_block_number()
}

fn progress() -> u64 {
    Progress::<Test>::current_block_number()
}

#[test]
fn the_clock_shows_what_most_authors_have_seen() {
    execute(21, || {
        for now in 3..100 {
            assert_ok!(note_in(now, now - 2));
        }
        // Eleven of 21 have noted that much or more.
        assert_eq!(shown(), 87);
    });
}

#[test]
fn the_clock_stands_still_while_finality_does() {
    execute(21, || {
        for now in 3..60 {
            assert_ok!(note_in(now, now.min(30) - 2));
        }
        assert_eq!(shown(), 28);
    });
}

#[test]
fn the_clock_never_goes_back() {
    execute(3, || {
        for now in 3..60 {
            assert_ok!(note_in(now, now - 2));
        }
        let before = (shown(), running());
        for now in 60..100 {
            assert_ok!(note_in(now, 0));
        }
        assert_eq!((shown(), running()), before);
    });
}

#[test]
fn what_becomes_final_in_one_go_after_a_standstill_takes_hardly_any_time() {
    execute(21, || {
        for now in 3..60 {
            assert_ok!(note_in(now, now - 2));
        }
        let (before, height) = (running(), shown());
        for now in 60..1_000 {
            assert_ok!(note_in(now, 57));
        }
        for now in 1_000..1_030 {
            assert_ok!(note_in(now, now - 2));
        }
        assert!(shown() > height + 900);
        // The notes from before the standstill, the jump, and the blocks since.
        assert!(running() - before < 50, "{}", running() - before);
        assert!(running() - before >= u64::from(AT_ONCE_MAX));
        assert_eq!(running(), Elapsed::<Test>::get());
    });
}

#[test]
fn an_author_has_one_note_however_many_blocks_it_makes() {
    execute(3, || {
        for now in 3..30 {
            assert_ok!(note_in(now, now - 2));
        }
        let before = shown();
        AuthorNow::set(Some(1));
        for now in 30..100 {
            assert_ok!(note_in(now, now - 1));
        }
        assert_eq!(Notes::<Test>::get().len(), 3);
        // What the other two have noted last, the lower of them first.
        assert!(shown() <= before + 1, "{} {before}", shown());
    });
}

#[test]
fn notes_of_those_who_make_no_blocks_any_more_do_not_count() {
    execute(4, || {
        for now in 3..30 {
            assert_ok!(note_in(now, now - 2));
        }
        // Three of them go. Their old notes would hold the clock back for ever.
        Authorities::set(vec![3, 10, 11]);
        for now in 30..40 {
            assert_ok!(note_in(now, now - 2));
        }
        assert!(
            Notes::<Test>::get()
                .keys()
                .all(|author| [3, 10, 11].contains(author))
        );
        assert!(shown() >= 35, "{}", shown());
        // Whoever is none of them is not listened to, and does not spoil its block.
        AuthorNow::set(Some(77));
        let before = (shown(), Notes::<Test>::get());
        assert_ok!(note_in(40, 39));
        assert_eq!((shown(), Notes::<Test>::get()), before);
    });
}

#[test]
fn no_time_passes_in_a_full_block_and_none_is_made_up_for() {
    execute(1, || {
        for now in 3..20 {
            assert_ok!(note_in(now, now - 2));
        }
        let before = (shown(), running());
        IsFull::set(true);
        for now in 20..40 {
            assert_ok!(note_in(now, now - 2));
        }
        assert_eq!((shown(), running()), (before.0 + 20, before.1));
        IsFull::set(false);
        assert_ok!(note_in(40, 38));
        assert_eq!(running(), before.1 + 1);
    });
}

#[test]
fn finality_progresses_in_full_blocks_too_and_no_faster_after_a_standstill() {
    execute(1, || {
        for now in 3..20 {
            assert_ok!(note_in(now, now - 2));
        }
        let before = running();
        assert_eq!(progress(), before);
        IsFull::set(true);
        for now in 20..40 {
            assert_ok!(note_in(now, now - 2));
        }
        assert_eq!((progress(), running()), (before + 20, before));
        for now in 40..200 {
            assert_ok!(note_in(now, 37));
        }
        assert_eq!(progress(), before + 20);
        assert_ok!(note_in(200, 198));
        assert_eq!(progress(), before + 20 + u64::from(AT_ONCE_MAX));
    });
}

#[test]
fn the_running_clock_shows_the_same_throughout_a_block() {
    execute(1, || {
        assert_ok!(note_in(5, 3));
        let before = running();
        System::set_block_number(6);
        assert_ok!(FinalityClock::note(RuntimeOrigin::none(), 4));
        assert_eq!(running(), before);
        FinalityClock::on_finalize(6);
        assert_eq!(running(), before + 1);
        // A block without a note leaves it as it is.
        System::set_block_number(7);
        FinalityClock::on_finalize(7);
        assert_eq!(running(), before + 1);
    });
}

#[test]
fn a_block_is_noted_once_and_never_above_itself() {
    execute(1, || {
        assert_ok!(note_in(5, 4));
        assert_noop!(
            FinalityClock::note(RuntimeOrigin::none(), 4),
            Error::<Test>::AlreadyNoted
        );
        System::set_block_number(6);
        for above in [6, 7] {
            assert_noop!(
                FinalityClock::note(RuntimeOrigin::none(), above),
                Error::<Test>::NotBelow
            );
        }
        assert_ok!(note_in(6, 5));
    });
}

#[test]
fn nobody_can_sign_a_note() {
    execute(1, || {
        assert_noop!(
            FinalityClock::note(RuntimeOrigin::signed(1), 0),
            DispatchError::BadOrigin
        );
    });
}

#[test]
fn an_author_notes_what_its_node_knows() {
    execute(1, || {
        System::set_block_number(10);
        let noted = FinalityClock::create_inherent(&inherents(7)).unwrap();
        assert_eq!(noted, Call::note { finalized: 7 });
        assert!(FinalityClock::is_inherent(&noted));
        assert_ok!(FinalityClock::check_inherent(&noted, &inherents(3)));
        // A node that is asked for an old block, or says nothing.
        assert_eq!(FinalityClock::create_inherent(&inherents(10)), None);
        assert_eq!(FinalityClock::create_inherent(&Default::default()), None);
    });
}

#[test]
fn a_block_with_a_note_from_the_future_is_not_valid() {
    execute(1, || {
        // On the state of the parent, block 9.
        System::set_block_number(9);
        let check = |finalized| {
            let call = Call::note { finalized };
            FinalityClock::check_inherent(&call, &inherents(finalized))
        };
        assert_eq!(check(9), Ok(()));
        assert_eq!(check(10), Err(InherentError::NotBelow));
    });
}

#[test]
fn try_state_notices_a_clock_that_is_off() {
    execute(1, || {
        assert_ok!(note_in(9, 5));
        assert_ok!(FinalityClock::do_try_state());
        for (wrong, complaint) in [
            (9, "CLOCK-1: the clock is ahead of the chain"),
            (
                4,
                "CLOCK-2: finality has progressed by more blocks than are final",
            ),
        ] {
            Finalized::<Test>::put(wrong);
            assert_err!(FinalityClock::do_try_state(), complaint);
        }
        Finalized::<Test>::put(5);
        Progressed::<Test>::put(4);
        assert_err!(
            FinalityClock::do_try_state(),
            "CLOCK-2: more time has run than finality has progressed"
        );
        Progressed::<Test>::put(5);
        Notes::<Test>::mutate(|notes| notes.iter_mut().for_each(|(_, note)| *note = 9));
        assert_err!(
            FinalityClock::do_try_state(),
            "CLOCK-1: a note is about a block to come"
        );
        Notes::<Test>::mutate(|notes| notes.iter_mut().for_each(|(_, note)| *note = 5));
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whoever makes which block, and whatever half of all authors note.
    #[test]
    fn half_of_the_authors_cannot_move_the_clock_beyond_what_an_honest_one_saw(
        (count, liars) in (1u64..=24).prop_flat_map(|count| {
            (Just(count), prop::collection::btree_set(0..count, 0..=count as usize / 2))
        }),
        turns in prop::collection::vec((any::<u64>(), any::<u64>()), 1..200),
    ) {
        execute(count, || {
            let mut seen = 0;
            for (now, (turn, lie)) in (100..).zip(turns) {
                let author = turn % count;
                AuthorNow::set(Some(author));
                // Finality stops for good at some height.
                let honest = (now - 3).min(180);
                let finalized = if liars.contains(&author) { lie % now } else { honest };
                if !liars.contains(&author) {
                    seen = honest;
                }
                assert_ok!(note_in(now, finalized));
                assert!(shown() <= seen, "{} {seen}", shown());
                assert!(running() <= progress() && progress() <= shown());
            }
        });
    }

    /// Fewer than half: 1 of 3, 1 of 4, 10 of 21; of 2 none, of which finality needs both.
    #[test]
    fn fewer_than_half_of_the_authors_cannot_stop_the_clock_while_finality_runs(
        (count, absent) in (1u64..=24).prop_flat_map(|count| {
            (Just(count), prop::collection::btree_set(0..count, 0..=(count as usize - 1) / 2))
        }),
        seed in any::<u64>(),
    ) {
        execute(count, || {
            let (first, rounds) = (100, 4);
            for now in first..first + count * rounds {
                if !absent.contains(&(now % count)) {
                    assert_ok!(note_in(now, now - 3));
                } else if seed % 2 == 0 {
                    // Says what holds it back most.
                    assert_ok!(note_in(now, 0));
                }
            }
            // Every honest author has noted something in the last round.
            assert!(shown() >= first + count * (rounds - 1) - 3, "{}", shown());
        });
    }
}
