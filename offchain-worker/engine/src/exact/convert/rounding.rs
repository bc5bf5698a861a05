//! Rounding weights so that their errors cancel where it counts.
//!
//! Each weight to its nearest step gives the least error of the weights, not of the outputs: inputs go up and down
//! together, and what one weight is off by another can make up for. A row is rounded from its first weight to its last, and
//! each takes into account what those before it are off by (GPTQ, <https://arxiv.org/abs/2210.17323>), as far as the
//! inputs that were seen tell. Scales are those of plain rounding.

use rayon::prelude::*;
use surety_exact::{quantise_row, round, Fault, GROUP, QUANTUM_MAX};

use super::calibration::Seen;

/// Inputs that make up for each other: a block of so many, from the first on. Time grows with it, and memory.
const BLOCK: usize = 8 * GROUP;

/// How much the inputs are taken to vary by themselves, as a share of their mean square: what was seen is not all
/// that there is.
const DAMPING: f64 = 0.1;

const LANES: usize = 8;

/// For the rows of all weights that take one input.
pub(super) struct Rounding {
    /// None where nothing was seen but zeros.
    blocks: Vec<Option<Block>>,
}

/// For each input of a block how much the error of each one before it adds to its target.
struct Block(Vec<Vec<f32>>);

impl Rounding {
    /// For an input that is multiplied by `pre`.
    pub(super) fn new(seen: &Seen, pre: Option<&[f32]>) -> Self {
        let width = seen.squares.len();
        let rows = || {
            let all = seen.sample.chunks_exact(width.max(1));
            all.chain(seen.made_up.chunks_exact(width.max(1)))
        };
        let column = |channel: usize| {
            let by = pre.and_then(|pre| pre.get(channel)).copied().unwrap_or(1.0);
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

    /// Quantises one row.
    ///
    /// # Errors
    /// Those of [`quantise_row`].
    pub(super) fn row(&self, row: &[f32], q: &mut [i8], scales: &mut [f32]) -> Result<(), Fault> {
        quantise_row(row, q, scales)?;
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
    /// `columns` holds the values of each input.
    fn new(columns: &[Vec<f64>]) -> Option<Self> {
        let count = columns.len();
        // Only `k >= i`.
        let mut products: Vec<Vec<f64>> = columns
            .par_iter()
            .enumerate()
            .map(|(i, a)| columns.iter().skip(i).map(|b| dot(a, b)).collect())
            .collect();
        let diagonal: f64 = products.iter().filter_map(|row| row.first()).sum();
        let damping = DAMPING * diagonal / count.max(1) as f64;
        // NaN is not above 0 either.
        if !(damping > 0.0 && damping.is_finite()) {
            return None;
        }
        for own in products.iter_mut().filter_map(|row| row.first_mut()) {
            *own += damping;
        }
        Self::factored(products)
    }

    /// Writes the matrix as `R Rᵀ` with nothing below the diagonal of `R`: what the outputs are off by is then
    /// `Rᵀ (w - q)`, whose j-th part knows nothing of the inputs after j, and can be made small by choosing `q[j]`.
    ///
    /// Row `i` of the matrix begins with its diagonal; it becomes row `i` of `R`, from the last to the first.
    fn factored(mut rows: Vec<Vec<f64>>) -> Option<Self> {
        let count = rows.len();
        let mut feedback = vec![Vec::new(); count];
        for j in (0..count).rev() {
            let (before, from) = rows.split_at_mut(j);
            let (own, rest) = from.first_mut()?.split_first_mut()?;
            let diagonal = libm::sqrt(*own - dot(rest, rest));
            // Damping keeps it away from 0.
            if !(diagonal > 0.0 && diagonal.is_finite()) {
                return None;
            }
            *own = diagonal;
            let rest = &*rest;
            let above = |(i, row): (usize, &mut Vec<f64>)| {
                let (_, tail) = row.split_at_mut_checked(j - i)?;
                let (value, tail) = tail.split_first_mut()?;
                *value = (*value - dot(tail, rest)) / diagonal;
                Some((*value / diagonal) as f32)
            };
            *feedback.get_mut(j)? = before.iter_mut().enumerate().map(above).collect::<Option<_>>()?;
        }
        Some(Self(feedback))
    }

    fn round(&self, row: &[f32], q: &mut [i8], scales: &[f32]) {
        let mut errors = Vec::with_capacity(row.len());
        let values = row.iter().zip(q).zip(&self.0);
        for (index, ((value, q), feedback)) in values.enumerate() {
            let scale = scales.get(index / GROUP).copied().unwrap_or_default();
            // A group of zeros has no steps.
            if scale > 0.0 {
                let target = value + dot_f32(feedback, &errors);
                *q = round((target / scale).clamp(-QUANTUM_MAX, QUANTUM_MAX)) as i8;
            }
            errors.push(value - f32::from(*q) * scale);
        }
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
            quantise_row(&row, &mut q, &mut scales).unwrap();
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
    fn unrelated_inputs_are_rounded_plainly_enough() {
        let dice = &mut Dice(4);
        let (inputs, others) = (dice.rows(800, &[1.0; WIDTH]), dice.rows(100, &[1.0; WIDTH]));
        let rounding = Rounding::new(&seen(&inputs), None);
        let (mut plain, mut made) = (0.0, 0.0);
        for _ in 0..20 {
            let row = dice.rows(1, &[0.1; WIDTH]);
            let (mut q, mut scales) = (vec![0; WIDTH], vec![0.0; groups(WIDTH)]);
            quantise_row(&row, &mut q, &mut scales).unwrap();
            plain += error(&others, &row, &q, &scales);
            rounding.row(&row, &mut q, &mut scales).unwrap();
            made += error(&others, &row, &q, &scales);
        }
        println!("{plain} {made}");
        // There is nothing to be gained; what is lost is bounded, and no more than is gained on related ones.
        assert!(made < 2.0 * plain, "{plain} {made}");
    }

    #[test]
    fn nothing_seen_is_plain_rounding() {
        let dice = &mut Dice(5);
        let row = dice.rows(1, &[1.0; WIDTH]);
        let (mut q, mut scales) = (vec![0; WIDTH], vec![0.0; groups(WIDTH)]);
        quantise_row(&row, &mut q, &mut scales).unwrap();
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
            Err(Fault::NotFinite)
        );
        rounding.row(&[0.0; WIDTH], &mut q, &mut scales).unwrap();
        assert!(q.iter().all(|q| *q == 0) && scales.iter().all(|scale| *scale == 0.0));
    }

    /// `Rᵀ (w - q)`, weighed, is what outputs are off by: the factor gives the matrix back.
    #[test]
    fn the_factor_is_one_of_the_matrix() {
        let matrix = [[4.0, 2.0, 0.6], [2.0, 5.0, 1.5], [0.6, 1.5, 9.0]];
        let rows = (0..3).map(|i| matrix[i][i..].to_vec()).collect();
        let Block(feedback) = Block::factored(rows).unwrap();
        let lengths: Vec<usize> = feedback.iter().map(Vec::len).collect();
        assert_eq!(lengths, [0, 1, 2]);
        // R[2][2] = 3, R[.][2] = matrix[.][2] / 3; R[1][1]² = 5 - 0.25.
        assert!((feedback[2][0] - 0.6 / 9.0).abs() < 1e-6 && (feedback[2][1] - 1.5 / 9.0).abs() < 1e-6);
        let r12 = (2.0 - 0.2 * 0.5) / 4.75;
        assert!((f64::from(feedback[1][0]) - r12).abs() < 1e-6, "{feedback:?}");
        assert!(Block::factored(vec![vec![1.0, 2.0], vec![1.0]]).is_none());
    }
}
