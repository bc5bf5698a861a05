#![allow(clippy::unwrap_used)]

use std::sync::{Mutex, atomic::AtomicUsize};

use surety_gpu_proofs::{LAYERS_MIN, Plan};

use super::*;
use crate::{
    Capped, Graphs,
    backend::{Capture, NoLanding, Product},
};

/// Pieces of memory that a run is held in.
const PIECES: usize = 9;

/// A machine that computes nothing, with room for some pieces of memory.
#[derive(Clone, Debug)]
struct Counting {
    room: usize,
    pieces: Arc<AtomicUsize>,
    /// How many pieces there were, each time that it was settled.
    settled: Arc<Mutex<Vec<usize>>>,
}

impl Counting {
    fn new(room: usize) -> Self {
        Self {
            room,
            pieces: Arc::default(),
            settled: Arc::default(),
        }
    }

    fn pieces(&self) -> usize {
        self.pieces.load(Ordering::Relaxed)
    }

    fn settled(&self) -> Vec<usize> {
        self.settled.lock().unwrap().clone()
    }
}

#[derive(Debug)]
struct Piece(Arc<AtomicUsize>);

impl Drop for Piece {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl GpuBackend for Counting {
    type Memory = Piece;
    type Landing = NoLanding;

    fn allocate(&mut self, bytes: usize) -> Result<Piece, Error> {
        if self.pieces() == self.room {
            return Err(Error::OutOfMemory(bytes));
        }
        self.pieces.fetch_add(1, Ordering::Relaxed);
        Ok(Piece(self.pieces.clone()))
    }

    fn write(&mut self, _: &mut Piece, _: &[u8]) -> Result<(), Error> {
        Ok(())
    }

    fn read(&mut self, _: &Piece, bytes: &mut [u8]) -> Result<(), Error> {
        bytes.fill(0);
        Ok(())
    }

    fn launch(&mut self, _: &str, _: Shape, _: &[Argument<'_, Piece>]) -> Result<(), Error> {
        Ok(())
    }

    fn product(&mut self, _: &Product<'_, Piece>) -> Result<bool, Error> {
        Ok(false)
    }

    fn settle(&mut self) -> Result<(), Error> {
        let pieces = self.pieces();
        self.settled.lock().unwrap().push(pieces);
        Ok(())
    }
}

impl Capture for Counting {
    type Graph = ();

    fn begin_capture(&mut self) -> Result<(), Error> {
        Ok(())
    }

    fn end_capture(&mut self) -> Result<(), Error> {
        Ok(())
    }

    fn replay(&mut self, (): &()) -> Result<(), Error> {
        Ok(())
    }
}

fn job(batch_rows: u32) -> Job {
    let plan = Plan {
        rows: batch_rows * BATCHES,
        layers: LAYERS_MIN,
    };
    Job::new(plan, &H256::zero())
}

/// Who finds what a run was held in: the next run, and other programs.
#[test]
fn a_machine_is_settled_whenever_a_runs_memory_was_freed() {
    let machine = Counting::new(PIECES);
    let mut memory = DeviceMemory::new(machine.clone(), u64::MAX, Arc::default());
    memory.fill(&job(1)).unwrap();
    assert_eq!((machine.pieces(), machine.settled()), (PIECES, vec![0]));
    memory.fill(&job(1)).unwrap();
    assert_eq!(machine.settled(), [0], "a run of the same size keeps its memory");
    memory.fill(&job(2)).unwrap();
    assert_eq!((machine.pieces(), machine.settled()), (PIECES, vec![0; 2]));
    memory.release();
    assert_eq!((machine.pieces(), machine.settled()), (0, vec![0; 3]));
    memory.fill(&job(1)).unwrap();
    drop(memory);
    assert_eq!((machine.pieces(), machine.settled()), (0, vec![0; 5]));
}

#[test]
fn of_a_run_that_finds_too_little_memory_nothing_is_kept() {
    let machine = Counting::new(PIECES - 1);
    let mut memory = DeviceMemory::new(machine.clone(), u64::MAX, Arc::default());
    assert!(memory.fill(&job(1)).is_err_and(|error| error.is_memory()));
    drop(memory);
    assert_eq!((machine.pieces(), machine.settled()), (0, vec![0; 2]));
}

#[test]
fn a_machine_behind_a_cap_or_behind_graphs_is_settled_too() {
    let machine = Counting::new(0);
    Capped::new(machine.clone(), 0).settle().unwrap();
    Graphs::new(machine.clone(), true).settle().unwrap();
    assert_eq!(machine.settled(), [0, 0]);
}
