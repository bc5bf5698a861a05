//! Rounding weights so that their errors cancel where it counts.
//!
//! Each weight to its nearest step gives the least error of the weights, not of the outputs: inputs go up and
//! down together, and what one weight is off by another can make up for. A row is rounded from its first
//! weight to its last, and each takes into account what those before it are off by (GPTQ,
//! <https://arxiv.org/abs/2210.17323>), as far as the inputs that were seen tell. Scales are those of plain
//! rounding.

use rayon::prelude::*;
use surety_exact::{ArithmeticError, GROUP, Precision, quantize_row, round};

use super::calibration::Seen;

/// Inputs that make up for each other: a block of so many, from the first on. Time grows with it, and memory.
const BLOCK: usize = 8 * GROUP;

/// Of int12 nothing is left to be made up for.
const PRECISION: Precision = Precision::Int8;

/// How much the inputs may be taken to vary by themselves, as a share of their mean square: what was seen is
/// not all that there is.
const DAMPINGS: [f64; 2] = [0.1, 1.0];

/// Of so many rows one is held out to choose by.
const HELD_OUT_EVERY: usize = 4;

const LANES: usize = 8;

/// For the rows of all weights that take one input.
pub(super) struct Rounding {
    /// None where nothing was seen but zeros.
    blocks: Vec<Option<Block>>,
}

/// For each input of a block how much the error of each one before it adds to its target.
struct Block(Vec<Vec<f32>>);

impl Rounding {
    /// For an input that is multiplied by `smoothing_scale`.
    pub(super) fn new(seen: &Seen, smoothing_scale: Option<&[f32]>) -> Self {
        let width = seen.squares.len();
        let rows = || {
            let all = seen.sample.chunks_exact(width.max(1));
            all.chain(seen.made_up.chunks_exact(width.max(1)))
        };
        let column = |channel: usize| {
            let by = smoothing_scale
                .and_then(|scale| scale.get(channel))
                .copied()
                .unwrap_or(1.0);
            let values = rows().filter_map(|row| row.get(channel));
            values.map(|value| f64::from(value * by)).collect::<Vec<f64>>()
        };
        let block = |start: usize| {
            let channels = start..(start + BLOCK).min(width);
            Block::new(&channels.map(column).collect::<Vec<_>>())
        };
        Self {
            blocks: (0..width).step_by(BLOCK).map(block).collect(),
        }
    }

    /// Quantizes one row.
    ///
    /// # Errors
    /// Those of [`quantize_row`].
    pub(super) fn row(&self, row: &[f32], q: &mut [i8], scales: &mut [f32]) -> Result<(), ArithmeticError> {
        quantize_row(row, PRECISION, q, scales)?;
        let parts = row.chunks(BLOCK).zip(q.chunks_mut(BLOCK));
        let parts = parts.zip(scales.chunks(BLOCK / GROUP)).zip(&self.blocks);
        for (((row, q), scales), block) in parts {
            if let Some(block) = block {
                block.round(row, q, scales);
            }
        }
        Ok(())
    }
}

impl Block {
    /// `columns` holds the values of each input, row after row of what was seen.
    ///
    /// Part of the rows is held out: they tell which damping is best for what has not been seen, and whether
    /// any is better than plain rounding.
    fn new(columns: &[Vec<f64>]) -> Option<Self> {
        let part = |held_out: bool| {
            let chosen = |row: usize| (row % HELD_OUT_EVERY == HELD_OUT_EVERY - 1) == held_out;
            let of_one = |column: &Vec<f64>| {
                let values = column.iter().enumerate();
                values
                    .filter_map(|(row, value)| chosen(row).then_some(*value))
                    .collect::<Vec<_>>()
            };
            columns.iter().map(of_one).collect::<Vec<_>>()
        };
        let held_out = part(true);
        let learned = products(&part(false));
        let count = held_out.first().map_or(0, Vec::len);
        let rows: Vec<Vec<f64>> = (0..count)
            .map(|row| {
                held_out
                    .iter()
                    .filter_map(|column| column.get(row))
                    .copied()
                    .collect()
            })
            .collect();
        let mut least = rows.iter().flatten().map(|value| value * value).sum::<f64>();
        let mut best = None;
        for damping in DAMPINGS {
            let Some(factor) = Factor::new(learned.clone(), damping) else {
                continue;
            };
            let errors: Vec<f64> = rows.par_iter().map(|row| factor.error(row)).collect();
            let error = errors.iter().sum();
            if error < least {
                (least, best) = (error, Some(damping));
            }
        }
        Some(Factor::new(products(columns), best?)?.feedback())
    }

    fn round(&self, row: &[f32], q: &mut [i8], scales: &[f32]) {
        let most = f32::from(PRECISION.max());
        let mut errors = Vec::with_capacity(row.len());
        let values = row.iter().zip(q).zip(&self.0);
        for (index, ((value, q), feedback)) in values.enumerate() {
            let scale = scales.get(index / GROUP).copied().unwrap_or_default();
            // A group of zeros has no steps.
            if scale > 0.0 {
                let target = value + dot_f32(feedback, &errors);
                *q = round((target / scale).clamp(-most, most)) as i8;
            }
            errors.push(value - f32::from(*q) * scale);
        }
    }
}

/// The products of all pairs of columns, added up over the rows: row `i` begins with the diagonal.
fn products(columns: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let row = |(i, a): (usize, &Vec<f64>)| columns.iter().skip(i).map(|b| dot(a, b)).collect();
    columns.par_iter().enumerate().map(row).collect()
}

/// `R` with `R Rᵀ` the matrix of products, and nothing below its diagonal: what the outputs are off by is
/// then `Rᵀ (w - q)`, whose j-th part knows nothing of the inputs after j, and can be made small by choosing
/// `q[j]`.
///
/// Row `i` begins with its diagonal.
struct Factor(Vec<Vec<f64>>);

impl Factor {
    /// None for a matrix that is nothing but zeros, or not finite.
    fn new(mut rows: Vec<Vec<f64>>, damping: f64) -> Option<Self> {
        let trace: f64 = rows.iter().filter_map(|row| row.first()).sum();
        let damping = damping * trace / rows.len().max(1) as f64;
        // NaN is not above 0 either.
        if !(damping > 0.0 && damping.is_finite()) {
            return None;
        }
        for own in rows.iter_mut().filter_map(|row| row.first_mut()) {
            *own += damping;
        }
        // Each row's numbers become those of `R` from the last to the first.
        for j in (0..rows.len()).rev() {
            let (before, from) = rows.split_at_mut(j);
            let (own, rest) = from.first_mut()?.split_first_mut()?;
            let diagonal = libm::sqrt(*own - dot(rest, rest));
            // Damping keeps it away from 0.
            if !(diagonal > 0.0 && diagonal.is_finite()) {
                return None;
            }
            *own = diagonal;
            for (i, row) in before.iter_mut().enumerate() {
                let (_, tail) = row.split_at_mut_checked(j - i)?;
                let (value, tail) = tail.split_first_mut()?;
                *value = (*value - dot(tail, rest)) / diagonal;
            }
        }
        Some(Self(rows))
    }

    /// How large the square of an output's error is to be expected for these inputs, where plain rounding
    /// would have the sum of their squares: each choice leaves an error of its own, and what it passes on.
    fn error(&self, inputs: &[f64]) -> f64 {
        let mut passed_on = vec![0.0; inputs.len()];
        let mut error = 0.0;
        for (j, (row, input)) in self.0.iter().zip(inputs).enumerate().rev() {
            let (own, after) = passed_on.split_at_mut(j + 1);
            if let (Some((diagonal, rest)), Some(own)) = (row.split_first(), own.last_mut()) {
                let left = input - dot(rest, after);
                *own = left / diagonal;
                error += left * left;
            }
        }
        error
    }

    fn feedback(&self) -> Block {
        let diagonal = |j: usize| self.0.get(j).and_then(|row| row.first()).copied().unwrap_or(1.0);
        let column = |j: usize| {
            let above = self.0.iter().take(j).enumerate();
            above
                .filter_map(|(i, row)| row.get(j - i))
                .map(|value| (value / diagonal(j)) as f32)
                .collect()
        };
        Block((0..self.0.len()).map(column).collect())
    }
}

/// In a fixed order, which a compiler can keep with registers of any width.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut lanes = [0.0; LANES];
    for (a, b) in a.chunks(LANES).zip(b.chunks(LANES)) {
        for ((lane, a), b) in lanes.iter_mut().zip(a).zip(b) {
            *lane += a * b;
        }
    }
    lanes.iter().sum()
}

fn dot_f32(a: &[f32], b: &[f32]) -> f32 {
    let mut lanes = [0.0; 2 * LANES];
    let (chunks, rest) = a.as_chunks::<{ 2 * LANES }>();
    let (others, other_rest) = b.as_chunks::<{ 2 * LANES }>();
    for (a, b) in chunks.iter().zip(others) {
        for ((lane, a), b) in lanes.iter_mut().zip(a).zip(b) {
            *lane += a * b;
        }
    }
    let tail: f32 = rest.iter().zip(other_rest).map(|(a, b)| a * b).sum();
    lanes.iter().sum::<f32>() + tail
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use surety_exact::groups;

    use super::{super::smooth::tests::Dice, *};

    const WIDTH: usize = 300;

    /// Rows of inputs that go up and down together: all are made of a few.
    fn related(dice: &mut Dice, mix: &[f32], count: usize) -> Vec<f32> {
        let row = |dice: &mut Dice| {
            let few = dice.rows(1, &[1.0; 12]);
            let noise = dice.rows(1, &[0.2; WIDTH]);
            let mixed = mix
                .chunks(12)
                .map(|mix| mix.iter().zip(&few).map(|(a, b)| a * b).sum::<f32>());
            mixed.zip(noise).map(|(a, b)| a + b).collect::<Vec<_>>()
        };
        (0..count).flat_map(|_| row(dice)).collect()
    }

    fn error(inputs: &[f32], weights: &[f32], q: &[i8], scales: &[f32]) -> f64 {
        let off = |index: usize| f64::from(weights[index] - f32::from(q[index]) * scales[index / GROUP]);
        let off: Vec<f64> = (0..WIDTH).map(off).collect();
        let output = |input: &[f32]| {
            input
                .iter()
                .zip(&off)
                .map(|(x, off)| f64::from(*x) * off)
                .sum::<f64>()
        };
        inputs.chunks(WIDTH).map(|input| output(input).powi(2)).sum()
    }

    fn seen(inputs: &[f32]) -> Seen {
        let mut seen = Seen::default();
        seen.observe(inputs, WIDTH, false).unwrap();
        seen
    }

    #[test]
    fn outputs_are_less_off_than_with_plain_rounding() {
        let dice = &mut Dice(3);
        let mix = dice.rows(WIDTH, &[1.0; 12]);
        let (inputs, others) = (related(dice, &mix, 400), related(dice, &mix, 100));
        let rounding = Rounding::new(&seen(&inputs), None);
        let (mut plain, mut made) = (0.0, 0.0);
        for _ in 0..20 {
            let row = dice.rows(1, &[0.1; WIDTH]);
            let (mut q, mut scales) = (vec![0; WIDTH], vec![0.0; groups(WIDTH)]);
            quantize_row(&row, PRECISION, &mut q, &mut scales).unwrap();
            let of_plain = scales.clone();
            plain += error(&others, &row, &q, &scales);
            rounding.row(&row, &mut q, &mut scales).unwrap();
            made += error(&others, &row, &q, &scales);
            assert_eq!(scales, of_plain);
            assert!(q.iter().all(|q| *q != i8::MIN));
        }
        println!("{plain} {made}");
        assert!(made * 5.0 < plain, "{plain} {made}");
    }

    #[test]
    fn unrelated_inputs_are_not_related_by_rounding() {
        let dice = &mut Dice(4);
        let (inputs, others) = (dice.rows(800, &[1.0; WIDTH]), dice.rows(100, &[1.0; WIDTH]));
        let rounding = Rounding::new(&seen(&inputs), None);
        let (mut plain, mut made) = (0.0, 0.0);
        for _ in 0..20 {
            let row = dice.rows(1, &[0.1; WIDTH]);
            let (mut q, mut scales) = (vec![0; WIDTH], vec![0.0; groups(WIDTH)]);
            quantize_row(&row, PRECISION, &mut q, &mut scales).unwrap();
            plain += error(&others, &row, &q, &scales);
            rounding.row(&row, &mut q, &mut scales).unwrap();
            made += error(&others, &row, &q, &scales);
        }
        println!("{plain} {made}");
        // There is nothing to be gained.
        assert!(made <= 1.02 * plain, "{plain} {made}");
    }

    #[test]
    fn nothing_seen_is_plain_rounding() {
        let dice = &mut Dice(5);
        let row = dice.rows(1, &[1.0; WIDTH]);
        let (mut q, mut scales) = (vec![0; WIDTH], vec![0.0; groups(WIDTH)]);
        quantize_row(&row, PRECISION, &mut q, &mut scales).unwrap();
        for input in [0.0, f32::INFINITY, f32::NAN] {
            let rounding = Rounding::new(&seen(&[input; WIDTH]), None);
            let (mut found, mut found_scales) = (vec![0; WIDTH], vec![0.0; groups(WIDTH)]);
            rounding.row(&row, &mut found, &mut found_scales).unwrap();
            assert_eq!((&found, &found_scales), (&q, &scales), "{input}");
        }
        let rounding = Rounding::new(&seen(&row), Some(&[2.0; WIDTH]));
        let mut poisoned = row.clone();
        poisoned[7] = f32::NAN;
        assert_eq!(
            rounding.row(&poisoned, &mut q, &mut scales),
            Err(ArithmeticError::NotFinite)
        );
        rounding.row(&[0.0; WIDTH], &mut q, &mut scales).unwrap();
        assert!(q.iter().all(|q| *q == 0) && scales.iter().all(|scale| *scale == 0.0));
    }

    #[test]
    fn the_factor_is_one_of_the_matrix() {
        let matrix = [[4.0, 2.0, 0.6], [2.0, 5.0, 1.5], [0.6, 1.5, 9.0]];
        // Half of the mean of the diagonal, 6, is added to it.
        let rows = (0..3).map(|i| matrix[i][i..].to_vec()).collect();
        let factor = Factor::new(rows, 0.5).unwrap();
        let at = |i: usize, k: usize| if k < i { 0.0 } else { factor.0[i][k - i] };
        for (i, row) in matrix.iter().enumerate() {
            for (j, value) in row.iter().enumerate() {
                let product: f64 = (0..3).map(|k| at(i, k) * at(j, k)).sum();
                let right = value + if i == j { 3.0 } else { 0.0 };
                assert!((product - right).abs() < 1e-12, "{i} {j} {product} {right}");
            }
        }
        let Block(feedback) = factor.feedback();
        let lengths: Vec<usize> = feedback.iter().map(Vec::len).collect();
        assert_eq!(lengths, [0, 1, 2]);
        assert!((f64::from(feedback[2][1]) - at(1, 2) / at(2, 2)).abs() < 1e-6);
        // Alone, an input's error is its own.
        let alone = Factor::new(vec![vec![2.0]], 0.5).unwrap();
        assert!((alone.error(&[3.0]) - 9.0).abs() < 1e-12);
        assert!(Factor::new(vec![vec![0.0, 0.0], vec![0.0]], 0.5).is_none());
        assert!(Factor::new(vec![vec![f64::NAN]], 0.5).is_none());
    }
}
