//! Launches that are given as graphs, and results that leave beside the work: the same bits as without, on a
//! program that plays a device, which copies as late as it may.
#![allow(clippy::unwrap_used, missing_docs)]

#[allow(dead_code)]
mod emulator;

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use emulator::{Copied, Emulator, Order, Piece, Recorded};
use surety_cuda::{
    Argument, Cache, Capture, Departed, Error, Floats, GpuBackend, Graphs, Heads, Kernels, Norm, Numbers,
    Packed, Product, Quanta, Ring, Rows, SequenceRows, Sequences, Shape, Stage, Weights,
};
use surety_exact::{Precision, SplitMix64};

const HEADS: usize = 2;
const HEAD_DIM: usize = 16;
const WIDTH: usize = HEADS * HEAD_DIM;
const TOKENS: usize = 8;
const CAPACITY: usize = 32;

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
}

#[derive(Debug)]
struct Watched(Emulator, Arc<Told>);

fn lost() -> Error {
    Error::Lost("it was told to".into())
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

/// One layer of a decoder, or nearly so, and what its passes are made in.
struct Small<M: GpuBackend> {
    table: Packed<M>,
    by: [Packed<M>; 4],
    weight: Floats<M>,
    floats: [Option<Floats<M>>; 5],
    sum: Option<Floats<M>>,
    rows: Rows<M>,
    heads: [Heads<M>; 3],
    tokens: Option<Numbers<M>>,
    sequences: Option<Sequences<M>>,
    stage: Stage<M>,
    ring: Ring<M>,
}

fn matrix<M: GpuBackend>(kernels: &mut Kernels<M>, random: &mut SplitMix64, outputs: usize) -> Packed<M> {
    let q: Vec<i8> = (0..outputs * WIDTH).map(|_| random.next() as i8).collect();
    let scales: Vec<f32> = (0..outputs).map(|_| random.real().abs() * 0.01).collect();
    let weights = Weights {
        inputs: WIDTH,
        outputs,
        q: Quanta::Int8(&q),
        scales: &scales,
        bias: None,
    };
    kernels.pack(&weights).unwrap()
}

impl<M: GpuBackend> Small<M> {
    fn new(kernels: &mut Kernels<M>) -> Self {
        let mut random = SplitMix64::new(40);
        Self {
            table: matrix(kernels, &mut random, TOKENS),
            by: [(); 4].map(|()| matrix(kernels, &mut random, WIDTH)),
            weight: kernels.upload(&[1.0; WIDTH]).unwrap(),
            floats: [const { None }; 5],
            sum: None,
            rows: Rows::new(Precision::Int8),
            heads: Default::default(),
            tokens: None,
            sequences: None,
            stage: Stage::default(),
            ring: Ring::new(2, 1 << 20),
        }
    }

    /// A token more of each sequence: the states that come out.
    fn step(
        &mut self,
        kernels: &mut Kernels<M>,
        caches: &mut [Cache<M>],
        tokens: &[u32],
    ) -> Result<Vec<u8>, Error> {
        self.stage.clear();
        let all: Vec<_> = caches
            .iter()
            .map(|cache| SequenceRows {
                rows: 1,
                first: cache.len(),
                capacity: cache.capacity(),
            })
            .collect();
        kernels.sequences_in(&mut self.sequences, &all)?;
        kernels.numbers_in(&mut self.tokens, tokens)?;
        let sequences = self.sequences.as_ref().unwrap();
        let len = tokens.len() * WIDTH;
        let [state, query, key, value, attended] = &mut self.floats;
        let state = kernels.sized(state, len)?;
        let query = kernels.sized(query, len)?;
        let key = kernels.sized(key, len)?;
        let value = kernels.sized(value, len)?;
        let attended = kernels.sized(attended, len)?;
        let sum = kernels.sized(&mut self.sum, len)?;
        kernels.embed(&self.table, self.tokens.as_ref().unwrap(), state)?;
        let norm = Norm {
            weight: &self.weight,
            bias: None,
            epsilon: 1e-5,
        };
        kernels.norm_quantize(state, &norm, None, None, &mut self.rows)?;
        let [by_query, by_key, by_value, by_output] = &self.by;
        let mut parts = [
            (by_query, &mut *query),
            (by_key, &mut *key),
            (by_value, &mut *value),
        ];
        kernels.products(&self.rows, &mut parts)?;
        let [queries, keys, values] = &mut self.heads;
        kernels.quantize_heads(query, HEADS, HEAD_DIM, queries)?;
        kernels.quantize_heads(key, HEADS, HEAD_DIM, keys)?;
        kernels.quantize_heads(value, HEADS, HEAD_DIM, values)?;
        let mut kept: Vec<&mut Cache<M>> = caches.iter_mut().collect();
        kernels.append_sequences(sequences, &mut kept, keys, values)?;
        let kept: Vec<&Cache<M>> = caches.iter().collect();
        kernels.attend_sequences(sequences, queries, &kept, attended)?;
        kernels.quantize(attended, WIDTH, None, &mut self.rows)?;
        kernels.product(&self.rows, by_output, sum)?;
        kernels.add(state, sum)?;
        kernels.stage(state, &mut self.stage)?;
        let mut departed = kernels.leave(&mut self.stage, self.ring.slot())?;
        departed.bytes().map(<[u8]>::to_vec)
    }
}

/// Two streams of different batch sizes, by turns: what each step gave.
fn steps<M: GpuBackend>(kernels: &mut Kernels<M>, rounds: usize) -> Result<Vec<Vec<u8>>, Error> {
    let mut small = Small::new(kernels);
    let mut streams: Vec<Vec<Cache<M>>> = Vec::new();
    for count in [1, 3] {
        let caches = (0..count).map(|_| kernels.cache(HEADS, HEAD_DIM, CAPACITY));
        streams.push(caches.collect::<Result<_, _>>()?);
    }
    let mut random = SplitMix64::new(41);
    let mut found = Vec::new();
    for _ in 0..rounds {
        for caches in &mut streams {
            let tokens = caches.iter().map(|_| (random.next() % TOKENS as u64) as u32);
            let tokens: Vec<u32> = tokens.collect();
            found.push(small.step(kernels, caches, &tokens)?);
        }
    }
    Ok(found)
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
        let departed = kernels.leave(&mut stage, ring.slot()).unwrap();
        before = Some((departed, values));
    }
}

#[test]
fn who_finds_no_slot_waits_until_one_comes_back() {
    let ring = Ring::<Emulator>::new(1, 1 << 20);
    let slot = ring.slot();
    assert_eq!(ring.free(), 0);
    let order = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let slot = ring.slot();
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
            let mut departed = kernels.leave(&mut stage, ring.slot()).unwrap();
            assert!(departed.bytes().unwrap() == bytes(&values));
            assert_eq!(departed.is_copied(), has_pinned && slot_bytes_max == 4000);
        }
        let refused = (!has_pinned).then_some(Error::PinnedMemory(4000));
        assert_eq!(ring.refused(), refused);
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
