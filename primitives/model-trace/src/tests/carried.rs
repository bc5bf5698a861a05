//! Games about traces that are wrong in one place, and follow from that in all others.

use super::{
    games::judged,
    liar::play,
    small::{Work, cell, flipped, works, write},
};
use crate::{Op, Player, Rows, execute::execute_step, testsuite::MemoryTrace};
use surety_dispute_game::bisection::{Cell, Shape, Side};
use surety_exact::mean_pool;
use surety_types::model::Pooling;

#[test]
fn a_fault_that_everything_after_it_was_computed_from_is_found() {
    for work in works() {
        let mut honest = work.player();
        let mut stood = 0;
        for (number, (leaf, length, step, shape)) in work.steps().into_iter().enumerate() {
            if work.layout.plan(leaf, length).is_none() {
                continue;
            }
            let (row, place) = (number as u32 % shape.rows, number as u32 * 7 % shape.cells());
            let at = cell(&mut honest, (leaf, length, step), &shape, row, place);
            // A bit that makes a difference further on, most of the time, and leaves numbers finite.
            let wrong = Cell {
                value: flipped(at.value, 22),
                ..at
            };
            let mut lying = carried_on(&work, &mut honest, leaf, |computed, rows| {
                if computed == step {
                    write(rows, row, place, wrong.value);
                }
            });
            if lying.records.leaves == honest.records.leaves {
                continue;
            }
            stood += 1;
            let (outcome, found, _) = play(&work.referee(), &mut lying, &mut honest);
            assert_eq!((outcome, found), (judged(Side::Challenger), Some(wrong)));
            let (outcome, ..) = play(&work.referee(), &mut honest, &mut lying);
            assert_eq!(outcome, judged(Side::Defender), "{wrong:?}");
        }
        assert!(stood > 40, "{stood}");
    }
}

/// The trace of a machine that computed something of a leaf wrongly, and everything else rightly from there:
/// `alter` is given each of the leaf's steps.
fn carried_on(
    work: &Work,
    honest: &mut Player<MemoryTrace>,
    wrong: u32,
    alter: impl Fn(u32, &mut Rows),
) -> Player<MemoryTrace> {
    honest.unfold(wrong).unwrap();
    let mut lying = honest.clone();
    for leaf in wrong..work.layout.leaves() - 1 {
        let length = lying.length(leaf).unwrap();
        let plan = work.layout.plan(leaf, length).unwrap();
        let mut steps: Vec<Rows> = Vec::new();
        for step in 0..plan.steps() {
            let mut rows = execute_step(&plan, step, &steps, &lying.records).unwrap();
            if leaf == wrong {
                alter(step, &mut rows);
            }
            steps.push(rows);
        }
        if leaf == wrong {
            let unfolded = lying.unfolded.as_mut().unwrap();
            unfolded.digests.rows = steps.iter().map(Rows::digests).collect();
            let roots = unfolded.digests.rows.iter();
            unfolded.digests.steps = roots
                .map(|rows| surety_proofs::merkle_root(rows.iter().copied()))
                .collect();
            unfolded.steps = steps.clone();
        }
        let record = steps.pop().unwrap();
        lying.records.leaves[leaf as usize] = record.leaf();
        lying.records.rows[leaf as usize] = record;
    }
    lying
}

#[test]
fn whoever_takes_the_mean_for_the_first_token_or_the_other_way_round_is_convicted() {
    let [mean, _, first, _] = works();
    for work in [mean, first] {
        let mut honest = work.player();
        // The item of three tokens, and the stride that ends in its vector.
        let leaf = 2;
        let length = honest.length(leaf).unwrap();
        let plan = work.layout.plan(leaf, length).unwrap();
        let [sum, mean] = [Op::Sum, Op::Mean].map(|op| plan.number(1, op).unwrap());
        honest.unfold(leaf).unwrap();
        let states = &honest.unfolded.as_ref().unwrap().steps[sum as usize];
        let states: Vec<&[f32]> = (0..length).map(|row| states.numbers(row).unwrap()).collect();
        let other = match work.layout.architecture().pooling {
            Pooling::Mean => 1,
            Pooling::First => states.len(),
        };
        let mut values = vec![0.0; states[0].len()];
        mean_pool(&states[..other].concat(), &mut values).unwrap();
        let pooled = Rows::Real {
            width: values.len() as u32,
            values,
        };
        let mut lying = carried_on(&work, &mut honest, leaf, |step, rows| {
            if step == mean {
                *rows = pooled.clone();
            }
        });
        let (outcome, found, _) = play(&work.referee(), &mut lying, &mut honest);
        assert_eq!(outcome, judged(Side::Challenger));
        assert_eq!(found.map(|cell| (cell.leaf, cell.step)), Some((leaf, mean)));
        let (outcome, ..) = play(&work.referee(), &mut honest, &mut lying);
        assert_eq!(outcome, judged(Side::Defender));
    }
}

#[test]
fn whoever_leaves_the_norm_of_heads_out_is_convicted() {
    let [.., work] = works();
    let mut honest = work.player();
    let leaf = 1;
    let length = honest.length(leaf).unwrap();
    let plan = work.layout.plan(leaf, length).unwrap();
    for ops in [[Op::Query, Op::NormQuery], [Op::Key, Op::NormKey]] {
        let [of, norm] = ops.map(|op| plan.number(0, op).unwrap());
        honest.unfold(leaf).unwrap();
        let plain = honest.unfolded.as_ref().unwrap().steps[of as usize].clone();
        let mut lying = carried_on(&work, &mut honest, leaf, |step, rows| {
            if step == norm {
                *rows = plain.clone();
            }
        });
        let (outcome, found, _) = play(&work.referee(), &mut lying, &mut honest);
        assert_eq!(outcome, judged(Side::Challenger));
        assert_eq!(found.map(|cell| (cell.leaf, cell.step)), Some((leaf, norm)));
        let (outcome, ..) = play(&work.referee(), &mut honest, &mut lying);
        assert_eq!(outcome, judged(Side::Defender));
    }
}
