//! The first states, and what becomes of the last ones.

use surety_exact::{ArithmeticError, GROUP, l2_norm, mean_cell};
use surety_types::{
    input::{ITEM_WORDS, SETTINGS_WORDS, WORD_BYTES, known_id},
    model::ModelFamily,
};

use crate::{
    compute::{Found, Halt, Work},
    inputs::{Inputs, Source},
    output::GENERATION_WORDS,
    steps::Op,
    tensors::Tensor,
};

impl<'a, I: Inputs<'a>> Work<'_, '_, I> {
    /// The token of this row; one that the model does not have is read as its last.
    fn token(&mut self) -> Result<u32, Halt<I::Error>> {
        let position = self.plan.positions().start.saturating_add(self.row);
        let token = match self.plan.family() {
            ModelFamily::Bert => self.of_item(position)?,
            ModelFamily::Llama | ModelFamily::Qwen3 => self.fed(position)?,
        };
        Ok(known_id(token, self.plan.dims().vocabulary))
    }

    /// The token at a position of prompt and continuation: the latter's are what the output says.
    fn fed(&mut self, position: u32) -> Result<u32, Halt<I::Error>> {
        match position.checked_sub(self.plan.layout.prompt()) {
            None => self.integer(Source::Input, position.saturating_add(SETTINGS_WORDS)),
            Some(index) => self.integer(Source::Output, index.saturating_add(GENERATION_WORDS)),
        }
    }

    /// The token at a position of an item: where it begins, the table says.
    fn of_item(&mut self, position: u32) -> Result<u32, Halt<I::Error>> {
        let entry = self.plan.sequence().saturating_mul(ITEM_WORDS);
        let table = self.integers(Source::Input, 0, entry..entry.saturating_add(ITEM_WORDS))?;
        let start = *table.first().ok_or(ArithmeticError::Shape)?;
        let word = start.saturating_add(position);
        if word >= self.plan.layout.facts.input_bytes / WORD_BYTES {
            // There is nothing to show.
            return Ok(0);
        }
        self.integer(Source::Input, word)
    }

    fn integer(&mut self, from: Source, word: u32) -> Result<u32, Halt<I::Error>> {
        let integers = self.integers(from, 0, word..word.saturating_add(1))?;
        Ok(integers.first().copied().ok_or(ArithmeticError::Shape)?)
    }

    /// One number of a table's row.
    fn look_up(&mut self, table: Tensor, row: u32, cell: u32) -> Found<I::Error> {
        let row = self.weights(table, row)?;
        let cell = cell as usize;
        match (row.q.get(cell), row.scales.get(cell / GROUP)) {
            (Some(q), Some(scale)) => Ok(f32::from(*q) * scale),
            _ => Err(ArithmeticError::Shape.into()),
        }
    }

    pub fn embed(&mut self, cell: u32) -> Found<I::Error> {
        let token = self.token()?;
        self.look_up(Tensor::Tokens, token, cell)
    }

    /// Token, position, segment; all are of the first segment.
    pub fn embed_add(&mut self, cell: u32) -> Found<I::Error> {
        let token = self.token()?;
        let word = self.look_up(Tensor::Tokens, token, cell)?;
        let position = self.look_up(Tensor::Positions, self.row, cell)?;
        let kind = self.look_up(Tensor::Types, 0, cell)?;
        Ok((word + position) + kind)
    }

    /// The row is the number of a state, the cell the position.
    pub fn state_column(&mut self, position: u32) -> Found<I::Error> {
        let from = self.plan.source(self.step.layer, Op::Sum);
        self.number(from, position, self.row)
    }

    pub fn mean(&mut self, cell: u32) -> Found<I::Error> {
        let from = self.plan.source(self.step.layer, Op::StatesTransposed);
        let column = self.numbers(from, cell, 0..self.plan.pooled())?;
        Ok(mean_cell(&column)?)
    }

    pub fn pool(&mut self, cell: u32) -> Found<I::Error> {
        let from = self.plan.source(self.step.layer, Op::Mean);
        let mean = self.numbers(from, 0, 0..self.plan.dims().width)?;
        let value = mean.get(cell as usize).ok_or(ArithmeticError::Shape)?;
        Ok(value / l2_norm(&mean)?)
    }
}
