//! Samples of what the trust lock keeps, and of the calls that it takes.

use sp_core::{crypto::AccountId32, H256};
use surety_types::{
    task::AuditDraw,
    trust::{Audit, AuditProof, AuditState, FaultKind, InputDemand, Party},
};
use surety_verification::{
    bisection::{
        Clocks, Entry, Game, LeafKind, LeafShape, Length, LengthOpening, Move, RowsShape, Shape, StepsOpening,
    },
    CellOpening, CommitStatement, Proof, SegmentOpening, SignedStatement,
};

use super::{account, claim, HASH};
use crate::{Balance, BlockNumber, Call, DemandRecord, DisputeRecord, SlashRecord, TrustInfo};

/// One call of each kind.
pub(super) fn calls() -> Vec<Call> {
    let (task, dispute, provider) = (3, 7, account());
    let mut calls = vec![
        Call::AnnounceAudit {
            task,
            provider: provider.clone(),
            proof: proof(),
            seal: HASH,
        },
        Call::RevealAudit {
            task,
            provider: provider.clone(),
            claim: claim(),
            salt: HASH,
        },
        Call::Challenge {
            task,
            provider: provider.clone(),
        },
        Call::Demand {
            task,
            provider,
            segment: 1,
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
            value: HASH,
            salt: HASH,
        },
    ];
    calls.extend(opening().map(|opening| Call::Supply {
        task,
        output_bytes: 1,
        opening,
    }));
    calls.extend(opening().map(|opening| Call::SupplyInput { task, opening }));
    calls
}

fn opening() -> Option<SegmentOpening> {
    SegmentOpening::new(&[1; 2000], 1)
}

fn entry() -> Option<Entry> {
    let leaves = [H256([1; 32]), H256([2; 32])];
    let length = LengthOpening {
        digest: HASH,
        proof: Proof::new(&leaves, 0)?,
        word: CellOpening::new(&leaves, 0, &[1; 2000], 0)?,
    };
    Some(Entry {
        length: Some(length),
        steps: StepsOpening::new(&leaves),
    })
}

fn proof() -> AuditProof {
    AuditProof {
        pre_output: [1; 32],
        proof: [2; 64],
    }
}

/// What auditors draw themselves with.
pub(super) fn draw() -> AuditDraw<Balance> {
    AuditDraw {
        seed: HASH,
        verifier_stake: 1,
        tranche: 1,
    }
}

/// An audit in each of its states.
pub(super) fn audits() -> Vec<Audit<AccountId32, Balance>> {
    let states = [
        AuditState::Sealed(HASH),
        AuditState::Confirmed,
        AuditState::Differs,
        AuditState::Disputed(1),
        AuditState::Over,
    ];
    let audit = |state| Audit {
        verifier: account(),
        provider: account(),
        bond: 1,
        state,
    };
    states.into_iter().map(audit).collect()
}

/// A trace of one leaf.
struct OneLeaf;

impl Shape for OneLeaf {
    fn leaves(&self) -> u32 {
        1
    }

    fn leaf(&self, leaf: u32) -> Option<LeafShape> {
        (leaf == 0).then_some(LeafShape {
            length: Length::Known(1),
            kind: LeafKind::Given,
        })
    }

    fn steps(&self, _: u32, _: u32) -> Option<u32> {
        None
    }

    fn rows(&self, leaf: u32, _: u32, _: u32) -> Option<RowsShape> {
        (leaf == 0).then_some(RowsShape {
            rows: 1,
            row_bytes: 4,
            quantised: None,
        })
    }
}

/// Disputes with each kind of challenger.
pub(crate) fn disputes() -> Vec<DisputeRecord> {
    let auditor = Party::Auditor {
        verifier: account(),
        provider: account(),
    };
    let parties = [Party::Provider(account()), auditor, Party::Account(account())];
    let dispute = |challenger| {
        Some(DisputeRecord {
            task: 3,
            defender: Party::Provider(account()),
            challenger,
            claim: claim(),
            proven: false,
            game: Game::new(HASH, &OneLeaf, Clocks::equal(5)).ok()?,
            bond: 1,
            moves: 1,
            opened_at: 1,
            ticked_at: 1,
            beyond_since: Some(1),
        })
    };
    parties.into_iter().filter_map(dispute).collect()
}

/// A demand.
pub(crate) fn demand() -> DemandRecord {
    DemandRecord {
        by: account(),
        segment: 1,
        price: 1,
        until: 1,
    }
}

/// A demand of input.
pub(super) fn input_demand() -> InputDemand<AccountId32, Balance, BlockNumber> {
    InputDemand {
        provider: account(),
        by: account(),
        segment: 1,
        price: 1,
        until: 1,
    }
}

/// A slash.
pub(crate) fn slash() -> SlashRecord {
    SlashRecord {
        task: 3,
        offender: account(),
        kind: FaultKind::Dissent,
        lock: 1,
        part: Default::default(),
        finder: Some(account()),
        client: None,
        proven_at: 1,
        until: 2,
    }
}

/// What is remembered of a stash.
pub(crate) fn record() -> TrustInfo {
    TrustInfo {
        clean_tasks: 1,
        absences: 1,
        jailed_until: Some(1),
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
