//! A verifier beside a provider.

use surety_chain_client::Call;
use surety_network::{Announcement, Bytes, DataPlane, FetchOptions, Readers};
use surety_types::{
    ContentHash, TaskId,
    model::Operation,
    task::{FailureReason, MemberProgress, ResultClaim, RoundPhase, Verdict},
    trust::AuditAnswer,
};

use super::{
    generation::request,
    world::{Running, World},
};

/// Audits that were announced.
pub fn announced(world: &World) -> usize {
    let calls = world.chain.calls().into_iter().map(|(_, call)| call);
    calls
        .filter(|call| matches!(call, Call::AnnounceAudit { .. }))
        .count()
}

/// Ends the reveal: the verdict can be challenged, and leaves demanded for so many blocks.
pub fn conclude(world: &World, task: TaskId, demands: u32) {
    world.chain.change(|state| {
        let now = state.number;
        let round = state.rounds.get_mut(&task).unwrap();
        let verdict = Verdict::Failed(FailureReason::NoAgreement);
        round.phase = RoundPhase::Challengeable {
            until: now + 5_000,
            verdict,
        };
        round.demands_until = Some(now + demands);
        round.openings_until = Some(now + 5_000);
        // Ten items and the output have a leaf each.
        state.trace_leaves.insert(task, 11);
    });
    world.chain.finalize();
}

fn claims_revealed(world: &World) -> Vec<ResultClaim> {
    let calls = world.chain.calls().into_iter();
    calls
        .filter_map(|(_, call)| match call {
            Call::RevealAudit { claim, .. } => Some(claim),
            _ => None,
        })
        .collect()
}

/// Items that were opened, and how.
pub fn items_revealed(world: &World) -> Vec<(usize, AuditAnswer)> {
    let calls = world.chain.calls().into_iter();
    calls
        .filter_map(|(_, call)| match call {
            Call::RevealItems { found, answer, .. } => Some((found.len(), answer)),
            _ => None,
        })
        .collect()
}

/// A task of which the audit window is open, its provider still at work.
async fn committed(world: &World) -> (Running, TaskId) {
    committed_to(world, b"one\ntwo\n", u32::MAX).await
}

/// The same, each auditor with so many items.
pub async fn committed_to(world: &World, input: &[u8], items: u32) -> (Running, TaskId) {
    let provider = world.start();
    let task = world.post(input).await;
    world.bid_and_assign(task).await;
    world.chain.change(|state| {
        state.rounds.get_mut(&task).unwrap().members[0].audits.items = items;
    });
    world.until_audited(task).await;
    (provider, task)
}

pub async fn until_revealed(world: &World, task: TaskId) {
    world.chain.open_reveals(task, 999);
    world.chain.finalize();
    world.until_revealed(task).await;
}

pub async fn until_audit_revealed(world: &World, task: TaskId) {
    until_revealed(world, task).await;
    world
        .until_final(|| !claims_revealed(world).is_empty() || !items_revealed(world).is_empty())
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_is_computed_again_sealed_and_opened() {
    let world = World::new().await;
    let (provider, task) = committed(&world).await;
    let verifier = world.start_verifier();
    world.until(|| announced(&world) == 1).await;
    until_audit_revealed(&world, task).await;
    let claims = claims_revealed(&world);
    let output = world.output(task).await;
    assert_eq!((claims.len(), claims[0].output, claims[0].units), (1, output, 2));
    verifier.stop().await;
    provider.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_auditor_reads_an_input_whose_client_is_gone_from_who_has_committed() {
    let world = World::new().await;
    let (provider, task) = committed(&world).await;
    world.net.set_down(&world.client_endpoint(), true);
    let verifier = world.start_verifier();
    world.until(|| announced(&world) == 1).await;
    until_audit_revealed(&world, task).await;
    assert_eq!(claims_revealed(&world)[0].output, world.output(task).await);
    verifier.stop().await;
    provider.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_verifier_that_was_killed_opens_the_seal_that_it_had_made() {
    let world = World::new().await;
    let (provider, task) = committed(&world).await;
    let verifier = world.start_verifier();
    world.until(|| announced(&world) == 1).await;
    verifier.kill().await;
    let verifier = world.start_verifier();
    until_audit_revealed(&world, task).await;
    assert_eq!((announced(&world), claims_revealed(&world).len()), (1, 1));
    verifier.stop().await;
    provider.stop().await;
}

/// A task of ten items, of which a verifier has announced an audit of three; and how often the engine ran.
pub async fn announced_items(world: &World) -> (Running, Running, TaskId, usize) {
    let (provider, task) = committed_to(world, b"1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n", 3).await;
    let runs = world.engine_runs();
    let verifier = world.start_verifier();
    world.until(|| announced(world) == 1).await;
    (provider, verifier, task, runs)
}

#[tokio::test(flavor = "multi_thread")]
async fn items_are_computed_alone_and_compared_with_what_the_provider_shows_once_it_has_revealed() {
    let world = World::new().await;
    let (provider, verifier, task, runs) = announced_items(&world).await;
    until_audit_revealed(&world, task).await;
    let opened = items_revealed(&world);
    assert_eq!((opened.len(), opened[0].0, opened[0].1.agrees), (1, 3, true));
    assert_eq!((claims_revealed(&world).len(), world.engine_runs()), (0, runs));
    verifier.stop().await;
    provider.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn all_is_computed_where_nothing_is_served_and_the_time_for_demands_was_missed() {
    let world = World::new().await;
    let (provider, verifier, task, runs) = announced_items(&world).await;
    world.net.set_down(&world.provider_endpoint(), true);
    until_revealed(&world, task).await;
    conclude(&world, task, 0);
    world.until_final(|| !items_revealed(&world).is_empty()).await;
    let opened = items_revealed(&world);
    assert_eq!((opened[0].0, opened[0].1.agrees), (3, true));
    assert!(world.engine_runs() > runs);
    verifier.stop().await;
    provider.stop().await;
}

/// Has the provider announce another blob for its trace's leaves, which anybody may read.
async fn announce_leaves(world: &World, task: TaskId, leaves: Vec<u8>) -> ContentHash {
    let (plane, output) = (world.provider_plane(), world.output(task).await);
    let hash = plane.publish(Bytes::from(leaves)).await.unwrap();
    let announcement = Announcement::new(output).traced(Some(hash));
    let told = plane.announce_output(task, announcement, Readers::Everyone);
    told.await.unwrap();
    plane.grant(task, hash, Readers::Everyone).await.unwrap();
    hash
}

#[tokio::test(flavor = "multi_thread")]
async fn no_more_is_fetched_of_leaves_than_the_task_has() {
    let world = World::new().await;
    let (provider, verifier, task, runs) = announced_items(&world).await;
    // Ten items and the output have a leaf each.
    let long = announce_leaves(&world, task, vec![7; 32 * 12]).await;
    until_revealed(&world, task).await;
    conclude(&world, task, 0);
    world.until_final(|| !items_revealed(&world).is_empty()).await;
    let opened = items_revealed(&world);
    assert_eq!((opened[0].0, opened[0].1.agrees), (3, true));
    assert!(world.engine_runs() > runs, "as where nothing is served");
    let (plane, options) = (world.auditor_plane(), FetchOptions::default());
    let kept = plane.fetch(long, &[], &options).await;
    assert!(kept.is_err(), "it was fetched");
    verifier.stop().await;
    provider.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn verifier_and_provider_that_were_killed_open_and_show_what_they_had_made() {
    let world = World::new().await;
    let (provider, verifier, task, runs) = announced_items(&world).await;
    verifier.kill().await;
    provider.kill().await;
    let provider = world.start();
    let verifier = world.start_verifier();
    until_audit_revealed(&world, task).await;
    let opened = items_revealed(&world);
    assert_eq!(
        (announced(&world), opened.len(), opened[0].1.agrees),
        (1, 1, true)
    );
    assert_eq!(world.engine_runs(), runs, "what was shown was kept");
    verifier.stop().await;
    provider.stop().await;
}

/// Has the provider reveal another output than it has made.
fn reveal_another(world: &World, task: TaskId) {
    world.chain.open_reveals(task, 999);
    world.chain.change(|state| {
        let claim = ResultClaim {
            output: ContentHash::repeat_byte(9),
            trace_root: ContentHash::repeat_byte(8),
            units: 4,
        };
        let round = state.rounds.get_mut(&task).unwrap();
        round.members[0].progress = MemberProgress::Revealed(claim);
    });
    world.chain.finalize();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_reveals_another_output_than_it_served_is_reported_also_after_a_restart() {
    let world = World::new().await;
    world.let_tokens(1_000);
    let provider = world.start();
    let task = world.post_for(Operation::Generate, &request(3)).await;
    world.bid_and_assign(task).await;
    let output = world.until_audited(task).await;
    let verifier = world.start_verifier();
    world.until(|| announced(&world) == 1).await;
    verifier.stop().await;
    provider.stop().await;

    let verifier = world.start_verifier();
    reveal_another(&world, task);
    let reported = || {
        let calls = world.chain.calls().into_iter();
        calls
            .filter_map(|(_, call)| match call {
                Call::ReportEquivocation { statement, other } => Some((statement, other)),
                _ => None,
            })
            .next()
    };
    world.until(|| reported().is_some()).await;
    let (statement, other) = reported().unwrap();
    assert_eq!((statement.statement.output, other), (output, None));
    assert_eq!(&statement.statement.provider, world.stash());
    // Then it opens its seal, which is void.
    world.until_final(|| !claims_revealed(&world).is_empty()).await;
    verifier.stop().await;
}
