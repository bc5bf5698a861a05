//! The token that is chosen after a position.

use alloc::vec;

use surety_exact::{ArithmeticError, Sampling, sample};

use crate::{
    compute::{Halt, Work},
    given::PROMPT_WORDS,
    inputs::{Inputs, Source},
    sampling_random,
    steps::Op,
};

impl<'a, I: Inputs<'a>> Work<'_, '_, I> {
    /// The token that follows this row; 0 where the prompt goes on.
    pub fn choose(&mut self) -> Result<u32, Halt<I::Error>> {
        let words = self.integers(Source::Leaf(0), 0, 0..PROMPT_WORDS)?;
        let &[prompt, _, temperature_milli, top_k, top_p_milli, low, high, _] = &words[..] else {
            return Err(ArithmeticError::Shape.into());
        };
        let following = self
            .plan
            .positions()
            .start
            .saturating_add(self.row)
            .saturating_add(1);
        let Some(index) = following.checked_sub(prompt) else {
            return Ok(0);
        };
        let from = self.plan.source(self.step.layer, Op::Logits);
        let logits = self.numbers(from, self.row, 0..self.plan.dims().vocabulary)?;
        let how = Sampling {
            temperature_milli,
            top_k,
            top_p_milli,
        };
        let seed = u64::from(high) << 32 | u64::from(low);
        let random = sampling_random(&self.plan.layout.facts.input, seed, index);
        Ok(sample(&logits, &how, random, &mut vec![0; logits.len()])?)
    }
}
