//! Some of a job's items, computed by themselves, and held against what a provider says of them.

use std::ops::Range;

use surety_dispute_game::bisection::Shape;
use surety_model_trace::{embeddings_header, item_root, item_span, show_item};
use surety_proofs::{LEAF_BYTES, PART_BYTES, content_hash, merkle_root, parts};
use surety_types::{
    ContentHash,
    task::ResultClaim,
    trust::{ItemFound, ItemLeaves, ItemsFound},
};

use super::{Embedded, ExactBert, Item, Scratch, batches, count};
use crate::{
    engine::{ItemParts, Job, Sink, View, report},
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
        let own = self.embedded(job, items, sink)?;
        let found = own.iter().map(|embedded| ItemFound {
            leaves: item_root(&embedded.leaves),
            row: content_hash(&row_bytes(&embedded.row)),
        });
        let too_many = |_| EngineError::Compute("more items than an audit has".into());
        found.collect::<Vec<_>>().try_into().map_err(too_many)
    }

    /// These items' results, and none of the others.
    fn embedded(&self, job: &Job, items: &[u32], sink: &mut dyn Sink) -> Result<Vec<Embedded>, EngineError> {
        self.check(job)?;
        let input = self.reader(job);
        let own = items.iter().map(|index| Item {
            index: *index,
            ids: input.item(*index),
        });
        let own: Vec<Item> = own.collect();
        let mut found = Vec::with_capacity(own.len());
        let mut scratch = Scratch::default();
        let on = self.copies.next(&*self.model);
        for batch in batches(&own, on.batch_rows()) {
            report(sink, count(found.len()), count(own.len()))?;
            found.extend(self.batch(&on, batch, &mut scratch)?);
        }
        self.recheck(&found, |place| {
            let index = items.get(place).copied().unwrap_or_default();
            let ids = input.item(index);
            Item { index, ids }
        })?;
        Ok(found)
    }

    /// What is shown, with these items as they are by our own computation.
    pub(super) fn with_own_items(
        &self,
        job: &Job,
        items: &[u32],
        (leaves, output): (&[ContentHash], &[u8]),
        sink: &mut dyn Sink,
    ) -> Result<Option<View>, EngineError> {
        let (layout, width) = (self.layout(job)?, self.model.width());
        let Some(header) = embeddings_header(job.units_max, count(width)) else {
            return Ok(None);
        };
        let output_bytes = header.len() + job.units_max as usize * width * 4;
        // What stands behind the rows is none of ours.
        let Some(output) = output.get(..output_bytes) else {
            return Ok(None);
        };
        if leaves.len() != layout.leaves() as usize {
            return Ok(None);
        }
        let (mut leaves, mut output) = (leaves.to_vec(), output.to_vec());
        for (item, own) in items.iter().zip(self.embedded(job, items, sink)?) {
            let row = header.len() + *item as usize * width * 4;
            let leaves = item_span(&layout, *item).and_then(|span| leaves.get_mut(indices(&span)));
            let (Some(leaves), Some(row)) = (leaves, output.get_mut(row..row + width * 4)) else {
                return Ok(None);
            };
            leaves.copy_from_slice(&own.leaves);
            row.copy_from_slice(&row_bytes(&own.row));
        }
        if let Some(shown) = output.get_mut(..header.len()) {
            shown.copy_from_slice(&header);
        }
        if let Some(first) = leaves.first_mut() {
            *first = blob_hash(&job.input);
        }
        if let Some(last) = leaves.last_mut() {
            *last = content_hash(&output);
        }
        Ok(Some(View {
            leaves,
            output,
            differs: None,
        }))
    }

    /// Whether a claim, of this trace and this output, is the same in all that was found of a job's items.
    pub(super) fn has_items(
        &self,
        job: &Job,
        (items, found): (&[u32], &ItemsFound),
        claim: &ResultClaim,
        (leaves, output): (&[ContentHash], &[u8]),
    ) -> bool {
        merkle_root(leaves.iter().copied()) == claim.trace_root
            && content_hash(output) == claim.output
            && self.has_proven_items(job, (items, found), claim, (leaves, output))
    }

    /// The same of leaves and of an output whose parts were proven to be the claim's. The header and the
    /// length of an output are no item's, and everybody's.
    pub(super) fn has_proven_items(
        &self,
        job: &Job,
        (items, found): (&[u32], &ItemsFound),
        claim: &ResultClaim,
        (leaves, output): (&[ContentHash], &[u8]),
    ) -> bool {
        let width = self.model.width();
        let (Some(header), Ok(layout)) = (embeddings_header(job.units_max, count(width)), self.layout(job))
        else {
            return false;
        };
        let has = |(item, found): (&u32, &ItemFound)| {
            let row = header.len() + *item as usize * width * 4;
            let leaves = item_span(&layout, *item).and_then(|span| leaves.get(indices(&span)));
            let row = output.get(row..row + width * 4);
            leaves.is_some_and(|leaves| item_root(leaves) == found.leaves)
                && row.is_some_and(|row| content_hash(row) == found.row)
        };
        claim.units == job.units_max
            && output.starts_with(&header)
            && output.len() == header.len() + job.units_max as usize * width * 4
            && leaves.last() == Some(&claim.output)
            && leaves.len() == layout.leaves() as usize
            && leaves.first() == Some(&blob_hash(&job.input))
            && items.len() == found.len()
            && items.iter().zip(found).all(has)
    }

    /// What has to be shown of a claim to hold these items against it: their own leaves, those of the input
    /// and the output, their own rows, and the output's header.
    pub(super) fn parts_of_items(&self, job: &Job, items: &[u32]) -> Option<ItemParts> {
        let (layout, width) = (self.layout(job).ok()?, count(self.model.width()));
        let header = count(embeddings_header(job.units_max, width)?.len());
        let row_bytes = width.checked_mul(4)?;
        let mut parts = ItemParts {
            leaves_bytes: layout.leaves().checked_mul(LEAF_BYTES)?,
            output_bytes: job.units_max.checked_mul(row_bytes)?.checked_add(header)?,
            ..ItemParts::default()
        };
        parts.leaves.extend(parts_of(0..LEAF_BYTES));
        parts.leaves.extend(parts_of(
            parts.leaves_bytes.checked_sub(LEAF_BYTES)?..parts.leaves_bytes,
        ));
        parts.output.extend(parts_of(0..header));
        for item in items {
            let span = item_span(&layout, *item)?;
            let bytes = span.start.checked_mul(LEAF_BYTES)?..span.end.checked_mul(LEAF_BYTES)?;
            parts.leaves.extend(parts_of(bytes));
            let row = item.checked_mul(row_bytes)?.checked_add(header)?;
            parts.output.extend(parts_of(row..row.checked_add(row_bytes)?));
        }
        Some(parts)
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
            let ours = leaves.get(indices(&span))?;
            let shown = || show_item(&layout, *item, leaves).map(|shown| (place, shown));
            (item_root(ours) != found.leaves).then(shown)?
        })
    }
}

/// The parts that have these bytes.
fn parts_of(bytes: Range<u32>) -> Range<u32> {
    bytes.start / PART_BYTES..parts(bytes.end)
}

fn indices(span: &Range<u32>) -> Range<usize> {
    span.start as usize..span.end as usize
}

/// As the row stands in an output.
fn row_bytes(row: &[f32]) -> Vec<u8> {
    row.iter().flat_map(|value| value.to_le_bytes()).collect()
}
