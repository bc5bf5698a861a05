//! Quantized rows and their products.

use super::{bits, row, wide};
use proptest::{collection::vec, prelude::*};
use surety_exact::{
    ArithmeticError, GROUP,
    Precision::{self, Int8, Int12},
    dot, groups, product_cell, quantize_group, quantize_row, round, scale_row,
};

fn quantized(row: &[f32], precision: Precision) -> (Vec<i16>, Vec<f32>) {
    let (mut q, mut scales) = (vec![0; row.len()], vec![0.0; groups(row.len())]);
    quantize_row(row, precision, &mut q, &mut scales).unwrap();
    (q, scales)
}

fn precision() -> impl Strategy<Value = Precision> {
    prop_oneof![Just(Int8), Just(Int12)]
}

/// The real number that a quantized value stands for.
fn value((q, scales): &(Vec<i16>, Vec<f32>), k: usize) -> f64 {
    f64::from(q[k]) * f64::from(scales[k / GROUP])
}

#[test]
fn ties_go_to_the_even_integer() {
    for (x, expected) in [
        (0.5, 0),
        (1.5, 2),
        (2.5, 2),
        (-0.5, 0),
        (-1.5, -2),
        (-2.5, -2),
        (126.5, 126),
    ] {
        assert_eq!(round(x), expected, "{x}");
    }
    assert_eq!((round(4_194_304.0), round(-4_194_304.0)), (1 << 22, -(1 << 22)));
}

#[test]
fn what_is_not_finite_is_refused() {
    for bad in [f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        assert_eq!(
            quantize_group(&[1.0, bad, 2.0], Int12, &mut [0i16; 3]),
            Err(ArithmeticError::NotFinite)
        );
        assert_eq!(
            product_cell(&[1i8], &[bad], &[1], &[1.0], 0.0),
            Err(ArithmeticError::NotFinite)
        );
        assert_eq!(
            product_cell(&[0i8], &[1.0], &[0], &[bad], 0.0),
            Err(ArithmeticError::NotFinite)
        );
        assert_eq!(
            product_cell(&[1i16], &[1.0], &[1], &[1.0], bad),
            Err(ArithmeticError::NotFinite)
        );
    }
    assert_eq!(
        product_cell(&[127i8], &[f32::MAX], &[127], &[1.0], 0.0),
        Err(ArithmeticError::NotFinite)
    );
}

#[test]
fn lengths_that_do_not_fit_are_refused() {
    assert_eq!(
        quantize_group(&[1.0; 2], Int8, &mut [0i8; 3]),
        Err(ArithmeticError::Shape)
    );
    assert_eq!(
        quantize_row(&[1.0; 2], Int8, &mut [0i8; 2], &mut [0.0; 2]),
        Err(ArithmeticError::Shape)
    );
    assert_eq!(
        quantize_row(&[1.0; 2], Int12, &mut [0i16; 1], &mut [0.0; 1]),
        Err(ArithmeticError::Shape)
    );
    assert_eq!(
        scale_row(&[1.0; 2], &[1.0; 3], &mut [0.0; 2]),
        Err(ArithmeticError::Shape)
    );
    assert_eq!(
        product_cell(&[1i8, 2], &[1.0], &[1], &[1.0], 0.0),
        Err(ArithmeticError::Shape)
    );
    assert_eq!(
        product_cell(&[1i8], &[1.0], &[1], &[1.0, 1.0], 0.0),
        Err(ArithmeticError::Shape)
    );
    assert_eq!(
        product_cell(&[1i8], &[], &[1], &[1.0], 0.0),
        Err(ArithmeticError::Shape)
    );
}

#[test]
fn the_extremes_of_int8_are_exact() {
    for (a, b) in [(127i8, 127i8), (-128, -128), (-128, 127)] {
        let (q, w) = ([a; GROUP], [b; GROUP]);
        let right = GROUP as i32 * i32::from(a) * i32::from(b);
        assert_eq!(dot(&q, &w), right);
        assert_eq!(product_cell(&q, &[1.0], &w, &[1.0], 0.0), Ok(right as f32));
        assert_eq!(right as f32 as i32, right);
    }
}

#[test]
fn a_sum_past_32_bits_wraps_in_every_build() {
    let row = vec![-128i8; 131_072];
    assert_eq!(dot(&row, &row), i32::MIN);
    // No converter writes this, but a file may hold it.
    assert_eq!(dot(&[i16::MIN; 2], &[i16::MIN; 2]), i32::MIN);
    assert_eq!(dot(&[i16::MIN; 4], &[i16::MIN; 4]), 0);
}

#[test]
fn the_extremes_of_int12_fit_32_bits_and_are_rounded_to_the_nearest_float() {
    for (a, b) in [(2047i16, 2047i16), (-2047, 2047)] {
        let (q, w) = ([a; GROUP], [b; GROUP]);
        let right = GROUP as i64 * i64::from(a) * i64::from(b);
        assert_eq!(i64::from(dot(&q, &w)), right);
        assert_eq!(product_cell(&q, &[1.0], &w, &[1.0], 0.0), Ok(right as f32));
    }
    // Between two floats: to the even one.
    let (q, w) = (
        [2047i16, 2047, 2047, 2047, 2047, 1],
        [2047i16, 2047, 2047, 2047, 409, 0],
    );
    let sum = dot(&q, &w);
    assert!(sum > 1 << 24 && sum % 2 == 1, "{sum}");
    assert_eq!(product_cell(&q, &[1.0], &w, &[1.0], 0.0), Ok(sum as f32));
}

#[test]
fn what_vanishes_is_zero_and_the_largest_floats_are_kept() {
    for (precision, max) in [(Int8, 127), (Int12, 2047)] {
        let quantized = |row: &[f32]| quantized(row, precision);
        assert_eq!(quantized(&[9.9e-31, -9.9e-31]), (vec![0, 0], vec![0.0]));
        assert_eq!(quantized(&[1.1e-30, -0.0]).0, [max, 0]);
        let (q, scales) = quantized(&[f32::MAX, f32::MIN, 1.0]);
        assert_eq!((q, scales[0]), (vec![max, -max, 0], f32::MAX / f32::from(max)));
    }
}

proptest! {
    #[test]
    fn round_is_to_the_nearest_and_to_even(x in -4_194_304.0f32..4_194_304.0, half in -8_388_608i32..8_388_608) {
        prop_assert_eq!(f64::from(round(x)), f64::from(x).round_ties_even());
        let tie = half as f32 / 2.0;
        prop_assert_eq!(f64::from(round(tie)), f64::from(tie).round_ties_even());
    }

    #[test]
    fn a_quantized_value_is_within_half_a_step(row in row(0..400), precision in precision()) {
        let quantized = quantized(&row, precision);
        for (k, x) in wide(&row).into_iter().enumerate() {
            // The inverse of the scale is rounded: some parts in a million more of the largest value.
            let step = f64::from(quantized.1[k / GROUP]);
            let half = 0.5 + 2e-7 * f64::from(precision.max());
            prop_assert!((value(&quantized, k) - x).abs() <= step * half + 1e-30, "{}", k);
        }
    }

    #[test]
    fn the_largest_of_a_group_is_the_precisions_and_nothing_is_beyond(
        row in row(1..400), precision in precision(),
    ) {
        for (values, q) in row.chunks(GROUP).zip(quantized(&row, precision).0.chunks(GROUP)) {
            let largest = q.iter().map(|q| q.abs()).max();
            prop_assert_eq!(largest, Some(if values.iter().all(|x| *x == 0.0) { 0 } else { precision.max() }));
        }
    }

    #[test]
    fn groups_know_nothing_of_each_other(
        one in row(GROUP..GROUP + 1), other in row(1..GROUP), precision in precision(),
    ) {
        let both = quantized(&[&one[..], &other[..]].concat(), precision);
        let (one, other) = (quantized(&one, precision), quantized(&other, precision));
        prop_assert_eq!(both.0, [one.0, other.0].concat());
        prop_assert_eq!(bits(&both.1), bits(&[one.1, other.1].concat()));
    }

    #[test]
    fn negation_is_exact(row in row(0..300), precision in precision()) {
        let (q, scales) = quantized(&row, precision);
        let (negated, same) = quantized(&row.iter().map(|x| -x).collect::<Vec<_>>(), precision);
        prop_assert_eq!(negated, q.iter().map(|q| -q).collect::<Vec<_>>());
        prop_assert_eq!(same, scales);
    }

    #[test]
    fn scaling_is_by_element(row in row(0..64)) {
        let by: Vec<f32> = row.iter().map(|x| x * 0.3 + 1.0).collect();
        let mut out = vec![0.0; row.len()];
        scale_row(&row, &by, &mut out).unwrap();
        prop_assert_eq!(out, row.iter().zip(&by).map(|(x, by)| x * by).collect::<Vec<_>>());
    }

    #[test]
    fn a_cell_is_the_real_product_within_a_few_roundings(
        pairs in vec((-4.0f32..4.0, -0.5f32..0.5), 1..700), bias in -2.0f32..2.0, precision in precision(),
    ) {
        let (x, w): (Vec<f32>, Vec<f32>) = pairs.into_iter().unzip();
        let (x, w) = (quantized(&x, precision), quantized(&w, precision));
        let found = product_cell(&x.0, &x.1, &w.0, &w.1, bias).unwrap();
        let terms = || (0..x.0.len()).map(|k| value(&x, k) * value(&w, k));
        let size: f64 = terms().map(f64::abs).sum::<f64>() + f64::from(bias.abs());
        let right = terms().sum::<f64>() + f64::from(bias);
        // Four roundings a group, one for the bias.
        let roundings = 4.0 * groups(x.0.len()) as f64 + 1.0;
        prop_assert!((f64::from(found) - right).abs() <= size * roundings * 2f64.powi(-24));
    }

    #[test]
    fn zeros_at_the_end_change_nothing(
        pairs in vec(any::<(i8, i8)>(), 1..400), zeros in 0usize..300, s in 1e-3f32..1.0, bias in -2.0f32..2.0,
    ) {
        let (mut q, mut w): (Vec<i8>, Vec<i8>) = pairs.into_iter().unzip();
        let cell = |q: &[i8], w: &[i8]| {
            let scales = vec![s; groups(q.len())];
            product_cell(q, &scales, w, &scales, bias).unwrap().to_bits()
        };
        let before = cell(&q, &w);
        q.resize(q.len() + zeros, 0);
        w.resize(q.len(), 0);
        prop_assert_eq!(cell(&q, &w), before);
    }

    #[test]
    fn the_order_within_a_group_makes_no_difference(
        (pairs, shuffled) in vec(any::<(i8, i8)>(), 1..=GROUP).prop_flat_map(|pairs| {
            (Just(pairs.clone()), Just(pairs).prop_shuffle())
        }),
    ) {
        let cell = |pairs: Vec<(i8, i8)>| {
            let (q, w): (Vec<i8>, Vec<i8>) = pairs.into_iter().unzip();
            product_cell(&q, &[0.1], &w, &[0.7], 0.3)
        };
        prop_assert_eq!(cell(pairs), cell(shuffled));
    }
}
