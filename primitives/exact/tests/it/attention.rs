//! Softmax and attention of one query.

use super::{bits, row, wide};
use proptest::{collection::vec, prelude::*};
use surety_exact::{
    ArithmeticError, BLOCK, HEAD_MAX, Head, Softmax, WEIGHT_MAX, attention_cell, attention_row, blocks, dot,
    largest_score, quantize_heads, score_cell, softmax_block, sum,
};

#[derive(Clone, Debug)]
struct Sequence {
    query: Vec<f32>,
    keys: Vec<f32>,
    values: Vec<f32>,
}

/// Heads of one width, quantized.
struct Heads {
    q: Vec<i16>,
    scales: Vec<f32>,
}

impl Heads {
    fn new(rows: &[f32], width: usize) -> Result<Self, ArithmeticError> {
        let (mut q, mut scales) = (vec![0; rows.len()], vec![0.0; rows.len() / width]);
        quantize_heads(rows, width, &mut q, &mut scales)?;
        Ok(Self { q, scales })
    }

    fn head(&self, head: usize) -> Head<'_> {
        let width = self.q.len() / self.scales.len();
        Head {
            q: &self.q[head * width..(head + 1) * width],
            scale: self.scales[head],
        }
    }

    /// What the heads stand for.
    fn real(&self) -> Vec<f64> {
        let width = self.q.len() / self.scales.len();
        let scaled = |(place, q): (usize, &i16)| f64::from(*q) * f64::from(self.scales[place / width]);
        self.q.iter().enumerate().map(scaled).collect()
    }
}

const SCALE: f32 = 0.25;

impl Sequence {
    fn attend(&self, positions: usize) -> Result<Vec<f32>, ArithmeticError> {
        let width = self.query.len();
        let query = Heads::new(&self.query, width)?;
        let (keys, values) = (
            Heads::new(&self.keys[..positions * width], width)?,
            Heads::new(&self.values[..positions * width], width)?,
        );
        let mut out = vec![0.0; width];
        attention_row(
            query.head(0),
            |j| keys.head(j),
            |j| values.head(j),
            positions,
            SCALE,
            &mut out,
        )?;
        Ok(out)
    }
}

/// A few blocks, the last of them short.
const POSITIONS: usize = 2 * BLOCK + 20;

fn sequence() -> impl Strategy<Value = Sequence> {
    (1usize..24).prop_flat_map(|width| {
        let rows = || vec(-3.0f32..3.0, width * POSITIONS);
        (vec(-3.0f32..3.0, width), rows(), rows()).prop_map(|(query, keys, values)| Sequence {
            query,
            keys,
            values,
        })
    })
}

#[test]
fn faults_are_named() {
    let attend = |query: f32, key: f32, value: f32, positions: usize, width: usize| {
        let head = |scale| Head { q: &[2047], scale };
        let mut out = vec![0.0; width];
        attention_row(
            head(query),
            |_| head(key),
            |_| head(value),
            positions,
            1.0,
            &mut out,
        )
    };
    assert_eq!(attend(1.0, 1.0, 1.0, 2, 1), Ok(()));
    assert_eq!(attend(1.0, 1.0, 1.0, 0, 1), Err(ArithmeticError::Shape));
    assert_eq!(attend(1.0, 1.0, 1.0, 2, 2), Err(ArithmeticError::Shape));
    let wide = |_| Head {
        q: &[0; HEAD_MAX + 1],
        scale: 1.0,
    };
    let mut out = vec![0.0; HEAD_MAX + 1];
    let found = attention_row(wide(0), wide, wide, 1, 1.0, &mut out);
    assert_eq!(found, Err(ArithmeticError::Shape));

    let overflow = Err(ArithmeticError::NotFinite);
    assert_eq!(attend(1e30, 1e30, 1.0, 2, 1), overflow);
    assert_eq!(attend(0.0, f32::INFINITY, 1.0, 2, 1), overflow);
    assert_eq!(attend(1.0, 1.0, f32::INFINITY, 2, 1), overflow);
    assert_eq!(attend(1.0, 1.0, f32::MAX, 2, 1), overflow);
    assert_eq!(attention_cell(&[], &[], &[]), Err(ArithmeticError::Shape));
    assert_eq!(attention_cell(&[1.0], &[1.0], &[]), Err(ArithmeticError::Shape));
    assert_eq!(
        attention_cell(&[1.0], &[1.0], &[f32::INFINITY]),
        overflow.map(|()| 0.0)
    );
    assert_eq!(largest_score(&[]), Err(ArithmeticError::Shape));
    let block = |scores: &mut [f32], scales: &[f32]| softmax_block(scores, scales, &mut [0; 2]).map(drop);
    assert_eq!(block(&mut [1.0, f32::NAN], &[1.0; 2]), overflow);
    assert_eq!(block(&mut [1.0; 2], &[1.0, f32::INFINITY]), overflow);
    assert_eq!(block(&mut [1.0; 2], &[1.0]), Err(ArithmeticError::Shape));
    let long = BLOCK + 1;
    let found = softmax_block(&mut vec![0.0; long], &vec![0.0; long], &mut vec![0; long]);
    assert_eq!(found, Err(ArithmeticError::Shape));
    assert_eq!(
        quantize_heads(&[1.0; 4], 3, &mut [0; 4], &mut [0.0]),
        Err(ArithmeticError::Shape)
    );
    assert_eq!(quantize_heads(&[f32::NAN], 1, &mut [0], &mut [0.0]), overflow);
}

#[test]
fn the_largest_sums_fit_32_bits() {
    let weights = [WEIGHT_MAX; BLOCK];
    assert_eq!(i64::from(dot(&weights, &[2047; BLOCK])), 128 * 8191 * 2047);
    let head = [-2047i16; HEAD_MAX];
    assert_eq!(i64::from(dot(&head, &head)), 512 * 2047 * 2047);
}

#[test]
fn the_widest_scores_still_have_weights() {
    let mut scores = [f32::MAX, f32::MIN, 0.0];
    let (block, _) = softmax_block(&mut scores, &[1.0; 3], &mut [0; 3]).unwrap();
    assert_eq!((scores[0], block.total, block.largest), (1.0, 1.0, f32::MAX));
    assert!(scores[1] > 0.0 && scores[1] < 2e-38 && scores[1] == scores[2]);
    // The least of all scores is no less than what nothing begins with.
    let mut softmax = Softmax::default();
    let least = Softmax {
        largest: f32::MIN,
        total: 1.0,
    };
    assert_eq!(softmax.merge(least), (1.0, 1.0));
    assert_eq!(softmax, least);
}

#[test]
fn merging_rounds_nothing_while_the_largest_stays() {
    let mut softmax = Softmax {
        largest: 3.0,
        total: 1.7,
    };
    let (before, _) = softmax.merge(Softmax {
        largest: 2.9,
        total: 0.0,
    });
    assert_eq!((before, softmax.total), (1.0, 1.7));
}

proptest! {
    #[test]
    fn a_blocks_softmax_is_softmax(scores in row(1..BLOCK + 1)) {
        let (mut found, mut weights) = (scores.clone(), vec![0; scores.len()]);
        let (block, weight_scale) = softmax_block(&mut found, &vec![1.0; scores.len()], &mut weights).unwrap();
        prop_assert_eq!(block.total.to_bits(), sum(&found).to_bits());
        let scores = wide(&scores);
        let max = scores.iter().copied().fold(f64::MIN, f64::max);
        for ((found, q), score) in wide(&found).into_iter().zip(weights).zip(&scores) {
            let right = (score - max).exp();
            // The difference of scores of hundreds is itself rounded.
            prop_assert!((found - right).abs() < 2e-5 * right + 1e-37);
            let weight = f64::from(q) * f64::from(weight_scale);
            prop_assert!((weight - found).abs() < 0.51 / f64::from(WEIGHT_MAX));
        }
    }

    #[test]
    fn one_position_gives_its_value(sequence in sequence()) {
        let width = sequence.query.len();
        let values = Heads::new(&sequence.values[..width], width).unwrap().real();
        for (found, right) in wide(&sequence.attend(1).unwrap()).into_iter().zip(values) {
            prop_assert!((found - right).abs() <= 1e-6 * right.abs());
        }
    }

    #[test]
    fn attention_is_the_real_one_within_its_roundings(sequence in sequence(), positions in 1..=POSITIONS) {
        let width = sequence.query.len();
        // From what the heads were quantized to: what is left are the weights' roundings.
        let real = |rows: &[f32]| Heads::new(rows, width).unwrap().real();
        let (q, k, v) = (real(&sequence.query), real(&sequence.keys), real(&sequence.values));
        let scores: Vec<f64> = (0..positions)
            .map(|j| f64::from(SCALE) * (0..width).map(|d| q[d] * k[j * width + d]).sum::<f64>())
            .collect();
        let max = scores.iter().copied().fold(f64::MIN, f64::max);
        let weights: Vec<f64> = scores.iter().map(|score| (score - max).exp()).collect();
        let total: f64 = weights.iter().sum();
        // Half a step of the largest weight, for each position, times values of up to 3.
        let of_block = |block: &[f64]| block.iter().copied().fold(0.0, f64::max) * block.len() as f64;
        let off = weights.chunks(BLOCK).map(of_block).sum::<f64>() * 3.0 / 2.0 / f64::from(WEIGHT_MAX);
        for (d, found) in wide(&sequence.attend(positions).unwrap()).into_iter().enumerate() {
            let right = (0..positions).map(|j| weights[j] * v[j * width + d]).sum::<f64>() / total;
            prop_assert!((found - right).abs() < 2.0 * off / total + 1e-4, "{} {}", found, right);
        }
    }

    #[test]
    fn cells_make_the_row(sequence in sequence(), positions in 1..=POSITIONS) {
        let width = sequence.query.len();
        let heads = |rows: &[f32]| Heads::new(rows, width).unwrap();
        let (query, keys, values) = (heads(&sequence.query), heads(&sequence.keys), heads(&sequence.values));
        let (mut largest, mut totals, mut partials) = (vec![], vec![], vec![vec![]; width]);
        for block in 0..blocks(positions) {
            let seen: Vec<usize> = (0..positions).skip(block * BLOCK).take(BLOCK).collect();
            let mut scores: Vec<f32> =
                seen.iter().map(|j| score_cell(query.head(0), keys.head(*j), SCALE)).collect();
            let scales: Vec<f32> = seen.iter().map(|j| values.scales[*j]).collect();
            let mut weights = vec![0; seen.len()];
            let (softmax, scale) = softmax_block(&mut scores, &scales, &mut weights).unwrap();
            largest.push(softmax.largest);
            totals.push(softmax.total);
            for (d, partials) in partials.iter_mut().enumerate() {
                let column: Vec<i16> = seen.iter().map(|j| values.head(*j).q[d]).collect();
                partials.push(dot(&weights, &column) as f32 * scale);
            }
        }
        let cells: Vec<f32> =
            partials.iter().map(|partials| attention_cell(&largest, &totals, partials).unwrap()).collect();
        prop_assert_eq!(bits(&cells), bits(&sequence.attend(positions).unwrap()));
    }

    #[test]
    fn equal_values_are_mixed_to_themselves(sequence in sequence(), positions in 1..=POSITIONS, value in -3.0f32..3.0) {
        let mut sequence = sequence;
        sequence.values.fill(value);
        for found in sequence.attend(positions).unwrap() {
            prop_assert!((found - value).abs() < 4e-3 * value.abs(), "{found} {value}");
        }
    }

    #[test]
    fn a_later_block_does_not_touch_what_an_earlier_position_sees(sequence in sequence(), positions in 1..POSITIONS) {
        let before = sequence.attend(positions).unwrap();
        let width = sequence.query.len();
        let mut changed = sequence;
        changed.keys[positions * width..].fill(f32::NAN);
        changed.values[positions * width..].fill(f32::NAN);
        prop_assert_eq!(bits(&changed.attend(positions).unwrap()), bits(&before));
    }
}
