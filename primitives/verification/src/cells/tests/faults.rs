//! Computations without a value.

use std::sync::Arc;

use sp_core::H256;
use surety_types::model::ModelFamily;

use super::{
    liar::play,
    small::{bert, claimed, continuation, embed, llama, Work, PROMPT, TEXT},
};
use crate::{
    bisection::{Cell, Outcome, Reason, Shape, Side, Trace},
    cells::{generation_output, MemoryModel, MemoryTrace, Part, Player, Records, Rows},
    merkle_root,
};

/// A defender who records that there is no value, and says that this is one.
struct Shameless(Player<MemoryTrace>);

impl Shameless {
    fn new(work: &Work) -> Self {
        let mut player = work.player();
        let last = work.layout.leaves() as usize - 1;
        let computed = player
            .records
            .rows
            .iter()
            .zip(&mut player.records.leaves)
            .take(last);
        for (rows, leaf) in computed {
            *leaf = merkle_root(rows.digests().into_iter());
        }
        if let Some(claimed) = &player.records.claimed {
            player.records.leaves[last] = claimed.leaf();
        }
        Self(player)
    }
}

impl Trace for Shameless {
    type Error = <Player<MemoryTrace> as Trace>::Error;

    fn leaves(&mut self) -> Result<&[H256], Self::Error> {
        self.0.leaves()
    }

    fn steps(&mut self, leaf: u32) -> Result<Vec<H256>, Self::Error> {
        self.0.unfold(leaf)?;
        let unfolded = self.0.unfolded.as_mut().unwrap();
        unfolded.digests.rows = unfolded.steps.iter().map(Rows::digests).collect();
        let roots = unfolded.digests.rows.iter();
        unfolded.digests.steps = roots.map(|rows| merkle_root(rows.iter().copied())).collect();
        self.0.steps(leaf)
    }

    fn rows(&mut self, leaf: u32, step: u32) -> Result<Vec<H256>, Self::Error> {
        self.0.rows(leaf, step)
    }

    fn row(&mut self, leaf: u32, step: u32, row: u32) -> Result<Vec<u8>, Self::Error> {
        if leaf == 0 {
            return self.0.row(leaf, step, row);
        }
        self.0.unfold(leaf)?;
        let steps = &self.0.unfolded.as_ref().unwrap().steps;
        Ok(steps[step as usize].row(row).unwrap())
    }

    fn open(&mut self, cell: &Cell) -> Result<Vec<u8>, Self::Error> {
        self.0.open(cell)
    }
}

fn convicted(work: &Work) -> Cell {
    let (mut defender, mut honest) = (Shameless::new(work), work.player());
    let (outcome, found, _) = play(&work.referee(), &mut defender, &mut honest);
    let reason = Reason::Judged;
    assert_eq!(
        outcome,
        Some(Outcome {
            winner: Side::Challenger,
            reason
        })
    );
    found.unwrap()
}

#[test]
fn a_token_that_there_is_not_leads_to_nothing() {
    let work = embed(bert(), &[&[1, 2], &[3, 1000, 4]]);
    let found = convicted(&work);
    let expected = Part::Rows {
        sequence: 1,
        chunk: 0,
        stride: 0,
    };
    assert_eq!(work.layout.part(found.leaf), Some(expected));
    assert_eq!((found.row, found.cell), (0, 0));
    // The other item has nothing to do with it.
    let leaf = work.trace.rows(2).unwrap();
    assert_eq!(merkle_root(leaf.digests().into_iter()), leaf.leaf());
}

#[test]
fn a_claimed_token_that_there_is_not_leads_to_nothing() {
    let model = Arc::new(MemoryModel::arbitrary(ModelFamily::Llama, llama(), 2));
    let mut tokens = continuation(&model, &PROMPT, 3);
    tokens[1] = 4_000_000;
    let work = claimed(&model, &PROMPT, generation_output(3, &tokens, false, TEXT));
    let found = convicted(&work);
    // Position 4 is the first of the third chunk.
    let expected = Part::Rows {
        sequence: 0,
        chunk: 2,
        stride: 0,
    };
    assert_eq!(work.layout.part(found.leaf), Some(expected));
}

#[test]
fn an_output_that_ends_early_leads_to_nothing() {
    let model = Arc::new(MemoryModel::arbitrary(ModelFamily::Llama, llama(), 2));
    let tokens = continuation(&model, &PROMPT, 5);
    let mut output = generation_output(3, &tokens, false, "");
    output.truncate(4 * 5);
    let work = claimed(&model, &PROMPT, output);
    let found = convicted(&work);
    let Some(Part::Rows {
        chunk: 2, stride: 0, ..
    }) = work.layout.part(found.leaf)
    else {
        panic!("{found:?}");
    };
    assert_eq!(found.row, 1);
}
