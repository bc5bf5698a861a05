//! The fake chain's storage, and what calls do to it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Debug,
};

use codec::Encode;
use sp_core::{H256, crypto::AccountId32};
use sp_runtime::FixedU128;
use surety_types::{
    ContentHash, ModelId, TaskId,
    model::ModelManifest,
    multiaddr::Endpoints,
    provider::{DeviceProfile, Provider},
    stake::{Role, StakeRecord},
    task::{Bid, Task, TaskSpec, TaskState},
    trust::{DisputeId, SlashCause, SlashId},
};

use super::{channels::FakeChannels, gpu_proofs::FakeGpuProofs, stake::FakeDelegation};
use crate::{
    Balance, BidRecord, BidTerms, BlockNumber, Call, ChainError, ChainEvent, CommitRecord, CommitteeRecord,
    DemandRecord, DispatchFault, DisputeRecord, EventField, Funds, ItemsOpening, OpenTask, OpenTasks,
    Parameter, PartlyRead, ProviderRecord, ProviderTerms, Refusal, RegisteredModel, RoundRecord, SlashRecord,
    StakeInfo, TaskRecord, TrustInfo, call::name::of_channels, chain::is_open,
};

/// Blocks for which bids are taken, and for which they are opened.
const BID_WINDOW: BlockNumber = 8;

/// What providers work by unless the test says otherwise.
const PROVIDER_TERMS: ProviderTerms = ProviderTerms {
    heartbeat_window: 300,
    commit_window: 300,
    opening_window: 10_800,
};

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
    /// Who said that it audits a model.
    pub auditors: BTreeMap<ModelId, Vec<AccountId32>>,
    /// How fast the reference machines of models are, where their owners have said so.
    pub audit_speeds: BTreeMap<ModelId, u32>,
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
    /// Tasks of which bids cannot be read, as after an upgrade.
    pub unreadable_bids: BTreeSet<TaskId>,
    /// Open tasks that are listed, and nothing of them can be read.
    pub unreadable_tasks: BTreeSet<TaskId>,
    /// Tasks of which what a bid can come to cannot be asked.
    pub without_terms: BTreeSet<TaskId>,
    /// Whether accounts' money cannot be read.
    pub unreadable_funds: bool,
    /// Committees that sit. The test puts them there; seats are taken and answers opened.
    pub committees: BTreeMap<DisputeId, CommitteeRecord>,
    /// Demands by task and provider.
    pub demands: BTreeMap<(TaskId, AccountId32), Vec<DemandRecord>>,
    /// What providers committed to, by task and stash.
    pub commit_notes: BTreeMap<(TaskId, AccountId32), CommitRecord>,
    /// Contents of tasks that were shown, each of them whole.
    pub shown: BTreeMap<(TaskId, ContentHash), Vec<u8>>,
    /// What has been shown of contents by parts.
    pub(super) shown_parts: BTreeMap<(TaskId, ContentHash), Shown>,
    /// How many leaves the traces of tasks have: what a chain knows by their models. The test puts it there.
    pub trace_leaves: BTreeMap<TaskId, u32>,
    /// How long the audits of tasks are that were opened.
    pub(super) audit_windows: BTreeMap<TaskId, BlockNumber>,
    /// The node has no bodies of blocks before this one.
    pub(super) bodies_from: BlockNumber,
    /// What auditors have opened of their items, by block, task, provider and verifier.
    pub openings: BTreeMap<(BlockNumber, TaskId, AccountId32, AccountId32), Vec<ItemsOpening>>,
    /// Slashes that wait. The test puts them there.
    pub slashes: BTreeMap<SlashId, SlashRecord>,
    /// What is remembered of stashes.
    pub records: BTreeMap<AccountId32, TrustInfo>,
    /// Auditors that a result has in the mean, in units of 10^-18.
    pub auditors_expected: u128,
    /// Money. Of calls only demands and those about channels touch it.
    pub funds: BTreeMap<AccountId32, Funds>,
    /// What calls cost their signers, or the stashes of those that cannot pay, by name. Others cost nothing.
    pub fees: BTreeMap<&'static str, Balance>,
    /// What is told of the multiplier of fees: what is paid is [`Self::fees`] all the same.
    pub fee_multiplier: FixedU128,
    /// Whether it is no test network.
    pub is_real_money: bool,
    /// Calls that were signed, by account.
    pub sent: BTreeMap<AccountId32, u32>,
    /// Parameters that differ from the defaults.
    pub parameters: Vec<Parameter>,
    /// Parameters that providers work by, where they are not 300 blocks each.
    pub provider_terms: Option<ProviderTerms>,
    /// Stake that a bid for any task needs, in plancks.
    pub lock: Balance,
    /// Payment channels.
    pub channels: FakeChannels,
    /// Stake behind validators, and who they are.
    pub delegation: FakeDelegation,
    /// Rounds of the benchmark.
    pub gpu_proofs: FakeGpuProofs,
}

/// Content that is shown part by part.
#[derive(Clone, Debug, Default)]
pub(super) struct Shown {
    pub bytes: u32,
    pub parts: BTreeMap<u32, Vec<u8>>,
}

pub(super) type Applied = Result<Vec<ChainEvent>, ChainError>;

impl FakeState {
    pub(super) fn open_tasks(&self, bidder: Option<&AccountId32>) -> OpenTasks {
        let bid = |id: TaskId| bidder.and_then(|who| self.bids.get(&(id, who.clone())).cloned());
        let mut open = OpenTasks::default();
        for (id, task) in self.tasks.iter().filter(|(_, task)| is_open(task)) {
            let (id, task, round) = (*id, task.clone(), self.rounds.get(id).cloned());
            if self.unreadable_tasks.contains(&id) {
                open.unread.push(PartlyRead {
                    id,
                    task: None,
                    round: None,
                    bid: None,
                });
                continue;
            }
            match bidder.is_some() && self.unreadable_bids.contains(&id) {
                true => open.unread.push(PartlyRead {
                    id,
                    task: Some(task),
                    round: Some(round),
                    bid: None,
                }),
                false => open.tasks.push(OpenTask {
                    id,
                    task,
                    round,
                    bid: bid(id),
                }),
            }
        }
        open
    }

    pub(super) fn provider_terms(&self) -> ProviderTerms {
        self.provider_terms.unwrap_or(PROVIDER_TERMS)
    }

    pub(super) fn bid_terms(&self, id: TaskId) -> Result<Option<BidTerms>, ChainError> {
        if self.without_terms.contains(&id) {
            return Err(ChainError::Pruned {
                block: self.number.to_string(),
            });
        }
        let share = |task: &TaskRecord| task.cap.checked_div(task.spec.redundancy.into());
        let limit = self.tasks.get(&id).and_then(share).filter(|limit| *limit > 0);
        Ok(limit.map(|price_limit| BidTerms {
            price_limit,
            lock: self.lock,
        }))
    }

    /// Carries a call out. One that fails changes nothing.
    pub(super) fn apply(&mut self, who: &AccountId32, call: &Call) -> Applied {
        let mut next = self.clone();
        let events = next.try_apply(who, call)?;
        *self = next;
        Ok(events)
    }

    fn try_apply(&mut self, who: &AccountId32, call: &Call) -> Applied {
        match call {
            Call::Bond { role, amount } => self.bond(who, *role, *amount),
            Call::SetAgent { agent } => self.set_agent(who, agent),
            Call::ConfirmAgent { stash } => self.confirm_agent(who, stash),
            Call::RemoveAgent => self.remove_agent(who),
            Call::RegisterProvider { device, endpoints } => self.register(who, device, endpoints),
            Call::Heartbeat => self.heartbeat(who),
            Call::DeregisterProvider => self.deregister(who),
            Call::RegisterModel { manifest } => self.register_model(who, manifest),
            Call::RetireModel { model } => self.retire(model),
            Call::OfferAudits { model, offered } => self.offer_audits(who, model, *offered),
            Call::PostTask { spec, cap } => self.post(who, spec, *cap),
            Call::CancelTask { task } => self.cancel(*task),
            Call::Bid { task, seal } => self.bid(who, *task, *seal),
            Call::RevealBid { task, provider, bid } => self.reveal_bid(provider, *task, bid),
            Call::CarryOutSlash { slash } => self.carry_out_slash(*slash),
            Call::Batch(calls) => self.batch(who, calls),
            Call::Commit { .. }
            | Call::Reveal { .. }
            | Call::AnnounceAudit { .. }
            | Call::RevealAudit { .. }
            | Call::RevealItems { .. }
            | Call::RefuteAudit { .. }
            | Call::Demand { .. }
            | Call::Supply { .. }
            | Call::DemandInput { .. }
            | Call::SupplyInput { .. }
            | Call::ReportEquivocation { .. } => self.apply_to_round(who, call),
            Call::Play { .. } | Call::JoinCommittee { .. } | Call::RevealVote { .. } => {
                self.apply_to_dispute(who, call)
            }
            Call::Stake(call) => self.apply_to_stake(who, call),
            Call::CommitRun { entropy, plan, root } => self.commit_run(who, *entropy, *plan, *root),
            Call::OpenRun { openings } => self.open_run(who, openings),
            of_channels!() => self.apply_to_channels(who, call),
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

    /// All of them or, with what the first says that fails, none: who calls has kept what was before.
    fn batch(&mut self, who: &AccountId32, calls: &[Call]) -> Applied {
        let mut events = Vec::new();
        for call in calls {
            events.extend(match call {
                Call::Batch(_) => Err(dispatch_fault(Some("System"), "CallFiltered")),
                call if call.proves_itself() => Err(dispatch_fault(None, "BadOrigin")),
                call => self.try_apply(who, call),
            }?);
        }
        Ok(events)
    }

    pub(super) fn stash_of(&self, agent: &AccountId32) -> Result<AccountId32, ChainError> {
        let stash = self.agents.get(agent).cloned();
        stash.ok_or_else(|| fault("ProviderRegistry", "NotAgent"))
    }

    /// The stash that an agent acts for in a role.
    pub(super) fn stash_in(&self, agent: &AccountId32, role: Role) -> Option<AccountId32> {
        let stash = self.agents.get(agent)?;
        let has_another = self.stakes.get(stash).is_some_and(|stake| stake.role != role);
        (!has_another).then(|| stash.clone())
    }

    fn set_agent(&mut self, who: &AccountId32, agent: &AccountId32) -> Applied {
        if self.agents.contains_key(agent) {
            return Err(fault("Staking", "AgentTaken"));
        }
        self.pending_agents.insert(who.clone(), agent.clone());
        Ok(Vec::new())
    }

    fn remove_agent(&mut self, who: &AccountId32) -> Applied {
        self.agents.retain(|_, stash| stash != who);
        Ok(Vec::new())
    }

    fn register(&mut self, who: &AccountId32, device: &DeviceProfile, endpoints: &Endpoints) -> Applied {
        let stash = self.stash_of(who)?;
        let provider = Provider {
            device: device.clone(),
            endpoints: endpoints.clone(),
            last_heartbeat: self.number,
        };
        self.providers.insert(stash, provider);
        Ok(Vec::new())
    }

    fn deregister(&mut self, who: &AccountId32) -> Applied {
        let stash = self.stash_of(who)?;
        let known = self.providers.remove(&stash).is_some();
        let unknown = || fault("ProviderRegistry", "NotRegistered");
        known.then(Vec::new).ok_or_else(unknown)
    }

    fn register_model(&mut self, who: &AccountId32, manifest: &ModelManifest) -> Applied {
        let model = RegisteredModel {
            owner: who.clone(),
            manifest: manifest.clone(),
            deposit: 0,
        };
        self.models.insert(manifest.id(), model);
        Ok(Vec::new())
    }

    /// On the chain it stays until the tasks are over that have asked for it. Here nobody asks what has
    /// become of them.
    fn retire(&mut self, model: &ModelId) -> Applied {
        let known = self.models.remove(model).is_some();
        let unknown = || fault("ModelRegistry", "UnknownModel");
        known.then(Vec::new).ok_or_else(unknown)
    }

    fn offer_audits(&mut self, agent: &AccountId32, model: &ModelId, offered: bool) -> Applied {
        let stash = self.agents.get(agent).cloned();
        let stash = stash.ok_or_else(|| fault("ModelRegistry", "NotVerifierAgent"))?;
        if !self.models.contains_key(model) {
            return Err(fault("ModelRegistry", "UnknownModel"));
        }
        let auditors = self.auditors.entry(*model).or_default();
        if auditors.contains(&stash) == offered {
            return Err(fault("ModelRegistry", "NothingChanges"));
        }
        auditors.retain(|known| *known != stash);
        auditors.extend(offered.then_some(stash));
        Ok(Vec::new())
    }

    fn carry_out_slash(&mut self, slash: SlashId) -> Applied {
        let known = self.slashes.remove(&slash).is_some();
        let unknown = || fault("TrustLock", "UnknownSlash");
        known.then(Vec::new).ok_or_else(unknown)
    }

    fn cancel(&mut self, id: TaskId) -> Applied {
        let at = self.number;
        let task = self.tasks.get_mut(&id);
        let task = task.ok_or_else(|| fault("TaskAuction", "UnknownTask"))?;
        if !matches!(task.state, TaskState::Bidding { .. }) {
            return Err(fault("TaskAuction", "WrongPhase"));
        }
        task.state = TaskState::Cancelled { at, fee: 0 };
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
        if self.agents.contains_key(who) {
            return Err(fault("Staking", "AgentTaken"));
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
            audits: surety_types::task::AuditTerms::default(),
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
        let asked = self.tasks.get(&task).map(|task| task.spec.requirements);
        let entry = self.providers.get(&stash);
        let declared = entry.and_then(|entry| entry.device.region);
        let measured = self.gpu_proofs.measured.get(&stash);
        if asked.is_some_and(|asked| !asked.are_met_by(declared, measured)) {
            return Err(fault("TaskAuction", "RequirementsUnmet"));
        }
        if self.unlocked_stake(&stash) < self.lock {
            return Err(fault("TaskAuction", "NotBacked"));
        }
        let mut events = self.make_room(task, &stash)?;
        self.bids.insert((task, stash), record);
        events.push(task_event("TaskAuction", "BidPlaced", task));
        Ok(events)
    }

    /// Stake of a stash that no task has locked.
    pub(super) fn unlocked_stake(&self, stash: &AccountId32) -> Balance {
        let stake = self.stakes.get(stash);
        stake.map_or(0, |stake| stake.bonded.saturating_sub(stake.locked))
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
}

pub(super) fn fault(pallet: &str, name: &str) -> ChainError {
    dispatch_fault(Some(pallet), name)
}

fn dispatch_fault(pallet: Option<&str>, name: &str) -> ChainError {
    ChainError::Dispatch(DispatchFault {
        pallet: pallet.map(Into::into),
        name: name.into(),
        docs: String::new(),
    })
}

pub(super) fn task_event(pallet: &str, name: &str, task: TaskId) -> ChainEvent {
    event_about(pallet, name, ("task", &task))
}

/// A slash for a task begins.
pub(super) fn slash_event(task: TaskId) -> ChainEvent {
    event_about("TrustLock", "SlashDeferred", ("cause", &SlashCause::Task(task)))
}

fn event_about<T: Encode + Debug>(pallet: &str, name: &str, (field, value): (&str, &T)) -> ChainEvent {
    ChainEvent {
        pallet: pallet.into(),
        name: name.into(),
        extrinsic: Some(0),
        fields: vec![EventField {
            name: field.into(),
            text: format!("{value:?}"),
            bytes: value.encode(),
        }],
    }
}
