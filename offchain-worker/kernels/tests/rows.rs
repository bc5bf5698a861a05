//! Every instruction set gives the rows of `surety_exact`, bit for bit.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Random, bits, each_isa, threads};
use proptest::prelude::*;
use surety_exact::{self as exact, Turns};
use surety_kernels::{
    ArithmeticError, Cache, Mask, add, attention, gelu, gelu_tanh, layer_norm, rms_norm, rotate, swiglu,
    weights::Norm,
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

/// Keys and values, as rows and as a cache that was filled in steps after a use before.
struct Sequence {
    keys: Vec<f32>,
    values: Vec<f32>,
    kv_heads: usize,
    d: usize,
    cache: Cache,
}

impl Sequence {
    fn new(random: &mut Random, n: usize, kv_heads: usize, d: usize) -> Self {
        let width = kv_heads * d;
        let mut cache = Cache::new(kv_heads, d, n + 9);
        let before = random.floats((n + 9) * width);
        cache.append(&before, &before).unwrap();
        cache.clear();
        let (keys, values) = (random.floats(n * width), random.floats(n * width));
        for (keys, values) in keys.chunks(7 * width).zip(values.chunks(7 * width)) {
            cache.append(keys, values).unwrap();
        }
        Self {
            keys,
            values,
            kv_heads,
            d,
            cache,
        }
    }

    fn attend(&self, queries: &[f32], heads: usize, mask: Mask) -> Vec<f32> {
        let n = self.cache.len();
        let mut out = vec![0.0; queries.len()];
        let (mut scores, scale) = (vec![0.0; n], exact::rsqrt(self.d as f32));
        let cells = queries.chunks(self.d).zip(out.chunks_mut(self.d)).enumerate();
        for (cell, (query, out)) in cells {
            let (row, kv_head) = (cell / heads, cell % heads / (heads / self.kv_heads));
            let seen = match mask {
                Mask::Full => n,
                Mask::Causal { first } => first + row + 1,
            };
            let at = |j: usize, d: usize| (j * self.kv_heads + kv_head) * self.d + d;
            let (key, value) = (|j, d| self.keys[at(j, d)], |j, d| self.values[at(j, d)]);
            exact::attention_row(query, key, value, scale, &mut scores[..seen], out).unwrap();
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
        before in 0usize..90,
        kv_heads in 1usize..4,
        group in 1usize..4,
        d in 1usize..100,
    ) {
        let mut random = Random::new(seed);
        let (n, heads) = (before + m, kv_heads * group);
        let sequence = Sequence::new(&mut random, n, kv_heads, d);
        for (i, key) in sequence.keys.iter().enumerate() {
            let (position, head, d) = (i / d / kv_heads, i / d % kv_heads, i % d);
            assert_eq!(sequence.cache.key(position, head, d), *key);
            assert_eq!(sequence.cache.value(position, head, d), sequence.values[i]);
        }
        let queries: Vec<f32> = random.floats(m * heads * d).iter().map(|q| q * 20.0).collect();
        for mask in [Mask::Full, Mask::Causal { first: before }, Mask::Causal { first: before / 2 }] {
            let expected = sequence.attend(&queries, heads, mask);
            each_isa(|isa| {
                let mut out = vec![f32::NAN; queries.len()];
                attention(&queries, &sequence.cache, heads, mask, &mut out).unwrap();
                assert_eq!(bits(&out), bits(&expected), "{isa:?} {mask:?}");
            });
        }
    }
}

#[test]
fn attention_does_not_depend_on_threads_or_on_how_rows_are_cut() {
    let mut random = Random::new(4);
    let (n, heads, d) = (200, 6, 64);
    let sequence = Sequence::new(&mut random, n, 3, d);
    let queries = random.floats(n * heads * d);
    let expected = sequence.attend(&queries, heads, Mask::Causal { first: 0 });
    each_isa(|isa| {
        for count in [1, 2, 3, 16] {
            threads(count, || {
                for rows in [1, 2, 7, 32, 65, n] {
                    let mut out = vec![f32::NAN; queries.len()];
                    let width = rows * heads * d;
                    for (i, (queries, out)) in queries.chunks(width).zip(out.chunks_mut(width)).enumerate() {
                        let mask = Mask::Causal { first: i * rows };
                        attention(queries, &sequence.cache, heads, mask, out).unwrap();
                    }
                    assert_eq!(
                        bits(&out),
                        bits(&expected),
                        "{isa:?}, {rows} rows, {count} threads"
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
    let mut cache = Cache::new(2, 20, 3);
    assert_eq!(
        cache.append(&[f32::NAN; 40], &[0.0; 40]),
        Err(ArithmeticError::NotFinite)
    );
    assert_eq!(
        cache.append(&[0.0; 40], &[f32::INFINITY; 40]),
        Err(ArithmeticError::NotFinite)
    );
    assert_eq!(
        cache.append(&[0.0; 160], &[0.0; 160]),
        Err(ArithmeticError::Shape)
    );
    assert_eq!(cache.append(&[0.0; 41], &[0.0; 41]), Err(ArithmeticError::Shape));
    assert!(cache.is_empty());
    let mut out = [0.0; 40];
    assert_eq!(
        attention(&[1.0; 40], &cache, 2, Mask::Full, &mut out),
        Err(ArithmeticError::Shape)
    );
    cache.append(&[2.0; 120], &[1.0; 120]).unwrap();
    each_isa(|isa| {
        let mut out = [0.0; 40];
        for bad in [f32::NAN, f32::INFINITY, f32::MAX] {
            let mut row = [1.0; 40];
            row[39] = bad;
            assert_eq!(
                attention(&row, &cache, 2, Mask::Full, &mut out),
                Err(ArithmeticError::NotFinite),
                "{isa:?} {bad}"
            );
            if bad != f32::MAX {
                let faults = [layer_norm(&row, &norm, &mut out), rms_norm(&row, &norm, &mut out)];
                assert_eq!(faults, [Err(ArithmeticError::NotFinite); 2], "{isa:?} {bad}");
            }
        }
        assert_eq!(
            attention(&[1.0; 40], &cache, 3, Mask::Full, &mut out),
            Err(ArithmeticError::Shape)
        );
        let late = Mask::Causal { first: 3 };
        assert_eq!(
            attention(&[1.0; 40], &cache, 2, late, &mut out),
            Err(ArithmeticError::Shape)
        );
        let late = Mask::Causal { first: usize::MAX };
        assert_eq!(
            attention(&[1.0; 40], &cache, 2, late, &mut out),
            Err(ArithmeticError::Shape)
        );
        assert_eq!(
            layer_norm(&[0.0; 41], &norm, &mut [0.0; 41]),
            Err(ArithmeticError::Shape)
        );
        assert_eq!(swiglu(&mut [0.0; 2], &[0.0]), Err(ArithmeticError::Shape));
        assert_eq!(add(&mut [0.0; 2], &[0.0; 3]), Err(ArithmeticError::Shape));
    });
}
