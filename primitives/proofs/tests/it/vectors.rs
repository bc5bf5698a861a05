//! What `vectors/generate.py` makes by the formulas, with another implementation of BLAKE2b.

use super::{leaves, row_bytes};
use codec::{Decode, Encode};
use serde_json::Value;
use sp_core::H256;
use surety_proofs::{Proof, row_digest, rows_digest, weight_row_leaf};

fn read(json: &str) -> Vec<Value> {
    let vectors: Vec<Value> = serde_json::from_str(json).unwrap();
    assert!(vectors.len() >= 4);
    vectors
}

fn hash(value: &Value) -> H256 {
    H256::from_slice(&hex::decode(value.as_str().unwrap()).unwrap())
}

fn number(value: &Value) -> u32 {
    u32::try_from(value.as_u64().unwrap()).unwrap()
}

#[test]
fn proofs() {
    for vector in read(include_str!("../../vectors/proof.json")) {
        let (count, index) = (number(&vector["leaves"]), number(&vector["index"]));
        let bytes = hex::decode(vector["scale"].as_str().unwrap()).unwrap();
        let proof = Proof::decode(&mut &bytes[..]).unwrap();
        assert_eq!(
            (Proof::new(&leaves(count), index), proof.encode()),
            (Some(proof.clone()), bytes)
        );
        assert!(
            proof.verify(&hash(&vector["root"]), &hash(&vector["leaf"]), index, count),
            "{vector}"
        );
    }
}

#[test]
fn row_digests() {
    for vector in read(include_str!("../../vectors/row_digest.json")) {
        let seed = vector["seed"].as_u64().unwrap();
        let rows: Vec<Vec<u8>> = (0..u64::from(number(&vector["rows"])))
            .map(|row| row_bytes(seed + row, vector["length"].as_u64().unwrap()))
            .collect();
        assert_eq!(row_digest(&rows[0]), hash(&vector["first"]), "{vector}");
        assert_eq!(
            rows_digest(rows.iter().map(Vec::as_slice)),
            hash(&vector["digest"]),
            "{vector}"
        );
    }
}

#[test]
fn weight_row_leaves() {
    for vector in read(include_str!("../../vectors/weight_row_leaf.json")) {
        let q: Vec<u8> = vector["q"]
            .as_array()
            .unwrap()
            .iter()
            .map(|q| q.as_i64().unwrap() as u8)
            .collect();
        let scales: Vec<f32> = vector["scales"]
            .as_array()
            .unwrap()
            .iter()
            .map(|s| s.as_f64().unwrap() as f32)
            .collect();
        let bias = vector["bias"].as_f64().map(|bias| bias as f32);
        let name = vector["name"].as_str().unwrap().as_bytes();
        let leaf = weight_row_leaf(name, number(&vector["row"]), &q, &scales, bias);
        assert_eq!(leaf, hash(&vector["leaf"]), "{vector}");
    }
}
