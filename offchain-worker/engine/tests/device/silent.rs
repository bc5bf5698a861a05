//! A device that does not answer: what is urgent goes on without it, and so does all else once it is lost.

use std::{
    ops::ControlFlow,
    sync::{
        Condvar, Mutex,
        mpsc::{Receiver, Sender, channel},
    },
    thread,
    time::Duration,
};

use emulator::Piece;
use surety_cuda::{Argument, GpuBackend, NoLanding, Product, Shape};
use surety_engine::{Dropped, EnginePool, Event, Patience, PoolConfig, Priority, Sink};
use tokio::time::timeout;

use super::*;

/// More than anything here takes.
const LONG: Duration = Duration::from_secs(120);

/// Where a machine waits for as long as it is told to.
#[derive(Debug, Default)]
struct Gate {
    /// Whether it is shut, and who waits before it.
    state: Mutex<(bool, usize)>,
    changed: Condvar,
}

impl Gate {
    fn shut(&self, is_shut: bool) {
        self.state.lock().unwrap().0 = is_shut;
        self.changed.notify_all();
    }

    fn pass(&self) {
        let mut state = self.state.lock().unwrap();
        state.1 += 1;
        self.changed.notify_all();
        while state.0 {
            state = self.changed.wait(state).unwrap();
        }
        state.1 -= 1;
    }

    /// Until somebody waits before it.
    fn until_blocked(&self) {
        let state = self.state.lock().unwrap();
        let blocked = self
            .changed
            .wait_timeout_while(state, LONG, |(_, waiting)| *waiting == 0);
        assert!(!blocked.unwrap().1.timed_out(), "nobody came to the gate");
    }

    fn waiting(&self) -> usize {
        self.state.lock().unwrap().1
    }
}

/// A machine that does not say what it has computed before it is told to.
#[derive(Debug)]
struct Blocking(Emulator, Arc<Gate>);

impl GpuBackend for Blocking {
    type Memory = Piece;
    type Landing = NoLanding;

    fn allocate(&mut self, bytes: usize) -> Result<Piece, Error> {
        self.0.allocate(bytes)
    }

    fn write(&mut self, into: &mut Piece, bytes: &[u8]) -> Result<(), Error> {
        self.0.write(into, bytes)
    }

    fn read(&mut self, from: &Piece, bytes: &mut [u8]) -> Result<(), Error> {
        self.1.pass();
        self.0.read(from, bytes)
    }

    fn launch(&mut self, kernel: &str, shape: Shape, arguments: &[Argument<'_, Piece>]) -> Result<(), Error> {
        self.0.launch(kernel, shape, arguments)
    }

    fn product(&mut self, product: &Product<'_, Piece>) -> Result<bool, Error> {
        self.0.product(product)
    }
}

/// A device that blocks when it is told to, a model on it, and a pool with one driver for it.
fn blocking(weights: &LlamaWeights, lost: Duration) -> (Device, Arc<Gate>, Arc<dyn Engine>, EnginePool) {
    let gate = Arc::<Gate>::default();
    let machine = Blocking(Emulator::start(Order::Forwards), gate.clone());
    let silent = Duration::from_millis(200);
    let device = Device::patient(machine, "one that blocks", Patience { silent, lost }).unwrap();
    let devices: Devices = device.clone().into();
    let engine: Arc<dyn Engine> = Arc::new(decoder(weights).on(&devices).unwrap());
    let pool = EnginePool::on(PoolConfig { threads: 2, queue: 8 }, devices).unwrap();
    (device, gate, engine, pool)
}

#[tokio::test]
async fn what_is_urgent_goes_on_while_a_device_does_not_answer() {
    let weights = short(synthetic::llama(4, true));
    let (device, gate, there, pool) = blocking(&weights, LONG);
    let job = job(&request("once", 8));
    let expected = decoder(&weights).run(&job, &mut quiet).unwrap();
    gate.shut(true);
    let stuck = pool.submit(there.clone(), job.clone()).unwrap();
    gate.until_blocked();
    let waits = pool.submit(there.clone(), job.clone()).unwrap();
    // A move of a dispute: an own view of what somebody claims.
    let urgent = {
        let (there, job, output) = (there.clone(), job.clone(), expected.output.clone());
        pool.work(Priority::Urgent, move |sink| there.leaves(&job, &output, sink))
    };
    let leaves = timeout(LONG, urgent.unwrap())
        .await
        .expect("it does not wait for the device");
    assert_eq!(leaves.unwrap(), expected.leaves);
    assert_eq!(gate.waiting(), 1, "the device has not answered meanwhile");
    assert!(device.is_silent());
    let waiting = pool.waiting().map(|(_, jobs)| jobs);
    assert_eq!(waiting, [0, 0, 1], "what is not urgent waits for it");
    gate.shut(false);
    assert_eq!(stuck.await.unwrap(), expected);
    assert_eq!(waits.await.unwrap(), expected);
    assert!(!device.is_silent());
    assert_eq!(device.dropped(), None, "it has answered in the end");
}

#[tokio::test]
async fn a_device_that_stays_silent_is_used_no_more_whether_its_driver_returns_or_not() {
    let weights = short(synthetic::llama(4, true));
    let (device, gate, there, pool) = blocking(&weights, Duration::from_millis(400));
    let job = job(&request("once", 8));
    let expected = decoder(&weights).run(&job, &mut quiet).unwrap();
    gate.shut(true);
    let stuck = pool.submit(there.clone(), job.clone()).unwrap();
    gate.until_blocked();
    let next = pool.submit(there.clone(), job.clone()).unwrap();
    let next = timeout(LONG, next)
        .await
        .expect("it does not wait for the device");
    assert_eq!(next.unwrap(), expected);
    assert_eq!(gate.waiting(), 1, "the device has not answered meanwhile");
    assert!(
        matches!(device.dropped(), Some(Dropped::Failed(Error::Lost(_)))),
        "{:?}",
        device.dropped()
    );
    gate.shut(false);
    let found = stuck.await;
    assert!(
        matches!(
            found,
            Err(EngineError::Device {
                error: Error::Lost(_),
                ..
            })
        ),
        "{found:?}"
    );
}

/// Whoever came before it was known waits for a turn, and not without an end.
#[test]
fn who_waits_behind_a_pass_that_does_not_end_is_told() {
    let weights = short(synthetic::llama(4, true));
    let (device, gate, there, _pool) = blocking(&weights, LONG);
    let job = job(&request("once", 8));
    let expected = decoder(&weights).run(&job, &mut quiet).unwrap();
    // Its own first pass is let through, so that it stays on the device.
    thread::scope(|scope| {
        let (begun, is_begun) = channel();
        let (go, wait) = channel::<()>();
        let mut sink = Once {
            begun: Some(begun),
            wait,
        };
        let (engine, own) = (there.clone(), job.clone());
        let behind = scope.spawn(move || engine.run(&own, &mut sink));
        is_begun.recv().unwrap();
        gate.shut(true);
        let (engine, own) = (there.clone(), job.clone());
        let stuck = scope.spawn(move || engine.run(&own, &mut quiet));
        gate.until_blocked();
        drop(go);
        let told = behind.join().unwrap();
        let is_told = matches!(
            told,
            Err(EngineError::Device {
                error: Error::NoAnswer,
                ..
            })
        );
        let is_blocked = gate.waiting() == 1;
        gate.shut(false);
        assert!(is_told, "{told:?}");
        assert!(is_blocked, "the device has not answered meanwhile");
        assert_eq!(stuck.join().unwrap().unwrap(), expected);
    });
    assert_eq!(device.dropped(), None);
    assert_eq!(there.run(&job, &mut quiet).unwrap(), expected, "tried again");
}

/// Waits at the first token.
struct Once {
    begun: Option<Sender<()>>,
    wait: Receiver<()>,
}

impl Sink for Once {
    fn event(&mut self, event: Event) -> ControlFlow<()> {
        if matches!(event, Event::Token { .. })
            && let Some(begun) = self.begun.take()
        {
            begun.send(()).unwrap();
            self.wait.recv().unwrap_err();
        }
        ControlFlow::Continue(())
    }
}
