//! A provider on the chain's list: what keeps it off keeps it from nothing that it owes.

use surety_chain_client::{Call, Chain, Refusal, Until};
use surety_types::task::MemberProgress;

use super::{commits, world::World};

fn count(world: &World, counts: impl Fn(&Call) -> bool) -> usize {
    let calls = world.chain.calls();
    calls.iter().filter(|(_, call)| counts(call)).count()
}

fn is_register(call: &Call) -> bool {
    matches!(call, Call::RegisterProvider { .. })
}

fn is_sign_of_life(call: &Call) -> bool {
    is_register(call) || *call == Call::Heartbeat
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_cannot_pay_for_its_registration_opens_what_it_has_promised() {
    let world = World::new().await;
    let host = world.start();
    let task = world.post(b"one\n").await;
    world.bid_and_assign(task).await;
    world.until(|| !commits(&world).is_empty()).await;
    world.chain.finalize();
    host.kill().await;

    // It comes back as another machine, without money for fees.
    let stash = world.stash().clone();
    world.chain.change(|state| {
        let record = state.providers.get_mut(&stash).unwrap();
        record.device.cores += 1;
    });
    world.chain.refuse_next(is_sign_of_life, Refusal::Payment, 2);
    world.chain.open_reveals(task, 99);
    world.chain.finalize();
    let host = world.start();
    world.chain.finalize();
    world.until_revealed(task).await;
    let members = world.chain.change(|state| state.rounds[&task].members.clone());
    assert!(matches!(members[0].progress, MemberProgress::Revealed(_)));
    // When there is money, it is registered.
    world.until_final(|| count(&world, is_register) == 1).await;
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_registration_that_got_lost_is_sent_again() {
    let world = World::new().await;
    let stash = world.stash().clone();
    world.chain.change(|state| state.providers.remove(&stash));
    world.chain.finalize();
    world.chain.refuse_next(is_sign_of_life, Refusal::PoolFull, 1);
    let host = world.start();
    world.until_final(|| count(&world, is_register) == 1).await;
    host.stop().await;
    // A sign of life of nobody would cost a fee and come to nothing.
    assert_eq!(count(&world, |call| *call == Call::Heartbeat), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_was_taken_off_the_list_stays_off_and_bids_for_nothing() {
    let world = World::new().await;
    let host = world.start_beating(1);
    world.pass(3).await;
    world.until(|| count(&world, is_sign_of_life) > 0).await;
    let leave = Call::DeregisterProvider;
    let agent = world.tools().signer;
    world
        .chain
        .submit(&agent, leave, Until::Included.into())
        .await
        .unwrap();
    world.pass(1).await;
    let after = world.chain.calls().len();
    world.post(b"one\n").await;
    world.pass(20).await;
    host.stop().await;
    let said = world.chain.calls().into_iter().skip(after);
    let said = said.filter(|(_, call)| is_sign_of_life(call) || matches!(call, Call::Bid { .. }));
    assert_eq!(said.count(), 0);
}
