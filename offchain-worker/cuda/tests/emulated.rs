//! The kernels as a C++ compiler understands them, and all that launches them: no device is needed.
#![allow(clippy::unwrap_used, missing_docs)]

mod emulator;
mod suite;

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use emulator::{Emulator, Order, Piece};
use surety_cuda::{
    Argument, Capped, DeviceMemory, DeviceMemoryError, Error, GpuBackend, Kernels, NoLanding, Pages, Product,
    Shape, TABLE, bytes_needed, rows_within,
};
use surety_exact::BLOCK;
use surety_gpu_proofs::{BATCHES, Failure, Memory, ROWS_MAX, run};

/// Where a barrier is missing, the order in which threads run shows.
fn both_orders(check: impl Fn(&mut Kernels<Emulator>)) {
    for order in [Order::Forwards, Order::Backwards] {
        check(&mut Kernels::new(Emulator::start(order)).unwrap());
    }
}

#[test]
fn products_equal_the_definition() {
    both_orders(suite::products_equal_the_definition);
}

#[test]
fn products_of_the_largest_numbers_equal_the_definition() {
    both_orders(suite::products_of_the_largest_numbers_equal_the_definition);
}

#[test]
fn products_of_the_same_rows_equal_the_definition() {
    both_orders(suite::products_of_the_same_rows_equal_the_definition);
}

#[test]
fn norms_quantize_what_they_give() {
    both_orders(suite::norms_quantize_what_they_give);
}

#[test]
fn a_row_does_not_depend_on_its_neighbors() {
    both_orders(suite::a_row_does_not_depend_on_its_neighbors);
}

#[test]
fn embedding_equals_the_definition() {
    both_orders(suite::embedding_equals_the_definition);
}

#[test]
fn gelus_are_quantized() {
    both_orders(suite::gelus_are_quantized);
}

#[test]
fn functions_equal_the_definition() {
    both_orders(suite::functions_equal_the_definition);
}

#[test]
fn norms_equal_the_definition() {
    both_orders(suite::norms_equal_the_definition);
}

#[test]
fn the_likeliest_is_the_first_of_the_largest() {
    both_orders(suite::the_likeliest_is_the_first_of_the_largest);
}

#[test]
fn pooling_equals_the_definition() {
    both_orders(suite::pooling_equals_the_definition);
}

#[test]
fn attention_equals_the_definition() {
    both_orders(suite::attention_equals_the_definition);
}

#[test]
fn rotating_equals_the_definition() {
    both_orders(suite::rotating_equals_the_definition);
}

#[test]
fn each_fault_is_reported_once() {
    both_orders(suite::each_fault_is_reported_once);
}

#[test]
fn rounds_of_rows_do_not_show() {
    both_orders(suite::rounds_of_rows_do_not_show);
}

#[test]
fn spans_of_any_place_equal_the_definition() {
    both_orders(suite::spans_of_any_place_equal_the_definition);
}

#[test]
fn rounds_of_queries_do_not_show() {
    both_orders(suite::rounds_of_queries_do_not_show);
}

#[test]
fn what_is_kept_can_be_copied() {
    both_orders(suite::what_is_kept_can_be_copied);
}

#[test]
fn rows_attend_alone_as_among_others() {
    both_orders(suite::rows_attend_alone_as_among_others);
}

#[test]
fn sequences_attend_together_as_alone() {
    both_orders(suite::sequences_attend_together_as_alone);
}

#[test]
fn pages_that_were_given_back_are_taken_again() {
    both_orders(suite::pages::pages_that_were_given_back_are_taken_again);
}

#[test]
fn slabs_go_back_to_the_machine() {
    both_orders(suite::pages::slabs_go_back_to_the_machine);
}

#[test]
fn a_slab_has_several_pages_of_any_size() {
    both_orders(suite::pages::a_slab_has_several_pages_of_any_size);
}

/// Pages, and a machine whose memory is so many.
fn capped_pages(count: usize) -> (Pages<Capped<Emulator>>, Kernels<Capped<Emulator>>) {
    let pages = suite::pages::pages();
    let max = (count * pages.page_bytes()) as u64;
    let machine = Capped::new(Emulator::start(Order::Forwards), max);
    (pages, Kernels::new(machine).unwrap())
}

/// On a machine with room for seven pages, and little else: sequences are refused what it has not, keep what
/// they hold, and go on where others end.
#[test]
fn a_pool_that_finds_no_memory_refuses_by_name_and_loses_nothing() {
    let (pages, mut kernels) = capped_pages(9);
    let (kernels, page) = (&mut kernels, pages.page_bytes());
    let mut random = suite::Random::new(36);
    let (mut one, mut other) = (pages.cache(), pages.cache());
    suite::pages::add(kernels, &mut random, &mut one, 3).unwrap();
    suite::pages::add(kernels, &mut random, &mut other, 2).unwrap();
    // Larger slabs were refused: no more is taken than is missing.
    assert_eq!(pages.bytes(), 2 * page);
    let there = 7;
    kernels.reserve(&mut one, (there - 1) * BLOCK).unwrap();
    assert_eq!(pages.bytes(), there * page);
    let held = [&one, &other].map(|cache| suite::pages::all(kernels, cache));
    let capacity = one.capacity();
    let refused = kernels.reserve(&mut one, (there + 1) * BLOCK).unwrap_err();
    let needed = 2 * page as u64;
    assert!(
        matches!(refused, Error::MemoryCap { needed: found, .. } if found == needed),
        "{refused:?}"
    );
    assert_eq!((pages.taken(), one.capacity()), (there, capacity));
    let mut third = pages.cache();
    let refused = suite::pages::add(kernels, &mut random, &mut third, 1).unwrap_err();
    assert!(matches!(refused, Error::MemoryCap { .. }), "{refused:?}");
    assert!(third.is_empty());
    let after = [&one, &other].map(|cache| suite::pages::all(kernels, cache));
    assert_eq!(after, held);
    drop(other);
    suite::pages::add(kernels, &mut random, &mut third, 1).unwrap();
    drop(third);
    kernels.reserve(&mut one, there * BLOCK).unwrap();
    assert_eq!(suite::pages::all(kernels, &one), held[0]);
    // Others need what is kept of it once it is shorter.
    one.truncate(3);
    let refused = kernels.floats(5 * page / 4).unwrap_err();
    assert!(matches!(refused, Error::MemoryCap { .. }), "{refused:?}");
    assert!(kernels.trim());
    let room = kernels.floats(5 * page / 4).unwrap();
    assert_eq!(pages.bytes(), page);
    assert_eq!(suite::pages::all(kernels, &one), held[0]);
    // All of its layer's first positions come at once only where there is room for them.
    drop(room);
    for _ in 0..3 {
        suite::pages::add(kernels, &mut random, &mut one, BLOCK).unwrap();
    }
    kernels.reserve(&mut one, 7 * BLOCK).unwrap();
    let refused = kernels.kept(&one, 0, 3 * BLOCK).unwrap_err();
    assert!(matches!(refused, Error::MemoryCap { .. }), "{refused:?}");
    kernels.limit(page / 4);
    let [keys, _] = kernels.kept(&one, 0, 3 * BLOCK).unwrap();
    assert!(keys.q.starts_with(&held[0][0].q));
}

/// Where there is no room for larger pieces of memory than a page, there are soon as many as kernels can
/// choose from.
#[test]
fn pages_in_too_many_pieces_are_refused_by_name() {
    let (pages, mut kernels) = capped_pages(100);
    let mut caches = Vec::new();
    let refused = loop {
        let mut cache = pages.cache();
        if let Err(refused) = kernels.reserve(&mut cache, 1) {
            break refused;
        }
        caches.push(cache);
    };
    assert_eq!(refused, Error::Scattered(pages.page_bytes()));
    assert_eq!(caches.len(), TABLE);
    caches.swap_remove(10);
    kernels.reserve(&mut pages.cache(), 1).unwrap();
}

#[test]
fn what_is_staged_leaves_in_its_order() {
    both_orders(suite::what_is_staged_leaves_in_its_order);
}

#[test]
fn rows_of_a_trace_have_the_digests_of_the_definition() {
    both_orders(suite::rows_of_a_trace_have_the_digests_of_the_definition);
}

#[test]
fn rows_that_do_not_fit_are_refused() {
    both_orders(suite::rows_that_do_not_fit_are_refused);
}

/// What is freed may be taken again, and what is computed is the same.
#[test]
fn no_more_memory_is_taken_than_the_cap_allows() {
    let mut machine = Capped::new(Emulator::start(Order::Forwards), 1000);
    let first = machine.allocate(600).unwrap();
    let refused = machine.allocate(401).unwrap_err();
    let expected = Error::MemoryCap {
        needed: 401,
        used: 600,
        max: 1000,
    };
    assert_eq!(refused, expected);
    let second = machine.allocate(400).unwrap();
    drop((first, second));
    machine.allocate(1000).unwrap();
    let emulator = Emulator::start(Order::Forwards);
    suite::rows_attend_alone_as_among_others(&mut Kernels::new(Capped::new(emulator, 1 << 25)).unwrap());
}

fn memory(order: Order) -> DeviceMemory<Emulator> {
    DeviceMemory::new(Emulator::start(order), u64::MAX, Arc::default())
}

/// Half a minute of a processor: tensor cores are played product by product.
#[test]
fn runs_equal_a_processors() {
    suite::proofs::runs_equal_a_processors(memory(Order::Forwards));
}

#[test]
fn batches_of_runs_equal_a_processors() {
    for order in [Order::Forwards, Order::Backwards] {
        suite::proofs::batches_equal_a_processors(&mut memory(order), &[1, 17, 150]);
    }
}

/// A machine that takes what is said to be needed and no more.
#[test]
fn a_run_takes_the_memory_that_it_says() {
    let (job, smaller) = (suite::proofs::job(130, 1), suite::proofs::job(1, 1));
    let rows = job.plan().rows;
    let needed = bytes_needed(rows);
    let on = |bytes: u64, bytes_max: u64| {
        let machine = Capped::new(Emulator::start(Order::Forwards), bytes);
        DeviceMemory::new(machine, bytes_max, Arc::default())
    };
    let mut all = on(needed, needed);
    // The first run's memory goes to the next one's.
    for job in [&smaller, &job, &smaller] {
        all.fill(job).unwrap();
        all.step(job, 1, 0).unwrap();
    }
    let (used, max) = (0, needed - 1);
    let refused = DeviceMemoryError::Device(Error::MemoryCap { needed, used, max });
    assert_eq!(on(needed, max).fill(&job), Err(refused));
    // What a machine has not is its own to say, and smaller runs go on.
    let mut little = on(max, u64::MAX);
    let refused = little.fill(&job);
    assert!(
        matches!(
            refused,
            Err(DeviceMemoryError::Device(Error::MemoryCap { max: found, .. })) if found == max
        ),
        "{refused:?}"
    );
    assert_eq!(little.step(&job, 1, 0), Err(DeviceMemoryError::NotHeld));
    little.fill(&smaller).unwrap();
    little.step(&smaller, 1, 0).unwrap();
    little.release();
    assert_eq!(little.step(&smaller, 1, 0), Err(DeviceMemoryError::NotHeld));
}

#[test]
fn as_many_rows_fit_as_are_said_to() {
    assert_eq!(rows_within(0), 0);
    assert_eq!(rows_within(u64::MAX), ROWS_MAX);
    for rows in [1, 2, 127, 128, 129, 1 << 15, ROWS_MAX / BATCHES].map(|batch| batch * BATCHES) {
        assert_eq!(rows_within(bytes_needed(rows)), rows);
        assert_eq!(rows_within(bytes_needed(rows) - 1), rows - BATCHES);
    }
}

#[test]
fn a_run_that_is_stopped_ends_and_the_next_begins_anew() {
    let stop = Arc::default();
    let mut memory = DeviceMemory::new(Emulator::start(Order::Forwards), u64::MAX, Arc::clone(&stop));
    let job = suite::proofs::job(1, 2);
    memory.fill(&job).unwrap();
    let root = memory.step(&job, 1, 0).unwrap();
    stop.store(true, Ordering::Relaxed);
    assert_eq!(memory.step(&job, 1, 1), Err(DeviceMemoryError::Stopped));
    let stopped = run(&mut memory, BATCHES, &Default::default(), |_| true);
    assert_eq!(stopped.err(), Some(Failure::Memory(DeviceMemoryError::Stopped)));
    stop.store(false, Ordering::Relaxed);
    memory.fill(&job).unwrap();
    assert_eq!(memory.step(&job, 1, 0), Ok(root));
}

#[test]
fn nothing_is_told_of_what_is_not_held() {
    let not_held = DeviceMemoryError::NotHeld;
    let mut memory = memory(Order::Forwards);
    let (job, other) = (suite::proofs::job(1, 3), suite::proofs::job(2, 3));
    assert_eq!(memory.row(0), Err(not_held.clone()));
    assert_eq!(memory.step(&job, 1, 0), Err(not_held.clone()));
    memory.fill(&job).unwrap();
    assert_eq!(memory.digests(), Err(not_held.clone()), "no batch was computed");
    assert_eq!(memory.proofs(&[0]), Err(not_held.clone()));
    assert_eq!(
        memory.step(&suite::proofs::job(1, 4), 1, 0),
        Err(not_held.clone()),
        "another job of this size"
    );
    assert_eq!(memory.row(BATCHES), Err(not_held.clone()));
    assert_eq!(memory.step(&job, 1, BATCHES), Err(not_held.clone()));
    assert_eq!(memory.step(&other, 1, 0), Err(not_held.clone()));
    memory.step(&job, 1, 0).unwrap();
    assert_eq!(memory.digests().unwrap().len(), 1);
    memory.fill(&job).unwrap();
    assert_eq!(memory.digests(), Err(not_held), "they were another run's");
}

/// A device that has no memory left, or vanishes after so many launches. What is read from it is counted.
struct Failing {
    machine: Emulator,
    launches_left: u32,
    is_full: bool,
    bytes_read: Arc<AtomicUsize>,
}

impl GpuBackend for Failing {
    type Memory = Piece;
    type Landing = NoLanding;

    fn allocate(&mut self, bytes: usize) -> Result<Piece, Error> {
        if self.is_full {
            Err(Error::OutOfMemory(bytes))
        } else {
            self.machine.allocate(bytes)
        }
    }

    fn write(&mut self, into: &mut Piece, bytes: &[u8]) -> Result<(), Error> {
        self.machine.write(into, bytes)
    }

    fn read(&mut self, from: &Piece, bytes: &mut [u8]) -> Result<(), Error> {
        self.bytes_read.fetch_add(bytes.len(), Ordering::Relaxed);
        self.machine.read(from, bytes)
    }

    fn launch(&mut self, kernel: &str, shape: Shape, arguments: &[Argument<'_, Piece>]) -> Result<(), Error> {
        self.launches_left = self.launches_left.checked_sub(1).ok_or_else(vanished)?;
        self.machine.launch(kernel, shape, arguments)
    }

    fn product(&mut self, product: &Product<'_, Piece>) -> Result<bool, Error> {
        self.machine.product(product)
    }
}

fn vanished() -> Error {
    Error::Lost("it is gone".into())
}

#[test]
fn a_device_that_vanishes_or_is_full_ends_a_run_and_says_so() {
    let failure = |launches_left, is_full| {
        let machine = Failing {
            machine: Emulator::start(Order::Forwards),
            launches_left,
            is_full,
            bytes_read: Arc::default(),
        };
        let mut memory = DeviceMemory::new(machine, u64::MAX, Arc::default());
        run(&mut memory, BATCHES, &Default::default(), |_| false).err()
    };
    let expected = |error| Some(Failure::Memory(DeviceMemoryError::Device(error)));
    // While it is filled, and with every kernel of the batches after.
    for launches_left in 0..12 {
        assert_eq!(
            failure(launches_left, false),
            expected(vanished()),
            "{launches_left}"
        );
    }
    let state = BATCHES as usize * 1024;
    assert_eq!(failure(0, true), expected(Error::OutOfMemory(state)));
}

/// What is not read is not hashed by the processor either, for which a large batch's digests are too many.
#[test]
fn of_a_large_batch_a_proof_reads_a_small_part() {
    let bytes_read = Arc::<AtomicUsize>::default();
    let machine = Failing {
        machine: Emulator::start(Order::Forwards),
        launches_left: u32::MAX,
        is_full: false,
        bytes_read: bytes_read.clone(),
    };
    let mut memory = DeviceMemory::new(machine, u64::MAX, Arc::default());
    let job = suite::proofs::job(700, 5);
    memory.fill(&job).unwrap();
    let root = memory.step(&job, 1, 0).unwrap();
    let digests = memory.digests().unwrap();
    bytes_read.store(0, Ordering::Relaxed);
    for index in [5, 699] {
        let proofs = memory.proofs(&[index]).unwrap();
        assert!(proofs[0].verify(&root, &digests[index as usize], index, 700));
    }
    // Each time the nodes of six parts, and the leaves of one: 128, and what is left of 700.
    let expected = 32 * (6 + 128 + 6 + 60);
    assert_eq!(bytes_read.load(Ordering::Relaxed), expected);
}

/// Where no device can be had, it is named why.
#[test]
fn no_run_begins_on_a_device_that_is_not_there() {
    let error = surety_cuda::open_device_memory(usize::MAX, u64::MAX, Arc::default()).err();
    assert!(
        matches!(
            error,
            Some(Error::NotBuilt | Error::NoDriver | Error::NoDevice(_))
        ),
        "{error:?}"
    );
}
