//! How a verifier draws itself, and how it seals what it found.
//!
//! The VRF is that of the verifier's **agent** key (sr25519). Its transcript has the label [`LABEL`] and the
//! fields of [`AuditInput::fields`]; the draw is the first 16 bytes of the 32 made from it for [`CONTEXT`]
//! ([`AuditThreshold::draws`](super::AuditThreshold::draws)). Signing and checking is for those who have
//! sr25519.
//!
//! The seed of an audit ([`audit_seed`]) is fixed after all providers have committed, and no commitment is
//! part of it or of what the VRF is evaluated over: there is nothing to try again for another draw. The
//! author of the block that gives its entropy knows it earlier; what a verifier draws from it nobody else
//! knows, and keys have to be older than that author's knowledge.

use alloc::vec::Vec;
use codec::{Decode, DecodeWithMemTracking, Encode, MaxEncodedLen};
use scale_info::TypeInfo;
use sp_core::H256;
use sp_crypto_hashing::blake2_256;
use surety_types::{
    TaskId,
    task::ResultClaim,
    trust::{AuditAnswer, DisputeId, ItemsFound},
};

/// Label of the transcripts of audits.
pub const LABEL: &[u8] = b"surety-audit";

/// What bytes are made from a VRF's output for.
pub const CONTEXT: &[u8] = b"surety-audit";

/// Label of the transcripts of committee seats.
pub const SEAT_LABEL: &[u8] = b"surety-seat";

/// What bytes are made from their outputs for.
pub const SEAT_CONTEXT: &[u8] = b"surety-seat";

/// A field of a transcript.
pub type Field = (&'static [u8], Vec<u8>);

/// A transcript's fields as those take them who sign and check.
pub fn borrowed(fields: &[Field]) -> Vec<(&'static [u8], &[u8])> {
    fields
        .iter()
        .map(|(name, value)| (*name, value.as_slice()))
        .collect()
}

/// What a verifier draws itself over.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct AuditInput<AccountId> {
    /// The round's seed.
    pub seed: H256,
    /// Task id.
    pub task: TaskId,
    /// Provider's stash.
    pub provider: AccountId,
}

impl<AccountId: Encode> AuditInput<AccountId> {
    /// The transcript's fields, in order: each value in SCALE.
    pub fn fields(&self) -> [Field; 3] {
        [
            (b"seed", self.seed.encode()),
            (b"task", self.task.encode()),
            (b"provider", self.provider.encode()),
        ]
    }
}

/// `blake2_256(SCALE("audit seed", genesis, epoch_randomness, entropy, task))`: what the auditors of a task
/// draw themselves with. The entropy is the VRF output of a block's author; none where blocks have none for
/// long. The genesis is the chain's: nobody with one key on two chains draws the same on both.
pub fn audit_seed(genesis: &H256, task: TaskId, epoch_randomness: &H256, entropy: Option<&H256>) -> H256 {
    H256(blake2_256(
        &(b"audit seed", genesis, epoch_randomness, entropy, task).encode(),
    ))
}

/// `blake2_256(SCALE("seat seed", genesis, epoch_randomness, entropy, dispute))`: what members of a
/// dispute's committee draw themselves with in all its ballots. The entropy is as in [`audit_seed`], of a
/// block after the move that called for the committee: neither side knows what it chooses.
pub fn seat_seed(
    genesis: &H256,
    dispute: DisputeId,
    epoch_randomness: &H256,
    entropy: Option<&H256>,
) -> H256 {
    H256(blake2_256(
        &(b"seat seed", genesis, epoch_randomness, entropy, dispute).encode(),
    ))
}

/// What a verifier draws itself over for a seat on a dispute's committee.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct SeatInput {
    /// The committee's [`seat_seed`].
    pub seed: H256,
    /// Dispute id.
    pub dispute: DisputeId,
    /// Ballots before this one.
    pub ballot: u32,
}

impl SeatInput {
    /// The transcript's fields, in order: each value in SCALE. Their label is [`SEAT_LABEL`].
    pub fn fields(&self) -> [Field; 3] {
        [
            (b"seed", self.seed.encode()),
            (b"dispute", self.dispute.encode()),
            (b"ballot", self.ballot.encode()),
        ]
    }
}

/// `blake2_256(SCALE("audit", task, provider, verifier, claim, salt))`: what a verifier publishes of its own
/// result before anybody may see it. Both accounts are stashes.
pub fn audit_seal<AccountId: Encode>(
    task: TaskId,
    provider: &AccountId,
    verifier: &AccountId,
    claim: &ResultClaim,
    salt: &H256,
) -> H256 {
    H256(blake2_256(
        &(b"audit", task, provider, verifier, claim, salt).encode(),
    ))
}

/// `blake2_256(SCALE("audit answer", salt))`: what a seal over items holds of each of its two answers.
pub fn answer_hash(salt: &H256) -> H256 {
    H256(blake2_256(&(b"audit answer", salt).encode()))
}

/// The [`answer_hash`]es that a seal has which is opened with this answer, the confirming one first.
pub fn answer_hashes(answer: &AuditAnswer) -> [H256; 2] {
    let own = answer_hash(&answer.salt);
    if answer.agrees {
        [own, answer.other]
    } else {
        [answer.other, own]
    }
}

/// `blake2_256(SCALE("audit items", task, provider, verifier, found, answers))`: what a verifier publishes
/// that computed some items, before it can know whether the provider says the same of them.
///
/// `answers` are the [`answer_hash`]es of two salts: the verifier opens the seal with the first when the
/// provider's result shows what it found, and with the second when not. So who passes an opening on cannot
/// turn it round, and an opening needs no signature. Both accounts are stashes.
pub fn items_seal<AccountId: Encode>(
    task: TaskId,
    provider: &AccountId,
    verifier: &AccountId,
    found: &ItemsFound,
    answers: &[H256; 2],
) -> H256 {
    H256(blake2_256(
        &(b"audit items", task, provider, verifier, found, answers).encode(),
    ))
}
