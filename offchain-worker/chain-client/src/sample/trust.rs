//! Samples of the calls that results and disputes take.

use sp_core::{H256, crypto::AccountId32};
use surety_dispute_game::bisection::{Entry, Move, StepsOpening};
use surety_proofs::{CommitStatement, PartOpening, SegmentOpening, SignedStatement};
use surety_types::trust::{
    AuditAnswer, AuditProof, Content, ContentPart, DemandedParts, ItemFound, ItemLeaves, ItemsFound,
    Refutation,
};

use super::{HASH, account, claim};
use crate::Call;

/// One call of each kind.
pub(super) fn calls() -> Vec<Call> {
    let (task, dispute, provider) = (3, 7, account());
    let mut calls = of_audits();
    calls.extend([
        Call::Challenge {
            task,
            provider: provider.clone(),
        },
        Call::Demand {
            task,
            provider,
            parts: parts(),
            proof: Some(proof()),
        },
        Call::DemandInput { task, segment: 1 },
        Call::Play {
            dispute,
            number: 2,
            played: entry().map_or(Move::Concede, Move::Enter),
        },
        Call::AdvanceDispute { dispute },
        Call::CarryOutSlash { slash: 1 },
        Call::ReportEquivocation {
            statement: Box::new(statement()),
            other: Some(Box::new(statement())),
        },
        Call::JoinCommittee {
            dispute,
            ballot: 1,
            proof: Some(proof()),
            seal: HASH,
        },
        Call::RevealVote {
            dispute,
            verifier: account(),
            value: HASH,
            salt: HASH,
        },
    ]);
    calls.extend(PartOpening::new(&[1; 10_000], 1).map(|opening| Call::Supply {
        task,
        content: Content::Output,
        bytes: 1,
        opening,
    }));
    calls.extend(opening().map(|opening| Call::SupplyInput { task, opening }));
    calls
}

pub(super) fn parts() -> DemandedParts {
    let part = |content| ContentPart { content, part: 1 };
    DemandedParts::truncate_from(vec![part(Content::Input), part(Content::Output)])
}

fn opening() -> Option<SegmentOpening> {
    SegmentOpening::new(&[1; 2000], 1)
}

fn entry() -> Option<Entry> {
    let leaves = [H256([1; 32]), H256([2; 32])];
    Some(Entry {
        length: Some(opening()?),
        steps: StepsOpening::new(&leaves),
    })
}

pub(super) fn proof() -> AuditProof {
    AuditProof {
        pre_output: [1; 32],
        proof: [2; 64],
    }
}

fn statement() -> SignedStatement<AccountId32> {
    SignedStatement {
        statement: CommitStatement {
            task: 1,
            provider: account(),
            commitment: HASH,
            output: HASH,
        },
        agent: account(),
        signature: [1; 64],
    }
}

fn of_audits() -> Vec<Call> {
    let (task, provider) = (3, account());
    vec![
        Call::AnnounceAudit {
            task,
            provider: provider.clone(),
            proof: proof(),
            seal: HASH,
        },
        Call::RevealAudit {
            task,
            provider: provider.clone(),
            verifier: account(),
            claim: claim(),
            salt: HASH,
        },
        Call::RevealItems {
            task,
            provider: provider.clone(),
            verifier: account(),
            found: found(),
            answer: answer(),
        },
        Call::RefuteAudit {
            task,
            provider: provider.clone(),
            verifier: account(),
            refutation: Box::new(refutation()),
        },
    ]
}

fn found() -> ItemsFound {
    ItemsFound::truncate_from(vec![ItemFound::default()])
}

fn answer() -> AuditAnswer {
    AuditAnswer {
        agrees: true,
        salt: HASH,
        other: HASH,
    }
}

fn refutation() -> Refutation {
    Refutation {
        found: found(),
        answer: answer(),
        place: 1,
        shown: ItemLeaves {
            leaves: vec![HASH].try_into().unwrap_or_default(),
            siblings: vec![HASH].try_into().unwrap_or_default(),
        },
    }
}
