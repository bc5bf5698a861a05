//! Several sequences in the same launches.

use surety_cuda::{
    Cache, Error, GpuBackend, Heads, Kernels, Mask, Mixing, Pages, Quanta, Rows, SequenceRows, Weights,
};
use surety_exact::{ArithmeticError, BLOCK, Precision};

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

/// Quantized rows, seen through a product: of each element and scale.
fn multiplied<M: GpuBackend>(
    kernels: &mut Kernels<M>,
    (rows, precision): (&Rows<M>, Precision),
    (count, width): (usize, usize),
) -> Vec<f32> {
    let q: Vec<i16> = (0..width * width)
        .map(|i| i16::from(i / width == i % width))
        .collect();
    let bytes: Vec<i8> = q.iter().map(|q| *q as i8).collect();
    let by = kernels
        .pack(&Weights {
            inputs: width,
            outputs: width,
            q: match precision {
                Precision::Int8 => Quanta::Int8(&bytes),
                Precision::Int12 => Quanta::Int12(&q),
            },
            scales: &vec![1.0; width * surety_exact::groups(width)],
            bias: None,
        })
        .unwrap();
    let mut out = kernels.floats(count * width).unwrap();
    kernels.product(rows, &by, &mut out).unwrap();
    values(kernels, &out)
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
    for head_dim in [5, 16, 40] {
        let shapes: Vec<_> = shapes().take(12).collect();
        let count: usize = shapes.iter().map(|(rows, _)| rows).sum();
        let heads_of = [HEADS, KV_HEADS, KV_HEADS];
        let raw = heads_of.map(|heads| random.activations(count * heads * head_dim));
        let [query, key, value] = [0, 1, 2].map(|i| quantized(kernels, &raw[i], heads_of[i], head_dim));
        let (queries, keys, key_values) = (query, key, value);
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
            let mut raw = raw.each_ref().map(|rows| kernels.upload(rows).unwrap());
            let mut into: [Heads<M>; 3] = Default::default();
            let ([query, key, value], [own, own_keys, own_values]) = (&mut raw, &mut into);
            let parts = [
                (query, HEADS, own),
                (key, KV_HEADS, own_keys),
                (value, KV_HEADS, own_values),
            ];
            let behind = (&sequences, &mut caches[..], 1);
            kernels
                .rotate_quantize(parts, head_dim, None, None, Some(behind))
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
            let what = format!("heads of {head_dim}, {mixing:?}, {room}");
            let into = (&mut out, None);
            kernels
                .attend_sequences(&sequences, &queries, &caches, 1, into)
                .unwrap();
            assert_same(&values(kernels, &out), &expected, &what);
            let smoothing = kernels.upload(&random.activations(HEADS * head_dim)).unwrap();
            for (precision, smoothing) in [(Precision::Int8, None), (Precision::Int12, Some(&smoothing))] {
                let mut out = kernels.floats(len).unwrap();
                let (mut rows, mut expected_rows) = (Rows::new(precision), Rows::new(precision));
                let into = (&mut out, Some((smoothing, &mut rows)));
                kernels
                    .attend_sequences(&sequences, &queries, &caches, 1, into)
                    .unwrap();
                assert_same(&values(kernels, &out), &expected, &what);
                kernels
                    .quantize(&out, HEADS * head_dim, smoothing, &mut expected_rows)
                    .unwrap();
                let products = [&rows, &expected_rows]
                    .map(|rows| multiplied(kernels, (rows, precision), (count, HEADS * head_dim)));
                assert_same(&products[0], &products[1], &what);
            }
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
            let into = (&mut out, None);
            let refused = kernels.attend_sequences(&sequences, &queries, caches, layer, into);
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
