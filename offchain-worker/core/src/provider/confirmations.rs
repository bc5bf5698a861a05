//! Auditors that confirmed our result by some of its items: what they sealed of those is held against our own
//! trace, and where it is something else, they are shown to have computed nothing.
//!
//! We pay them, and have the leaves at hand: nobody else looks.

use std::collections::BTreeMap;

use surety_audit_economics::drawn_items;
use surety_types::{
    ContentHash, TaskId,
    task::{ResultClaim, RoundPhase},
    trust::{Audit, AuditState, ItemsOpened, Refutation},
};

use crate::{
    AccountId, Balance, BlockNumber, Confirmation, Effect, EffectKind, Hash, Record, RoundRecord,
    TaskSnapshot, key_of, places::Wanted, provider_task::member,
};

/// What is known of one task's confirmations, by [`key_of`] the auditor: what refutes it, or that nothing
/// does. Journalled.
#[derive(Clone, Debug, Default)]
pub(crate) struct Confirmations(BTreeMap<Hash, Option<Box<Refutation>>>);

impl Confirmations {
    /// What there is to do about them in this state, and by when. It can be done for longer: for as long as
    /// the chain shows the confirmation.
    pub fn wants(&self, seen: &TaskSnapshot, stash: &AccountId, has_leaves: bool) -> Vec<Wanted> {
        let Some((round, _, until)) = confirmable(seen, stash) else {
            return Vec::new();
        };
        let of = |audit: &Audit<AccountId, Balance>| {
            let key = key_of(&audit.verifier);
            let kind = match self.0.get(&key) {
                None => has_leaves.then_some(EffectKind::CheckConfirmation(key)),
                Some(refutation) => refutation.is_some().then_some(EffectKind::Refute(key)),
            };
            kind.map(|kind| Wanted::new(kind, until))
        };
        confirmed(round, stash)
            .filter_map(|(audit, _)| of(audit))
            .collect()
    }

    /// The effect of that kind; `leaves` names those of our trace.
    pub fn effect(
        &self,
        kind: EffectKind,
        seen: &TaskSnapshot,
        stash: &AccountId,
        leaves: Option<ContentHash>,
    ) -> Option<Effect> {
        let (EffectKind::CheckConfirmation(key) | EffectKind::Refute(key)) = kind else {
            return None;
        };
        let (round, claim, _) = confirmable(seen, stash)?;
        let (audit, opened) = confirmed(round, stash).find(|(audit, _)| key_of(&audit.verifier) == key)?;
        let (task, verifier) = (seen.id, audit.verifier.clone());
        Some(match kind {
            EffectKind::Refute(_) => Effect::SubmitRefutation {
                task,
                verifier,
                refutation: self.0.get(&key)?.clone()?,
            },
            _ => Effect::CheckConfirmation {
                task,
                confirmation: Confirmation {
                    verifier,
                    spec: seen.task.spec.clone(),
                    items: drawn_items(&audit.draw.0, claim.units, member(round, stash)?.audits.items),
                    claim: claim.clone(),
                    leaves: leaves?,
                    opened,
                },
            },
        })
    }

    /// Takes in what a check came to. Says what is to be journalled of it: what was known before stays.
    pub fn take(
        &mut self,
        (task, at): (TaskId, BlockNumber),
        verifier: AccountId,
        refutation: Option<Box<Refutation>>,
    ) -> Option<Record> {
        let key = key_of(&verifier);
        if self.0.contains_key(&key) {
            return None;
        }
        self.0.insert(key, refutation.clone());
        Some(Record::ConfirmationChecked {
            task,
            at,
            verifier,
            refutation,
        })
    }

    /// Takes a record up. Says whether it fits those before it.
    pub fn replay(&mut self, verifier: &AccountId, refutation: Option<Box<Refutation>>) -> bool {
        *self
            .0
            .entry(key_of(verifier))
            .or_insert_with(|| refutation.clone())
            == refutation
    }
}

/// The round, our claim and the end of the phase, while confirmations of it can be refuted. Who has lost the
/// task pays nobody for it.
fn confirmable<'a>(
    seen: &'a TaskSnapshot,
    stash: &AccountId,
) -> Option<(&'a RoundRecord, &'a ResultClaim, BlockNumber)> {
    let round = seen.round.as_ref()?;
    let until = match round.phase {
        RoundPhase::Committing { .. } | RoundPhase::Auditing { .. } => return None,
        RoundPhase::Revealing { until } | RoundPhase::Challengeable { until, .. } => until,
    };
    let ours = member(round, stash).filter(|ours| ours.fault.is_none())?;
    Some((round, ours.claim()?, until))
}

/// Audits that have confirmed our result by its items, and where those were opened.
fn confirmed<'a>(
    round: &'a RoundRecord,
    stash: &'a AccountId,
) -> impl Iterator<Item = (&'a Audit<AccountId, Balance>, ItemsOpened)> {
    let ours = round.audits.iter().filter(move |audit| audit.provider == *stash);
    ours.filter(|audit| audit.state == AuditState::Confirmed)
        .filter_map(|audit| Some((audit, audit.items?)))
}
