//! Audits of some of a task's items: which are ours, and how they are compared with the provider's result.

use surety_audit_economics::drawn_items;
use surety_types::{
    model::Operation,
    task::{ResultClaim, RoundPhase},
    trust::AuditState,
};

use super::audit_task::{AuditTask, Check, Draw, Member};
use crate::{AccountId, BlockNumber, Config, Effect, EffectKind, Found, Hash, TaskSnapshot, key_of};

/// Times that a provider's leaves are looked for before all is computed.
const COMPARE_ATTEMPTS: u32 = 5;

/// How far an audit of items is that may come to computing all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Duty {
    /// We have begun it, or sealed it.
    Owed,
    /// Its input is here, and we have not begun it.
    Offered,
    /// Its input is not here.
    Unread,
}

impl AuditTask {
    fn member(&self, key: Hash) -> Option<&Member> {
        let mut members = self.seen()?.round.as_ref()?.members.iter();
        members.find(|member| key_of(&member.provider) == key)
    }

    /// Whether an audit of a provider's result is of some items.
    pub fn is_sampled(&self, key: Hash) -> bool {
        let spec = self.seen().map(|seen| &seen.task.spec);
        spec.zip(self.member(key)).is_some_and(|(spec, member)| {
            spec.operation == Operation::Embed && member.audits.items < spec.units_max
        })
    }

    /// Which items of a provider's result are ours; nothing where all of them are.
    pub fn own_items(&self, key: Hash, config: &Config) -> Option<Vec<u32>> {
        let member = self.member(key).filter(|_| self.is_sampled(key))?;
        let output = match self.audit_shown(&member.provider, &config.stash) {
            Some(shown) => shown.draw.0,
            None => match self.checks.get(&key)?.draw {
                Draw::Ours(drawn) => drawn.output,
                _ => return None,
            },
        };
        let units_max = self.seen()?.task.spec.units_max;
        Some(drawn_items(&output, units_max, member.audits.items))
    }

    /// Audits of items that may come to computing all: those that were taken on and are not compared, or are
    /// played about, and those that we could take on now.
    pub(super) fn duties(&self, stash: &AccountId, clock: BlockNumber) -> impl Iterator<Item = (Hash, Duty)> {
        let checks = self.checks.iter().filter(|(key, _)| self.is_sampled(**key));
        checks.filter_map(move |(key, check)| {
            let phase = &self.seen()?.round.as_ref()?.phase;
            let shown = self.audit_shown(&self.member(*key)?.provider, stash);
            let is_open = match shown.map(|audit| &audit.state) {
                Some(AuditState::Sealed(_) | AuditState::Differs | AuditState::Disputed(_)) => true,
                Some(_) => false,
                None => {
                    let is_open = matches!(phase, RoundPhase::Auditing { until } if clock < *until);
                    is_open && matches!(check.draw, Draw::Ours(_))
                }
            };
            let duty = match (check.sealed.is_some(), self.tokens.is_some()) {
                (true, _) => Duty::Owed,
                (false, true) if check.fits => Duty::Owed,
                (false, true) => Duty::Offered,
                (false, false) => Duty::Unread,
            };
            (is_open && check.may_take_all()).then_some((*key, duty))
        })
    }

    /// How a seal over items is held against the result.
    pub fn comparing(&self, key: Hash) -> EffectKind {
        let served = EffectKind::CompareAudit(key);
        let has_looked = self.attempts.count(served) >= COMPARE_ATTEMPTS;
        match has_looked && !self.attempts.is_under_way(served) {
            true => EffectKind::CompareAll(key),
            false => served,
        }
    }

    pub fn comparison(&self, seen: &TaskSnapshot, kind: EffectKind, config: &Config) -> Option<Effect> {
        let (EffectKind::CompareAudit(key) | EffectKind::CompareAll(key)) = kind else {
            return None;
        };
        let provider = self.provider(key)?;
        let (task, spec) = (seen.id, seen.task.spec.clone());
        let claim = revealed(seen, &provider)?.clone();
        if kind == EffectKind::CompareAll(key) {
            return Some(Effect::CompareAll {
                task,
                provider,
                spec,
                claim,
            });
        }
        let Found::Items(found) = &self.checks.get(&key)?.sealed.as_ref()?.found else {
            return None;
        };
        Some(Effect::CompareAudit {
            task,
            provider,
            spec,
            claim,
            own: (self.own_items(key, config)?, found.clone()),
        })
    }
}

impl Check {
    /// Whether we go on with it: what the journal knows of it is sealed.
    pub fn is_taken(&self) -> bool {
        self.fits || self.sealed.is_some()
    }

    /// Whether all may have to be computed for it: to compare what nobody shows, or to play about it without
    /// what the provider has shown.
    fn may_take_all(&self) -> bool {
        let is_whole = self
            .sealed
            .as_ref()
            .is_some_and(|sealed| matches!(sealed.found, Found::Whole(_)));
        let is_played_alone = self.agrees == Some(false) && self.view.is_none();
        !is_whole && (self.agrees.is_none() || is_played_alone)
    }
}

/// What a provider has revealed.
pub(super) fn revealed<'a>(seen: &'a TaskSnapshot, provider: &AccountId) -> Option<&'a ResultClaim> {
    let mut members = seen.round.as_ref()?.members.iter();
    members.find(|member| member.provider == *provider)?.claim()
}
