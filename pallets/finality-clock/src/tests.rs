//! The invariants are checked after every test.
#![allow(clippy::unwrap_used)]

use frame_support::{assert_noop, assert_ok, inherent::ProvideInherent, traits::Get};
use proptest::prelude::*;
use sp_runtime::DispatchError;

use crate::{
    inherent::InherentError, mock::*, Call, Elapsed, Error, Finalised, Running, AT_ONCE_MAX, NOTES_MAX,
};

fn shown() -> u64 {
    <FinalityClock as Get<u64>>::get()
}

#[test]
fn the_clock_shows_what_honest_authors_see() {
    execute(|| {
        for now in 3..100 {
            assert_ok!(note_in(now, now - 2));
        }
        // The eleventh of the last 21 notes.
        assert_eq!(shown(), 87);
    });
}

#[test]
fn the_clock_stands_still_while_finality_does() {
    execute(|| {
        for now in 3..60 {
            assert_ok!(note_in(now, now.min(30) - 2));
        }
        assert_eq!(shown(), 28);
    });
}

#[test]
fn the_clock_never_goes_back() {
    execute(|| {
        for now in 3..60 {
            assert_ok!(note_in(now, now - 2));
        }
        let before = shown();
        for now in 60..100 {
            assert_ok!(note_in(now, 0));
        }
        assert_eq!(shown(), before);
    });
}

#[test]
fn what_becomes_final_in_one_go_after_a_standstill_takes_hardly_any_time() {
    execute(|| {
        let running = || <Running<Test> as Get<u64>>::get();
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
fn a_block_is_noted_once_and_never_above_itself() {
    execute(|| {
        assert_ok!(note_in(5, 4));
        assert_noop!(note_in(5, 4), Error::<Test>::AlreadyNoted);
        System::set_block_number(6);
        assert_noop!(note_in(6, 6), Error::<Test>::NotBelow);
        assert_noop!(note_in(6, 7), Error::<Test>::NotBelow);
        assert_ok!(note_in(6, 5));
    });
}

#[test]
fn nobody_can_sign_a_note() {
    execute(|| {
        assert_noop!(
            FinalityClock::note(RuntimeOrigin::signed(1), 0),
            DispatchError::BadOrigin
        );
    });
}

#[test]
fn an_author_notes_what_its_node_knows() {
    execute(|| {
        System::set_block_number(10);
        let noted = FinalityClock::create_inherent(&inherents(7)).unwrap();
        assert_eq!(noted, Call::note { finalised: 7 });
        assert!(FinalityClock::is_inherent(&noted));
        assert_ok!(FinalityClock::check_inherent(&noted, &inherents(3)));
        // A node that is asked for an old block, or says nothing.
        assert_eq!(FinalityClock::create_inherent(&inherents(10)), None);
        assert_eq!(FinalityClock::create_inherent(&Default::default()), None);
    });
}

#[test]
fn a_block_with_a_note_from_the_future_is_not_valid() {
    execute(|| {
        // On the state of the parent, block 9.
        System::set_block_number(9);
        let check = |finalised| {
            let call = Call::note { finalised };
            FinalityClock::check_inherent(&call, &inherents(finalised))
        };
        assert_eq!(check(9), Ok(()));
        assert_eq!(check(10), Err(InherentError::NotBelow));
    });
}

#[test]
fn try_state_notices_a_clock_that_is_off() {
    execute(|| {
        assert_ok!(note_in(9, 5));
        for wrong in [4, 9] {
            Finalised::<Test>::put(wrong);
            assert!(FinalityClock::do_try_state().is_err());
        }
        Finalised::<Test>::put(5);
    });
}

proptest! {
    #[test]
    fn a_minority_of_liars_cannot_move_the_clock_away_from_honest_sight(
        liars in prop::collection::btree_set(0..NOTES_MAX as u64, 0..=NOTES_MAX as usize / 2), seed in any::<u64>(),
    ) {
        execute(|| {
            let (first, last) = (100, 100 + u64::from(NOTES_MAX) * 3);
            for now in first..last {
                let honest = now - 3;
                let lie = seed.wrapping_mul(now) % now;
                let finalised = if liars.contains(&(now % u64::from(NOTES_MAX))) { lie } else { honest };
                assert_ok!(note_in(now, finalised));
            }
            // Between the oldest and the newest honest sight of the last 21 blocks.
            assert!(shown() >= last - u64::from(NOTES_MAX) - 3, "{}", shown());
            assert!(shown() <= last - 1 - 3, "{}", shown());
        });
    }
}
