//! Sum trees, against adding up.

use super::*;
use proptest::{collection::vec, prelude::*};

fn nodes(prices: &[u128]) -> Vec<SumNode> {
    let node = |(place, price): (usize, &u128)| SumNode {
        hash: named(&format!("leaf {place}")),
        sums: Sums {
            receipts: 1,
            price: *price,
        },
    };
    prices.iter().enumerate().map(node).collect()
}

/// The definition: split at the largest power of two below the number of leaves.
fn root_by_halves(leaves: &[SumNode]) -> SumNode {
    if let [leaf] = leaves {
        return *leaf;
    }
    let (left, right) = leaves.split_at(leaves.len().next_power_of_two() / 2);
    SumNode::above(&root_by_halves(left), &root_by_halves(right)).unwrap()
}

#[test]
fn there_is_no_tree_over_nothing_too_much_or_too_many() {
    assert_eq!(SumTree::new(Vec::new()), None);
    assert_eq!(SumTree::new(nodes(&[u128::MAX, 1])), None);
    assert!(SumTree::new(nodes(&[u128::MAX, 0])).is_some());
    let one = nodes(&[1])[0];
    assert_eq!(SumTree::new(vec![one; RECEIPTS_MAX as usize + 1]), None);
    let largest = SumTree::new(vec![one; RECEIPTS_MAX as usize]).unwrap();
    let last = RECEIPTS_MAX - 1;
    let climbed = largest
        .path(last)
        .unwrap()
        .climb(one, last, RECEIPTS_MAX)
        .unwrap();
    assert_eq!(climbed.root, largest.root());
    assert_eq!(
        climbed.before,
        Sums {
            receipts: last,
            price: last.into()
        }
    );
    assert_eq!(largest.leaf_at(u128::from(last)).unwrap().0, last);
}

#[test]
fn a_path_of_another_length_or_with_sums_beyond_counting_leads_nowhere() {
    let leaves = nodes(&[1, 2, 3, 4, 5]);
    let tree = SumTree::new(leaves.clone()).unwrap();
    let path = tree.path(2).unwrap();
    assert_eq!(
        path.climb(leaves[2], 2, 5).map(|climbed| climbed.root),
        Some(tree.root())
    );
    assert_eq!(tree.path(5), None);
    assert_eq!(path.climb(leaves[2], 5, 5), None);
    assert_eq!(path.climb(leaves[2], 0, 0), None);
    let mut short = path.clone();
    short.0.pop();
    assert_eq!(short.climb(leaves[2], 2, 5), None);
    let mut long = path.clone();
    long.0.try_push(leaves[0]).unwrap();
    assert_eq!(long.climb(leaves[2], 2, 5), None);
    for huge in [
        Sums {
            receipts: 1,
            price: u128::MAX,
        },
        Sums {
            receipts: u32::MAX,
            price: 1,
        },
    ] {
        let mut overflowing = path.clone();
        overflowing.0[0].sums = huge;
        assert_eq!(overflowing.climb(leaves[2], 2, 5), None);
    }
    // Levels that no tree has.
    assert_eq!(path.climb_from(leaves[2], 32, 0, 5), None);
    assert_eq!(path.climb_from(leaves[2], u32::MAX, 0, 5), None);
}

proptest! {
    #[test]
    fn a_tree_is_its_definition_and_every_leaf_stands_behind_the_sum_of_those_before(
        prices in vec(0u128..1_000, 1..70),
    ) {
        let leaves = nodes(&prices);
        let tree = SumTree::new(leaves.clone()).unwrap();
        prop_assert_eq!(tree.root(), root_by_halves(&leaves));
        prop_assert_eq!(tree.root().sums.price, prices.iter().sum::<u128>());
        let mut before = Sums::default();
        for (place, leaf) in leaves.iter().enumerate() {
            let climbed = tree.path(place as u32).unwrap().climb(*leaf, place as u32, leaves.len() as u32);
            let climbed = climbed.unwrap();
            prop_assert_eq!((climbed.root, climbed.before), (tree.root(), before));
            before = before.plus(leaf.sums).unwrap();
        }
    }

    #[test]
    fn every_point_is_in_the_leaf_that_adding_up_says(prices in vec(0u128..50, 1..40)) {
        let tree = SumTree::new(nodes(&prices)).unwrap();
        let mut point = 0;
        for (place, price) in prices.iter().enumerate() {
            for _ in 0..*price {
                prop_assert_eq!(tree.leaf_at(point).unwrap().0 as usize, place);
                point += 1;
            }
        }
        prop_assert_eq!(tree.leaf_at(point), None);
        prop_assert_eq!(tree.leaf_at(u128::MAX), None);
    }

    #[test]
    fn no_leaf_leads_to_the_root_from_another_place_with_another_sum_or_by_another_path(
        prices in vec(1u128..1_000, 2..40), at in any::<prop::sample::Index>(),
        place in 0u32..40, level in any::<prop::sample::Index>(), more in 1u128..5,
    ) {
        let leaves = nodes(&prices);
        let tree = SumTree::new(leaves.clone()).unwrap();
        let (at, count) = (at.index(leaves.len()) as u32, leaves.len() as u32);
        let (leaf, path) = (leaves[at as usize], tree.path(at).unwrap());
        let leads = |leaf, path: &SumPath, place| {
            path.climb(leaf, place, count).is_some_and(|climbed| climbed.root == tree.root())
        };
        prop_assert!(leads(leaf, &path, at));
        prop_assert!(place == at || !leads(leaf, &path, place));
        let mut dearer = leaf;
        dearer.sums.price += more;
        prop_assert!(!leads(dearer, &path, at));
        let mut counted = leaf;
        counted.sums.receipts += 1;
        prop_assert!(!leads(counted, &path, at));
        let level = level.index(path.0.len());
        let mut moved = path.clone();
        moved.0[level].sums.price += more;
        prop_assert!(!leads(leaf, &moved, at));
        // Not even if the leaf gives up what the sibling gains.
        dearer.sums.price = leaf.sums.price.saturating_sub(more);
        prop_assert!(!leads(dearer, &moved, at));
    }
}
