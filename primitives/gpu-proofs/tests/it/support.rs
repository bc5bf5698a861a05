//! Small runs, honest and not.

use std::{num::NonZero, sync::OnceLock};

use sp_core::H256;
use surety_exact::SplitMix64;
use surety_gpu_proofs::{BATCHES, Job, Memory, OutOfMemory, PARENTS, Place, Processor, ROW, Row, Run, run};
use surety_proofs::{Proof, merkle_root};

pub const ROWS: u32 = 64;

pub fn processor(threads: usize) -> Processor {
    Processor::new(NonZero::new(threads).unwrap())
}

/// A run of an honest provider, of ten layers.
pub fn honest() -> &'static Run {
    static RUN: OnceLock<Run> = OnceLock::new();
    RUN.get_or_init(|| run(&mut processor(2), ROWS, &H256::repeat_byte(7), |done| done < 10).unwrap())
}

/// What a cheat does to a row that it should have computed.
type Alter = fn(Place, &mut Row, bool);

/// A provider that alters rows, always the same ones. Computes as the definition says, so that one which
/// alters nothing is what others are held against.
pub struct Cheat {
    /// What it fakes of all rows, in millionths.
    pub millionths: u64,
    alter: Alter,
    digests: Vec<H256>,
    state: Vec<Row>,
}

impl Cheat {
    pub fn new(millionths: u64, alter: Alter) -> Self {
        Self {
            millionths,
            alter,
            digests: Vec::new(),
            state: Vec::new(),
        }
    }

    /// Whether it fakes a row.
    pub fn fakes(&self, place: Place) -> bool {
        let number = u64::from(place.layer) << 32 | u64::from(place.row);
        SplitMix64::new(number).below(1_000_000) < self.millionths
    }
}

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// What a row's mask is drawn with, and its parents are turned by.
pub fn mask_key(job: &Job, place: Place, parents: [&Row; PARENTS]) -> u64 {
    let number = u64::from(place.layer) * u64::from(job.plan().rows) + u64::from(place.row);
    let mut key = SplitMix64::mix(job.masks_key().wrapping_add(number.wrapping_mul(STEP)));
    for parent in parents {
        let digest = sp_crypto_hashing::blake2_256(&parent.map(|cell| cell as u8));
        let (first, _) = digest.split_first_chunk().unwrap();
        key = SplitMix64::mix(key ^ u64::from_le_bytes(*first));
    }
    key
}

/// What a row is computed from, as the documentation of `Job::gather` says it.
pub fn gathered(job: &Job, place: Place, parents: [&Row; PARENTS]) -> Row {
    let key = mask_key(job, place, parents);
    let mut gathered = [0; ROW];
    for (n, word) in (0..).zip(gathered.chunks_exact_mut(8)) {
        let mask = SplitMix64::mix(key.wrapping_add(STEP.wrapping_mul(n))).to_le_bytes();
        for (cell, byte) in word.iter_mut().zip(mask) {
            *cell = byte as i8;
        }
    }
    for (parent, turn) in parents.iter().zip(key.to_le_bytes()) {
        for (k, cell) in gathered.iter_mut().enumerate() {
            *cell ^= parent[(k + 8 * usize::from(turn)) % ROW];
        }
    }
    gathered
}

impl Memory for Cheat {
    type Error = OutOfMemory;

    fn fill(&mut self, job: &Job) -> Result<(), OutOfMemory> {
        self.state = (0..job.plan().rows).map(|row| job.initial_row(row)).collect();
        Ok(())
    }

    fn step(&mut self, job: &Job, layer: u32, batch: u32) -> Result<H256, OutOfMemory> {
        let rows = job.plan().rows / BATCHES;
        let weights: Vec<Row> = (0..ROW as u32).map(|column| job.weights(column)).collect();
        let new: Vec<Row> = (batch * rows..(batch + 1) * rows)
            .map(|row| {
                let place = Place { layer, row };
                let parents = job.parents(place).map(|parent| parent.row as usize);
                let gathered = gathered(job, place, parents.map(|row| &self.state[row]));
                let mut new = [0; ROW];
                for (cell, weights) in new.iter_mut().zip(&weights) {
                    *cell = (surety_exact::dot(&gathered[..], &weights[..]) >> 10) as i8;
                }
                (self.alter)(place, &mut new, self.fakes(place));
                new
            })
            .collect();
        let hash = |row: &Row| H256(sp_crypto_hashing::blake2_256(&row.map(|cell| cell as u8)));
        self.digests = new.iter().map(hash).collect();
        self.state[(batch * rows) as usize..][..rows as usize].copy_from_slice(&new);
        Ok(merkle_root(self.digests.iter().copied()))
    }

    fn digests(&mut self) -> Result<Vec<H256>, OutOfMemory> {
        Ok(self.digests.clone())
    }

    fn row(&mut self, row: u32) -> Result<Row, OutOfMemory> {
        Ok(self.state[row as usize])
    }
}

/// A device that computes one bit wrongly once it has computed so many batches.
pub struct Flaky {
    pub inner: Processor,
    pub batches_left: u32,
}

impl Memory for Flaky {
    type Error = OutOfMemory;

    fn fill(&mut self, job: &Job) -> Result<(), OutOfMemory> {
        self.inner.fill(job)
    }

    fn step(&mut self, job: &Job, layer: u32, batch: u32) -> Result<H256, OutOfMemory> {
        let mut root = self.inner.step(job, layer, batch)?;
        self.batches_left = self.batches_left.wrapping_sub(1);
        if self.batches_left == 0 {
            root.0[0] ^= 1;
        }
        Ok(root)
    }

    fn digests(&mut self) -> Result<Vec<H256>, OutOfMemory> {
        self.inner.digests()
    }

    fn row(&mut self, row: u32) -> Result<Row, OutOfMemory> {
        self.inner.row(row)
    }
}

/// A device that counts what is asked of it after a batch.
pub struct Counting {
    inner: Processor,
    /// How often all digests were.
    pub digests: u32,
    /// How many proofs were, each time.
    pub proofs: Vec<usize>,
}

impl Counting {
    pub fn new(inner: Processor) -> Self {
        Self {
            inner,
            digests: 0,
            proofs: Vec::new(),
        }
    }
}

impl Memory for Counting {
    type Error = OutOfMemory;

    fn fill(&mut self, job: &Job) -> Result<(), OutOfMemory> {
        self.inner.fill(job)
    }

    fn step(&mut self, job: &Job, layer: u32, batch: u32) -> Result<H256, OutOfMemory> {
        self.inner.step(job, layer, batch)
    }

    fn digests(&mut self) -> Result<Vec<H256>, OutOfMemory> {
        self.digests += 1;
        self.inner.digests()
    }

    fn proofs(&mut self, rows: &[u32]) -> Result<Vec<Proof>, OutOfMemory> {
        self.proofs.push(rows.len());
        self.inner.proofs(rows)
    }

    fn row(&mut self, row: u32) -> Result<Row, OutOfMemory> {
        self.inner.row(row)
    }
}
