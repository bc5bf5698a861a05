//! Rounds of tasks: commitments, reveals and what settles them; moves and votes in disputes.

use sp_core::{H256, crypto::AccountId32};
use surety_audit_economics::audit_seal;
use surety_dispute_game::committee::{Candidate, Entry};
use surety_proofs::commitment;
use surety_types::{
    TaskId,
    stake::Role,
    task::{Assignment, AuditDraw, MemberProgress, ResultClaim, RoundMember, RoundPhase, TaskState},
    trust::{DisputeId, FaultKind},
};

use super::state::{Applied, FakeState, fault, task_event};
use crate::{Balance, BlockNumber, Call, ChainError, CommitRecord, Refusal, RoundRecord};

impl FakeState {
    /// What a call does to a round; nothing for calls that do nothing to any.
    pub(super) fn apply_to_round(&mut self, who: &AccountId32, call: &Call) -> Applied {
        match call {
            Call::Commit { task, commitment } => self.commit(who, *task, *commitment),
            Call::Reveal {
                task,
                provider,
                claim,
                salt,
            } => self.reveal(provider, *task, claim, salt),
            Call::AnnounceAudit {
                task,
                provider,
                proof,
                seal,
            } => self.announce_audit(who, *task, provider, (proof, *seal)),
            Call::RevealAudit {
                task,
                provider,
                verifier,
                claim,
                salt,
            } => self.reveal_audit(verifier, *task, provider, |round| {
                let mut members = round.members.iter();
                let agrees = members.any(|m| m.provider == *provider && m.claim() == Some(claim));
                (audit_seal(*task, provider, verifier, claim, salt), agrees)
            }),
            Call::RevealItems {
                task,
                provider,
                verifier,
                found,
                answer,
            } => self.reveal_items(*task, (provider, verifier), (found, answer)),
            Call::RefuteAudit {
                task,
                provider,
                verifier,
                refutation,
            } => self.refute_audit(*task, (provider, verifier), refutation),
            Call::Demand {
                task,
                provider,
                parts,
                proof,
            } => self.demand(who, (*task, provider), parts, proof.as_ref()),
            Call::Supply {
                task,
                content,
                bytes,
                opening,
            } => self.supply(who, *task, (*content, *bytes), opening),
            Call::DemandInput { task, segment } => self.demand_input(who, *task, *segment),
            Call::SupplyInput { task, opening } => self.supply_input(*task, opening),
            Call::ReportEquivocation { statement, .. } => {
                let task = statement.statement.task;
                let provider = &statement.statement.provider;
                let members = self.rounds.get_mut(&task).map(|round| &mut round.members);
                let mut members = members.into_iter().flatten();
                if let Some(member) = members.find(|member| member.provider == *provider) {
                    member.fault = Some(FaultKind::Equivocation);
                }
                Ok(vec![task_event("Results", "EquivocationReported", task)])
            }
            _ => Ok(Vec::new()),
        }
    }

    /// What a call does to a dispute; nothing for calls that do nothing to any.
    pub(super) fn apply_to_dispute(&mut self, who: &AccountId32, call: &Call) -> Applied {
        match call {
            Call::Play { dispute, number, .. } => self.play(*dispute, *number),
            Call::JoinCommittee {
                dispute,
                ballot,
                seal,
                ..
            } => self.join_committee(who, *dispute, *ballot, *seal),
            Call::RevealVote {
                dispute,
                verifier,
                value,
                salt,
            } => self.reveal_vote(verifier, *dispute, *value, *salt),
            _ => Ok(Vec::new()),
        }
    }

    /// The stash of a provider's agent.
    pub(super) fn provider_of(&self, agent: &AccountId32) -> Result<AccountId32, ChainError> {
        let stash = self.stash_in(agent, Role::Provider);
        stash.ok_or_else(|| fault("Results", "NotProviderAgent"))
    }

    /// The stash of a verifier's agent.
    pub(super) fn verifier_of(&self, agent: &AccountId32) -> Result<AccountId32, ChainError> {
        let stash = self.stash_in(agent, Role::Verifier);
        stash.ok_or_else(|| fault("Results", "NotVerifierAgent"))
    }

    pub(super) fn round(&self, task: TaskId) -> Result<&RoundRecord, ChainError> {
        let round = self.rounds.get(&task);
        round.ok_or_else(|| fault("Results", "UnknownRound"))
    }

    pub(super) fn round_mut(&mut self, task: TaskId) -> Result<&mut RoundRecord, ChainError> {
        let round = self.rounds.get_mut(&task);
        round.ok_or_else(|| fault("Results", "UnknownRound"))
    }

    pub(super) fn member(
        &mut self,
        stash: &AccountId32,
        task: TaskId,
    ) -> Result<&mut RoundMember<AccountId32, Balance>, ChainError> {
        let round = self.round_mut(task)?;
        let member = round.members.iter_mut().find(|member| member.provider == *stash);
        member.ok_or_else(|| fault("Results", "NotMember"))
    }

    fn commit(&mut self, who: &AccountId32, task: TaskId, commitment: H256) -> Applied {
        let committing = |round: &RoundRecord| matches!(round.phase, RoundPhase::Committing { .. });
        if !self.rounds.get(&task).is_some_and(committing) {
            return Err(fault("Results", "WrongPhase"));
        }
        let stash = self.provider_of(who)?;
        let member = self.member(&stash, task)?;
        if member.progress != MemberProgress::Working {
            return Err(fault("Results", "AlreadyCommitted"));
        }
        member.progress = MemberProgress::Committed(commitment);
        let agent = who.clone();
        let note = CommitRecord {
            agent,
            commitment,
            shown: None,
        };
        self.commit_notes.insert((task, stash), note);
        Ok(vec![task_event("Results", "Committed", task)])
    }

    fn reveal(&mut self, stash: &AccountId32, task: TaskId, claim: &ResultClaim, salt: &H256) -> Applied {
        let clock = self.clock;
        let round = self.rounds.get(&task).ok_or(Refusal::Call)?;
        let (late, is_owed) = match round.phase {
            RoundPhase::Revealing { .. } => (false, true),
            RoundPhase::Challengeable { .. } => {
                (true, round.reveals_until.is_some_and(|until| clock <= until))
            }
            RoundPhase::Committing { .. } | RoundPhase::Auditing { .. } => return Err(Refusal::Future.into()),
        };
        if !is_owed {
            return Err(Refusal::Stale.into());
        }
        let member = self.member(stash, task).map_err(|_| Refusal::Call)?;
        match member.progress {
            MemberProgress::Committed(_) if late && !member.missed_reveal => {
                return Err(Refusal::Stale.into());
            }
            MemberProgress::Committed(sealed) if sealed == commitment(task, stash, claim, salt) => {}
            MemberProgress::Committed(_) => return Err(Refusal::BadProof.into()),
            MemberProgress::Revealed(_) => return Err(Refusal::Stale.into()),
            MemberProgress::Working => return Err(Refusal::Call.into()),
        }
        member.progress = MemberProgress::Revealed(claim.clone());
        Ok(vec![task_event("Results", "Revealed", task)])
    }

    /// Ends the commit window of a task: auditors may draw themselves.
    pub(super) fn open_audits(&mut self, id: TaskId, until: BlockNumber) {
        if let Some(round) = self.rounds.get_mut(&id) {
            round.phase = RoundPhase::Auditing { until };
            round.demands_until = Some(until);
            let window = until.saturating_sub(self.clock);
            self.audit_windows.insert(id, window);
            round.draw = Some(AuditDraw {
                begun_at: self.number,
                settled_by: self.number,
                epoch_randomness: H256([6; 32]),
                verifier_stake: 1,
                seed: Some(H256([5; 32])),
            });
        }
    }

    pub(super) fn assign(&mut self, id: TaskId, until: BlockNumber) {
        let opened = self.bids.iter().filter(|((task, _), _)| *task == id);
        let assignments: Vec<_> = opened
            .filter_map(|((_, stash), bid)| {
                let price = bid.opened.as_ref()?.price;
                Some(Assignment {
                    provider: stash.clone(),
                    price,
                })
            })
            .collect();
        let member = |assignment: &Assignment<AccountId32, Balance>| {
            RoundMember::new(assignment.provider.clone(), assignment.price, 0)
        };
        let members: Vec<_> = assignments.iter().map(member).collect();
        let Some(task) = self.tasks.get_mut(&id) else {
            return;
        };
        let round = RoundRecord {
            members: members.try_into().unwrap_or_default(),
            ..RoundRecord::new(task.spec.units_max, until)
        };
        task.state = TaskState::Running {
            assignments: assignments.try_into().unwrap_or_default(),
            reserves: Default::default(),
        };
        self.rounds.insert(id, round);
    }

    pub(super) fn open_reveals(&mut self, id: TaskId, until: BlockNumber) {
        if let Some(round) = self.rounds.get_mut(&id) {
            round.phase = RoundPhase::Revealing { until };
        }
    }

    pub(super) fn settle(&mut self, id: TaskId) {
        let Some(round) = self.rounds.remove(&id) else {
            return;
        };
        let revealed: Vec<_> = round
            .members
            .iter()
            .filter_map(|member| match &member.progress {
                MemberProgress::Revealed(claim) => Some((member.provider.clone(), claim.clone())),
                _ => None,
            })
            .collect();
        let votes = |claim: &ResultClaim| revealed.iter().filter(|(_, other)| other == claim).count();
        let winner = revealed
            .iter()
            .max_by_key(|(_, claim)| votes(claim))
            .map(|(_, claim)| claim.clone());
        let (Some(claim), Some(task)) = (winner, self.tasks.get_mut(&id)) else {
            return;
        };
        let assignments = match &task.state {
            TaskState::Running { assignments, .. } => assignments.clone(),
            _ => return,
        };
        let right = |who: &AccountId32| {
            revealed
                .iter()
                .any(|(other, said)| other == who && *said == claim)
        };
        let payments: Vec<_> = assignments
            .into_iter()
            .filter(|assignment| right(&assignment.provider))
            .collect();
        task.state = TaskState::Settled {
            at: self.number,
            claim,
            payments: payments.try_into().unwrap_or_default(),
            refund: 0,
            fee: 0,
        };
    }

    fn play(&mut self, dispute: DisputeId, number: u32) -> Applied {
        let record = self.disputes.get_mut(&dispute);
        let record = record.ok_or_else(|| fault("Disputes", "UnknownDispute"))?;
        if record.moves != number {
            return Err(fault("Disputes", "StaleMove"));
        }
        record.moves = record.moves.saturating_add(1);
        Ok(vec![task_event("Disputes", "MovePlayed", record.task)])
    }

    fn join_committee(&mut self, who: &AccountId32, dispute: DisputeId, ballot: u32, seal: H256) -> Applied {
        let verifier = self.verifier_of(who)?;
        let committee = self.committees.get_mut(&dispute);
        let committee = committee.ok_or_else(|| fault("Disputes", "NoCommittee"))?;
        if committee.state.rounds() != ballot {
            return Err(fault("Disputes", "StaleBallot"));
        }
        let entered = committee.enter(Candidate {
            verifier,
            rank: 0,
            stake: 1,
            seal,
        });
        match entered {
            Entry::Outranked => Err(fault("Disputes", "Outranked")),
            Entry::Seated | Entry::InsteadOf(_) => Ok(Vec::new()),
        }
    }

    fn reveal_vote(
        &mut self,
        verifier: &AccountId32,
        dispute: DisputeId,
        value: H256,
        salt: H256,
    ) -> Applied {
        let committee = self.committees.get_mut(&dispute).ok_or(Refusal::Call)?;
        let opened = committee.state.reveal(verifier, value, salt);
        opened.map_err(|_| Refusal::BadProof)?;
        Ok(Vec::new())
    }
}
