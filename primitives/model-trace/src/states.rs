//! The first states, and what becomes of the last ones.

use surety_exact::{ArithmeticError, GROUP, l2_norm, mean_cell};
use surety_types::model::ModelFamily;

use crate::{
    compute::{Found, Halt, Work},
    given::PROMPT_WORDS,
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
            ModelFamily::Bert => {
                let word = position.saturating_add(1);
                self.integer(Source::Leaf(0), self.plan.sequence(), word)?
            }
            ModelFamily::Llama => self.fed(position)?,
        };
        Ok(token.min(self.plan.dims().vocabulary.saturating_sub(1)))
    }

    /// The token at a position of prompt and continuation: the latter's are what the output says.
    fn fed(&mut self, position: u32) -> Result<u32, Halt<I::Error>> {
        let words = self.integers(Source::Leaf(0), 0, 0..2)?;
        let &[prompt, bytes] = &words[..] else {
            return Err(ArithmeticError::Shape.into());
        };
        let Some(index) = position.checked_sub(prompt) else {
            return self.integer(Source::Leaf(0), 0, position.saturating_add(PROMPT_WORDS));
        };
        let word = index.saturating_add(GENERATION_WORDS);
        self.integer(Source::Output(bytes), 0, word)
    }

    fn integer(&mut self, from: Source, row: u32, word: u32) -> Result<u32, Halt<I::Error>> {
        let end = word.saturating_add(1);
        // An output may be shorter than the claim has it.
        if matches!(from, Source::Output(bytes) if end > bytes / 4) {
            return Err(ArithmeticError::Shape.into());
        }
        let integers = self.integers(from, row, word..end)?;
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
        let rows = self.plan.positions().len() as u32;
        let column = self.numbers(from, cell, 0..rows)?;
        Ok(mean_cell(&column)?)
    }

    pub fn pool(&mut self, cell: u32) -> Found<I::Error> {
        let from = self.plan.source(self.step.layer, Op::Mean);
        let mean = self.numbers(from, 0, 0..self.plan.dims().width)?;
        let value = mean.get(cell as usize).ok_or(ArithmeticError::Shape)?;
        Ok(value / l2_norm(&mean)?)
    }
}
