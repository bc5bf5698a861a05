use super::{flipped, leaves};
use codec::{Decode, Encode, MaxEncodedLen};
use proptest::prelude::*;
use sp_core::H256;
use sp_crypto_hashing::blake2_256;
use surety_proofs::{DEPTH_MAX, Proof, leaf_hash, merkle_root};

fn root(leaves: &[H256]) -> H256 {
    merkle_root(leaves.iter().copied())
}

fn proof_of(siblings: Vec<H256>) -> Proof {
    Proof(siblings.try_into().unwrap())
}

#[test]
fn every_leaf_of_every_tree_has_a_proof() {
    for count in 1..=70 {
        let leaves = leaves(count);
        for index in 0..count {
            let proof = Proof::new(&leaves, index).unwrap();
            assert!(proof.verify(&root(&leaves), &leaves[index as usize], index, count));
            assert!(proof.0.len() as u32 <= count.next_power_of_two().ilog2());
        }
        assert_eq!(Proof::new(&leaves, count), None);
    }
    assert_eq!(Proof::new(&[], 0), None);
}

#[test]
fn a_proof_is_of_one_place_alone() {
    for count in 1..=40 {
        let leaves = leaves(count);
        for index in 0..count {
            let proof = Proof::new(&leaves, index).unwrap();
            for other in (0..count + 3).filter(|other| *other != index) {
                assert!(!proof.verify(&root(&leaves), &leaves[index as usize], other, count));
            }
        }
    }
}

#[test]
fn a_node_is_no_leaf() {
    let leaves = leaves(4);
    let inner = [root(&leaves[..2]), root(&leaves[2..])];
    let short = proof_of(vec![inner[1]]);
    // The right shape for two leaves, with the nodes in their place.
    assert!(!short.verify(&root(&leaves), &inner[0], 0, 2));
    // A leaf whose bytes are a node's children does not exist: leaves are hashed with another prefix.
    let pair = [leaf_hash(&leaves[0]).0, leaf_hash(&leaves[1]).0].concat();
    assert!(!short.verify(&root(&leaves), &H256(blake2_256(&pair)), 0, 2));
    assert!(!short.verify(&root(&leaves), &leaf_hash(&leaves[0]), 0, 2));
}

#[test]
fn a_leaf_hash_is_no_leaf() {
    let one = leaves(1);
    let proof = Proof::default();
    assert!(proof.verify(&root(&one), &one[0], 0, 1));
    assert!(!proof.verify(&root(&one), &leaf_hash(&one[0]), 0, 1));
}

#[test]
fn nothing_is_in_an_empty_tree() {
    assert_eq!(Proof::default().root(&H256::zero(), 0, 0), None);
}

#[test]
fn the_largest_tree_is_checked_in_bounded_time() {
    let full = proof_of(vec![H256::repeat_byte(7); DEPTH_MAX as usize]);
    assert!(full.root(&H256::zero(), u32::MAX - 2, u32::MAX).is_some());
    assert_eq!(full.root(&H256::zero(), u32::MAX - 1, u32::MAX), None);
    assert_eq!(full.encode().len(), Proof::max_encoded_len());
    // One more does not decode.
    let long = vec![H256::zero(); DEPTH_MAX as usize + 1].encode();
    assert!(Proof::decode(&mut &long[..]).is_err());
}

proptest! {
    #[test]
    fn any_flipped_bit_fails(count in 1u32..200, place in any::<prop::sample::Index>(), bit in 0usize..256) {
        let leaves = leaves(count);
        let index = place.index(leaves.len());
        let (root, leaf) = (root(&leaves), leaves[index]);
        let proof = Proof::new(&leaves, index as u32).unwrap();
        prop_assert!(!proof.verify(&flipped(&root, bit), &leaf, index as u32, count));
        prop_assert!(!proof.verify(&root, &flipped(&leaf, bit), index as u32, count));
        for sibling in 0..proof.0.len() {
            let mut other = proof.0.to_vec();
            other[sibling] = flipped(&other[sibling], bit);
            prop_assert!(!proof_of(other).verify(&root, &leaf, index as u32, count));
        }
    }

    #[test]
    fn a_longer_or_shorter_way_fails(count in 2u32..200, place in any::<prop::sample::Index>()) {
        let leaves = leaves(count);
        let index = place.index(leaves.len());
        let proof = Proof::new(&leaves, index as u32).unwrap().0.to_vec();
        let verify = |siblings: &[H256]| {
            proof_of(siblings.to_vec()).verify(&root(&leaves), &leaves[index], index as u32, count)
        };
        prop_assert!(verify(&proof));
        prop_assert!(!verify(&proof[1..]));
        prop_assert!(!verify(&proof[..proof.len() - 1]));
        prop_assert!(!verify(&[&proof[..], &proof[..1]].concat()));
    }

    #[test]
    fn hostile_proofs_are_refused(bytes in proptest::collection::vec(any::<u8>(), 0..1200), index: u32, count: u32) {
        if let Ok(proof) = Proof::decode(&mut &bytes[..]) {
            prop_assert!(!proof.verify(&H256::zero(), &H256::zero(), index, count));
        }
    }
}
