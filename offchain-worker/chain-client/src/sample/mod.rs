//! One value of each kind that we exchange with the chain, to hold against a runtime's metadata: what is encoded here
//! must be read there as exactly one value.

pub(crate) mod committee;
pub(crate) mod trust;

use codec::Encode;
use sp_core::{crypto::AccountId32, H256};
use surety_types::{
    model::{ModelFamily, ModelManifest, Operation, Tier},
    multiaddr::Endpoints,
    provider::{DeviceKind, DeviceProfile},
    stake::{Role, UnlockChunk},
    task::{
        Assignment, Bid, MemberProgress, ResultClaim, RoundMember, RoundPhase, Security, SecurityLevel,
        TaskSpec, TaskState, Verdict,
    },
    trust::{FaultKind, OpenDispute},
};

use crate::{BidRecord, Call, ProviderRecord, RegisteredModel, RoundRecord, StakeInfo, TaskInfo, TaskRecord};

const HASH: H256 = H256([2; 32]);

fn account() -> AccountId32 {
    AccountId32::new([1; 32])
}

/// One call of each kind.
pub(crate) fn calls() -> Vec<Call> {
    let (task, amount) = (3, 4);
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
        Call::PostTask {
            spec: spec(),
            cap: amount,
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
        Call::Transfer {
            to: account(),
            amount,
        },
    ];
    calls.extend(trust::calls());
    calls
}

fn device() -> DeviceProfile {
    DeviceProfile {
        name: b"sample".to_vec().try_into().unwrap_or_default(),
        kind: DeviceKind::Cpu,
        cores: 1,
        memory_mib: 1,
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
        tokenizer: HASH,
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

/// A provider.
pub(crate) fn provider() -> ProviderRecord {
    ProviderRecord {
        device: device(),
        endpoints: endpoints(),
        last_heartbeat: 1,
    }
}

/// A model.
pub(crate) fn model() -> RegisteredModel {
    RegisteredModel {
        owner: account(),
        manifest: manifest(),
        deposit: 1,
    }
}

/// A stake, part of it on its way out.
pub(crate) fn stake() -> StakeInfo {
    let chunk = UnlockChunk {
        amount: 1,
        available_at: 2,
    };
    StakeInfo {
        role: Role::Verifier,
        bonded: 3,
        locked: 1,
        unlocking: vec![chunk].try_into().unwrap_or_default(),
        agent: Some(account()),
        settled_at: 4,
    }
}

/// A bid as the chain keeps it.
pub(crate) fn bid_record() -> BidRecord {
    BidRecord {
        seal: HASH,
        opened: Some(bid()),
        deposit: 1,
    }
}

fn assignment() -> Assignment<AccountId32, crate::Balance> {
    Assignment {
        provider: account(),
        price: 1,
    }
}

/// A task in each of its states.
pub(crate) fn tasks() -> Vec<TaskRecord> {
    let states = vec![
        TaskState::Bidding { until: 1 },
        TaskState::Revealing { until: 1 },
        TaskState::Running {
            assignments: vec![assignment()].try_into().unwrap_or_default(),
            reserves: vec![assignment()].try_into().unwrap_or_default(),
        },
        TaskState::Settled {
            at: 1,
            claim: claim(),
            payments: vec![assignment()].try_into().unwrap_or_default(),
            refund: 1,
            fee: 1,
        },
        TaskState::Failed {
            at: 1,
            reason: surety_types::task::FailureReason::NoAgreement,
        },
        TaskState::Cancelled { at: 1 },
    ];
    let task = |state| TaskRecord {
        client: account(),
        spec: spec(),
        cap: 1,
        posted_at: 1,
        state,
    };
    states.into_iter().map(task).collect()
}

/// A round in each of its phases.
pub(crate) fn rounds() -> Vec<RoundRecord> {
    let verdict = Verdict::Agreed {
        claim: claim(),
        majority: vec![account()].try_into().unwrap_or_default(),
        minority: Default::default(),
        absent: Default::default(),
    };
    let phases = vec![
        RoundPhase::Committing { until: 1 },
        RoundPhase::Auditing { until: 1 },
        RoundPhase::Revealing { until: 1 },
        RoundPhase::Challengeable { until: 1, verdict },
    ];
    let member = |progress| RoundMember {
        progress,
        fault: Some(FaultKind::WrongResult),
        ..RoundMember::new(account(), 1, 1)
    };
    let members = vec![
        member(MemberProgress::Working),
        member(MemberProgress::Committed(HASH)),
        member(MemberProgress::Revealed(claim())),
    ];
    let round = |phase| RoundRecord {
        members: members.clone().try_into().unwrap_or_default(),
        dropped: vec![account()].try_into().unwrap_or_default(),
        phase,
        draw: Some(trust::draw()),
        audits: trust::audits().try_into().unwrap_or_default(),
        disputes: vec![OpenDispute {
            id: 1,
            due: 1,
            seats: Some((0, 1)),
        }]
        .try_into()
        .unwrap_or_default(),
        input_demand: Some(trust::input_demand()),
        ..RoundRecord::new(1, 1, 1)
    };
    phases.into_iter().map(round).collect()
}

/// The runtime API's answer to a question about a task.
pub(crate) fn task_view() -> Option<TaskInfo> {
    let task = tasks().pop()?;
    Some(TaskInfo {
        task,
        round: rounds().pop(),
        escrow: 1,
    })
}

/// An account, in SCALE.
pub(crate) fn account_bytes() -> Vec<u8> {
    account().encode()
}
