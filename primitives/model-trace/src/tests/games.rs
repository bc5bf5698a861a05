//! Whole games about small models: the honest side wins, and the cell is the altered one.

use super::{
    liar::{liar, liar_about, play},
    small::{PROMPT, STOP, Work, cell, claimed, continuation, embed_input, flipped, llama, works, write},
};
use crate::{
    CellReferee, Op, Part, Player, Rows,
    testsuite::{MemoryModel, generation_output},
};
use std::sync::Arc;
use surety_dispute_game::bisection::{BYTES_MAX, Cell, CellValue, Outcome, Reason, Shape, Side, Trace};
use surety_proofs::content_hash;
use surety_types::model::ModelFamily;

pub fn judged(winner: Side) -> Option<Outcome> {
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
    let [work, ..] = works();
    every_cell(&work, 1..2);
}

#[test]
fn a_fault_at_any_cell_of_an_encoders_later_leaves_is_found() {
    let [work, ..] = works();
    every_cell(&work, 2..work.layout.leaves());
}

#[test]
fn a_fault_at_any_cell_up_to_the_first_tokens_state_is_found() {
    let [_, _, work, _] = works();
    every_cell(&work, 2..3);
}

#[test]
fn a_fault_at_any_cell_of_a_decoders_first_chunk_is_found() {
    let [_, work, ..] = works();
    every_cell(&work, 1..4);
}

#[test]
fn a_fault_at_any_cell_of_a_decoders_later_chunks_is_found() {
    let [_, work, ..] = works();
    every_cell(&work, 4..work.layout.leaves());
}

#[test]
fn a_fault_at_any_cell_of_a_decoder_that_norms_its_heads_is_found() {
    let [.., work] = works();
    let plan = work.layout.plan(1, 2).unwrap();
    for op in [Op::NormQuery, Op::NormKey] {
        assert!(plan.number(0, op).is_some());
    }
    every_cell(&work, 1..2);
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
    let [work, ..] = works();
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
            if work.layout.part(leaf) == Some(Part::Input) || leaf + 1 == work.layout.leaves() {
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
    let [work, ..] = works();
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
    let right = continuation(&model, &PROMPT);
    for altered in 0..right.len() {
        let mut tokens = right.clone();
        tokens[altered] = (tokens[altered] + 1) % 24;
        let output = generation_output(&tokens, false);
        // What an honest verifier of this claim has: states of the tokens as claimed, and its own choices.
        let work = claimed(&model, &PROMPT, output.clone());
        let mut honest = work.player();
        let last = work.layout.leaves() - 1;
        let mut lying = liar_about(&honest, last, Rows::blob(output).unwrap());
        let (outcome, found, _) = play(&work.referee(), &mut lying, &mut honest);
        assert_eq!(outcome, judged(Side::Challenger));
        assert_eq!(
            found.map(|cell| (cell.leaf, cell.cell)),
            Some((last, 1 + altered as u32))
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
fn another_input_than_the_tasks_is_lost_and_the_tasks_is_right() {
    for work in works() {
        let mut honest = work.player();
        let mut input = honest.records.rows[0].clone();
        write(&mut input, 0, 4, CellValue::Word([9, 9, 0, 0]));
        let mut lying = liar_about(&honest, 0, input);
        let (outcome, found, _) = play(&work.referee(), &mut lying, &mut honest);
        assert_eq!((outcome, found), (judged(Side::Challenger), None));
        let (outcome, found, _) = play(&work.referee(), &mut honest, &mut lying);
        assert_eq!(outcome, judged(Side::Defender));
        assert_eq!(found.map(|cell| (cell.leaf, cell.cell)), Some((0, 4)));
    }
}

/// Whatever an input holds, every provider reads the same.
#[test]
fn the_works_on_inputs_of_any_bytes_are_disputed_like_any() {
    let [work, ..] = works();
    let inputs: [[u32; 8]; 4] = [
        // No tokens, and ids that there are not; too many tokens, beyond the end.
        [4, 0, 6, u32::MAX, 400, 1, u32::MAX, 3],
        // Where there is nothing at all; in the table.
        [u32::MAX, 2, 0, 6, 1, 1, 1, 1],
        [8, 1, 7, 2, 0, 0, 0, 23],
        [u32::MAX; 8],
    ];
    for words in inputs {
        let input = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        every_cell_of_some(&embed_input(&work.model, input, 2));
    }
}

/// The first row's cells of what is read from the input.
fn every_cell_of_some(work: &Work) {
    let mut honest = work.player();
    for (leaf, length, step, shape) in work.steps() {
        if step > 0 || work.layout.plan(leaf, length).is_none() {
            continue;
        }
        for row in 0..shape.rows {
            let at = cell(&mut honest, (leaf, length, step), &shape, row, 5);
            let wrong = Cell {
                value: flipped(at.value, 3),
                ..at
            };
            both_ways(work, &wrong, &mut honest);
        }
    }
}

/// What is claimed of an end: tokens, whether the last one ends them, and the word that is wrong.
fn wrong_end(model: &Arc<MemoryModel>, tokens: &[u32], stopped: bool) -> u32 {
    let output = generation_output(tokens, stopped);
    let work = claimed(model, &PROMPT, output.clone());
    let mut honest = work.player();
    let last = work.layout.leaves() - 1;
    // It says that all its choices are right.
    let mut lying = liar_about(&honest, last, Rows::blob(output).unwrap());
    let (outcome, found, _) = play(&work.referee(), &mut lying, &mut honest);
    assert_eq!(outcome, judged(Side::Challenger));
    let found = found.unwrap();
    assert_eq!(found.leaf, last);
    found.cell
}

#[test]
fn an_end_that_is_none_is_for_a_block_and_no_committee() {
    let model = model();
    let right = continuation(&model, &PROMPT);
    assert!(!right.contains(&STOP));
    // It is full, and nothing ended it.
    assert_eq!(wrong_end(&model, &right, true), 0);
    // It ends early, whatever is said of it.
    assert_eq!(wrong_end(&model, &right[..2], false), 0);
    assert_eq!(wrong_end(&model, &right[..2], true), 0);
    // It goes on beyond what was asked for.
    let more = [&right[..], &[3]].concat();
    assert_eq!(wrong_end(&model, &more, false), 0);
    let neither = {
        let mut output = generation_output(&right, false);
        output[0] = 2;
        claimed(&model, &PROMPT, output)
    };
    assert_ne!(
        neither.trace.own(),
        neither.trace.claimed.as_ref().unwrap().row(0)
    );
}

#[test]
fn nothing_comes_after_a_token_that_ends() {
    let model = model();
    // A model that always says the same.
    let prompt = PROMPT.adding(3);
    let greedy = super::small::Prompt {
        settings: surety_types::input::Settings {
            temperature_milli: 0,
            ..prompt.settings
        },
        ..prompt
    };
    let first = continuation(&model, &greedy)[0];
    // The same model for which that token is an end.
    let mut facts = claimed(&model, &greedy, generation_output(&[first], true))
        .layout
        .facts()
        .clone();
    facts.stop = vec![first].try_into().unwrap();
    for (tokens, stopped, wrong) in [
        (vec![first], true, None),
        (vec![first], false, Some(0)),
        (vec![first, 5], false, Some(0)),
        (vec![first, 5, 6], false, Some(2)),
        (vec![first, u32::MAX, 0x7fc0_0000], false, Some(2)),
    ] {
        let output = generation_output(&tokens, stopped);
        let facts = crate::TaskFacts {
            output: content_hash(&output),
            units: 3 + tokens.len() as u32,
            ..facts.clone()
        };
        let cut = super::small::fine(ModelFamily::Llama, model.architecture());
        let layout = crate::Layout::with_cut(model.architecture(), facts, cut).unwrap();
        let input = surety_types::input::encode_prompt(
            greedy.tokens,
            &greedy.settings,
            &super::small::bounds(&model),
        );
        let trace = crate::testsuite::MemoryTrace::compute(
            model.clone(),
            &layout,
            input.unwrap(),
            Some(output.clone()),
        );
        let work = Work {
            model: model.clone(),
            layout,
            trace: trace.unwrap(),
        };
        let mut honest = work.player();
        let last = work.layout.leaves() - 1;
        let mut lying = liar_about(&honest, last, Rows::blob(output).unwrap());
        let (outcome, found, _) = play(&work.referee(), &mut lying, &mut honest);
        match wrong {
            None => assert_eq!(outcome.map(|outcome| outcome.reason), Some(Reason::Conceded)),
            Some(word) => {
                assert_eq!(outcome, judged(Side::Challenger), "{tokens:?}");
                assert_eq!(found.map(|cell| (cell.leaf, cell.cell)), Some((last, word)));
            }
        }
    }
}

#[test]
fn other_weights_do_not_count() {
    let [work, ..] = works();
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
