//! The client of the tasks: what becomes of an input that a provider cannot fetch.

use std::collections::{BTreeMap, BTreeSet};

use surety_types::{
    TaskId,
    limits::INPUT_DEMANDS_MAX,
    task::{MemberProgress, RoundPhase},
    trust::InputDemand,
};
use surety_worker_core::{BlockNumber, RoundRecord};

use crate::chain::stash;

/// Blocks that a client has to show a piece.
pub const INPUT_WINDOW: BlockNumber = 60;

/// What clients do about their inputs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Client {
    /// Serves it, and shows whatever is demanded.
    #[default]
    Honest,
    /// Does neither.
    Withholds,
    /// Cannot be reached before it has seen a demand, and shown the piece.
    CutOff,
}

/// What came of inputs.
#[derive(Default)]
pub struct Inputs {
    pub client: Client,
    /// Tasks of which a piece was shown.
    pub shown: BTreeSet<TaskId>,
    /// Tasks that failed because none was.
    pub withheld: BTreeSet<TaskId>,
    /// Pieces that were demanded, in order.
    pub demanded: BTreeMap<TaskId, Vec<u32>>,
}

impl Inputs {
    /// Whether the input of a task can be fetched.
    pub fn is_served(&self, task: TaskId) -> bool {
        match self.client {
            Client::Honest => true,
            Client::Withholds => false,
            Client::CutOff => self.shown.contains(&task),
        }
    }

    /// Takes a demand, as the chain does. Says whether it did.
    pub fn demand(&mut self, task: TaskId, segment: u32, round: &mut RoundRecord, now: BlockNumber) -> bool {
        let RoundPhase::Committing { until } = round.phase else {
            return false;
        };
        let mut members = round.members.iter_mut();
        let Some(member) = members.find(|member| member.provider == stash()) else {
            return false;
        };
        let works = member.progress == MemberProgress::Working && now <= until;
        if !works || member.input_demands >= INPUT_DEMANDS_MAX || round.input_demand.is_some() {
            return false;
        }
        member.input_demands += 1;
        round.phase = RoundPhase::Committing {
            until: until + INPUT_WINDOW,
        };
        round.input_demand = Some(InputDemand {
            provider: stash(),
            by: stash(),
            segment,
            price: 1,
            until: now + INPUT_WINDOW,
        });
        self.demanded.entry(task).or_default().push(segment);
        true
    }

    /// One block passes for an open demand. Says whether the task fails by it.
    pub fn pass(&mut self, task: TaskId, round: &mut RoundRecord, now: BlockNumber) -> bool {
        let Some(demand) = &round.input_demand else {
            return false;
        };
        let has_committed = round.members[0].progress != MemberProgress::Working;
        // A client looks now and then.
        let answers = self.client != Client::Withholds && now + INPUT_WINDOW / 2 >= demand.until;
        if has_committed || answers {
            self.shown.insert(task);
            round.input_demand = None;
            return false;
        }
        let is_over = now > demand.until;
        if is_over {
            self.withheld.insert(task);
        }
        is_over
    }
}
