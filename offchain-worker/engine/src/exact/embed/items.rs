//! Some of a job's items, computed by themselves, and held against what a provider says of them.

use surety_dispute_game::bisection::Shape;
use surety_model_trace::{embeddings_header, item_root, item_span, show_item};
use surety_proofs::{content_hash, merkle_root};
use surety_types::{
    ContentHash,
    task::ResultClaim,
    trust::{ItemFound, ItemLeaves, ItemsFound},
};

use super::{ExactBert, Item, Scratch, batches, count};
use crate::{
    engine::{Job, Sink, report},
    error::EngineError,
    exact::trace::hash::blob_hash,
};

impl ExactBert {
    /// Computes these items, and none of the others.
    pub(super) fn some_items(
        &self,
        job: &Job,
        items: &[u32],
        sink: &mut dyn Sink,
    ) -> Result<ItemsFound, EngineError> {
        self.check(job)?;
        let input = self.reader(job);
        let own = items.iter().map(|index| Item {
            index: *index,
            ids: input.item(*index),
        });
        let own: Vec<Item> = own.collect();
        let mut found = Vec::with_capacity(own.len());
        let mut scratch = Scratch::default();
        for batch in batches(&own) {
            report(sink, count(found.len()), count(own.len()))?;
            let embedded = self.batch(batch, &mut scratch)?.into_iter();
            found.extend(embedded.map(|embedded| ItemFound {
                leaves: item_root(&embedded.leaves),
                row: row_hash(&embedded.row),
            }));
        }
        let too_many = |_| EngineError::Compute("more items than an audit has".into());
        found.try_into().map_err(too_many)
    }

    /// Whether a claim, of this trace and this output, is the same in all that was found of a job's items.
    pub(super) fn has_items(
        &self,
        job: &Job,
        (items, found): (&[u32], &ItemsFound),
        claim: &ResultClaim,
        (leaves, output): (&[ContentHash], &[u8]),
    ) -> bool {
        let is_claimed = merkle_root(leaves.iter().copied()) == claim.trace_root
            && content_hash(output) == claim.output
            && leaves.last() == Some(&claim.output);
        let strides = self.trace_shape().strides() as usize;
        let width = self.model.width();
        let Some(header) = embeddings_header(job.units_max, count(width)) else {
            return false;
        };
        let has = |(item, found): (&u32, &ItemFound)| {
            let item = *item as usize;
            let (leaf, row) = (1 + item * strides, header.len() + item * width * 4);
            let leaves = leaves.get(leaf..leaf + strides);
            let row = output.get(row..row + width * 4);
            leaves.is_some_and(|leaves| item_root(leaves) == found.leaves)
                && row.is_some_and(|row| content_hash(row) == found.row)
        };
        is_claimed
            && claim.units == job.units_max
            && leaves.len() == job.units_max as usize * strides + 2
            && leaves.first() == Some(&blob_hash(&job.input))
            && items.len() == found.len()
            && items.iter().zip(found).all(has)
    }

    /// The first of these items of which a trace with these leaves has others than were found.
    pub(super) fn item_with_others(
        &self,
        job: &Job,
        (items, found): (&[u32], &ItemsFound),
        leaves: &[ContentHash],
    ) -> Option<(u32, ItemLeaves)> {
        let layout = self.layout(job).ok()?;
        if leaves.len() != layout.leaves() as usize {
            return None;
        }
        let mut own = (0u32..).zip(items.iter().zip(found));
        own.find_map(|(place, (item, found))| {
            let span = item_span(&layout, *item)?;
            let ours = leaves.get(span.start as usize..span.end as usize)?;
            let shown = || show_item(&layout, *item, leaves).map(|shown| (place, shown));
            (item_root(ours) != found.leaves).then(shown)?
        })
    }
}

/// As the row stands in an output.
fn row_hash(row: &[f32]) -> ContentHash {
    let bytes: Vec<u8> = row.iter().flat_map(|value| value.to_le_bytes()).collect();
    content_hash(&bytes)
}
