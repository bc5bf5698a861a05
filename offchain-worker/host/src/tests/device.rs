//! A provider and a verifier whose model is on devices, played by the C++ program of `surety-cuda`'s tests.

#[allow(dead_code)]
#[path = "../../../cuda/tests/emulator/mod.rs"]
mod emulator;

use std::{
    ops::ControlFlow,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use emulator::{Emulator, Order, Piece};
use surety_chain_client::Call;
use surety_cuda::{Argument, Error, GpuBackend, NoLanding, Product, Shape};
use surety_engine::{
    Device, Devices, Engine, EnginePool, Event, Job, Outcome, PoolConfig, exact::ExactLlama,
};
use surety_types::{model::Operation, task::ResultClaim};

use super::{
    audits::{announced, until_audit_revealed},
    commits,
    generation::request,
    tiny,
    world::World,
};
use crate::Pauses;

/// It is gone once it is told so.
#[derive(Debug)]
struct Vanishing(Emulator, Arc<AtomicBool>);

impl Vanishing {
    fn there(&self) -> Result<(), Error> {
        match self.1.load(Ordering::SeqCst) {
            true => Err(Error::Lost("it was told to".into())),
            false => Ok(()),
        }
    }
}

impl GpuBackend for Vanishing {
    type Memory = Piece;
    type Landing = NoLanding;

    fn allocate(&mut self, bytes: usize) -> Result<Piece, Error> {
        self.there()?;
        self.0.allocate(bytes)
    }

    fn write(&mut self, into: &mut Piece, bytes: &[u8]) -> Result<(), Error> {
        self.there()?;
        self.0.write(into, bytes)
    }

    fn read(&mut self, from: &Piece, bytes: &mut [u8]) -> Result<(), Error> {
        self.there()?;
        self.0.read(from, bytes)
    }

    fn launch(&mut self, kernel: &str, shape: Shape, arguments: &[Argument<'_, Piece>]) -> Result<(), Error> {
        self.there()?;
        self.0.launch(kernel, shape, arguments)
    }

    fn product(&mut self, product: &Product<'_, Piece>) -> Result<bool, Error> {
        self.there()?;
        self.0.product(product)
    }
}

fn model() -> ExactLlama {
    let weights = tiny::weights();
    ExactLlama::new(tiny::manifest(&weights), weights).unwrap()
}

/// Two devices, and what makes the first of them vanish.
fn two() -> (Devices, Arc<AtomicBool>) {
    let gone = Arc::<AtomicBool>::default();
    let device = |gone| Device::on(Vanishing(Emulator::start(Order::Forwards), gone), "played").unwrap();
    let devices = [device(gone.clone()), device(Arc::default())];
    (devices.into_iter().collect(), gone)
}

/// What the processor alone has.
fn expected(input: &[u8]) -> Outcome {
    let job = Job {
        operation: Operation::Generate,
        input: input.to_vec(),
        units_max: 10,
    };
    model()
        .run(&job, &mut |_: Event| ControlFlow::Continue(()))
        .unwrap()
}

/// The claims that auditors have opened.
fn opened(world: &World) -> Vec<ResultClaim> {
    let calls = world.chain.calls().into_iter().map(|(_, call)| call);
    let claims = calls.filter_map(|call| match call {
        Call::RevealAudit { claim, .. } => Some(claim),
        _ => None,
    });
    claims.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_two_devices_compute_is_committed_and_audited_as_the_processor_has_it() {
    let (devices, _) = two();
    let world = World::with(Arc::new(model().on(&devices).unwrap())).await;
    let provider = world.start();
    let input = request(4);
    let task = world.post_for(Operation::Generate, &input).await;
    world.bid_and_assign(task).await;
    let output = world.until_audited(task).await;
    let verifier = world.start_verifier();
    world.until(|| announced(&world) == 1).await;
    until_audit_revealed(&world, task).await;
    let expected = expected(&input).claim;
    assert_eq!((output, opened(&world)), (expected.output, vec![expected]));
    assert!(devices.iter().all(|device| device.dropped().is_none()));
    verifier.stop().await;
    provider.stop().await;
}

/// The attempt that the device was lost in gives nothing. The next one is the other device's.
#[tokio::test(flavor = "multi_thread")]
async fn a_task_goes_on_where_a_device_has_vanished() {
    let (devices, gone) = two();
    let world = World::with(Arc::new(model().on(&devices).unwrap())).await;
    gone.store(true, Ordering::SeqCst);
    let provider = world.start();
    let input = request(4);
    let task = world.post_for(Operation::Generate, &input).await;
    world.bid_and_assign(task).await;
    world.until_final(|| !commits(&world).is_empty()).await;
    assert_eq!(world.until_audited(task).await, expected(&input).claim.output);
    let used: Vec<bool> = devices.iter().map(|device| device.dropped().is_none()).collect();
    assert_eq!(used, [false, true]);
    provider.stop().await;
    assert_eq!(commits(&world).len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_for_a_device_concerns_vectors_and_no_tokens_which_the_processor_makes() {
    let sizes = PoolConfig { threads: 1, queue: 4 };
    let pool = Arc::new(EnginePool::on(sizes, two().0).unwrap());
    let pauses = Pauses::new(&pool);
    pauses.note(None);
    let pause = pauses.begin(Duration::from_secs(600)).await.unwrap();
    assert!(pauses.concerns(Operation::Embed));
    assert!(!pauses.concerns(Operation::Generate));
    drop(pause);
    assert!(!pauses.concerns(Operation::Embed));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_for_a_device_that_answers_over_channels_concerns_tokens_as_well() {
    let sizes = PoolConfig { threads: 1, queue: 4 };
    let pool = Arc::new(EnginePool::on(sizes, two().0).unwrap());
    let pauses = Pauses::new(&pool);
    pauses.note(None);
    pauses.tokens_on_devices();
    assert!(!pauses.concerns(Operation::Generate));
    let pause = pauses.begin(Duration::from_secs(600)).await.unwrap();
    assert!(pauses.concerns(Operation::Generate));
    drop(pause);
    assert!(!pauses.concerns(Operation::Generate));
}
