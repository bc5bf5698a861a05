//! What counts of what was shown, and for how long.

use frame_support::assert_ok;
use surety_gpu_proofs::GRACE_ROUNDS;
use surety_pallet_test_kit::MockStake;
use surety_types::traits::StashClosed;

use crate::{Commitments, Measurements, RoundsOver, mock::*};

#[test]
fn a_newcomer_that_misses_a_round_has_nothing_until_the_next() {
    TestExt::new().provider(1).execute_with(|| {
        pass_round(&[1]);
        assert!(GpuProofs::measured(1).is_some());
        pass_round(&[]);
        assert_eq!(GpuProofs::measured(1), None);
        pass_round(&[1]);
        assert!(GpuProofs::measured(1).is_some());
    });
}

#[test]
fn who_has_passed_eight_rounds_may_miss_one() {
    TestExt::new().provider(1).execute_with(|| {
        for _ in 0..GRACE_ROUNDS {
            pass_round(&[1]);
        }
        pass_round(&[]);
        assert_eq!(GpuProofs::measured(1).map(|view| view.rounds_missed), Some(1));
        pass_round(&[]);
        assert_eq!(GpuProofs::measured(1), None);
    });
}

/// A device that two names use in turns.
#[test]
fn names_that_take_turns_count_half_of_the_time() {
    TestExt::new().provider(1).provider(2).execute_with(|| {
        let mut counted = 0;
        for round in 0..20 {
            pass_round(&[1 + round % 2]);
            counted += [1, 2]
                .iter()
                .filter(|name| GpuProofs::measured(**name).is_some())
                .count();
        }
        assert_eq!(counted, 20);
    });
}

#[test]
fn a_round_in_which_the_chain_was_too_slow_costs_nobody_anything() {
    TestExt::new().provider(1).execute_with(|| {
        pass_round(&[1]);
        for _ in 0..3 {
            begin_round();
            NowMs::set(NowMs::get() + 60_000);
            pass_until_over();
        }
        assert!(GpuProofs::measured(1).is_some());
    });
}

/// Who passes in it may not miss the next for that.
#[test]
fn a_round_that_does_not_count_gives_nobody_a_round_that_it_may_miss() {
    TestExt::new().provider(1).execute_with(|| {
        let entropy = begin_round();
        let made = make(1, entropy, 8);
        commit(1, entropy, &made);
        NowMs::set(NowMs::get() + 60_000);
        let samples = pass_until_drawn();
        assert_ok!(GpuProofs::open_run(signed(1), shown(1, &made, samples)));
        pass_until_over();
        assert_eq!(RoundsOver::<Test>::get(), 0);
        assert!(GpuProofs::measured(1).is_some());
        pass_round(&[]);
        assert_eq!(GpuProofs::measured(1), None);
    });
}

/// Sending nothing is a missed deadline. What cannot be shown was made up.
#[test]
fn who_commits_and_shows_nothing_has_failed_whatever_it_has_shown_before() {
    TestExt::new().provider(1).execute_with(|| {
        for _ in 0..GRACE_ROUNDS {
            pass_round(&[1]);
        }
        let entropy = begin_round();
        commit(1, entropy, &make(1, entropy, 8));
        assert!(GpuProofs::measured(1).is_some(), "there is still time");
        pass_until_drawn();
        assert!(GpuProofs::measured(1).is_some(), "there is still time");
        pass_until_over();
        assert_eq!(GpuProofs::measured(1), None);

        // It begins anew: nothing of before counts while it has shown nothing.
        let entropy = begin_round();
        assert_eq!(GpuProofs::measured(1), None);
        commit(1, entropy, &make(1, entropy, 8));
        assert_eq!(GpuProofs::measured(1), None);
        pass_until_over();
        pass_round(&[1]);
        assert!(GpuProofs::measured(1).is_some());
        pass_round(&[]);
        assert_eq!(GpuProofs::measured(1), None);
    });
}

#[test]
fn nothing_is_kept_of_a_stash_that_has_left() {
    TestExt::new().provider(1).execute_with(|| {
        pass_round(&[1]);
        let entropy = begin_round();
        commit(1, entropy, &make(1, entropy, 8));
        MockStake::remove(1);
        GpuProofs::closed(&1);
        assert!(!Commitments::<Test>::contains_key(1) && !Measurements::<Test>::contains_key(1));
    });
}
