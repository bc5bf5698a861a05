//! Receipts that somebody disputes though they are right.

use std::{sync::Arc, time::Duration};

use surety_chain_client::{AccountId, Call, DemandRecord, DisputeRecord, ReceiptSource, sample};
use surety_channel_calls::payer::Wanted;
use surety_channels::{End, SignedChunkStatement};
use surety_dispute_game::bisection::{
    Clocks, Game, Length, Move, Outcome as Ended, Reason, Shape, Side, challenge,
};
use surety_engine::{Claimed, Engine, Job, Outcome, exact::OwnTrace};
use surety_model_trace::{CellReferee, Layout, Op, Part};
use surety_proofs::{SegmentOpening, content_hash, parts};
use surety_types::{
    TaskId,
    model::Operation,
    task::{MemberProgress, RoundMember},
    trust::{Content, ContentPart, Party},
};
use tokio::time::sleep;

use crate::{client::Client, generating::quiet, world::World};

const DISPUTE: u32 = 3;

/// Numbers of moves are so far from each other: the chain in memory counts moves and does not carry them out,
/// so that a block may come between.
const NUMBERS: u32 = 10;

/// An answer, its receipt, and what an engine by itself makes of it.
struct Answered {
    wanted: Wanted,
    receipt: SignedChunkStatement<AccountId>,
    alone: Outcome,
}

async fn answer(world: &World, client: &Client, wanted: Wanted) -> Answered {
    let call = client.ask(wanted.clone()).await;
    assert_eq!(call.refused, None);
    let receipt = client.finish(call).await.receipt.unwrap();
    let alone = world.alone(&wanted, wanted.request.units_max);
    Answered {
        wanted,
        receipt,
        alone,
    }
}

/// A generation that a stop id ends: it claims another output than was signed for word by word.
async fn stopped(world: &World, client: &Client) -> Answered {
    for seed in 0..20 {
        let answered = answer(world, client, world.text(seed, 5, 30, 8)).await;
        if answered.receipt.statement.end.map(|end| end.how) == Some(End::Stop) {
            return answered;
        }
    }
    panic!("no answer has ended by itself");
}

/// Somebody who says that a receipt is wrong, and what he plays.
struct Challenge {
    game: Game,
    layout: Layout,
    lie: OwnTrace,
    engine: Arc<dyn Engine>,
    number: u32,
    answered: Answered,
    round: TaskId,
}

impl Challenge {
    fn new(world: &World, answered: Answered, round: TaskId) -> Self {
        let request = &answered.wanted.request;
        let engine: Arc<dyn Engine> = match request.operation {
            Operation::Generate => world.decoder.clone(),
            Operation::Embed => world.encoder.clone(),
        };
        let job = Job {
            operation: request.operation,
            input: answered.wanted.input.clone(),
            units_max: request.units_max,
        };
        let claim = &answered.alone.claim;
        let claimed = Claimed::whole(answered.alone.output.clone(), claim.units);
        let mut lie = engine.clone().trace(job, claimed, Box::new(quiet)).unwrap();
        let layout = lie.layout().clone();
        // A number in the middle of the model.
        let stride = layout.cut().strides() / 2;
        let middle = Part::Rows {
            sequence: 0,
            chunk: 0,
            stride,
        };
        let leaf = layout.leaf_of(middle).unwrap();
        let layer = layout.cut().layers_of(stride).start;
        // The numbers of steps do not depend on the length.
        let (Length::Known(length) | Length::Word { most: length, .. }) = layout.leaf(leaf).unwrap().length;
        let plan = layout.plan(leaf, length).unwrap();
        let step = plan.number(layer, Op::Output).unwrap();
        let root = lie.alter(leaf, step, 0, 0).unwrap();
        assert_ne!(root, claim.trace_root);
        Self {
            game: Game::new(claim.trace_root, &layout, Clocks::equal(1_000_000)).unwrap(),
            layout,
            lie,
            engine,
            number: 0,
            answered,
            round,
        }
    }

    fn record(&self, world: &World) -> DisputeRecord {
        DisputeRecord {
            task: self.round,
            defender: Party::Provider(world.stash.account().clone()),
            challenger: Party::Account(world.payer.account().clone()),
            claim: self.answered.alone.claim.clone(),
            game: self.game.clone(),
            moves: self.number,
            prepaid: None,
            referred_at: None,
            ..sample::trust_records::disputes().remove(0)
        }
    }

    fn step(&mut self, side: Side, played: Move) {
        let weights = self.engine.manifest().exact.as_ref().unwrap().weight_root;
        let referee = CellReferee::new(&self.layout, weights);
        let stepped = self.game.step(side, played, &self.layout, &referee);
        assert!(stepped.is_ok(), "{side:?}: {stepped:?}");
        self.number += NUMBERS;
    }

    /// Plays until the provider has made so many more moves, or it is over.
    async fn play(&mut self, world: &World, moves: u32) {
        for _ in 0..moves {
            while self.game.to_move() == Some(Side::Challenger) {
                let played = challenge(&self.game, &mut self.lie).unwrap();
                self.step(Side::Challenger, played);
            }
            if self.game.outcome().is_some() {
                world.chain.change(|state| state.disputes.remove(&DISPUTE));
                return;
            }
            let record = self.record(world);
            world.chain.change(|state| state.disputes.insert(DISPUTE, record));
            let played = self.defended(world).await;
            self.step(Side::Defender, played);
        }
    }

    /// The provider's move of this number.
    async fn defended(&self, world: &World) -> Move {
        for _ in 0..2_000 {
            let calls = world.chain.calls().into_iter();
            let mut ours = calls.filter(|(who, _)| who == world.agent.account());
            let played = ours.find_map(|(_, call)| match call {
                Call::Play {
                    dispute: DISPUTE,
                    number,
                    played,
                } if number == self.number => Some(played),
                _ => None,
            });
            if let Some(played) = played {
                return played;
            }
            world.chain.finalize();
            sleep(Duration::from_millis(5)).await;
        }
        panic!("no move: {:?}", self.game.state());
    }
}

/// Has a receipt disputed that is in no batch. Returns the round.
async fn dispute(world: &World, answered: &Answered) -> TaskId {
    let head = (answered.receipt.statement.end.map(|end| end.how) == Some(End::Stop)).then(|| {
        let mut output = answered.alone.output.clone();
        output[..4].fill(0);
        SegmentOpening::new(&output, 0).unwrap()
    });
    let dispute = Call::Dispute {
        receipt: Box::new(ReceiptSource::Signed(answered.receipt.clone())),
        request: Box::new(answered.wanted.request.clone()),
        head,
    };
    world.submit(&world.payer, dispute).await;
    let round = world
        .chain
        .change(|state| state.channels.disputed.keys().next_back().copied());
    round.unwrap()
}

fn won() -> Option<Ended> {
    Some(Ended {
        winner: Side::Defender,
        reason: Reason::Judged,
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_false_dispute_of_a_signed_receipt_is_won_through_a_restart() {
    let mut world = World::new(&[7, 70, 170]).await;
    world.config.batch_blocks = 10_000;
    let process = world.start().await;
    let client = world.client(&process).await;
    let answered = stopped(&world, &client).await;
    let round = dispute(&world, &answered).await;
    let mut game = Challenge::new(&world, answered, round);
    game.play(&world, 2).await;
    assert_eq!(game.game.outcome(), None);
    process.kill().await;
    let process = world.start().await;
    game.play(&world, 100).await;
    assert_eq!(game.game.outcome(), won());
    process.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn vectors_that_were_shown_to_a_verifier_are_stood_by_after_a_restart() {
    let mut world = World::new(&[]).await;
    let process = world.start().await;
    let client = world.client(&process).await;
    let answered = answer(&world, &client, world.items(9)).await;
    world.demand_point(0).await;
    let round = world
        .chain
        .change(|state| state.channels.disputed.keys().next_back().copied());
    process.kill().await;
    // No node keeps the events of so long ago.
    for _ in 0..300 {
        world.chain.finalize();
    }
    let process = world.start().await;
    let mut game = Challenge::new(&world, answered, round.unwrap());
    game.play(&world, 100).await;
    assert_eq!(game.game.outcome(), won());
    process.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn input_and_output_that_are_demanded_of_a_receipt_are_shown() {
    let mut world = World::new(&[7, 70, 170]).await;
    let process = world.start().await;
    let client = world.client(&process).await;
    let vectors = answer(&world, &client, world.items(200)).await;
    let text = stopped(&world, &client).await;
    let mut rounds = Vec::new();
    for answered in [vectors, text] {
        let round = dispute(&world, &answered).await;
        demand_all(&world, round, &answered);
        rounds.push((round, answered));
    }
    assert!(rounds[0].1.alone.output.len() > 8 << 10, "it has one part");
    let stash = world.stash.account().clone();
    world
        .until("all is shown", |state| {
            let demands = |round: &TaskId| state.demands.get(&(*round, stash.clone()));
            rounds
                .iter()
                .all(|(round, _)| demands(round).is_none_or(Vec::is_empty))
        })
        .await;
    for (round, answered) in rounds {
        let shown = |hash| {
            world
                .chain
                .change(|state| state.shown.get(&(round, hash)).cloned())
        };
        assert_eq!(shown(answered.wanted.request.input), Some(answered.wanted.input));
        assert_eq!(shown(answered.alone.claim.output), Some(answered.alone.output));
    }
    process.stop().await;
}

/// All of the input and the output of a round's receipt.
fn demand_all(world: &World, round: TaskId, answered: &Answered) {
    let claim = &answered.alone.claim;
    assert_eq!(content_hash(&answered.alone.output), claim.output);
    let request = &answered.wanted.request;
    let all = |content, bytes: usize| (0..parts(bytes as u32)).map(move |part| ContentPart { content, part });
    let wanted: Vec<ContentPart> = all(Content::Input, answered.wanted.input.len())
        .chain(all(Content::Output, answered.alone.output.len()))
        .collect();
    let stash = world.stash.account().clone();
    world.chain.change(|state| {
        // The chain in memory knows the input of a round by its task.
        let mut task = sample::records::tasks().remove(3);
        (task.spec.input, task.spec.input_bytes) = (request.input, request.input_bytes);
        task.spec.operation = request.operation;
        state.tasks.insert(round, task);
        let mut of = sample::records::rounds().remove(3);
        let member = RoundMember {
            progress: MemberProgress::Revealed(claim.clone()),
            ..RoundMember::new(stash.clone(), 1, 0)
        };
        of.members = vec![member].try_into().unwrap();
        state.rounds.insert(round, of);
        let demand = DemandRecord {
            demander: world.payer.account().clone(),
            by: world.payer.account().clone(),
            parts: wanted.try_into().unwrap(),
            price: 1,
            until: state.clock + 1_000,
        };
        state.demands.insert((round, stash), vec![demand]);
    });
}
