//! What the machine that runs the tests may lack, in plain code: instructions as their makers document them,
//! with the operands that the kernels give them, between the code that really stands before and behind them.
#![allow(clippy::unwrap_used)]

use surety_exact::{GROUP, SplitMix64, product_cell};

use super::*;
use crate::{
    simd::{
        Line,
        int12_tiles::{self, ROWS_MIN, Sums, TILE, TILE_LINES, Tiles},
    },
    weights::{Linear, Quanta},
};

/// `vpdpbusd`: to each of sixteen sums four unsigned bytes times four signed ones, without saturating.
#[derive(Clone, Copy)]
struct Vpdpbusd;

impl SimdIsa for Vpdpbusd {
    type Floats = [f32; LANES];
    type Sums = [i32; LANES];
    type Weights = [u8; 64];
    type Quad = [i8; 4];

    unsafe fn start(offset: i32) -> Self::Sums {
        [-offset; LANES]
    }
    unsafe fn weights(line: *const Line) -> Self::Weights {
        // SAFETY: the trait's contract.
        unsafe { (*line).0.map(|weight| weight.cast_unsigned() ^ 0x80) }
    }
    unsafe fn quad(from: *const u8) -> Self::Quad {
        // SAFETY: the trait's contract.
        unsafe { from.cast::<Self::Quad>().read_unaligned() }
    }
    unsafe fn dot(sums: Self::Sums, weights: Self::Weights, quad: Self::Quad) -> Self::Sums {
        std::array::from_fn(|lane| {
            (0..4).fold(sums[lane], |sum, k| {
                sum.wrapping_add(i32::from(weights[4 * lane + k]) * i32::from(quad[k]))
            })
        })
    }
    unsafe fn join(a: Self::Sums, b: Self::Sums) -> Self::Sums {
        std::array::from_fn(|lane| a[lane].wrapping_add(b[lane]))
    }
    unsafe fn floats(sums: Self::Sums) -> Self::Floats {
        sums.map(|sum| sum as f32)
    }
}

// The tiles of rows and blocks that the real ones have. `ScalarInt12` is what `vpdpwssd` does: to each sum
// two products of 16 bits, without saturating.
columns_for!(columns_vpdpbusd_512, Vpdpbusd, 12, 2, 4, 4);
columns_for!(columns_vpdpbusd_256, Vpdpbusd, 6, 1, 4, 2);
columns_for!(columns_vpdpwssd_512, ScalarInt12, 12, 2, 4, 4);
columns_for!(columns_vpdpwssd_256, ScalarInt12, 6, 1, 4, 2);

/// `tdpbssd`, `tdpbsud`, `tdpbusd` and `tdpbuud` on tiles that `tileloadd` reads: rows of 64 bytes.
struct PlainTiles;

impl Tiles for PlainTiles {
    unsafe fn dot(
        rows: [*const i8; 2],
        stride: usize,
        lines: [*const Line; 2],
        depth: usize,
        sums: &mut Sums,
    ) {
        // The first of two is signed, the second is not.
        let number = |byte: i8, half: usize| match half {
            0 => i32::from(byte),
            _ => i32::from(byte.cast_unsigned()),
        };
        for (product, sums) in sums.0.iter_mut().enumerate() {
            let (of_rows, of_lines) = (product / 2, product % 2);
            *sums = [[0; LANES]; TILE];
            for (row, sums) in sums.iter_mut().enumerate() {
                for at in 0..depth * TILE_LINES {
                    // SAFETY: the trait's contract: so many lines, and four bytes of each row for each.
                    let (four, line) = unsafe {
                        let four = rows[of_rows].add(row * stride + 4 * at).cast::<[i8; 4]>();
                        (four.read_unaligned(), (*lines[of_lines].add(at)).0)
                    };
                    for (lane, sum) in sums.iter_mut().enumerate() {
                        for (k, value) in four.into_iter().enumerate() {
                            let weight = number(line[4 * lane + k], of_lines);
                            *sum = sum.wrapping_add(number(value, of_rows) * weight);
                        }
                    }
                }
            }
        }
    }
}

/// As if the assembly had high and low bytes of weights in each other's place.
struct WrongTiles;

impl Tiles for WrongTiles {
    unsafe fn dot(
        rows: [*const i8; 2],
        stride: usize,
        [high, low]: [*const Line; 2],
        depth: usize,
        sums: &mut Sums,
    ) {
        // SAFETY: the trait's contract.
        unsafe { PlainTiles::dot(rows, stride, [low, high], depth, sums) }
    }
}

/// # Safety
/// As for [`int12_tiles::columns`].
unsafe fn columns_int12_tiles(job: &Job<'_>, pairs: Range<usize>) -> bool {
    // SAFETY: the caller's contract; plain code needs nothing of the machine.
    unsafe { !poisoned(int12_tiles::columns::<PlainTiles, [f32; LANES]>(job, pairs)) }
}

type Columns = unsafe fn(&Job<'_>, Range<usize>) -> bool;

const INT8: [(&str, Columns); 2] = [
    ("vpdpbusd in 512 bits", columns_vpdpbusd_512),
    ("vpdpbusd in 256 bits", columns_vpdpbusd_256),
];
const INT12: [(&str, Columns); 3] = [
    ("vpdpwssd in 512 bits", columns_vpdpwssd_512),
    ("vpdpwssd in 256 bits", columns_vpdpwssd_256),
    ("tiles of bytes", columns_int12_tiles),
];

/// Scales and a bias around weights that `value` gives.
fn layer(
    random: &mut SplitMix64,
    precision: Precision,
    (inputs, outputs): (usize, usize),
    mut value: impl FnMut(&mut SplitMix64) -> i16,
) -> Linear {
    let q: Vec<i16> = (0..inputs * outputs).map(|_| value(random)).collect();
    let scales = 0..outputs * surety_exact::groups(inputs);
    Linear {
        inputs,
        outputs,
        q: match precision {
            Precision::Int8 => Quanta::Int8(q.into_iter().map(|q| q as i8).collect()),
            Precision::Int12 => Quanta::Int12(q),
        },
        scales: scales.map(|_| random.real() / 64.0).collect(),
        bias: Some((0..outputs).map(|_| random.real()).collect()),
    }
}

/// Cell by cell, from the definition.
fn expected(rows: &Rows, layer: &Linear) -> Vec<u32> {
    let groups = surety_exact::groups(layer.inputs);
    let mut cells = Vec::new();
    for row in 0..rows.count() {
        let (q, scales) = rows.row(row).unwrap();
        for output in 0..layer.outputs {
            let weights = layer.q.row(layer.inputs, output).unwrap();
            let weight_scales = &layer.scales[output * groups..][..groups];
            let bias = layer.bias.as_ref().unwrap()[output];
            let cell = product_cell(&q, scales, &weights, weight_scales, bias).unwrap();
            cells.push(cell.to_bits());
        }
    }
    cells
}

fn computed(columns: Columns, rows: &Rows, weights: &Packed) -> Vec<u32> {
    let mut out = vec![f32::NAN; rows.count() * weights.outputs()];
    let job = Job {
        rows,
        weights,
        wide: rows.wide(),
        out: out.as_mut_ptr(),
    };
    // SAFETY: `out` has a row for each row, these are all pairs, and it is plain code.
    assert!(unsafe { columns(&job, 0..weights.pairs()) });
    out.into_iter().map(f32::to_bits).collect()
}

/// All of them, for these weights and rows of random and of extreme values.
fn check(random: &mut SplitMix64, layer: &Linear) {
    let (precision, width) = (layer.q.precision(), layer.inputs);
    let weights = Packed::new(layer).unwrap();
    let all = match precision {
        Precision::Int8 => &INT8[..],
        Precision::Int12 => &INT12[..],
    };
    for is_extreme in [false, true] {
        let mut value = || match random.real() {
            value if is_extreme => value.signum(),
            value => value * value * value,
        };
        // More than are taken at once.
        let most = ROWS_AT_ONCE + ROWS_MIN + 1;
        let values: Vec<f32> = (0..most * width).map(|_| value()).collect();
        let quantized = |count: usize| {
            let mut rows = Rows::new(precision);
            rows.quantize(&values[..count * width], width, None).unwrap();
            rows
        };
        let right = expected(&quantized(most), layer);
        for count in [1, 2, 3, 5, 12, 13, ROWS_MIN, most] {
            let rows = quantized(count);
            for (name, columns) in all {
                let found = computed(*columns, &rows, &weights);
                assert!(
                    found == right[..count * layer.outputs],
                    "{name}: {count} x {width} x {}, extreme: {is_extreme}",
                    layer.outputs
                );
            }
        }
    }
}

#[test]
fn instructions_that_a_machine_may_lack_give_the_cells_of_the_definition() {
    let random = &mut SplitMix64::new(17);
    let shapes = [
        (3, 1),
        (33, 17),
        (GROUP - 1, 34),
        (GROUP + 5, 16),
        (2 * GROUP + 64, 50),
    ];
    for precision in [Precision::Int8, Precision::Int12] {
        let (least, most) = match precision {
            Precision::Int8 => (i8::MIN.into(), i8::MAX.into()),
            Precision::Int12 => (i16::MIN, i16::MAX),
        };
        let max = precision.max();
        for shape in shapes {
            // What a converter writes, then what a file may hold.
            let within = layer(random, precision, shape, |random| {
                (random.next() % (2 * max.unsigned_abs() as u64 + 1)) as i16 - max
            });
            check(random, &within);
            let any = layer(random, precision, shape, |random| random.next() as i16);
            check(random, &any);
            for value in [max, -max, least, most] {
                let all = layer(random, precision, shape, |_| value);
                check(random, &all);
            }
        }
    }
}

#[test]
fn tiles_that_give_wrong_sums_are_found_out_before_they_are_used() {
    // SAFETY: plain code.
    let (plain, wrong) = unsafe {
        (
            int12_tiles::are_right::<PlainTiles>(),
            int12_tiles::are_right::<WrongTiles>(),
        )
    };
    assert_eq!((plain, wrong), (true, false));
}
