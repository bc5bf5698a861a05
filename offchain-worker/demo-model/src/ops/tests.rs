//! Every gradient against differences of the forward pass.
#![allow(clippy::unwrap_used)]

use candle_core::{Device, Var};

use super::*;
use crate::random::Random;

fn random(shape: &[usize], seed: u64) -> Var {
    let mut random = Random::new(seed);
    let values: Vec<f32> = (0..shape.iter().product()).map(|_| random.normal()).collect();
    Var::from_vec(values, shape, &Device::Cpu).unwrap()
}

/// A scalar that depends on every value in another way.
fn weighed(result: &Tensor) -> Tensor {
    let weights = random(result.dims(), 99);
    result.mul(weights.as_tensor()).unwrap().sum_all().unwrap()
}

fn check(inputs: &[Var], forward: impl Fn() -> Tensor) {
    let gradients = weighed(&forward()).backward().unwrap();
    for input in inputs {
        let gradient = values(gradients.get(input).unwrap()).unwrap();
        let at_rest = values(input.as_tensor()).unwrap();
        for index in 0..at_rest.len() {
            let moved = |by: f32| {
                let mut values = at_rest.clone();
                values[index] += by;
                input.set(&like(values, input.as_tensor()).unwrap()).unwrap();
                let result = weighed(&forward()).to_scalar::<f32>().unwrap();
                f64::from(result)
            };
            let step = 1e-2;
            let slope = (moved(step) - moved(-step)) / (2.0 * f64::from(step));
            let found = f64::from(gradient[index]);
            assert!(
                (slope - found).abs() < 4e-3 * (1.0 + slope.abs()),
                "{index}: {found} for a slope of {slope}"
            );
        }
        input.set(&like(at_rest, input.as_tensor()).unwrap()).unwrap();
    }
}

#[test]
fn norms_have_the_right_gradient() {
    let (rows, weight) = (random(&[3, 8], 1), random(&[8], 2));
    check(&[rows.clone(), weight.clone()], || {
        rows.apply_op2(&weight, RmsNorm { epsilon: 1e-5 }).unwrap()
    });
}

#[test]
fn rotations_have_the_right_gradient() {
    let rows = random(&[2, 3, 8], 3);
    let angles: Vec<(f32, f32)> = (0..6).map(|i| (0.3 * i as f32).sin_cos()).collect();
    check(std::slice::from_ref(&rows), || {
        let rotate = Rotate {
            angles: angles.clone().into(),
            head_dim: 4,
            back: false,
        };
        rows.apply_op1(rotate).unwrap()
    });
}

#[test]
fn softmax_has_the_right_gradient_and_looks_back_only() {
    let scores = random(&[2, 6, 3], 4);
    let forward = || scores.apply_op1(CausalSoftmax { scale: 0.7 }).unwrap();
    for (row, weights) in values(&forward()).unwrap().chunks(3).enumerate() {
        assert!((weights.iter().sum::<f32>() - 1.0).abs() < 1e-6);
        assert!(weights[row % 3 + 1..].iter().all(|weight| *weight == 0.0));
    }
    check(std::slice::from_ref(&scores), forward);
}

#[test]
fn gated_units_have_the_right_gradient() {
    let (gate, up) = (random(&[2, 5], 5), random(&[2, 5], 6));
    check(&[gate.clone(), up.clone()], || {
        gate.apply_op2(&up, SwiGlu).unwrap()
    });
}

#[test]
fn the_loss_has_the_right_gradient() {
    let logits = random(&[3, 5], 7);
    check(std::slice::from_ref(&logits), || {
        let targets = vec![4, 0, 2];
        logits.apply_op1(CrossEntropy { targets }).unwrap()
    });
}
