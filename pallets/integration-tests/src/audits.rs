//! Verifiers.

use codec::Encode;
use frame_support::dispatch::DispatchResult;
use sp_core::H256;
use sp_runtime::traits::{BlakeTwo256, Hash};
use surety_audit_economics::{AuditInput, audit_seal, draw};
use surety_types::{
    traits::DrawVerifier,
    trust::{AuditProof, AuditState},
};

use crate::*;

/// A draw that is its own proof: the first half binds it to agent and fields, the second is the output.
pub struct MockDraws;

pub(super) fn binding(agent: AccountId, label: &[u8], fields: &[(&'static [u8], &[u8])]) -> [u8; 32] {
    BlakeTwo256::hash(&(agent, label, fields).encode()).0
}

impl DrawVerifier<AccountId> for MockDraws {
    fn output(
        agent: &AccountId,
        label: &'static [u8],
        fields: &[(&'static [u8], &[u8])],
        _: &'static [u8],
        proof: &AuditProof,
    ) -> Option<[u8; 32]> {
        let output = proof.proof.first_chunk::<32>().copied();
        output.filter(|_| proof.pre_output == binding(*agent, label, fields))
    }

    #[cfg(feature = "runtime-benchmarks")]
    fn for_benchmark() -> (AccountId, AuditProof) {
        unimplemented!("benchmarks run over the runtime")
    }

    #[cfg(feature = "runtime-benchmarks")]
    fn seat_for_benchmark() -> (AccountId, AuditProof) {
        unimplemented!("benchmarks run over the runtime")
    }
}

/// The input for the verifiers of a provider, as the round is now. Where there is no seed yet, of none.
pub fn input_of(provider: AccountId) -> AuditInput<AccountId> {
    let draw = round().unwrap().draw.unwrap();
    AuditInput {
        seed: draw.seed.unwrap_or_default(),
        task: TASK,
        provider,
    }
}

/// A proof for an agent whose VRF gives 32 bytes like `draw`.
pub fn proof_of(agent: AccountId, input: &AuditInput<AccountId>, draw: u8) -> AuditProof {
    AuditProof {
        pre_output: binding(agent, draw::LABEL, &draw::borrowed(&input.fields())),
        proof: [draw; 64],
    }
}

pub fn seal_of(verifier: AccountId, provider: AccountId, result: u8) -> H256 {
    audit_seal(TASK, &provider, &verifier, &claim(result), &salt_of(verifier))
}

/// A verifier that drew itself announces that it audits the provider, with a result of its own.
pub fn announce(verifier: AccountId, provider: AccountId, result: u8) -> DispatchResult {
    announce_with(verifier, provider, result, 0)
}

/// A verifier that drew itself announces that it audits the provider, with this seal.
pub fn announce_sealed(verifier: AccountId, provider: AccountId, seal: H256) -> DispatchResult {
    send(
        verifier,
        ResultsCall::announce_audit {
            task: TASK,
            provider,
            proof: proof_of(agent_of(verifier), &input_of(provider), 0),
            seal,
        },
    )
}

/// The same with bytes like `draw` for its VRF's output.
pub fn announce_with(verifier: AccountId, provider: AccountId, result: u8, draw: u8) -> DispatchResult {
    send(
        verifier,
        ResultsCall::announce_audit {
            task: TASK,
            provider,
            proof: proof_of(agent_of(verifier), &input_of(provider), draw),
            seal: seal_of(verifier, provider, result),
        },
    )
}

/// Somebody opens the verifier's seal, without a signature.
pub fn reveal_audit(verifier: AccountId, provider: AccountId, result: u8) -> DispatchResult {
    send_opening(opening_audit(verifier, provider, result))
}

/// The opening of a verifier's seal.
pub fn opening_audit(verifier: AccountId, provider: AccountId, result: u8) -> ResultsCall {
    ResultsCall::reveal_audit {
        task: TASK,
        provider,
        verifier,
        claim: claim(result),
        salt: salt_of(verifier),
    }
}

/// How far an audit is.
pub fn audit_state(verifier: AccountId, provider: AccountId) -> Option<AuditState> {
    let audits = round()?.audits;
    let mut audits = audits.iter();
    audits
        .find(|audit| audit.verifier == verifier && audit.provider == provider)
        .map(|audit| audit.state.clone())
}
