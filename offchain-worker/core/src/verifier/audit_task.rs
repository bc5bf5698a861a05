//! One task as a verifier sees it.

use std::collections::BTreeMap;

use surety_audit_economics::AuditInput;
use surety_types::{
    task::{ResultClaim, RoundMember, RoundPhase, TaskState},
    trust::{Audit, AuditState, FaultKind},
};

use super::{items::revealed, sealed::SealedResult, served::Served, unserved::is_demanded};
use crate::{
    AccountId, Balance, BlockNumber, Config, Drawn, Effect, EffectKind, Found, Hash, KeptView, RoundRecord,
    TaskSnapshot,
    absence::Absence,
    attempts::Attempts,
    duel::Duels,
    key_of,
    places::{Clocks, TraceKey, Wanted},
    schedule::Subject,
    seat::Seats,
};

/// Whether a result is ours to audit.
#[derive(Clone, Debug, Default)]
pub(crate) enum Draw {
    #[default]
    Unknown,
    NotOurs,
    Ours(Drawn),
}

/// One provider's result.
#[derive(Clone, Debug, Default)]
pub(crate) struct Check {
    pub draw: Draw,
    /// When we knew that it is ours, on the running clock.
    pub drawn_at: Option<BlockNumber>,
    /// Journalled.
    pub sealed: Option<SealedResult>,
    /// Journalled. Whether the provider's result shows what we found of our items.
    pub agrees: Option<bool>,
    /// What we play about it with, where our items are others. Journalled.
    pub view: Option<KeptView>,
    /// What its provider has signed that it handed over. Journalled.
    pub served: Served,
    /// There is room for all that an audit of items may come to, as far as that is known.
    pub fits: bool,
    /// Where nobody serves what our items are held against, all is computed: a demand would cost more.
    pub computes_all: bool,
    /// The chain has refused for good to have shown what our items are held against.
    pub is_refused: bool,
    /// When we began to hold our items against the result, on the running clock.
    pub compared_since: Option<BlockNumber>,
    /// What we had demanded after the reveal has gone from the chain: it can be read there.
    pub is_shown: bool,
    /// What computing again takes is here. A restart asks for it again.
    pub is_fetched: bool,
    /// Its output was found.
    pub is_served: bool,
}

/// A task whose results may be ours to audit.
#[derive(Clone, Debug, Default)]
pub(crate) struct AuditTask {
    /// Nothing between a restart and the first finalised block.
    seen: Option<TaskSnapshot>,
    /// As the best block shows it, while that is ahead of the finalised one.
    pub best: Option<TaskSnapshot>,
    best_at: BlockNumber,
    /// Of all of its input, once that is here. A restart fetches it again.
    pub tokens: Option<u64>,
    pub absence: Absence,
    /// By [`key_of`] the provider.
    pub checks: BTreeMap<Hash, Check>,
    pub duels: Duels,
    pub seats: Seats,
    pub attempts: Attempts,
}

pub(super) type Member = RoundMember<AccountId, Balance>;

impl AuditTask {
    pub fn see(&mut self, snapshot: TaskSnapshot, config: &Config, at: (BlockNumber, BlockNumber)) {
        let (block, clock) = at;
        self.absence.end(block);
        self.duels.see(&snapshot.disputes, config, &mut self.attempts);
        let (disputes, committees) = (&snapshot.disputes, &snapshot.committees);
        self.seats.see(disputes, committees, config, &mut self.attempts);
        if let Some(before) = self.seen.take() {
            self.note_shown(&before, &snapshot, &config.stash);
        }
        self.note_comparing(&snapshot, clock);
        self.seen = Some(snapshot);
    }

    /// Takes the best block's state in. A state that does not list the task says nothing of it.
    pub fn see_best(&mut self, snapshot: TaskSnapshot, block: BlockNumber) {
        (self.best, self.best_at) = (Some(snapshot), block);
    }

    /// Finality has overtaken what we know of the best block.
    pub fn forget_best_before(&mut self, block: BlockNumber) {
        if self.best_at < block {
            self.best = None;
        }
    }

    /// As finalised state shows it.
    pub fn seen(&self) -> Option<&TaskSnapshot> {
        self.seen.as_ref()
    }

    fn round(&self) -> Option<&RoundRecord> {
        self.seen.as_ref()?.round.as_ref()
    }

    /// Whether auditors may draw themselves, or could.
    pub fn is_auditable(&self) -> bool {
        let is_early =
            |round: &RoundRecord| round.awaits_seed() || matches!(round.phase, RoundPhase::Committing { .. });
        self.round().is_some_and(|round| !is_early(round))
    }

    /// Whether there is nothing in it for us, before a committee is drawn.
    pub fn is_idle(&self, config: &Config, clocks: Clocks) -> bool {
        let ours = |check: &Check| {
            check.sealed.is_some() || check.served.is_some() || matches!(check.draw, Draw::Ours(_))
        };
        let audits = |round: &RoundRecord| {
            let mut audits = round.audits.iter();
            audits.any(|audit| audit.verifier == config.stash)
        };
        let has_part =
            self.checks.values().any(ours) || !self.seats.is_empty() || self.round().is_some_and(audits);
        self.seen.is_some() && !has_part && self.duels.is_empty() && self.wants(config, clocks).is_empty()
    }

    /// Whether it is over, for all that we know. Where nothing was promised, little is lost if it is not.
    pub fn is_over(&self, clock: BlockNumber) -> bool {
        let is_over = |seen: &TaskSnapshot| {
            matches!(
                seen.task.state,
                TaskState::Settled { .. } | TaskState::Failed { .. } | TaskState::Cancelled { .. }
            )
        };
        let is_gone = if self.is_journalled() {
            self.absence.is_over(self.seen.as_ref(), clock, true)
        } else {
            self.absence.is_likely_over()
        };
        is_gone || self.seen.as_ref().is_some_and(is_over)
    }

    /// Whether the journal knows of it.
    pub fn is_journalled(&self) -> bool {
        !self.duels.is_empty()
            || self.seats.is_journalled()
            || self
                .checks
                .values()
                .any(|check| check.sealed.is_some() || check.served.is_some())
    }

    /// The provider that a kind of effects names.
    pub fn provider(&self, key: Hash) -> Option<AccountId> {
        let newest = self.best.as_ref().or(self.seen.as_ref())?;
        let mut members = newest.round.as_ref()?.members.iter();
        let member = members.find(|member| key_of(&member.provider) == key)?;
        Some(member.provider.clone())
    }

    /// Our audit of a provider, as the chain shows it.
    pub fn audit_shown(&self, provider: &AccountId, stash: &AccountId) -> Option<&Audit<AccountId, Balance>> {
        let mut audits = self.round()?.audits.iter();
        audits.find(|audit| audit.verifier == *stash && audit.provider == *provider)
    }

    /// Our seal, as the chain shows it.
    pub fn seal_shown(&self, provider: &AccountId, stash: &AccountId) -> Option<Hash> {
        match self.audit_shown(provider, stash)?.state {
            AuditState::Sealed(seal) => Some(seal),
            _ => None,
        }
    }

    /// What a state asks of us about the results of a task.
    fn wants_in(&self, seen: &TaskSnapshot, config: &Config, clock: BlockNumber) -> Vec<Wanted> {
        let Some(round) = &seen.round else {
            return Vec::new();
        };
        let of = |member: &Member| {
            let report = self.to_report(round, member, config, clock);
            // Void once it is known what the provider has said before, and due in the end all the same.
            let waits = |wanted: &Wanted| {
                let is_due = round.openings_until.is_some()
                    && wanted.by <= clock.saturating_add(config.kept_for_opening());
                report.is_some() && matches!(wanted.kind, EffectKind::AuditReveal(_)) && !is_due
            };
            let found = self.want(seen, round, member, config, clock);
            let found = found.map(|(by, kind)| Wanted::new(kind, by));
            let demand = self.to_demand(seen, (round, member), config, clock);
            [report, found.filter(|wanted| !waits(wanted)), demand]
        };
        round.members.iter().flat_map(of).flatten().collect()
    }

    fn want(
        &self,
        seen: &TaskSnapshot,
        round: &RoundRecord,
        member: &Member,
        config: &Config,
        clock: BlockNumber,
    ) -> Option<(BlockNumber, EffectKind)> {
        if member.provider == config.stash {
            return None;
        }
        let key = key_of(&member.provider);
        let check = self.checks.get(&key);
        let mut audits = round.audits.iter();
        let shown = audits.find(|audit| audit.verifier == config.stash && audit.provider == member.provider);
        let (until, is_challengeable) = match &round.phase {
            RoundPhase::Committing { .. } => return None,
            RoundPhase::Auditing { .. } if round.awaits_seed() => return None,
            RoundPhase::Auditing { until } => {
                // While something is demanded the window does not end, and may begin again.
                let is_open = clock < *until || round.demands > 0;
                // It may end with the next block then.
                let until = clock.saturating_add(1).max(*until);
                let may_announce = member.owes_opening() && is_open && !config.is_short_of_room;
                let kind = match shown {
                    None if may_announce => self.to_announce(key)?,
                    Some(_) if check.is_none_or(|check| check.sealed.is_none()) => to_audit(key, check),
                    _ => return None,
                };
                // What we have demanded is fetched once it is shown.
                let is_waited_for =
                    kind == EffectKind::FetchAudit(key) && is_demanded(seen, &member.provider, &config.stash);
                return (!is_waited_for).then_some((until, kind));
            }
            RoundPhase::Revealing { until } => (*until, false),
            RoundPhase::Challengeable { until, .. } => (*until, true),
        };
        // However late it is by our clock: as long as the chain shows that it is owed, it is tried.
        if let Some(AuditState::Sealed(seal)) = shown.map(|shown| &shown.state) {
            let by = round.openings_until.filter(|_| is_challengeable);
            if let Some(kind) = self.to_reveal((seen, config, clock), key, *seal, member) {
                let by = match kind {
                    EffectKind::DemandLeaves(_) => round.demands_until,
                    _ => by,
                };
                return Some((by.unwrap_or(until), kind));
            }
            if is_demanded(seen, &member.provider, &config.stash) {
                return None;
            }
        }
        // Where we audited, we also see that the output can be had.
        if !is_challengeable || clock > until || shown.is_none() {
            return None;
        }
        let kind = self.to_check((seen, config), key, check?, member, until.saturating_sub(clock))?;
        Some((until, kind))
    }

    /// A provider that has said two things is reported until the chain knows it, for as long as anything of
    /// ours depends on that.
    fn to_report(
        &self,
        round: &RoundRecord,
        member: &Member,
        config: &Config,
        clock: BlockNumber,
    ) -> Option<Wanted> {
        let key = key_of(&member.provider);
        self.checks.get(&key)?.served.evidence(member.claim())?;
        let until = match round.phase {
            RoundPhase::Committing { .. } => return None,
            RoundPhase::Auditing { until }
            | RoundPhase::Revealing { until }
            | RoundPhase::Challengeable { until, .. } => round.openings_until.unwrap_or(until).max(until),
        };
        let is_open = round.audits.iter().any(|audit| {
            let is_ours = audit.verifier == config.stash && audit.provider == member.provider;
            is_ours && audit.state != AuditState::Over
        });
        let is_known = member.fault == Some(FaultKind::Equivocation);
        let is_due = !is_known && (is_open || clock <= until);
        is_due.then(|| Wanted::new(EffectKind::Report(key), until))
    }

    /// What there is to do while audits can be announced.
    fn to_announce(&self, key: Hash) -> Option<EffectKind> {
        let Some(check) = self.checks.get(&key) else {
            return Some(EffectKind::Draw(key));
        };
        match (&check.draw, &check.sealed) {
            (Draw::Unknown, _) => Some(EffectKind::Draw(key)),
            (Draw::NotOurs, _) => None,
            (Draw::Ours(_), None) if self.is_sampled(key) && !check.is_taken() => None,
            (Draw::Ours(_), None) => Some(to_audit(key, Some(check))),
            (Draw::Ours(_), Some(_)) => Some(EffectKind::Announce(key)),
        }
    }

    /// What there is to do about a seal of ours on the chain. It is opened only once the provider has
    /// revealed.
    fn to_reveal(
        &self,
        now: (&TaskSnapshot, &Config, BlockNumber),
        key: Hash,
        seal: Hash,
        member: &Member,
    ) -> Option<EffectKind> {
        let check = self.checks.get(&key);
        match check.and_then(|check| check.sealed.as_ref()) {
            // The journal was lost: computing again may find what we said.
            None => Some(to_audit(key, check)),
            Some(sealed) if sealed.seal != seal || member.claim().is_none() => None,
            Some(sealed) => {
                let is_known = check.is_some_and(|check| check.agrees.is_some());
                match sealed.found {
                    Found::Items(_) if !is_known => self.comparing(now, key, member),
                    _ => Some(EffectKind::AuditReveal(key)),
                }
            }
        }
    }

    fn draw(&self, key: Hash) -> Option<Effect> {
        let round = self.round()?;
        let draw = round.draw.as_ref()?;
        let mut members = round.members.iter();
        let member = members.find(|member| key_of(&member.provider) == key)?;
        let input = AuditInput {
            seed: draw.seed?,
            task: self.seen.as_ref()?.id,
            provider: member.provider.clone(),
        };
        Some(Effect::Draw {
            input,
            verifier_stake: draw.verifier_stake,
            settled_by: draw.settled_by,
        })
    }

    /// Our own view of a claim, where we have found other items than those that somebody showed of it.
    fn kept(&self, claim: &ResultClaim) -> Option<KeptView> {
        let said = self
            .round()?
            .members
            .iter()
            .filter(|member| member.claim() == Some(claim));
        let mut views = said.filter_map(|member| self.checks.get(&key_of(&member.provider))?.view);
        views.next()
    }

    fn claim(&self, key: Hash) -> Option<&ResultClaim> {
        let mut members = self.round()?.members.iter();
        members
            .find(|member| key_of(&member.provider) == key)?
            .standing_claim()
    }
}

impl Subject for AuditTask {
    /// Everything that is to be done now, and by when. What was sealed is opened as soon as the best block
    /// asks for it. Everything else goes by finalised state; a call that the best block has heard of waits
    /// for finality.
    fn wants(&self, config: &Config, clocks: Clocks) -> Vec<Wanted> {
        let (mut wants, best) = (Vec::new(), self.best.as_ref());
        if let Some(seen) = &self.seen {
            wants.extend(self.duels.wants(clocks.finalized, best));
            wants.extend(self.seats.wants(config, clocks.finalized, best));
            let audits = self.wants_in(seen, config, clocks.finalized);
            match best {
                None => wants.extend(audits),
                Some(best) => {
                    let in_best = self.wants_in(best, config, clocks.best);
                    let is_wanted = |kind| in_best.iter().any(|other| other.kind == kind);
                    wants.extend(
                        audits
                            .into_iter()
                            .filter(|wanted| !wanted.kind.is_call() || is_wanted(wanted.kind)),
                    );
                }
            }
        }
        if self.absence.is_likely_over() {
            wants.retain(|wanted| wanted.kind.is_opening());
        }
        if let Some(best) = best {
            let openings = self.wants_in(best, config, clocks.best).into_iter();
            for opening in openings.filter(|wanted| wanted.kind.is_opening()) {
                wants.retain(|wanted| wanted.kind != opening.kind);
                wants.push(opening);
            }
        }
        wants
    }

    fn attempts(&self) -> &Attempts {
        &self.attempts
    }

    fn attempts_mut(&mut self) -> &mut Attempts {
        &mut self.attempts
    }

    fn sees_best(&self) -> bool {
        self.best.is_some()
    }

    fn client(&self) -> Option<&AccountId> {
        self.seen.as_ref().map(|seen| &seen.task.client)
    }

    fn trace(&self, kind: EffectKind) -> Option<TraceKey> {
        self.duels.trace(kind).or_else(|| self.seats.trace(kind))
    }

    fn effect(&self, kind: EffectKind, config: &Config) -> Option<Effect> {
        let seen = self.best.as_ref().or(self.seen.as_ref())?;
        let (task, spec) = (seen.id, &seen.task.spec);
        Some(match kind {
            EffectKind::Draw(key) => self.draw(key)?,
            EffectKind::FetchAudit(key) => Effect::FetchAudit {
                task,
                provider: self.provider(key)?,
                spec: spec.clone(),
                output: self.checks.get(&key).and_then(|check| check.served.output()),
            },
            EffectKind::Audit(key) => Effect::Audit {
                task,
                provider: self.provider(key)?,
                spec: spec.clone(),
                output: self.checks.get(&key).and_then(|check| check.served.output()),
                items: self.own_items(key, config),
            },
            EffectKind::CompareAudit(_) | EffectKind::CompareAll(_) => self.comparison(seen, kind, config)?,
            EffectKind::Announce(key) => {
                let check = self.checks.get(&key)?;
                let (Draw::Ours(drawn), Some(sealed)) = (&check.draw, &check.sealed) else {
                    return None;
                };
                Effect::SubmitAnnouncement {
                    task,
                    provider: self.provider(key)?,
                    proof: drawn.proof,
                    seal: sealed.seal,
                }
            }
            EffectKind::AuditReveal(key) => {
                let check = self.checks.get(&key)?;
                let provider = self.provider(key)?;
                check.sealed.clone()?.opening(task, provider, check.agrees)?
            }
            EffectKind::Report(key) => {
                let provider = self.provider(key)?;
                let revealed = revealed(seen, &provider);
                let (statement, other) = self.checks.get(&key)?.served.evidence(revealed)?;
                Effect::SubmitReport {
                    task,
                    provider,
                    statement,
                    other,
                }
            }
            EffectKind::CheckData(key) => Effect::CheckData {
                task,
                provider: self.provider(key)?,
                spec: spec.clone(),
                output: self.claim(key)?.output,
            },
            EffectKind::Demand(key) => self.demand(seen, key, config)?,
            EffectKind::DemandLeaves(key) => Effect::SubmitLeavesDemand {
                task,
                provider: self.provider(key)?,
                spec: spec.clone(),
                items: self.own_items(key, config)?,
            },
            other => {
                let of_duels = self.duels.effect(other, (task, spec), |claim| self.kept(claim));
                return of_duels.or_else(|| self.seats.effect(other, task, spec));
            }
        })
    }
}

/// What there is to do for a result of our own.
fn to_audit(key: Hash, check: Option<&Check>) -> EffectKind {
    if check.is_some_and(|check| check.is_fetched) {
        EffectKind::Audit(key)
    } else {
        EffectKind::FetchAudit(key)
    }
}
