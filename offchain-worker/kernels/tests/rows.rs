//! Every instruction set gives the rows of `surety_exact`, bit for bit.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Random, bits, each_isa, threads};
use proptest::prelude::*;
use surety_exact::{self as exact, Head, Turns};
use surety_kernels::{
    ArithmeticError, Cache, Heads, Mask, add, attention, gelu, gelu_tanh, layer_norm, rms_norm, rotate,
    swiglu, weights::Norm,
};

/// Values of every size, so that each branch of the functions is taken.
fn spread(random: &mut Random, count: usize) -> Vec<f32> {
    let scales = [1e-40, 1e-6, 1.0, 30.0, 1e9];
    (0..count)
        .map(|i| random.float() * scales[i % scales.len()])
        .collect()
}

#[test]
fn functions_are_the_definitions() {
    let mut random = Random::new(1);
    for count in [1, 15, 1000, 200_003] {
        let (values, other) = (spread(&mut random, count), random.floats(count));
        type Kernel = fn(&mut [f32], &[f32]);
        type Definition = fn(f32, f32) -> f32;
        let pairs: [(Kernel, Definition); 4] = [
            (|values, _| gelu(values), |x, _| exact::gelu(x)),
            (|values, _| gelu_tanh(values), |x, _| exact::gelu_tanh(x)),
            (
                |values, other| swiglu(values, other).unwrap(),
                |x, y| exact::silu(x) * y,
            ),
            (|values, other| add(values, other).unwrap(), |x, y| x + y),
        ];
        for (kernel, definition) in pairs {
            let expected: Vec<f32> = values
                .iter()
                .zip(&other)
                .map(|(x, y)| definition(*x, *y))
                .collect();
            each_isa(|isa| {
                threads(2, || {
                    let mut out = values.clone();
                    kernel(&mut out, &other);
                    assert_eq!(bits(&out), bits(&expected), "{isa:?}, {count}");
                });
            });
        }
    }
}

proptest! {
    #![proptest_config(proptest::test_runner::contextualize_config(ProptestConfig::with_cases(24)))]
    #[test]
    fn norms_are_the_definitions(seed: u64, m in 1usize..9, n in 1usize..900) {
        let mut random = Random::new(seed);
        let rows = random.floats(m * n);
        let mut norm = Norm { weight: random.floats(n), bias: Some(random.floats(n)), epsilon: 1e-6 };
        let (mut layer, mut rms) = (vec![0.0; m * n], vec![0.0; m * n]);
        let bias = norm.bias.clone().unwrap();
        let into = layer.chunks_mut(n).zip(rms.chunks_mut(n));
        for (row, (layer, rms)) in rows.chunks(n).zip(into) {
            exact::layer_norm_row(row, &norm.weight, &bias, norm.epsilon, layer).unwrap();
            exact::rms_norm_row(row, &norm.weight, norm.epsilon, rms).unwrap();
        }
        each_isa(|isa| {
            let mut out = vec![0.0; m * n];
            layer_norm(&rows, &norm, &mut out).unwrap();
            assert_eq!(bits(&out), bits(&layer), "{isa:?}");
            rms_norm(&rows, &norm, &mut out).unwrap();
            assert_eq!(bits(&out), bits(&rms), "{isa:?}");
        });
        norm.bias = None;
        prop_assert_eq!(layer_norm(&rows, &norm, &mut layer), Err(ArithmeticError::Shape));
    }
}

#[test]
fn rotating_is_the_definition() {
    let mut random = Random::new(3);
    for (heads, pairs, first) in [(1, 1, 0), (3, 16, 7), (4, 32, 1_000_000)] {
        let turns: Vec<Turns> = (0..pairs).map(|_| Turns(random.next())).collect();
        let rows = random.floats(5 * heads * 2 * pairs);
        let mut expected = rows.clone();
        for (row, position) in expected.chunks_mut(heads * 2 * pairs).zip(first..) {
            for head in row.chunks_mut(2 * pairs) {
                exact::rotate_row(head, &turns, position).unwrap();
            }
        }
        each_isa(|isa| {
            let mut out = rows.clone();
            rotate(&mut out, heads, &turns, first).unwrap();
            assert_eq!(bits(&out), bits(&expected), "{isa:?}");
        });
        let mut odd = vec![0.0; heads * 2 * pairs + 1];
        assert_eq!(rotate(&mut odd, heads, &turns, 0), Err(ArithmeticError::Shape));
        assert_eq!(
            rotate(&mut rows.clone(), heads, &turns, u32::MAX),
            Err(ArithmeticError::Shape)
        );
    }
}

fn heads(rows: &[f32], count: usize, d: usize) -> Heads {
    let mut heads = Heads::default();
    heads.quantize(rows, count, d).unwrap();
    heads
}

/// Keys and values, as rows and as a cache that was filled in steps after a use before.
struct Sequence {
    keys: Heads,
    values: Heads,
    kv_heads: usize,
    d: usize,
    cache: Cache,
}

/// One head of a row, as the definition takes it.
fn head(heads: &Heads, row: usize, head: usize) -> (Vec<i16>, f32) {
    let (mut q, scales) = heads.all().row(row).unwrap();
    (q.nth(head).unwrap().to_vec(), scales[head])
}

impl Sequence {
    fn new(random: &mut Random, n: usize, kv_heads: usize, d: usize) -> Self {
        let width = kv_heads * d;
        let (keys, values) = (random.floats(n * width), random.floats(n * width));
        Self::of(random, &keys, &values, kv_heads, d)
    }

    fn of(random: &mut Random, keys: &[f32], values: &[f32], kv_heads: usize, d: usize) -> Self {
        let width = kv_heads * d;
        let room = keys.len() / width + 9;
        let mut cache = Cache::new(kv_heads, d, room);
        let before = heads(&random.floats(room * width), kv_heads, d);
        cache.append(before.all(), before.all()).unwrap();
        cache.clear();
        for (keys, values) in keys.chunks(7 * width).zip(values.chunks(7 * width)) {
            let (keys, values) = (heads(keys, kv_heads, d), heads(values, kv_heads, d));
            cache.append(keys.all(), values.all()).unwrap();
        }
        Self {
            keys: heads(keys, kv_heads, d),
            values: heads(values, kv_heads, d),
            kv_heads,
            d,
            cache,
        }
    }

    fn attend(&self, queries: &Heads, mask: Mask) -> Vec<f32> {
        let (n, count) = (self.cache.len(), queries.all().heads());
        let mut out = vec![0.0; queries.all().count() * count * self.d];
        let scale = exact::rsqrt(self.d as f32);
        for kv_head in 0..self.kv_heads {
            let of = |heads: &Heads| (0..n).map(|j| head(heads, j, kv_head)).collect::<Vec<_>>();
            let (keys, values) = (of(&self.keys), of(&self.values));
            fn as_head((q, scale): &(Vec<i16>, f32)) -> Head<'_> {
                Head { q, scale: *scale }
            }
            let group = count / self.kv_heads;
            for (cell, out) in out.chunks_mut(self.d).enumerate() {
                let row = cell / count;
                if cell % count / group != kv_head {
                    continue;
                }
                let seen = match mask {
                    Mask::Full => n,
                    Mask::Causal { first } => first + row + 1,
                };
                let query = head(queries, row, cell % count);
                let (key, value) = (|j: usize| as_head(&keys[j]), |j: usize| as_head(&values[j]));
                exact::attention_row(as_head(&query), key, value, seen, scale, out).unwrap();
            }
        }
        out
    }
}

proptest! {
    #![proptest_config(proptest::test_runner::contextualize_config(ProptestConfig::with_cases(32)))]
    #[test]
    fn attention_is_the_definition(
        seed: u64,
        m in 1usize..20,
        before in 0usize..300,
        kv_heads in 1usize..4,
        group in 1usize..4,
        d in 1usize..100,
    ) {
        let mut random = Random::new(seed);
        let (n, count) = (before + m, kv_heads * group);
        let sequence = Sequence::new(&mut random, n, kv_heads, d);
        for position in 0..n {
            for kv_head in 0..kv_heads {
                let key = sequence.cache.key(position, kv_head).unwrap();
                assert_eq!(key, head(&sequence.keys, position, kv_head));
                let value = sequence.cache.value(position, kv_head).unwrap();
                assert_eq!(value, head(&sequence.values, position, kv_head));
            }
        }
        let queries: Vec<f32> = random.floats(m * count * d).iter().map(|q| q * 20.0).collect();
        let queries = heads(&queries, count, d);
        for mask in [Mask::Full, Mask::Causal { first: before }, Mask::Causal { first: before / 2 }] {
            let expected = sequence.attend(&queries, mask);
            each_isa(|isa| {
                let mut out = vec![f32::NAN; expected.len()];
                attention(queries.all(), &sequence.cache, mask, &mut out).unwrap();
                assert_eq!(bits(&out), bits(&expected), "{isa:?} {mask:?}");
            });
        }
    }

    #[test]
    fn heads_are_quantized_as_defined(seed: u64, rows in 1usize..40, count in 1usize..5, d in 1usize..200) {
        let values = Random::new(seed).floats(rows * count * d);
        let (mut q, mut scales) = (vec![0; values.len()], vec![0.0; rows * count]);
        exact::quantize_heads(&values, d, &mut q, &mut scales).unwrap();
        each_isa(|isa| {
            let found = heads(&values, count, d);
            for (row, (q, scales)) in q.chunks(count * d).zip(scales.chunks(count)).enumerate() {
                let (found_q, found_scales) = found.all().row(row).unwrap();
                assert_eq!(found_q.collect::<Vec<_>>().concat(), q, "{isa:?}");
                assert_eq!(bits(found_scales), bits(scales), "{isa:?}");
            }
        });
    }
}

#[test]
fn integer_sums_at_their_bounds_do_not_overflow() {
    let mut random = Random::new(5);
    let (n, d) = (2 * exact::BLOCK + 1, exact::HEAD_MAX);
    // All alike: every score and every weight is the largest there is, and so are the sums over them.
    let (high, low) = (vec![3.0; n * d], vec![-3.0; n * d]);
    let queries = [vec![3.0; d], vec![-3.0; d], vec![0.0; d], vec![1e-29; d]].concat();
    let queries = heads(&queries, 1, d);
    for (keys, values) in [(&high, &high), (&high, &low), (&low, &high), (&low, &low)] {
        let sequence = Sequence::of(&mut random, keys, values, 1, d);
        let expected = sequence.attend(&queries, Mask::Full);
        let found = expected.iter().zip(values.iter().cycle());
        assert!(found.clone().all(|(out, value)| (out - value).abs() < 1e-2));
        each_isa(|isa| {
            let mut out = vec![f32::NAN; expected.len()];
            attention(queries.all(), &sequence.cache, Mask::Full, &mut out).unwrap();
            assert_eq!(bits(&out), bits(&expected), "{isa:?}");
        });
    }
}

#[test]
fn attention_does_not_depend_on_threads_or_on_how_rows_are_cut() {
    let mut random = Random::new(4);
    let (n, count, d) = (200, 6, 64);
    let sequence = Sequence::new(&mut random, n, 3, d);
    let queries = random.floats(n * count * d);
    let expected = sequence.attend(&heads(&queries, count, d), Mask::Causal { first: 0 });
    each_isa(|isa| {
        for workers in [1, 2, 3, 16] {
            threads(workers, || {
                for rows in [1, 2, 7, 32, 65, n] {
                    let mut out = vec![f32::NAN; queries.len()];
                    let width = rows * count * d;
                    for (i, (queries, out)) in queries.chunks(width).zip(out.chunks_mut(width)).enumerate() {
                        let mask = Mask::Causal { first: i * rows };
                        attention(heads(queries, count, d).all(), &sequence.cache, mask, out).unwrap();
                    }
                    assert_eq!(
                        bits(&out),
                        bits(&expected),
                        "{isa:?}, {rows} rows, {workers} threads"
                    );
                }
            });
        }
    });
}

#[test]
fn what_is_not_finite_or_does_not_fit_is_a_fault() {
    let norm = Norm {
        weight: vec![1.0; 40],
        bias: Some(vec![0.0; 40]),
        epsilon: 0.0,
    };
    let (shape, overflow) = (Err(ArithmeticError::Shape), Err(ArithmeticError::NotFinite));
    let quantize = |rows: &[f32], count, d| Heads::default().quantize(rows, count, d);
    assert_eq!(quantize(&[f32::NAN; 40], 2, 20), overflow);
    assert_eq!(quantize(&[f32::INFINITY; 40], 2, 20), overflow);
    assert_eq!(quantize(&[0.0; 41], 2, 20), shape);
    assert_eq!(quantize(&[], 0, 20), shape);
    assert_eq!(
        quantize(&[0.0; exact::HEAD_MAX + 1], 1, exact::HEAD_MAX + 1),
        shape
    );

    let mut cache = Cache::new(2, 20, 3);
    let (one, three) = (heads(&[1.0; 40], 2, 20), heads(&[20.0; 120], 2, 20));
    assert_eq!(cache.append(one.all(), three.all()), shape);
    let four = heads(&[0.0; 160], 2, 20);
    assert_eq!(cache.append(four.all(), four.all()), shape);
    let other = heads(&[0.0; 40], 4, 10);
    assert_eq!(cache.append(other.all(), other.all()), shape);
    assert!(cache.is_empty());
    assert_eq!(attention(one.all(), &cache, Mask::Full, &mut [0.0; 40]), shape);
    cache
        .append(three.all(), heads(&[1.0; 120], 2, 20).all())
        .unwrap();
    let mut wide = Cache::new(2, 20, 3);
    wide.append(three.all(), heads(&[f32::MAX; 120], 2, 20).all())
        .unwrap();
    each_isa(|isa| {
        let mut out = [0.0; 40];
        let mut row = [1.0; 40];
        row[39] = f32::MAX;
        let found = attention(heads(&row, 2, 20).all(), &cache, Mask::Full, &mut out);
        assert_eq!(found, overflow, "{isa:?}: a score");
        let found = attention(one.all(), &wide, Mask::Full, &mut out);
        assert_eq!(found, overflow, "{isa:?}: a sum");
        for bad in [f32::NAN, f32::INFINITY] {
            row[39] = bad;
            let faults = [layer_norm(&row, &norm, &mut out), rms_norm(&row, &norm, &mut out)];
            assert_eq!(faults, [overflow; 2], "{isa:?} {bad}");
        }
        let three_heads = heads(&[1.0; 60], 3, 20);
        assert_eq!(
            attention(three_heads.all(), &cache, Mask::Full, &mut [0.0; 60]),
            shape
        );
        assert_eq!(attention(one.all(), &cache, Mask::Full, &mut [0.0; 41]), shape);
        for first in [3, usize::MAX] {
            let late = Mask::Causal { first };
            assert_eq!(attention(one.all(), &cache, late, &mut out), shape);
        }
        assert_eq!(layer_norm(&[0.0; 41], &norm, &mut [0.0; 41]), shape);
        assert_eq!(swiglu(&mut [0.0; 2], &[0.0]), shape);
        assert_eq!(add(&mut [0.0; 2], &[0.0; 3]), shape);
    });
}
