//! The token that is chosen after a position.

use alloc::vec;

use surety_exact::{ArithmeticError, Sampling, sample};
use surety_types::input::{SETTINGS_WORDS, Settings};

use crate::{
    compute::{Halt, Work},
    inputs::{Inputs, Source},
    sampling_random,
    steps::Op,
};

impl<'a, I: Inputs<'a>> Work<'_, '_, I> {
    /// The token that follows this row; 0 where the prompt goes on.
    pub fn choose(&mut self) -> Result<u32, Halt<I::Error>> {
        let words = self.integers(Source::Input, 0, 0..SETTINGS_WORDS)?;
        let words = words[..].try_into().map_err(|_| ArithmeticError::Shape)?;
        let settings = Settings::read(words);
        let following = self
            .plan
            .positions()
            .start
            .saturating_add(self.row)
            .saturating_add(1);
        let Some(index) = following.checked_sub(self.plan.layout.prompt()) else {
            return Ok(0);
        };
        let from = self.plan.source(self.step.layer, Op::Logits);
        let logits = self.numbers(from, self.row, 0..self.plan.dims().vocabulary)?;
        let how = Sampling {
            temperature_milli: settings.temperature_milli,
            top_k: settings.top_k,
            top_p_milli: settings.top_p_milli,
        };
        let random = sampling_random(&self.plan.layout.facts.input, settings.seed, index);
        Ok(sample(&logits, &how, random, &mut vec![0; logits.len()])?)
    }
}
