//! Outputs that nobody serves.

use super::*;

/// Somebody who has posted [`TASK`], and nobody serves its output.
async fn starved(world: &World, output: &Bytes) -> Demander {
    let signer = Signer::from_uri("//Alice").unwrap();
    world.chain.change(|state| {
        state.tasks.get_mut(&TASK).unwrap().client = signer.account().clone();
        let now = state.clock;
        let round = state.rounds.get_mut(&TASK).unwrap();
        round.members[0].progress = MemberProgress::Revealed(claim(output));
        let verdict = Verdict::Agreed {
            claim: claim(output),
            majority: vec![account(0)].try_into().unwrap(),
            minority: Default::default(),
            absent: Default::default(),
        };
        let until = now + 20;
        round.phase = RoundPhase::Challengeable { until, verdict };
    });
    world.chain.finalize();
    Demander::new(signer)
}

/// The client looks, and waits until what it sends is in a block.
async fn looks(world: &World, demander: &mut Demander) -> usize {
    let chain: Arc<dyn Chain> = Arc::new(world.chain.clone());
    let info = chain.task(When::Best, TASK).await.unwrap().unwrap();
    let wanted = wanted(&info);
    demander.see(&chain, TASK, &info, &wanted).await.unwrap();
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    world.chain.calls().len()
}

#[tokio::test]
async fn an_output_that_nobody_serves_is_demanded_when_half_of_the_time_is_over_and_read_from_the_chain() {
    let world = World::new();
    let right = output(1.0);
    let mut demander = starved(&world, &right).await;
    for _ in 0..3 {
        assert_eq!(looks(&world, &mut demander).await, 0);
        demander.note_failure();
    }
    assert_eq!(looks(&world, &mut demander).await, 0, "too early");
    for _ in 0..10 {
        world.chain.finalize();
    }
    assert_eq!(looks(&world, &mut demander).await, 1);
    // Its block may still be replaced: nothing else is demanded instead of it.
    assert!(demander.is_sending());
    while demander.is_sending() {
        world.chain.finalize();
        tokio::task::yield_now().await;
    }
    // It waits for what it has demanded.
    assert_eq!(looks(&world, &mut demander).await, 1);
    let (_, call) = world.chain.calls().pop().unwrap();
    let surety_chain_client::Call::Demand {
        provider,
        parts,
        proof,
        ..
    } = call
    else {
        panic!("{call:?}");
    };
    assert_eq!((provider, parts.len(), proof), (account(0), 128, None));
    world.chain.change(|state| {
        state.shown.insert((TASK, content_hash(&right)), right.to_vec());
    });
    world.chain.finalize();
    let info = world.chain.task(When::Best, TASK).await.unwrap().unwrap();
    let found = deliver::fetch(
        &world.chain,
        &*world.client,
        world.dir.path(),
        TASK,
        &wanted(&info),
        None,
    )
    .await;
    assert_eq!(found.unwrap().bytes, right);
}

#[tokio::test]
async fn nobody_but_the_client_demands() {
    let world = World::new();
    let mut demander = starved(&world, &output(1.0)).await;
    world
        .chain
        .change(|state| state.tasks.get_mut(&TASK).unwrap().client = account(9));
    world.chain.finalize();
    for _ in 0..15 {
        demander.note_failure();
        assert_eq!(looks(&world, &mut demander).await, 0);
        world.chain.finalize();
    }
}
