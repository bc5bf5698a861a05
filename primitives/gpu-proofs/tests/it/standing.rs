//! Who keeps what it has shown.

use proptest::{collection::vec, prelude::*};
use surety_gpu_proofs::{GRACE_ROUNDS, Standing};

/// In which rounds what a provider has shown counts when they are over, by whether it passes each, and
/// whether the round counts for who misses it.
fn counted_of(rounds: &[(bool, bool)]) -> Vec<bool> {
    let mut standing: Option<Standing> = None;
    let mut over = 0;
    rounds
        .iter()
        .map(|(passes, is_counted)| {
            if *passes {
                let before = standing.filter(|standing| standing.holds(over));
                standing = Some(Standing::passed(before, over, *is_counted));
            }
            over += u32::from(*is_counted);
            standing.is_some_and(|standing| standing.holds(over))
        })
        .collect()
}

/// The same of rounds that all count.
fn counted(passes: &[bool]) -> Vec<bool> {
    let rounds: Vec<_> = passes.iter().map(|passes| (*passes, true)).collect();
    counted_of(&rounds)
}

#[test]
fn who_passes_always_may_miss_one_round_after_eight_and_then_passes_eight_again() {
    let mut passes = vec![true; 30];
    passes[GRACE_ROUNDS as usize] = false;
    passes[12] = false;
    passes[25] = false;
    let counted = counted(&passes);
    let lost: Vec<_> = (0..30).filter(|round| !counted[*round]).collect();
    assert_eq!(lost, [12]);
}

#[test]
fn who_misses_its_first_rounds_has_nothing_in_them() {
    assert_eq!(counted(&[true, false, true, true]), [true, false, true, true]);
}

#[test]
fn two_rounds_missed_are_one_too_many() {
    let mut passes = vec![true; 20];
    passes[15] = false;
    passes[16] = false;
    let counted = counted(&passes);
    assert!(counted[15] && !counted[16] && counted[17]);
}

#[test]
fn who_passes_a_round_that_does_not_count_may_not_miss_the_next_for_it() {
    let rounds = [
        (true, false),
        (false, true),
        (true, true),
        (true, false),
        (false, true),
    ];
    assert_eq!(counted_of(&rounds), [true, false, true, true, false]);
}

#[test]
fn a_round_that_does_not_count_takes_nothing_from_who_misses_it() {
    let mut rounds = vec![(true, true); GRACE_ROUNDS as usize];
    rounds.extend([
        (false, false),
        (false, false),
        (false, true),
        (false, false),
        (false, true),
    ]);
    let counted = counted_of(&rounds);
    assert_eq!(counted.iter().filter(|counts| **counts).count(), 12);
    assert!(!counted[12]);
}

proptest! {
    /// Otherwise a device would pass for as many as take turns.
    #[test]
    fn nothing_counts_longer_than_it_was_passed_but_for_one_round_in_nine(
        rounds in vec(any::<(bool, bool)>(), 1..200),
    ) {
        let those_that_count = rounds.iter().zip(counted_of(&rounds)).filter(|((_, is_counted), _)| *is_counted);
        let (passed, counts): (Vec<_>, Vec<_>) =
            those_that_count.map(|((passes, _), counts)| (*passes, counts)).unzip();
        let number = |of: &[bool]| of.iter().filter(|is| **is).count();
        let (passed, counts) = (number(&passed), number(&counts));
        prop_assert!(counts <= passed + passed / GRACE_ROUNDS as usize, "{counts} of {passed}");
    }
}
