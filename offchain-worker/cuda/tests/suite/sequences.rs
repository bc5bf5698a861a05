//! Several sequences in the same launches.

use surety_cuda::{Cache, Error, GpuBackend, Heads, Kernels, Mask, Mixing, Pages, SequenceRows};
use surety_exact::{ArithmeticError, BLOCK};

use super::{Random, assert_same, attention::quantized, values};

const KV_HEADS: usize = 2;
const HEADS: usize = 4;
const LAYERS: usize = 2;
const SHAPE: Result<(), Error> = Err(Error::Arithmetic(ArithmeticError::Shape));

fn random_rows<M: GpuBackend>(
    kernels: &mut Kernels<M>,
    random: &mut Random,
    (count, heads, head_dim): (usize, usize, usize),
) -> Heads<M> {
    let rows = random.activations(count * heads * head_dim);
    quantized(kernels, &rows, heads, head_dim)
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
            let before = random_rows(kernels, random, (positions, KV_HEADS, head_dim));
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

/// Each layer of both caches holds the same, and of one so many positions.
fn assert_kept<M: GpuBackend>(
    kernels: &mut Kernels<M>,
    (cache, other): (&Cache<M>, &Cache<M>),
    positions: [usize; LAYERS],
) {
    for (layer, positions) in positions.into_iter().enumerate() {
        let found = kernels.kept(cache, layer, positions).unwrap();
        assert_eq!(found, kernels.kept(other, layer, positions).unwrap());
        let more = kernels.kept(cache, layer, positions + 1).map(drop);
        assert_eq!(more, SHAPE, "layer {layer} has more than {positions}");
    }
}

/// A dozen sequences of different lengths, in one launch: keys, values and results are those of each alone.
pub fn sequences_attend_together_as_alone<M: GpuBackend>(kernels: &mut Kernels<M>) {
    let mut random = Random::new(34);
    for head_dim in [5, 16] {
        let shapes: Vec<_> = shapes().take(12).collect();
        let count: usize = shapes.iter().map(|(rows, _)| rows).sum();
        let keys = random_rows(kernels, &mut random, (count, KV_HEADS, head_dim));
        let key_values = random_rows(kernels, &mut random, (count, KV_HEADS, head_dim));
        let queries = random_rows(kernels, &mut random, (count, HEADS, head_dim));
        let len = count * HEADS * head_dim;

        let pages = Pages::new(LAYERS, KV_HEADS, head_dim).unwrap();
        let (mut together, mut alone) = (Vec::new(), Vec::new());
        let mut expected = kernels.upload(&vec![0.0; len]).unwrap();
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
            assert_kept(kernels, (cache, alone), [first, first + rows]);
        }
        let caches: Vec<&Cache<M>> = together.iter().collect();
        // All at once, and with little room for partial results: a few rows at a time.
        for (mixing, room) in [
            (Mixing::Rows, 1 << 26),
            (Mixing::Blocks, 1 << 26),
            (Mixing::Blocks, 3 * HEADS * 2 * head_dim),
        ] {
            kernels.mix_by(mixing);
            kernels.limit(room);
            let mut out = kernels.floats(len).unwrap();
            kernels
                .attend_sequences(&sequences, &queries, &caches, 1, &mut out)
                .unwrap();
            let what = format!("heads of {head_dim}, {mixing:?}, {room}");
            assert_same(&values(kernels, &out), &expected, &what);
        }
        kernels.mix_by(Mixing::Auto);
        kernels.limit(1 << 26);

        let mut out = kernels.floats(len).unwrap();
        let others: Vec<&Cache<M>> = alone.iter().collect();
        for (caches, layer, what) in [
            (&caches[..], 0, "positions that are not there"),
            (&caches, LAYERS, "a layer that is not there"),
            (&caches[1..], 1, "too few caches"),
            (&others, 1, "pages that the machine was not told"),
        ] {
            let refused = kernels.attend_sequences(&sequences, &queries, caches, layer, &mut out);
            assert_eq!(refused, SHAPE, "{what}");
        }
    }
    refused(kernels);
}

fn refused<M: GpuBackend>(kernels: &mut Kernels<M>) {
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
        assert_eq!(kernels.sequences(&[sequence]).map(drop), SHAPE, "{rows}, {first}");
    }
    let sequence = |cache| SequenceRows {
        cache,
        rows: 1,
        first: 0,
    };
    assert_eq!(kernels.sequences(&[]).map(drop), SHAPE, "no sequences");
    let of_two = [sequence(&cache), sequence(&other)];
    assert_eq!(kernels.sequences(&of_two).map(drop), SHAPE, "pages of two models");
}
