//! What a challenger cannot get from anybody it asks for on chain, and reads there.

use std::{sync::Arc, time::Instant};

use surety_chain_client::{Call, DisputeRecord, Hash};
use surety_dispute_game::bisection::{
    Cell, Clocks, Game, Judgement, LeafKind, LeafShape, Length, Missing, Move, Referee, Roots, RowsShape,
    Shape, Side,
};
use surety_engine::{
    content_hash,
    generation::{FinishReason, Generation},
};
use surety_network::DataPlane;
use surety_proofs::merkle_root;
use surety_types::{
    TaskId,
    model::Operation,
    task::{ResultClaim, TaskSpec},
    trust::{OpenDispute, Party},
};
use surety_worker_core::EffectKind;

use super::{
    generation::request,
    world::{LetsIn, World, endpoint},
};
use crate::{effect_error::EffectError, jobs::Task, moves::content};

/// Input and output, and a leaf between them.
struct Leaves([Hash; 3]);

impl Shape for Leaves {
    fn leaves(&self) -> u32 {
        3
    }

    fn leaf(&self, leaf: u32) -> Option<LeafShape> {
        let hash = *self.0.get(leaf as usize)?;
        let kind = match leaf {
            1 => LeafKind::Computed,
            _ => LeafKind::Fixed(hash),
        };
        let length = Length::Known(1);
        Some(LeafShape { length, kind })
    }

    fn steps(&self, leaf: u32, _: u32) -> Option<u32> {
        (leaf == 1).then_some(1)
    }

    fn rows(&self, _: u32, _: u32, _: u32) -> Option<RowsShape> {
        Some(RowsShape {
            rows: 1,
            row_bytes: 16,
            quantized: None,
        })
    }
}

impl Referee for Leaves {
    fn opening_bytes(&self, _: &Cell) -> Option<u32> {
        None
    }

    fn needed(&self, _: &Cell) -> Option<Missing> {
        None
    }

    fn judge(&self, _: &Cell, _: &Roots, _: &[u8]) -> Judgement {
        Judgement::Unproven
    }
}

fn answer() -> Vec<u8> {
    let tokens = vec![4, 5, 6];
    let finish_reason = FinishReason::Length;
    Generation {
        tokens,
        finish_reason,
    }
    .encode()
}

/// The verifier plays a provider that claims an output which nobody serves. It is to name a child.
fn dispute(world: &World, task: TaskId, input: &[u8]) -> DisputeRecord {
    let leaves = Leaves([content_hash(input), Hash::repeat_byte(7), content_hash(&answer())]);
    let root = merkle_root(leaves.0.into_iter());
    let mut game = Game::new(root, &leaves, Clocks::equal(5_000)).unwrap();
    let post = Move::Post(leaves.0.to_vec().try_into().unwrap());
    game.step(Side::Defender, post, &leaves, &leaves).unwrap();
    DisputeRecord {
        task,
        defender: Party::Provider(world.stash().clone()),
        challenger: Party::Auditor {
            verifier: world.auditor(),
            provider: world.stash().clone(),
        },
        claim: ResultClaim {
            output: content_hash(&answer()),
            trace_root: root,
            units: 6,
        },
        game,
        bond: 0,
        committee_bond: 0,
        prepaid: None,
        moves: 1,
        opened_at: 1,
        ticked_at: 1,
        referred_at: None,
    }
}

/// A task whose provider has gone, and whose client serves the input.
async fn disputed(world: &World) -> (TaskSpec, DisputeRecord) {
    let input = request(3);
    let task = world.post_for(Operation::Generate, &input).await;
    let record = dispute(world, task, &input);
    let spec = world.chain.change(|state| state.tasks[&task].spec.clone());
    (spec, record)
}

fn move_of(id: TaskId) -> Task {
    Task {
        id,
        kind: EffectKind::ComputeMove(1),
        left: 100,
        began: Instant::now(),
        tip: 0,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_honest_challenger_asks_for_an_output_that_is_withheld_and_does_not_concede() {
    let world = World::new().await;
    let (_, record) = disputed(&world).await;
    let task = record.task;
    world.chain.assign(task, 99);
    world.chain.change(|state| {
        state.disputes.insert(1, record);
        let open = OpenDispute {
            id: 1,
            due: 5_000,
            defender: Some(0),
            challenger: None,
        };
        let round = state.rounds.get_mut(&task).unwrap();
        round.disputes.try_push(open).unwrap();
    });
    world.chain.finalize();
    let verifier = world.start_verifier();
    let played = || {
        let calls = world.chain.calls().into_iter();
        calls.filter_map(|(_, call)| match call {
            Call::Play { number, played, .. } => Some((number, played)),
            _ => None,
        })
    };
    world.chain.finalize();
    world.until(|| played().count() > 0).await;
    let (number, asked) = played().next().unwrap();
    assert_eq!((number, asked), (1, Move::Ask(Missing::Output)));
    verifier.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_shown_on_chain_is_read_from_there() {
    let world = World::new().await;
    let (spec, record) = disputed(&world).await;
    let (task, output) = (record.task, record.claim.output);
    let tools = world.tools();
    let of = move_of(task);
    assert!(content(&tools, of, &record, &spec, &[]).await.is_err());
    // Half of it is not it.
    for shown in [answer()[..8].to_vec(), answer()] {
        let is_whole = shown == answer();
        world.chain.change(|state| {
            state.shown.insert((task, spec.input), request(3));
            state.shown.insert((task, output), shown);
        });
        world.chain.finalize();
        let found = content(&tools, of, &record, &spec, &[]).await;
        assert_eq!(found.is_ok(), is_whole);
        if let Ok((input, bytes)) = found {
            assert_eq!((&input[..], &bytes[..]), (&request(3)[..], &answer()[..]));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn for_what_is_here_nobody_is_asked() {
    let world = World::new().await;
    let (spec, record) = disputed(&world).await;
    let tools = world.tools();
    for own in [request(3), answer()] {
        tools.plane.publish(own.into()).await.unwrap();
    }
    world.chain.set_unreachable(true);
    let found = content(&tools, move_of(record.task), &record, &spec, &[]).await;
    assert!(found.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_chain_that_cannot_be_asked_may_have_is_not_taken_for_withheld() {
    let world = World::new().await;
    let (spec, record) = disputed(&world).await;
    let tools = world.tools();
    world.chain.set_unreachable(true);
    let found = content(&tools, move_of(record.task), &record, &spec, &[]).await;
    assert!(matches!(found, Err(EffectError::Chain(_))), "{found:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_peer_has_is_fetched_while_the_chain_cannot_be_asked() {
    let world = World::new().await;
    let (spec, mut record) = disputed(&world).await;
    let (tools, rival) = (world.tools(), world.rival_plane());
    record.claim.output = rival.publish(vec![7; 4].into()).await.unwrap();
    for plane in [&rival, &world.client_plane()] {
        plane.set_gate(Arc::new(LetsIn));
    }
    world.chain.set_unreachable(true);
    let at = [endpoint("rival"), endpoint("client")];
    let found = content(&tools, move_of(record.task), &record, &spec, &at).await;
    assert!(found.is_ok(), "{found:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_output_is_fetched_that_is_longer_than_the_task_can_have() {
    let world = World::new().await;
    let (spec, mut record) = disputed(&world).await;
    let (tools, rival) = (world.tools(), world.rival_plane());
    let bytes_max = 4 * (spec.units_max as usize + 1);
    for (bytes, is_fetched) in [(bytes_max, true), (bytes_max + 4, false)] {
        let output = rival.publish(vec![7; bytes].into()).await.unwrap();
        for plane in [&rival, &world.client_plane()] {
            plane.set_gate(Arc::new(LetsIn));
        }
        record.claim.output = output;
        let at = [endpoint("rival"), endpoint("client")];
        let found = content(&tools, move_of(record.task), &record, &spec, &at).await;
        assert_eq!(found.is_ok(), is_fetched, "{bytes} bytes");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_output_of_embeddings_is_not_needed() {
    let world = World::new().await;
    let (mut spec, record) = disputed(&world).await;
    spec.operation = Operation::Embed;
    let tools = world.tools();
    world.chain.change(|state| {
        state.shown.insert((record.task, spec.input), request(3));
    });
    world.chain.finalize();
    let found = content(&tools, move_of(record.task), &record, &spec, &[]).await;
    assert!(found.is_ok());
}
