//! Models that their owners retire.

use frame_support::traits::fungible::InspectHold;
use surety_pallet_model_registry::{Call as Registry, Error, HoldReason, Models, Uses};
use surety_runtime::{Balances, Runtime};
use surety_types::task::TaskState;

use crate::{
    chain::{Chain, account},
    disputes::{STRANGER, World, commit_all, play_out, reveal_all, verdict_of},
    market::{self, CLIENT, PROVIDERS, auction, members},
};

#[test]
fn a_task_that_was_posted_before_its_model_was_retired_is_assigned_and_its_disputes_are_judged() {
    let world = World::new();
    let mut chain = world.chain();
    let model = world.manifest.id();
    let retire = || Registry::retire { model };
    let task = world.post(&mut chain, 3).unwrap();
    chain.call(CLIENT, retire());
    assert_eq!(
        world.post(&mut chain, 3),
        Err(Error::<Runtime>::TakesNoTasks.into())
    );
    assert_eq!(
        chain.try_call(CLIENT, retire()),
        Err(Error::<Runtime>::AlreadyRetired.into())
    );
    market::heartbeats(&mut chain);
    auction(&mut chain, task, &PROVIDERS);
    let members = members(&mut chain, task);
    let (liar, lie) = world.liar(1, 1);
    let results = [
        (members[0], lie.clone()),
        (members[1], lie),
        (members[2], world.claim.clone()),
    ];
    commit_all(&mut chain, task, &results);
    reveal_all(&mut chain, task, &results);
    // Two who lie together lose to one who does not.
    let mut players = [
        (members[0].account(), liar.clone()),
        (members[1].account(), liar),
        (members[2].account(), world.honest()),
    ];
    play_out(&mut chain, &world, &mut players);
    let held = |chain: &mut Chain| {
        let reason = HoldReason::ModelDeposit.into();
        chain.query(|| Balances::balance_on_hold(&reason, &account(CLIENT)))
    };
    let before = held(&mut chain);
    let ended = verdict_of(&mut chain, task);
    let TaskState::Settled { claim, payments, .. } = ended else {
        panic!("{ended:?}")
    };
    assert_eq!((claim, payments.len()), (world.claim.clone(), 1));
    // It goes with the task, and somebody else may register it.
    assert!(chain.query(|| !Models::<Runtime>::contains_key(model) && !Uses::<Runtime>::contains_key(model)));
    assert!(held(&mut chain) < before);
    let manifest = Box::new(world.manifest.clone());
    chain.call(STRANGER, Registry::register { manifest });
}
