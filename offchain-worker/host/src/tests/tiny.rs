//! A decoder of the exact tier that is as small as can be, and an engine that counts what it computes.

use std::{
    ops::ControlFlow,
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use surety_engine::{
    Claimed, Engine, EngineError, Event, Job, Outcome, Sink,
    exact::{ExactLlama, OwnTrace},
};
use surety_exact::{SplitMix64, Turns, groups};
use surety_models::{
    Form,
    weights::{Linear, LlamaLayer, LlamaWeights, Norm, Quanta, Table},
};
use surety_types::{
    input::IdBounds,
    model::{ModelFamily, ModelManifest, Operation, Pooling, TextForm, Tier},
};

const WIDTH: usize = 64;
const END: u32 = 59;
pub const BOUNDS: IdBounds = IdBounds {
    vocabulary: 60,
    positions: 64,
};

fn q(dice: &mut SplitMix64, count: usize) -> Quanta {
    Quanta::Int8((0..count).map(|_| (dice.next() % 255) as i8).collect())
}

fn linear(dice: &mut SplitMix64, inputs: usize, outputs: usize) -> Linear {
    Linear {
        inputs,
        outputs,
        q: q(dice, inputs * outputs),
        scales: vec![0.002; outputs * groups(inputs)],
        bias: None,
    }
}

fn norm() -> Norm {
    Norm {
        weight: vec![1.0; WIDTH],
        bias: None,
        epsilon: 1e-6,
    }
}

fn layer(dice: &mut SplitMix64) -> LlamaLayer {
    LlamaLayer {
        attention_norm: norm(),
        attention_smoothing: None,
        query: linear(dice, WIDTH, 64),
        key: linear(dice, WIDTH, 32),
        value: linear(dice, WIDTH, 32),
        head_norms: None,
        output_smoothing: None,
        output: linear(dice, 64, WIDTH),
        mlp_norm: norm(),
        mlp_smoothing: None,
        gate: linear(dice, WIDTH, 64),
        up: linear(dice, WIDTH, 64),
        down_smoothing: None,
        down: linear(dice, 64, WIDTH),
    }
}

pub fn weights() -> LlamaWeights {
    let dice = &mut SplitMix64::new(4);
    LlamaWeights {
        heads: 2,
        kv_heads: 1,
        head_dim: 32,
        context: BOUNDS.positions as usize,
        turns: (0..16).map(|i| Turns((u64::MAX / 7) >> i)).collect(),
        tokens: Table {
            rows: BOUNDS.vocabulary as usize,
            width: WIDTH,
            q: q(dice, BOUNDS.vocabulary as usize * WIDTH),
            scales: vec![0.01; BOUNDS.vocabulary as usize * groups(WIDTH)],
        },
        layers: (0..2).map(|_| layer(dice)).collect(),
        norm: norm(),
        head: Some(linear(dice, WIDTH, BOUNDS.vocabulary as usize)),
    }
}

pub fn manifest(weights: &LlamaWeights) -> ModelManifest {
    ModelManifest {
        name: b"tiny".to_vec().try_into().unwrap(),
        family: ModelFamily::Llama,
        tier: Tier::Exact,
        operations: vec![Operation::Generate].try_into().unwrap(),
        weights: Default::default(),
        weights_bytes: 0,
        text: TextForm {
            stop: vec![END].try_into().unwrap(),
            ..TextForm::default()
        },
        config: Default::default(),
        exact: weights.form(Pooling::Mean).ok(),
    }
}

/// Counts passes over all positions, each of which waits until it is let, and how far they come.
pub struct Counting {
    inner: Arc<dyn Engine>,
    passes: Arc<AtomicUsize>,
    steps: Arc<AtomicUsize>,
    /// How many of them are let.
    allowed: Arc<(Mutex<usize>, Condvar)>,
}

impl Counting {
    pub fn new() -> Self {
        let weights = weights();
        let engine = ExactLlama::new(manifest(&weights), weights).unwrap();
        Self {
            inner: Arc::new(engine),
            passes: Arc::default(),
            steps: Arc::default(),
            allowed: Arc::new((Mutex::new(usize::MAX), Condvar::new())),
        }
    }

    pub fn passes(&self) -> usize {
        self.passes.load(Ordering::SeqCst)
    }

    /// Steps that were begun of all passes, after their first.
    pub fn steps(&self) -> usize {
        self.steps.load(Ordering::SeqCst)
    }

    /// Lets so many passes in all go on.
    pub fn allow(&self, passes: usize) {
        *self.allowed.0.lock().unwrap() = passes;
        self.allowed.1.notify_all();
    }

    /// The layout of a claim, and what comes of a job.
    pub fn honest(&self, job: &Job) -> (Outcome, OwnTrace) {
        let go_on = |_: Event| ControlFlow::Continue(());
        let outcome = self.inner.run(job, &mut go_on.clone()).unwrap();
        let claimed = Claimed::whole(outcome.output.clone(), outcome.claim.units);
        let trace = self.inner.clone().trace(job.clone(), claimed, Box::new(go_on));
        (outcome, trace.unwrap())
    }
}

impl Engine for Counting {
    fn manifest(&self) -> &ModelManifest {
        self.inner.manifest()
    }

    fn run(&self, job: &Job, sink: &mut dyn Sink) -> Result<Outcome, EngineError> {
        self.inner.run(job, sink)
    }

    fn trace(
        self: Arc<Self>,
        job: Job,
        claimed: Claimed,
        mut sink: Box<dyn Sink + Send>,
    ) -> Result<OwnTrace, EngineError> {
        let (passes, steps) = (self.passes.clone(), self.steps.clone());
        let allowed = self.allowed.clone();
        let counted = move |event: Event| {
            match event {
                // What takes no pass over the model reports one unit.
                Event::Progress { done: 0, total } if total > 1 => {
                    let number = passes.fetch_add(1, Ordering::SeqCst) + 1;
                    let (allowed, changed) = &*allowed;
                    let waited = changed.wait_while(allowed.lock().unwrap(), |allowed| *allowed < number);
                    drop(waited.unwrap());
                }
                _ => drop(steps.fetch_add(1, Ordering::SeqCst)),
            }
            sink.event(event)
        };
        self.inner.clone().trace(job, claimed, Box::new(counted))
    }
}
