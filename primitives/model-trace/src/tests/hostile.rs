//! Openings that are not what they should be.

use std::sync::LazyLock;

use proptest::prelude::*;

use super::small::{Work, cell, flipped, works};
use crate::Part;
use surety_dispute_game::bisection::{Cell, CellValue, Judgement, Referee, Roots, Trace};
use surety_proofs::merkle_root;

/// A cell, what it is proven from, and its opening.
type Sample = (Cell, Roots, Vec<u8>);

/// One cell of each step: where it is, under which roots, and its opening.
fn samples(work: &Work) -> Vec<Sample> {
    let mut player = work.player();
    let mut all = Vec::new();
    for (leaf, length, step, shape) in work.steps() {
        if work.layout.part(leaf) == Some(Part::Input) {
            continue;
        }
        let steps = work.layout.plan(leaf, length).is_some();
        let roots = Roots {
            trace: work.trace.root(),
            steps: steps.then(|| merkle_root(player.steps(leaf).unwrap().into_iter())),
        };
        let at = cell(
            &mut player,
            (leaf, length, step),
            &shape,
            shape.rows - 1,
            shape.cells() - 1,
        );
        if work.referee().opening_bytes(&at).is_some() {
            let opening = player.open(&at).unwrap();
            all.push((at, roots, opening));
        }
    }
    all
}

#[test]
fn an_altered_opening_proves_nothing() {
    for work in works() {
        let referee = work.referee();
        for (at, roots, opening) in samples(&work) {
            let wrong = Cell {
                value: flipped(at.value, 3),
                ..at
            };
            for byte in 0..opening.len() {
                let mut altered = opening.clone();
                altered[byte] ^= 1 << (byte % 8);
                // How many rows a model's weights have is not for the referee to know: the leaf names its
                // row.
                let judged = referee.judge(&at, &roots, &altered);
                assert!(
                    matches!(judged, Judgement::Unproven | Judgement::Holds),
                    "{at:?} {byte}"
                );
                assert_ne!(referee.judge(&wrong, &roots, &altered), Judgement::Holds);
            }
        }
    }
}

#[test]
fn an_opening_is_neither_shorter_nor_longer() {
    for work in works() {
        let referee = work.referee();
        for (at, roots, opening) in samples(&work) {
            for end in 0..opening.len() {
                assert_eq!(
                    referee.judge(&at, &roots, &opening[..end]),
                    Judgement::Unproven,
                    "{at:?}"
                );
            }
            let longer = [&opening[..], &[0]].concat();
            assert_eq!(referee.judge(&at, &roots, &longer), Judgement::Unproven);
        }
    }
}

#[test]
fn an_opening_is_good_for_its_own_place_alone() {
    for work in works() {
        let (referee, all) = (work.referee(), samples(&work));
        for (at, roots, opening) in &all {
            let elsewhere = Roots {
                trace: roots.trace,
                steps: None,
            };
            if roots.steps.is_some() && referee.judge(at, &elsewhere, opening) == Judgement::Holds {
                // It looks at nothing of its own leaf: a first step, what follows a position of the prompt,
                // or the 0 that makes a row of positions even.
                let chooses = matches!(work.layout.part(at.leaf), Some(Part::SampledTokens { .. }));
                let nothing = at.value == CellValue::Byte(0);
                assert!(at.step < 3 || chooses || nothing, "{at:?}");
            }
            for (other, roots, _) in all.iter().filter(|(other, ..)| other != at) {
                let wrong = Cell {
                    value: flipped(other.value, 9),
                    ..*other
                };
                assert_ne!(referee.judge(&wrong, roots, opening), Judgement::Holds);
            }
        }
    }
}

#[test]
fn places_that_are_not_there_are_no_trouble() {
    for work in works() {
        let referee = work.referee();
        let (_, roots, opening) = samples(&work).swap_remove(5);
        for leaf in [0, 1, 2, 3, 99, u32::MAX] {
            for length in [0, 1, 3, 7, u32::MAX] {
                for place in [0, 1, 50, u32::MAX - 1, u32::MAX] {
                    let at = Cell {
                        leaf,
                        length,
                        step: place,
                        row: place,
                        cell: place,
                        value: CellValue::Word([0; 4]),
                    };
                    assert_ne!(referee.judge(&at, &roots, &opening), Judgement::Holds);
                    let _ = referee.opening_bytes(&at);
                    let _ = referee.opening_bytes(&Cell { step: 1, ..at });
                    let _ = referee.judge(
                        &Cell {
                            step: 4,
                            row: 0,
                            ..at
                        },
                        &roots,
                        &opening,
                    );
                }
            }
        }
    }
}

static SAMPLES: LazyLock<[(Work, Vec<Sample>); 4]> = LazyLock::new(|| {
    works().map(|work| {
        let all = samples(&work);
        (work, all)
    })
});

proptest! {
    #[test]
    fn anything_at_all_is_refused(
        bytes in proptest::collection::vec(any::<u8>(), 0..6000), which in any::<prop::sample::Index>(),
    ) {
        for (work, all) in SAMPLES.iter() {
            let (at, roots, opening) = which.get(all);
            prop_assume!(!opening.is_empty());
            prop_assert_eq!(work.referee().judge(at, roots, &bytes), Judgement::Unproven);
        }
    }
}
