//! A device that does not answer: what is urgent goes on without it, and so does all else once it is lost.

use std::{
    ops::ControlFlow,
    sync::mpsc::{Receiver, Sender, channel},
    thread,
    time::{Duration, Instant},
};

use failing::Gate;
use surety_engine::{
    Dropped, EnginePool, Event, Patience, PoolConfig, Priority, Sink,
    serving::{Batcher, ClientKey, Limits, Refusal, Server},
};
use tokio::time::timeout;

use super::{served::finish, *};

/// More than anything here takes.
const LONG: Duration = Duration::from_secs(120);

/// A device that blocks when it is told to, a model on it, and a pool with one driver for it.
fn blocking(weights: &LlamaWeights, lost: Duration) -> (Device, Arc<Gate>, Arc<dyn Engine>, EnginePool) {
    let (machine, switch) = Failing::new(Emulator::start(Order::Forwards));
    let silent = Duration::from_millis(200);
    let device = Device::patient(machine, "one that blocks", Patience { silent, lost }).unwrap();
    let devices: Devices = device.clone().into();
    let engine: Arc<dyn Engine> = Arc::new(decoder(weights).on(&devices).unwrap());
    let pool = EnginePool::on(PoolConfig { threads: 2, queue: 8 }, devices).unwrap();
    (device, switch.answers, engine, pool)
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
    let error = device_error(stuck.await);
    assert!(matches!(error, Error::Lost(_)), "{error}");
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
        let is_blocked = gate.waiting() == 1;
        gate.shut(false);
        assert_eq!(device_error(told), Error::NoAnswer);
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

/// Looks again and again until it is so.
fn until(is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < LONG, "it does not come");
        thread::sleep(Duration::from_millis(5));
    }
}

/// While somebody else's pass does not end, what begins is not begun there, and once that ends it is.
#[tokio::test]
async fn answers_that_begin_while_a_device_does_not_answer_are_the_processors() {
    let weights = short(synthetic::llama(4, true));
    let (device, gate, there, pool) = blocking(&weights, LONG);
    let on_device = there.clone().decoder_on_devices().unwrap();
    let server = Server::start(on_device, Limits::default(), 2).unwrap();
    let handle = server.handle();
    let job = job(&request("once", 8));
    let expected = decoder(&weights).run(&job, &mut quiet).unwrap();
    assert!(handle.is_on_device());
    gate.shut(true);
    let stuck = pool.submit(there, job.clone()).unwrap();
    gate.until_blocked();
    until(|| device.is_silent());
    assert!(!handle.is_on_device());
    let stream = handle.submit(ClientKey::default(), &job).unwrap();
    let ended = timeout(LONG, stream.finish())
        .await
        .expect("it does not wait for the device");
    assert_eq!(ended.unwrap().outcome, Some(expected.clone()));
    assert_eq!(gate.waiting(), 1, "the device has not answered meanwhile");
    assert!(!handle.is_stuck());
    gate.shut(false);
    assert_eq!(stuck.await.unwrap(), expected);
    assert!(handle.is_on_device());
}

/// It stays where it has begun, and nobody would look at what the device chooses for it.
#[test]
fn an_answer_that_began_while_a_device_did_not_answer_has_no_token_from_it() {
    let weights = short(synthetic::llama(4, true));
    let (machine, switch) = Failing::new(Emulator::start(Order::Forwards));
    let patience = Patience {
        silent: Duration::from_millis(200),
        lost: LONG,
    };
    let device = Device::patient(machine, "one that blocks", patience).unwrap();
    let there = Arc::new(decoder(&weights).on(&device.clone().into()).unwrap());
    let mut batcher = Batcher::new(there.clone(), Limits::default());
    let job = job(&request("once", 8));
    let expected = decoder(&weights).run(&job, &mut quiet).unwrap();
    switch.answers.shut(true);
    let stream = thread::scope(|scope| {
        let stuck = scope.spawn(|| there.run(&job, &mut quiet));
        switch.answers.until_blocked();
        until(|| device.is_silent());
        let stream = batcher.handle().submit(ClientKey::default(), &job).unwrap();
        let has_begun = batcher.step();
        switch.answers.shut(false);
        assert!(has_begun);
        assert_eq!(stuck.join().unwrap().unwrap(), expected);
        stream
    });
    assert!(!device.is_silent());
    switch.set(Fails::TurnsLogits);
    assert_eq!(finish(&mut batcher, vec![stream]), [Some(expected)]);
}

/// Its own pass does not end: also once that device is used no more, until the driver returns.
#[test]
fn a_batcher_that_waits_for_a_device_says_so_and_keeps_nobody_who_shuts_it_down() {
    let weights = short(synthetic::llama(4, true));
    let (device, gate, there, _pool) = blocking(&weights, Duration::from_millis(400));
    let on_device = there.decoder_on_devices().unwrap();
    let server = Server::start(on_device, Limits::default(), 2).unwrap();
    let handle = server.handle();
    let job = job(&request("once", 8));
    gate.shut(true);
    let _stream = handle.submit(ClientKey::default(), &job).unwrap();
    gate.until_blocked();
    until(|| handle.is_stuck());
    until(|| device.dropped().is_some());
    assert!(handle.is_stuck());
    let (ended, wait) = channel();
    thread::spawn(move || {
        drop(server);
        ended.send(()).ok();
    });
    assert_eq!(wait.recv_timeout(LONG), Ok(()), "it waits for the device");
    assert_eq!(gate.waiting(), 1, "the device has not answered meanwhile");
    let refused = handle.submit(ClientKey::default(), &job).err();
    assert!(matches!(refused, Some(Refusal::Closed)), "{refused:?}");
    gate.shut(false);
    until(|| !handle.is_stuck());
}
