//! Steps of a small model, for any machine.

use surety_cuda::{
    Cache, Error, Floats, GpuBackend, Heads, Kernels, Norm, Numbers, Packed, Pages, Quanta, Ring, Rows,
    SequenceRows, Sequences, Stage, Weights,
};
use surety_exact::{Precision, SplitMix64};

const HEADS: usize = 2;
const HEAD_DIM: usize = 16;
const WIDTH: usize = HEADS * HEAD_DIM;
const TOKENS: usize = 8;

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
        for cache in caches.iter_mut() {
            let positions = cache.len() + 1;
            kernels.reserve(cache, positions)?;
        }
        let all: Vec<_> = caches
            .iter()
            .map(|cache| SequenceRows {
                cache,
                rows: 1,
                first: cache.len(),
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
        kernels.norm_quantize((&mut *state, None, None), &norm, None, None, &mut self.rows)?;
        let [by_query, by_key, by_value, by_output] = &self.by;
        let mut parts = [
            (by_query, &mut *query),
            (by_key, &mut *key),
            (by_value, &mut *value),
        ];
        kernels.products(&self.rows, &mut parts)?;
        let [queries, keys, values] = &mut self.heads;
        let parts = [
            (query, HEADS, &mut *queries),
            (key, HEADS, &mut *keys),
            (value, HEADS, &mut *values),
        ];
        let mut kept: Vec<&mut Cache<M>> = caches.iter_mut().collect();
        let behind = (sequences, &mut kept[..], 0);
        kernels.rotate_quantize(parts, HEAD_DIM, None, None, Some(behind))?;
        let kept: Vec<&Cache<M>> = caches.iter().collect();
        let into = (attended, Some((None, &mut self.rows)));
        kernels.attend_sequences(sequences, queries, &kept, 0, into)?;
        kernels.product(&self.rows, by_output, sum)?;
        kernels.add(state, sum)?;
        kernels.stage(state, &mut self.stage)?;
        let mut departed = kernels.leave(&mut self.stage, self.ring.slot(|| true).unwrap())?;
        departed.bytes().map(<[u8]>::to_vec)
    }
}

/// A sequence with so many positions.
fn filled<M: GpuBackend>(
    kernels: &mut Kernels<M>,
    pages: &Pages<M>,
    positions: usize,
) -> Result<Cache<M>, Error> {
    let mut cache = pages.cache();
    if positions > 0 {
        let mut random = SplitMix64::new(42);
        let rows: Vec<f32> = (0..positions * WIDTH).map(|_| random.real()).collect();
        let (rows, mut heads) = (kernels.upload(&rows)?, Heads::default());
        kernels.quantize_heads(&rows, HEADS, HEAD_DIM, &mut heads)?;
        kernels.append(&mut cache, 0, &heads, &heads)?;
    }
    Ok(cache)
}

/// Streams of different batch sizes, behind so many positions, by turns: what each step gave.
pub fn steps_behind<M: GpuBackend>(
    kernels: &mut Kernels<M>,
    (batches, positions): ([usize; 2], usize),
    rounds: usize,
) -> Result<Vec<Vec<u8>>, Error> {
    let mut small = Small::new(kernels);
    let pages = Pages::new(1, HEADS, HEAD_DIM)?;
    let mut streams: Vec<Vec<Cache<M>>> = Vec::new();
    for count in batches {
        let caches = (0..count).map(|_| filled(kernels, &pages, positions));
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

/// The same of empty sequences.
pub fn steps<M: GpuBackend>(kernels: &mut Kernels<M>, rounds: usize) -> Result<Vec<Vec<u8>>, Error> {
    steps_behind(kernels, ([1, 3], 0), rounds)
}
