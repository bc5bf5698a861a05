//! How much the channels of an input are scaled before quantization, so that one with large values does not
//! take the precision of its neighbors: some of its range goes to the weights (SmoothQuant,
//! <https://arxiv.org/abs/2211.10438>).
//!
//! A group's share of the error of all outputs is foretold from what was seen, as if each rounding erred by
//! itself: the square of the inputs' step times the sizes of the weights, and the square of the weights' step
//! times the sizes of the inputs. Of a few ways to divide the range each group of channels takes the one with
//! the least of it.

use surety_exact::{GROUP, groups};

use super::calibration::Seen;

/// How far a channel's range may be moved between activations and weights.
const FACTOR_MAX: f64 = 1024.0;

/// Which share of a channel's range, on a logarithmic scale, goes to the weights.
const EXPONENTS: [f64; 8] = [0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0];

/// The columns of all weights that take one input.
pub(super) struct Columns {
    largest: Vec<f32>,
    squares: Vec<f64>,
}

impl Columns {
    pub(super) fn new(width: usize) -> Self {
        Self {
            largest: vec![0.0; width],
            squares: vec![0.0; width],
        }
    }

    /// Adds a row of weights.
    pub(super) fn add(&mut self, row: &[f32]) {
        for ((largest, sum), value) in self.largest.iter_mut().zip(&mut self.squares).zip(row) {
            *largest = largest.max(value.abs());
            *sum += f64::from(*value) * f64::from(*value);
        }
    }
}

/// The choice among several vectors, group by group.
pub(super) struct Choice {
    /// What the input's channels may be multiplied by; the first of them leaves all as it is.
    factors: Vec<Vec<f32>>,
    /// What that does to the columns of the weights.
    inverses: Vec<Vec<f32>>,
    /// What the steps of the inputs cost, a vector after the other, group by group.
    inputs: Vec<f64>,
    /// What the steps of the weights cost: the squares of their peaks are added up row by row.
    peaks: Vec<f64>,
    /// Size of the inputs, by which the weights' steps cost.
    sizes: Vec<f64>,
}

impl Choice {
    pub(super) fn new(seen: &Seen, columns: &Columns) -> Self {
        let squares = seen.mean_squares();
        let width = squares.len();
        let mut factors = vec![vec![1.0; width]];
        factors.extend(EXPONENTS.map(|exponent| divided(&squares, &columns.largest, exponent)));
        let inverses = factors
            .iter()
            .map(|vector| vector.iter().map(|factor| 1.0 / factor).collect())
            .collect();
        let mut inputs = vec![0.0; factors.len() * groups(width)];
        for row in seen.sample.chunks_exact(width.max(1)) {
            add_peaks(row, &factors, &mut inputs);
        }
        let rows = (seen.sample.len() / width.max(1)).max(1) as f64;
        let weigh = |of: &[f64], inverse: bool| {
            let share = |(size, factor): (&f64, &f32)| {
                let factor = f64::from(*factor) * f64::from(*factor);
                if inverse { size / factor } else { size * factor }
            };
            let one = |vector: &Vec<f32>| {
                let parts = of.chunks(GROUP).zip(vector.chunks(GROUP));
                parts
                    .map(|(of, vector)| of.iter().zip(vector).map(share).sum::<f64>())
                    .collect::<Vec<_>>()
            };
            factors.iter().flat_map(one).collect::<Vec<_>>()
        };
        for (input, weights) in inputs.iter_mut().zip(weigh(&columns.squares, true)) {
            *input *= weights / rows;
        }
        Self {
            peaks: vec![0.0; inputs.len()],
            sizes: weigh(&squares, false),
            inputs,
            factors,
            inverses,
        }
    }

    /// Adds a row of weights.
    pub(super) fn add(&mut self, row: &[f32]) {
        add_peaks(row, &self.inverses, &mut self.peaks);
    }

    /// The best vector. `None` leaves the channels as they are.
    pub(super) fn made(self) -> Option<Vec<f32>> {
        let parts = self.inputs.iter().zip(&self.peaks).zip(&self.sizes);
        let costs: Vec<f64> = parts
            .map(|((inputs, peaks), sizes)| inputs + peaks * sizes)
            .collect();
        let width = self.factors.first().map_or(0, Vec::len);
        let count = groups(width);
        let mut best = Vec::with_capacity(width);
        for group in 0..count {
            let mut least = f64::INFINITY;
            let mut taken = 0;
            for (number, cost) in costs.iter().skip(group).step_by(count).enumerate() {
                if *cost < least {
                    (least, taken) = (*cost, number);
                }
            }
            let vector = self.factors.get(taken).into_iter().flatten();
            best.extend(vector.skip(group * GROUP).take(GROUP));
        }
        best.iter().any(|factor| *factor != 1.0).then_some(best)
    }
}

/// Has all layers scale the same inputs: by ones where one of them gains nothing by it.
pub(super) fn even_out<L>(layers: &mut [L], of: impl Fn(&mut L) -> &mut Option<Vec<f32>>) {
    let widths = layers
        .iter_mut()
        .find_map(|layer| of(layer).as_ref().map(Vec::len));
    if let Some(width) = widths {
        for layer in layers {
            of(layer).get_or_insert_with(|| vec![1.0; width]);
        }
    }
}

/// Adds the squares of the largest sizes of a row's groups, once they are scaled in each of these ways.
fn add_peaks(row: &[f32], ways: &[Vec<f32>], sums: &mut [f64]) {
    for (way, sums) in ways.iter().zip(sums.chunks_mut(groups(row.len()).max(1))) {
        for ((values, factors), sum) in row.chunks(GROUP).zip(way.chunks(GROUP)).zip(sums) {
            // As integers sizes compare the same way, and faster.
            let peak = values.iter().zip(factors).fold(0, |peak, (value, factor)| {
                peak.max((value * factor).to_bits() & 0x7fff_ffff)
            });
            let peak = f64::from(f32::from_bits(peak));
            *sum += peak * peak;
        }
    }
}

/// Leaves each channel's range to the weights to the power of `exponent`.
fn divided(squares: &[f64], weights: &[f32], exponent: f64) -> Vec<f32> {
    let factor = |(square, weight): (&f64, &f32)| {
        let (input, weight) = (libm::sqrt(*square), f64::from(*weight));
        // A channel that is always 0, or whose weights are: nothing to be shared. NaN is not above 0 either.
        if input > 0.0 && weight > 0.0 {
            let factor = libm::pow(weight, 1.0 - exponent) / libm::pow(input, exponent);
            factor.clamp(1.0 / FACTOR_MAX, FACTOR_MAX) as f32
        } else {
            1.0
        }
    };
    squares.iter().zip(weights).map(factor).collect()
}

#[cfg(test)]
pub(super) mod tests {
    #![allow(clippy::unwrap_used)]

    use surety_exact::{Precision, quantize_row};

    use super::*;

    /// Even-ish numbers from -1 to 1.
    pub(in super::super) struct Dice(pub(in super::super) u64);

    impl Dice {
        fn next(&mut self) -> f32 {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 40) as f32 / (1 << 23) as f32 - 1.0
        }

        pub(in super::super) fn rows(&mut self, count: usize, sizes: &[f32]) -> Vec<f32> {
            let row = |dice: &mut Self| sizes.iter().map(|size| size * dice.next()).collect::<Vec<_>>();
            (0..count).flat_map(|_| row(self)).collect()
        }
    }

    fn rounded(row: &[f32], by: &[f32]) -> Vec<f64> {
        let row: Vec<f32> = row.iter().zip(by).map(|(value, by)| value * by).collect();
        let (mut q, mut scales) = (vec![0; row.len()], vec![0.0; groups(row.len())]);
        quantize_row(&row, Precision::Int8, &mut q, &mut scales).unwrap();
        let value = |(index, q): (usize, &i8)| f64::from(*q) * f64::from(scales[index / GROUP]);
        q.iter().enumerate().map(value).collect()
    }

    /// The sum of squares of what the outputs are off by.
    fn error(inputs: &[f32], weights: &[f32], smoothing_scale: &[f32]) -> f64 {
        let width = smoothing_scale.len();
        let inverse: Vec<f32> = smoothing_scale.iter().map(|scale| 1.0 / scale).collect();
        let quantized: Vec<_> = weights.chunks(width).map(|row| rounded(row, &inverse)).collect();
        let mut error = 0.0;
        for input in inputs.chunks(width) {
            let near = rounded(input, smoothing_scale);
            for (weights, quantized) in weights.chunks(width).zip(&quantized) {
                let products = input.iter().zip(weights);
                let right: f64 = products.map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
                let found: f64 = near.iter().zip(quantized).map(|(a, b)| a * b).sum();
                error += (right - found) * (right - found);
            }
        }
        error
    }

    /// The vector for these, as a conversion finds it.
    fn smoothing(inputs: &[f32], weights: &[f32], width: usize) -> Option<Vec<f32>> {
        let mut seen = Seen::default();
        seen.observe(inputs, width, false).unwrap();
        let mut columns = Columns::new(width);
        weights.chunks(width).for_each(|row| columns.add(row));
        let mut choice = Choice::new(&seen, &columns);
        weights.chunks(width).for_each(|row| choice.add(row));
        choice.made()
    }

    #[test]
    fn products_are_not_further_off_than_without() {
        let dice = &mut Dice(1);
        // Calm channels; some loud ones; a few very loud ones in the second group alone; the last group is
        // short.
        let calm = vec![1.0; 300];
        let mut loud = calm.clone();
        loud.iter_mut().step_by(17).for_each(|size| *size = 20.0);
        let mut spikes = calm.clone();
        (spikes[130], spikes[200]) = (300.0, 80.0);
        for (sizes, gain) in [(&calm, 0.98), (&loud, 4.0), (&spikes, 50.0)] {
            let (seen, others) = (dice.rows(200, sizes), dice.rows(30, sizes));
            let weights = dice.rows(40, &calm);
            let smoothing_scale = smoothing(&seen, &weights, 300).unwrap_or(calm.clone());
            let (plain, smooth) = (
                error(&others, &weights, &calm),
                error(&others, &weights, &smoothing_scale),
            );
            println!("{plain} {smooth} {}", plain / smooth);
            // Of inputs that it has not seen.
            assert!(smooth * gain <= plain, "{gain}: {plain} {smooth}");
        }
    }

    #[test]
    fn a_layer_that_gains_nothing_by_scaling_scales_by_ones_where_another_gains() {
        let mut layers = [None, Some(vec![0.5, 2.0]), None];
        even_out(&mut layers, |layer| layer);
        assert_eq!(layers, [vec![1.0, 1.0], vec![0.5, 2.0], vec![1.0, 1.0]].map(Some));
        let mut plain: [Option<Vec<f32>>; 2] = [None, None];
        even_out(&mut plain, |layer| layer);
        assert_eq!(plain, [None, None]);
    }

    #[test]
    fn groups_choose_for_themselves() {
        let dice = &mut Dice(2);
        let mut sizes = vec![1.0; 256];
        sizes[140] = 400.0;
        let (inputs, weights) = (dice.rows(64, &sizes), dice.rows(8, &[1.0; 256]));
        let smoothing_scale = smoothing(&inputs, &weights, 256).unwrap();
        assert!(
            smoothing_scale[140] < 0.1 * smoothing_scale[141],
            "{} {}",
            smoothing_scale[140],
            smoothing_scale[141]
        );
        let spread = |smoothing_scale: &[f32]| {
            let least = smoothing_scale.iter().copied().fold(f32::INFINITY, f32::min);
            smoothing_scale.iter().copied().fold(0.0, f32::max) / least
        };
        assert!(spread(&smoothing_scale[..128]) < 2.0 && spread(&smoothing_scale[128..]) > 10.0);
    }

    #[test]
    fn numbers_at_the_edges_leave_finite_factors() {
        let inputs = [0.0, 1.0, 1e30, 1e-30, -3e38, 5.0];
        let weights = [1.0, 0.0, 1e-30, 1e30, 3e38, -2.0];
        if let Some(smoothing_scale) = smoothing(&inputs, &weights, 6) {
            assert!(
                smoothing_scale
                    .iter()
                    .all(|smoothing_scale| (1.0 / 1024.0..=1024.0).contains(smoothing_scale)),
                "{smoothing_scale:?}"
            );
            assert_eq!(smoothing_scale[..2], [1.0, 1.0]);
        }
        assert_eq!(smoothing(&[0.0; 6], &weights, 6), None);
        assert_eq!(smoothing(&inputs, &[0.0; 6], 6), None);
    }
}
