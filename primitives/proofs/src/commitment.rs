//! What a provider publishes before anybody may see its result.

use codec::Encode;
use sp_core::H256;
use sp_crypto_hashing::blake2_256;
use surety_types::{TaskId, task::ResultClaim};

/// `blake2_256(SCALE(task, provider, output, trace_root, units, salt))`.
///
/// `provider` is the stash, not its agent. Binding it makes copying a commitment useless: a copy opens for
/// nobody but its author. Binding the task keeps it from being replayed on another one. The salt keeps a
/// result that can be guessed from being found by trial.
pub fn commitment(task: TaskId, provider: &impl Encode, claim: &ResultClaim, salt: &H256) -> H256 {
    let preimage = (task, provider, claim.output, claim.trace_root, claim.units, salt);
    H256(blake2_256(&preimage.encode()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    fn hash(value: &Value) -> H256 {
        H256::from_slice(&hex::decode(value.as_str().unwrap()).unwrap())
    }

    fn claim(output: u8, trace_root: u8, units: u32) -> ResultClaim {
        ResultClaim {
            output: H256::repeat_byte(output),
            trace_root: H256::repeat_byte(trace_root),
            units,
        }
    }

    #[test]
    fn commitments_match_the_golden_vectors() {
        let vectors: Value = serde_json::from_str(include_str!("../vectors/commitment.json")).unwrap();
        let vectors = vectors.as_array().unwrap();
        assert!(vectors.len() >= 3);
        for vector in vectors {
            let claim = ResultClaim {
                output: hash(&vector["output"]),
                trace_root: hash(&vector["trace_root"]),
                units: u32::try_from(vector["units"].as_u64().unwrap()).unwrap(),
            };
            let task = vector["task"].as_str().unwrap().parse().unwrap();
            let provider = hash(&vector["provider"]).0;
            assert_eq!(
                commitment(task, &provider, &claim, &hash(&vector["salt"])),
                hash(&vector["commitment"]),
                "{vector}"
            );
        }
    }

    proptest! {
        #[test]
        fn every_part_of_the_preimage_counts(
            task in any::<u64>(), provider in any::<[u8; 32]>(), output in any::<u8>(), trace_root in any::<u8>(),
            units in any::<u32>(), salt in any::<[u8; 32]>(), bit in 0usize..256,
        ) {
            let flip = |mut bytes: [u8; 32]| {
                bytes[bit / 8] ^= 1 << (bit % 8);
                bytes
            };
            let original = claim(output, trace_root, units);
            let salt = H256(salt);
            let sealed = commitment(task, &provider, &original, &salt);
            let other = |changed: &ResultClaim| commitment(task, &provider, changed, &salt);

            prop_assert_ne!(sealed, commitment(task ^ (1 << (bit % 64)), &provider, &original, &salt));
            prop_assert_ne!(sealed, commitment(task, &flip(provider), &original, &salt));
            prop_assert_ne!(sealed, commitment(task, &provider, &original, &H256(flip(salt.0))));
            prop_assert_ne!(sealed, other(&ResultClaim { output: H256(flip(original.output.0)), ..original.clone() }));
            prop_assert_ne!(
                sealed,
                other(&ResultClaim { trace_root: H256(flip(original.trace_root.0)), ..original.clone() })
            );
            prop_assert_ne!(sealed, other(&ResultClaim { units: units ^ (1 << (bit % 32)), ..original.clone() }));
        }
    }
}
