//! Passes one by one, wherever a model runs, with whoever looks on: for measurements. Nothing is held against
//! the processor, so nothing may be claimed of it.

use rayon::prelude::*;
use surety_exact::greedy;

use super::{
    backend::{Decoder, Runs},
    bert::Scratch,
    embed::ExactBert,
    generate::{ExactLlama, count, failed},
    kv::{KvCache, Piece},
    llama::Workspace,
    probe::Probe,
    teacher_forced::logit_rows,
    trace::TopLevel,
};
use crate::error::EngineError;

/// Sequences of a decoder that get longer side by side.
pub struct DecoderPasses<'a> {
    engine: &'a ExactLlama,
    on: Runs<'a, dyn Decoder>,
    sequences: Vec<KvCache>,
    /// With the last state of each piece of the last pass.
    workspace: Workspace,
}

impl ExactLlama {
    /// So many empty sequences with room for so many positions, on one device where there are any.
    pub fn passes(&self, sequences: usize, positions: usize) -> DecoderPasses<'_> {
        let on = self.runs();
        DecoderPasses {
            sequences: (0..sequences).map(|_| on.kv(positions)).collect(),
            workspace: Workspace::new(&self.model),
            engine: self,
            on,
        }
    }
}

impl DecoderPasses<'_> {
    /// Rows that are worth a pass.
    pub fn rows(&self) -> usize {
        self.on.chunk_rows()
    }

    /// Looks on, and writes the trace down.
    pub fn recorder(&self) -> TopLevel {
        TopLevel::new(self.engine.model.trace_shape())
    }

    /// Adds tokens to the sequences from `first` on, one list to each: one pass.
    ///
    /// # Errors
    /// [`EngineError::Device`]; [`EngineError::Compute`] for tokens that do not fit; the faults of the
    /// arithmetic.
    pub fn add(
        &mut self,
        first: usize,
        tokens: &[Vec<u32>],
        probe: &mut dyn Probe,
    ) -> Result<(), EngineError> {
        self.pass((first, tokens), (0, false), probe)
    }

    /// The same, and the likeliest token behind each list.
    ///
    /// # Errors
    /// Those of [`DecoderPasses::add`].
    pub fn choose(
        &mut self,
        first: usize,
        tokens: &[Vec<u32>],
        probe: &mut dyn Probe,
    ) -> Result<Vec<u32>, EngineError> {
        let chooses = self.on.chooses() && tokens.len() <= logit_rows(self.engine.model.vocabulary());
        self.pass((first, tokens), (usize::from(!chooses), chooses), probe)?;
        match chooses {
            true => Ok(self.workspace.chosen().to_vec()),
            false => self.likeliest(),
        }
    }

    fn pass(
        &mut self,
        (first, tokens): (usize, &[Vec<u32>]),
        (states, chooses): (usize, bool),
        probe: &mut dyn Probe,
    ) -> Result<(), EngineError> {
        let sequences = self.sequences.iter_mut().skip(first);
        let mut pieces: Vec<_> = sequences
            .zip(tokens)
            .map(|(kv, tokens)| Piece {
                kv,
                tokens,
                states,
                chooses,
            })
            .collect();
        let passed = self.on.forward_together(&mut pieces, &mut self.workspace, probe);
        passed.map_err(|fault| failed(0, fault))
    }

    /// The likeliest token behind each piece of the last pass, by its states.
    fn likeliest(&self) -> Result<Vec<u32>, EngineError> {
        let model = &self.engine.model;
        let (mut tokens, mut logits) = (Vec::new(), Vec::new());
        for states in self
            .workspace
            .states()
            .chunks(logit_rows(model.vocabulary()) * model.width())
        {
            self.on
                .logits(states, &mut logits)
                .map_err(|fault| failed(0, fault))?;
            let rows = logits.par_chunks(model.vocabulary());
            let chosen: Vec<_> = rows.map(greedy).collect();
            for token in chosen {
                let index = count(tokens.len());
                tokens.push(token.map_err(|fault| failed(index, fault))?);
            }
        }
        Ok(tokens)
    }
}

impl ExactBert {
    /// The vectors of some sequences, in one pass. `scratch` is for passes on the processor.
    ///
    /// # Errors
    /// [`EngineError::Device`]; the faults of the arithmetic.
    pub fn pass(
        &self,
        sequences: &[&[u32]],
        scratch: &mut Scratch,
        probe: &mut dyn Probe,
    ) -> Result<Vec<f32>, EngineError> {
        let vectors = self.runs().embed(sequences, scratch, probe);
        vectors.map_err(|fault| failed(0, fault))
    }

    /// Looks on, and writes the trace down.
    pub fn recorder(&self) -> TopLevel {
        TopLevel::new(self.trace_shape())
    }

    /// Rows that are worth a pass.
    pub fn pass_rows(&self) -> usize {
        self.runs().batch_rows()
    }
}
