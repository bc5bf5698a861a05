//! The own view of a claim's trace: the fast engine's leaves are those of the definition, cell by cell, and a
//! game about them comes to the cell that is wrong.

#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;
mod items;

use std::{
    ops::ControlFlow,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use common::{
    embed_job,
    exact::{As, Published},
    exact_minilm,
    generating::{self, generation, job, request},
    minilm_job,
    synthetic::{self, Dice},
    trace::{Altered, cell_of, check_cells, check_leaves, play, quiet, value},
};
use surety_dispute_game::bisection::{GameError, Shape, Side, State, Trace};
use surety_engine::{
    Claimed, Engine, EngineError, Event, Job, Outcome, content_hash,
    exact::{ExactBert, ExactCalibrator, Op, OwnTrace},
    generation::{FinishReason, Generation},
    open,
};
use surety_model_trace::{LayoutError, Part};
use surety_models::{ModelStore, convert::convert};
use surety_types::{
    ContentHash,
    model::{ModelFamily, Pooling},
};

fn go_on(_: Event) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn run(engine: &Arc<dyn Engine>, job: &Job) -> Outcome {
    engine.run(job, &mut go_on).unwrap()
}

/// The own view of an output.
fn view(engine: &Arc<dyn Engine>, job: &Job, output: &[u8], units: u32) -> OwnTrace {
    let engine = engine.clone();
    engine
        .trace(job.clone(), Claimed::whole(output.to_vec(), units), quiet())
        .unwrap()
}

fn weight_root(engine: &Arc<dyn Engine>) -> ContentHash {
    engine.manifest().exact.as_ref().unwrap().weight_root
}

fn synthetic_bert(seed: u64, pooling: Pooling) -> Arc<dyn Engine> {
    let weights = synthetic::bert(seed);
    let manifest = synthetic::manifest_pooling(ModelFamily::Bert, &weights, pooling);
    Arc::new(ExactBert::new(manifest, weights).unwrap())
}

fn synthetic_llama(seed: u64, tied: bool) -> Arc<dyn Engine> {
    Arc::new(generating::engine(synthetic::llama(seed, tied)))
}

fn synthetic_qwen3(seed: u64, tied: bool) -> Arc<dyn Engine> {
    Arc::new(generating::engine(synthetic::qwen3(seed, tied)))
}

/// A model of width 8, converted: every input is smoothed.
fn tiny(published: &Published) -> Arc<dyn Engine> {
    let (home, source) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    published.write(source.path(), As::F32);
    let store = ModelStore::new(home.path());
    let stored = convert(source.path(), &store, "tiny", None, &ExactCalibrator, &mut |_| ()).unwrap();
    open(stored.read().unwrap()).unwrap()
}

#[test]
fn the_leaves_of_the_fast_engine_are_those_of_the_definition() {
    let embed = embed_job("a b c\nz");
    let generate = job(&request("Once upon a time", 20));
    for (engine, job) in [
        (synthetic_bert(12, Pooling::Mean), &embed),
        (synthetic_bert(12, Pooling::First), &embed),
        (synthetic_llama(18, true), &generate),
        (synthetic_llama(19, false), &generate),
        (synthetic_qwen3(18, false), &generate),
        (synthetic_qwen3(19, true), &generate),
    ] {
        let outcome = run(&engine, job);
        let leaves = engine.leaves(job, &outcome.output, &mut go_on).unwrap();
        let mut own = view(&engine, job, &outcome.output, outcome.claim.units);
        check_leaves(&mut own, outcome.claim.trace_root, &leaves);
    }
}

#[test]
fn the_traces_of_the_first_opset_are_as_they_were() {
    let embed = embed_job("a b c\nz");
    let generate = job(&request("Once upon a time", 20));
    let roots = [
        (synthetic_bert(12, Pooling::Mean), &embed),
        (tiny(&Published::bert()), &embed),
        (synthetic_llama(18, true), &generate),
        (synthetic_llama(19, false), &generate),
        (synthetic_qwen3(18, false), &generate),
    ]
    .map(|(engine, job)| format!("{:?}", run(&engine, job).claim.trace_root));
    assert_eq!(
        roots, FIRST_OPSET,
        "whoever computes as before would be convicted: what is changed has to be another `Opset`"
    );
}

/// The roots of those traces, as they have been from the beginning.
const FIRST_OPSET: [&str; 5] = [
    "0xeae11fa4c3af608a2e7b286524997566c4cd1d78bef502f8134be0b828b42a5e",
    "0xa1977533fec8870e0b491b7c8a59841d4fa2bcfba24ddffd0324b5d0ea897c15",
    "0x8babe43c762717ff49aa26f99e5a077713f9e2e8672206e4a989d90a93301380",
    "0xeabd710ecefa28e7152aee81d257b52c19774a10458ccdd2787713504386fe51",
    "0xfc50a65fd8cdf653b86fd9790592086653f362932986c0d42250b4e9832f8c21",
];

#[test]
fn every_cell_of_a_small_model_holds() {
    let embed = embed_job("a b\nz");
    let generate = job(&request("the.", 15));
    // Nothing is left of its queries, and much is made of its keys.
    let without_queries = Published::qwen3().with("q_norm.weight", 0.0);
    let without_queries = without_queries.with("k_norm.weight", 30_000.0);
    for (published, job) in [
        (Published::bert(), &embed),
        (Published::llama(true, false), &generate),
        (Published::llama(false, true), &generate),
        (Published::qwen3(), &generate),
        (without_queries, &generate),
    ] {
        let engine = tiny(&published);
        let outcome = run(&engine, job);
        let mut own = view(&engine, job, &outcome.output, outcome.claim.units);
        let (judged, too_large) = check_cells(&mut own, weight_root(&engine), || true);
        assert!(judged > 2000, "{judged}");
        assert_eq!(too_large, 0, "nothing is left for a committee");
    }
}

#[test]
fn some_cells_of_larger_models_hold() {
    let embed = embed_job("a b c d e f g h i j k l m n o p q r s t u v w x y z");
    let generate = job(&request("Once upon a time there was", 12));
    for (engine, job) in [
        (synthetic_bert(13, Pooling::Mean), &embed),
        (synthetic_bert(14, Pooling::First), &embed),
        (synthetic_llama(20, true), &generate),
        (synthetic_qwen3(21, true), &generate),
    ] {
        let outcome = run(&engine, job);
        let mut own = view(&engine, job, &outcome.output, outcome.claim.units);
        let dice = &mut Dice::new(9);
        let (judged, _) = check_cells(&mut own, weight_root(&engine), || dice.below(2000) == 0);
        assert!(judged > 50, "{judged}");
    }
}

#[test]
fn some_cells_of_the_real_model_hold() {
    let engine = exact_minilm();
    let job = minilm_job("Call me Ishmael.\nSome years ago");
    let outcome = run(&engine, &job);
    let leaves = engine.leaves(&job, &outcome.output, &mut go_on).unwrap();
    let mut own = view(&engine, &job, &outcome.output, outcome.claim.units);
    check_leaves(&mut own, outcome.claim.trace_root, &leaves);
    let dice = &mut Dice::new(1);
    let (judged, _) = check_cells(&mut own, weight_root(&engine), || dice.below(3000) == 0);
    assert!(judged > 100, "{judged}");
}

#[test]
fn an_honest_defender_wins_and_so_does_an_honest_challenger() {
    let (honest, job) = (synthetic_llama(21, false), job(&request("Once upon", 30)));
    let outcome = run(&honest, &job);
    let units = outcome.claim.units;
    let layers = [(0, 3), (2, 1), (4, 0)];
    for (layer, output) in layers {
        let mut weights = synthetic::llama(21, false);
        synthetic::flip(&mut weights.layers[layer].up.q, 640 * output + 5, 0x80);
        let other: Arc<dyn Engine> = Arc::new(generating::engine(weights));
        // What another model answers, and what this one has to say of it.
        let lie = run(&other, &job);
        let mut theirs = view(&other, &job, &lie.output, lie.claim.units);
        let mut mine = view(&honest, &job, &lie.output, lie.claim.units);
        // The other model's weights are not under the root: its defender has nothing to open.
        let (state, refused) = play(
            lie.claim.trace_root,
            (&mut theirs, &mut mine),
            weight_root(&honest),
        );
        assert_eq!(refused, Some(GameError::Unproven), "{state:?}");
        let cell = cell_of(&state);
        let layout = mine.layout().clone();
        let plan = layout.plan(cell.leaf, cell.length).unwrap();
        assert_eq!(plan.step(cell.step).unwrap().layer as usize, layer);
        assert_eq!(cell.cell as usize, output);
        // And challenges in vain.
        let mut mine = view(&honest, &job, &outcome.output, units);
        let mut theirs = view(&other, &job, &outcome.output, units);
        let (state, refused) = play(
            outcome.claim.trace_root,
            (&mut mine, &mut theirs),
            weight_root(&honest),
        );
        assert_eq!(refused, None);
        assert!(
            matches!(state, State::Over(over) if over.winner == Side::Defender),
            "{state:?}"
        );
    }
}

/// The weight of a head's norm is another one than the model's: whoever answers with it has nothing to show.
#[test]
fn a_head_that_is_normed_by_other_weights_is_found_where_it_is_normed() {
    let (honest, job) = (synthetic_qwen3(25, true), job(&request("Once upon", 12)));
    for (layer, place, op) in [(0, 3, Op::NormQuery), (4, 31, Op::NormKey)] {
        let mut weights = synthetic::qwen3(25, true);
        let norms = weights.layers[layer].head_norms.as_mut().unwrap();
        let norm = match op {
            Op::NormQuery => &mut norms.query,
            _ => &mut norms.key,
        };
        norm.weight[place] *= 1.5;
        let other: Arc<dyn Engine> = Arc::new(generating::engine(weights));
        let lie = run(&other, &job);
        let mut theirs = view(&other, &job, &lie.output, lie.claim.units);
        let mut mine = view(&honest, &job, &lie.output, lie.claim.units);
        let sides = (&mut theirs, &mut mine);
        let (state, refused) = play(lie.claim.trace_root, sides, weight_root(&honest));
        assert_eq!(refused, Some(GameError::Unproven), "{state:?}");
        let cell = cell_of(&state);
        let layout = mine.layout().clone();
        let step = layout.plan(cell.leaf, cell.length).unwrap().step(cell.step);
        let step = step.unwrap();
        assert_eq!((step.layer as usize, step.op), (layer, op));
        assert_eq!(cell.cell as usize, place, "the first head's");
        // And challenges in vain.
        let outcome = run(&honest, &job);
        let mut mine = view(&honest, &job, &outcome.output, outcome.claim.units);
        let mut theirs = view(&other, &job, &outcome.output, outcome.claim.units);
        let sides = (&mut mine, &mut theirs);
        let (state, refused) = play(outcome.claim.trace_root, sides, weight_root(&honest));
        assert_eq!(refused, None);
        assert!(
            matches!(state, State::Over(over) if over.winner == Side::Defender),
            "{state:?}"
        );
    }
}

#[test]
fn whoever_pools_in_another_way_than_the_manifest_says_has_nothing_to_show() {
    let job = embed_job("a b c\nz");
    for (right, wrong) in [(Pooling::Mean, Pooling::First), (Pooling::First, Pooling::Mean)] {
        let [honest, other] = [right, wrong].map(|pooling| synthetic_bert(16, pooling));
        let lie = run(&other, &job);
        assert_ne!(lie.claim, run(&honest, &job).claim);
        let mut theirs = view(&other, &job, &lie.output, 2);
        let mut mine = view(&honest, &job, &lie.output, 2);
        // The weights are the same, and so is their root: what is asked for has another shape.
        let sides = (&mut theirs, &mut mine);
        let (state, refused) = play(lie.claim.trace_root, sides, weight_root(&honest));
        assert!(refused.is_some(), "{state:?}");
        assert!(
            matches!(state, State::Showing | State::Opening { .. }),
            "{state:?}"
        );
    }
}

#[test]
fn a_token_that_was_not_chosen_is_found_where_it_was_chosen() {
    let (engine, job) = (synthetic_llama(22, true), job(&request("Once upon", 30)));
    let honest = generation(&run(&engine, &job));
    // One for each byte, and the one that starts it.
    let prompt = 10;
    let mut wrong = honest.clone();
    wrong.tokens[20] = (wrong.tokens[20] + 1) % 256;
    let wrong_blob = wrong.encode();
    let units = prompt + 30;
    let mut own = view(&engine, &job, &wrong_blob, units);
    let layout = own.layout().clone();
    // It says that the token was chosen.
    let (position, last) = (prompt + 19, layout.leaves() - 1);
    let leaf = layout
        .leaf_of(Part::SampledTokens { chunk: position / 16 })
        .unwrap();
    let lie = wrong.tokens[20].to_le_bytes().to_vec();
    let mut liar = Altered::new(
        view(&engine, &job, &wrong_blob, units),
        leaf,
        position % 16,
        |row| *row = lie,
    );
    let (state, _) = play(liar.root(), (&mut liar, &mut own), weight_root(&engine));
    let cell = cell_of(&state);
    assert_eq!((cell.leaf, cell.row, cell.cell), (leaf, position % 16, 0));
    // It says that it was not, but delivers it: there is no such output.
    let mut liar = Altered::new(view(&engine, &job, &wrong_blob, units), last, 0, |_| ());
    let (state, refused) = play(liar.root(), (&mut liar, &mut own), weight_root(&engine));
    assert!(
        matches!(state, State::Over(over) if over.winner == Side::Challenger),
        "{state:?} {refused:?}"
    );
    // It delivers it as it says.
    let mut liar = Altered::new(view(&engine, &job, &wrong_blob, units), last, 0, |row| {
        *row = wrong_blob.clone()
    });
    let (state, refused) = play(liar.root(), (&mut liar, &mut own), weight_root(&engine));
    assert_eq!(refused, Some(GameError::Unproven), "{state:?}");
    let cell = cell_of(&state);
    assert_eq!((cell.leaf, cell.row, cell.cell), (last, 0, 1 + 20));
}

/// Makes a generation another one.
type Change = fn(&mut Generation);

#[test]
fn an_ending_that_cannot_be_is_for_a_block() {
    let (engine, job) = (synthetic_llama(9, true), job(&request("once", 20)));
    let honest = generation(&run(&engine, &job));
    let changes: [(Change, u32); 3] = [
        (|wrong| wrong.tokens.truncate(19), 0),
        (|wrong| wrong.finish_reason = FinishReason::Stop, 0),
        // What comes after an end is no token.
        (|wrong| wrong.tokens[3] = synthetic::END, 1 + 3),
    ];
    for (change, word) in changes {
        let mut wrong = honest.clone();
        change(&mut wrong);
        let blob = wrong.encode();
        let units = 5 + wrong.tokens.len() as u32;
        let mut own = view(&engine, &job, &blob, units);
        let last = own.layout().leaves() - 1;
        let mut liar = Altered::new(view(&engine, &job, &blob, units), last, 0, |row| {
            *row = blob.clone()
        });
        let (state, _) = play(liar.root(), (&mut liar, &mut own), weight_root(&engine));
        let cell = match state {
            // Its own trace opens what it has, not what it says.
            State::Opening { cell } => Some(cell),
            State::Over(over) => {
                assert_eq!(over.winner, Side::Challenger);
                None
            }
            other => panic!("{other:?}"),
        };
        assert!(
            cell.is_none_or(|cell| (cell.leaf, cell.cell) == (last, word)),
            "{cell:?}"
        );
    }
}

#[test]
fn an_embedding_that_is_not_the_model_s_is_found_in_the_output() {
    let (engine, job) = (synthetic_bert(23, Pooling::Mean), embed_job("a b\nc"));
    let outcome = run(&engine, &job);
    let mut blob = outcome.output.clone();
    let at = blob.len() - 4;
    blob[at] ^= 1;
    let mut own = view(&engine, &job, &blob, 2);
    let last = own.layout().leaves() - 1;
    let mut liar = Altered::new(view(&engine, &job, &blob, 2), last, 0, |row| *row = blob.clone());
    let (state, refused) = play(liar.root(), (&mut liar, &mut own), weight_root(&engine));
    assert_eq!(refused, Some(GameError::Unproven), "{state:?}");
    let cell = cell_of(&state);
    assert_eq!((cell.leaf, cell.cell as usize), (last, at / 4));
    let shape = own.layout().rows(last, cell.length, 0).unwrap();
    assert_eq!(value(&shape, &blob, cell.cell), cell.value);
}

#[test]
fn a_claim_about_another_number_of_items_has_no_trace() {
    let (engine, job) = (synthetic_bert(24, Pooling::Mean), embed_job("a b\nc"));
    let outcome = run(&engine, &job);
    for units in [0, 1, 3] {
        let none = engine
            .clone()
            .trace(
                job.clone(),
                Claimed::whole(outcome.output.clone(), units),
                quiet(),
            )
            .err();
        assert!(
            matches!(none, Some(EngineError::Untraceable(LayoutError::Units))),
            "{none:?}"
        );
    }
}

#[test]
fn a_trace_is_stopped_through_its_sink() {
    let (engine, job) = (synthetic_llama(25, true), job(&request("once", 20)));
    let outcome = run(&engine, &job);
    let sink = Box::new(|_: Event| ControlFlow::Break(()));
    let units = outcome.claim.units;
    assert_eq!(outcome.claim.output, content_hash(&outcome.output));
    let mut own = engine
        .trace(job, Claimed::whole(outcome.output, units), sink)
        .unwrap();
    assert!(matches!(own.leaves(), Err(EngineError::Cancelled)));
    assert!(matches!(own.steps(1), Err(EngineError::Cancelled)));
}

/// What all games about a claim ask for: the steps of every leaf.
#[test]
fn one_pass_is_enough_for_the_rows_of_all_leaves() {
    let (engine, job) = (
        synthetic_llama(22, true),
        job(&request("Once upon a time there was", 40)),
    );
    let outcome = run(&engine, &job);
    let passes = Arc::new(AtomicUsize::new(0));
    let counted = passes.clone();
    let sink = move |event: Event| {
        let starts = matches!(event, Event::Progress { done: 0, total } if total > 1);
        counted.fetch_add(usize::from(starts), Ordering::SeqCst);
        ControlFlow::Continue(())
    };
    let claimed = Claimed::whole(outcome.output.clone(), outcome.claim.units);
    let mut own = engine
        .clone()
        .trace(job.clone(), claimed, Box::new(sink))
        .unwrap();
    let leaves = own.leaves().unwrap().to_vec();
    assert_eq!(passes.load(Ordering::SeqCst), 1);
    let computed = |leaf: &u32| matches!(own.layout().part(*leaf), Some(Part::Rows { .. }));
    let computed: Vec<u32> = (0..leaves.len() as u32).filter(computed).collect();
    assert!(computed.len() > 8, "{computed:?}");
    for leaf in computed {
        assert_eq!(own.steps(leaf).unwrap().last(), leaves.get(leaf as usize));
    }
    assert_eq!(passes.load(Ordering::SeqCst), 2);
}
