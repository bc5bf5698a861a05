//! Several devices: a task on all of them, and what is left when one of them fails.

use std::{ops::ControlFlow, sync::Barrier, time::Duration};

use common::trace::play;
use surety_dispute_game::bisection::{GameError, Shape, Side, State, Trace};
use surety_engine::{Dropped, EnginePool, Event, Outcome, PoolConfig, Priority, exact::OwnTrace};
use surety_model_trace::Part;
use surety_types::ContentHash;
use tokio::time::timeout;

use super::*;

/// Two devices, and who tells each to fail.
fn two() -> (Devices, [Switch; 2]) {
    let (machines, switches): (Vec<_>, Vec<_>) = (0..2)
        .map(|_| Failing::new(Emulator::start(Order::Forwards)))
        .unzip();
    let devices = machines
        .into_iter()
        .zip(["the first", "the second"])
        .map(|(machine, name)| Device::on(machine, name).unwrap())
        .collect();
    (devices, switches.try_into().ok().unwrap())
}

/// Whether each was given work since the last time that was asked.
fn worked(switches: &[Switch; 2]) -> [bool; 2] {
    switches.each_ref().map(|switch| switch.take_launches() > 0)
}

/// Whether each is still used.
fn used(devices: &Devices) -> Vec<bool> {
    devices.iter().map(|device| device.dropped().is_none()).collect()
}

const LINES: &str = "a b c\nz\nq w e r t y u i o p\nm m\nc c c\nx y";

fn view(engine: &Arc<dyn Engine>, job: &Job, output: &[u8], units: u32) -> OwnTrace {
    let claimed = Claimed::whole(output.to_vec(), units);
    let trace = engine.clone().trace(job.clone(), claimed, common::trace::quiet());
    trace.unwrap()
}

fn weight_root(engine: &Arc<dyn Engine>) -> ContentHash {
    engine.manifest().exact.as_ref().unwrap().weight_root
}

/// A provider's commitment, an auditor's answer, and the disputes that follow when somebody lies: `there`, on
/// devices, says what `here` says, and wins over whoever has other weights.
fn live(here: &Arc<dyn Engine>, there: &Arc<dyn Engine>, other: &Arc<dyn Engine>, job: &Job) {
    let expected = here.run(job, &mut quiet).unwrap();
    let outcome = there.run(job, &mut quiet).unwrap();
    assert_eq!(outcome, expected, "what is committed to");
    let audited = there.audit(job, &outcome.output, &mut quiet).unwrap();
    assert_eq!(audited, expected.claim, "what an auditor opens");
    let lie = other.run(job, &mut quiet).unwrap();
    assert_ne!(
        there.audit(job, &lie.output, &mut quiet).unwrap(),
        lie.claim,
        "a lie is found out"
    );
    // And challenged: the liar has nothing to show for its weights.
    let mut theirs = view(other, job, &lie.output, lie.claim.units);
    let mut mine = view(there, job, &lie.output, lie.claim.units);
    let (state, refused) = play(lie.claim.trace_root, (&mut theirs, &mut mine), weight_root(here));
    assert_eq!(refused, Some(GameError::Unproven), "{state:?}");
    // Nor does it win where it challenges what is right.
    let mut mine = view(there, job, &outcome.output, outcome.claim.units);
    let mut theirs = view(other, job, &outcome.output, outcome.claim.units);
    let (state, refused) = play(
        outcome.claim.trace_root,
        (&mut mine, &mut theirs),
        weight_root(here),
    );
    assert_eq!(refused, None);
    assert!(
        matches!(state, State::Over(over) if over.winner == Side::Defender),
        "{state:?}"
    );
}

#[test]
fn a_task_of_an_encoder_is_committed_audited_and_disputed_over_two_devices() {
    let (devices, switches) = two();
    let mut weights = bert(2);
    synthetic::flip(&mut weights.layers[1].up.q, 5, 0x40);
    let manifest = synthetic::manifest_pooling(ModelFamily::Bert, &weights, Pooling::Mean);
    let other: Arc<dyn Engine> = Arc::new(ExactBert::new(manifest, weights).unwrap());
    let here: Arc<dyn Engine> = Arc::new(encoder(2, Pooling::Mean));
    let there: Arc<dyn Engine> = Arc::new(encoder(2, Pooling::Mean).on(&devices).unwrap());
    worked(&switches);
    let job = embed_job(LINES);
    assert_eq!(
        there.run(&job, &mut quiet).unwrap(),
        here.run(&job, &mut quiet).unwrap()
    );
    assert_eq!(worked(&switches), [true; 2], "one job is on both");
    let items = |engine: &Arc<dyn Engine>| engine.audit_items(&job, &[0, 2, 5], &mut quiet).unwrap();
    assert_eq!(items(&there), items(&here));
    live(&here, &there, &other, &job);
    assert_eq!(used(&devices), [true; 2]);
}

#[test]
fn a_task_of_a_decoder_is_committed_audited_and_disputed_over_two_devices() {
    let (devices, switches) = two();
    let weights = short(synthetic::llama(21, false));
    let mut others = weights.clone();
    synthetic::flip(&mut others.layers[2].up.q, 640 + 5, 0x80);
    let other: Arc<dyn Engine> = Arc::new(decoder(&others));
    let here: Arc<dyn Engine> = Arc::new(decoder(&weights));
    let there: Arc<dyn Engine> = Arc::new(decoder(&weights).on(&devices).unwrap());
    worked(&switches);
    live(&here, &there, &other, &job(&request("Once upon", 12)));
    assert_eq!(worked(&switches), [true; 2], "its passes take turns");
    assert_eq!(used(&devices), [true; 2]);
}

/// Each generation stays on one of them.
#[tokio::test]
async fn a_pool_has_a_job_on_each_device() {
    let (devices, switches) = two();
    let weights = short(synthetic::llama(4, true));
    let there: Arc<dyn Engine> = Arc::new(decoder(&weights).on(&devices).unwrap());
    let sizes = PoolConfig { threads: 2, queue: 8 };
    let pool = EnginePool::on(sizes, devices).unwrap();
    worked(&switches);
    let jobs = ["once", "upon", "a time", "there"].map(|prompt| job(&request(prompt, 6)));
    let tickets: Vec<_> = jobs
        .iter()
        .map(|job| pool.submit(there.clone(), job.clone()).unwrap())
        .collect();
    for (ticket, job) in tickets.into_iter().zip(&jobs) {
        assert_eq!(
            ticket.await.unwrap(),
            decoder(&weights).run(job, &mut quiet).unwrap()
        );
    }
    assert_eq!(worked(&switches), [true; 2]);
}

/// Each with its share of the threads.
#[tokio::test]
async fn a_pool_runs_as_many_jobs_at_once_as_it_has_devices() {
    let (devices, _) = two();
    let pool = EnginePool::on(PoolConfig { threads: 3, queue: 8 }, devices).unwrap();
    let both = Arc::new(Barrier::new(2));
    let tickets = [(); 2].map(|()| {
        let both = both.clone();
        let meet = pool.work(Priority::Inference, move |_| {
            both.wait();
            Ok(rayon::current_num_threads())
        });
        meet.unwrap()
    });
    let mut shares = Vec::new();
    for ticket in tickets {
        let met = timeout(Duration::from_secs(60), ticket).await;
        shares.push(met.unwrap().unwrap());
    }
    shares.sort_unstable();
    assert_eq!(shares, [1, 2]);
}

/// Runs a job in which a device fails once there is a token, until it is computed.
fn generated(engine: &ExactLlama, job: &Job, mut fail: impl FnMut()) -> [Result<Outcome, EngineError>; 2] {
    let mut failing = |event: Event| {
        if matches!(event, Event::Token { index: 2, .. }) {
            fail();
        }
        ControlFlow::Continue(())
    };
    [engine.run(job, &mut failing), engine.run(job, &mut quiet)]
}

#[test]
fn a_device_that_vanishes_in_a_generation_leaves_the_others() {
    let weights = short(synthetic::llama(4, true));
    let job = job(&request("once", 8));
    let expected = decoder(&weights).run(&job, &mut quiet).unwrap();
    let (devices, switches) = two();
    let there = decoder(&weights).on(&devices).unwrap();
    // Which of them has the job is seen by what it does.
    worked(&switches);
    let mut gone = None;
    let [broken, again] = generated(&there, &job, || {
        let place = switches
            .iter()
            .position(|switch| switch.take_launches() > 0)
            .unwrap();
        switches[place].set(Fails::Vanishes);
        gone = Some(place);
    });
    let gone = gone.unwrap();
    let names = ["the first", "the second"];
    let Err(EngineError::Device { device, error }) = broken else {
        panic!("{broken:?}");
    };
    assert_eq!(device, names[gone]);
    assert!(matches!(error, Error::Lost(_)), "{error}");
    assert_eq!(again.unwrap(), expected);
    let mut left = [true; 2];
    left[gone] = false;
    assert_eq!(used(&devices), left);
    assert_eq!(worked(&switches), left, "the other one has computed it");
    // Whatever comes next is there as well.
    assert_eq!(there.run(&job, &mut quiet).unwrap(), expected);
    assert_eq!(worked(&switches), left);
}

#[test]
fn a_device_that_vanishes_in_a_job_of_both_ends_it_and_the_other_has_the_next() {
    let job = embed_job(LINES);
    let expected = encoder(2, Pooling::Mean).run(&job, &mut quiet).unwrap();
    let (devices, switches) = two();
    let there = encoder(2, Pooling::Mean).on(&devices).unwrap();
    switches[1].set(Fails::Vanishes);
    let broken = there.run(&job, &mut quiet);
    assert!(
        matches!(&broken, Err(EngineError::Device { device, .. }) if device == "the second"),
        "{broken:?}"
    );
    worked(&switches);
    assert_eq!(there.run(&job, &mut quiet).unwrap(), expected);
    assert_eq!(worked(&switches), [true, false]);
    assert_eq!(used(&devices), [true, false]);
}

/// An item of each is computed again: of an item that is all that it had, it is found out at once.
#[test]
fn a_device_that_computes_something_else_is_the_only_one_that_is_dropped() {
    let weights = short(synthetic::llama(4, true));
    // One item for each.
    let job = embed_job("a b c\nx y");
    let expected = encoder(2, Pooling::Mean).run(&job, &mut quiet).unwrap();
    for bad in [0, 1] {
        let (devices, switches) = two();
        let there = encoder(2, Pooling::Mean).on(&devices).unwrap();
        switches[bad].set(Fails::NormsNothing);
        let found = there.run(&job, &mut quiet);
        assert!(
            matches!(found, Err(EngineError::DeviceDiffers { .. })),
            "{found:?}"
        );
        assert_eq!(there.run(&job, &mut quiet).unwrap(), expected);
        let dropped: Vec<_> = devices
            .iter()
            .map(|device| device.dropped() == Some(&Dropped::Differs))
            .collect();
        assert_eq!(dropped, [bad == 0, bad == 1]);
        // A model that is loaded now is on the other one alone.
        let next = decoder(&weights).on(&devices).unwrap();
        worked(&switches);
        let generate = self::job(&request("once", 4));
        let generated = next.run(&generate, &mut quiet).unwrap();
        assert_eq!(generated, decoder(&weights).run(&generate, &mut quiet).unwrap());
        assert_eq!(worked(&switches), [bad != 0, bad != 1]);
    }
}

#[test]
fn a_device_that_differs_from_the_start_is_offered_nothing() {
    let job = embed_job(LINES);
    let (devices, switches) = two();
    switches[0].set(Fails::FlipsBits);
    let there = encoder(2, Pooling::Mean).on(&devices).unwrap();
    assert_eq!(used(&devices), [false, true]);
    worked(&switches);
    let expected = encoder(2, Pooling::Mean).run(&job, &mut quiet).unwrap();
    assert_eq!(there.run(&job, &mut quiet).unwrap(), expected);
    assert_eq!(worked(&switches), [false, true]);
    // With none left a model is refused; those that are loaded go on with the processor.
    switches[1].set(Fails::Vanishes);
    assert!(there.run(&job, &mut quiet).is_err());
    assert_eq!(there.run(&job, &mut quiet).unwrap(), expected);
    let refused = encoder(3, Pooling::Mean).on(&devices).map(drop);
    assert!(refused.is_err());
}

/// The smaller one is named: a person has to choose.
#[test]
fn each_device_has_a_cap_of_its_own() {
    let device = |bytes, name| {
        let machine = Capped::new(Emulator::start(Order::Forwards), bytes);
        Device::on(machine, name).unwrap()
    };
    let devices = [device(1 << 30, "a large one"), device(100_000, "a small one")];
    let devices: Devices = devices.into_iter().collect();
    let refused = encoder(2, Pooling::Mean).on(&devices).map(drop).unwrap_err();
    assert!(refused.to_string().contains("a small one"), "{refused}");
    // It may have more another time.
    assert_eq!(used(&devices), [true; 2]);
}

/// A move in a dispute is as final as a claim.
#[test]
fn nothing_is_said_in_a_dispute_that_only_a_device_has_seen() {
    let weights = short(synthetic::llama(4, true));
    // All of it is what is computed again.
    let job = job(&request("Once upon", 6));
    let expected = decoder(&weights).run(&job, &mut quiet).unwrap();
    let (machine, fails) = Failing::new(Emulator::start(Order::Forwards));
    let devices = Device::on(machine, "one that fails").unwrap().into();
    let there: Arc<dyn Engine> = Arc::new(decoder(&weights).on(&devices).unwrap());
    let mut own = view(&there, &job, &expected.output, expected.claim.units);
    assert_eq!(own.leaves().unwrap(), expected.leaves);
    let is_computed = |leaf: &u32| matches!(own.layout().part(*leaf), Some(Part::Rows { .. }));
    let leaves: Vec<u32> = (0..own.layout().leaves()).filter(is_computed).collect();
    fails.set(Fails::FlipsBits);
    // The first ones follow from the input, and need no pass.
    let found = leaves.iter().find_map(|leaf| own.steps(*leaf).err());
    assert!(
        matches!(found, Some(EngineError::DeviceDiffers { .. })),
        "{found:?}"
    );
    // The processor goes on with the same view.
    let mut here = {
        let here: Arc<dyn Engine> = Arc::new(decoder(&weights));
        view(&here, &job, &expected.output, expected.claim.units)
    };
    for leaf in leaves {
        assert_eq!(own.steps(leaf).unwrap(), here.steps(leaf).unwrap(), "leaf {leaf}");
    }
}
