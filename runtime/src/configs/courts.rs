//! What disputes need to know of tasks, models and keys: the trust lock's referee is the exact arithmetic itself.

use codec::{Decode, Encode};
use frame_support::traits::Get;
use sp_core::{
    crypto::VrfPublic,
    sr25519::{
        vrf::{VrfSignature, VrfTranscript},
        Public,
    },
    H256,
};
use surety_pallet_trust_lock::DisputeReferee;
use surety_types::{
    model::{ExactForm, ModelFamily},
    task::{ResultClaim, TaskSpec},
    traits::DrawVerifier,
    trust::AuditProof,
    TaskId,
};
use surety_verification::{
    bisection::{Cell, Judgement, LeafShape, Length, Referee, Roots, RowsShape, Shape},
    cells::{CellReferee, Layout, TaskFacts},
};

use crate::{AccountId, Babe, Runtime};

/// One claim's court: its layout, and the model's weights.
pub struct Court {
    layout: Layout,
    weight_root: H256,
}

impl Shape for Court {
    fn leaves(&self) -> u32 {
        self.layout.leaves()
    }

    fn leaf(&self, leaf: u32) -> Option<LeafShape> {
        self.layout.leaf(leaf)
    }

    fn steps(&self, leaf: u32, length: u32) -> Option<u32> {
        self.layout.steps(leaf, length)
    }

    fn rows(&self, leaf: u32, length: u32, step: u32) -> Option<RowsShape> {
        self.layout.rows(leaf, length, step)
    }
}

impl Referee for Court {
    fn opening_bytes(&self, cell: &Cell) -> Option<u32> {
        CellReferee::new(&self.layout, self.weight_root).opening_bytes(cell)
    }

    fn judge(&self, cell: &Cell, roots: &Roots, opening: &[u8]) -> Judgement {
        CellReferee::new(&self.layout, self.weight_root).judge(cell, roots, opening)
    }
}

/// Finds courts by the task's specification and the model's manifest.
pub struct Courts;

impl Courts {
    /// The task's specification and its model, if that is on the exact tier.
    fn case(task: TaskId) -> Option<(TaskSpec, ModelFamily, ExactForm)> {
        let spec = surety_pallet_task_auction::Tasks::<Runtime>::get(task)?.spec;
        let manifest = surety_pallet_model_registry::Models::<Runtime>::get(spec.model)?.manifest;
        Some((spec, manifest.family, manifest.exact?))
    }
}

impl DisputeReferee for Courts {
    type Court = Court;

    fn court(task: TaskId, claim: &ResultClaim) -> Option<Court> {
        let (spec, family, form) = Self::case(task)?;
        let layout = Layout::new(&form.architecture, facts(&spec, family, claim)).ok()?;
        Some(Court {
            layout,
            weight_root: form.weight_root,
        })
    }

    fn is_impossible(task: TaskId, claim: &ResultClaim) -> bool {
        Self::case(task).is_some_and(|(spec, family, form)| {
            Layout::new(&form.architecture, facts(&spec, family, claim)).is_err()
        })
    }

    fn output_bytes(task: TaskId, claim: &ResultClaim) -> Option<u32> {
        let court = Self::court(task, claim)?;
        let last = court.leaves().checked_sub(1)?;
        match court.leaf(last)?.length {
            Length::Known(length) => Some(court.rows(last, length, 0)?.row_bytes),
            Length::Word { .. } => None,
        }
    }

    #[cfg(feature = "runtime-benchmarks")]
    fn for_benchmark(_: TaskId) -> ResultClaim {
        ResultClaim {
            output: H256::zero(),
            trace_root: H256::zero(),
            units: 1,
        }
    }
}

fn facts(spec: &TaskSpec, family: ModelFamily, claim: &ResultClaim) -> TaskFacts {
    TaskFacts {
        family,
        operation: spec.operation,
        input: spec.input,
        units: claim.units,
        output: claim.output,
    }
}

/// An agent's account is its sr25519 key: what its VRF gives can be checked with that alone. Accounts of other schemes
/// prove nothing.
pub struct AgentDraws;

impl DrawVerifier<AccountId> for AgentDraws {
    fn output(
        agent: &AccountId,
        label: &'static [u8],
        fields: &[(&'static [u8], &[u8])],
        context: &'static [u8],
        proof: &AuditProof,
    ) -> Option<[u8; 32]> {
        let signature = VrfSignature::decode(&mut &proof.encode()[..]).ok()?;
        let key = Public::from_raw(*agent.as_ref());
        let transcript = VrfTranscript::new(label, fields);
        if !key.vrf_verify(&transcript.clone().into_sign_data(), &signature) {
            return None;
        }
        key.make_bytes(context, &transcript, &signature.pre_output).ok()
    }

    #[cfg(feature = "runtime-benchmarks")]
    fn for_benchmark() -> (AccountId, AuditProof) {
        let proof = AuditProof {
            pre_output: [0; 32],
            proof: [0; 64],
        };
        (AccountId::new([0; 32]), proof)
    }
}

/// What BABE has made of the VRFs of a whole epoch: no single author chooses it.
pub struct EpochRandomness;

impl Get<H256> for EpochRandomness {
    fn get() -> H256 {
        H256(Babe::randomness())
    }
}
