//! Generations: streamed to their client while they are made, refused with a reason, and taken up again.

use surety_chain_client::{Chain, When};
use surety_engine::generation::Generation;
use surety_network::{DataPlane, FetchOptions, PeerError, StreamEnd, StreamPage};
use surety_types::{
    TaskId,
    input::{Settings, encode_prompt},
    model::Operation,
    task::{MemberProgress, TaskState},
};

use super::{commits, engine::BOUNDS, world::World};

/// Tokens 4, 5 and 6, and so many more.
pub fn request(max_tokens: u32) -> Vec<u8> {
    let settings = Settings {
        max_tokens,
        temperature_milli: 0,
        top_k: 0,
        top_p_milli: 1000,
        seed: 0,
    };
    encode_prompt(&[4, 5, 6], &settings, &BOUNDS).unwrap()
}

/// Posts a generation and gives it to the provider.
async fn post(world: &World, input: &[u8]) -> TaskId {
    let task = world.post_for(Operation::Generate, input).await;
    world.bid_and_assign(task).await;
    task
}

/// Reads as a client does: again and again until there is something.
async fn read(world: &World, task: TaskId, from: u32) -> StreamPage {
    for _ in 0..200 {
        match world
            .client_plane()
            .read_stream(task, &world.provider_endpoint(), from)
            .await
        {
            Ok(page) if !page.tokens.is_empty() || page.end.is_some() => return page,
            Ok(_) => {}
            Err(_) => tokio::time::sleep(std::time::Duration::from_millis(10)).await,
        }
    }
    panic!("nothing is streamed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_generation_reaches_its_client_before_it_is_committed_and_nobody_else() {
    let world = World::new().await;
    let host = world.start();
    let task = post(&world, &request(4)).await;
    world.let_tokens(1);
    let first = read(&world, task, 0).await;
    assert_eq!((first.tokens, first.end), (vec![4], None));
    assert!(commits(&world).is_empty(), "the rest is still to be computed");
    let rival = world.rival_plane();
    let read_by_rival = rival.read_stream(task, &world.provider_endpoint(), 0).await;
    assert_eq!(read_by_rival, Err(PeerError::NotFound));

    world.let_tokens(3);
    world.until(|| !commits(&world).is_empty()).await;
    let all = read(&world, task, 0).await;
    assert_eq!(
        (&all.tokens[..], &all.end),
        (&[4, 5, 6, 4][..], &Some(StreamEnd::Complete))
    );
    let found = world.until_audited(task).await;
    let at = [world.provider_endpoint()];
    let output = world
        .client_plane()
        .fetch(found, &at, &FetchOptions::default())
        .await
        .unwrap();
    assert_eq!(Generation::decode(&output).unwrap().tokens, all.tokens);

    world.chain.open_reveals(task, 99);
    world.chain.finalize();
    world.until_revealed(task).await;
    world.chain.finalize();
    world.chain.settle(task);
    world.chain.finalize();
    let info = world.chain.task(When::Finalized, task).await.unwrap().unwrap();
    let TaskState::Settled { claim, .. } = info.task.state else {
        panic!("not settled: {:?}", info.task.state);
    };
    assert_eq!((claim.output, claim.units), (found, 7));
    world.until_final(|| world.is_finished(task)).await;
    host.stop().await;
    let over = world.client_plane().read_stream(task, &at[0], 0).await;
    assert_eq!(
        over,
        Err(PeerError::NotFound),
        "memory is not kept for what is over"
    );
}

/// What the client is told of a task that cannot be computed.
async fn refused(input: &[u8]) -> String {
    let world = World::new().await;
    let host = world.start();
    let task = post(&world, input).await;
    let page = read(&world, task, 0).await;
    world.pass(5).await;
    host.stop().await;
    assert!(commits(&world).is_empty());
    assert_eq!(world.engine_runs(), 1, "tried once, and never again");
    let info = world.chain.task(When::Finalized, task).await.unwrap().unwrap();
    assert_eq!(info.round.unwrap().members[0].progress, MemberProgress::Working);
    match page.end {
        Some(StreamEnd::Failed { reason }) => reason,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_an_input_is_said_to_its_client() {
    let said = refused(b"seven bytes and more").await;
    assert!(said.contains("the input is too short"), "{said}");
    let said = refused(&[0; 30]).await;
    assert!(said.contains("no whole number of words"), "{said}");
    let said = refused(&[0; 4 * (6 + 8)]).await;
    assert!(said.contains("nothing could be added to the prompt"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_killed_in_the_middle_starts_over_and_commits_once() {
    let world = World::new().await;
    let host = world.start();
    let task = post(&world, &request(4)).await;
    world.let_tokens(2);
    while read(&world, task, 0).await.tokens.len() < 2 {}
    host.kill().await;
    let page = read(&world, task, 2).await;
    assert_eq!(page.end, Some(StreamEnd::Stopped));
    // Otherwise the job that was stopped might take what the next one waits for.
    world.until(|| world.is_engine_idle()).await;

    let host = world.start();
    world.chain.finalize();
    world.let_tokens(4);
    world.until(|| !commits(&world).is_empty()).await;
    let again = read(&world, task, 0).await;
    assert_eq!(
        (again.tokens, again.end),
        (vec![4, 5, 6, 4], Some(StreamEnd::Complete))
    );
    host.stop().await;
    assert_eq!(commits(&world).len(), 1);
}
