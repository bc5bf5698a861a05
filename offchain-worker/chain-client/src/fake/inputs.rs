//! Pieces of inputs, demanded and supplied.

use sp_core::crypto::AccountId32;
use surety_proofs::{SegmentOpening, segments};
use surety_types::{
    TaskId,
    limits::INPUT_DEMANDS_MAX,
    task::{MemberProgress, RoundPhase},
    trust::InputDemand,
};

use super::state::{Applied, FakeState, fault, task_event};
use crate::BlockNumber;

/// Time in which a client has to supply what was demanded. The test keeps to it, or does not.
const INPUT_WINDOW: BlockNumber = 300;

impl FakeState {
    pub(super) fn demand_input(&mut self, who: &AccountId32, task: TaskId, segment: u32) -> Applied {
        let (clock, stash) = (self.clock, self.provider_of(who)?);
        let until = clock.saturating_add(INPUT_WINDOW);
        let committing = self.round(task)?.phase.clone();
        if !matches!(committing, RoundPhase::Committing { until } if clock <= until) {
            return Err(fault("Results", "WrongPhase"));
        }
        let bytes = self.tasks.get(&task).map_or(0, |task| task.spec.input_bytes);
        let member = self.member(&stash, task)?;
        if member.progress != MemberProgress::Working {
            return Err(fault("Results", "AlreadyCommitted"));
        }
        if member.fault.is_some() {
            return Err(fault("Results", "AlreadyAtFault"));
        }
        if member.input_demands >= INPUT_DEMANDS_MAX {
            return Err(fault("Results", "TooManyDemands"));
        }
        member.input_demands = member.input_demands.saturating_add(1);
        let demand = InputDemand {
            provider: member.provider.clone(),
            by: who.clone(),
            segment,
            price: 0,
            until,
        };
        let round = self.round_mut(task)?;
        if round.input_demand.is_some() {
            return Err(fault("Results", "AlreadyDemanded"));
        }
        let committed = round
            .members
            .iter()
            .filter(|member| member.progress != MemberProgress::Working);
        if committed.count() > round.members.len() / 2 {
            return Err(fault("Results", "EnoughCommitted"));
        }
        if segment >= segments(bytes) {
            return Err(fault("Results", "NoSuchSegment"));
        }
        // Whoever waits for it has as much time left afterwards.
        if let RoundPhase::Committing { until } = &mut round.phase {
            *until = until.saturating_add(INPUT_WINDOW);
        }
        round.input_demand = Some(demand);
        Ok(vec![task_event("Results", "InputDemanded", task)])
    }

    pub(super) fn supply_input(&mut self, task: TaskId, opening: &SegmentOpening) -> Applied {
        let spec = self.tasks.get(&task).map(|task| &task.spec);
        let spec = spec.ok_or_else(|| fault("Results", "UnknownRound"))?;
        let is_piece = opening.row_digest(spec.input_bytes) == Some(spec.input);
        let clock = self.clock;
        let round = self.round_mut(task)?;
        let Some(demand) = &round.input_demand else {
            return Err(fault("Results", "NotDemanded"));
        };
        if clock > demand.until {
            return Err(fault("Results", "WrongPhase"));
        }
        if !is_piece || demand.segment != opening.segment {
            return Err(fault("Results", "WrongSegment"));
        }
        round.input_demand = None;
        Ok(vec![task_event("Results", "InputSupplied", task)])
    }
}
