//! Who is let in: by the chain's state, and nothing else.

use std::sync::Arc;

use async_trait::async_trait;
use codec::DecodeAll;
use surety_audit_economics::{AuditInput, AuditThreshold};
use surety_chain_client::{
    AccountId, Chain, ChainError, RoundRecord, StakeInfo, TaskInfo, TaskRecord, When, checked_draw,
};
use surety_network::{AccessGate, Asked, Decision};
use surety_types::{ContentHash, stake::Role, task::TaskState, trust::DisputeId};

use crate::{OwnOutputs, ticket::TicketBody};

/// Judges tickets by the chain's state.
pub struct Gate {
    chain: Arc<dyn Chain>,
    /// Whose outputs are asked for; nobody's where there are none.
    provider: Option<AccountId>,
    /// Whose inputs are here, where there are no outputs; anybody's where it is not said.
    client: Option<AccountId>,
    outputs: Arc<OwnOutputs>,
}

impl Gate {
    /// Of a client: it has inputs of its own tasks only.
    pub fn of_client(chain: Arc<dyn Chain>, client: AccountId) -> Self {
        Self {
            client: Some(client),
            ..Self::of_inputs(chain)
        }
    }

    /// Of whoever keeps inputs of others' tasks.
    pub fn of_inputs(chain: Arc<dyn Chain>) -> Self {
        Self {
            chain,
            provider: None,
            client: None,
            outputs: Arc::default(),
        }
    }

    /// Of a provider, for the stash it works for.
    pub fn of_provider(chain: Arc<dyn Chain>, stash: AccountId, outputs: Arc<OwnOutputs>) -> Self {
        Self {
            chain,
            provider: Some(stash),
            client: None,
            outputs,
        }
    }

    /// Whether the signer of a ticket may read a blob, by the best block's state. A fork is no way in: a draw
    /// needs a seed that comes after all commitments, and a key that was there before.
    async fn judge(&self, peer: &str, blob: ContentHash, body: &TicketBody) -> Result<bool, ChainError> {
        if !body.is_signed(&self.chain.info().genesis, peer) {
            return Ok(false);
        }
        let Some(info) = self.chain.task(When::Best, body.task).await? else {
            return Ok(false);
        };
        let is_input = info.task.spec.input == blob && self.has_input_of(&info);
        let are_leaves = self.outputs.are_leaves(body.task, blob);
        let is_output = self.outputs.is(body.task, blob) || settled_output(&info.task) == Some(blob);
        // What an auditor seals of a trace is to be had by computing alone, until it is sealed.
        let is_shown = are_leaves && self.has_revealed(info.round.as_ref());
        if !is_input && !is_output && !is_shown {
            return Ok(false);
        }
        if info.task.client == body.agent {
            return Ok(true);
        }
        let Some(round) = &info.round else {
            return Ok(false);
        };
        let stash = self.chain.agent_stash(When::Best, &body.agent).await?;
        let stash = stash.unwrap_or_else(|| body.agent.clone());
        let computes = round.members.iter().any(|member| member.provider == stash);
        if is_input && computes || round.audits.iter().any(|audit| audit.verifier == stash) {
            return Ok(true);
        }
        if self.is_drawn(body, &stash, round, is_input).await? {
            return Ok(true);
        }
        for open in &round.disputes {
            if self.decides(open.id, &body.agent, &stash).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether it is for this task that we have its input. Whoever knows an input's hash can post a task of
    /// its own with it, and would be let in as its client.
    fn has_input_of(&self, info: &TaskInfo) -> bool {
        let mut members = info.round.iter().flat_map(|round| &round.members);
        match (&self.provider, &self.client) {
            (Some(stash), _) => members.any(|member| member.provider == *stash),
            (None, Some(client)) => info.task.client == *client,
            (None, None) => true,
        }
    }

    /// Whether our result is open.
    fn has_revealed(&self, round: Option<&RoundRecord>) -> bool {
        let mut members = round.iter().flat_map(|round| &round.members);
        members.any(|member| Some(&member.provider) == self.provider.as_ref() && member.claim().is_some())
    }

    /// Whether a draw is right, and for what is asked for.
    async fn is_drawn(
        &self,
        body: &TicketBody,
        stash: &AccountId,
        round: &RoundRecord,
        is_input: bool,
    ) -> Result<bool, ChainError> {
        let (Some((provider, proof)), Some(draw)) = (&body.draw, &round.draw) else {
            return Ok(false);
        };
        let Some(seed) = draw.seed else {
            return Ok(false);
        };
        // An output is for those who audit it.
        if !is_input && self.provider.as_ref() != Some(provider) {
            return Ok(false);
        }
        let mut members = round.members.iter();
        if !members.any(|member| member.provider == *provider && member.owes_opening()) {
            return Ok(false);
        }
        let input = AuditInput {
            seed,
            task: body.task,
            provider: provider.clone(),
        };
        let Some(output) = checked_draw(&body.agent, &input, proof) else {
            return Ok(false);
        };
        let Some(stake) = self.verifier_stake(stash).await? else {
            return Ok(false);
        };
        if stake.settled_at > draw.settled_by {
            return Ok(false);
        }
        let expected = self
            .chain
            .auditors_expected(When::Best, body.task, provider)
            .await?;
        let threshold = AuditThreshold::weighted(expected, stake.bonded, draw.verifier_stake);
        Ok(threshold.draws(&output))
    }

    /// Whether somebody is a party of a dispute, or may be asked to decide it: all verifiers are, in the end.
    async fn decides(
        &self,
        dispute: DisputeId,
        agent: &AccountId,
        stash: &AccountId,
    ) -> Result<bool, ChainError> {
        let Some(found) = self.chain.dispute(When::Best, dispute).await? else {
            return Ok(false);
        };
        let parties = [found.defender.account(), found.challenger.account()];
        if parties.iter().any(|party| *party == agent || *party == stash) {
            return Ok(true);
        }
        Ok(found.referred_at.is_some() && self.verifier_stake(stash).await?.is_some())
    }

    /// The stake of a verifier that has some bonded; nothing for anybody else.
    async fn verifier_stake(&self, stash: &AccountId) -> Result<Option<StakeInfo>, ChainError> {
        let stake = self.chain.stake(When::Best, stash).await?;
        Ok(stake.filter(|stake| stake.role == Role::Verifier && stake.bonded > 0))
    }
}

/// What a task came to.
fn settled_output(task: &TaskRecord) -> Option<ContentHash> {
    match &task.state {
        TaskState::Settled { claim, .. } => Some(claim.output),
        _ => None,
    }
}

#[async_trait]
impl AccessGate for Gate {
    async fn may_read(&self, asked: Asked<'_>) -> Option<Decision> {
        let Ok(body) = TicketBody::decode_all(&mut asked.ticket.as_bytes()) else {
            return Some(Decision::Refuse);
        };
        // A ticket for one task says nothing of another's output.
        if asked.task.is_some_and(|task| task != body.task) {
            return Some(Decision::Refuse);
        }
        match self.judge(asked.peer, asked.blob, &body).await {
            Ok(true) => Some(Decision::Allow),
            Ok(false) => Some(Decision::Refuse),
            Err(e) => {
                tracing::warn!(task = body.task, error = %e, "cannot judge who asks for a blob");
                None
            }
        }
    }
}
