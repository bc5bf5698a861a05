//! The leaves of a generation that are not states.

use surety_types::ContentHash;

use super::{TopLevel, leaf_of};

/// What the leaves of a generation are made of.
pub(crate) struct GenerationLeaves<'a> {
    /// Content hash of the input, the first leaf.
    pub(crate) input: ContentHash,
    /// Of the states of everything that went through the model.
    pub(crate) states: &'a TopLevel,
    /// For each position the token that is chosen there, 0 where the prompt goes on.
    pub(crate) choices: &'a [u32],
    /// Content hash of the own output, the last leaf.
    pub(crate) output: ContentHash,
}

impl GenerationLeaves<'_> {
    /// All of them.
    pub(crate) fn all(&self) -> Vec<ContentHash> {
        let chunks = self.states.leaves(&[self.choices.len()]).concat();
        let mut leaves = vec![self.input];
        for (strides, choices) in chunks
            .into_iter()
            .zip(self.choices.chunks(self.states.chunk_rows()))
        {
            let bytes: Vec<u8> = choices.iter().flat_map(|token| token.to_le_bytes()).collect();
            leaves.extend(strides);
            leaves.push(leaf_of(&bytes, 4));
        }
        leaves.push(self.output);
        leaves
    }
}
