//! Computations without a value.

use std::sync::Arc;

use sp_core::H256;
use surety_types::model::{Architecture, ModelFamily};

use super::{
    liar::play,
    small::{PROMPT, Work, bert, claimed, continuation, embed_with, llama, qwen3},
};
use crate::{
    InLayer, Part, Player, Records, Rows, Tensor,
    testsuite::{MemoryModel, MemoryTrace, generation_output},
};
use surety_dispute_game::bisection::{Cell, Outcome, Reason, Shape, Side, Trace};
use surety_proofs::{content_hash, merkle_root};

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
            .take(last)
            .skip(1);
        for (rows, leaf) in computed {
            *leaf = merkle_root(rows.digests().into_iter());
        }
        if let Some(claimed) = &player.records.claimed {
            player.records.leaves[last] = content_hash(&claimed.row(0).unwrap());
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
        if leaf == 0 || self.0.layout().part(leaf) == Some(Part::Output) {
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

/// A model in which a row of weights makes more than a norm can take.
fn overflowing(family: ModelFamily, architecture: Architecture, place: (Tensor, u32)) -> Arc<MemoryModel> {
    let model = MemoryModel::arbitrary(family, architecture, 2);
    let same = MemoryModel::new(family, model.architecture().clone(), |tensor, row| {
        let mut found = model.row(tensor, row).unwrap().clone();
        if (tensor, row) == place {
            found.scales.to_mut().fill(1e30);
        }
        found
    });
    Arc::new(same)
}

#[test]
fn a_norm_that_overflows_has_no_value() {
    let model = overflowing(ModelFamily::Bert, bert(), (Tensor::Tokens, 23));
    let work = embed_with(&model, &[&[1, 2], &[3, 23, 4]]);
    let found = convicted(&work);
    // Once one token has no value, nothing of its item has one.
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
fn a_head_whose_norm_overflows_has_no_value() {
    // Bytes are 0 where there is no value, so that it is the state behind them where there is no number.
    let state = 2 * 2 * 2 * 12;
    for part in [InLayer::Query, InLayer::Key] {
        let model = overflowing(ModelFamily::Qwen3, qwen3(), (Tensor::Layer(0, part), 3));
        let work = claimed(&model, &PROMPT, generation_output(&[1, 2, 3, 4], false));
        let found = convicted(&work);
        let expected = Part::Rows {
            sequence: 0,
            chunk: 0,
            stride: 0,
        };
        assert_eq!(work.layout.part(found.leaf), Some(expected));
        let plan = work.layout.plan(found.leaf, found.length).unwrap();
        assert_eq!(
            (found.step + 1, found.row, found.cell),
            (plan.steps(), 0, state),
            "{part:?}"
        );
    }
}

#[test]
fn a_claimed_token_that_there_is_not_is_read_as_the_last() {
    let model = Arc::new(MemoryModel::arbitrary(ModelFamily::Llama, llama(), 2));
    let mut tokens = continuation(&model, &PROMPT.adding(3));
    let trace = |tokens: &[u32]| claimed(&model, &PROMPT, generation_output(tokens, false)).trace;
    tokens[1] = 23;
    let last = trace(&tokens);
    tokens[1] = 4_000_000;
    let unknown = trace(&tokens);
    assert_eq!(last.leaves, unknown.leaves);
}
