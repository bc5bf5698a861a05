//! What a provider signs when it hands over its result off chain.
//!
//! The client so holds a proof of what it was promised: which commitment stands on the chain, and for which
//! output. Two different statements of one provider about one task, or one that is not what the provider says
//! on the chain, are an offence that anybody can report. Signing and checking is for those who have sr25519.

use codec::{Decode, DecodeWithMemTracking, Encode, MaxEncodedLen};
use scale_info::TypeInfo;
use sp_core::H256;
use sp_crypto_hashing::blake2_256;
use surety_types::{ContentHash, TaskId};

/// Keeps a statement from being taken for anything else that the key signs.
const DOMAIN: &[u8] = b"surety-commit-statement";

/// What a provider promises.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct CommitStatement<AccountId> {
    /// Task id.
    pub task: TaskId,
    /// Provider's stash.
    pub provider: AccountId,
    /// What it has committed to on the chain ([`commitment`](crate::commitment)).
    pub commitment: H256,
    /// The output that it hands over, and that the commitment is to open to.
    pub output: ContentHash,
}

impl<AccountId: Encode> CommitStatement<AccountId> {
    /// What is signed: `blake2_256(SCALE(domain, genesis, statement))`. `genesis` is that of the chain the
    /// task is on.
    pub fn message(&self, genesis: &H256) -> [u8; 32] {
        blake2_256(&(DOMAIN, genesis, self).encode())
    }
}

/// A promise with its signature.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, DecodeWithMemTracking, MaxEncodedLen, TypeInfo)]
pub struct SignedStatement<AccountId> {
    /// What was promised.
    pub statement: CommitStatement<AccountId>,
    /// Whose key signed: the provider's agent.
    pub agent: AccountId,
    /// Its sr25519 signature of [`CommitStatement::message`].
    pub signature: [u8; 64],
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn statement(
        task: TaskId,
        provider: [u8; 32],
        commitment: [u8; 32],
        output: [u8; 32],
    ) -> CommitStatement<[u8; 32]> {
        CommitStatement {
            task,
            provider,
            commitment: H256(commitment),
            output: H256(output),
        }
    }

    #[test]
    fn the_message_is_what_the_documentation_says() {
        let signed = statement(7, [1; 32], [2; 32], [3; 32]);
        let mut preimage = vec![23 << 2];
        preimage.extend(b"surety-commit-statement");
        preimage.extend([9; 32]);
        preimage.extend(7u64.to_le_bytes());
        preimage.extend([[1; 32], [2; 32], [3; 32]].concat());
        assert_eq!(signed.message(&H256([9; 32])), blake2_256(&preimage));
    }

    proptest! {
        #[test]
        fn every_part_of_a_statement_and_its_chain_count(
            task in any::<u64>(), parts in any::<[[u8; 32]; 4]>(), bit in 0usize..256, which in 0usize..5,
        ) {
            let of = |task, parts: [[u8; 32]; 4]| statement(task, parts[0], parts[1], parts[2]).message(&H256(parts[3]));
            let (mut other_task, mut other) = (task, parts);
            match other.get_mut(which) {
                Some(part) => part[bit / 8] ^= 1 << (bit % 8),
                None => other_task ^= 1 << (bit % 64),
            }
            prop_assert_ne!(of(task, parts), of(other_task, other));
        }
    }
}
