//! Several sequences in the same launches.

use surety_cuda::{Cache, Error, GpuBackend, Kernels, Mask, Pages, SequenceRows};
use surety_exact::{ArithmeticError, BLOCK};

use super::{Random, assert_same, attention::quantized, values};

const KV_HEADS: usize = 2;
const HEADS: usize = 4;
const LAYERS: usize = 2;

fn rows(random: &mut Random, count: usize, heads: usize, head_dim: usize) -> Vec<f32> {
    random.activations(count * heads * head_dim)
}

/// Rows and the position of the first: some begin or end at the border of a page, one goes over it.
fn shapes() -> impl Iterator<Item = (usize, usize)> {
    let shapes = [
        (1, 0),
        (3, 0),
        (1, BLOCK),
        (2, BLOCK - 2),
        (5, BLOCK - 3),
        (1, BLOCK + 2),
        (1, 7),
    ];
    shapes.into_iter().cycle()
}

/// A cache whose layers hold so many positions, each others.
fn filled<M: GpuBackend>(
    kernels: &mut Kernels<M>,
    random: &mut Random,
    pages: &Pages<M>,
    (head_dim, positions): (usize, usize),
) -> Cache<M> {
    let mut cache = pages.cache();
    for layer in 0..LAYERS {
        if positions > 0 {
            let before = rows(random, positions, KV_HEADS, head_dim);
            let before = quantized(kernels, &before, KV_HEADS, head_dim);
            kernels.append(&mut cache, layer, &before, &before).unwrap();
        }
    }
    cache
}

fn all_rows<'a, M: GpuBackend>(
    caches: &'a [Cache<M>],
    shapes: &[(usize, usize)],
) -> Vec<SequenceRows<'a, M>> {
    let all = caches.iter().zip(shapes);
    all.map(|(cache, &(rows, first))| SequenceRows { cache, rows, first })
        .collect()
}

/// A dozen sequences of different lengths, in one launch: keys, values and results are those of each alone.
pub fn sequences_attend_together_as_alone<M: GpuBackend>(kernels: &mut Kernels<M>) {
    let mut random = Random::new(34);
    for head_dim in [5, 16] {
        let shapes: Vec<_> = shapes().take(12).collect();
        let count: usize = shapes.iter().map(|(rows, _)| rows).sum();
        let key_rows = rows(&mut random, count, KV_HEADS, head_dim);
        let value_rows = rows(&mut random, count, KV_HEADS, head_dim);
        let query_rows = rows(&mut random, count, HEADS, head_dim);
        let keys = quantized(kernels, &key_rows, KV_HEADS, head_dim);
        let key_values = quantized(kernels, &value_rows, KV_HEADS, head_dim);
        let queries = quantized(kernels, &query_rows, HEADS, head_dim);

        let pages = Pages::new(LAYERS, KV_HEADS, head_dim).unwrap();
        let (mut together, mut alone) = (Vec::new(), Vec::new());
        let mut expected = kernels.upload(&vec![0.0; query_rows.len()]).unwrap();
        let mut from = 0;
        for &(rows, first) in &shapes {
            let mut cache = filled(kernels, &mut random, &pages, (head_dim, first));
            let mut copy = kernels.copy_cache(&cache).unwrap();
            kernels.reserve(&mut copy, first + rows).unwrap();
            together.push(copy);
            let own = from..from + rows;
            from = own.end;
            kernels
                .append_rows(&mut cache, 1, &keys, &key_values, own.clone())
                .unwrap();
            let mask = Mask::Causal { first };
            kernels
                .attend_rows((&queries, own), &mut cache, 1, mask, &mut expected)
                .unwrap();
            alone.push(cache);
        }
        let expected = values(kernels, &expected);
        let sequences = kernels.sequences(&all_rows(&together, &shapes)).unwrap();
        // The second time all of them are there already.
        for _ in 0..2 {
            let mut caches: Vec<&mut Cache<M>> = together.iter_mut().collect();
            kernels
                .append_sequences(&sequences, &mut caches, 1, &keys, &key_values)
                .unwrap();
        }
        for ((cache, alone), &(rows, first)) in together.iter().zip(&alone).zip(&shapes) {
            for (layer, positions) in [(0, first), (1, first + rows)] {
                let found = kernels.kept(cache, layer, positions).unwrap();
                assert_eq!(found, kernels.kept(alone, layer, positions).unwrap());
            }
        }
        let caches: Vec<&Cache<M>> = together.iter().collect();
        // All at once, and with little room for scores: a few rows at a time.
        for room in [1 << 26, 3 * HEADS * 2 * BLOCK] {
            kernels.limit(room);
            let mut out = kernels.floats(query_rows.len()).unwrap();
            kernels
                .attend_sequences(&sequences, &queries, &caches, 1, &mut out)
                .unwrap();
            let what = format!("heads of {head_dim}, {room}");
            assert_same(&values(kernels, &out), &expected, &what);
        }
        kernels.limit(1 << 26);

        let shape = Err(Error::Arithmetic(ArithmeticError::Shape));
        let mut out = kernels.floats(query_rows.len()).unwrap();
        let mut attend = |caches: &[&Cache<M>], layer| {
            kernels.attend_sequences(&sequences, &queries, caches, layer, &mut out)
        };
        assert_eq!(attend(&caches, 0), shape, "positions that are not there");
        assert_eq!(attend(&caches, LAYERS), shape, "a layer that is not there");
        assert_eq!(attend(&caches[1..], 1), shape, "too few caches");
        let others: Vec<&Cache<M>> = alone.iter().collect();
        assert_eq!(attend(&others, 1), shape, "pages that the machine was not told");
    }
    refused(kernels);
}

fn refused<M: GpuBackend>(kernels: &mut Kernels<M>) {
    let shape = Err(Error::Arithmetic(ArithmeticError::Shape));
    let new = || Pages::<M>::new(LAYERS, KV_HEADS, 5).unwrap().cache();
    let (mut cache, mut other) = (new(), new());
    kernels.reserve(&mut cache, 4).unwrap();
    kernels.reserve(&mut other, 4).unwrap();
    for (rows, first) in [(0, 1), (BLOCK, 1), (1, usize::MAX), (1, BLOCK)] {
        let sequence = SequenceRows {
            cache: &cache,
            rows,
            first,
        };
        assert_eq!(kernels.sequences(&[sequence]).map(drop), shape, "{rows}, {first}");
    }
    let sequence = |cache| SequenceRows {
        cache,
        rows: 1,
        first: 0,
    };
    assert_eq!(kernels.sequences(&[]).map(drop), shape, "no sequences");
    let of_two = [sequence(&cache), sequence(&other)];
    assert_eq!(kernels.sequences(&of_two).map(drop), shape, "pages of two models");
}
