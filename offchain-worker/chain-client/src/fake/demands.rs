//! What providers do not serve, demanded and shown: by whom, when, and which parts of it, as on the chain.

use sp_core::{H256, crypto::AccountId32};
use surety_proofs::{LEAF_BYTES, PART_BYTES, PARTS_MAX, PartOpening, leaves_name, parts};
use surety_types::{
    TaskId,
    limits::{DEMAND_PARTS_MAX, DEMANDS_MAX},
    model::Operation,
    stake::Role,
    task::{RoundMember, RoundPhase},
    trust::{AuditProof, AuditState, Content, ContentPart, DemandedParts, OutputShown},
};

use super::state::{Applied, FakeState, Shown, fault, task_event};
use crate::{Balance, BlockNumber, ChainError, DemandRecord, DispatchFault, PartKey};

/// Time in which a provider has to show what was demanded. The test keeps to it, or does not.
const SUPPLY_WINDOW: BlockNumber = 1_000;
/// What a part costs, in plancks.
const PART_PRICE: Balance = 16;

impl FakeState {
    /// Its price is held back where the test has said what money there is.
    pub(super) fn demand(
        &mut self,
        who: &AccountId32,
        (task, provider): (TaskId, &AccountId32),
        wanted: &DemandedParts,
        proof: Option<&AuditProof>,
    ) -> Applied {
        let (demander, most) = match proof {
            Some(proof) => self.unserved_auditor(who, task, provider, proof)?,
            None if wants_leaves(wanted) => self.sampling_auditor(who, task, provider)?,
            None => self.entitled(who, task, provider)?,
        };
        if wanted.len() > most as usize {
            return Err(fault("Results", "TooManyParts"));
        }
        let key = (task, provider.clone());
        let open = self.demands.get(&key).cloned().unwrap_or_default();
        if open.iter().any(|open| open.demander == demander) {
            return Err(fault("Results", "AlreadyDemanded"));
        }
        let member = self.member(provider, task)?.clone();
        self.ensure_can_be_wanted(task, &member, wanted)?;
        let missing = self.still_missing(task, &member, wanted);
        if missing.is_empty() {
            return Ok(Vec::new());
        }
        let of_leaves = wants_leaves(&missing);
        let demand = DemandRecord {
            demander,
            by: who.clone(),
            parts: missing,
            price: PART_PRICE,
            until: self.clock.saturating_add(SUPPLY_WINDOW),
        };
        if open.len() >= DEMANDS_MAX as usize {
            return Err(fault("Results", "TooManyDemands"));
        }
        self.hold(who, held(&demand))?;
        let compared = demand
            .until
            .saturating_add(self.audit_windows.get(&task).copied().unwrap_or_default());
        self.demands.entry(key).or_default().push(demand);
        let round = self.round_mut(task)?;
        round.demands = round.demands.saturating_add(1);
        if of_leaves {
            round.openings_until = round.openings_until.max(Some(compared));
        }
        Ok(vec![task_event("Results", "DataDemanded", task)])
    }

    /// Before the reveal: who has drawn itself, and sealed nothing yet. With it most parts that it may name.
    fn unserved_auditor(
        &self,
        agent: &AccountId32,
        task: TaskId,
        provider: &AccountId32,
        proof: &AuditProof,
    ) -> Result<(AccountId32, u32), ChainError> {
        let until = self.round(task)?.demands_until;
        if until.is_none_or(|until| self.clock > until) {
            return Err(fault("Results", "WrongPhase"));
        }
        let (verifier, _) = self.drawn_auditor(agent, task, provider, proof)?;
        Ok((verifier, DEMAND_PARTS_MAX))
    }

    /// After it: the client, or who audits the provider.
    fn entitled(
        &self,
        by: &AccountId32,
        task: TaskId,
        provider: &AccountId32,
    ) -> Result<(AccountId32, u32), ChainError> {
        let round = self.round(task)?;
        let is_open = matches!(round.phase, RoundPhase::Challengeable { until, .. } if self.clock <= until);
        if !is_open {
            return Err(fault("Results", "WrongPhase"));
        }
        let member = round.members.iter().find(|member| member.provider == *provider);
        let member = member.ok_or_else(|| fault("Results", "NotMember"))?;
        if member.disputable_claim().is_none() {
            return Err(fault("Results", "NotRevealed"));
        }
        if self.tasks.get(&task).is_some_and(|task| task.client == *by) {
            return Ok((by.clone(), DEMAND_PARTS_MAX));
        }
        let may_not = || fault("Results", "MayNotDemand");
        let verifier = self.stash_in(by, Role::Verifier).ok_or_else(may_not)?;
        let mut audits = round.audits.iter();
        let is_auditor = audits.any(|audit| {
            audit.verifier == verifier && audit.provider == *provider && audit.state != AuditState::Over
        });
        is_auditor.then_some((verifier, PARTS_MAX)).ok_or_else(may_not)
    }

    /// After it: who has sealed some items, and has not opened that.
    fn sampling_auditor(
        &self,
        agent: &AccountId32,
        task: TaskId,
        provider: &AccountId32,
    ) -> Result<(AccountId32, u32), ChainError> {
        let round = self.round(task)?;
        let is_open = matches!(round.phase, RoundPhase::Challengeable { .. })
            && round.demands_until.is_some_and(|until| self.clock <= until);
        if !is_open {
            return Err(fault("Results", "WrongPhase"));
        }
        let member = round.members.iter().find(|member| member.provider == *provider);
        let member = member.ok_or_else(|| fault("Results", "NotMember"))?;
        let claim = member.disputable_claim();
        let units = claim.ok_or_else(|| fault("Results", "NotRevealed"))?.units;
        let may_not = || fault("Results", "MayNotDemand");
        let verifier = self.stash_in(agent, Role::Verifier).ok_or_else(may_not)?;
        let mut audits = round.audits.iter();
        let waits = audits.any(|audit| {
            let is_ours = audit.verifier == verifier && audit.provider == *provider;
            is_ours && matches!(audit.state, AuditState::Sealed(_))
        });
        let items = member.audits.items;
        (waits && items < units)
            .then_some((verifier, round.terms.demand_parts(items)))
            .ok_or_else(may_not)
    }

    fn ensure_can_be_wanted(
        &self,
        task: TaskId,
        member: &RoundMember<AccountId32, Balance>,
        wanted: &DemandedParts,
    ) -> Result<(), ChainError> {
        let spec = self.tasks.get(&task).map(|task| &task.spec);
        let spec = spec.ok_or_else(|| fault("Results", "UnknownRound"))?;
        for ContentPart { content, part } in wanted {
            match content {
                Content::Input if *part >= parts(spec.input_bytes) => {
                    return Err(fault("Results", "NoSuchSegment"));
                }
                Content::Leaves
                    if self
                        .known(task, member, *content)
                        .1
                        .is_none_or(|bytes| *part >= parts(bytes)) =>
                {
                    return Err(fault("Results", "NoSuchSegment"));
                }
                Content::Output if member.claim().is_none() && spec.operation != Operation::Generate => {
                    return Err(fault("Results", "NotRevealed"));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Those that nobody has shown yet, each once.
    fn still_missing(
        &self,
        task: TaskId,
        member: &RoundMember<AccountId32, Balance>,
        wanted: &DemandedParts,
    ) -> DemandedParts {
        let mut missing = DemandedParts::default();
        for ContentPart { content, part } in wanted {
            let known = self.known(task, member, *content);
            let part = known.1.map_or(*part, |bytes| at_most_last(*part, bytes));
            let is_shown = known.0.is_some_and(|hash| self.is_part_shown(task, hash, part));
            let wanted = ContentPart {
                content: *content,
                part,
            };
            if !is_shown && !missing.contains(&wanted) {
                // No more than were wanted.
                missing.try_push(wanted).ok();
            }
        }
        missing
    }

    /// Hash and size of content, as far as they are known before somebody shows it.
    fn known(
        &self,
        task: TaskId,
        member: &RoundMember<AccountId32, Balance>,
        content: Content,
    ) -> (Option<H256>, Option<u32>) {
        match (content, member.claim()) {
            (Content::Input, _) => {
                let spec = self.tasks.get(&task).map(|task| &task.spec);
                (spec.map(|spec| spec.input), spec.map(|spec| spec.input_bytes))
            }
            (Content::Output, Some(claim)) => {
                let shown = self.shown_parts.get(&(task, claim.output));
                (Some(claim.output), shown.map(|shown| shown.bytes))
            }
            (Content::Output, None) => {
                let note = self.commit_notes.get(&(task, member.provider.clone()));
                let shown = note.and_then(|note| note.shown.as_ref());
                (shown.map(|shown| shown.content), shown.map(|shown| shown.bytes))
            }
            (Content::Leaves, Some(claim)) => {
                let leaves = self.trace_leaves.get(&task).copied();
                let bytes = leaves.map(|leaves| leaves.saturating_mul(LEAF_BYTES));
                (Some(leaves_name(&claim.trace_root)), bytes)
            }
            (Content::Leaves, None) => (None, None),
        }
    }

    fn is_part_shown(&self, task: TaskId, content: H256, part: u32) -> bool {
        let shown = self.shown_parts.get(&(task, content));
        self.shown.contains_key(&(task, content))
            || shown.is_some_and(|shown| shown.parts.contains_key(&part))
    }

    /// A part of content of so many bytes that was shown.
    pub(super) fn shown_part(&self, task: TaskId, (content, bytes, part): PartKey) -> Option<Vec<u8>> {
        let of = (task, content);
        let shown = self.shown_parts.get(&of).filter(|shown| shown.bytes == bytes);
        if let Some(shown) = shown {
            return shown.parts.get(&part).cloned();
        }
        let whole = self
            .shown
            .get(&of)
            .filter(|whole| whole.len() == bytes as usize)?;
        Some(whole.chunks(PART_BYTES as usize).nth(part as usize)?.to_vec())
    }

    pub(super) fn supply(
        &mut self,
        who: &AccountId32,
        task: TaskId,
        (content, bytes): (Content, u32),
        opening: &PartOpening,
    ) -> Applied {
        let provider = self.provider_of(who)?;
        let member = self.member(&provider, task)?.clone();
        let (key, clock) = ((task, provider.clone()), self.clock);
        let mut demands = self.demands.get(&key).cloned().unwrap_or_default();
        if demands.is_empty() {
            return Err(fault("Results", "NotDemanded"));
        }
        if demands.iter().all(|demand| clock > demand.until) {
            return Err(fault("Results", "WrongPhase"));
        }
        let wrong = || fault("Results", "WrongSegment");
        let shown = match content {
            Content::Input | Content::Output => opening.content(bytes),
            Content::Leaves => opening.trace_root(bytes).map(|root| leaves_name(&root)),
        };
        let shown = shown.ok_or_else(wrong)?;
        let known = self.known(task, &member, content);
        let is_new = content == Content::Output && known.0.is_none();
        let is_it = (is_new || known.0 == Some(shown)) && known.1.is_none_or(|known| known == bytes);
        if !is_it || is_new && parts(bytes) > PARTS_MAX {
            return Err(wrong());
        }
        let part = ContentPart {
            content,
            part: opening.part,
        };
        let open = demands.len();
        let known = self.shown_parts.get(&(task, shown));
        let new_bytes = match known.is_some_and(|known| known.parts.contains_key(&opening.part)) {
            true => 0,
            false => u32::try_from(opening.bytes.len()).unwrap_or(u32::MAX),
        };
        let client = self.tasks.get(&task).map(|task| task.client.clone());
        let demander = self
            .settle_part(client.as_ref(), &mut demands, (part, bytes), new_bytes)
            .ok_or_else(wrong)?;
        if let Some(note) = self.commit_notes.get_mut(&key).filter(|_| is_new) {
            note.shown = Some(OutputShown {
                content: shown,
                bytes,
                demander,
            });
        }
        self.keep_part((task, shown), bytes, opening);
        let met = open.saturating_sub(demands.len());
        self.demands.insert(key, demands);
        if met > 0 {
            self.audit_again(task, met)?;
        }
        Ok(vec![task_event("Results", "DataSupplied", task)])
    }

    /// Takes a part out of all that demand it in time. Returns the first of them: an auditor pays half of
    /// its bytes' price, a client all.
    fn settle_part(
        &mut self,
        client: Option<&AccountId32>,
        demands: &mut Vec<DemandRecord>,
        (shown, bytes): (ContentPart, u32),
        new_bytes: u32,
    ) -> Option<AccountId32> {
        let mut first = None;
        for demand in demands.iter_mut().filter(|demand| self.clock <= demand.until) {
            let (before, wanted) = (held(demand), demand.parts.len());
            demand.parts.retain(|wanted| {
                wanted.content != shown.content || at_most_last(wanted.part, bytes) != shown.part
            });
            let freed = before.saturating_sub(held(demand));
            let is_first = first.is_none() && demand.parts.len() < wanted;
            let price = demand.price * Balance::from(new_bytes) / Balance::from(PART_BYTES);
            let borne = match (is_first, client == Some(&demand.demander)) {
                (false, _) => 0,
                (true, true) => price,
                (true, false) => price / 2,
            };
            if let Some(funds) = self.funds.get_mut(&demand.by) {
                funds.held = funds.held.saturating_sub(freed);
                funds.free = funds.free.saturating_add(freed.saturating_sub(borne));
            }
            if is_first {
                first = Some(demand.demander.clone());
            }
        }
        demands.retain(|demand| !demand.parts.is_empty());
        first
    }

    /// Content can be read once all of it has been shown.
    fn keep_part(&mut self, key: (TaskId, H256), bytes: u32, opening: &PartOpening) {
        let of = self.shown_parts.entry(key).or_insert_with(|| Shown {
            bytes,
            parts: Default::default(),
        });
        of.parts.insert(opening.part, opening.bytes.to_vec());
        if of.parts.len() == parts(bytes) as usize {
            let whole = of.parts.values().flatten().copied().collect();
            self.shown.insert(key, whole);
        }
    }

    /// Whoever was shown something before the reveal has the whole window to work with it.
    fn audit_again(&mut self, task: TaskId, met: usize) -> Result<(), ChainError> {
        let window = self.audit_windows.get(&task).copied().unwrap_or_default();
        let again = self.clock.saturating_add(window);
        let round = self.round_mut(task)?;
        let met = u32::try_from(met).unwrap_or(u32::MAX);
        round.demands = round.demands.saturating_sub(met);
        if let RoundPhase::Auditing { until } = &mut round.phase {
            *until = again.max(*until);
        }
        Ok(())
    }

    /// Holds money back, where it is known how much there is.
    pub(super) fn hold(&mut self, who: &AccountId32, amount: Balance) -> Result<(), ChainError> {
        self.take(who, amount)?;
        if let Some(funds) = self.funds.get_mut(who) {
            funds.held = funds.held.saturating_add(amount);
        }
        Ok(())
    }

    /// Takes money, where it is known how much there is.
    pub(super) fn take(&mut self, who: &AccountId32, amount: Balance) -> Result<(), ChainError> {
        let Some(funds) = self.funds.get_mut(who) else {
            return Ok(());
        };
        let left = funds.free.checked_sub(amount);
        funds.free = left.ok_or_else(|| {
            ChainError::Dispatch(DispatchFault {
                pallet: None,
                name: "Token".into(),
                docs: "Funds are unavailable".into(),
            })
        })?;
        Ok(())
    }
}

fn wants_leaves(wanted: &DemandedParts) -> bool {
    wanted.iter().any(|part| part.content == Content::Leaves)
}

fn held(demand: &DemandRecord) -> Balance {
    demand.price.saturating_mul(demand.parts.len() as Balance)
}

/// The last part stands for those that content of so many bytes has not.
fn at_most_last(part: u32, bytes: u32) -> u32 {
    part.min(parts(bytes).saturating_sub(1))
}
