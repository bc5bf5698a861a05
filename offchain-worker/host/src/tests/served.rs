//! Outputs that a provider serves its auditors, which may be others than those that it has signed or reveals.

use std::time::Instant;

use surety_chain_client::{Call, Signer};
use surety_engine::content_hash;
use surety_network::{Bytes, PeerError, PlaneError};
use surety_types::{
    ContentHash, TaskId,
    model::Operation,
    task::{MemberProgress, ResultClaim, TaskSpec},
};
use surety_worker_core::EffectKind;

use super::{
    audits::announced,
    generation::request,
    world::{Running, World, endpoint},
};
use crate::{
    audits::keep,
    effect_error::EffectError,
    jobs::Task,
    served::{Source, signed_output},
};

/// Another output than the provider has made.
const OTHER: &[u8] = b"another output";

/// A generation that the provider has committed to and serves, in its audit window. The engine computes
/// nothing more until it is let.
async fn committed(world: &World) -> (TaskId, ContentHash) {
    world.let_tokens(3);
    let provider = world.start();
    let task = world.post_for(Operation::Generate, &request(3)).await;
    world.bid_and_assign(task).await;
    let output = world.until_audited(task).await;
    provider.stop().await;
    (task, output)
}

/// What was reported: the output that was signed, and the other one.
fn reported(world: &World) -> Option<(ContentHash, Option<ContentHash>)> {
    let mut calls = world.chain.calls().into_iter();
    calls.find_map(|(_, call)| match call {
        Call::ReportEquivocation { statement, other } => Some((
            statement.statement.output,
            other.map(|other| other.statement.output),
        )),
        _ => None,
    })
}

/// A verifier that is killed when it has fetched what it is to audit, and has sealed nothing.
async fn killed_between_fetching_and_sealing(world: &World, output: ContentHash) {
    let verifier = world.start_verifier();
    world.until(|| world.audited() == [output]).await;
    verifier.kill().await;
    world.until(|| world.is_engine_idle()).await;
    world.net.restart(&endpoint("auditor"));
}

/// Starts it again, and waits until it has sealed what it finds.
async fn sealed(world: &World) -> Running {
    world.let_tokens(1_000);
    let verifier = world.start_verifier();
    world.chain.finalize();
    world.until(|| announced(world) == 1).await;
    verifier
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_restart_an_auditor_computes_from_the_output_that_was_signed_first() {
    let world = World::new().await;
    let (task, output) = committed(&world).await;
    killed_between_fetching_and_sealing(&world, output).await;
    world.serve(task, OTHER, world.agent()).await;
    let verifier = sealed(&world).await;
    assert_eq!(world.audited(), [output, output]);
    verifier.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_serves_another_output_once_the_first_is_lost_is_reported_with_both() {
    let world = World::new().await;
    let (task, output) = committed(&world).await;
    killed_between_fetching_and_sealing(&world, output).await;
    world.net.fill(&endpoint("auditor"));
    world.net.restart(&endpoint("provider"));
    world.net.fill(&endpoint("provider"));
    let other = world.serve(task, OTHER, world.agent()).await;
    world.let_tokens(1_000);
    let verifier = world.start_verifier();
    world.chain.finalize();
    world.until(|| reported(&world).is_some()).await;
    assert_eq!(reported(&world), Some((output, Some(other))));
    assert_eq!((world.audited(), announced(&world)), (vec![output], 0));
    verifier.stop().await;
}

fn spec(world: &World, task: TaskId) -> TaskSpec {
    world.chain.change(|state| state.tasks[&task].spec.clone())
}

/// Asks for the output of a task, as an auditor does that knows of none.
async fn asked(world: &World, task: TaskId) -> Result<ContentHash, EffectError> {
    let tools = world.auditor_tools();
    let of = Task {
        id: task,
        kind: EffectKind::Draw(Default::default()),
        left: 100,
        began: Instant::now(),
        tip: 0,
    };
    let from = Source::of(&tools, of, world.stash()).await?;
    let (_, statement) = signed_output(&tools, of, (&spec(world, task), None), &from).await?;
    Ok(statement.unwrap().statement.output)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_auditor_takes_the_word_of_the_key_that_has_committed_and_of_no_later_one() {
    let world = World::new().await;
    let (task, _) = committed(&world).await;
    let later = Signer::from_uri("//Later").unwrap();
    world.chain.change(|state| {
        state.agents.remove(world.agent().account());
        state
            .agents
            .insert(later.account().clone(), world.stash().clone());
    });
    world.chain.finalize();
    world.serve(task, OTHER, &later).await;
    let unsigned = asked(&world, task).await.unwrap_err();
    assert!(matches!(unsigned, EffectError::Unsigned), "{unsigned}");
    let other = world.serve(task, OTHER, world.agent()).await;
    assert_eq!(asked(&world, task).await.unwrap(), other);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_output_that_no_game_could_show_is_not_fetched() {
    let world = World::new().await;
    let (task, _) = committed(&world).await;
    let bytes = 4 * (u64::from(spec(&world, task).units_max) + 1);
    let longest = vec![7; bytes as usize];
    let served = world.serve(task, &longest, world.agent()).await;
    assert_eq!(asked(&world, task).await.unwrap(), served);
    world
        .serve(task, &[&longest[..], &[7; 4]].concat(), world.agent())
        .await;
    let refused = asked(&world, task).await.unwrap_err();
    let max = bytes;
    let fault = PeerError::TooLarge { bytes: max + 4, max };
    let EffectError::Data(PlaneError::AllFailed { attempts, .. }) = refused else {
        panic!("{refused}");
    };
    assert_eq!(attempts[0].fault, fault);
}

/// Whether the verifier has these when its store was full.
fn keeps(world: &World, contents: &[ContentHash]) -> bool {
    let own = endpoint("auditor");
    world.net.fill(&own);
    contents.iter().all(|content| world.net.has(&own, content))
}

#[tokio::test(flavor = "multi_thread")]
async fn what_there_was_no_room_for_is_kept_the_next_time_and_let_go_of_once() {
    let world = World::new().await;
    let (tools, own, blob) = (
        world.auditor_tools(),
        endpoint("auditor"),
        Bytes::from_static(OTHER),
    );
    let content = content_hash(OTHER);
    world.net.set_full(&own, true);
    keep(&tools, 1, content, blob.clone()).await;
    world.net.set_full(&own, false);
    for _ in 0..2 {
        keep(&tools, 1, content, blob.clone()).await;
    }
    assert!(keeps(&world, &[content]));
    for kept in tools.audits.forget(1) {
        tools.plane.release(kept).await;
    }
    assert!(!keeps(&world, &[content]));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_audited_is_kept_also_by_a_verifier_that_was_started_again() {
    let world = World::new().await;
    let (task, output) = committed(&world).await;
    let verifier = sealed(&world).await;
    let input = spec(&world, task).input;
    assert!(keeps(&world, &[input, output]));
    verifier.kill().await;
    world.net.restart(&endpoint("auditor"));
    let verifier = world.start_verifier();
    // It has looked at the chain when it opens its seal.
    world.chain.open_reveals(task, 999);
    world.chain.change(|state| {
        let claim = ResultClaim {
            output,
            trace_root: ContentHash::zero(),
            units: 6,
        };
        let round = state.rounds.get_mut(&task).unwrap();
        round.members[0].progress = MemberProgress::Revealed(claim);
    });
    world.chain.finalize();
    let opened = || {
        let mut calls = world.chain.calls().into_iter();
        calls.any(|(_, call)| matches!(call, Call::RevealAudit { .. }))
    };
    world.until(opened).await;
    assert!(keeps(&world, &[input, output]));
    // The task is over: it may go.
    world.chain.settle(task);
    world
        .until_final(|| !keeps(&world, &[input]) && !keeps(&world, &[output]))
        .await;
    verifier.stop().await;
}
