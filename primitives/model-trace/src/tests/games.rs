//! Whole games about small models: the honest side wins, and the cell is the altered one.

use super::{
    liar::{liar, liar_about, play},
    small::{PROMPT, TEXT, Work, cell, claimed, continuation, flipped, llama, works, write},
};
use crate::{
    CellReferee, Part, Player, Rows,
    execute::execute_step,
    testsuite::{MemoryModel, generation_output},
};
use std::sync::Arc;
use surety_dispute_game::bisection::{BYTES_MAX, Cell, CellValue, Outcome, Reason, Shape, Side, Trace};
use surety_proofs::content_hash;
use surety_types::model::ModelFamily;

fn judged(winner: Side) -> Option<Outcome> {
    let reason = Reason::Judged;
    Some(Outcome { winner, reason })
}

fn both_ways(work: &Work, wrong: &Cell, honest: &mut Player<crate::testsuite::MemoryTrace>) {
    let referee = work.referee();
    let mut lying = liar(honest, wrong);
    let (outcome, found, bytes) = play(&referee, &mut lying, honest);
    assert_eq!((outcome, found), (judged(Side::Challenger), Some(*wrong)));
    assert!(bytes <= BYTES_MAX);
    let (outcome, found, bytes) = play(&referee, honest, &mut lying);
    assert_eq!(outcome, judged(Side::Defender), "{wrong:?}");
    let found = found.unwrap();
    assert_eq!(
        (found.leaf, found.step, found.row, found.cell),
        (wrong.leaf, wrong.step, wrong.row, wrong.cell)
    );
    assert!(bytes <= BYTES_MAX);
}

fn every_cell(work: &Work, leaves: std::ops::Range<u32>) {
    let mut honest = work.player();
    let mut count = 0;
    for (leaf, length, step, shape) in work.steps() {
        if !leaves.contains(&leaf) || work.layout.plan(leaf, length).is_none() {
            continue;
        }
        for row in 0..shape.rows {
            for place in 0..shape.cells() {
                let at = cell(&mut honest, (leaf, length, step), &shape, row, place);
                count += 1;
                let wrong = Cell {
                    value: flipped(at.value, count * 5),
                    ..at
                };
                both_ways(work, &wrong, &mut honest);
            }
        }
    }
    assert!(count > 0);
}

#[test]
fn a_fault_at_any_cell_of_an_encoders_first_stride_is_found() {
    let [work, _] = works();
    every_cell(&work, 1..2);
}

#[test]
fn a_fault_at_any_cell_of_an_encoders_later_leaves_is_found() {
    let [work, _] = works();
    every_cell(&work, 2..work.layout.leaves());
}

#[test]
fn a_fault_at_any_cell_of_a_decoders_first_chunk_is_found() {
    let [_, work] = works();
    every_cell(&work, 1..4);
}

#[test]
fn a_fault_at_any_cell_of_a_decoders_later_chunks_is_found() {
    let [_, work] = works();
    every_cell(&work, 4..work.layout.leaves());
}

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
            let mut lying = carried_on(&work, &mut honest, &wrong);
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

/// The trace of a machine that computed one cell wrongly, and everything else rightly from there.
fn carried_on(
    work: &Work,
    honest: &mut Player<crate::testsuite::MemoryTrace>,
    wrong: &Cell,
) -> Player<crate::testsuite::MemoryTrace> {
    honest.unfold(wrong.leaf).unwrap();
    let mut lying = honest.clone();
    for leaf in wrong.leaf..work.layout.leaves() - 1 {
        let length = lying.length(leaf).unwrap();
        let plan = work.layout.plan(leaf, length).unwrap();
        let mut steps: Vec<Rows> = Vec::new();
        for step in 0..plan.steps() {
            let mut rows = execute_step(&plan, step, &steps, &lying.records).unwrap();
            if (leaf, step) == (wrong.leaf, wrong.step) {
                write(&mut rows, wrong.row, wrong.cell, wrong.value);
            }
            steps.push(rows);
        }
        if leaf == wrong.leaf {
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

/// The same work, delivered with another output.
fn delivered(work: &Work, output: &[u8]) -> Work {
    let mut facts = work.layout.facts().clone();
    facts.output = content_hash(output);
    Work {
        model: work.model.clone(),
        layout: crate::Layout::with_cut(work.layout.architecture(), facts, *work.layout.cut()).unwrap(),
        trace: work.trace.clone(),
    }
}

#[test]
fn an_altered_embedding_is_found_wherever_it_is() {
    let [work, _] = works();
    let last = work.layout.leaves() - 1;
    let own = work.trace.own().unwrap();
    for byte in 0..own.len() {
        let mut output = own.clone();
        output[byte] ^= 0x10;
        let work = delivered(&work, &output);
        let mut honest = work.player();
        let mut lying = liar_about(&honest, last, Rows::blob(output).unwrap());
        let (outcome, found, _) = play(&work.referee(), &mut lying, &mut honest);
        assert_eq!(outcome, judged(Side::Challenger), "{byte}");
        assert_eq!(
            found.map(|cell| (cell.leaf, cell.cell)),
            Some((last, byte as u32 / 4))
        );
    }
}

#[test]
fn a_player_that_was_made_to_lie_is_convicted_of_just_that() {
    for work in works() {
        for (leaf, _, step, shape) in work.steps() {
            if work.layout.part(leaf) == Some(Part::Tokens) || leaf + 1 == work.layout.leaves() {
                continue;
            }
            let (row, byte) = (shape.rows - 1, shape.row_bytes - 1);
            let (mut lying, mut honest) = (work.player(), work.player());
            lying.alter(leaf, step, row, byte).unwrap();
            let (outcome, found, _) = play(&work.referee(), &mut lying, &mut honest);
            assert_eq!(outcome, judged(Side::Challenger), "leaf {leaf}, step {step}");
            let found = found.map(|cell| (cell.leaf, cell.step, cell.row, cell.cell));
            let cell = shape.cell_at(byte).unwrap();
            assert_eq!(found, Some((leaf, step, row, cell)));
        }
    }
}

#[test]
fn a_player_that_was_made_to_deliver_something_else_is_convicted_of_just_that() {
    let [work, _] = works();
    let last = work.layout.leaves() - 1;
    let mut output = work.trace.own().unwrap();
    let byte = output.len() - 4;
    output[byte] ^= 1;
    let work = delivered(&work, &output);
    let (mut lying, mut honest) = (work.player(), work.player());
    lying.alter(last, 0, 0, byte as u32).unwrap();
    let (outcome, found, _) = play(&work.referee(), &mut lying, &mut honest);
    assert_eq!(outcome, judged(Side::Challenger));
    assert_eq!(
        found.map(|cell| (cell.leaf, cell.cell)),
        Some((last, byte as u32 / 4))
    );
}

#[test]
fn an_output_that_is_not_the_claimed_one_is_no_defence() {
    for work in works() {
        let mut honest = work.player();
        let last = work.layout.leaves() - 1;
        let mut lying = liar_about(&honest, last, Rows::blob(vec![1; 64]).unwrap());
        let (outcome, found, _) = play(&work.referee(), &mut lying, &mut honest);
        assert_eq!((outcome, found), (judged(Side::Challenger), None));
        let (outcome, ..) = play(&work.referee(), &mut honest, &mut lying);
        assert_eq!(outcome, judged(Side::Defender));
    }
}

#[test]
fn the_right_output_is_no_defence_of_another_one() {
    for right in works() {
        let wrong = delivered(&right, b"something else");
        let (mut lying, mut honest) = (right.player(), wrong.player());
        let (outcome, found, _) = play(&wrong.referee(), &mut lying, &mut honest);
        assert_eq!((outcome, found), (judged(Side::Challenger), None));
    }
}

fn model() -> Arc<MemoryModel> {
    Arc::new(MemoryModel::arbitrary(ModelFamily::Llama, llama(), 2))
}

#[test]
fn an_altered_token_is_found_in_the_output_or_in_the_choices() {
    let model = model();
    let right = continuation(&model, &PROMPT, 4);
    for altered in 0..right.len() {
        let mut tokens = right.clone();
        tokens[altered] = (tokens[altered] + 1) % 24;
        let output = generation_output(3, &tokens, false, TEXT);
        // What an honest verifier of this claim has: states of the tokens as claimed, and its own choices.
        let work = claimed(&model, &PROMPT, output.clone());
        let mut honest = work.player();
        let last = work.layout.leaves() - 1;
        let mut lying = liar_about(&honest, last, Rows::blob(output).unwrap());
        let (outcome, found, _) = play(&work.referee(), &mut lying, &mut honest);
        assert_eq!(outcome, judged(Side::Challenger));
        assert_eq!(
            found.map(|cell| (cell.leaf, cell.cell)),
            Some((last, 3 + altered as u32))
        );

        // It may also say that it was chosen.
        let position = PROMPT.tokens.len() as u32 + altered as u32 - 1;
        let leaf = work
            .layout
            .leaf_of(Part::SampledTokens { chunk: position / 2 })
            .unwrap();
        let length = honest.length(leaf).unwrap();
        let step = work.layout.steps(leaf, length).unwrap() - 1;
        let wrong = Cell {
            leaf,
            length,
            step,
            row: position % 2,
            cell: 0,
            value: CellValue::Word(tokens[altered].to_le_bytes()),
        };
        let mut lying = liar(&mut honest, &wrong);
        let (outcome, found, _) = play(&work.referee(), &mut lying, &mut honest);
        assert_eq!((outcome, found), (judged(Side::Challenger), Some(wrong)));
    }
}

#[test]
fn tokens_and_text_are_for_a_committee() {
    let [embed, generate] = works();
    for (work, at) in [(&embed, 4), (&generate, 40)] {
        let mut honest = work.player();
        let mut tokens = honest.records.rows[0].clone();
        write(&mut tokens, 0, at / 4, CellValue::Word([9, 9, 0, 0]));
        let mut lying = liar_about(&honest, 0, tokens);
        let (outcome, found, _) = play(&work.referee(), &mut lying, &mut honest);
        assert_eq!((outcome, found.map(|cell| cell.cell)), (None, Some(at / 4)));
    }
    let mut output = generate.trace.own().unwrap();
    let last = output.len() - 1;
    for byte in [8, last] {
        output[byte] ^= 1;
        let work = delivered(&generate, &output);
        let mut honest = work.player();
        let leaf = work.layout.leaves() - 1;
        let mut lying = liar_about(&honest, leaf, Rows::blob(output.clone()).unwrap());
        let (outcome, found, _) = play(&work.referee(), &mut lying, &mut honest);
        assert_eq!(
            (outcome, found.map(|cell| cell.cell)),
            (None, Some(byte as u32 / 4))
        );
        output[byte] ^= 1;
    }
}

#[test]
fn other_weights_do_not_count() {
    let [work, _] = works();
    let other = MemoryModel::arbitrary(ModelFamily::Bert, super::small::bert(), 99);
    let mut honest = work.player();
    let at = (1, honest.length(1).unwrap(), 4);
    let shape = work.layout.rows(at.0, at.1, at.2).unwrap();
    let at = cell(&mut honest, at, &shape, 0, 3);
    let roots = surety_dispute_game::bisection::Roots {
        trace: work.trace.root(),
        steps: Some(surety_proofs::merkle_root(honest.steps(1).unwrap().into_iter())),
    };
    let opening = honest.open(&at).unwrap();
    let referee = CellReferee::new(&work.layout, other.weight_root());
    let judged = surety_dispute_game::bisection::Referee::judge(&referee, &at, &roots, &opening);
    assert_eq!(judged, surety_dispute_game::bisection::Judgement::Unproven);
}
