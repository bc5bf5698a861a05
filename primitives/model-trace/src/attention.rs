//! Attention, cell by cell. It is cut so that a cell looks at one block of one row of each of a few steps.

use alloc::borrow::Cow;
use core::ops::Range;

use surety_exact::{
    ArithmeticError, BLOCK, HEAD_MAX, Head, Turns, attention_cell, blocks, dot, exp, largest_score,
    quantize_heads, quantize_weights, rms_norm_cell, rms_norm_scale, rotate_pair, score_cell, sum,
};
use surety_types::model::ModelFamily;

use crate::{
    compute::{Found, Halt, Work, byte_of, number},
    inputs::Inputs,
    plan::Heads,
    steps::Op,
    tensors::{InLayer, Tensor},
};
use surety_dispute_game::bisection::CellValue;

/// A quantized head that was asked for.
struct ReadHead<'a> {
    q: Cow<'a, [i16]>,
    scale: f32,
}

impl ReadHead<'_> {
    fn as_head(&self) -> Head<'_> {
        Head {
            q: &self.q,
            scale: self.scale,
        }
    }
}

impl<'a, I: Inputs<'a>> Work<'_, '_, I> {
    /// A query's or key's number, normed: it depends on its head alone.
    #[allow(
        clippy::arithmetic_side_effects,
        reason = "dimensions that divide are at least 1 in a layout"
    )]
    pub fn norm_head(&mut self, of: Op, by: InLayer, cell: u32) -> Found<I::Error> {
        let dims = self.plan.dims();
        let place = cell % dims.head_dim;
        let start = cell - place;
        let from = self.plan.source(self.step.layer, of);
        let head = self.numbers(from, self.row, start..start.saturating_add(dims.head_dim))?;
        let value = *head.get(place as usize).ok_or(ArithmeticError::Shape)?;
        let weight = self.of_vector(self.tensor(by), place)?;
        Ok(rms_norm_cell(value, rms_norm_scale(&head, dims.epsilon)?, weight))
    }

    /// What is turned by its position.
    fn unturned(&self) -> Op {
        match (self.step.op, self.plan.family()) {
            (Op::RotateQuery, ModelFamily::Qwen3) => Op::NormQuery,
            (Op::RotateQuery, _) => Op::Query,
            (_, ModelFamily::Qwen3) => Op::NormKey,
            _ => Op::Key,
        }
    }

    /// A query's or key's number, turned by its position.
    #[allow(
        clippy::arithmetic_side_effects,
        reason = "dimensions that divide are at least 1 in a layout"
    )]
    pub fn rotate(&mut self, cell: u32) -> Found<I::Error> {
        let of = self.unturned();
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

    /// A byte of a quantized head, or its scale: it depends on that head alone.
    #[allow(
        clippy::arithmetic_side_effects,
        reason = "dimensions that divide are at least 1 in a layout"
    )]
    pub fn quantize_head(&mut self, cell: u32) -> Result<CellValue, Halt<I::Error>> {
        let (dims, family) = (self.plan.dims(), self.plan.family());
        let (of, values) = match (self.step.op, family) {
            (Op::QuantQuery, ModelFamily::Bert) => (Op::Query, dims.queries),
            (Op::QuantQuery, ModelFamily::Llama | ModelFamily::Qwen3) => (Op::RotateQuery, dims.queries),
            (Op::QuantKey, ModelFamily::Bert) => (Op::Key, dims.keys),
            (Op::QuantKey, ModelFamily::Llama | ModelFamily::Qwen3) => (Op::RotateKey, dims.keys),
            _ => (Op::Value, dims.keys),
        };
        let (value, scale) = (cell / 2, cell.checked_sub(values.saturating_mul(2)));
        let start = scale
            .unwrap_or(value / dims.head_dim)
            .saturating_mul(dims.head_dim);
        let from = self.plan.source(self.step.layer, of);
        let head = self.numbers(from, self.row, start..start.saturating_add(dims.head_dim))?;
        let (mut q, mut found) = ([0; HEAD_MAX], [0.0]);
        let q = q.get_mut(..head.len()).ok_or(ArithmeticError::Shape)?;
        quantize_heads(&head, head.len(), q, &mut found)?;
        match (scale, found) {
            (Some(_), [scale]) => Ok(number(scale)),
            (None, _) => byte_of(q.get((value - start) as usize).copied(), cell),
        }
    }

    /// One head of a position.
    fn head(&mut self, at: Heads, head: u32) -> Result<ReadHead<'a>, Halt<I::Error>> {
        let width = self.plan.dims().head_dim;
        let start = at.first.saturating_add(head.saturating_mul(width));
        let q = self.quanta(Some(at.from), at.row, start..start.saturating_add(width))?;
        let scale = self.number(Some(at.from), at.row, at.scales.saturating_add(head))?;
        Ok(ReadHead { q, scale })
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
        let query = Heads {
            from: self
                .plan
                .source(layer, Op::QuantQuery)
                .ok_or(ArithmeticError::Shape)?,
            row: self.row,
            first: 0,
            scales: 0,
        };
        let query = self.head(query, head)?;
        let key = self
            .plan
            .cached(layer, position, true)
            .ok_or(ArithmeticError::Shape)?;
        let key = self.head(key, head / dims.group)?;
        Ok(score_cell(query.as_head(), key.as_head(), dims.scale))
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

    /// Those positions of a block that the row sees; nothing where it sees none.
    fn seen(&self, block: u32) -> Option<Range<u32>> {
        let start = block.saturating_mul(BLOCK as u32);
        let end = start
            .saturating_add(BLOCK as u32)
            .min(self.plan.visible(self.row));
        (start < end).then_some(start..end)
    }

    /// The head of a cell of `[heads][B]`, and those positions of its block that the row sees.
    #[allow(
        clippy::arithmetic_side_effects,
        reason = "dimensions that divide are at least 1 in a layout"
    )]
    fn head_and_block(&self, cell: u32) -> (u32, Option<Range<u32>>) {
        let blocks = self.plan.blocks().max(1);
        (cell / blocks, self.seen(cell % blocks))
    }

    /// A head's numbers at some positions, in a row of `[heads][P]`.
    fn at_positions(
        &mut self,
        op: Op,
        head: u32,
        positions: &Range<u32>,
    ) -> Result<Cow<'a, [f32]>, Halt<I::Error>> {
        let first = head.saturating_mul(self.plan.positions().end);
        let words = first.saturating_add(positions.start)..first.saturating_add(positions.end);
        let from = self.plan.source(self.step.layer, op);
        self.numbers(from, self.row, words)
    }

    pub fn maximum(&mut self, cell: u32) -> Found<I::Error> {
        let (head, Some(seen)) = self.head_and_block(cell) else {
            return Ok(0.0);
        };
        Ok(largest_score(&self.at_positions(Op::Scores, head, &seen)?)?)
    }

    #[allow(clippy::arithmetic_side_effects, reason = "a block has positions")]
    pub fn exponential(&mut self, cell: u32) -> Found<I::Error> {
        let (head, Some(position)) = self.head_and_position(cell) else {
            return Ok(0.0);
        };
        let score = self.one(Op::Scores, cell)?;
        let block = head.saturating_mul(self.plan.blocks());
        let largest = self.one(Op::Maxima, block.saturating_add(position / BLOCK as u32))?;
        Ok(exp(score - largest))
    }

    pub fn total(&mut self, cell: u32) -> Found<I::Error> {
        let (head, Some(seen)) = self.head_and_block(cell) else {
            return Ok(0.0);
        };
        Ok(sum(&self.at_positions(Op::Exps, head, &seen)?))
    }

    /// The row is a head of values, the cell the position.
    pub fn value_scale(&mut self, position: u32) -> Found<I::Error> {
        let value = self.plan.cached(self.step.layer, position, false);
        let value = value.ok_or(ArithmeticError::Shape)?;
        self.number(Some(value.from), value.row, value.scales.saturating_add(self.row))
    }

    /// The row is the number of a value, the cell a byte of a position's.
    pub fn value_column(&mut self, cell: u32) -> Result<CellValue, Halt<I::Error>> {
        let position = cell / 2;
        if position >= self.plan.positions().end {
            return Ok(CellValue::Byte(0));
        }
        let value = self.plan.cached(self.step.layer, position, false);
        let value = value.ok_or(ArithmeticError::Shape)?;
        let at = value.first.saturating_add(self.row);
        let found = self.quanta(Some(value.from), value.row, at..at.saturating_add(1))?;
        byte_of(found.first().copied(), cell)
    }

    /// A byte of a weight, or a scale: it depends on its block alone.
    #[allow(
        clippy::arithmetic_side_effects,
        reason = "dimensions that divide are at least 1 in a layout"
    )]
    pub fn quantize_weight(&mut self, cell: u32) -> Result<CellValue, Halt<I::Error>> {
        let (dims, even, value) = (self.plan.dims(), self.plan.even(), cell / 2);
        let scale = cell.checked_sub(dims.heads.saturating_mul(even).saturating_mul(2));
        let position = value % even;
        let (head, seen) = match scale {
            Some(scale) => self.head_and_block(scale),
            None => (value / even, self.seen(position / BLOCK as u32)),
        };
        let Some(seen) = seen.filter(|seen| scale.is_some() || position < seen.end) else {
            return Ok(match scale {
                Some(_) => number(0.0),
                None => CellValue::Byte(0),
            });
        };
        let place = (position % BLOCK as u32) as usize;
        let exponentials = self.at_positions(Op::Exps, head, &seen)?;
        let from = self.plan.source(self.step.layer, Op::ValueScales);
        let scales = self.numbers(from, head / dims.group, seen)?;
        let mut q = [0; BLOCK];
        let q = q.get_mut(..exponentials.len()).ok_or(ArithmeticError::Shape)?;
        let found = quantize_weights(&exponentials, &scales, q)?;
        match scale {
            Some(_) => Ok(number(found)),
            None => byte_of(q.get(place).copied(), cell),
        }
    }

    /// What a block has of a column.
    #[allow(
        clippy::arithmetic_side_effects,
        reason = "dimensions that divide are at least 1 in a layout"
    )]
    pub fn partial(&mut self, cell: u32) -> Found<I::Error> {
        let (column, Some(seen)) = self.head_and_block(cell) else {
            return Ok(0.0);
        };
        let (dims, layer, blocks) = (self.plan.dims(), self.step.layer, self.plan.blocks());
        let (head, place) = (column / dims.head_dim, column % dims.head_dim);
        let block = head
            .saturating_mul(blocks)
            .saturating_add(seen.start / BLOCK as u32);
        let even = self.plan.even();
        let first = head.saturating_mul(even).saturating_add(seen.start);
        let from = self.plan.source(layer, Op::QuantWeights);
        let weights = self.quanta(from, self.row, first..first.saturating_add(seen.len() as u32))?;
        let scale = self.number(from, self.row, block)?;
        let values = self.plan.source(layer, Op::ValuesTransposed);
        let of_values = (head / dims.group)
            .saturating_mul(dims.head_dim)
            .saturating_add(place);
        let values = self.quanta(values, of_values, seen)?;
        Ok(dot(&weights, &values) as f32 * scale)
    }

    #[allow(
        clippy::arithmetic_side_effects,
        reason = "dimensions that divide are at least 1 in a layout"
    )]
    pub fn attention(&mut self, cell: u32) -> Found<I::Error> {
        let (layer, all) = (self.step.layer, self.plan.blocks());
        let count = blocks(self.plan.visible(self.row) as usize) as u32;
        let head = cell / self.plan.dims().head_dim;
        let mut of_blocks = |op, row_of: u32| {
            let first = row_of.saturating_mul(all);
            let from = self.plan.source(layer, op);
            self.numbers(from, self.row, first..first.saturating_add(count))
        };
        let largest = of_blocks(Op::Maxima, head)?;
        let totals = of_blocks(Op::Totals, head)?;
        let partials = of_blocks(Op::Partials, cell)?;
        Ok(attention_cell(&largest, &totals, &partials)?)
    }
}
