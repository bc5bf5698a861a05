//! What a provider does not serve is demanded on the chain: before the reveal what we are to audit, and after
//! it what its client is to have.

use surety_audit_economics::{OFFERED_SLACK, WINDOW_SLACK};
use surety_proofs::{PARTS_MAX, parts};
use surety_types::{
    model::Operation,
    task::{RoundPhase, TaskSpec},
    trust::{AuditState, Content, ContentPart, DemandedParts},
};

use super::audit_task::{AuditTask, Check, Draw, Member};
use crate::{
    AccountId, BlockNumber, Config, Effect, EffectKind, Hash, Purpose, RoundRecord, TaskSnapshot, key_of,
    places::Wanted,
};

/// Times that fetching has to fail before what cannot be had is demanded, when just as much of the time is
/// left as the slowest that offers audits needs. In its last half whoever answers slowly is not waited for.
const FETCHES_MIN: u32 = 2;
/// Parts among which the one that is demanded after the reveal is chosen. A shorter output shows its last
/// instead.
const DEMAND_PARTS: u32 = 64;

/// Times that an output is looked for before it is demanded: with the pauses between them some three minutes,
/// in which a provider may come back.
const DATA_ATTEMPTS: u32 = 15;
/// The same where the time for demands is nearly over.
const DATA_ATTEMPTS_NEAR: u32 = 3;

impl AuditTask {
    /// A demand of what we are to audit and nobody serves, while it can be made.
    pub(super) fn to_demand(
        &self,
        seen: &TaskSnapshot,
        (round, member): (&RoundRecord, &Member),
        config: &Config,
        clock: BlockNumber,
    ) -> Option<Wanted> {
        let until = round.demands_until?;
        let is_auditing = matches!(round.phase, RoundPhase::Auditing { .. }) && member.owes_opening();
        // Without room for what it comes to there is no audit.
        if !is_auditing
            || config.is_short_of_room
            || clock >= until
            || is_demanded(seen, &member.provider, &config.stash)
        {
            return None;
        }
        let key = key_of(&member.provider);
        let check = self.checks.get(&key)?;
        let is_ours = matches!(check.draw, Draw::Ours(_)) && (!self.is_sampled(key) || check.is_taken());
        if !is_ours || check.sealed.is_some() || check.is_fetched {
            return None;
        }
        let fetch = EffectKind::FetchAudit(key);
        let under_way = u32::from(self.attempts.is_under_way(fetch));
        let tried = self.attempts.count(fetch);
        let (all, left) = (until.saturating_sub(check.drawn_at?), until.saturating_sub(clock));
        let needed = u64::from(all) * OFFERED_SLACK / WINDOW_SLACK;
        let is_due = u64::from(left) <= needed && tried.saturating_sub(under_way) >= FETCHES_MIN;
        let is_late = left <= all / 2 && tried.saturating_sub(under_way) > 0;
        (is_due || is_late).then(|| Wanted::new(EffectKind::Demand(key), until))
    }

    /// What the chain has shown since takes no second demand: it is fetched at once, or it is there.
    pub(super) fn note_shown(&mut self, before: &TaskSnapshot, now: &TaskSnapshot, stash: &AccountId) {
        let Some(round) = &now.round else { return };
        for member in &round.members {
            let provider = &member.provider;
            if !is_demanded(before, provider, stash) || is_demanded(now, provider, stash) {
                continue;
            }
            let key = key_of(provider);
            match member.claim() {
                None => self.attempts.forget(EffectKind::FetchAudit(key)),
                Some(_) => {
                    let check = self.checks.entry(key).or_default();
                    // Leaves while we owe an opening, and the output after it.
                    match is_sealed(before, provider, stash) {
                        true => check.is_shown = true,
                        false => check.is_served = true,
                    }
                    self.attempts.forget(EffectKind::CompareAudit(key));
                }
            }
        }
    }

    /// What there is to do about an output: it is looked for so often, and then demanded.
    pub(super) fn to_check(
        &self,
        (seen, config): (&TaskSnapshot, &Config),
        key: Hash,
        check: &Check,
        member: &Member,
        left: BlockNumber,
    ) -> Option<EffectKind> {
        member.standing_claim()?;
        if check.is_served {
            return None;
        }
        let attempts = if left <= config.near_blocks {
            DATA_ATTEMPTS_NEAR
        } else {
            DATA_ATTEMPTS
        };
        let looked = EffectKind::CheckData(key);
        if self.attempts.count(looked) < attempts || self.attempts.is_under_way(looked) {
            return Some(looked);
        }
        let is_open = is_demanded(seen, &member.provider, &config.stash);
        (!is_open).then_some(EffectKind::Demand(key))
    }

    pub(super) fn demand(&self, seen: &TaskSnapshot, key: Hash, config: &Config) -> Option<Effect> {
        let (task, provider) = (seen.id, self.provider(key)?);
        let mut members = seen.round.as_ref()?.members.iter();
        let member = members.find(|member| member.provider == provider)?;
        let (parts, proof) = match (member.claim(), &self.checks.get(&key)?.draw) {
            (Some(_), _) => {
                let part = chosen(config.salts.salt(task, Purpose::Demand(key)));
                let content = Content::Output;
                let one = vec![ContentPart { content, part }];
                (DemandedParts::truncate_from(one), None)
            }
            (None, Draw::Ours(drawn)) => (needed(&seen.task.spec), Some(drawn.proof)),
            (None, _) => return None,
        };
        Some(Effect::SubmitDemand {
            task,
            provider,
            parts,
            proof,
        })
    }
}

/// Whether a demand of ours on a provider is open.
pub(super) fn is_demanded(seen: &TaskSnapshot, provider: &AccountId, stash: &AccountId) -> bool {
    let mut demands = seen.demands.iter();
    demands.any(|(of, demand)| of == provider && demand.demander == *stash)
}

fn is_sealed(seen: &TaskSnapshot, provider: &AccountId, stash: &AccountId) -> bool {
    let mut audits = seen.round.iter().flat_map(|round| round.audits.iter());
    audits.any(|audit| {
        let is_ours = audit.verifier == *stash && audit.provider == *provider;
        is_ours && matches!(audit.state, AuditState::Sealed(_))
    })
}

/// What an audit of such a task needs. One demand can name all of it: the chain takes no longer input, and no
/// generation of which prompt and longest answer have more parts.
fn needed(spec: &TaskSpec) -> DemandedParts {
    let of = |content, count| (0..count).map(move |part| ContentPart { content, part });
    let input = parts(spec.input_bytes);
    let output = match spec.operation {
        Operation::Generate => PARTS_MAX.saturating_sub(input),
        // It follows from the input.
        Operation::Embed => 0,
    };
    let needed = of(Content::Input, input).chain(of(Content::Output, output));
    DemandedParts::truncate_from(needed.collect())
}

/// The part of an output that is demanded after the reveal follows from a secret, so that nobody can keep
/// just the right one.
fn chosen(salt: Hash) -> u32 {
    let [a, b, c, d, ..] = salt.0;
    u32::from_le_bytes([a, b, c, d]) % DEMAND_PARTS
}
