//! Every instruction set of this machine gives the cells of `surety_exact::product_cell`, bit for bit,
//! whatever the shape, the neighbors of a row and the number of threads.
#![allow(clippy::unwrap_used)]

mod common;

use common::{PRECISIONS, Random, bits, each_isa, quanta, threads};
use proptest::prelude::*;
use surety_exact::{GROUP, Precision, groups, product_cell};
use surety_kernels::{
    ArithmeticError, Isa, Packed, Rows, product,
    weights::{Linear, Table},
    with_isa,
};

fn layer(random: &mut Random, precision: Precision, inputs: usize, outputs: usize) -> Linear {
    Linear {
        inputs,
        outputs,
        q: random.quanta(precision, inputs * outputs),
        scales: (0..outputs * groups(inputs))
            .map(|_| random.float().abs() / 64.0)
            .collect(),
        bias: Some(random.floats(outputs)),
    }
}

fn quantized(rows: &[f32], precision: Precision, width: usize) -> Rows {
    let mut quantized = Rows::new(precision);
    quantized.quantize(rows, width, None).unwrap();
    quantized
}

/// Cell by cell, from the definition.
fn expected(rows: &Rows, layer: &Linear) -> Vec<f32> {
    let groups = groups(layer.inputs);
    let mut out = Vec::new();
    for row in 0..rows.count() {
        let (q, s) = rows.row(row).unwrap();
        for o in 0..layer.outputs {
            let bias = layer.bias.as_ref().map_or(0.0, |bias| bias[o]);
            let (w, t) = (layer.q.row(layer.inputs, o).unwrap(), &layer.scales[o * groups..]);
            out.push(product_cell(&q, s, &w, &t[..groups], bias).unwrap());
        }
    }
    out
}

fn computed(rows: &Rows, layer: &Linear) -> Vec<f32> {
    let mut out = vec![f32::NAN; rows.count() * layer.outputs];
    product(rows, &Packed::new(layer).unwrap(), &mut out).unwrap();
    out
}

#[test]
fn packed_weights_are_read_back_as_they_were_given() {
    let random = &mut Random::new(3);
    let shapes = [(1, 1), (5, 33), (130, 16), (384, 17)];
    for (precision, (inputs, outputs)) in PRECISIONS.into_iter().flat_map(|p| shapes.map(|s| (p, s))) {
        let mut layer = layer(random, precision, inputs, outputs);
        for bias in [true, false] {
            layer.bias = layer.bias.filter(|_| bias);
            let packed = Packed::new(&layer).unwrap();
            for output in 0..outputs {
                assert_eq!(packed.row(output), layer.row(output));
                assert!(packed.row(output).is_some());
            }
            for beyond in [outputs, outputs + 40, usize::MAX] {
                assert_eq!((packed.row(beyond), layer.row(beyond)), (None, None));
            }
        }
    }
}

proptest! {
    #![proptest_config(proptest::test_runner::contextualize_config(ProptestConfig::with_cases(24)))]
    #[test]
    fn every_instruction_set_gives_the_cells_of_the_definition(
        seed: u64,
        m in 1usize..70,
        inputs in 1usize..3 * GROUP,
        outputs in 1usize..75,
        precision in prop::sample::select(&PRECISIONS[..]),
    ) {
        let mut random = Random::new(seed);
        let layer = layer(&mut random, precision, inputs, outputs);
        let rows = random.floats(m * inputs);
        let quantized = || quantized(&rows, precision, inputs);
        let expected = expected(&quantized(), &layer);
        each_isa(|isa| assert_eq!(bits(&computed(&quantized(), &layer)), bits(&expected), "{isa:?}"));
    }
}

#[test]
fn the_largest_sums_do_not_saturate() {
    let cases = [(1, 4 * GROUP), (-1, 4 * GROUP), (1, GROUP + 1), (-1, 5)];
    for (precision, (sign, inputs)) in PRECISIONS.into_iter().flat_map(|p| cases.map(|c| (p, c))) {
        let most = precision.max();
        let layer = Linear {
            inputs,
            outputs: 33,
            q: quanta(precision, (0..inputs * 33).map(|_| most * sign)),
            scales: vec![1.0; 33 * groups(inputs)],
            bias: None,
        };
        let sum = -i64::from(most) * i64::from(most) * i64::from(sign) * inputs as i64;
        for m in [1, 2, 3, 4, 5, 33] {
            let rows = vec![f32::from(-most); m * inputs];
            each_isa(|isa| {
                let out = computed(&quantized(&rows, precision, inputs), &layer);
                let right = out.iter().all(|cell| *cell == sum as f32);
                assert!(right, "{isa:?} {precision:?} {m} {inputs}");
            });
        }
    }
}

/// A converter never writes them, but a file may hold them, and a reader takes them: they must mean the same
/// to everybody. One side's sums are taken with 128 added, or with two products in 16 bits; those of 16 bits
/// wrap.
#[test]
fn weights_beyond_the_precision_are_the_definitions() {
    let mut random = Random::new(11);
    let widths = [GROUP, 3 * GROUP, GROUP + 5, 3];
    for (precision, inputs) in PRECISIONS.into_iter().flat_map(|p| widths.map(|w| (p, w))) {
        let least = match precision {
            Precision::Int8 => i16::from(i8::MIN),
            Precision::Int12 => i16::MIN,
        };
        let mut layer = layer(&mut random, precision, inputs, 34);
        // Alone, and among others.
        let values = (0..34 * inputs).map(|index| {
            if index < 17 * inputs {
                least
            } else {
                random.next() as i16
            }
        });
        layer.q = quanta(precision, values);
        for value in [127.0, -127.0, 1.0] {
            for m in [1, 2, 7, 32, 65] {
                let mut rows = vec![value; m * inputs];
                rows.iter_mut()
                    .skip(1)
                    .step_by(3)
                    .for_each(|x| *x = random.float() * 127.0);
                let rows = quantized(&rows, precision, inputs);
                let expected = expected(&rows, &layer);
                each_isa(|isa| {
                    assert_eq!(
                        bits(&computed(&rows, &layer)),
                        bits(&expected),
                        "{isa:?} {m} {inputs}"
                    );
                });
            }
        }
    }
}

#[test]
fn groups_of_zeros_and_negative_zeros_are_the_definitions() {
    for precision in PRECISIONS {
        let mut random = Random::new(7);
        let (inputs, outputs) = (3 * GROUP, 16);
        let mut layer = layer(&mut random, precision, inputs, outputs);
        layer.bias = None;
        let rest = layer.q.row(inputs * (outputs - 1), 0).unwrap();
        let values = std::iter::repeat_n(0, inputs).chain(rest);
        layer.q = quanta(precision, values);
        for o in 0..outputs {
            layer.scales[3 * o + o % 3] *= -1.0;
            layer.scales[3 * o + (o + 1) % 3] = 0.0;
        }
        for m in [1, 2, 7, 32] {
            let mut rows = random.floats(m * inputs);
            rows[GROUP..2 * GROUP].fill(0.0);
            rows[..7].fill(-0.0);
            let rows = quantized(&rows, precision, inputs);
            let expected = expected(&rows, &layer);
            each_isa(|isa| assert_eq!(bits(&computed(&rows, &layer)), bits(&expected), "{isa:?}"));
        }
    }
}

#[test]
fn a_row_does_not_depend_on_its_neighbors_or_on_threads() {
    for precision in PRECISIONS {
        let mut random = Random::new(1);
        // Enough work for several tasks.
        let (inputs, outputs) = (6 * GROUP, 1200);
        let layer = layer(&mut random, precision, inputs, outputs);
        let packed = Packed::new(&layer).unwrap();
        let rows = random.floats(65 * inputs);
        let alone: Vec<f32> = with_isa(Isa::Scalar, || {
            rows.chunks(inputs)
                .flat_map(|row| computed(&quantized(row, precision, inputs), &layer))
                .collect()
        });
        each_isa(|isa| {
            for count in [1, 2, 3, 4, 7, 16] {
                threads(count, || {
                    for m in [1, 2, 7, 32, 65] {
                        let rows = quantized(&rows[..m * inputs], precision, inputs);
                        let mut out = vec![f32::NAN; m * outputs];
                        product(&rows, &packed, &mut out).unwrap();
                        assert_eq!(
                            bits(&out),
                            bits(&alone[..m * outputs]),
                            "{isa:?}, {m} rows, {count} threads"
                        );
                    }
                });
            }
        });
    }
}

#[test]
fn a_reused_buffer_forgets_longer_rows() {
    for precision in PRECISIONS {
        let mut random = Random::new(5);
        let layer = layer(&mut random, precision, 70, 20);
        let mut rows = Rows::new(precision);
        rows.quantize(&random.floats(40 * 300), 300, None).unwrap();
        let short = random.floats(7 * 70);
        rows.quantize(&short, 70, None).unwrap();
        each_isa(|_| {
            assert_eq!(
                bits(&computed(&rows, &layer)),
                bits(&expected(&quantized(&short, precision, 70), &layer))
            )
        });
    }
}

#[test]
fn quantizing_is_the_definition() {
    for precision in PRECISIONS {
        let mut random = Random::new(2);
        for width in [1, 5, 63, GROUP, GROUP + 1, 3 * GROUP, 1200] {
            let (rows, smoothing_scale) = (random.floats(67 * width), random.floats(width));
            each_isa(|isa| {
                let mut quantized = Rows::new(precision);
                quantized.quantize(&rows, width, Some(&smoothing_scale)).unwrap();
                for (i, row) in rows.chunks(width).enumerate() {
                    let scaled: Vec<f32> = row
                        .iter()
                        .zip(&smoothing_scale)
                        .map(|(x, scale)| x * scale)
                        .collect();
                    let (mut q, mut scales) = (vec![0; width], vec![0.0; groups(width)]);
                    surety_exact::quantize_row(&scaled, precision, &mut q, &mut scales).unwrap();
                    let (got, got_scales) = quantized.row(i).unwrap();
                    assert_eq!((got, bits(got_scales)), (q, bits(&scales)), "{isa:?}");
                }
            });
        }
    }
}

#[test]
fn what_is_not_finite_is_a_fault() {
    for precision in PRECISIONS {
        let (inputs, outputs) = (GROUP + 3, 40);
        let mut layer = layer(&mut Random::new(3), precision, inputs, outputs);
        each_isa(|isa| {
            for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
                for m in [1, 7, 700] {
                    let mut rows = vec![1.0; m * inputs];
                    *rows.last_mut().unwrap() = bad;
                    assert_eq!(
                        Rows::new(precision).quantize(&rows, inputs, None),
                        Err(ArithmeticError::NotFinite),
                        "{isa:?}"
                    );
                }
            }
        });
        // The last output alone overflows.
        let values = (0..outputs * inputs).map(|_| precision.max());
        layer.q = quanta(precision, values);
        *layer.scales.last_mut().unwrap() = f32::MAX;
        let packed = Packed::new(&layer).unwrap();
        each_isa(|isa| {
            for m in [1, 2, 3, 4, 5, 12, 33] {
                let rows = quantized(&vec![1e6; m * inputs], precision, inputs);
                let fault = product(&rows, &packed, &mut vec![0.0; m * outputs]);
                assert_eq!(fault, Err(ArithmeticError::NotFinite), "{isa:?}");
            }
        });
        *layer.scales.last_mut().unwrap() = f32::NAN;
        assert_eq!(Packed::new(&layer).err(), Some(ArithmeticError::NotFinite));
    }
}

#[test]
fn shapes_that_do_not_fit_are_faults() {
    for precision in PRECISIONS {
        let layer = layer(&mut Random::new(4), precision, 8, 3);
        let packed = Packed::new(&layer).unwrap();
        let rows = quantized(&[1.0; 16], precision, 8);
        assert_eq!(
            product(&rows, &packed, &mut [0.0; 5]),
            Err(ArithmeticError::Shape)
        );
        assert_eq!(
            product(&quantized(&[1.0; 14], precision, 7), &packed, &mut [0.0; 6]),
            Err(ArithmeticError::Shape)
        );
        assert_eq!(
            Rows::new(precision).quantize(&[1.0; 7], 2, None),
            Err(ArithmeticError::Shape)
        );
        assert_eq!(
            Rows::new(precision).quantize(&[1.0; 8], 2, Some(&[1.0])),
            Err(ArithmeticError::Shape)
        );
        let other = PRECISIONS.into_iter().find(|other| *other != precision).unwrap();
        assert_eq!(
            product(&quantized(&[1.0; 16], other, 8), &packed, &mut [0.0; 6]),
            Err(ArithmeticError::Shape)
        );
        let short = Linear {
            scales: Vec::new(),
            ..layer.clone()
        };
        assert_eq!(Packed::new(&short).err(), Some(ArithmeticError::Shape));
        let short = Linear {
            outputs: usize::MAX,
            ..layer
        };
        assert_eq!(Packed::new(&short).err(), Some(ArithmeticError::Shape));
    }
}

#[test]
fn a_table_gives_logits() {
    for precision in PRECISIONS {
        let layer = Linear {
            bias: None,
            ..layer(&mut Random::new(6), precision, 200, 50)
        };
        let table = Table {
            rows: 50,
            width: 200,
            q: layer.q.clone(),
            scales: layer.scales.clone(),
        };
        let rows = quantized(&Random::new(8).floats(200), precision, 200);
        let mut out = vec![0.0; 50];
        product(&rows, &Packed::from_table(&table).unwrap(), &mut out).unwrap();
        assert_eq!(bits(&out), bits(&expected(&rows, &layer)));
    }
}
