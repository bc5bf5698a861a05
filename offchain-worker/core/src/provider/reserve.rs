//! What stays free so that whatever is demanded of us on the chain can be shown.
//!
//! Whoever shows a part pays its fee first, and is paid a part of that once it is shown. Who has no money for
//! the fees cannot show anything, and is convicted of withholding what it has. What is kept for what is sold
//! over channels is not among what is free here ([`Event::Money`](crate::Event::Money)).

use surety_proofs::{PARTS_MAX, parts};
use surety_types::{limits::DEMAND_PARTS_MAX, model::Operation, task::TaskState};

use crate::{AccountId, Balance, RoundRecord, TaskRecord, provider_task::member};

/// Fee of a call that shows one part of 8 KiB, in plancks: 9 mSURE, most of it for its length, and a tenth
/// more for fuller blocks. The chain tells no fee of a call before there is one.
pub const SUPPLY_FEE: Balance = 10_000_000_000;

/// Fees for all that the largest demand there can be names, in plancks.
pub const LARGEST_DEMAND: Balance = SUPPLY_FEE * DEMAND_PARTS_MAX as Balance;

/// Fees for all that one demand can name of a task's contents, in plancks.
pub fn demand_cost(task: &TaskRecord) -> Balance {
    let (spec, audits) = (&task.spec, &task.audits);
    let named = match spec.operation {
        // Prompt and answer together: none that are longer are taken.
        Operation::Generate => PARTS_MAX,
        // How long a row of its output is nothing says.
        Operation::Embed if audits.item_parts == 0 => DEMAND_PARTS_MAX,
        Operation::Embed => {
            let items = spec.units_max.min(audits.items_max());
            parts(spec.input_bytes).saturating_add(audits.demand_parts(items))
        }
    };
    SUPPLY_FEE.saturating_mul(named.min(DEMAND_PARTS_MAX).into())
}

/// What a provider keeps for a task as the chain shows it, in plancks: [`demand_cost`] where it is in the
/// round, or may come to be by its bid.
pub fn demand_reserve(
    task: &TaskRecord,
    round: Option<&RoundRecord>,
    has_bid: bool,
    stash: &AccountId,
) -> Balance {
    let may_be_demanded = match (&task.state, round) {
        (TaskState::Running { .. }, Some(round)) => {
            member(round, stash).is_some_and(|ours| ours.fault.is_none())
        }
        (TaskState::Bidding { .. } | TaskState::Revealing { .. } | TaskState::Drawing { .. }, _) => has_bid,
        _ => false,
    };
    match may_be_demanded {
        true => demand_cost(task),
        false => 0,
    }
}
