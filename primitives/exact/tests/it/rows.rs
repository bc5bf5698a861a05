//! Norms, sums and rotations of a row.

use super::{bits, row, wide};
use proptest::{collection::vec, prelude::*};
use surety_exact::{
    ArithmeticError, LANES, Turns, fold, layer_norm_row, rms_norm_row, rotate_row, sum, sum_of_squares,
};

fn layer_norm(row: &[f32]) -> Result<Vec<f32>, ArithmeticError> {
    let mut out = vec![0.0; row.len()];
    layer_norm_row(row, &vec![1.0; row.len()], &vec![0.0; row.len()], 1e-12, &mut out)?;
    Ok(out)
}

fn rms_norm(row: &[f32]) -> Result<Vec<f32>, ArithmeticError> {
    let mut out = vec![0.0; row.len()];
    rms_norm_row(row, &vec![1.0; row.len()], 1e-12, &mut out)?;
    Ok(out)
}

fn mean(row: &[f64]) -> f64 {
    row.iter().sum::<f64>() / row.len() as f64
}

fn mean_square(row: &[f64]) -> f64 {
    row.iter().map(|x| x * x).sum::<f64>() / row.len() as f64
}

#[test]
fn lanes_are_added_upper_half_to_lower_half() {
    // 2^24 + 1 + 1: which ones meet first decides what is lost.
    let mut row = [0.0f32; LANES];
    (row[0], row[1], row[2]) = (16_777_216.0, 1.0, 1.0);
    assert_eq!(fold(row), 16_777_216.0 + 1.0 + 1.0);
    row[2] = 0.0;
    row[1 + LANES / 2] = 1.0;
    assert_eq!(fold(row), 16_777_218.0);
    assert_eq!(sum(&[]), 0.0);
}

#[test]
fn a_row_that_overflows_is_a_fault_and_not_a_row_of_zeros() {
    for row in [
        [1e20f32, -1e20, 3.0],
        [f32::MAX; 3],
        [f32::INFINITY, 1.0, 1.0],
        [f32::NAN, 1.0, 1.0],
    ] {
        assert_eq!(layer_norm(&row), Err(ArithmeticError::NotFinite), "{row:?}");
        assert_eq!(rms_norm(&row), Err(ArithmeticError::NotFinite), "{row:?}");
    }
    let mut out = [0.0; 2];
    // No spread and no epsilon: 0 / 0.
    assert_eq!(
        layer_norm_row(&[2.0; 2], &[1.0; 2], &[0.0; 2], 0.0, &mut out),
        Err(ArithmeticError::NotFinite)
    );
    assert_eq!(
        rms_norm_row(&[0.0; 2], &[1.0; 2], 0.0, &mut out),
        Err(ArithmeticError::NotFinite)
    );
    assert_eq!(
        rms_norm_row(&[1.0; 2], &[1.0; 2], -2.0, &mut out),
        Err(ArithmeticError::NotFinite)
    );
    assert_eq!(
        rms_norm_row(&[1.0; 2], &[f32::NAN, 1.0], 0.0, &mut out),
        Err(ArithmeticError::NotFinite)
    );
}

#[test]
fn lengths_that_do_not_fit_are_refused() {
    let mut out = [0.0; 2];
    assert_eq!(
        layer_norm_row(&[1.0; 2], &[1.0; 2], &[1.0], 1.0, &mut out),
        Err(ArithmeticError::Shape)
    );
    assert_eq!(
        layer_norm_row(&[1.0; 2], &[1.0], &[1.0; 2], 1.0, &mut out),
        Err(ArithmeticError::Shape)
    );
    assert_eq!(
        layer_norm_row(&[1.0; 3], &[1.0; 3], &[1.0; 3], 1.0, &mut out),
        Err(ArithmeticError::Shape)
    );
    assert_eq!(
        rms_norm_row(&[1.0; 2], &[1.0; 3], 1.0, &mut out),
        Err(ArithmeticError::Shape)
    );
    assert_eq!(layer_norm(&[]), Err(ArithmeticError::Shape));
    assert_eq!(rms_norm(&[]), Err(ArithmeticError::Shape));
    assert_eq!(
        rotate_row(&mut [1.0; 3], &[Turns(1)], 0),
        Err(ArithmeticError::Shape)
    );
    assert_eq!(
        rotate_row(&mut [1.0; 4], &[Turns(1)], 0),
        Err(ArithmeticError::Shape)
    );
}

#[test]
fn an_angle_is_exact_at_any_position() {
    // A third of a turn: after three million positions it is back but for three million roundings of the
    // table.
    let third = Turns(u64::MAX / 3);
    let (sin, cos) = third.at(3_000_000);
    assert!(sin.abs() < 1e-6 && (cos - 1.0).abs() < 1e-6);
    assert_eq!(Turns(1 << 62).at(u32::MAX), (-1.0, 0.0));
}

proptest! {
    #[test]
    fn a_sum_is_the_real_sum_within_its_roundings(row in row(0..600)) {
        let real = wide(&row);
        let size: f64 = real.iter().map(|x| x.abs()).sum();
        // A value passes through its lane's additions and the five of the fold.
        let roundings = row.len().div_ceil(LANES) as f64 + 5.0;
        prop_assert!((f64::from(sum(&row)) - real.iter().sum::<f64>()).abs() <= size * roundings * 2f64.powi(-24));
        let squares: f64 = real.iter().map(|x| x * x).sum();
        prop_assert!(
            (f64::from(sum_of_squares(&row)) - squares).abs() <= squares * (roundings + 1.0) * 2f64.powi(-24) + 1e-37
        );
    }

    #[test]
    fn zeros_at_the_end_change_no_sum(row in row(0..300), zeros in 0usize..100) {
        let mut longer = row.clone();
        longer.resize(row.len() + zeros, 0.0);
        prop_assert_eq!(sum(&row).to_bits(), sum(&longer).to_bits());
        prop_assert_eq!(sum_of_squares(&row).to_bits(), sum_of_squares(&longer).to_bits());
    }

    #[test]
    fn only_the_lane_counts_for_the_place_in_a_short_row(
        row in vec(-4.0f32..4.0, LANES..LANES + 1), chunks in 1usize..6, place in 0usize..6,
    ) {
        let place = place % chunks;
        let mut longer = vec![0.0; chunks * LANES];
        longer[place * LANES..(place + 1) * LANES].copy_from_slice(&row);
        prop_assert_eq!(sum(&longer).to_bits(), sum(&row).to_bits());
    }

    #[test]
    fn a_layer_norm_has_mean_0_and_variance_1(row in vec(-4.0f32..4.0, 2..600), shift in -10.0f32..10.0) {
        let row: Vec<f32> = row.iter().map(|x| x + shift).collect();
        prop_assume!(row.iter().any(|x| (x - row[0]).abs() > 0.1));
        let out = wide(&layer_norm(&row).unwrap());
        prop_assert!(mean(&out).abs() < 1e-4, "{}", mean(&out));
        prop_assert!((mean_square(&out) - 1.0).abs() < 1e-4, "{}", mean_square(&out));
    }

    #[test]
    fn an_rms_norm_has_mean_square_1(row in row(1..600)) {
        prop_assume!(row.iter().any(|x| x.abs() > 1e-2));
        prop_assert!((mean_square(&wide(&rms_norm(&row).unwrap())) - 1.0).abs() < 1e-5);
    }

    #[test]
    fn weight_and_bias_come_last(values in vec((-4.0f32..4.0, -2.0f32..2.0, -2.0f32..2.0), 2..200)) {
        let row: Vec<f32> = values.iter().map(|v| v.0).collect();
        let weight: Vec<f32> = values.iter().map(|v| v.1).collect();
        let bias: Vec<f32> = values.iter().map(|v| v.2).collect();
        prop_assume!(row.iter().any(|x| (x - row[0]).abs() > 0.1));
        let mut out = vec![0.0; row.len()];
        layer_norm_row(&row, &weight, &bias, 1e-12, &mut out).unwrap();
        let plain = layer_norm(&row).unwrap();
        let expected: Vec<f32> = (0..row.len()).map(|j| plain[j] * weight[j] + bias[j]).collect();
        prop_assert_eq!(bits(&out), bits(&expected));
        rms_norm_row(&row, &weight, 1e-12, &mut out).unwrap();
        let plain = rms_norm(&row).unwrap();
        let expected: Vec<f32> = (0..row.len()).map(|j| plain[j] * weight[j]).collect();
        prop_assert_eq!(bits(&out), bits(&expected));
    }

    #[test]
    fn a_rotation_keeps_the_length_of_each_pair(
        head in vec(-4.0f32..4.0, 1..64), turns in vec(any::<u64>(), 64), position in any::<u32>(),
    ) {
        let half = head.len();
        let before = [&head[..], &head.iter().rev().copied().collect::<Vec<_>>()[..]].concat();
        let mut after = before.clone();
        let turns: Vec<Turns> = turns[..half].iter().copied().map(Turns).collect();
        rotate_row(&mut after, &turns, position).unwrap();
        for i in 0..half {
            let length = |row: &[f32]| f64::from(row[i]).hypot(f64::from(row[i + half]));
            prop_assert!((length(&after) - length(&before)).abs() < 1e-5);
        }
    }

    #[test]
    fn position_0_turns_nothing(head in vec(-4.0f32..4.0, 1..32), turns in vec(any::<u64>(), 32)) {
        let before = head.repeat(2);
        let mut after = before.clone();
        let turns: Vec<Turns> = turns[..head.len()].iter().copied().map(Turns).collect();
        rotate_row(&mut after, &turns, 0).unwrap();
        prop_assert_eq!(after, before);
    }

    #[test]
    fn scores_depend_on_the_distance_of_positions_alone(
        (q, k) in (vec(-4.0f32..4.0, 8), vec(-4.0f32..4.0, 8)), turns in vec(any::<u64>(), 4),
        position in 0u32..100_000, distance in 0u32..1000, shift in 0u32..1_000_000,
    ) {
        let turns: Vec<Turns> = turns.into_iter().map(Turns).collect();
        let score = |at: u32| {
            let (mut q, mut k) = (q.clone(), k.clone());
            rotate_row(&mut q, &turns, at + distance).unwrap();
            rotate_row(&mut k, &turns, at).unwrap();
            wide(&q).iter().zip(wide(&k)).map(|(q, k)| q * k).sum::<f64>()
        };
        prop_assert!((score(position) - score(position + shift)).abs() < 1e-3);
    }
}
