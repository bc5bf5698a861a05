//! However many play about a claim, its trace is computed once.

use std::{collections::BTreeSet, sync::Arc, time::Instant};

use futures::future::join_all;
use surety_chain_client::DisputeRecord;
use surety_dispute_game::bisection::{
    Cell, Clocks, Game, Judgement, Missing, Move, Referee, Roots, Side, State,
};
use surety_engine::{Engine, EnginePool, Job, PoolConfig};
use surety_model_trace::Layout;
use surety_types::{
    ContentHash,
    input::{Settings, encode_prompt},
    model::Operation,
    task::TaskSpec,
    trust::{DisputeId, Party},
};
use surety_worker_core::{EffectKind, Event, KeptView};

use super::{
    tiny::{BOUNDS, Counting},
    world::World,
};
use crate::{
    Engines, Tools, Traces,
    jobs::Task,
    moves::{find, value},
};

const GAMES: u32 = 16;

/// Whatever a game comes to is for a committee.
struct NoBlock;

impl Referee for NoBlock {
    fn opening_bytes(&self, _: &Cell) -> Option<u32> {
        None
    }

    fn needed(&self, _: &Cell) -> Option<Missing> {
        Some(Missing::Both)
    }

    fn judge(&self, _: &Cell, _: &Roots, _: &[u8]) -> Judgement {
        Judgement::Unproven
    }
}

/// A provider that is right, and whose result is challenged.
struct Challenged {
    tools: Arc<Tools>,
    engine: Arc<Counting>,
    world: World,
    spec: TaskSpec,
    layout: Layout,
    record: DisputeRecord,
    output: Vec<u8>,
    leaves: Vec<ContentHash>,
    input: Vec<u8>,
}

impl Challenged {
    async fn new() -> Self {
        let (world, engine) = (World::new().await, Arc::new(Counting::new()));
        let settings = Settings {
            max_tokens: 30,
            temperature_milli: 800,
            top_k: 0,
            top_p_milli: 1_000,
            seed: 3,
        };
        let prompt: Vec<u32> = (1..=20).collect();
        let input = encode_prompt(&prompt, &settings, &BOUNDS).unwrap();
        let task = world.post_for(Operation::Generate, &input).await;
        let mut spec = world.chain.change(|state| state.tasks[&task].spec.clone());
        (spec.model, spec.units_max) = (engine.manifest().id(), 60);
        let job = Job {
            operation: spec.operation,
            input: input.clone(),
            units_max: spec.units_max,
        };
        let (outcome, trace) = engine.honest(&job);
        let layout = trace.layout().clone();
        let game = Game::new(outcome.claim.trace_root, &layout, Clocks::equal(5_000)).unwrap();
        let record = DisputeRecord {
            task,
            defender: Party::Provider(world.stash().clone()),
            challenger: Party::Account(world.auditor()),
            claim: outcome.claim,
            game,
            bond: 0,
            committee_bond: 0,
            prepaid: None,
            moves: 0,
            opened_at: 1,
            ticked_at: 1,
            referred_at: None,
        };
        let challenged = Self {
            tools: tools(&world, &engine),
            engine,
            world,
            spec,
            layout,
            record,
            output: outcome.output,
            leaves: outcome.leaves,
            input,
        };
        challenged.show(true);
        challenged
    }

    /// Whether prompt and output are shown on chain.
    fn show(&self, is_shown: bool) {
        let task = self.record.task;
        self.world.chain.change(|state| {
            state.shown.clear();
            if is_shown {
                state.shown.insert((task, self.spec.input), self.input.clone());
                state
                    .shown
                    .insert((task, self.record.claim.output), self.output.clone());
            }
        });
        self.world.chain.finalize();
    }

    /// What the provider plays next in a game.
    async fn defends(&self, dispute: DisputeId, game: &Game) -> Move {
        let record = DisputeRecord {
            game: game.clone(),
            ..self.record.clone()
        };
        self.defends_claim(dispute, record, None).await
    }

    async fn defends_claim(&self, dispute: DisputeId, record: DisputeRecord, kept: Option<KeptView>) -> Move {
        let of = move_of(record.task, dispute);
        let about = (Side::Defender, self.spec.clone(), kept);
        let found = find(&self.tools, of, dispute, record, about);
        match found.await {
            Event::MoveReady { played, .. } => played,
            other => panic!("{other:?}"),
        }
    }
}

fn tools(world: &World, engine: &Arc<Counting>) -> Arc<Tools> {
    let mut tools = world.tools();
    let pool = EnginePool::new(PoolConfig {
        threads: 1,
        queue: 32,
    })
    .unwrap();
    let engine: Arc<dyn Engine> = engine.clone();
    tools.engines = Engines::new(pool, [engine], tools.vitals.clone());
    Arc::new(tools)
}

fn move_of(id: u64, dispute: DisputeId) -> Task {
    Task {
        id,
        kind: EffectKind::ComputeMove(dispute),
        left: 1_000,
        began: Instant::now(),
        tip: 0,
    }
}

/// Sixteen who know nothing each go somewhere else, until a committee is to be asked.
#[tokio::test(flavor = "multi_thread")]
async fn sixteen_false_challenges_at_once_take_one_computation() {
    let provider = Challenged::new().await;
    let mut games = vec![provider.record.game.clone(); GAMES as usize];
    let mut leaves = BTreeSet::new();
    loop {
        let open = (0..GAMES).zip(&games);
        let open = open.filter(|(_, game)| game.to_move() == Some(Side::Defender));
        let moves = open.map(|(dispute, game)| {
            let played = provider.defends(dispute, game);
            async move { (dispute, played.await) }
        });
        let moves = join_all(moves).await;
        if moves.is_empty() {
            break;
        }
        for (dispute, played) in moves {
            let game = &mut games[dispute as usize];
            game.step(Side::Defender, played, &provider.layout, &NoBlock)
                .unwrap();
            let named = match game.state() {
                State::Naming { children } => Move::Name((dispute % children.len() as u32) as u8),
                State::Picking { .. } => Move::Pick(0),
                _ => continue,
            };
            game.step(Side::Challenger, named, &provider.layout, &NoBlock)
                .unwrap();
            leaves.insert(game.place().leaf);
        }
    }
    assert!(leaves.len() > 6, "{leaves:?}");
    let is_referred = |game: &Game| matches!(game.state(), State::NeedsCommittee { .. });
    assert!(games.iter().all(is_referred));
    // One for all leaves of the trace, and one for what they record.
    assert_eq!(provider.engine.passes(), 2);
}

/// With the leaves that were kept when each was computed, that takes a pass or two over each, however long it
/// goes round.
#[tokio::test(flavor = "multi_thread")]
async fn challenges_of_many_right_results_at_once_take_no_computation_of_their_traces() {
    const TASKS: u64 = 20;
    let provider = Challenged::new().await;
    let leaves: Vec<u8> = provider.leaves.iter().flat_map(|leaf| leaf.0).collect();
    let leaves = provider.tools.plane.publish(leaves.into()).await.unwrap();
    let output = provider.record.claim.output;
    let kept = Some(KeptView {
        leaves,
        output,
        differs: None,
    });
    for task in 0..TASKS {
        provider.world.chain.change(|state| {
            let shown = [(provider.spec.input, &provider.input), (output, &provider.output)];
            let shown = shown.map(|(hash, bytes)| ((1_000 + task, hash), bytes.clone()));
            state.shown.extend(shown);
        });
    }
    provider.world.chain.finalize();
    let mut games: Vec<_> = (0..TASKS)
        .map(|task| DisputeRecord {
            task: 1_000 + task,
            ..provider.record.clone()
        })
        .collect();
    let mut moves = 0;
    loop {
        let is_open = |record: &&mut DisputeRecord| record.game.to_move() == Some(Side::Defender);
        let before = moves;
        for record in games.iter_mut().filter(is_open) {
            let played = provider
                .defends_claim(record.task as DisputeId, record.clone(), kept)
                .await;
            moves += 1;
            let game = &mut record.game;
            game.step(Side::Defender, played, &provider.layout, &NoBlock)
                .unwrap();
            let named = match game.state() {
                State::Naming { children } => Move::Name((record.task % children.len() as u64) as u8),
                State::Picking { .. } => Move::Pick(0),
                _ => continue,
            };
            game.step(Side::Challenger, named, &provider.layout, &NoBlock)
                .unwrap();
        }
        if moves == TASKS {
            assert_eq!(provider.engine.passes(), 0);
        }
        if moves == before {
            break;
        }
    }
    assert!(moves > 4 * TASKS, "{moves}");
    // One for the rows of each, and one where its tokens are asked for.
    let passes = provider.engine.passes();
    assert!(passes <= 2 * TASKS as usize, "{passes}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dispute_that_ends_takes_no_computation_from_the_others() {
    let provider = Arc::new(Challenged::new().await);
    provider.engine.allow(0);
    for dispute in 0..3 {
        let (of, game) = (provider.clone(), provider.record.game.clone());
        let looking = tokio::spawn(async move { of.defends(dispute, &game).await });
        provider.world.until(|| provider.engine.passes() == 1).await;
        // Its challenger gives up.
        looking.abort();
        assert!(looking.await.unwrap_err().is_cancelled());
    }
    provider.engine.allow(usize::MAX);
    let played = provider.defends(9, &provider.record.game).await;
    assert!(matches!(played, Move::Post(_)));
    assert_eq!(provider.engine.passes(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_computed_for_a_task_stops_with_it() {
    let provider = Arc::new(Challenged::new().await);
    provider.engine.allow(0);
    let look = |dispute| {
        let (of, game) = (provider.clone(), provider.record.game.clone());
        tokio::spawn(async move { of.defends(dispute, &game).await })
    };
    let looking = look(1);
    provider.world.until(|| provider.engine.passes() == 1).await;
    looking.abort();
    let traces: &Traces = &provider.tools.traces;
    traces.forget(provider.record.task);
    let next = look(2);
    // There is one thread: what is begun anew waits for the end of the first.
    let waits = |(name, jobs)| name == "urgent" && jobs > 0;
    let is_queued = || provider.tools.engines.waiting().any(waits);
    provider.world.until(is_queued).await;
    provider.engine.allow(1);
    provider.world.until(|| provider.engine.passes() == 2).await;
    assert_eq!(provider.engine.steps(), 0, "the first went on");
    provider.engine.allow(usize::MAX);
    next.await.unwrap();
    assert!(provider.engine.steps() > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_of_a_committee_reads_on_chain_what_it_needs() {
    let provider = Challenged::new().await;
    let mut game = provider.record.game.clone();
    while let Some(side) = game.to_move() {
        let played = match (side, game.state()) {
            (Side::Defender, _) => provider.defends(0, &game).await,
            (_, State::Picking { .. }) => Move::Pick(0),
            _ => Move::Name(1),
        };
        game.step(side, played, &provider.layout, &NoBlock).unwrap();
    }
    let State::NeedsCommittee { cell } = *game.state() else {
        panic!("{:?}", game.state());
    };
    let record = DisputeRecord {
        game,
        ..provider.record.clone()
    };
    let of = move_of(record.task, 0);
    // The client has gone, and the provider serves nobody.
    provider
        .world
        .net
        .set_down(&provider.world.client_endpoint(), true);
    provider.show(false);
    let member = tools(&provider.world, &provider.engine);
    assert!(value(&member, of, &record, &provider.spec).await.is_err());
    provider.show(true);
    let own = value(&member, of, &record, &provider.spec).await.unwrap();
    assert_eq!(own, Some(cell.value));
}
