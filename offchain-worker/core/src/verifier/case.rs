//! One task as a verifier sees it.

use std::collections::BTreeMap;

use surety_types::{
    task::{MemberProgress, ResultClaim, RoundMember, RoundPhase, TaskState},
    trust::{Audit, AuditProof, AuditState},
};
use surety_verification::audit::AuditInput;

use crate::{
    duel::Duels,
    effort::{Effort, Efforts},
    key_of,
    seat::Seats,
    AccountId, Balance, BlockNumber, Config, Effect, EffectKind, Hash, Purpose, RoundRecord, TaskSnapshot,
};

/// Times that an output is looked for before it is demanded.
const DATA_ATTEMPTS: u32 = 3;
/// Pieces among which the one that is demanded is chosen. A shorter output shows its last instead.
const DEMAND_SEGMENTS: u32 = 64;

/// What we say of a result, once and for all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Made {
    pub claim: ResultClaim,
    pub salt: Hash,
    pub seal: Hash,
}

/// Whether a result is ours to audit.
#[derive(Clone, Debug, Default)]
pub(super) enum Draw {
    #[default]
    Unknown,
    NotOurs,
    Ours(AuditProof),
}

/// One provider's result.
#[derive(Clone, Debug, Default)]
pub(super) struct Check {
    pub draw: Draw,
    /// Journalled.
    pub made: Option<Made>,
    /// Its output was found.
    pub is_served: bool,
}

/// A task whose results may be ours to audit.
#[derive(Clone, Debug, Default)]
pub(super) struct Case {
    /// Nothing between a restart and the first finalised block.
    seen: Option<TaskSnapshot>,
    /// By [`key_of`] the provider.
    pub checks: BTreeMap<Hash, Check>,
    pub duels: Duels,
    pub seats: Seats,
    pub efforts: Efforts,
}

type Member = RoundMember<AccountId, Balance>;

impl Case {
    pub fn see(&mut self, snapshot: TaskSnapshot, config: &Config) {
        self.duels.see(&snapshot.disputes, config, &mut self.efforts);
        let (disputes, committees) = (&snapshot.disputes, &snapshot.committees);
        self.seats.see(disputes, committees, config, &mut self.efforts);
        if tranche(Some(&snapshot)) != tranche(self.seen.as_ref()) {
            self.draw_again();
        }
        self.seen = Some(snapshot);
    }

    /// Auditors did not show: what was drawn before counts for nothing.
    fn draw_again(&mut self) {
        for (key, check) in &mut self.checks {
            check.draw = Draw::Unknown;
            self.efforts.forget(EffectKind::Draw(*key));
            self.efforts.forget(EffectKind::Announce(*key));
        }
    }

    pub fn replay_done(&mut self, kind: EffectKind, at: BlockNumber, config: &Config) {
        *self.efforts.of(kind) = Effort::done_at(at, config);
    }

    fn round(&self) -> Option<&RoundRecord> {
        self.seen.as_ref()?.round.as_ref()
    }

    /// Whether there is anything to audit, now or still.
    pub fn is_auditable(&self) -> bool {
        let begun = |round: &RoundRecord| !matches!(round.phase, RoundPhase::Committing { .. });
        self.round().is_some_and(begun)
    }

    pub fn is_over(&self) -> bool {
        self.seen.as_ref().is_some_and(|seen| {
            matches!(
                seen.task.state,
                TaskState::Settled { .. } | TaskState::Failed { .. } | TaskState::Cancelled { .. }
            )
        })
    }

    /// Whether the journal knows of it.
    pub fn is_journalled(&self) -> bool {
        !self.duels.is_empty()
            || self.seats.is_journalled()
            || self.checks.values().any(|check| check.made.is_some())
    }

    /// The provider that a kind of effects names.
    pub fn provider(&self, key: Hash) -> Option<AccountId> {
        let mut members = self.round()?.members.iter();
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

    /// Everything that is to be done now, and by when.
    pub fn wants(
        &self,
        config: &Config,
        block: BlockNumber,
        now: BlockNumber,
    ) -> Vec<(BlockNumber, EffectKind)> {
        let mut wants: Vec<_> = self
            .duels
            .wants(block)
            .chain(self.seats.wants(config, block))
            .collect();
        if let Some(round) = self.round() {
            let of = |member| self.want(round, member, config, now);
            wants.extend(round.members.iter().filter_map(of));
        }
        wants
    }

    fn want(
        &self,
        round: &RoundRecord,
        member: &Member,
        config: &Config,
        now: BlockNumber,
    ) -> Option<(BlockNumber, EffectKind)> {
        if member.provider == config.stash {
            return None;
        }
        let key = key_of(&member.provider);
        let check = self.checks.get(&key);
        let shown = self.audit_shown(&member.provider, &config.stash);
        match &round.phase {
            RoundPhase::Committing { .. } => None,
            RoundPhase::Auditing { until } => {
                let kind = match (shown, &member.progress) {
                    (None, MemberProgress::Committed(_)) if now < *until => to_announce(key, check)?,
                    (Some(_), _) if check.is_none_or(|check| check.made.is_none()) => EffectKind::Audit(key),
                    _ => return None,
                };
                Some((*until, kind))
            }
            RoundPhase::Revealing { until } | RoundPhase::Challengeable { until, .. } => {
                let kind = match shown.map(|shown| &shown.state) {
                    Some(AuditState::Sealed(seal)) => to_reveal(key, check, *seal, member),
                    _ => None,
                };
                let challengeable = matches!(round.phase, RoundPhase::Challengeable { .. });
                let again = challengeable && tranche(self.seen.as_ref()) > 0 && now < *until;
                let late = again && shown.is_none() && member.standing_claim().is_some();
                let kind = kind.or_else(|| to_announce(key, check).filter(|_| late));
                let kind = kind.or_else(|| self.to_check(key, check?, member).filter(|_| challengeable));
                (now <= *until).then_some((*until, kind?))
            }
        }
    }

    /// What there is to do about an output: where we were drawn to audit, we also see that it can be had.
    fn to_check(&self, key: Hash, check: &Check, member: &Member) -> Option<EffectKind> {
        member.standing_claim()?;
        let drawn = check.made.is_some() || matches!(check.draw, Draw::Ours(_));
        if !drawn || check.is_served {
            return None;
        }
        let looked = EffectKind::CheckData(key);
        if self.efforts.attempts(looked) < DATA_ATTEMPTS || self.efforts.is_under_way(looked) {
            return Some(looked);
        }
        let mut demands = self.seen.as_ref()?.demands.iter();
        let demanded = demands.any(|(provider, _)| *provider == member.provider);
        (!demanded).then_some(EffectKind::Demand(key))
    }

    /// The effect of that kind, where everything for it is at hand.
    pub fn effect(&self, kind: EffectKind, config: &Config) -> Option<Effect> {
        let seen = self.seen.as_ref()?;
        let (task, spec) = (seen.id, &seen.task.spec);
        Some(match kind {
            EffectKind::Draw(key) => self.draw(key)?,
            EffectKind::Audit(key) => Effect::Audit {
                task,
                provider: self.provider(key)?,
                spec: spec.clone(),
            },
            EffectKind::Announce(key) => {
                let check = self.checks.get(&key)?;
                let (Draw::Ours(proof), Some(made)) = (&check.draw, &check.made) else {
                    return None;
                };
                Effect::SubmitAnnouncement {
                    task,
                    provider: self.provider(key)?,
                    proof: *proof,
                    seal: made.seal,
                }
            }
            EffectKind::AuditReveal(key) => {
                let Made { claim, salt, .. } = self.checks.get(&key)?.made.clone()?;
                Effect::SubmitAuditReveal {
                    task,
                    provider: self.provider(key)?,
                    claim,
                    salt,
                }
            }
            EffectKind::CheckData(key) => Effect::CheckData {
                task,
                provider: self.provider(key)?,
                output: self.claim(key)?.output,
            },
            EffectKind::Demand(key) => Effect::SubmitDemand {
                task,
                provider: self.provider(key)?,
                segment: segment(config.salts.salt(task, Purpose::Demand(key))),
            },
            other => {
                let of_duels = self.duels.effect(other, task, spec);
                return of_duels.or_else(|| self.seats.effect(other, task, spec));
            }
        })
    }

    fn draw(&self, key: Hash) -> Option<Effect> {
        let round = self.round()?;
        let draw = round.draw.as_ref()?;
        let mut members = round.members.iter();
        let member = members.find(|member| key_of(&member.provider) == key)?;
        let commitment = match &member.progress {
            MemberProgress::Committed(commitment) => *commitment,
            // The commitment is gone when auditors are drawn again; the chain takes this instead.
            MemberProgress::Revealed(claim) if draw.tranche > 0 => claim.trace_root,
            MemberProgress::Working | MemberProgress::Revealed(_) => return None,
        };
        let input = AuditInput {
            seed: draw.seed,
            task: self.seen.as_ref()?.id,
            provider: member.provider.clone(),
            commitment,
            tranche: draw.tranche,
        };
        Some(Effect::Draw {
            input,
            verifier_stake: draw.verifier_stake,
        })
    }

    fn claim(&self, key: Hash) -> Option<&ResultClaim> {
        let mut members = self.round()?.members.iter();
        members
            .find(|member| key_of(&member.provider) == key)?
            .standing_claim()
    }
}

/// How often auditors have been drawn again.
fn tranche(snapshot: Option<&TaskSnapshot>) -> u8 {
    let draw = snapshot.and_then(|seen| seen.round.as_ref()?.draw.as_ref());
    draw.map_or(0, |draw| draw.tranche)
}

/// What there is to do while audits can be announced.
fn to_announce(key: Hash, check: Option<&Check>) -> Option<EffectKind> {
    let Some(check) = check else {
        return Some(EffectKind::Draw(key));
    };
    match (&check.draw, &check.made) {
        (Draw::Unknown, _) => Some(EffectKind::Draw(key)),
        (Draw::NotOurs, _) => None,
        (Draw::Ours(_), None) => Some(EffectKind::Audit(key)),
        (Draw::Ours(_), Some(_)) => Some(EffectKind::Announce(key)),
    }
}

/// What there is to do about a seal of ours on the chain. It is opened only once the provider has revealed.
fn to_reveal(key: Hash, check: Option<&Check>, seal: Hash, member: &Member) -> Option<EffectKind> {
    match check.and_then(|check| check.made.as_ref()) {
        // The journal was lost: computing again may find what we said.
        None => Some(EffectKind::Audit(key)),
        Some(made) if made.seal == seal && member.claim().is_some() => Some(EffectKind::AuditReveal(key)),
        Some(_) => None,
    }
}

fn segment(salt: Hash) -> u32 {
    let [a, b, c, d, ..] = salt.0;
    u32::from_le_bytes([a, b, c, d]) % DEMAND_SEGMENTS
}
