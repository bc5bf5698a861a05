//! Content of a task that was shown on chain because somebody could not get it from anybody: inputs and
//! outputs, by their hashes, for everybody to read while the round lasts.

use alloc::{collections::BTreeSet, vec::Vec};
use frame_support::BoundedVec;
use surety_dispute_game::bisection::Blob;
use surety_proofs::{PARTS_MAX, PartOpening, parts};
use surety_types::{ContentHash, TaskId, limits};

use crate::{Config, Pallet, Shown};

/// Most parts that are forgotten in one step: the input of a generation, and an output of each provider. Of
/// embeddings there may be more, which take more steps.
pub const SHOWN_MAX: u32 = PARTS_MAX.saturating_mul(limits::REDUNDANCY_MAX.saturating_add(1));

impl<T: Config> Pallet<T> {
    /// Keeps a part that was shown to be of content that is so long. What is shown of another length under
    /// the same hash is something else: providers may contradict each other there.
    pub fn keep_part(task: TaskId, blob: &Blob, shown: PartOpening) {
        Shown::<T>::insert(task, (blob.content, blob.bytes, shown.part), shown.bytes);
    }

    /// Whether all of some content can be read on chain.
    pub fn is_shown(task: TaskId, blob: &Blob) -> bool {
        places(blob).all(|part| Shown::<T>::contains_key(task, (blob.content, blob.bytes, part)))
    }

    /// Whether a part of some content can be read on chain.
    pub fn is_part_shown(task: TaskId, blob: &Blob, part: u32) -> bool {
        Shown::<T>::contains_key(task, (blob.content, blob.bytes, part))
    }

    /// Some content, once all of it has been shown.
    pub fn shown(task: TaskId, content: ContentHash) -> Option<Vec<u8>> {
        let keys = Shown::<T>::iter_key_prefix(task).filter(|(of, ..)| *of == content);
        let lengths: BTreeSet<_> = keys.map(|(_, bytes, _)| bytes).collect();
        let mut blobs = lengths.into_iter().map(|bytes| Blob { content, bytes });
        let blob = blobs.find(|blob| Self::is_shown(task, blob))?;
        let parts = places(&blob).filter_map(|part| Shown::<T>::get(task, (content, blob.bytes, part)));
        Some(parts.flat_map(BoundedVec::into_inner).collect())
    }

    /// Forgets what was shown of a task, so much of it at a time. Says how many parts that were, and whether
    /// there are more.
    pub(crate) fn forget_shown(task: TaskId) -> (u32, bool) {
        let cleared = Shown::<T>::clear_prefix(task, SHOWN_MAX, None);
        (cleared.unique, cleared.maybe_cursor.is_some())
    }
}

fn places(blob: &Blob) -> core::ops::Range<u32> {
    0..parts(blob.bytes)
}
