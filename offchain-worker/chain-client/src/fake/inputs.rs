//! Pieces of inputs, demanded and supplied.

use sp_core::crypto::AccountId32;
use surety_proofs::SegmentOpening;
use surety_types::{TaskId, task::MemberProgress, trust::InputDemand};

use super::state::{Applied, FakeState, fault, task_event};
use crate::BlockNumber;

/// Blocks in which a client has to supply what was demanded. The test keeps to it, or does not.
const INPUT_WINDOW: BlockNumber = 20;

impl FakeState {
    pub(super) fn demand_input(&mut self, who: &AccountId32, task: TaskId, segment: u32) -> Applied {
        let until = self.number.saturating_add(INPUT_WINDOW);
        let stash = self.stash_of(who)?;
        let member = self.member(&stash, task)?;
        if member.progress != MemberProgress::Working {
            return Err(fault("Results", "AlreadyCommitted"));
        }
        member.input_demands = member.input_demands.saturating_add(1);
        let demand = InputDemand {
            provider: member.provider.clone(),
            by: who.clone(),
            segment,
            price: 0,
            until,
        };
        let round = self.rounds.get_mut(&task);
        let round = round.filter(|round| round.input_demand.is_none());
        let round = round.ok_or_else(|| fault("Results", "AlreadyDemanded"))?;
        round.input_demand = Some(demand);
        Ok(vec![task_event("Results", "InputDemanded", task)])
    }

    pub(super) fn supply_input(&mut self, task: TaskId, opening: &SegmentOpening) -> Applied {
        let spec = self.tasks.get(&task).map(|task| &task.spec);
        let spec = spec.ok_or_else(|| fault("Results", "UnknownRound"))?;
        let is_piece = opening.row_digest(spec.input_bytes) == Some(spec.input);
        let round = self.rounds.get_mut(&task);
        let round = round.ok_or_else(|| fault("Results", "UnknownRound"))?;
        let Some(demand) = &round.input_demand else {
            return Err(fault("Results", "NotDemanded"));
        };
        if !is_piece || demand.segment != opening.segment {
            return Err(fault("Results", "WrongSegment"));
        }
        round.input_demand = None;
        Ok(vec![task_event("Results", "InputSupplied", task)])
    }
}
