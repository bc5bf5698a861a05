//! Audits of some of a task's items: which are ours, and how they are compared with the provider's result.

use surety_audit_economics::drawn_items;
use surety_types::{
    model::Operation,
    task::{ResultClaim, RoundPhase},
    trust::AuditState,
};

use super::{
    audit_task::{AuditTask, Check, Draw, Member},
    unserved::is_demanded,
};
use crate::{AccountId, BlockNumber, Config, Effect, EffectKind, Found, Hash, TaskSnapshot, key_of};

/// Times that a provider's leaves are looked for before they are demanded, or, where that cannot be, before
/// all is computed.
const COMPARE_ATTEMPTS: u32 = 5;

/// How far an audit of items is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Duty {
    /// We have begun it, or sealed it.
    Owed,
    /// Its input is here, and we have not begun it.
    Offered,
    /// Its input is not here.
    Unread,
}

/// What an audit of items may come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comes {
    /// Its own items: what they are held against can be forced out.
    ToItems,
    /// All of the task.
    ToAll,
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

    /// How many items of a provider's result an auditor has.
    pub(super) fn items_of(&self, key: Hash) -> u32 {
        self.member(key).map_or(u32::MAX, |member| member.audits.items)
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

    /// Audits of items that there is to compute for: those that were taken on and are not compared, or are
    /// played about with all of a trace, and those that we could take on now.
    pub(super) fn duties(
        &self,
        stash: &AccountId,
        clock: BlockNumber,
    ) -> impl Iterator<Item = (Hash, Duty, Comes)> {
        let checks = self.checks.iter().filter(|(key, _)| self.is_sampled(**key));
        checks.filter_map(move |(key, check)| {
            let seen = self.seen()?;
            let (phase, member) = (&seen.round.as_ref()?.phase, self.member(*key)?);
            let shown = self.audit_shown(&member.provider, stash);
            let is_open = match shown.map(|audit| &audit.state) {
                // Whoever has lost is compared with if it serves what that takes, and not otherwise.
                Some(AuditState::Sealed(_)) => !member.has_lost(),
                Some(AuditState::Differs | AuditState::Disputed(_)) => true,
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
            let can_demand = !matches!(phase, RoundPhase::Challengeable { .. })
                || check.is_shown
                || can_demand(seen, check, clock)
                || is_demanded(seen, &member.provider, stash);
            let comes = match check.agrees {
                None if can_demand && !check.is_refused => Comes::ToItems,
                _ => Comes::ToAll,
            };
            (is_open && check.is_to_compute()).then_some((*key, duty, comes))
        })
    }

    /// How a seal over items is held against the result: with what its provider serves, or has had to show.
    /// All is computed where that can be had in neither way, or costs less than a demand. Nothing while it is
    /// demanded.
    pub(super) fn comparing(
        &self,
        (seen, config, clock): (&TaskSnapshot, &Config, BlockNumber),
        key: Hash,
        member: &Member,
    ) -> Option<EffectKind> {
        let (round, check) = (seen.round.as_ref()?, self.checks.get(&key)?);
        if is_demanded(seen, &member.provider, &config.stash) {
            return None;
        }
        let (served, whole) = (EffectKind::CompareAudit(key), EffectKind::CompareAll(key));
        let is_tired_of = |kind| {
            let under_way = u32::from(self.attempts.is_under_way(kind));
            self.attempts.count(kind).saturating_sub(under_way) >= COMPARE_ATTEMPTS
        };
        let is_tired = is_tired_of(served);
        if member.has_lost() {
            // Nothing is owed any more.
            return (!is_tired).then_some(served);
        }
        if !matches!(round.phase, RoundPhase::Challengeable { .. }) {
            return Some(served);
        }
        if !can_demand(seen, check, clock) {
            return Some(if is_tired { whole } else { served });
        }
        let left = |from: BlockNumber| round.demands_until.unwrap_or(from).saturating_sub(from);
        let all = left(check.compared_since.unwrap_or(clock));
        // Whoever answers slowly, or keeps us from asking others, is not waited for.
        let is_late = left(clock) <= all / 2;
        let computes_all = check.computes_all && !is_tired_of(whole) && !self.attempts.is_given_up(whole);
        Some(match (is_tired || is_late, computes_all) {
            (false, _) => served,
            (true, true) => whole,
            (true, false) => EffectKind::DemandLeaves(key),
        })
    }

    /// Takes note since when our items can be held against results, and demanded what that takes.
    pub(super) fn note_comparing(&mut self, seen: &TaskSnapshot, clock: BlockNumber) {
        let Some(round) = &seen.round else { return };
        if !matches!(round.phase, RoundPhase::Challengeable { .. }) {
            return;
        }
        for member in round.members.iter().filter(|member| member.claim().is_some()) {
            if let Some(check) = self.checks.get_mut(&key_of(&member.provider)) {
                check.compared_since.get_or_insert(clock);
            }
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

    /// Whether something is still to be computed for it: to find what its items come to, to compare what
    /// nobody shows, or to play about it without what the provider has shown.
    fn is_to_compute(&self) -> bool {
        let is_whole = self
            .sealed
            .as_ref()
            .is_some_and(|sealed| matches!(sealed.found, Found::Whole(_)));
        let is_played_alone = self.agrees == Some(false) && self.view.is_none();
        !is_whole && (self.agrees.is_none() || is_played_alone)
    }
}

/// Whether what our items are held against can still be demanded, and has not been.
fn can_demand(seen: &TaskSnapshot, check: &Check, clock: BlockNumber) -> bool {
    let until = seen.round.as_ref().and_then(|round| round.demands_until);
    !check.is_refused && !check.is_shown && until.is_some_and(|until| clock < until)
}

/// What a provider has revealed.
pub(super) fn revealed<'a>(seen: &'a TaskSnapshot, provider: &AccountId) -> Option<&'a ResultClaim> {
    let mut members = seen.round.as_ref()?.members.iter();
    members.find(|member| member.provider == *provider)?.claim()
}
