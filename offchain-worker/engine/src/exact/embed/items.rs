//! Some of a job's items, computed by themselves, and held against what a provider says of them.

use surety_model_trace::{embeddings_header, item_root};
use surety_models::file_hash;
use surety_proofs::merkle_root;
use surety_types::{
    ContentHash,
    task::ResultClaim,
    trust::{ItemFound, ItemsFound},
};

use super::{ExactBert, Item, Scratch, batches, count};
use crate::{
    engine::{FoundItems, Job, Sink, report},
    error::EngineError,
    exact::trace::hash::{Digest, blob_hash, roots},
};

/// Items whose tokens are hashed between two events.
const TOKENISED: usize = 1_024;

impl ExactBert {
    /// Computes the items that `choose` picks, and of the others no more than their tokens.
    pub(super) fn some_items(
        &self,
        job: &Job,
        choose: &dyn Fn(u32) -> Option<Vec<u32>>,
        sink: &mut dyn Sink,
    ) -> Result<Option<FoundItems>, EngineError> {
        let lines = self.items(job)?;
        let units = count(lines.len());
        let Some(chosen) = choose(units) else {
            return Ok(None);
        };
        let mut tokens: Vec<Digest> = Vec::with_capacity(lines.len());
        let mut own = Vec::with_capacity(chosen.len());
        for lines in lines.chunks(TOKENISED) {
            report(sink, 0, count(chosen.len()))?;
            let first = count(tokens.len());
            let indices = first..first.saturating_add(count(lines.len()));
            let items = lines
                .iter()
                .zip(indices)
                .map(|(line, index)| self.item(index, line));
            let items: Vec<Item> = items.collect::<Result<_, _>>()?;
            tokens.extend(self.token_digests(&items));
            own.extend(items.into_iter().filter(|item| chosen.contains(&item.index)));
        }
        let mut found = Vec::with_capacity(own.len());
        let mut scratch = Scratch::default();
        for batch in batches(&own) {
            report(sink, count(found.len()), count(chosen.len()))?;
            let embedded = self.batch(batch, &mut scratch)?.into_iter();
            found.extend(embedded.map(|embedded| ItemFound {
                leaves: item_root(&embedded.leaves),
                row: row_hash(&embedded.row),
            }));
        }
        let input = roots(&tokens, vec![tokens.len()]);
        let too_many = |_| EngineError::Compute("more items than an audit has".into());
        Ok(Some(FoundItems {
            found: ItemsFound {
                units,
                input: ContentHash::from(input.first().copied().unwrap_or_default()),
                items: found.try_into().map_err(too_many)?,
            },
            items: chosen,
        }))
    }

    /// Whether a claim, of this trace and this output, is the same in all that was found.
    pub(super) fn has_items(
        &self,
        own: &FoundItems,
        claim: &ResultClaim,
        leaves: &[ContentHash],
        output: &[u8],
    ) -> bool {
        let is_claimed = merkle_root(leaves.iter().copied()) == claim.trace_root
            && blob_hash(output) == claim.output
            && leaves.last() == Some(&claim.output);
        let strides = self.trace_shape().strides() as usize;
        let width = self.model.width();
        let Some(header) = embeddings_header(own.found.units, count(width)) else {
            return false;
        };
        let has = |(item, found): (&u32, &ItemFound)| {
            let item = *item as usize;
            let (leaf, row) = (1 + item * strides, header.len() + item * width * 4);
            let leaves = leaves.get(leaf..leaf + strides);
            let row = output.get(row..row + width * 4);
            leaves.is_some_and(|leaves| item_root(leaves) == found.leaves)
                && row.is_some_and(|row| file_hash(row) == found.row)
        };
        is_claimed
            && claim.units == own.found.units
            && leaves.len() == own.found.units as usize * strides + 2
            && leaves.first() == Some(&own.found.input)
            && own.items.len() == own.found.items.len()
            && own.items.iter().zip(&own.found.items).all(has)
    }
}

/// As the row stands in an output.
fn row_hash(row: &[f32]) -> ContentHash {
    let bytes: Vec<u8> = row.iter().flat_map(|value| value.to_le_bytes()).collect();
    file_hash(&bytes)
}
