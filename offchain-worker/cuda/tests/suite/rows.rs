//! Functions of one value, normalisations, pooling.

use std::ops::Range;

use surety_cuda::{GpuBackend, Kernels, Norm, Packed, Quanta, Rows, Weights};
use surety_exact as exact;

use super::{Random, assert_same, range, values};

/// Values at which something changes, and many of all magnitudes.
fn arguments(random: &mut Random) -> Vec<f32> {
    let edges = [
        0.0,
        f32::MIN_POSITIVE,
        1e-45,
        1e-40,
        0.5,
        1.0,
        43.4,
        86.9,
        87.0,
        88.0,
        88.1,
        1e19,
        f32::MAX,
    ];
    let mut all: Vec<f32> = edges.iter().flat_map(|x| [*x, -*x]).collect();
    all.extend((0..4000).map(|_| random.unit() * 12.0));
    all.extend((0..2000).map(|_| random.finite()));
    all
}

pub fn functions_equal_the_definition<M: GpuBackend>(kernels: &mut Kernels<M>) {
    let mut random = Random::new(4);
    let x = arguments(&mut random);
    let y: Vec<f32> = (0..x.len()).map(|_| random.finite()).collect();
    let other = kernels.upload(&y).unwrap();
    let pairs = || x.iter().zip(&y);

    let mut floats = kernels.upload(&x).unwrap();
    let mut rows = Rows::new(exact::Precision::Int8);
    // Of all magnitudes: the products are no numbers now and then, which is a fault.
    let found = kernels.swiglu_quantize((&mut floats, &other), true, (x.len(), None), &mut rows);
    found.unwrap();
    kernels.check().ok();
    let expected: Vec<f32> = pairs().map(|(x, y)| exact::silu(*x) * y).collect();
    assert_same(&values(kernels, &floats), &expected, "swiglu");

    let mut floats = kernels.upload(&x).unwrap();
    kernels.add(&mut floats, &other).unwrap();
    let expected: Vec<f32> = pairs().map(|(x, y)| x + y).collect();
    assert_same(&values(kernels, &floats), &expected, "add");
}

/// A matrix of three outputs.
fn matrix<M: GpuBackend>(
    kernels: &mut Kernels<M>,
    precision: exact::Precision,
    (q, scales): (&[i16], &[f32]),
    inputs: usize,
) -> Packed<M> {
    let bytes: Vec<i8> = q.iter().map(|q| *q as i8).collect();
    let packed = kernels.pack(&Weights {
        inputs,
        outputs: 3,
        q: match precision {
            exact::Precision::Int8 => Quanta::Int8(&bytes),
            exact::Precision::Int12 => Quanta::Int12(q),
        },
        scales,
        bias: None,
    });
    packed.unwrap()
}

type Function = fn(f32) -> f32;
const GELUS: [(&str, bool, Function); 2] = [
    ("gelu", false, exact::gelu),
    ("gelu_tanh", true, exact::gelu_tanh),
];

/// Seen by a product of the rows.
pub fn gelus_are_quantized<M: GpuBackend>(kernels: &mut Kernels<M>) {
    let mut random = Random::new(14);
    let x = arguments(&mut random);
    let width = x.len() / 40;
    let x = &x[..40 * width];
    let smoothing: Vec<f32> = (0..width).map(|_| 0.5 * random.unit().abs()).collect();
    let smoothing = kernels.upload(&smoothing).unwrap();
    for precision in [exact::Precision::Int8, exact::Precision::Int12] {
        let q = random.quanta(precision, 3 * width);
        let packed = matrix(
            kernels,
            precision,
            (&q, &vec![1e-30; 3 * exact::groups(width)]),
            width,
        );
        let product = |kernels: &mut Kernels<M>, rows: &Rows<M>| {
            let mut out = kernels.floats(40 * 3).unwrap();
            kernels.product(rows, &packed, &mut out).unwrap();
            values(kernels, &out)
        };
        for (name, is_tanh, definition) in GELUS {
            let expected: Vec<f32> = x.iter().map(|x| definition(*x)).collect();
            let there = kernels.upload(&expected).unwrap();
            for (smoothing, is_kept) in [(None, true), (Some(&smoothing), false), (Some(&smoothing), true)] {
                let (mut apart, mut together) = (Rows::new(precision), Rows::new(precision));
                kernels.quantize(&there, width, smoothing, &mut apart).unwrap();
                let mut floats = kernels.upload(x).unwrap();
                kernels
                    .gelu_quantize((&mut floats, is_tanh), is_kept, (width, smoothing), &mut together)
                    .unwrap();
                kernels.check().unwrap();
                let expected_product = product(kernels, &apart);
                assert_same(&product(kernels, &together), &expected_product, name);
                let left = if is_kept { &expected } else { x };
                assert_same(&values(kernels, &floats), left, name);
            }
        }
    }
}

pub fn norms_equal_the_definition<M: GpuBackend>(kernels: &mut Kernels<M>) {
    let mut random = Random::new(5);
    for width in [1, 2, 15, 16, 17, 33, 384, 1000] {
        for count in [1, 7, 8, 20] {
            let what = format!("{count} rows of {width}");
            let size = [1.0, 1e-4, 300.0][count % 3];
            let rows: Vec<f32> = random
                .activations(count * width)
                .iter()
                .map(|x| x * size)
                .collect();
            let (weight, bias) = (random.activations(width), random.activations(width));
            let epsilon = [1e-12, 1e-5][count % 2];
            let mut expected = vec![0.0; rows.len()];
            let on_machine = kernels.upload(&rows).unwrap();
            let (by, plus) = (kernels.upload(&weight).unwrap(), kernels.upload(&bias).unwrap());
            let mut out = kernels.floats(rows.len()).unwrap();
            let norm = |bias| Norm {
                weight: &by,
                bias,
                epsilon,
            };

            for (row, out) in rows.chunks(width).zip(expected.chunks_mut(width)) {
                exact::layer_norm_row(row, &weight, &bias, epsilon, out).unwrap();
            }
            kernels.norm(&on_machine, &norm(Some(&plus)), &mut out).unwrap();
            assert_same(&values(kernels, &out), &expected, &format!("layer norm, {what}"));

            for (row, out) in rows.chunks(width).zip(expected.chunks_mut(width)) {
                exact::rms_norm_row(row, &weight, epsilon, out).unwrap();
            }
            kernels.norm(&on_machine, &norm(None), &mut out).unwrap();
            assert_same(&values(kernels, &out), &expected, &format!("rms norm, {what}"));
        }
    }
}

/// A norm with what quantizes in one launch is a norm, then quantizing: seen by a product of the rows.
pub fn norms_quantize_what_they_give<M: GpuBackend>(kernels: &mut Kernels<M>) {
    let mut random = Random::new(12);
    for (width, count) in [
        (1, 1),
        (33, 3),
        (128, 2),
        (129, 20),
        (1000, 5),
        (2500, 2),
        (8193, 2),
    ] {
        for precision in [exact::Precision::Int8, exact::Precision::Int12] {
            let rows = random.activations(count * width);
            let (weight, bias) = (random.activations(width), random.activations(width));
            let smoothing_scale: Vec<f32> = (0..width).map(|_| 0.5 + random.unit().abs()).collect();
            let (q, scales) = (
                random.quanta(precision, 3 * width),
                random.scales(3 * exact::groups(width)),
            );
            let packed = matrix(kernels, precision, (&q, &scales), width);
            let before = random.activations(rows.len());
            let after: Vec<f32> = rows
                .iter()
                .zip(&before)
                .map(|(row, before)| row - before)
                .collect();
            // What is there once both were added.
            let rows: Vec<f32> = after.iter().zip(&before).map(|(a, b)| a + b).collect();
            let on_machine = kernels.upload(&rows).unwrap();
            let added = kernels.upload(&before).unwrap();
            let (by, plus) = (kernels.upload(&weight).unwrap(), kernels.upload(&bias).unwrap());
            let smoothing = kernels.upload(&smoothing_scale).unwrap();
            for bias in [None, Some(&plus)] {
                let norm = Norm {
                    weight: &by,
                    bias,
                    epsilon: 1e-5,
                };
                let mut normed = kernels.floats(rows.len()).unwrap();
                kernels.norm(&on_machine, &norm, &mut normed).unwrap();
                let expected_normed = values(kernels, &normed);
                for (smoothing, kept) in [(None, true), (Some(&smoothing), false), (Some(&smoothing), true)] {
                    let what = format!("{precision:?}: {count} rows of {width}, {}", bias.is_some());
                    let product = |kernels: &mut Kernels<M>, rows: &Rows<M>| {
                        let mut out = kernels.floats(count * 3).unwrap();
                        kernels.product(rows, &packed, &mut out).unwrap();
                        values(kernels, &out)
                    };
                    let mut apart = Rows::new(precision);
                    kernels.quantize(&normed, width, smoothing, &mut apart).unwrap();
                    let expected = product(kernels, &apart);
                    for added in [None, Some(&added)] {
                        let mut there = kernels
                            .upload(if added.is_some() { &after } else { &rows })
                            .unwrap();
                        let (mut out, mut together) =
                            (kernels.floats(rows.len()).unwrap(), Rows::new(precision));
                        let into = kept.then_some(&mut out);
                        kernels
                            .norm_quantize((&mut there, added, None), &norm, into, smoothing, &mut together)
                            .unwrap();
                        assert_same(&product(kernels, &together), &expected, &what);
                        assert_same(&values(kernels, &there), &rows, &what);
                        if kept {
                            assert_same(&values(kernels, &out), &expected_normed, &what);
                        }
                    }
                }
            }
        }
    }
}

pub fn pooling_equals_the_definition<M: GpuBackend>(kernels: &mut Kernels<M>) {
    let mut random = Random::new(6);
    let spans: [Range<u32>; 4] = [0..1, 1..8, 8..40, 3..37];
    for width in [1, 5, 384] {
        let rows = random.activations(40 * width);
        let mut expected = vec![0.0; spans.len() * width];
        for (span, out) in spans.iter().zip(expected.chunks_mut(width)) {
            exact::mean_pool(&rows[range(span, width)], out).unwrap();
        }
        let on_machine = kernels.upload(&rows).unwrap();
        let sequences = kernels.spans(&spans).unwrap();
        let mut out = kernels.floats(expected.len()).unwrap();
        kernels
            .mean_pool(&on_machine, width, &sequences, &mut out)
            .unwrap();
        assert_same(&values(kernels, &out), &expected, "mean");

        for row in expected.chunks_mut(width) {
            exact::l2_normalize(row).unwrap();
        }
        kernels.l2_normalize(&mut out, width).unwrap();
        assert_same(&values(kernels, &out), &expected, "length");

        let numbers = [39, 0, 7];
        let some = kernels.numbers(&numbers).unwrap();
        let mut out = kernels.floats(numbers.len() * width).unwrap();
        kernels.gather(&on_machine, width, &some, &mut out).unwrap();
        let picked = numbers
            .iter()
            .flat_map(|row| rows[*row as usize * width..][..width].to_vec());
        assert_same(
            &values(kernels, &out),
            &picked.collect::<Vec<_>>(),
            "rows by number",
        );
    }
}

/// The first of equal ones, 0 and -0 among them, wherever it is; rows that fill no block, and more than one.
pub fn the_likeliest_is_the_first_of_the_largest<M: GpuBackend>(kernels: &mut Kernels<M>) {
    let mut random = Random::new(53);
    for width in [1, 31, 129, 1000, 1025, 8193, 20_000] {
        let mut rows: Vec<Vec<f32>> = (0..4).map(|_| random.activations(width)).collect();
        rows.push(vec![-3.0; width]);
        rows.push((0..width).map(|i| if i % 2 == 0 { -0.0 } else { 0.0 }).collect());
        rows.push(
            (0..width)
                .map(|i| if i % 40 == 39 { 7.5 } else { -1e30 })
                .collect(),
        );
        rows.push((0..width).map(|i| i as f32).collect());
        // Equal ones that one thread meets, and two.
        for apart in [1024, 8192, 1023] {
            let largest = |i: usize| i % apart == 7 && i > apart;
            rows.push((0..width).map(|i| if largest(i) { 2.5 } else { 1.0 }).collect());
        }
        let expected: Vec<u32> = rows.iter().map(|row| exact::greedy(row).unwrap()).collect();
        let there = kernels.upload(&rows.concat()).unwrap();
        let mut chosen = kernels.floats(rows.len()).unwrap();
        kernels.greedy(&there, width, &mut chosen).unwrap();
        let found = kernels.download(&chosen).unwrap();
        let found: Vec<u32> = found.into_iter().map(f32::to_bits).collect();
        assert_eq!(found, expected, "{width}");
    }
}
