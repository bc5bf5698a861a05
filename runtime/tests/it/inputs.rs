//! Inputs that providers cannot get, from the demand to money that moved.

use frame_support::traits::Get;
use surety_pallet_results::{Call, Rounds};
use surety_proofs::{SegmentOpening, content_hash};
use surety_runtime::{Balance, Runtime, RuntimeCall, params::dynamic::results};
use surety_types::{
    TaskId,
    task::{FailureReason, TaskSpec, TaskState},
};

use crate::{
    chain::{Chain, account},
    market::*,
};

const CLIENT_LOCK: Balance = CAP / 4;

fn input() -> Vec<u8> {
    (0..2_000u32).map(|at| at as u8).collect()
}

/// A task for three with a real input, and who was drawn for it.
fn started(chain: &mut Chain) -> (TaskId, Vec<Provider>) {
    let task = chain.query(surety_pallet_task_auction::NextTaskId::<Runtime>::get);
    let spec = TaskSpec {
        input: content_hash(&input()),
        ..spec(3)
    };
    chain.call(CLIENT, surety_pallet_task_auction::Call::post { spec, cap: CAP });
    auction(chain, task, &PROVIDERS);
    let members = members(chain, task);
    (task, members)
}

fn demand(task: TaskId) -> RuntimeCall {
    Call::demand_input { task, segment: 1 }.into()
}

#[test]
fn a_client_that_withholds_its_input_has_its_cap_back_and_loses_its_lock() {
    let mut chain = open();
    let (task, members) = started(&mut chain);
    let accounts: Vec<_> = members.iter().map(Provider::account).collect();
    let before: Vec<_> = accounts.iter().map(|who| chain.free(who)).collect();
    let client = chain.free(&account(CLIENT));
    chain.call(members[0].agent, demand(task));
    wait_for_end(&mut chain, task);
    assert!(matches!(
        chain.query(|| state(task)),
        TaskState::Failed {
            reason: FailureReason::InputWithheld,
            ..
        }
    ));
    assert_eq!(chain.free(&account(CLIENT)), client + CAP);
    for (who, before) in accounts.iter().zip(before) {
        assert_eq!(chain.free(who), before + CLIENT_LOCK / 2 / 3);
    }
    assert_cleared(&mut chain, task);
}

#[test]
fn a_client_that_shows_the_piece_is_paid_less_than_that_costs_and_gets_its_result() {
    let mut chain = open();
    let (task, members) = started(&mut chain);
    let client = chain.free(&account(CLIENT));
    chain.call(members[0].agent, demand(task));
    let opening = SegmentOpening::new(&input(), 1).unwrap();
    // Anybody may: here one that has fetched it.
    chain.call(members[1].agent, Call::supply_input { task, opening });
    // The second piece of 2,000 bytes, where the price is for 1,024.
    let price = chain.query(results::SupplyPrice::get) * 976 / 1_024;
    assert_eq!(chain.free(&account(CLIENT)), client + price);
    assert!(chain.query(|| Rounds::<Runtime>::get(task).unwrap().input_demand.is_none()));

    let of_all = |calls: &dyn Fn(&Provider) -> (_, RuntimeCall)| members.iter().map(calls).collect();
    all_ok(chain.block(of_all(&|member| member.commits(task, &right()))));
    wait_for_reveals(&mut chain, task);
    all_ok(chain.block(of_all(&|member| member.reveals(task, &right()))));
    wait_for_end(&mut chain, task);
    assert!(matches!(chain.query(|| state(task)), TaskState::Settled { .. }));
    assert_cleared(&mut chain, task);
}
