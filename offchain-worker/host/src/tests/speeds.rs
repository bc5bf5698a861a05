//! How fast a machine is, whatever else it does meanwhile.

use std::{sync::Arc, time::Duration};

use surety_engine::{Engine, EngineError, EnginePool, Job, JobSink, Outcome, PoolConfig, Sink, Ticket};
use surety_types::{
    input::{IdBounds, InputReader, Work, encode_items, encode_prompt},
    model::{Activation, Architecture, ExactForm, ModelManifest, Operation, Opset, Pooling, Precision, Tier},
    task::ResultClaim,
};
use surety_worker_core::Event;

use super::{
    engine::{Puppet, manifest},
    generation::request,
};
use crate::{Engines, Vitals, warm_up};

/// A generation that is under way, what lets it go on, and what runs it.
async fn generating() -> (Ticket<Outcome>, Arc<Puppet>, Engines) {
    let puppet = Arc::<Puppet>::default();
    let pool = EnginePool::new(PoolConfig { threads: 1, queue: 4 }).unwrap();
    let engine: Arc<dyn Engine> = puppet.clone();
    let engines = Engines::new(pool, [engine], Arc::new(Vitals::new().unwrap()));
    let job = Job {
        operation: Operation::Generate,
        input: request(1),
        units_max: 10,
    };
    let generation = engines.submit(&manifest().id(), job).unwrap();
    while puppet.runs() == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    (generation, puppet, engines)
}

/// What a job is measured to take that stands aside for this work, in milliseconds.
async fn measured_beneath(
    urgent: impl FnOnce(&mut JobSink) -> Result<(), EngineError> + Send + 'static,
) -> u64 {
    let (generation, puppet, engines) = generating().await;
    engines.answer(urgent).unwrap().await.unwrap_err();
    puppet.let_tokens(1);
    generation.await.unwrap();
    let measured = engines.take_measured();
    let [Event::Measured { millis, .. }] = measured.into_iter().collect::<Vec<_>>()[..] else {
        panic!("one measurement");
    };
    millis
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_job_stands_aside_for_does_not_make_its_kind_of_work_look_slow() {
    let slow_move = |_: &mut JobSink| {
        std::thread::sleep(Duration::from_millis(500));
        Err(EngineError::NotInTrace)
    };
    let millis = measured_beneath(slow_move).await;
    assert!(millis < 400, "{millis}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_is_stopped_is_known_to_take_longer_than_it_had() {
    let (generation, _, engines) = generating().await;
    drop(generation);
    let mut measured = engines.take_measured();
    while measured.is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
        measured = engines.take_measured();
    }
    let measured: Vec<Event> = measured.into_iter().collect();
    let [
        Event::TookLonger {
            operation: Operation::Generate,
            units: 10,
            ..
        },
    ] = measured[..]
    else {
        panic!("{measured:?}");
    };
}

/// Takes what each engine takes, computes nothing, and says how much that was.
struct Strict(ModelManifest, IdBounds);

impl Strict {
    fn check(&self, job: &Job) -> Result<u32, EngineError> {
        let Self(_, bounds) = self;
        let work = Work {
            operation: job.operation,
            input_bytes: job.input.len() as u32,
            units_max: job.units_max,
        };
        work.check_shape(Some(bounds.positions))?;
        let reader = InputReader::new(&job.input, *bounds);
        // What no honest client would send is read as something else.
        let (sent, units) = match job.operation {
            Operation::Embed => {
                let items: Vec<_> = (0..job.units_max).map(|item| reader.item(item)).collect();
                (encode_items(&items, bounds), job.units_max)
            }
            Operation::Generate => {
                let (prompt, settings) = (reader.prompt(), reader.settings());
                let units = prompt.len() as u32 + settings.new_tokens(work.room(bounds.positions));
                (encode_prompt(&prompt, &settings, bounds), units)
            }
        };
        assert_eq!(sent.as_ref(), Ok(&job.input));
        Ok(units)
    }
}

impl Engine for Strict {
    fn manifest(&self) -> &ModelManifest {
        &self.0
    }

    fn run(&self, job: &Job, _: &mut dyn Sink) -> Result<Outcome, EngineError> {
        let units = self.check(job)?;
        Ok(Outcome {
            output: Vec::new(),
            claim: ResultClaim {
                output: Default::default(),
                trace_root: Default::default(),
                units,
            },
            leaves: Vec::new(),
        })
    }
}

fn engines_of(engine: impl Engine + 'static) -> Engines {
    let pool = EnginePool::new(PoolConfig { threads: 1, queue: 4 }).unwrap();
    let engine: Arc<dyn Engine> = Arc::new(engine);
    Engines::new(pool, [engine], Arc::new(Vitals::new().unwrap()))
}

/// A model of the exact tier with so many tokens and positions.
pub fn exact(vocabulary: u32, positions: u32) -> ModelManifest {
    let architecture = Architecture {
        vocabulary,
        width: 4,
        layers: 1,
        heads: 1,
        kv_heads: 1,
        head_dim: 4,
        inner: 4,
        positions,
        epsilon: 1,
        activation: Activation::Gelu,
        smoothed: Default::default(),
        tied: false,
        precision: Precision::Int8,
        pooling: Pooling::Mean,
    };
    ModelManifest {
        tier: Tier::Exact,
        exact: Some(ExactForm {
            opset: Opset::V1,
            weight_root: Default::default(),
            architecture,
        }),
        ..manifest()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_never_measured_is_measured_on_inputs_that_any_model_takes() {
    let of_manifest = IdBounds {
        vocabulary: 30_000,
        positions: 512,
    };
    let small = [(1, 2), (5, 3), (100, 20), (50_000, 4_096)];
    let small = small.map(|(vocabulary, positions)| {
        let bounds = IdBounds {
            vocabulary,
            positions,
        };
        (exact(vocabulary, positions), bounds)
    });
    for (manifest, bounds) in small.into_iter().chain([(manifest(), of_manifest)]) {
        let (model, engines) = (manifest.id(), engines_of(Strict(manifest, bounds)));
        let unknown = Operation::ALL.map(|operation| (model, operation)).to_vec();
        warm_up::measure(&engines, unknown).await;
        let measured = engines.take_measured().into_iter().map(|event| match event {
            Event::Measured { operation, units, .. } => (operation, units > 0),
            other => panic!("{other:?}"),
        });
        let both = Operation::ALL.map(|operation| (operation, true));
        assert_eq!(measured.collect::<Vec<_>>(), both, "{bounds:?}");
    }
}
