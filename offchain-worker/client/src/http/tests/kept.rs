//! Inputs that are kept: for whom, for how long, and over restarts.

use super::*;

#[tokio::test]
async fn what_is_demanded_of_an_input_is_shown_also_after_a_restart() {
    let world = World::new().await;
    let input = [7; 1_500];
    world.upload(&input).await;
    world.task(content_hash(&input), running());
    let demand = surety_types::trust::InputDemand {
        provider: provider(),
        by: provider(),
        segment: 1,
        price: 1,
        until: 99,
    };
    world.chain.change(|state| {
        let round = RoundRecord {
            members: vec![RoundMember::new(provider(), 0, 0)].try_into().unwrap(),
            input_demand: Some(demand),
            ..RoundRecord::new(1, 9)
        };
        state.rounds.insert(TASK, round);
    });
    world.chain.finalize();
    // Another process goes on with what lies on the disk.
    let kept = Kept::open(world.home.path().join("kept"), &*world.backend.plane);
    let backend = Backend {
        kept: Arc::new(kept.await.unwrap()),
        ..world.backend.clone()
    };
    let mut upkeep = Upkeep::new(backend, Signer::from_uri("//Helper").ok());
    let is_open = || {
        world
            .chain
            .change(|state| state.rounds[&TASK].input_demand.is_some())
    };
    while is_open() {
        upkeep.look().await.unwrap();
        tokio::task::yield_now().await;
    }
    assert_eq!(world.chain.calls().len(), 1);
}

#[tokio::test]
async fn an_input_that_comes_after_its_task_is_looked_after_too() {
    let world = World::new().await;
    world.task(content_hash(b"late"), running());
    let mut upkeep = Upkeep::new(world.backend.clone(), None);
    upkeep.look().await.unwrap();
    world.upload(b"late").await;
    upkeep.look().await.unwrap();
    world.net.fill(&endpoint("server"));
    assert!(world.has(b"late"));
}

#[tokio::test]
async fn what_no_open_task_asks_for_makes_room() {
    let world = World::new().await;
    world.upload(b"used").await;
    world.upload(b"unused").await;
    world.task(content_hash(b"used"), running());
    // Whether or not there is a key for what is demanded.
    let mut upkeep = Upkeep::new(world.backend.clone(), None);
    upkeep.look().await.unwrap();
    world.net.fill(&endpoint("server"));
    assert!(world.has(b"used") && !world.has(b"unused"));

    world.task(content_hash(b"used"), settled());
    upkeep.look().await.unwrap();
    world.net.fill(&endpoint("server"));
    assert!(!world.has(b"used"));
}

#[tokio::test]
async fn an_input_of_a_task_that_cannot_be_read_is_kept_until_it_can() {
    let world = World::new().await;
    world.upload(b"used").await;
    world.task(content_hash(b"used"), running());
    let unreadable = |is_so| {
        world.chain.change(|state| match is_so {
            true => state.unreadable_tasks.insert(TASK),
            false => state.unreadable_tasks.remove(&TASK),
        })
    };
    unreadable(true);
    let mut upkeep = Upkeep::new(world.backend.clone(), Signer::from_uri("//Helper").ok());
    upkeep.look().await.unwrap();
    world.net.fill(&endpoint("server"));
    assert!(world.has(b"used"));
    unreadable(false);
    world.task(content_hash(b"used"), settled());
    upkeep.look().await.unwrap();
    world.net.fill(&endpoint("server"));
    assert!(!world.has(b"used"));
}

/// Whether the server serves a blob to whoever posted the task.
async fn serves(world: &World, to: &str, blob: &[u8]) -> bool {
    let reader = world.net.join(endpoint("reader"));
    let (signer, genesis) = (Signer::from_uri(to).unwrap(), world.chain.info().genesis);
    let ticket = surety_access::ticket(&signer, &genesis, &reader.peer_id(), TASK, None).unwrap();
    let (server, options) = ([endpoint("server")], FetchOptions::default().showing(ticket));
    let fetched = reader.fetch(content_hash(blob), &server, &options);
    fetched.await.is_ok()
}

#[tokio::test]
async fn an_input_is_for_tasks_of_who_gave_it() {
    let world = World::new().await;
    world.upload(b"an input").await;
    world.task(content_hash(b"an input"), running());
    assert!(serves(&world, "//Client", b"an input").await);
    // Who knows its hash posts a task with it.
    let copier = Signer::from_uri("//Copier").unwrap().account().clone();
    world
        .chain
        .change(|all| all.tasks.get_mut(&TASK).unwrap().client = copier);
    assert!(!serves(&world, "//Copier", b"an input").await);
    let mut upkeep = Upkeep::new(world.backend.clone(), Signer::from_uri("//Helper").ok());
    upkeep.look().await.unwrap();
    world.net.fill(&endpoint("server"));
    assert!(!world.has(b"an input"), "the task of another has no use of it");
}

#[tokio::test]
async fn an_output_that_was_fetched_for_a_page_is_no_input() {
    let world = World::new().await;
    world.task(ContentHash::zero(), settled());
    world.serves_output().await;
    let path = format!("/v1/tasks/{TASK}/output");
    let (status, _) = world.post(&path, &signed(&world, "//Client").await).await;
    assert_eq!(status, StatusCode::OK);
    assert!(world.has(&output()));
    world.task(content_hash(&output()), running());
    assert!(!serves(&world, "//Client", &output()).await);
}

#[tokio::test]
async fn an_input_that_cannot_be_listed_for_the_next_start_is_not_kept() {
    let world = World::new().await;
    let nowhere = world.home.path().join("nowhere").join("kept");
    let kept = Kept::open(nowhere, &*world.backend.plane).await.unwrap();
    let backend = Backend {
        kept: Arc::new(kept),
        ..world.backend.clone()
    };
    for _ in 0..2 {
        let routes = router(backend.clone(), &[PAGE.into()]).unwrap();
        let sent = request(&blobs(), "application/octet-stream", "an input");
        let answer = routes.oneshot(sent).await.unwrap();
        assert_eq!(answer.status(), StatusCode::INSUFFICIENT_STORAGE);
    }
    world.net.fill(&endpoint("server"));
    assert!(!world.has(b"an input"));
}
