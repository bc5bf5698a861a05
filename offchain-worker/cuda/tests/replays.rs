//! Launches that are given as graphs, and results that leave beside the work: the same bits as without, on a
//! program that plays a device, which copies as late as it may.
#![allow(clippy::unwrap_used, missing_docs)]

#[allow(dead_code)]
mod emulator;
mod steps;

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use emulator::{Copied, Emulator, Order, Piece, Recorded};
use steps::{steps, steps_behind};
use surety_cuda::{
    Argument, Capped, Capture, Departed, Error, GpuBackend, Graphs, Kernels, Product, Ring, Shape, Stage,
};
use surety_exact::BLOCK;

/// What a machine was asked for, and what it refuses.
#[derive(Debug, Default)]
struct Told {
    launches: AtomicUsize,
    replays: AtomicUsize,
    /// The launch that fails, counted from 1.
    fails_at: AtomicUsize,
    replays_fail: AtomicBool,
    no_room_for_graphs: AtomicBool,
    no_graphs: AtomicBool,
    no_pinned: AtomicBool,
    no_copies: AtomicBool,
    landings: AtomicUsize,
}

#[derive(Debug)]
struct Watched(Emulator, Arc<Told>);

fn lost() -> Error {
    Error::Lost("it was told to".into())
}

fn no_copies() -> Error {
    Error::NoCopies("it was told to".into())
}

impl GpuBackend for Watched {
    type Memory = Piece;
    type Landing = Copied;

    fn allocate(&mut self, bytes: usize) -> Result<Piece, Error> {
        self.0.allocate(bytes)
    }

    fn write(&mut self, into: &mut Piece, bytes: &[u8]) -> Result<(), Error> {
        self.0.write(into, bytes)
    }

    fn read(&mut self, from: &Piece, bytes: &mut [u8]) -> Result<(), Error> {
        self.0.read(from, bytes)
    }

    fn launch(&mut self, kernel: &str, shape: Shape, arguments: &[Argument<'_, Piece>]) -> Result<(), Error> {
        let number = self.1.launches.fetch_add(1, Ordering::Relaxed) + 1;
        if number == self.1.fails_at.load(Ordering::Relaxed) {
            return Err(lost());
        }
        self.0.launch(kernel, shape, arguments)
    }

    fn product(&mut self, product: &Product<'_, Piece>) -> Result<bool, Error> {
        self.0.product(product)
    }

    fn landing(&mut self, bytes: usize) -> Result<Option<Copied>, Error> {
        self.1.landings.fetch_add(1, Ordering::Relaxed);
        if self.1.no_copies.load(Ordering::Relaxed) {
            return Err(no_copies());
        }
        match self.1.no_pinned.load(Ordering::Relaxed) {
            true => Err(Error::PinnedMemory(bytes)),
            false => self.0.landing(bytes),
        }
    }

    fn begin_read(&mut self, from: &[(&Piece, usize)], into: &mut Copied) -> Result<(), Error> {
        self.0.begin_read(from, into)
    }
}

impl Capture for Watched {
    type Graph = Recorded;

    fn begin_capture(&mut self) -> Result<(), Error> {
        match self.1.no_graphs.load(Ordering::Relaxed) {
            true => Err(Error::Device("it has none".into())),
            false => self.0.begin_capture(),
        }
    }

    fn end_capture(&mut self) -> Result<Recorded, Error> {
        self.0.end_capture()
    }

    fn replay(&mut self, graph: &Recorded) -> Result<(), Error> {
        if self.1.replays_fail.load(Ordering::Relaxed) {
            return Err(lost());
        }
        if self.1.no_room_for_graphs.load(Ordering::Relaxed) {
            return Err(Error::OutOfMemory(0));
        }
        self.1.replays.fetch_add(1, Ordering::Relaxed);
        self.0.replay(graph)
    }
}

const ROUNDS: usize = 8;

fn expected() -> Vec<Vec<u8>> {
    let mut kernels = Kernels::new(Emulator::start(Order::Forwards)).unwrap();
    steps(&mut kernels, ROUNDS).unwrap()
}

fn with_graphs(told: &Arc<Told>) -> Kernels<Graphs<Watched>> {
    let machine = Watched(Emulator::start(Order::Forwards), Arc::clone(told));
    Kernels::new(Graphs::new(machine, true)).unwrap()
}

/// In the first round memory is taken, in the second each list comes for the first time, in the third it is
/// recorded.
#[test]
fn steps_that_come_again_are_given_as_graphs_and_give_the_same_bits() {
    let told = Arc::<Told>::default();
    assert_eq!(steps(&mut with_graphs(&told), ROUNDS).unwrap(), expected());
    let replays = told.replays.load(Ordering::Relaxed);
    assert!(replays >= 2 * (ROUNDS - 4), "{replays}");
    let machine = Watched(Emulator::start(Order::Forwards), Arc::clone(&told));
    let mut off = Kernels::new(Graphs::new(machine, false)).unwrap();
    assert_eq!(steps(&mut off, ROUNDS).unwrap(), expected());
    assert_eq!(told.replays.load(Ordering::Relaxed), replays, "they are off");
}

/// One sequence, and eleven together, go on to their next page: its number is in memory that is written again
/// in place.
#[test]
fn steps_come_again_behind_the_border_of_a_page() {
    let streams = ([1, 11], BLOCK - 5);
    let replays = |rounds| {
        let told = Arc::<Told>::default();
        let found = steps_behind(&mut with_graphs(&told), streams, rounds).unwrap();
        let mut kernels = Kernels::new(Emulator::start(Order::Forwards)).unwrap();
        assert_eq!(found, steps_behind(&mut kernels, streams, rounds).unwrap());
        told.replays.load(Ordering::Relaxed)
    };
    let (before, all) = (replays(5), replays(13));
    // Behind it memory is taken once more, each list of launches comes for the first time, and is recorded.
    assert!(before > 0 && all >= before + 2 * 4, "{before}, {all}");
}

/// A launch of any step, one that is recorded, or a graph: nothing is told of that step.
#[test]
fn a_launch_or_a_graph_that_fails_ends_the_step() {
    let told = Arc::<Told>::default();
    steps(&mut with_graphs(&told), ROUNDS).unwrap();
    let launches = told.launches.load(Ordering::Relaxed);
    for fails_at in [1, 5, launches / 4, launches / 2, launches] {
        let told = Arc::<Told>::default();
        told.fails_at.store(fails_at, Ordering::Relaxed);
        assert_eq!(
            steps(&mut with_graphs(&told), ROUNDS),
            Err(lost()),
            "{fails_at} of {launches}"
        );
    }
    let told = Arc::<Told>::default();
    told.replays_fail.store(true, Ordering::Relaxed);
    assert_eq!(steps(&mut with_graphs(&told), ROUNDS), Err(lost()));
}

#[test]
fn a_driver_that_records_nothing_is_told_and_changes_no_bit() {
    let told = Arc::<Told>::default();
    told.no_graphs.store(true, Ordering::Relaxed);
    let mut kernels = with_graphs(&told);
    assert_eq!(kernels.slower(), None);
    assert_eq!(steps(&mut kernels, ROUNDS).unwrap(), expected());
    let slower = kernels.slower();
    assert!(matches!(slower, Some(Error::NoGraphs(_))), "{slower:?}");
    assert_eq!(told.replays.load(Ordering::Relaxed), 0);
}

/// Nothing of a graph has started then: its launches are given one by one.
#[test]
fn a_graph_that_finds_no_memory_is_told_and_changes_no_bit() {
    let told = Arc::<Told>::default();
    told.no_room_for_graphs.store(true, Ordering::Relaxed);
    let mut kernels = with_graphs(&told);
    assert_eq!(steps(&mut kernels, ROUNDS).unwrap(), expected());
    let slower = kernels.slower();
    assert!(matches!(slower, Some(Error::NoGraphs(_))), "{slower:?}");
    // No graph is given any more, even if there is memory again.
    told.no_room_for_graphs.store(false, Ordering::Relaxed);
    assert_eq!(steps(&mut kernels, ROUNDS).unwrap(), expected());
    assert_eq!(told.replays.load(Ordering::Relaxed), 0);
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// The copy is made as late as it may be: after the stage was filled again.
#[test]
fn what_leaves_is_not_written_over_by_what_is_gathered_next() {
    let mut kernels = Kernels::new(Emulator::start(Order::Forwards)).unwrap();
    let ring = Ring::<Emulator>::new(2, 1 << 20);
    let mut stage = Stage::default();
    let mut before: Option<(Departed<Copied>, Vec<f32>)> = None;
    for round in 0..5 {
        let values: Vec<f32> = (0..1000 + round).map(|i| (1000 * round + i) as f32).collect();
        let floats = kernels.upload(&values).unwrap();
        stage.clear();
        kernels.stage(&floats, &mut stage).unwrap();
        if let Some((mut departed, values)) = before.take() {
            assert!(departed.is_copied());
            assert!(departed.bytes().unwrap() == bytes(&values));
        }
        let departed = kernels.leave(&mut stage, ring.slot(|| true).unwrap()).unwrap();
        before = Some((departed, values));
    }
}

#[test]
fn who_finds_no_slot_waits_until_one_comes_back() {
    let ring = Ring::<Emulator>::new(1, 1 << 20);
    let slot = ring.slot(|| true).unwrap();
    assert_eq!(ring.free(), 0);
    let order = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let slot = ring.slot(|| true).unwrap();
            order.lock().unwrap().push("taken again");
            drop(slot);
        });
        order.lock().unwrap().push("given back");
        drop(slot);
        waiting.join().unwrap();
    });
    assert_eq!(*order.lock().unwrap(), ["given back", "taken again"]);
    assert_eq!(ring.free(), 1);
}

#[test]
fn who_finds_no_slot_is_told_when_the_machine_does_not_answer() {
    let ring = Ring::<Emulator>::new(1, 1 << 20);
    let slot = ring.slot(|| false).expect("one is free");
    assert!(ring.slot(|| false).is_none());
    drop(slot);
    assert!(ring.slot(|| false).is_some());
}

#[test]
fn who_may_not_wait_takes_a_slot_if_one_is_free_when_it_leaves() {
    let mut kernels = Kernels::new(Emulator::start(Order::Forwards)).unwrap();
    let ring = Ring::<Emulator>::new(1, 1 << 20);
    let values = vec![1.5; 1000];
    let floats = kernels.upload(&values).unwrap();
    let mut stage = Stage::default();
    let slots = [ring.late_slot(), ring.late_slot()];
    assert_eq!(ring.free(), 1, "nothing has left yet");
    let mut departed = slots.map(|slot| {
        stage.clear();
        kernels.stage(&floats, &mut stage).unwrap();
        kernels.leave(&mut stage, slot).unwrap()
    });
    assert_eq!(departed.each_ref().map(Departed::is_copied), [true, false]);
    for departed in &mut departed {
        assert!(departed.bytes().unwrap() == bytes(&values));
    }
    assert_eq!(ring.free(), 0);
    drop(departed);
    assert_eq!(ring.free(), 1, "only what was taken comes back");
    drop(ring.late_slot());
    assert_eq!(ring.free(), 1);
}

/// Where the system gives no page-locked memory, or a pass shows more than a slot may have.
#[test]
fn what_finds_no_room_in_a_slot_leaves_through_ordinary_memory() {
    let values = vec![1.5; 1000];
    for (has_pinned, slot_bytes_max) in [(true, 4000), (true, 3999), (false, 4000)] {
        let told = Arc::<Told>::default();
        told.no_pinned.store(!has_pinned, Ordering::Relaxed);
        let machine = Watched(Emulator::start(Order::Forwards), told);
        let mut kernels = Kernels::new(machine).unwrap();
        let ring = Ring::<Watched>::new(1, slot_bytes_max);
        let mut stage = Stage::default();
        // The slot comes back each time.
        for _ in 0..2 {
            let floats = kernels.upload(&values).unwrap();
            stage.clear();
            kernels.stage(&floats, &mut stage).unwrap();
            let mut departed = kernels.leave(&mut stage, ring.slot(|| true).unwrap()).unwrap();
            assert!(departed.bytes().unwrap() == bytes(&values));
            assert_eq!(departed.is_copied(), has_pinned && slot_bytes_max == 4000);
        }
        let refused = (!has_pinned).then_some(Error::PinnedMemory(4000));
        assert_eq!(ring.refused(), refused);
    }
}

/// A stream or an event that the driver does not give: less memory would not help.
#[test]
fn copies_that_are_refused_are_told_and_not_asked_for_again() {
    let told = Arc::<Told>::default();
    told.no_copies.store(true, Ordering::Relaxed);
    let machine = Watched(Emulator::start(Order::Forwards), told.clone());
    let mut kernels = Kernels::new(machine).unwrap();
    let ring = Ring::<Watched>::new(1, 4 << 20);
    let mut stage = Stage::default();
    for count in [1 << 19, 1000] {
        let values = vec![2.5; count];
        let floats = kernels.upload(&values).unwrap();
        stage.clear();
        kernels.stage(&floats, &mut stage).unwrap();
        let mut departed = kernels.leave(&mut stage, ring.slot(|| true).unwrap()).unwrap();
        assert!(!departed.is_copied());
        assert!(departed.bytes().unwrap() == bytes(&values));
        assert_eq!(ring.refused(), Some(no_copies()));
    }
    assert_eq!(told.landings.load(Ordering::Relaxed), 1);
}

/// A stage fills two sets of memory by turns. Neither keeps what became too small for what it gathers.
#[test]
fn what_is_gathered_takes_twice_the_largest_pass_and_no_more() {
    const MIB: usize = 1 << 20;
    // A word of faults, what is uploaded, and two sets of a MiB more than is shown.
    let largest = 4 * MIB;
    let max = 4 + largest + 2 * (largest + MIB);
    let machine = Capped::new(Emulator::start(Order::Forwards), max as u64);
    let mut kernels = Kernels::new(machine).unwrap();
    let ring = Ring::<Capped<Emulator>>::new(2, largest);
    for pieces in [1, 8] {
        let mut stage = Stage::default();
        for mib in (1..=4).chain([4, 4, 2, 4]) {
            let values: Vec<f32> = (0..mib * MIB / 4 / pieces).map(|i| (mib + i) as f32).collect();
            let floats = kernels.upload(&values).unwrap();
            stage.clear();
            for _ in 0..pieces {
                kernels.stage(&floats, &mut stage).unwrap();
            }
            let mut departed = kernels.leave(&mut stage, ring.slot(|| true).unwrap()).unwrap();
            assert!(departed.is_copied());
            let shown = bytes(&values).repeat(pieces);
            assert!(departed.bytes().unwrap() == shown, "{pieces} of {mib} MiB");
        }
    }
}

#[cfg(feature = "cuda")]
#[test]
#[ignore = "needs an NVIDIA device"]
fn a_device_that_is_given_graphs_gives_the_same_bits() {
    let device = || surety_cuda::Device::open(0).unwrap();
    let mut kernels = Kernels::new(Graphs::new(device(), true)).unwrap();
    assert_eq!(steps(&mut kernels, ROUNDS).unwrap(), expected());
    assert_eq!(kernels.slower(), None, "the driver records launches");
    assert_eq!(
        steps(&mut Kernels::new(device()).unwrap(), ROUNDS).unwrap(),
        expected()
    );
}
