//! AdamW, with clipped gradients and a learning rate that rises, then falls along a cosine.

use std::f64::consts::PI;

use candle_core::{Result, Tensor};
use rayon::prelude::*;

use super::network::Network;

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

/// Running means of one parameter's gradients.
struct Moments {
    first: Vec<f32>,
    second: Vec<f32>,
}

pub(super) struct AdamW {
    moments: Vec<Moments>,
    steps: i32,
}

impl AdamW {
    pub(super) fn new(network: &Network) -> Self {
        let moments = network.parameters.values().map(|parameter| {
            let zeros = vec![0.0; parameter.elem_count()];
            Moments {
                first: zeros.clone(),
                second: zeros,
            }
        });
        Self {
            moments: moments.collect(),
            steps: 0,
        }
    }

    /// Moves the parameters against their gradients, which stand in the parameters' order.
    pub(super) fn step(&mut self, network: &Network, gradients: &[Vec<f32>], rate: f64) -> Result<()> {
        self.steps += 1;
        let clip = clip(gradients);
        let correction = |beta: f32| 1.0 - beta.powi(self.steps);
        let rate = rate as f32 / correction(BETA_1);
        let second_by = correction(BETA_2).recip();
        let parameters: Vec<_> = network.parameters.values().collect();
        parameters
            .into_par_iter()
            .zip(gradients)
            .zip(&mut self.moments)
            .try_for_each(|((parameter, gradient), moments)| {
                let mut values: Vec<f32> = parameter.flatten_all()?.to_vec1()?;
                // Norms' weights have a place to be that is not nought.
                let decay = match parameter.rank() {
                    1 => 1.0,
                    _ => 1.0 - rate * WEIGHT_DECAY,
                };
                let moments = moments.first.iter_mut().zip(&mut moments.second);
                for ((value, g), (first, second)) in values.iter_mut().zip(gradient).zip(moments) {
                    let g = g * clip;
                    *first = BETA_1 * *first + (1.0 - BETA_1) * g;
                    *second = BETA_2 * *second + (1.0 - BETA_2) * g * g;
                    *value = *value * decay - rate * *first / ((*second * second_by).sqrt() + EPSILON);
                }
                parameter.set(&Tensor::from_vec(values, parameter.shape(), parameter.device())?)
            })
    }
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
    use super::*;

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
}
