use super::super::cut::{Span, parent, posts};
use super::*;
use alloc::vec::Vec;
use serde_json::Value;
use sp_core::H256;
use sp_crypto_hashing::blake2_256;
use surety_proofs::merkle_root;

fn hash(value: &Value) -> H256 {
    H256::from_slice(&hex::decode(value.as_str().unwrap()).unwrap())
}

#[test]
fn postings_match_the_golden_vectors() {
    let vectors: Vec<Value> = serde_json::from_str(include_str!("../../../vectors/posting.json")).unwrap();
    assert!(vectors.len() >= 7);
    for vector in vectors {
        let number = |name: &str| vector[name].as_u64().unwrap() as u32;
        let leaves: Vec<H256> = (0..number("leaves"))
            .map(|leaf| H256(blake2_256(format!("leaf {leaf}").as_bytes())))
            .collect();
        let span = Span {
            first: number("first"),
            leaves: number("count"),
        };
        let posted: Option<Vec<H256>> = (0..span.children())
            .map(|index| span.digest(index, &leaves))
            .collect();
        let children: Vec<H256> = vector["children"].as_array().unwrap().iter().map(hash).collect();
        assert_eq!(posted.as_ref(), Some(&children), "{vector}");
        assert_eq!(parent(&children, span.is_lowest()), Some(hash(&vector["hash"])));
    }
}

proptest! {
    #[test]
    fn a_posting_hashes_to_the_merkle_root(leaves in 1u32..5_000, seed in any::<u64>()) {
        let mut dice = Dice::seeded(seed);
        let leaves: Vec<H256> = (0..leaves).map(|_| dice.hash()).collect();
        let span = Span { first: 0, leaves: leaves.len() as u32 };
        let posted: Vec<H256> = (0..span.children()).map(|index| span.digest(index, &leaves).unwrap()).collect();
        prop_assert_eq!(parent(&posted, span.is_lowest()), Some(merkle_root(leaves.iter().copied())));
        // Of a tree that lacks a leaf the children before it are there.
        let last = span.children() - 1;
        prop_assert_eq!(span.digest(last, &leaves[1..]), None);
        prop_assert!((0..last).all(|index| span.digest(index, &leaves[..leaves.len() - 1]) == Some(posted[index as usize])));
    }

    #[test]
    fn children_divide_a_node_without_gaps(leaves in 1u32..=u32::MAX) {
        let span = Span { first: 0, leaves };
        prop_assert!(span.children() <= CHILDREN_MAX);
        let mut next = 0u64;
        for index in 0..span.children() {
            let child = span.child(index);
            prop_assert_eq!(u64::from(child.first), next);
            prop_assert!(child.leaves > 0);
            // One posting fewer is left to come to a leaf.
            prop_assert!(span.is_lowest() || posts(child.leaves) < posts(leaves));
            next += u64::from(child.leaves);
        }
        prop_assert_eq!(next, u64::from(leaves));
    }
}
