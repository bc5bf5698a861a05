//! What leaves the machine, what is moved on it, and what may be taken of its memory.

use surety_cuda::{Error, GpuBackend, Heads, Kernels, Mask, Stage};
use surety_exact as exact;

use super::{Random, assert_same, values};

const HEADS: usize = 3;

/// Quantized heads on the machine, and by the definition: values and scales.
fn heads<M: GpuBackend>(
    kernels: &mut Kernels<M>,
    rows: &[f32],
    head_dim: usize,
) -> (Heads<M>, Vec<i16>, Vec<f32>) {
    let (mut q, mut scales) = (vec![0; rows.len()], vec![0.0; rows.len() / head_dim]);
    exact::quantize_heads(rows, head_dim, &mut q, &mut scales).unwrap();
    let there = kernels.upload(rows).unwrap();
    let mut found = Heads::default();
    kernels
        .quantize_heads(&there, HEADS, head_dim, &mut found)
        .unwrap();
    (found, q, scales)
}

/// Odd heads too, whose last pair is half.
pub fn what_is_kept_can_be_copied<M: GpuBackend>(kernels: &mut Kernels<M>) {
    let mut random = Random::new(31);
    for head_dim in [1, 6, 7, 64] {
        let width = HEADS * head_dim;
        let (rows, others) = (random.activations(9 * width), random.activations(9 * width));
        let (keys, key_q, key_scales) = heads(kernels, &rows, head_dim);
        let (values_, value_q, value_scales) = heads(kernels, &others, head_dim);
        let mut cache = kernels.cache(HEADS, head_dim, 9).unwrap();
        // In pieces, and not from the first row on.
        for piece in [2..4, 4..9] {
            kernels.append_rows(&mut cache, &keys, &values_, piece).unwrap();
        }
        let mut copy = kernels.copy_cache(&cache, 20).unwrap();
        for (cache, positions) in [(&cache, 7), (&copy, 7), (&copy, 3), (&copy, 0)] {
            let [kept_keys, kept_values] = kernels.kept(cache, positions).unwrap();
            let (q, scales) = (
                2 * width..(2 + positions) * width,
                2 * HEADS..(2 + positions) * HEADS,
            );
            assert_eq!(kept_keys.q, key_q[q.clone()], "{head_dim}");
            assert_eq!(kept_values.q, value_q[q], "{head_dim}");
            assert_same(&kept_keys.scales, &key_scales[scales.clone()], "scales of keys");
            assert_same(&kept_values.scales, &value_scales[scales], "scales of values");
        }
        // It has room for more, and what is added goes behind.
        kernels.append_rows(&mut copy, &keys, &values_, 0..2).unwrap();
        let [kept_keys, _] = kernels.kept(&copy, 9).unwrap();
        assert_eq!(kept_keys.q[7 * width..], key_q[..2 * width]);
        let refused = kernels.copy_cache(&cache, 6).map(drop).unwrap_err();
        assert_eq!(refused, Error::Arithmetic(exact::ArithmeticError::Shape));
    }
}

/// Rows of several sequences in one array, each attending to its own positions.
pub fn rows_attend_alone_as_among_others<M: GpuBackend>(kernels: &mut Kernels<M>) {
    let mut random = Random::new(32);
    let head_dim = 16;
    let width = HEADS * head_dim;
    let rows = random.activations(11 * width);
    let (all, ..) = heads(kernels, &rows, head_dim);
    let mut out = kernels.upload(&vec![0.0; 11 * width]).unwrap();
    let mut alone = Vec::new();
    for piece in [0..4, 4..5, 5..11] {
        let own = &rows[piece.start * width..piece.end * width];
        let (own, ..) = heads(kernels, own, head_dim);
        let mut cache = kernels.cache(HEADS, head_dim, 6).unwrap();
        kernels.append(&mut cache, &own, &own).unwrap();
        let mut one = kernels.floats(piece.len() * width).unwrap();
        kernels
            .attention(&own, &cache, Mask::Causal { first: 0 }, &mut one)
            .unwrap();
        alone.extend(values(kernels, &one));
        kernels
            .attend_rows(&all, piece, &cache, Mask::Causal { first: 0 }, &mut out)
            .unwrap();
    }
    assert_same(&values(kernels, &out), &alone, "rows among others");
}

pub fn what_is_staged_leaves_in_its_order<M: GpuBackend>(kernels: &mut Kernels<M>) {
    let mut random = Random::new(33);
    let mut stage = Stage::default();
    // More than a block of the stage holds; then less, in the same memory.
    for counts in [vec![3, 300_000, 5, 270_000, 1], vec![7, 2]] {
        stage.clear();
        let (mut expected, mut places) = (Vec::new(), Vec::new());
        for count in counts {
            let rows = random.activations(count);
            let floats = kernels.upload(&rows).unwrap();
            places.push(kernels.stage(&floats, &mut stage).unwrap());
            expected.push(rows);
        }
        let rows = random.activations(2 * HEADS * 5);
        let (heads, q, scales) = heads(kernels, &rows, 5);
        let [at_q, at_scales] = kernels.stage_heads(&heads, &mut stage).unwrap();
        let all = kernels.staged(&stage).unwrap();
        for (place, rows) in places.into_iter().zip(expected) {
            let bytes: Vec<u8> = rows.iter().flat_map(|value| value.to_le_bytes()).collect();
            assert!(all[place] == bytes);
        }
        let bytes: Vec<u8> = q.iter().flat_map(|value| value.to_le_bytes()).collect();
        assert!(all[at_q] == bytes);
        let bytes: Vec<u8> = scales.iter().flat_map(|value| value.to_le_bytes()).collect();
        assert!(all[at_scales] == bytes);
    }
}
