//! Attention, cell by cell. It is cut so that a cell looks at one row of each of a few steps.

use alloc::borrow::Cow;

use surety_exact::{ArithmeticError, Turns, exp, largest_score, mixed_cell, rotate_pair, score_cell, sum};
use surety_types::model::ModelFamily;

use crate::{
    compute::{Found, Halt, Work},
    inputs::Inputs,
    steps::Op,
    tensors::Tensor,
};

impl<'a, I: Inputs<'a>> Work<'_, '_, I> {
    /// A query's or key's number, turned by its position.
    #[allow(
        clippy::arithmetic_side_effects,
        reason = "dimensions that divide are at least 1 in a layout"
    )]
    pub fn rotate(&mut self, of: Op, cell: u32) -> Found<I::Error> {
        let half = (self.plan.dims().head_dim / 2).max(1);
        let position = self.plan.positions().start.saturating_add(self.row);
        // Pair `i` of a head is its numbers `i` and `i + half`.
        let (head, place) = (cell / (2 * half), cell % (2 * half));
        let pair = place % half;
        let low = head.saturating_mul(2 * half).saturating_add(pair);
        let (a, b) = (self.one(of, low)?, self.one(of, low.saturating_add(half))?);
        let table = self.weights(Tensor::Turns, 0)?;
        let (turns, _) = table.q.as_chunks::<8>();
        let bytes = turns.get(pair as usize).ok_or(ArithmeticError::Shape)?;
        let turns = Turns(u64::from_le_bytes(bytes.map(|byte| byte.to_le_bytes()[0])));
        let (low, high) = rotate_pair(a, b, turns.at(position));
        Ok(if place < half { low } else { high })
    }

    /// The head of a cell of `[heads][P]`, and its position; no position where the row does not see it.
    #[allow(
        clippy::arithmetic_side_effects,
        reason = "dimensions that divide are at least 1 in a layout"
    )]
    fn head_and_position(&self, cell: u32) -> (u32, Option<u32>) {
        let seen = self.plan.positions().end.max(1);
        let position = cell % seen;
        (
            cell / seen,
            (position < self.plan.visible(self.row)).then_some(position),
        )
    }

    #[allow(
        clippy::arithmetic_side_effects,
        reason = "dimensions that divide are at least 1 in a layout"
    )]
    pub fn score(&mut self, cell: u32) -> Found<I::Error> {
        let (head, Some(position)) = self.head_and_position(cell) else {
            return Ok(0.0);
        };
        let (dims, layer) = (self.plan.dims(), self.step.layer);
        let width = dims.head_dim;
        let query = match self.plan.family() {
            ModelFamily::Bert => Op::Query,
            ModelFamily::Llama => Op::RotateQuery,
        };
        let start = head.saturating_mul(width);
        let from = self.plan.source(layer, query);
        let query = self.numbers(from, self.row, start..start.saturating_add(width))?;
        let (from, row, first) = self
            .plan
            .cached(layer, position, true)
            .ok_or(ArithmeticError::Shape)?;
        let start = first.saturating_add((head / dims.group).saturating_mul(width));
        let key = self.numbers(Some(from), row, start..start.saturating_add(width))?;
        if key.len() == query.len() {
            Ok(score_cell(
                &query,
                |d| key.get(d).copied().unwrap_or_default(),
                dims.scale,
            ))
        } else {
            Err(ArithmeticError::Shape.into())
        }
    }

    /// Those of a head's numbers in a row of `[heads][P]` that the row sees.
    fn seen(&mut self, op: Op, head: u32) -> Result<Cow<'a, [f32]>, Halt<I::Error>> {
        let start = head.saturating_mul(self.plan.positions().end);
        let end = start.saturating_add(self.plan.visible(self.row));
        let from = self.plan.source(self.step.layer, op);
        self.numbers(from, self.row, start..end)
    }

    pub fn exponential(&mut self, cell: u32) -> Found<I::Error> {
        let (head, Some(position)) = self.head_and_position(cell) else {
            return Ok(0.0);
        };
        let scores = self.seen(Op::Scores, head)?;
        let largest = largest_score(&scores)?;
        let score = scores.get(position as usize).ok_or(ArithmeticError::Shape)?;
        Ok(exp(score - largest))
    }

    pub fn total(&mut self, head: u32) -> Found<I::Error> {
        Ok(sum(&self.seen(Op::Exps, head)?))
    }

    /// The row is the number of a value, the cell the position.
    pub fn value_column(&mut self, position: u32) -> Found<I::Error> {
        let cached = self.plan.cached(self.step.layer, position, false);
        let (from, row, first) = cached.ok_or(ArithmeticError::Shape)?;
        self.number(Some(from), row, first.saturating_add(self.row))
    }

    #[allow(
        clippy::arithmetic_side_effects,
        reason = "dimensions that divide are at least 1 in a layout"
    )]
    pub fn attention(&mut self, cell: u32) -> Found<I::Error> {
        let (dims, layer) = (self.plan.dims(), self.step.layer);
        let (head, place) = (cell / dims.head_dim, cell % dims.head_dim);
        let weights = self.seen(Op::Exps, head)?;
        let total = self.one(Op::Totals, head)?;
        let column = (head / dims.group)
            .saturating_mul(dims.head_dim)
            .saturating_add(place);
        let from = self.plan.source(layer, Op::ValuesTransposed);
        let values = self.numbers(from, column, 0..self.plan.visible(self.row))?;
        if values.len() != weights.len() {
            return Err(ArithmeticError::Shape.into());
        }
        let mixed = mixed_cell(&weights, |j| values.get(j).copied().unwrap_or_default(), total);
        if mixed.is_finite() {
            Ok(mixed)
        } else {
            Err(ArithmeticError::NotFinite.into())
        }
    }
}
