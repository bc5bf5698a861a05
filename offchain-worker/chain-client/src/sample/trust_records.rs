//! Samples of what results, disputes and trust-lock keep, for tests.

use sp_core::crypto::AccountId32;
use surety_dispute_game::{
    bisection::{Clocks, Game, LeafKind, LeafShape, Length, RowsShape, Shape},
    dispute::Prepaid,
};
use surety_types::{
    task::AuditDraw,
    trust::{Audit, AuditState, FaultKind, InputDemand, Party, SlashCause},
};

use super::{HASH, account, claim};
use crate::{Balance, BlockNumber, DemandRecord, DisputeRecord, SlashRecord, TrustInfo};

/// What auditors draw themselves with.
pub(super) fn draw() -> AuditDraw<Balance, BlockNumber> {
    AuditDraw {
        begun_at: 1,
        settled_by: 1,
        epoch_randomness: HASH,
        verifier_stake: 1,
        seed: Some(HASH),
    }
}

/// An audit in each of its states.
pub(super) fn audits() -> Vec<Audit<AccountId32, Balance>> {
    let states = [
        AuditState::Sealed(HASH),
        AuditState::Confirmed,
        AuditState::Differs,
        AuditState::Disputed(1),
        AuditState::Defends(1),
        AuditState::Over,
    ];
    let audit = |state| Audit {
        verifier: account(),
        provider: account(),
        bond: 1,
        draw: Default::default(),
        items: None,
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
            kind: LeafKind::Fixed(HASH),
        })
    }

    fn steps(&self, _: u32, _: u32) -> Option<u32> {
        None
    }

    fn rows(&self, leaf: u32, _: u32, _: u32) -> Option<RowsShape> {
        (leaf == 0).then_some(RowsShape {
            rows: 1,
            row_bytes: 4,
            quantized: None,
        })
    }
}

/// Disputes with each kind of challenger.
pub fn disputes() -> Vec<DisputeRecord> {
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
            game: Game::new(HASH, &OneLeaf, Clocks::equal(5)).ok()?,
            bond: 1,
            committee_bond: 0,
            prepaid: Some(Prepaid {
                by: account(),
                amount: 1,
            }),
            moves: 1,
            opened_at: 1,
            ticked_at: 1,
            referred_at: Some(1),
        })
    };
    parties.into_iter().filter_map(dispute).collect()
}

/// A demand.
pub fn demand() -> DemandRecord {
    DemandRecord {
        demander: account(),
        by: account(),
        parts: super::trust::parts(),
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
pub fn slash() -> SlashRecord {
    SlashRecord {
        cause: SlashCause::Task(3),
        offender: account(),
        kind: FaultKind::LostDispute,
        lock: 1,
        part: Default::default(),
        finders: vec![account()].try_into().unwrap_or_default(),
        finder: Some(account()),
        client: None,
        proven_at: 1,
        until: 2,
    }
}

/// What is remembered of a stash.
pub fn record() -> TrustInfo {
    TrustInfo {
        clean_tasks: 1,
        jailed_until: Some(1),
        missed: 1,
        suspended_until: Some(2),
    }
}
