//! The referee and single cells.

use std::sync::Arc;

use surety_types::model::{Architecture, ModelFamily};

use super::small::{
    PROMPT, Prompt, bert, cell, claimed, continuation, embed, flipped, generate, llama, works,
};
use crate::{
    Part,
    testsuite::{MemoryModel, generation_output},
};
use surety_dispute_game::bisection::{Judgement, Referee, Roots, Shape, Trace, opening_room};
use surety_proofs::merkle_root;

#[test]
fn every_cell_holds_and_no_other_value_of_it_does() {
    for work in works() {
        let mut player = work.player();
        let referee = work.referee();
        let (mut cells, mut longest) = (0u32, 0);
        for (leaf, length, step, shape) in work.steps() {
            let part = work.layout.part(leaf).unwrap();
            let steps = match part {
                Part::Input | Part::Output => None,
                _ => Some(merkle_root(player.steps(leaf).unwrap().into_iter())),
            };
            let roots = Roots {
                trace: work.trace.root(),
                steps,
            };
            let room = opening_room(&work.layout, leaf, length, step).unwrap();
            for row in 0..shape.rows {
                for place in 0..shape.cells() {
                    let at = cell(&mut player, (leaf, length, step), &shape, row, place);
                    let opening = player.open(&at).unwrap();
                    let judged = referee.judge(&at, &roots, &opening);
                    assert_eq!(judged, Judgement::Holds, "{part:?} {at:?}");
                    let most = referee.opening_bytes(&at).unwrap();
                    assert!(
                        opening.len() as u32 <= most && most <= room,
                        "{at:?} {most} {room}"
                    );
                    longest = longest.max(most);
                    cells += 1;
                    if part == Part::Input {
                        // There is no other one: a game about it is over before.
                        continue;
                    }
                    let every = if cells % 97 == 0 { 1 } else { 13 };
                    for bit in (cells % every..32).step_by(every as usize) {
                        let wrong = surety_dispute_game::bisection::Cell {
                            value: flipped(at.value, bit),
                            ..at
                        };
                        assert_eq!(
                            referee.judge(&wrong, &roots, &opening),
                            Judgement::Refuted,
                            "{wrong:?}"
                        );
                    }
                }
            }
        }
        println!("{cells} cells, openings of at most {longest} bytes");
        assert!(cells > 5_000, "{cells}");
    }
}

#[test]
fn work_of_one_token_and_of_one_position_more_than_a_chunk_holds() {
    let one = embed(bert(), &[&[2]]);
    let long = generate(ModelFamily::Llama, llama(), 2);
    for work in [one, long] {
        let mut player = work.player();
        let referee = work.referee();
        for (leaf, length, step, shape) in work.steps() {
            if work.layout.plan(leaf, length).is_none() {
                continue;
            }
            let roots = Roots {
                trace: work.trace.root(),
                steps: Some(merkle_root(player.steps(leaf).unwrap().into_iter())),
            };
            let last = (shape.rows - 1, shape.cells() - 1);
            for (row, place) in [(0, 0), last] {
                let at = cell(&mut player, (leaf, length, step), &shape, row, place);
                let opening = player.open(&at).unwrap();
                assert_eq!(referee.judge(&at, &roots, &opening), Judgement::Holds, "{at:?}");
            }
        }
    }
}

#[test]
fn cells_of_a_second_block_of_positions_hold_and_no_other_value_of_them_does() {
    let tokens: Vec<u32> = (0..131).map(|i| i * i % 24).collect();
    let architecture = |small: Architecture| Architecture {
        positions: 140,
        ..small
    };
    let model = Arc::new(MemoryModel::arbitrary(
        ModelFamily::Llama,
        architecture(llama()),
        2,
    ));
    let prompt = Prompt {
        tokens: &tokens,
        ..PROMPT.adding(2)
    };
    let output = generation_output(&continuation(&model, &prompt), false);
    let decoder = claimed(&model, &prompt, output);
    for work in [embed(architecture(bert()), &[&tokens]), decoder] {
        let (mut player, referee) = (work.player(), work.referee());
        // The last chunk of a decoder.
        let first = work.layout.leaves().saturating_sub(4);
        for (leaf, length, step, shape) in work.steps() {
            if leaf < first || work.layout.plan(leaf, length).is_none() {
                continue;
            }
            let roots = Roots {
                trace: work.trace.root(),
                steps: Some(merkle_root(player.steps(leaf).unwrap().into_iter())),
            };
            let places = (0..shape.cells()).step_by((shape.cells() as usize / 23).max(1));
            for place in places.chain([shape.cells() - 1]) {
                let row = place % shape.rows;
                let at = cell(&mut player, (leaf, length, step), &shape, row, place);
                let opening = player.open(&at).unwrap();
                assert_eq!(referee.judge(&at, &roots, &opening), Judgement::Holds, "{at:?}");
                let wrong = surety_dispute_game::bisection::Cell {
                    value: flipped(at.value, 3),
                    ..at
                };
                assert_eq!(
                    referee.judge(&wrong, &roots, &opening),
                    Judgement::Refuted,
                    "{wrong:?}"
                );
            }
        }
    }
}
