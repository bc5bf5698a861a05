//! What verifiers find where their points are (`surety_audit_economics::channels`), and seal before they see
//! what the provider's receipts say of it.

use codec::Encode;
use sp_core::{ConstU32, H256, bounded::BoundedVec};
use sp_crypto_hashing::blake2_256;

use crate::BatchNumber;

/// Most points of a verifier on one batch.
pub const POINTS_MAX: u32 = 64;

/// Stands for what a verifier could not compute: no hash of anything. Such a point is not paid, and cannot be
/// refuted.
pub const NOT_COMPUTED: H256 = H256::zero();

/// What was found at each of a verifier's points, in their ascending order: of a generation the root of its
/// trace, of an embedding the Merkle root over the leaves of the item that the point is in; or
/// [`NOT_COMPUTED`].
pub type PointsFound = BoundedVec<H256, ConstU32<POINTS_MAX>>;

/// How many of a verifier's points were computed.
pub fn computed(found: &PointsFound) -> u32 {
    let computed = found.iter().filter(|found| **found != NOT_COMPUTED);
    u32::try_from(computed.count()).unwrap_or(u32::MAX)
}

/// `blake2_256(SCALE("audit points", provider, batch, verifier, found, salt))`.
pub fn points_seal<AccountId: Encode>(
    provider: &AccountId,
    batch: BatchNumber,
    verifier: &AccountId,
    found: &PointsFound,
    salt: &H256,
) -> H256 {
    H256(blake2_256(
        &(b"audit points", provider, batch, verifier, found, salt).encode(),
    ))
}
