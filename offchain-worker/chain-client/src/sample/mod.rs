//! One call of each kind, to hold against a runtime's metadata, and for tests one record of each kind.

pub mod channels;
#[cfg(any(test, feature = "testsuite"))]
pub mod committee;
#[cfg(any(test, feature = "testsuite"))]
pub mod records;
pub mod stake;
mod trust;
#[cfg(any(test, feature = "testsuite"))]
pub mod trust_records;

use sp_core::{H256, crypto::AccountId32};
use surety_types::{
    model::{ModelFamily, ModelManifest, Operation, Tier},
    multiaddr::Endpoints,
    provider::{DeviceKind, DeviceProfile},
    speed::{self, Requirements},
    stake::Role,
    task::{Bid, ResultClaim, Security, SecurityLevel, TaskSpec},
};

use crate::Call;

const HASH: H256 = H256([2; 32]);

fn account() -> AccountId32 {
    AccountId32::new([1; 32])
}

/// One call of each kind.
pub fn calls() -> Vec<Call> {
    let amount = 4;
    let mut calls = vec![
        Call::Bond {
            role: Role::Provider,
            amount,
        },
        Call::Unbond { amount },
        Call::WithdrawUnbonded,
        Call::Rebond { amount },
        Call::SetAgent { agent: account() },
        Call::ConfirmAgent { stash: account() },
        Call::RemoveAgent,
        Call::RegisterProvider {
            device: device(),
            endpoints: endpoints(),
        },
        Call::Heartbeat,
        Call::DeregisterProvider,
        Call::RegisterModel { manifest: manifest() },
        Call::RetireModel { model: HASH },
        Call::OfferAudits {
            model: HASH,
            offered: true,
        },
    ];
    let transfer = Call::Transfer {
        to: account(),
        amount,
    };
    calls.extend(of_tasks());
    calls.push(transfer.clone());
    calls.extend(trust::calls());
    calls.extend(channels::calls());
    calls.extend(stake::calls());
    calls.extend(of_runs());
    calls.push(Call::Batch(vec![Call::Unbond { amount }, transfer]));
    calls
}

fn of_tasks() -> Vec<Call> {
    let task = 3;
    vec![
        Call::PostTask {
            spec: TaskSpec {
                requirements: requirements(),
                ..spec()
            },
            cap: 4,
        },
        Call::Bid { task, seal: HASH },
        Call::RevealBid {
            task,
            provider: account(),
            bid: bid(),
        },
        Call::CancelTask { task },
        Call::AdvanceTask { task },
        Call::Commit {
            task,
            commitment: HASH,
        },
        Call::Reveal {
            task,
            provider: account(),
            claim: claim(),
            salt: HASH,
        },
    ]
}

fn of_runs() -> Vec<Call> {
    vec![
        Call::CommitRun {
            entropy: HASH,
            plan: surety_gpu_proofs::Plan { rows: 32, layers: 8 },
            root: HASH,
        },
        Call::OpenRun {
            openings: Box::default(),
        },
    ]
}

fn requirements() -> Requirements {
    Requirements {
        tier: Some(speed::Tier::B),
        memory_mib: 1,
        region: "DE".parse().ok(),
    }
}

fn device() -> DeviceProfile {
    DeviceProfile {
        name: b"sample".to_vec().try_into().unwrap_or_default(),
        kind: DeviceKind::Cpu,
        cores: 1,
        memory_mib: 1,
        region: "DE".parse().ok(),
    }
}

fn endpoints() -> Endpoints {
    let endpoint = b"/sample".to_vec().try_into().unwrap_or_default();
    vec![endpoint].try_into().unwrap_or_default()
}

fn manifest() -> ModelManifest {
    ModelManifest {
        name: b"sample".to_vec().try_into().unwrap_or_default(),
        family: ModelFamily::Bert,
        tier: Tier::Exact,
        operations: vec![Operation::Embed].try_into().unwrap_or_default(),
        weights: HASH,
        weights_bytes: 1,
        text: Default::default(),
        config: HASH,
        exact: None,
    }
}

fn spec() -> TaskSpec {
    TaskSpec {
        model: HASH,
        operation: Operation::Embed,
        input: HASH,
        input_bytes: 1,
        units_max: 1,
        redundancy: 1,
        sources: endpoints(),
        security: Security {
            level: SecurityLevel::High,
            value_at_risk: 1,
        },
        requirements: Default::default(),
    }
}

fn bid() -> Bid<crate::Balance> {
    Bid {
        price: 4,
        seconds: 5,
        salt: HASH,
    }
}

fn claim() -> ResultClaim {
    ResultClaim {
        output: HASH,
        trace_root: HASH,
        units: 6,
    }
}
