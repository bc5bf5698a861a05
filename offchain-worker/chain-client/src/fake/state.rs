//! The fake chain's storage, and what calls do to it.

use std::collections::{BTreeMap, BTreeSet};

use codec::Encode;
use sp_core::{crypto::AccountId32, H256};
use surety_types::{
    provider::{DeviceProfile, Provider},
    stake::{Role, StakeRecord},
    task::{
        Assignment, AuditDraw, Bid, MemberProgress, ResultClaim, RoundMember, RoundPhase, Task, TaskSpec,
        TaskState,
    },
    trust::{Audit, AuditState, DisputeId, SlashId},
    ModelId, TaskId,
};
use surety_verification::{
    audit::audit_seal,
    commitment,
    committee::{Candidate, Entry},
};

use crate::{
    chain::is_open, Balance, BidRecord, BlockNumber, Call, ChainError, ChainEvent, CommitteeRecord,
    DemandRecord, DispatchFault, DisputeRecord, EventField, Funds, OpenTask, Parameter, ProviderRecord,
    Refusal, RegisteredModel, RoundRecord, SlashRecord, StakeInfo, TaskRecord, TrustInfo,
};

/// Blocks for which bids are taken, and for which they are opened.
const BID_WINDOW: BlockNumber = 8;

/// Everything the fake chain keeps.
#[derive(Clone, Debug, Default)]
pub struct FakeState {
    /// Height.
    pub number: BlockNumber,
    /// Time on the chain's clock, which every `until` counts on.
    pub clock: BlockNumber,
    /// Tasks, finished ones included.
    pub tasks: BTreeMap<TaskId, TaskRecord>,
    /// Rounds of running tasks.
    pub rounds: BTreeMap<TaskId, RoundRecord>,
    /// Bids by task and stash.
    pub bids: BTreeMap<(TaskId, AccountId32), BidRecord>,
    /// Providers by stash.
    pub providers: BTreeMap<AccountId32, ProviderRecord>,
    /// Models.
    pub models: BTreeMap<ModelId, RegisteredModel>,
    /// Stakes by stash.
    pub stakes: BTreeMap<AccountId32, StakeInfo>,
    /// Stashes by confirmed agent.
    pub agents: BTreeMap<AccountId32, AccountId32>,
    /// Nominated agents by stash.
    pub pending_agents: BTreeMap<AccountId32, AccountId32>,
    /// Disputes that are open. The test puts them there; moves are only counted.
    pub disputes: BTreeMap<DisputeId, DisputeRecord>,
    /// Disputes whose records cannot be read, as after an upgrade.
    pub unreadable: BTreeSet<DisputeId>,
    /// Committees that sit. The test puts them there; seats are taken and answers opened.
    pub committees: BTreeMap<DisputeId, CommitteeRecord>,
    /// Demands by task and provider. The test puts them there.
    pub demands: BTreeMap<(TaskId, AccountId32), DemandRecord>,
    /// Slashes that wait. The test puts them there.
    pub slashes: BTreeMap<SlashId, SlashRecord>,
    /// What is remembered of stashes.
    pub records: BTreeMap<AccountId32, TrustInfo>,
    /// Auditors that a result has in the mean, in units of 10^-18.
    pub auditors_expected: u128,
    /// Money. Calls do not touch it.
    pub funds: BTreeMap<AccountId32, Funds>,
    /// Parameters that differ from the defaults.
    pub parameters: Vec<Parameter>,
}

pub(super) type Applied = Result<Vec<ChainEvent>, ChainError>;

impl FakeState {
    pub(super) fn open_tasks(&self, bidder: Option<&AccountId32>) -> Vec<OpenTask> {
        let bid = |id: TaskId| bidder.and_then(|who| self.bids.get(&(id, who.clone())).cloned());
        self.tasks
            .iter()
            .filter(|(_, task)| is_open(task))
            .map(|(id, task)| OpenTask {
                id: *id,
                task: task.clone(),
                round: self.rounds.get(id).cloned(),
                bid: bid(*id),
            })
            .collect()
    }

    pub(super) fn apply(&mut self, who: &AccountId32, call: &Call) -> Applied {
        match call {
            Call::Bond { role, amount } => self.bond(who, *role, *amount),
            Call::SetAgent { agent } => {
                self.pending_agents.insert(who.clone(), agent.clone());
                Ok(Vec::new())
            }
            Call::ConfirmAgent { stash } => self.confirm_agent(who, stash),
            Call::RegisterProvider { device, endpoints } => {
                let last_heartbeat = self.number;
                let stash = self.stash_of(who)?;
                let (device, endpoints): (DeviceProfile, _) = (device.clone(), endpoints.clone());
                self.providers.insert(
                    stash,
                    Provider {
                        device,
                        endpoints,
                        last_heartbeat,
                    },
                );
                Ok(Vec::new())
            }
            Call::Heartbeat => self.heartbeat(who),
            Call::RegisterModel { manifest } => {
                let model = RegisteredModel {
                    owner: who.clone(),
                    manifest: manifest.clone(),
                    deposit: 0,
                };
                self.models.insert(manifest.id(), model);
                Ok(Vec::new())
            }
            Call::PostTask { spec, cap } => self.post(who, spec, *cap),
            Call::Bid { task, seal } => self.bid(who, *task, *seal),
            Call::RevealBid { task, provider, bid } => self.reveal_bid(provider, *task, bid),
            Call::Commit { task, commitment } => self.commit(who, *task, *commitment),
            Call::Reveal {
                task,
                provider,
                claim,
                salt,
            } => self.reveal(provider, *task, claim, salt),
            Call::AnnounceAudit {
                task, provider, seal, ..
            } => self.announce_audit(who, *task, provider, *seal),
            Call::RevealAudit {
                task,
                provider,
                verifier,
                claim,
                salt,
            } => self.reveal_audit(verifier, *task, provider, claim, salt),
            Call::Demand { task, .. } => Ok(vec![task_event("TrustLock", "DataDemanded", *task)]),
            Call::Supply { task, .. } => Ok(vec![task_event("TrustLock", "DataSupplied", *task)]),
            Call::ReportEquivocation { statement, .. } => {
                let task = statement.statement.task;
                Ok(vec![task_event("TrustLock", "EquivocationReported", task)])
            }
            Call::DemandInput { task, segment } => self.demand_input(who, *task, *segment),
            Call::SupplyInput { task, opening } => self.supply_input(*task, opening),
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
            Call::DeregisterProvider => self.deregister(who),
            Call::RetireModel { model } => self.retire(model),
            Call::CancelTask { task } => self.cancel(*task),
            Call::CarryOutSlash { slash } => {
                let known = self.slashes.remove(slash).is_some();
                let unknown = || fault("TrustLock", "UnknownSlash");
                known.then(Vec::new).ok_or_else(unknown)
            }
            Call::RemoveAgent => {
                self.agents.retain(|_, stash| stash != who);
                Ok(Vec::new())
            }
            // They move money, which is not kept here, or what the test moves on itself.
            Call::Unbond { .. }
            | Call::WithdrawUnbonded
            | Call::Rebond { .. }
            | Call::Transfer { .. }
            | Call::AdvanceTask { .. }
            | Call::AdvanceDispute { .. }
            | Call::Challenge { .. } => Ok(Vec::new()),
        }
    }

    pub(super) fn stash_of(&self, agent: &AccountId32) -> Result<AccountId32, ChainError> {
        let stash = self.agents.get(agent).cloned();
        stash.ok_or_else(|| fault("ProviderRegistry", "NotAgent"))
    }

    /// The stash of a verifier's agent.
    fn verifier_of(&self, agent: &AccountId32) -> Result<AccountId32, ChainError> {
        let stash = self.agents.get(agent).cloned();
        stash.ok_or_else(|| fault("TrustLock", "NotVerifierAgent"))
    }

    fn deregister(&mut self, who: &AccountId32) -> Applied {
        let stash = self.stash_of(who)?;
        let known = self.providers.remove(&stash).is_some();
        let unknown = || fault("ProviderRegistry", "NotRegistered");
        known.then(Vec::new).ok_or_else(unknown)
    }

    fn retire(&mut self, model: &ModelId) -> Applied {
        let known = self.models.remove(model).is_some();
        let unknown = || fault("ModelRegistry", "UnknownModel");
        known.then(Vec::new).ok_or_else(unknown)
    }

    fn cancel(&mut self, id: TaskId) -> Applied {
        let at = self.number;
        let task = self.tasks.get_mut(&id);
        let task = task.ok_or_else(|| fault("TaskAuction", "UnknownTask"))?;
        if !matches!(task.state, TaskState::Bidding { .. }) {
            return Err(fault("TaskAuction", "WrongPhase"));
        }
        task.state = TaskState::Cancelled { at };
        Ok(vec![task_event("TaskAuction", "TaskCancelled", id)])
    }

    fn bond(&mut self, who: &AccountId32, role: Role, amount: Balance) -> Applied {
        let fresh = || StakeRecord {
            role,
            bonded: 0,
            locked: 0,
            unlocking: Default::default(),
            agent: None,
            settled_at: 0,
        };
        let stake = self.stakes.entry(who.clone()).or_insert_with(fresh);
        if stake.role != role {
            return Err(fault("Staking", "WrongRole"));
        }
        stake.bonded = stake.bonded.saturating_add(amount);
        Ok(Vec::new())
    }

    fn confirm_agent(&mut self, who: &AccountId32, stash: &AccountId32) -> Applied {
        if self.pending_agents.get(stash) != Some(who) {
            return Err(fault("Staking", "NotNominated"));
        }
        self.pending_agents.remove(stash);
        self.agents.insert(who.clone(), stash.clone());
        if let Some(stake) = self.stakes.get_mut(stash) {
            stake.agent = Some(who.clone());
        }
        Ok(Vec::new())
    }

    fn heartbeat(&mut self, who: &AccountId32) -> Applied {
        let stash = self.stash_of(who)?;
        let number = self.number;
        let provider = self.providers.get_mut(&stash);
        let provider = provider.ok_or_else(|| fault("ProviderRegistry", "NotRegistered"))?;
        provider.last_heartbeat = number;
        Ok(Vec::new())
    }

    fn post(&mut self, who: &AccountId32, spec: &TaskSpec, cap: Balance) -> Applied {
        let id = self.tasks.keys().next_back().map_or(0, |last| last + 1);
        let task = Task {
            client: who.clone(),
            spec: spec.clone(),
            cap,
            posted_at: self.number,
            state: TaskState::Bidding {
                until: self.clock.saturating_add(BID_WINDOW),
            },
        };
        self.tasks.insert(id, task);
        Ok(vec![task_event("TaskAuction", "TaskPosted", id)])
    }

    fn bid(&mut self, who: &AccountId32, task: TaskId, seal: H256) -> Applied {
        let stash = self.stash_of(who)?;
        let state = self.tasks.get(&task).map(|task| &task.state);
        match state {
            None => return Err(fault("TaskAuction", "UnknownTask")),
            Some(TaskState::Bidding { .. }) => {}
            Some(_) => return Err(fault("TaskAuction", "WrongPhase")),
        }
        let record = BidRecord {
            seal,
            opened: None,
            deposit: 0,
        };
        if self.bids.contains_key(&(task, stash.clone())) {
            return Err(fault("TaskAuction", "AlreadyBid"));
        }
        self.bids.insert((task, stash), record);
        Ok(vec![task_event("TaskAuction", "BidPlaced", task)])
    }

    /// What the chain would refuse its pool does: no such call gets into a block.
    fn reveal_bid(&mut self, stash: &AccountId32, task: TaskId, bid: &Bid<Balance>) -> Applied {
        let seal = bid.seal(task, stash);
        let record = self.bids.get_mut(&(task, stash.clone()));
        let record = record.ok_or_else(|| ChainError::from(Refusal::Call))?;
        if record.opened.is_some() {
            return Err(Refusal::Stale.into());
        }
        if record.seal != seal {
            return Err(Refusal::BadProof.into());
        }
        record.opened = Some(bid.clone());
        Ok(vec![task_event("TaskAuction", "BidOpened", task)])
    }

    pub(super) fn member(
        &mut self,
        stash: &AccountId32,
        task: TaskId,
    ) -> Result<&mut RoundMember<AccountId32, Balance>, ChainError> {
        let round = self.rounds.get_mut(&task);
        let round = round.ok_or_else(|| fault("TrustLock", "UnknownRound"))?;
        let member = round.members.iter_mut().find(|member| member.provider == *stash);
        member.ok_or_else(|| fault("TrustLock", "NotMember"))
    }

    fn commit(&mut self, who: &AccountId32, task: TaskId, commitment: H256) -> Applied {
        let committing = |round: &RoundRecord| matches!(round.phase, RoundPhase::Committing { .. });
        if !self.rounds.get(&task).is_some_and(committing) {
            return Err(fault("TrustLock", "WrongPhase"));
        }
        let stash = self.stash_of(who)?;
        let member = self.member(&stash, task)?;
        if member.progress != MemberProgress::Working {
            return Err(fault("TrustLock", "AlreadyCommitted"));
        }
        member.progress = MemberProgress::Committed(commitment);
        Ok(vec![task_event("TrustLock", "Committed", task)])
    }

    fn reveal(&mut self, stash: &AccountId32, task: TaskId, claim: &ResultClaim, salt: &H256) -> Applied {
        let clock = self.clock;
        let round = self.rounds.get(&task).ok_or(Refusal::Call)?;
        let (late, is_owed) = match round.phase {
            RoundPhase::Revealing { .. } => (false, true),
            RoundPhase::Challengeable { .. } => {
                (true, round.openings_until.is_some_and(|until| clock <= until))
            }
            RoundPhase::Committing { .. } | RoundPhase::Auditing { .. } => return Err(Refusal::Future.into()),
        };
        if !is_owed {
            return Err(Refusal::Stale.into());
        }
        let member = self.member(stash, task).map_err(|_| Refusal::Call)?;
        match member.progress {
            MemberProgress::Committed(_) if late && !member.missed_reveal => {
                return Err(Refusal::Stale.into())
            }
            MemberProgress::Committed(sealed) if sealed == commitment(task, stash, claim, salt) => {}
            MemberProgress::Committed(_) => return Err(Refusal::BadProof.into()),
            MemberProgress::Revealed(_) => return Err(Refusal::Stale.into()),
            MemberProgress::Working => return Err(Refusal::Call.into()),
        }
        member.progress = MemberProgress::Revealed(claim.clone());
        Ok(vec![task_event("TrustLock", "Revealed", task)])
    }

    fn announce_audit(
        &mut self,
        who: &AccountId32,
        task: TaskId,
        provider: &AccountId32,
        seal: H256,
    ) -> Applied {
        let verifier = self.verifier_of(who)?;
        let round = self.rounds.get_mut(&task);
        let round = round.filter(|round| matches!(round.phase, RoundPhase::Auditing { .. }));
        let round = round.ok_or_else(|| fault("TrustLock", "WrongPhase"))?;
        let audit = Audit {
            verifier,
            provider: provider.clone(),
            bond: 0,
            state: AuditState::Sealed(seal),
        };
        let full = round.audits.try_push(audit).is_err();
        match full {
            true => Err(fault("TrustLock", "TooManyAudits")),
            false => Ok(vec![task_event("TrustLock", "AuditAnnounced", task)]),
        }
    }

    fn reveal_audit(
        &mut self,
        verifier: &AccountId32,
        task: TaskId,
        provider: &AccountId32,
        claim: &ResultClaim,
        salt: &H256,
    ) -> Applied {
        let round = self.rounds.get_mut(&task).ok_or(Refusal::Call)?;
        let mut members = round.members.iter();
        let agrees = members.any(|m| m.provider == *provider && m.claim() == Some(claim));
        let mut audits = round.audits.iter_mut();
        let audit = audits.find(|audit| audit.verifier == *verifier && audit.provider == *provider);
        let audit = audit.ok_or(Refusal::Call)?;
        match audit.state {
            AuditState::Sealed(seal) if seal == audit_seal(task, provider, verifier, claim, salt) => {}
            AuditState::Sealed(_) => return Err(Refusal::BadProof.into()),
            _ => return Err(Refusal::Stale.into()),
        }
        audit.state = match agrees {
            true => AuditState::Confirmed,
            false => AuditState::Differs,
        };
        Ok(vec![task_event("TrustLock", "AuditRevealed", task)])
    }

    fn play(&mut self, dispute: DisputeId, number: u32) -> Applied {
        let record = self.disputes.get_mut(&dispute);
        let record = record.ok_or_else(|| fault("TrustLock", "UnknownDispute"))?;
        if record.moves != number {
            return Err(fault("TrustLock", "StaleMove"));
        }
        record.moves = record.moves.saturating_add(1);
        Ok(vec![task_event("TrustLock", "MovePlayed", record.task)])
    }

    fn join_committee(&mut self, who: &AccountId32, dispute: DisputeId, ballot: u32, seal: H256) -> Applied {
        let verifier = self.verifier_of(who)?;
        let committee = self.committees.get_mut(&dispute);
        let committee = committee.ok_or_else(|| fault("TrustLock", "NoCommittee"))?;
        if committee.machine.rounds() != ballot {
            return Err(fault("TrustLock", "StaleBallot"));
        }
        let rank = 0;
        let entered = committee.enter(Candidate { verifier, rank, seal });
        match entered {
            Entry::Outranked => Err(fault("TrustLock", "Outranked")),
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
        let opened = committee.machine.reveal(verifier, value, salt);
        opened.map_err(|_| Refusal::BadProof)?;
        Ok(Vec::new())
    }

    /// Ends the commit window of a task: auditors may draw themselves.
    pub(super) fn open_audits(&mut self, id: TaskId, until: BlockNumber) {
        if let Some(round) = self.rounds.get_mut(&id) {
            round.phase = RoundPhase::Auditing { until };
            round.draw = Some(AuditDraw {
                seed: H256([5; 32]),
                verifier_stake: 1,
                tranche: 0,
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
            ..RoundRecord::new(task.spec.redundancy, task.spec.units_max, until)
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
}

pub(super) fn fault(pallet: &str, name: &str) -> ChainError {
    ChainError::Dispatch(DispatchFault {
        pallet: Some(pallet.into()),
        name: name.into(),
        docs: String::new(),
    })
}

pub(super) fn task_event(pallet: &str, name: &str, task: TaskId) -> ChainEvent {
    ChainEvent {
        pallet: pallet.into(),
        name: name.into(),
        extrinsic: Some(0),
        fields: vec![EventField {
            name: "task".into(),
            text: task.to_string(),
            bytes: task.encode(),
        }],
    }
}
