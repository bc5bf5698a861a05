//! Entropy and draws, as a test wants them.

use codec::Encode;
use sp_core::H256;
use sp_runtime::AccountId32;
use surety_types::{
    traits::{BlockEntropy, DrawVerifier},
    trust::AuditProof,
};

use super::Drawn;
#[cfg(feature = "runtime-benchmarks")]
use super::verifier_agent;

/// What a test says that a block gave.
pub struct Author;

impl BlockEntropy<u64> for Author {
    fn first_after(block: u64) -> Option<(H256, u64)> {
        Drawn::get().filter(|(_, of)| *of > block)
    }

    #[cfg(feature = "runtime-benchmarks")]
    fn fill_for_benchmark(block: u64) {
        Drawn::set(Some((H256::zero(), block + 1)));
    }
}

/// Whoever gives the right proof draws the hash of the fields.
pub struct Hashed;

pub(crate) const PROOF: AuditProof = AuditProof {
    pre_output: [1; 32],
    proof: [1; 64],
};

impl DrawVerifier<AccountId32> for Hashed {
    fn output(
        agent: &AccountId32,
        label: &'static [u8],
        fields: &[(&'static [u8], &[u8])],
        context: &'static [u8],
        proof: &AuditProof,
    ) -> Option<[u8; 32]> {
        let all = (agent, label, fields, context).encode();
        (*proof == PROOF).then(|| sp_io::hashing::blake2_256(&all))
    }

    #[cfg(feature = "runtime-benchmarks")]
    fn for_benchmark() -> (AccountId32, AuditProof) {
        (verifier_agent(), PROOF)
    }

    #[cfg(feature = "runtime-benchmarks")]
    fn seat_for_benchmark() -> (AccountId32, AuditProof) {
        (verifier_agent(), PROOF)
    }
}
