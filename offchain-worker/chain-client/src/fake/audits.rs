//! Audits of results: announced, opened and refuted.

use sp_core::{H256, crypto::AccountId32};
use sp_runtime::FixedU128;
use surety_audit_economics::{AuditInput, AuditThreshold, answer_hashes, drawn_items, items_seal};
use surety_proofs::merkle_root;
use surety_types::{
    TaskId,
    task::RoundPhase,
    trust::{Audit, AuditAnswer, AuditProof, AuditState, ItemsFound, ItemsOpened, Refutation},
};

use super::state::{Applied, FakeState, fault, slash_event, task_event};
use crate::{Balance, BlockNumber, ChainError, ItemsOpening, Refusal, RoundRecord, checked_draw};

impl FakeState {
    pub(super) fn announce_audit(
        &mut self,
        who: &AccountId32,
        task: TaskId,
        provider: &AccountId32,
        (proof, seal): (&AuditProof, H256),
    ) -> Applied {
        let (verifier, output) = self.drawn_auditor(who, task, provider, proof)?;
        let audit = Audit {
            verifier,
            provider: provider.clone(),
            bond: 0,
            draw: output.into(),
            items: None,
            state: AuditState::Sealed(seal),
        };
        let full = self.round_mut(task)?.audits.try_push(audit).is_err();
        match full {
            true => Err(fault("Results", "TooManyAudits")),
            false => Ok(vec![task_event("Results", "AuditAnnounced", task)]),
        }
    }

    /// The verifier that an agent shows to be drawn for a result, while audits can be announced, and to have
    /// sealed nothing about it yet; and the output that it drew itself with.
    pub(super) fn drawn_auditor(
        &self,
        agent: &AccountId32,
        task: TaskId,
        provider: &AccountId32,
        proof: &AuditProof,
    ) -> Result<(AccountId32, [u8; 32]), ChainError> {
        let (round, verifier) = (self.round(task)?, self.verifier_of(agent)?);
        let jailed_until = self.records.get(&verifier).and_then(|record| record.jailed_until);
        if jailed_until.is_some_and(|until| self.clock <= until) {
            return Err(fault("Results", "InJail"));
        }
        let is_open = matches!(round.phase, RoundPhase::Auditing { until } if self.clock <= until)
            || matches!(round.phase, RoundPhase::Auditing { .. }) && round.demands > 0;
        let draw = round.draw.as_ref().filter(|_| is_open);
        let seeded = draw.and_then(|draw| Some((draw, draw.seed?)));
        let (draw, seed) = seeded.ok_or_else(|| fault("Results", "WrongPhase"))?;
        let stake = self.stakes.get(&verifier);
        if stake.is_some_and(|stake| stake.settled_at > draw.settled_by) {
            return Err(fault("Results", "Unsettled"));
        }
        let member = round.members.iter().find(|member| member.provider == *provider);
        let member = member.ok_or_else(|| fault("Results", "NotMember"))?;
        if !member.owes_opening() {
            return Err(fault("Results", "NotDisputable"));
        }
        let mut audits = round.audits.iter();
        if audits.any(|audit| audit.provider == *provider && audit.verifier == verifier) {
            return Err(fault("Results", "AlreadyAuditing"));
        }
        let provider = provider.clone();
        let input = AuditInput { seed, task, provider };
        let (expected, bonded) = (self.auditors_expected, stake.map_or(0, |stake| stake.bonded));
        let expected = FixedU128::from_inner(expected);
        let threshold = AuditThreshold::weighted(expected, bonded, draw.verifier_stake);
        let output = checked_draw(agent, &input, proof).filter(|output| threshold.draws(output));
        let output = output.ok_or_else(|| fault("Results", "NotDrawn"))?;
        Ok((verifier, output))
    }

    pub(super) fn reveal_audit(
        &mut self,
        verifier: &AccountId32,
        task: TaskId,
        provider: &AccountId32,
        opened: impl FnOnce(&RoundRecord) -> (H256, bool),
    ) -> Applied {
        let round = self.rounds.get(&task).ok_or(Refusal::Call)?;
        match round.phase {
            RoundPhase::Committing { .. } | RoundPhase::Auditing { .. } => return Err(Refusal::Future.into()),
            RoundPhase::Challengeable { .. }
                if round.openings_until.is_none_or(|until| self.clock > until) =>
            {
                return Err(Refusal::Stale.into());
            }
            RoundPhase::Revealing { .. } | RoundPhase::Challengeable { .. } => {}
        }
        let member = round.members.iter().find(|member| member.provider == *provider);
        if member.ok_or(Refusal::Call)?.claim().is_none() {
            return Err(Refusal::Future.into());
        }
        let (opened, agrees) = opened(round);
        let audit = self.audit(task, provider, verifier).ok_or(Refusal::Call)?;
        match audit.state {
            AuditState::Sealed(seal) if seal == opened => {}
            AuditState::Sealed(_) => return Err(Refusal::BadProof.into()),
            _ => return Err(Refusal::Stale.into()),
        }
        audit.state = match agrees {
            true => AuditState::Confirmed,
            false => AuditState::Differs,
        };
        Ok(vec![task_event("Results", "AuditRevealed", task)])
    }

    pub(super) fn reveal_items(
        &mut self,
        task: TaskId,
        (provider, verifier): (&AccountId32, &AccountId32),
        (found, answer): (&ItemsFound, &AuditAnswer),
    ) -> Applied {
        let seal = items_seal(task, provider, verifier, found, &answer_hashes(answer));
        let events = self.reveal_audit(verifier, task, provider, |_| (seal, answer.agrees))?;
        let member = self.member(provider, task).map_err(|_| Refusal::Call)?;
        let units = member.claim().map_or(0, |claim| claim.units);
        let own = member.audits.items.min(units);
        // Nobody confirms less than was its own.
        if answer.agrees && (own == units || found.len() != own as usize) {
            return Err(Refusal::Call.into());
        }
        // The best state is that of the block to come.
        let block = self.number.saturating_add(1);
        if let Some(audit) = self.audit(task, provider, verifier) {
            audit.items = Some(ItemsOpened { seal, block });
        }
        let key = (block, task, provider.clone(), verifier.clone());
        self.openings
            .entry(key)
            .or_default()
            .push((found.clone(), *answer));
        Ok(events)
    }

    /// What a block's body has, where the node still has that.
    pub(super) fn items_opened(
        &self,
        key: &(BlockNumber, TaskId, AccountId32, AccountId32),
    ) -> Result<Vec<ItemsOpening>, ChainError> {
        if key.0 < self.bodies_from {
            return Err(ChainError::Implausible {
                url: "fake".into(),
                reason: format!("it has no body of block {}", key.0),
            });
        }
        Ok(self.openings.get(key).cloned().unwrap_or_default())
    }

    /// Takes the leaves that are shown for those of the trace.
    pub(super) fn refute_audit(
        &mut self,
        task: TaskId,
        (provider, verifier): (&AccountId32, &AccountId32),
        refutation: &Refutation,
    ) -> Applied {
        let answers = answer_hashes(&refutation.answer);
        let seal = items_seal(task, provider, verifier, &refutation.found, &answers);
        let said = self.round(task)?.members.iter();
        let mut said = said.filter(|member| member.provider == *provider);
        let said = said.next().and_then(|member| member.claim());
        let units = said.ok_or_else(|| fault("Results", "NotRevealed"))?.units;
        let audit = self.audit(task, provider, verifier);
        let audit = audit.ok_or_else(|| fault("Results", "NotAuditor"))?;
        if audit.state != AuditState::Confirmed {
            return Err(fault("Results", "NothingRefuted"));
        }
        if audit.items.is_none_or(|opened| opened.seal != seal) {
            return Err(fault("Results", "SealMismatch"));
        }
        let shown = merkle_root(refutation.shown.leaves.iter().copied());
        let place = refutation.place as usize;
        let drawn = drawn_items(&audit.draw.0, units, refutation.found.len() as u32);
        let sealed = drawn.get(place).and_then(|_| refutation.found.get(place));
        if sealed.is_none_or(|sealed| sealed.leaves == shown) {
            return Err(fault("Results", "NothingRefuted"));
        }
        audit.state = AuditState::Over;
        Ok(vec![slash_event(task)])
    }

    fn audit(
        &mut self,
        task: TaskId,
        provider: &AccountId32,
        verifier: &AccountId32,
    ) -> Option<&mut Audit<AccountId32, Balance>> {
        let mut audits = self.rounds.get_mut(&task)?.audits.iter_mut();
        audits.find(|audit| audit.verifier == *verifier && audit.provider == *provider)
    }
}
