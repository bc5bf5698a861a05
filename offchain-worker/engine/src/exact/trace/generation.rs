//! The leaves of a generation that are not states.

use surety_types::ContentHash;

use super::{leaf_of, output_leaf, words, TopLevel};
use crate::generation::Request;

/// Words of the first leaf before the prompt's tokens.
const HEADER_WORDS: usize = 8;

/// What the leaves of a generation are made of, beside what a model computes.
pub(crate) struct GenerationLeaves<'a> {
    pub(crate) request: &'a Request,
    pub(crate) prompt: &'a [u32],
    /// Tokens of prompt and continuation.
    pub(crate) units: u32,
    /// Size of the output as it was claimed.
    pub(crate) output_bytes: u32,
    /// Content hash of the own output.
    pub(crate) output: ContentHash,
}

impl GenerationLeaves<'_> {
    /// All leaves, with the states that were written down and the tokens chosen from the prompt's last position on.
    pub(crate) fn with(&self, states: &TopLevel, chosen: &[u32]) -> Vec<ContentHash> {
        let positions = self.units.saturating_sub(1) as usize;
        let mut choices = vec![0; self.prompt.len().saturating_sub(1)];
        choices.extend_from_slice(chosen);
        let choices = words(choices, positions);
        let chunks = states.leaves(&[positions]).concat();
        let mut leaves = vec![leaf_of(&self.tokens_row(), 4 * self.tokens_words())];
        for (strides, choices) in chunks.into_iter().zip(choices.chunks(4 * states.chunk_rows())) {
            leaves.extend(strides);
            leaves.push(leaf_of(choices, 4));
        }
        leaves.push(output_leaf(&self.output));
        leaves
    }

    fn tokens_words(&self) -> usize {
        HEADER_WORDS + self.units as usize
    }

    /// The only row of the first leaf: how tokens are chosen, and the prompt's.
    pub(crate) fn tokens_row(&self) -> Vec<u8> {
        let request = self.request;
        let header = [
            // A prompt is shorter than its model's context.
            self.prompt.len() as u32,
            self.output_bytes,
            request.temperature_milli,
            request.top_k,
            request.top_p_milli,
            request.seed as u32,
            (request.seed >> 32) as u32,
            0,
        ];
        words(
            header.into_iter().chain(self.prompt.iter().copied()),
            self.tokens_words(),
        )
    }
}
