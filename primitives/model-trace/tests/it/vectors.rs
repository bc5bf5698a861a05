//! What `vectors/generate.py` makes by the formulas, with another implementation of BLAKE2b.

use serde_json::Value;
use sp_core::H256;
use surety_model_trace::sampling_random;

fn hash(value: &Value) -> H256 {
    H256::from_slice(&hex::decode(value.as_str().unwrap()).unwrap())
}

#[test]
fn sampling_randoms() {
    let vectors: Vec<Value> =
        serde_json::from_str(include_str!("../../vectors/sampling_random.json")).unwrap();
    assert!(vectors.len() >= 4);
    for vector in vectors {
        let seed = vector["seed"].as_str().unwrap().parse().unwrap();
        let random: u64 = vector["random"].as_str().unwrap().parse().unwrap();
        let position = u32::try_from(vector["position"].as_u64().unwrap()).unwrap();
        assert_eq!(sampling_random(&hash(&vector["input"]), seed, position), random);
    }
}
