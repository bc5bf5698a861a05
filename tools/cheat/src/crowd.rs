//! Fresh keys that take every place they can get, so that there be none for anybody honest.

use std::{collections::BTreeSet, sync::Arc};

use surety_chain_client::{AccountId, Balance, Call, Chain, ChainError, Hash, Signer, Until};
use surety_types::{
    TaskId,
    limits::CHALLENGES_MAX,
    task::{RoundPhase, TaskState},
    trust::AuditProof,
};
use surety_worker_core::{Event, TaskSnapshot};

/// What each gets: a bond of five rewards, and fees.
const MONEY: Balance = 10_000_000_000_000;

/// What the crowd has tried of a task. Each once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Door {
    Bids,
    Audits,
    Challenges,
}

/// As many friends as a task takes challenges.
pub struct Crowd {
    chain: Arc<dyn Chain>,
    friends: Vec<Signer>,
    /// Doors of tasks at which it has been.
    been: BTreeSet<(TaskId, Door)>,
}

impl Crowd {
    /// A crowd with keys that nobody has seen before and no stake, and what it needs from who pays for it.
    pub fn new(chain: Arc<dyn Chain>, payer: &Signer) -> Self {
        let friends = (0..CHALLENGES_MAX).filter_map(|number| {
            let uri = format!("//crowd//{}//{number}", payer.account());
            Signer::from_uri(&uri).ok()
        });
        Self {
            chain,
            friends: friends.collect(),
            been: BTreeSet::new(),
        }
    }

    /// Pays them.
    pub fn pay(&self, payer: &Signer) {
        for friend in &self.friends {
            let to = friend.account().clone();
            self.send(
                payer,
                Call::Transfer { to, amount: MONEY },
                "paid, as --cheat demands",
            );
        }
    }

    /// Whether somebody is of the crowd.
    pub fn has(&self, account: &AccountId) -> bool {
        self.friends.iter().any(|friend| friend.account() == account)
    }

    /// Goes wherever a task of `stash` has a door open.
    pub fn see(&mut self, event: &Event, stash: &AccountId) {
        let (Event::Finalized { tasks, .. } | Event::Best { tasks, .. }) = event else {
            return;
        };
        for task in tasks {
            let Some(door) = open_door(task, stash) else {
                continue;
            };
            if !self.been.insert((task.id, door)) {
                continue;
            }
            for friend in &self.friends {
                self.send(friend, call(door, task.id, stash), "crowds, as --cheat demands");
            }
        }
    }

    fn send(&self, signer: &Signer, call: Call, what: &'static str) {
        let (chain, signer) = (self.chain.clone(), signer.clone());
        tokio::spawn(async move {
            let name = call.name().call;
            match chain.submit(&signer, call, Until::Included.into()).await {
                Ok(included) => tracing::error!(name, block = included.block.number, what),
                Err(ChainError::Dispatch(e)) => {
                    tracing::error!(name, error = %e, "refused by the chain: {what}")
                }
                Err(e) => tracing::error!(name, error = %e, "never got into a block: {what}"),
            }
        });
    }
}

fn call(door: Door, task: TaskId, provider: &AccountId) -> Call {
    let (seal, provider) = (Hash::repeat_byte(1), provider.clone());
    match door {
        Door::Bids => Call::Bid { task, seal },
        Door::Audits => Call::AnnounceAudit {
            task,
            provider,
            proof: AuditProof {
                pre_output: [1; 32],
                proof: [0; 64],
            },
            seal,
        },
        Door::Challenges => Call::Challenge { task, provider },
    }
}

/// Where there is something to take: among bidders, and where `stash` works, among its auditors and
/// challengers.
fn open_door(task: &TaskSnapshot, stash: &AccountId) -> Option<Door> {
    if matches!(task.task.state, TaskState::Bidding { .. }) {
        return Some(Door::Bids);
    }
    let round = task.round.as_ref()?;
    let member = round.members.iter().find(|member| member.provider == *stash)?;
    match round.phase {
        RoundPhase::Auditing { .. } if !round.awaits_seed() => Some(Door::Audits),
        RoundPhase::Challengeable { .. } if member.standing_claim().is_some() => Some(Door::Challenges),
        _ => None,
    }
}
