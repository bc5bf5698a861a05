//! The items of a trace, each by itself: what auditors compute that do not compute all.

use alloc::vec::Vec;
use core::ops::Range;

use sp_core::H256;
use surety_proofs::merkle_root;
use surety_types::{model::Operation, trust::ItemLeaves};

use crate::{
    layout::{Layout, Part},
    span,
};
use surety_dispute_game::bisection::Shape;

/// The leaves of an item of an embedding; nothing where there is no such item.
pub fn item_span(layout: &Layout, item: u32) -> Option<Range<u32>> {
    if layout.facts.operation != Operation::Embed {
        return None;
    }
    let first = layout.leaf_of(Part::Rows {
        sequence: item,
        chunk: 0,
        stride: 0,
    })?;
    Some(first..first.checked_add(layout.cut.strides())?)
}

/// What an auditor seals of an item's leaves.
pub fn item_root(leaves: &[H256]) -> H256 {
    merkle_root(leaves.iter().copied())
}

/// Shows an item of a trace with these leaves.
pub fn show_item(layout: &Layout, item: u32, leaves: &[H256]) -> Option<ItemLeaves> {
    let span = item_span(layout, item)?;
    let own = leaves.get(span.start as usize..span.end as usize)?.to_vec();
    Some(ItemLeaves {
        leaves: own.try_into().ok()?,
        siblings: span::prove(&span, leaves)?.try_into().ok()?,
    })
}

/// The [`item_root`] of an item that is shown to be under the root of a trace; nothing when it is not.
pub fn shown_item(layout: &Layout, trace_root: &H256, item: u32, shown: &ItemLeaves) -> Option<H256> {
    let span = item_span(layout, item)?;
    if shown.leaves.len() != span.len() {
        return None;
    }
    let mut siblings: Vec<H256> = shown.siblings.iter().rev().copied().collect();
    let root = span::root(&span, layout.leaves(), &shown.leaves, || siblings.pop())?;
    (root == *trace_root && siblings.is_empty()).then(|| item_root(&shown.leaves))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::TaskFacts;
    use surety_types::{
        input::{ITEM_WORDS, WORD_BYTES},
        model::{Architecture, ModelFamily, SpecialIds},
    };

    fn layout(units: u32) -> Layout {
        let facts = TaskFacts {
            family: ModelFamily::Bert,
            operation: Operation::Embed,
            input: H256::zero(),
            input_bytes: units * (ITEM_WORDS + 1) * WORD_BYTES,
            units_max: units,
            stop: SpecialIds::default(),
            units,
            output: H256::zero(),
        };
        let architecture = Architecture {
            layers: 3,
            ..Architecture::largest(ModelFamily::Bert)
        };
        Layout::new(&architecture, facts).unwrap()
    }

    #[test]
    fn every_item_is_shown_at_its_place_and_nowhere_else() {
        for units in [1, 2, 3, 7, 20] {
            let layout = layout(units);
            let leaves: Vec<H256> = (0..layout.leaves())
                .map(|leaf| H256::from_low_u64_be(leaf.into()))
                .collect();
            let root = merkle_root(leaves.iter().copied());
            for item in 0..units {
                let shown = show_item(&layout, item, &leaves).unwrap();
                let span = item_span(&layout, item).unwrap();
                let own = item_root(&leaves[span.start as usize..span.end as usize]);
                assert_eq!(shown_item(&layout, &root, item, &shown), Some(own));
                assert_eq!(shown_item(&layout, &H256::zero(), item, &shown), None);
                let mut other = shown.clone();
                other.leaves[0] = H256::repeat_byte(9);
                assert_eq!(shown_item(&layout, &root, item, &other), None);
                let mut longer = shown.clone();
                longer.siblings.try_push(H256::zero()).unwrap();
                assert_eq!(shown_item(&layout, &root, item, &longer), None);
                for elsewhere in (0..units).filter(|elsewhere| *elsewhere != item) {
                    assert_eq!(shown_item(&layout, &root, elsewhere, &shown), None);
                }
            }
            assert!(show_item(&layout, units, &leaves).is_none());
        }
    }
}
