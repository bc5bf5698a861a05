//! Quantized products and tables.

use surety_cuda::{GpuBackend, Kernels, Path, Quanta, Rows, Weights};
use surety_exact as exact;

use super::{Random, assert_same, values};

const PATHS: [Path; 5] = [Path::Auto, Path::Few, Path::Many, Path::Library, Path::Dots];
const PRECISIONS: [exact::Precision; 2] = [exact::Precision::Int8, exact::Precision::Int12];

struct Case {
    inputs: usize,
    outputs: usize,
    precision: exact::Precision,
    q: Vec<i16>,
    /// The same in bytes, of int8.
    bytes: Vec<i8>,
    scales: Vec<f32>,
    bias: Option<Vec<f32>>,
    smoothing_scale: Option<Vec<f32>>,
}

impl Case {
    fn new(
        random: &mut Random,
        precision: exact::Precision,
        (inputs, outputs): (usize, usize),
        extras: bool,
    ) -> Self {
        let q = random.quanta(precision, inputs * outputs);
        Self {
            inputs,
            outputs,
            precision,
            bytes: q.iter().map(|q| *q as i8).collect(),
            q,
            scales: random.scales(outputs * exact::groups(inputs)),
            bias: extras.then(|| random.activations(outputs)),
            smoothing_scale: extras.then(|| (0..inputs).map(|_| 0.5 + random.unit().abs()).collect()),
        }
    }

    fn weights(&self) -> Weights<'_> {
        Weights {
            inputs: self.inputs,
            outputs: self.outputs,
            q: match self.precision {
                exact::Precision::Int8 => Quanta::Int8(&self.bytes),
                exact::Precision::Int12 => Quanta::Int12(&self.q),
            },
            scales: &self.scales,
            bias: self.bias.as_deref(),
        }
    }

    /// By the definition.
    fn expected(&self, rows: &[f32]) -> Vec<f32> {
        let groups = exact::groups(self.inputs);
        let mut out = Vec::new();
        for row in rows.chunks(self.inputs) {
            let mut row = row.to_vec();
            if let Some(smoothing_scale) = &self.smoothing_scale {
                exact::scale_row(&row.clone(), smoothing_scale, &mut row).unwrap();
            }
            let (mut q, mut s) = (vec![0; self.inputs], vec![0.0; groups]);
            exact::quantize_row(&row, self.precision, &mut q, &mut s).unwrap();
            for output in 0..self.outputs {
                let w = &self.q[output * self.inputs..][..self.inputs];
                let t = &self.scales[output * groups..][..groups];
                let bias = self.bias.as_ref().map_or(0.0, |bias| bias[output]);
                out.push(exact::product_cell(&q, &s, w, t, bias).unwrap());
            }
        }
        out
    }

    /// On every path.
    fn check<M: GpuBackend>(&self, kernels: &mut Kernels<M>, rows: &[f32], what: &str) {
        let expected = self.expected(rows);
        for path in PATHS {
            kernels.take(path);
            let what = format!("{:?}: {what}, {path:?}", self.precision);
            assert_same(&self.found(kernels, rows), &expected, &what);
        }
        kernels.take(Path::Auto);
    }

    fn found<M: GpuBackend>(&self, kernels: &mut Kernels<M>, rows: &[f32]) -> Vec<f32> {
        let count = rows.len() / self.inputs;
        let packed = kernels.pack(&self.weights()).unwrap();
        let smoothing_scale = self
            .smoothing_scale
            .as_ref()
            .map(|smoothing_scale| kernels.upload(smoothing_scale).unwrap());
        let rows = kernels.upload(rows).unwrap();
        let mut quantized = Rows::new(self.precision);
        kernels
            .quantize(&rows, self.inputs, smoothing_scale.as_ref(), &mut quantized)
            .unwrap();
        let mut out = kernels.floats(count * self.outputs).unwrap();
        kernels.product(&quantized, &packed, &mut out).unwrap();
        values(kernels, &out)
    }
}

/// Rows with what makes quantizing hard: groups of zeros, of vanishing and of large values, and ties in
/// rounding.
fn rows(random: &mut Random, count: usize, width: usize) -> Vec<f32> {
    let mut rows = random.activations(count * width);
    for (i, group) in rows.chunks_mut(width.min(exact::GROUP)).enumerate() {
        let by = match i % 7 {
            1 => 0.0,
            2 => 1e-33,
            3 => 1e20,
            4 => 1e-20,
            _ => 1.0,
        };
        for (j, value) in group.iter_mut().enumerate() {
            *value = if i % 7 == 5 {
                (j % 255) as f32 - 126.5
            } else {
                *value * by
            };
        }
        if i % 7 == 5 {
            group[0] = 127.0;
        }
    }
    rows
}

pub fn products_equal_the_definition<M: GpuBackend>(kernels: &mut Kernels<M>) {
    let mut random = Random::new(1);
    let sizes = [
        (1, 1),
        (5, 3),
        (127, 16),
        (128, 17),
        (129, 130),
        (384, 40),
        (1000, 7),
        // More groups than a block of few rows has warps, and more than it adds up at a time.
        (1200, 20),
        (2200, 5),
        (6300, 3),
    ];
    for (inputs, outputs) in sizes {
        for (count, precision) in [1, 2, 8, 9, 33, 70]
            .into_iter()
            .flat_map(|n| PRECISIONS.map(|p| (n, p)))
        {
            let case = Case::new(&mut random, precision, (inputs, outputs), count % 2 == 1);
            let rows = rows(&mut random, count, inputs);
            case.check(kernels, &rows, &format!("{count} rows, {inputs} to {outputs}"));
        }
    }
}

/// Every term of a sum is as large as it can be, with one sign or two; and numbers that no conversion gives,
/// whose sums wrap.
pub fn products_of_the_largest_numbers_equal_the_definition<M: GpuBackend>(kernels: &mut Kernels<M>) {
    let mut random = Random::new(10);
    let (inputs, outputs) = (300, 18);
    let extremes: [(exact::Precision, &[i16]); 6] = [
        (exact::Precision::Int8, &[127]),
        (exact::Precision::Int8, &[-128]),
        (exact::Precision::Int8, &[-128, 127, 0]),
        (exact::Precision::Int12, &[-2047, 2047, 2047, 63, -64]),
        (exact::Precision::Int12, &[8191, -8192]),
        (exact::Precision::Int12, &[i16::MIN, i16::MAX]),
    ];
    for (precision, extremes) in extremes {
        let mut case = Case::new(&mut random, precision, (inputs, outputs), true);
        case.smoothing_scale = None;
        for (i, q) in case.q.iter_mut().enumerate() {
            *q = extremes[i % extremes.len()];
        }
        case.bytes = case.q.iter().map(|q| *q as i8).collect();
        for signs in [&[1.0][..], &[-1.0], &[1.0, -1.0, -1.0], &[0.0]] {
            let rows: Vec<f32> = signs.iter().copied().cycle().take(40 * inputs).collect();
            case.check(
                kernels,
                &rows,
                &format!("weights of {extremes:?}, rows of {signs:?}"),
            );
        }
    }
}

/// Matrices of different sizes, some of several blocks, with and without a bias.
pub fn products_of_the_same_rows_equal_the_definition<M: GpuBackend>(kernels: &mut Kernels<M>) {
    let mut random = Random::new(11);
    let inputs = 200;
    for (outputs, precision) in [[5, 140, 17], [130, 1, 16]]
        .into_iter()
        .flat_map(|outputs| PRECISIONS.map(|p| (outputs, p)))
    {
        for count in [1, 20, 66] {
            let rows = rows(&mut random, count, inputs);
            let mut cases: Vec<Case> = outputs
                .iter()
                .map(|outputs| Case::new(&mut random, precision, (inputs, *outputs), outputs % 2 == 1))
                .collect();
            for case in &mut cases {
                case.smoothing_scale = None;
            }
            // The last is not for tensor cores, nor are the others beside it.
            if count == 20 && precision == exact::Precision::Int12 {
                cases[2].q.fill(i16::MIN);
            }
            let on_machine = kernels.upload(&rows).unwrap();
            let mut quantized = Rows::new(precision);
            kernels
                .quantize(&on_machine, inputs, None, &mut quantized)
                .unwrap();
            for some in [&cases[..1], &cases[..2], &cases] {
                let mut parts: Vec<_> = some
                    .iter()
                    .map(|case| {
                        let packed = kernels.pack(&case.weights()).unwrap();
                        (packed, kernels.floats(count * case.outputs).unwrap())
                    })
                    .collect();
                for path in PATHS {
                    kernels.take(path);
                    let mut given: Vec<_> = parts.iter_mut().map(|(packed, out)| (&*packed, out)).collect();
                    kernels.products(&quantized, &mut given).unwrap();
                    for (case, (_, out)) in some.iter().zip(&parts) {
                        let what = format!("{precision:?}: {count} rows to {outputs:?}, {path:?}");
                        assert_same(&values(kernels, out), &case.expected(&rows), &what);
                    }
                }
            }
        }
    }
    kernels.take(Path::Auto);
}

pub fn a_row_does_not_depend_on_its_neighbors<M: GpuBackend>(kernels: &mut Kernels<M>) {
    let mut random = Random::new(2);
    let case = Case::new(&mut random, exact::Precision::Int12, (256, 48), true);
    let rows = random.activations(65 * 256);
    let alone: Vec<f32> = rows
        .chunks(256)
        .flat_map(|row| case.found(kernels, row))
        .collect();
    for count in [2, 7, 32, 65] {
        let together = case.found(kernels, &rows[..count * 256]);
        assert_same(&together, &alone[..count * 48], &format!("{count} rows"));
    }
}

/// Little room: a round takes few of the rows.
pub fn rounds_of_rows_do_not_show<M: GpuBackend>(kernels: &mut Kernels<M>) {
    let mut random = Random::new(9);
    let case = Case::new(&mut random, exact::Precision::Int8, (300, 20), true);
    let rows = random.activations(23 * 300);
    let expected = case.expected(&rows);
    // A row takes 3 groups of 32 padded outputs.
    for room in [1, 5 * 3 * 32, 22 * 3 * 32] {
        kernels.limit(room);
        for path in [Path::Dots, Path::Library] {
            kernels.take(path);
            assert_same(
                &case.found(kernels, &rows),
                &expected,
                &format!("room for {room}, {path:?}"),
            );
        }
    }
    kernels.take(Path::Auto);
}

pub fn embedding_equals_the_definition<M: GpuBackend>(kernels: &mut Kernels<M>) {
    let mut random = Random::new(3);
    let tables = [(1, 1), (50, 129), (20, 384)];
    for ((rows, width), precision) in tables.into_iter().flat_map(|t| PRECISIONS.map(|p| (t, p))) {
        let case = Case::new(&mut random, precision, (width, rows), false);
        let table = kernels.pack(&case.weights()).unwrap();
        let tokens: Vec<u32> = (0..23).map(|_| random.below(rows) as u32).collect();
        let groups = exact::groups(width);
        let element = |token: u32, j: usize| {
            let row = token as usize;
            f32::from(case.q[row * width + j]) * case.scales[row * groups + j / exact::GROUP]
        };
        let cells = tokens
            .iter()
            .flat_map(|token| (0..width).map(move |j| (*token, j)));
        let expected: Vec<f32> = cells.map(|(token, j)| element(token, j)).collect();
        let numbers = kernels.numbers(&tokens).unwrap();
        let mut out = kernels.floats(tokens.len() * width).unwrap();
        kernels.embed(&table, &numbers, &mut out).unwrap();
        assert_same(
            &values(kernels, &out),
            &expected,
            &format!("a table of {rows} rows of {width}"),
        );
    }
}
