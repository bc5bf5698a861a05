//! Samples of the records that the chain keeps, for tests.

use sp_core::crypto::AccountId32;
use surety_types::{
    stake::{Role, UnlockChunk},
    task::{Assignment, MemberProgress, RoundMember, RoundPhase, TaskState, Verdict},
    trust::{FaultKind, OpenDispute},
};

use super::{HASH, account, bid, claim, device, endpoints, manifest, spec, trust_records as trust};
use crate::{BidRecord, ProviderRecord, RegisteredModel, RoundRecord, StakeInfo, TaskInfo, TaskRecord};

/// A provider.
pub fn provider() -> ProviderRecord {
    ProviderRecord {
        device: device(),
        endpoints: endpoints(),
        last_heartbeat: 1,
    }
}

/// A model.
pub fn model() -> RegisteredModel {
    RegisteredModel {
        owner: account(),
        manifest: manifest(),
        deposit: 1,
    }
}

/// A stake, part of it on its way out.
pub fn stake() -> StakeInfo {
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
pub fn bid_record() -> BidRecord {
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
pub fn tasks() -> Vec<TaskRecord> {
    let states = vec![
        TaskState::Bidding { until: 1 },
        TaskState::Revealing { until: 1 },
        TaskState::Drawing { since: 1 },
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
        TaskState::Cancelled { at: 1, fee: 2 },
    ];
    let task = |state| TaskRecord {
        client: account(),
        spec: spec(),
        cap: 1,
        audits: surety_types::task::AuditTerms::default(),
        posted_at: 1,
        state,
    };
    states.into_iter().map(task).collect()
}

/// A round in each of its phases.
pub fn rounds() -> Vec<RoundRecord> {
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
        slash: Some(1),
        missed_reveal: true,
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
            defender: Some(0),
            challenger: Some(1),
        }]
        .try_into()
        .unwrap_or_default(),
        input_demand: Some(trust::input_demand()),
        reveals_until: Some(2),
        openings_until: Some(2),
        ..RoundRecord::new(1, 1)
    };
    phases.into_iter().map(round).collect()
}

/// The runtime API's answer to a question about a task.
pub fn task_view() -> Option<TaskInfo> {
    let task = tasks().pop()?;
    Some(TaskInfo {
        task,
        round: rounds().pop(),
        escrow: 1,
    })
}
