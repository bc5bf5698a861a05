//! Statements that providers sign.

use codec::Encode;
use frame_support::dispatch::DispatchResult;
use sp_core::H256;
use sp_io::hashing::blake2_256;
use surety_proofs::{CommitStatement, SignedStatement};
use surety_types::{TaskId, traits::SignatureVerifier};

use crate::*;

/// A signature that is a hash of who signs what.
pub struct MockSignatures;

fn signature(agent: AccountId, message: &[u8; 32]) -> [u8; 64] {
    let mut signature = [0; 64];
    signature[..32].copy_from_slice(&blake2_256(&(b"signed", agent, message).encode()));
    signature
}

impl SignatureVerifier<AccountId> for MockSignatures {
    fn is_signed(agent: &AccountId, message: &[u8; 32], signed: &[u8; 64]) -> bool {
        signature(*agent, message) == *signed
    }

    #[cfg(feature = "runtime-benchmarks")]
    fn for_benchmark(_: &[[u8; 32]]) -> (AccountId, Vec<[u8; 64]>) {
        unimplemented!("benchmarks run over the runtime")
    }
}

pub fn genesis() -> H256 {
    System::block_hash(0)
}

/// The stash's promise of `result` in this task, with the commitment it made to it.
pub fn promise(stash: AccountId, task: TaskId, result: u8) -> CommitStatement<AccountId> {
    CommitStatement {
        task,
        provider: stash,
        commitment: seal(stash, &claim(result)),
        output: claim(result).output,
    }
}

pub fn signed_by(
    agent: AccountId,
    statement: CommitStatement<AccountId>,
    genesis: &H256,
) -> SignedStatement<AccountId> {
    SignedStatement {
        signature: signature(agent, &statement.message(genesis)),
        statement,
        agent,
    }
}

/// A promise of `result` that the stash's agent signs.
pub fn promised(stash: AccountId, result: u8) -> SignedStatement<AccountId> {
    signed_by(agent_of(stash), promise(stash, TASK, result), &genesis())
}

/// A stranger reports.
pub fn report(
    statement: SignedStatement<AccountId>,
    other: Option<SignedStatement<AccountId>>,
) -> DispatchResult {
    send_as(
        FIRST_STRANGER,
        ResultsCall::report_equivocation { statement, other },
    )
}
