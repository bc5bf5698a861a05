//! Who is let in: by the chain's state, and nothing else.

use std::sync::Arc;

use async_trait::async_trait;
use codec::DecodeAll;
use surety_audit_economics::{AuditInput, AuditThreshold};
use surety_chain_client::{
    AccountId, Chain, ChainError, RoundRecord, StakeInfo, TaskInfo, TaskRecord, When, checked_draw,
};
use surety_network::{AccessGate, Asked, Decision};
use surety_types::{
    ContentHash, TaskId,
    stake::Role,
    task::{RoundPhase, TaskState},
    trust::DisputeId,
};

use crate::{OwnOutputs, ticket::TicketBody};

/// Judges tickets by the chain's state.
pub struct Gate {
    chain: Arc<dyn Chain>,
    of: Of,
}

/// Whose gate it is.
enum Of {
    Inputs(Arc<dyn KeptInputs>),
    Provider {
        stash: AccountId,
        outputs: Arc<OwnOutputs>,
    },
}

/// The inputs that somebody keeps for clients.
pub trait KeptInputs: Send + Sync {
    /// Whether this client gave this input to be kept.
    fn has(&self, client: &AccountId, input: ContentHash) -> bool;
}

/// A client that keeps the inputs of its own tasks.
impl KeptInputs for AccountId {
    fn has(&self, client: &AccountId, _: ContentHash) -> bool {
        client == self
    }
}

impl Gate {
    /// Of whoever keeps inputs: a client, or somebody else for clients.
    pub fn of_inputs(chain: Arc<dyn Chain>, inputs: Arc<dyn KeptInputs>) -> Self {
        let of = Of::Inputs(inputs);
        Self { chain, of }
    }

    /// Of a provider, for the stash it works for.
    pub fn of_provider(chain: Arc<dyn Chain>, stash: AccountId, outputs: Arc<OwnOutputs>) -> Self {
        let of = Of::Provider { stash, outputs };
        Self { chain, of }
    }

    /// Whether the signer of a ticket may read a blob, by the best block's state; nothing where its client
    /// may not yet. A fork is no way in: a draw needs a seed that comes after all commitments, and a key that
    /// was there before, and the client's time for the output has come when that is final.
    async fn judge(
        &self,
        peer: &str,
        blob: ContentHash,
        body: &TicketBody,
    ) -> Result<Option<bool>, ChainError> {
        if !body.is_signed(&self.chain.info().genesis, peer) {
            return Ok(Some(false));
        }
        let Some(info) = self.chain.task(When::Best, body.task).await? else {
            return Ok(Some(false));
        };
        let Some(is_input) = self.serves(body.task, &info, blob) else {
            return Ok(Some(false));
        };
        if info.task.client == body.agent {
            return match is_input {
                true => Ok(Some(true)),
                false => self.is_for_client(body.task).await,
            };
        }
        let Some(round) = &info.round else {
            return Ok(Some(false));
        };
        self.is_in_round(body, round, is_input).await.map(Some)
    }

    /// Whether a task's output is its client's to read; nothing where it may be later.
    async fn is_for_client(&self, task: TaskId) -> Result<Option<bool>, ChainError> {
        let Some(info) = self.chain.task(When::Finalized, task).await? else {
            return Ok(None);
        };
        let is_open = info.round.as_ref().is_some_and(is_open_to_client);
        Ok(match (&info.task.state, is_open) {
            (_, true) | (TaskState::Settled { .. }, _) => Some(true),
            (TaskState::Failed { .. } | TaskState::Cancelled { .. }, false) => Some(false),
            (_, false) => None,
        })
    }

    /// Whether the signer of a ticket has to do with a round, so that it may read a blob of it.
    async fn is_in_round(
        &self,
        body: &TicketBody,
        round: &RoundRecord,
        is_input: bool,
    ) -> Result<bool, ChainError> {
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

    /// Whether it is for this task that we have a blob, and whether that is its input. Whoever knows a blob's
    /// hash can post a task of its own with it, and would be let in as its client.
    fn serves(&self, task: TaskId, info: &TaskInfo, blob: ContentHash) -> Option<bool> {
        let is_input = info.task.spec.input == blob;
        let serves = match &self.of {
            Of::Inputs(inputs) => is_input && inputs.has(&info.task.client, blob),
            Of::Provider { stash, outputs } => {
                let is_made = is_input && outputs.has(task) || outputs.is(task, blob);
                let is_paid = (is_input || claimed(&info.task) == Some(blob)) && is_paid(&info.task, stash);
                // What an auditor seals of a trace is to be had by computing alone, until it is sealed.
                let is_shown = outputs.are_leaves(task, blob) && has_revealed(info.round.as_ref(), stash);
                is_made || is_paid || is_shown
            }
        };
        serves.then_some(is_input)
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
        if !is_input && !matches!(&self.of, Of::Provider { stash, .. } if stash == provider) {
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

/// Whether a round's client may read what was committed to: not while somebody may still commit, and never
/// where too few have. With providers of its own that commit to nothing it would have the output and its
/// money back.
pub fn is_open_to_client(round: &RoundRecord) -> bool {
    round.draw.is_some() && !matches!(round.phase, RoundPhase::Committing { .. })
}

/// What a task came to.
fn claimed(task: &TaskRecord) -> Option<ContentHash> {
    match &task.state {
        TaskState::Settled { claim, .. } => Some(claim.output),
        _ => None,
    }
}

/// Whether somebody was paid for a task's result.
fn is_paid(task: &TaskRecord, stash: &AccountId) -> bool {
    match &task.state {
        TaskState::Settled { payments, .. } => payments.iter().any(|paid| paid.provider == *stash),
        _ => false,
    }
}

/// Whether somebody's result is open.
fn has_revealed(round: Option<&RoundRecord>, stash: &AccountId) -> bool {
    let mut members = round.iter().flat_map(|round| &round.members);
    members.any(|member| member.provider == *stash && member.claim().is_some())
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
            Ok(Some(true)) => Some(Decision::Allow),
            Ok(Some(false)) => Some(Decision::Refuse),
            // Not remembered: the client asks again.
            Ok(None) => None,
            Err(e) => {
                tracing::warn!(task = body.task, error = %e, "cannot judge who asks for a blob");
                None
            }
        }
    }
}
