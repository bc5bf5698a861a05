//! Softmax and attention of one query.

use super::{bits, row, wide};
use proptest::{collection::vec, prelude::*};
use surety_exact::{ArithmeticError, attention_row, softmax_row, sum};

#[derive(Debug)]
struct Head {
    query: Vec<f32>,
    keys: Vec<f32>,
    values: Vec<f32>,
}

impl Head {
    fn attend(&self, positions: usize) -> Result<Vec<f32>, ArithmeticError> {
        let width = self.query.len();
        let (mut scores, mut out) = (vec![0.0; positions], vec![0.0; width]);
        attention_row(
            &self.query,
            |j, d| self.keys[j * width + d],
            |j, d| self.values[j * width + d],
            0.25,
            &mut scores,
            &mut out,
        )?;
        Ok(out)
    }
}

const POSITIONS: usize = 40;

fn head() -> impl Strategy<Value = Head> {
    (1usize..24).prop_flat_map(|width| {
        let rows = || vec(-3.0f32..3.0, width * POSITIONS);
        (vec(-3.0f32..3.0, width), rows(), rows()).prop_map(|(query, keys, values)| Head {
            query,
            keys,
            values,
        })
    })
}

#[test]
fn faults_are_named() {
    let attend = |query: &[f32], key: f32, value: f32, positions: usize, width: usize| {
        attention_row(
            query,
            |_, _| key,
            |_, _| value,
            1.0,
            &mut vec![0.0; positions],
            &mut vec![0.0; width],
        )
    };
    assert_eq!(attend(&[1.0], 1.0, 1.0, 2, 1), Ok(()));
    assert_eq!(attend(&[1.0], 1.0, 1.0, 0, 1), Err(ArithmeticError::Shape));
    assert_eq!(attend(&[1.0], 1.0, 1.0, 2, 2), Err(ArithmeticError::Shape));
    assert_eq!(attend(&[1e30], 1e30, 1.0, 2, 1), Err(ArithmeticError::NotFinite));
    assert_eq!(
        attend(&[0.0], f32::INFINITY, 1.0, 2, 1),
        Err(ArithmeticError::NotFinite)
    );
    assert_eq!(
        attend(&[1.0], 1.0, f32::INFINITY, 2, 1),
        Err(ArithmeticError::NotFinite)
    );
    assert_eq!(
        attend(&[1.0], 1.0, f32::MAX, 2, 1),
        Err(ArithmeticError::NotFinite)
    );
    assert_eq!(softmax_row(&mut []), Err(ArithmeticError::Shape));
    assert_eq!(softmax_row(&mut [1.0, f32::NAN]), Err(ArithmeticError::NotFinite));
}

#[test]
fn the_widest_scores_still_have_weights() {
    let mut scores = [f32::MAX, f32::MIN, 0.0];
    let total = softmax_row(&mut scores).unwrap();
    assert_eq!((scores[0], total), (1.0, 1.0));
    assert!(scores[1] > 0.0 && scores[1] < 2e-38 && scores[1] == scores[2]);
}

proptest! {
    #[test]
    fn softmax_is_softmax(scores in row(1..500)) {
        let mut weights = scores.clone();
        let total = softmax_row(&mut weights).unwrap();
        prop_assert_eq!(total.to_bits(), sum(&weights).to_bits());
        let scores = wide(&scores);
        let max = scores.iter().copied().fold(f64::MIN, f64::max);
        let right: f64 = scores.iter().map(|score| (score - max).exp()).sum();
        for (weight, score) in wide(&weights).into_iter().zip(&scores) {
            let share = (score - max).exp() / right;
            // The difference of scores of hundreds is itself rounded.
            prop_assert!((weight / f64::from(total) - share).abs() < 2e-5 * share + 1e-37);
        }
        let sum: f64 = wide(&weights).into_iter().map(|weight| weight / f64::from(total)).sum();
        prop_assert!((sum - 1.0).abs() < 1e-5);
    }

    #[test]
    fn one_position_gives_its_value(head in head()) {
        // The weight is exactly 1, and so is the sum.
        prop_assert_eq!(head.attend(1).unwrap(), head.values[..head.query.len()].to_vec());
    }

    #[test]
    fn attention_is_the_real_one_within_its_roundings(head in head(), positions in 1..=POSITIONS) {
        let width = head.query.len();
        let (q, k, v) = (wide(&head.query), wide(&head.keys), wide(&head.values));
        let scores: Vec<f64> =
            (0..positions).map(|j| 0.25 * (0..width).map(|d| q[d] * k[j * width + d]).sum::<f64>()).collect();
        let max = scores.iter().copied().fold(f64::MIN, f64::max);
        let weights: Vec<f64> = scores.iter().map(|score| (score - max).exp()).collect();
        let total: f64 = weights.iter().sum();
        for (d, found) in wide(&head.attend(positions).unwrap()).into_iter().enumerate() {
            let right = (0..positions).map(|j| weights[j] * v[j * width + d]).sum::<f64>() / total;
            prop_assert!((found - right).abs() < 1e-4, "{} {}", found, right);
        }
    }

    #[test]
    fn later_positions_that_are_not_looked_at_make_no_difference(head in head(), positions in 1..POSITIONS) {
        let before = head.attend(positions).unwrap();
        let width = head.query.len();
        let mut changed = head;
        changed.keys[positions * width..].fill(f32::NAN);
        changed.values[positions * width..].fill(f32::NAN);
        prop_assert_eq!(bits(&changed.attend(positions).unwrap()), bits(&before));
    }

    #[test]
    fn equal_values_are_mixed_to_themselves(head in head(), positions in 1..=POSITIONS, value in -3.0f32..3.0) {
        let mut head = head;
        head.values.fill(value);
        for found in head.attend(positions).unwrap() {
            prop_assert!((found - value).abs() < 2e-5 * value.abs());
        }
    }

    #[test]
    fn one_column_of_values_does_not_touch_another(head in head(), other in -3.0f32..3.0) {
        let width = head.query.len();
        let before = head.attend(POSITIONS).unwrap();
        let mut changed = head;
        for position in changed.values.chunks_mut(width) {
            position[0] = other;
        }
        prop_assert_eq!(bits(&changed.attend(POSITIONS).unwrap()[1..]), bits(&before[1..]));
    }
}
