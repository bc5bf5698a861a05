//! What the benchmarks of channels need: signatures, a draw, and the largest requests.

use alloc::vec::Vec;
use codec::{Decode, Encode};
use sp_consensus_babe::AuthorityId;
use sp_runtime::RuntimeAppPublic;
use surety_channels::Request;
use surety_pallet_results::DisputeReferee;
use surety_types::{
    ContentHash,
    input::{SETTINGS_WORDS, WORD_BYTES},
    limits::INPUT_BYTES_MAX,
    model::Operation,
    task::ResultClaim,
    traits::{DrawVerifier, ModelCatalog},
    trust::{AuditProof, ItemLeaves},
};

use crate::{
    AccountId, ModelRegistry,
    configs::trust::{ExactReferee, Sr25519Draws},
};

/// Tokens of about the longest generation that there is a trace of.
const TOKENS: u32 = 1 << 16;

/// The VRF of the key that draws in all benchmarks, over a `ReceiptsInput` of seed 128,799 (a big-endian
/// number), provider `account("provider", 0, 0)` and batch 63: the output and the proof, as sp-core's
/// `Pair::vrf_sign` would give it.
const PRE_OUTPUT: [u8; 32] = [
    0x28, 0xea, 0x49, 0x54, 0x28, 0x9f, 0x65, 0x0a, 0x5a, 0x9b, 0x51, 0x12, 0x33, 0x5b, 0x29, 0xd8, 0x65,
    0xd6, 0xd0, 0x23, 0xc4, 0xd6, 0x20, 0x3a, 0x9e, 0xe4, 0xe9, 0x9b, 0x76, 0x53, 0x17, 0x30,
];
const PROOF: [u8; 64] = [
    0x25, 0xb0, 0x4d, 0xe8, 0xea, 0xbd, 0xb8, 0x8f, 0xef, 0x21, 0x86, 0x1c, 0xfd, 0x9d, 0x24, 0xe7, 0x7b,
    0xc8, 0x70, 0x73, 0x59, 0xff, 0x8a, 0x69, 0xad, 0xbc, 0x82, 0x33, 0xed, 0x33, 0x35, 0x01, 0x5c, 0x2b,
    0x6b, 0xda, 0xb7, 0x54, 0xdd, 0xff, 0xf1, 0x28, 0x2d, 0xb1, 0x1f, 0x01, 0x93, 0x53, 0xd4, 0xff, 0xa8,
    0x5e, 0xda, 0xe4, 0xbb, 0xe9, 0x13, 0xb0, 0x94, 0x3a, 0x91, 0xe0, 0x72, 0x0e,
];

/// A verifier's agent, and its proof for the draw of the benchmark.
pub(super) fn draw() -> (AccountId, AuditProof) {
    let (agent, _) = Sr25519Draws::for_benchmark();
    let proof = AuditProof {
        pre_output: PRE_OUTPUT,
        proof: PROOF,
    };
    (agent, proof)
}

/// A key of the benchmark's key store, and its signature of each of these.
pub(super) fn signatures(signed: &[&[u8]]) -> (AccountId, Vec<[u8; 64]>) {
    let key = AuthorityId::generate_pair(None);
    let sign = |bytes| key.sign(bytes).expect("the key store has the key").encode();
    let signature = |bytes| <[u8; 64]>::decode(&mut sign(bytes).as_slice());
    let signatures = signed.iter().map(|bytes| signature(bytes).expect("64 bytes"));
    let account = AccountId::decode(&mut key.encode().as_slice()).expect("32 bytes");
    (account, signatures.collect())
}

/// A request for the longest generation, of the largest model that can be registered, with a prompt of one
/// token.
pub(super) fn generation() -> Request {
    let input_bytes = SETTINGS_WORDS.saturating_add(1).saturating_mul(WORD_BYTES);
    request(Operation::Generate, input_bytes, TOKENS)
}

/// A request for items, a claim about them, and the leaves of the first, of the model with most of them.
pub(super) fn item() -> (Request, ResultClaim, ItemLeaves) {
    let (_, claim, shown) = ExactReferee::item_for_benchmark();
    let request = request(Operation::Embed, INPUT_BYTES_MAX, claim.units);
    (request, claim, shown)
}

fn request(operation: Operation, input_bytes: u32, units_max: u32) -> Request {
    Request {
        model: <ModelRegistry as ModelCatalog>::register_for_benchmark(operation),
        operation,
        input: ContentHash::repeat_byte(1),
        input_bytes,
        units_max,
        unit_price: 1,
    }
}
