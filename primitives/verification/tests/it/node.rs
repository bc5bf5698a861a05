use super::{flipped, leaves};
use proptest::prelude::*;
use sp_core::H256;
use surety_verification::{combine, leaf_hash, merkle_root, Node};

/// Goes down from the root to the first leaf in which two trees of one size differ, as a dispute does, and checks
/// every step as the chain would.
fn first_difference(one: &[H256], other: &[H256]) -> u32 {
    let count = one.len() as u32;
    let mut node = Node::top(count);
    let mut hash = merkle_root(one.iter().copied());
    while node.height > 0 {
        let children = node.open(one).unwrap();
        assert!(node.verify(&hash, &children, count));
        let others = node.open(other).unwrap();
        let number = children.iter().zip(&others).position(|(a, b)| a != b).unwrap();
        (node, hash) = (node.child(number as u32).unwrap(), children[number]);
    }
    assert_eq!(hash, leaf_hash(&one[node.index as usize]));
    node.index
}

#[test]
fn the_top_node_is_the_root() {
    for count in [1, 2, 15, 16, 17, 255, 256, 257, 1000] {
        let leaves = leaves(count);
        let top = Node::top(count);
        assert_eq!(top.leaves(count), Some(0..count));
        assert_eq!(top.hash(&leaves), Some(merkle_root(leaves.iter().copied())));
        let heights = [(1, 0), (16, 1), (256, 2), (4096, 3)];
        let expected = heights.iter().find(|(most, _)| count <= *most).unwrap().1;
        assert_eq!(top.height, expected);
    }
    assert_eq!(Node::top(u32::MAX), Node { height: 8, index: 0 });
}

#[test]
fn the_leaves_below_are_those_of_the_children() {
    for count in [1u32, 2, 16, 17, 300, 4097, u32::MAX] {
        let mut nodes = vec![Node::top(count)];
        for _ in 0..200 {
            let Some(node) = nodes.pop() else { break };
            let below: Vec<_> = (0..node.children(count))
                .map(|number| node.child(number).unwrap())
                .collect();
            let Some(first) = below.first() else { continue };
            let ranges: Vec<_> = below.iter().map(|child| child.leaves(count).unwrap()).collect();
            assert!(ranges.windows(2).all(|pair| pair[0].end == pair[1].start));
            let whole = node.leaves(count).unwrap();
            assert_eq!(
                (ranges[0].start, ranges[ranges.len() - 1].end),
                (whole.start, whole.end)
            );
            assert_eq!(first.height + 1, node.height);
            nodes.extend(below);
        }
    }
}

#[test]
fn there_is_nothing_beyond_the_tree() {
    let leaves = leaves(20);
    for node in [
        Node { height: 1, index: 2 },
        Node { height: 0, index: 20 },
        Node { height: 9, index: 0 },
        Node {
            height: u32::MAX,
            index: u32::MAX,
        },
        Node {
            height: 8,
            index: u32::MAX,
        },
    ] {
        assert_eq!(
            (node.leaves(20), node.children(20), node.hash(&leaves)),
            (None, 0, None),
            "{node:?}"
        );
        assert_eq!(node.open(&leaves), None);
        assert!(!node.verify(&H256::zero(), &[], 20));
    }
    assert_eq!(Node { height: 0, index: 3 }.open(&leaves), None);
    assert_eq!(Node { height: 1, index: 0 }.child(16), None);
    assert_eq!(Node { height: 0, index: 0 }.child(0), None);
    assert_eq!(
        Node {
            height: 1,
            index: u32::MAX
        }
        .child(0),
        None
    );
    assert_eq!(Node::top(0).leaves(0), None);
    assert_eq!(combine(&[]), None);
}

#[test]
fn deeper_nodes_cannot_stand_in_for_children() {
    // Two leaves under each of two nodes: the four leaf hashes combine to the same root, but are too many.
    let leaves = leaves(32);
    let top = Node::top(32);
    let root = merkle_root(leaves.iter().copied());
    let hashes: Vec<H256> = leaves.iter().map(leaf_hash).collect();
    assert_eq!(combine(&hashes), Some(root));
    assert!(!top.verify(&root, &hashes, 32));
    assert!(!top.verify(&root, &[root], 32));
}

proptest! {
    #[test]
    fn the_first_difference_is_found(
        count in 1u32..1200, places in proptest::collection::vec(any::<prop::sample::Index>(), 1..4), bit in 0usize..256,
    ) {
        let honest = leaves(count);
        let mut altered = honest.clone();
        let places: Vec<usize> = places.iter().map(|place| place.index(honest.len())).collect();
        for place in &places {
            altered[*place] = flipped(&honest[*place], bit);
        }
        prop_assert_eq!(first_difference(&honest, &altered), places.into_iter().min().unwrap() as u32);
    }

    #[test]
    fn any_flipped_bit_of_a_child_fails(count in 2u32..600, number in any::<prop::sample::Index>(), bit in 0usize..256) {
        let leaves = leaves(count);
        let top = Node::top(count);
        let hash = top.hash(&leaves).unwrap();
        let mut children = top.open(&leaves).unwrap().to_vec();
        prop_assert!(top.verify(&hash, &children, count));
        prop_assert!(!top.verify(&flipped(&hash, bit), &children, count));
        let number = number.index(children.len());
        children[number] = flipped(&children[number], bit);
        prop_assert!(!top.verify(&hash, &children, count));
        children.remove(number);
        prop_assert!(!top.verify(&hash, &children, count));
    }
}
