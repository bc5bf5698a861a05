//! The invariant is checked after every test.
#![allow(clippy::unwrap_used)]

use surety_types::traits::BlockEntropy as _;

use crate::{KEPT, Outputs, Pallet, Recorded, mock::*};

fn first_after(block: u64) -> Option<u64> {
    let (output, of) = BlockEntropy::first_after(block)?;
    assert_eq!(output, output_of(of));
    Some(of)
}

#[test]
fn the_first_block_after_counts_from_the_moment_its_successor_begins() {
    execute(|| {
        for now in 1..40 {
            assert_eq!(first_after(now), None);
            assert_eq!(
                first_after(now - 1),
                None,
                "the output of block {now} is its author's"
            );
            pass(true);
            assert_eq!(first_after(now - 1), Some(now));
        }
    });
}

#[test]
fn whoever_asks_later_gets_the_same() {
    execute(|| {
        for _ in 0..10 {
            pass(true);
        }
        let asked = first_after(5);
        for _ in 0..KEPT - 10 {
            pass(true);
            assert_eq!(first_after(5), asked);
        }
        assert_eq!(asked, Some(6));
    });
}

#[test]
fn a_block_without_an_output_is_passed_over() {
    execute(|| {
        for now in 1..100 {
            pass(now % 7 < 3);
        }
        for block in 0..90 {
            let next = (block + 1..).find(|later| later % 7 < 3);
            assert_eq!(first_after(block), next);
        }
    });
}

#[test]
fn the_last_output_of_an_older_block_is_not_that_of_a_younger_one() {
    execute(|| {
        pass(true);
        for _ in 0..5 {
            pass(false);
        }
        assert_eq!(first_after(0), Some(1));
        assert_eq!(first_after(1), None);
    });
}

#[test]
fn when_a_block_is_forgotten_the_oldest_that_is_known_counts() {
    execute(|| {
        let blocks = u64::from(KEPT) + 50;
        for _ in 0..blocks {
            pass(true);
        }
        assert_eq!(Outputs::<Test>::iter().count(), KEPT as usize);
        assert_eq!(first_after(50), Some(51));
        assert_eq!(first_after(3), Some(51));
        assert_eq!(first_after(blocks - 1), Some(blocks));
        assert_eq!(first_after(blocks), None);
    });
}

#[test]
fn without_any_output_there_is_none() {
    execute(|| {
        for _ in 0..5 {
            pass(false);
        }
        assert_eq!(first_after(0), None);
    });
}

#[test]
fn what_breaks_the_invariant_is_noticed() {
    let breaks: [(&str, fn()); 4] = [
        ("missing", || Recorded::<Test>::mutate(|number| *number += 1)),
        ("out of order", || {
            Outputs::<Test>::mutate(1, |kept| kept.as_mut().unwrap().1 = 1)
        }),
        ("to come", || {
            Outputs::<Test>::mutate(4, |kept| kept.as_mut().unwrap().1 = 6)
        }),
        ("nobody finds", || {
            Outputs::<Test>::insert(9, (output_of(9), 9));
        }),
    ];
    for (what, break_it) in breaks {
        execute(|| {
            for _ in 0..5 {
                pass(true);
            }
            let before: Vec<_> = Outputs::<Test>::iter().collect();
            let recorded = Recorded::<Test>::get();
            break_it();
            let noticed = Pallet::<Test>::do_try_state().unwrap_err();
            let said = format!("{noticed:?}");
            assert!(said.contains("ENTROPY-1") && said.contains(what), "{said}");
            let _ = Outputs::<Test>::clear(u32::MAX, None);
            before
                .into_iter()
                .for_each(|(place, kept)| Outputs::<Test>::insert(place, kept));
            Recorded::<Test>::put(recorded);
        });
    }
}
