//! Muon for the matrices inside the layers, AdamW for everything else; a learning rate that rises, then falls
//! along a cosine.
//!
//! AdamW alone needs about twice the time to get as far in so few steps.

use std::f64::consts::PI;

use candle_core::{Result, Tensor, Var};
use rayon::prelude::*;

use super::network::Network;

/// Muon's memory of earlier gradients.
const MOMENTUM: f32 = 0.95;
/// Makes Muon's steps about as long as AdamW's, so that both go by one learning rate (Liu et al. 2025).
const MUON_STEP: f32 = 0.2;
/// Iterations towards an orthogonal matrix, and their polynomial's coefficients (Jordan et al. 2024).
const ITERATIONS: usize = 5;
const POLYNOMIAL: [f64; 3] = [3.4445, -4.775, 2.0315];

const BETA_1: f32 = 0.9;
const BETA_2: f32 = 0.95;
const EPSILON: f32 = 1e-8;
const WEIGHT_DECAY: f32 = 0.1;

/// Longest step that a gradient may ask for.
const NORM_MAX: f64 = 1.0;
/// Share of the steps in which the learning rate rises.
const WARM_UP: f64 = 0.05;
/// What is left of the learning rate at the end.
const FLOOR: f64 = 0.05;

/// Learning rate of a step, from 0.
pub(super) fn learning_rate(peak: f64, step: usize, steps: usize) -> f64 {
    let warm_up = (steps as f64 * WARM_UP).ceil().max(1.0);
    let step = step as f64;
    if step < warm_up {
        return peak * (step + 1.0) / warm_up;
    }
    let way = (step - warm_up) / (steps as f64 - warm_up).max(1.0);
    peak * (FLOOR + (1.0 - FLOOR) * 0.5 * (1.0 + (PI * way).cos()))
}

/// What is kept of a parameter's earlier gradients.
enum Memory {
    Muon { mean: Vec<f32> },
    AdamW { mean: Vec<f32>, squares: Vec<f32> },
}

pub(super) struct Optimizer {
    memories: Vec<Memory>,
    steps: i32,
}

impl Optimizer {
    pub(super) fn new(network: &Network) -> Self {
        let memories = network.parameters.iter().map(|(name, parameter)| {
            let mean = vec![0.0; parameter.elem_count()];
            if parameter.rank() == 2 && name.starts_with("model.layers.") {
                Memory::Muon { mean }
            } else {
                Memory::AdamW {
                    squares: mean.clone(),
                    mean,
                }
            }
        });
        Self {
            memories: memories.collect(),
            steps: 0,
        }
    }

    /// Moves the parameters against their gradients, which stand in the parameters' order.
    pub(super) fn step(&mut self, network: &Network, gradients: &[Vec<f32>], rate: f64) -> Result<()> {
        self.steps += 1;
        let (steps, rate, clip) = (self.steps, rate as f32, clip(gradients));
        let parameters: Vec<&Var> = network.parameters.values().collect();
        parameters
            .into_par_iter()
            .zip(gradients)
            .zip(&mut self.memories)
            .try_for_each(|((parameter, gradient), memory)| {
                let gradient = gradient.iter().map(|g| g * clip);
                let way = match memory {
                    Memory::Muon { mean } => muon(parameter, gradient, mean)?,
                    Memory::AdamW { mean, squares } => adam(gradient, mean, squares, steps),
                };
                // A norm's weights have a place to be that is not nought.
                let decay = if parameter.rank() == 1 { 0.0 } else { WEIGHT_DECAY };
                let mut values: Vec<f32> = parameter.flatten_all()?.to_vec1()?;
                for (value, way) in values.iter_mut().zip(way) {
                    *value -= rate * (way + decay * *value);
                }
                parameter.set(&Tensor::from_vec(values, parameter.shape(), parameter.device())?)
            })
    }
}

fn adam(gradient: impl Iterator<Item = f32>, mean: &mut [f32], squares: &mut [f32], steps: i32) -> Vec<f32> {
    let mean_by = (1.0 - BETA_1.powi(steps)).recip();
    let squares_by = (1.0 - BETA_2.powi(steps)).recip();
    gradient
        .zip(mean)
        .zip(squares)
        .map(|((g, mean), square)| {
            *mean = BETA_1 * *mean + (1.0 - BETA_1) * g;
            *square = BETA_2 * *square + (1.0 - BETA_2) * g * g;
            *mean * mean_by / ((*square * squares_by).sqrt() + EPSILON)
        })
        .collect()
}

fn muon(parameter: &Var, gradient: impl Iterator<Item = f32>, mean: &mut [f32]) -> Result<Vec<f32>> {
    let ahead = gradient
        .zip(mean)
        .map(|(g, mean)| {
            *mean = MOMENTUM * *mean + (1.0 - MOMENTUM) * g;
            MOMENTUM * *mean + (1.0 - MOMENTUM) * g
        })
        .collect();
    let ahead = Tensor::from_vec(ahead, parameter.shape(), parameter.device())?;
    let (rows, columns) = parameter.dims2()?;
    let length = MUON_STEP * (rows.max(columns) as f32).sqrt();
    (orthogonal(&ahead)? * f64::from(length))?
        .flatten_all()?
        .to_vec1()
}

/// About the nearest matrix whose rows, or columns where there are fewer, are orthogonal and of length one:
/// no direction is forgotten because another one is steeper.
fn orthogonal(matrix: &Tensor) -> Result<Tensor> {
    let (rows, columns) = matrix.dims2()?;
    if rows > columns {
        return orthogonal(&matrix.t()?.contiguous()?)?.t();
    }
    let length = matrix.sqr()?.sum_all()?.to_scalar::<f32>()?.sqrt();
    let mut x = (matrix / (f64::from(length) + 1e-7))?;
    let [a, b, c] = POLYNOMIAL;
    for _ in 0..ITERATIONS {
        let square = x.matmul(&x.t()?)?;
        let factor = ((&square * b)? + (square.matmul(&square)? * c)?)?;
        x = ((&x * a)? + factor.matmul(&x)?)?;
    }
    Ok(x)
}

/// What to multiply gradients by so that together they are no longer than [`NORM_MAX`].
fn clip(gradients: &[Vec<f32>]) -> f32 {
    let squares: f64 = gradients
        .iter()
        .map(|gradient| f64::from(surety_exact::sum_of_squares(gradient)))
        .sum();
    let norm = squares.sqrt();
    if norm > NORM_MAX {
        (NORM_MAX / norm) as f32
    } else {
        1.0
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use candle_core::Device;

    use super::*;
    use crate::random::Random;

    #[test]
    fn the_learning_rate_rises_to_its_peak_and_falls_to_its_floor() {
        let rates: Vec<f64> = (0..200).map(|step| learning_rate(1.0, step, 200)).collect();
        assert_eq!(rates[9], 1.0);
        assert!(rates[..10].is_sorted());
        assert!(rates[10..].is_sorted_by(|a, b| a >= b));
        assert!((FLOOR..FLOOR + 0.01).contains(&rates[199]), "{}", rates[199]);
    }

    #[test]
    fn long_gradients_are_cut_and_short_ones_are_not() {
        assert_eq!(clip(&[vec![0.3], vec![0.4]]), 1.0);
        assert!((clip(&[vec![3.0], vec![4.0]]) - 0.2).abs() < 1e-6);
    }

    #[test]
    fn a_matrix_is_made_roughly_orthogonal_whichever_way_it_lies() {
        let mut random = Random::new(1);
        for shape in [(12, 40), (40, 12)] {
            let values: Vec<f32> = (0..480).map(|_| 1e-3 * random.normal()).collect();
            let matrix = Tensor::from_vec(values, shape, &Device::Cpu).unwrap();
            let made = orthogonal(&matrix).unwrap();
            assert_eq!(made.dims2().unwrap(), shape);
            let wide = if shape.0 > shape.1 {
                made.t().unwrap()
            } else {
                made
            };
            let square = wide.matmul(&wide.t().unwrap()).unwrap();
            for (row, values) in square.to_vec2::<f32>().unwrap().iter().enumerate() {
                for (column, value) in values.iter().enumerate() {
                    let range = if row == column { 0.4..1.5 } else { -0.45..0.45 };
                    assert!(range.contains(value), "{row}, {column}: {value}");
                }
            }
        }
    }
}
