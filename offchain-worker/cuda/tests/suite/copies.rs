//! What leaves the machine, what is moved on it, and what may be taken of its memory.

use surety_cuda::{Error, GpuBackend, Heads, Kernels, Mask, Pages, Stage};
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

/// Odd heads too, whose last pair is half; in two layers, over the border of a page.
pub fn what_is_kept_can_be_copied<M: GpuBackend>(kernels: &mut Kernels<M>) {
    let mut random = Random::new(31);
    for head_dim in [1, 6, 7, 64] {
        let width = HEADS * head_dim;
        let count = 2 + exact::BLOCK + 5;
        let (rows, others) = (
            random.activations(count * width),
            random.activations(count * width),
        );
        let (keys, key_q, key_scales) = heads(kernels, &rows, head_dim);
        let (values_, value_q, value_scales) = heads(kernels, &others, head_dim);
        let mut cache = Pages::new(2, HEADS, head_dim).unwrap().cache();
        // In pieces, and not from the first row on. In the first layer keys are values.
        for piece in [2..4, 4..count] {
            kernels
                .append_rows(&mut cache, 0, &values_, &keys, piece.clone())
                .unwrap();
            kernels
                .append_rows(&mut cache, 1, &keys, &values_, piece)
                .unwrap();
        }
        let mut copy = kernels.copy_cache(&cache).unwrap();
        let len = copy.len();
        assert_eq!(len, count - 2);
        for (cache, positions) in [
            (&cache, len),
            (&copy, len),
            (&copy, exact::BLOCK),
            (&copy, 3),
            (&copy, 0),
        ] {
            let [kept_keys, kept_values] = kernels.kept(cache, 1, positions).unwrap();
            let (q, scales) = (
                2 * width..(2 + positions) * width,
                2 * HEADS..(2 + positions) * HEADS,
            );
            assert_eq!(kept_keys.q, key_q[q.clone()], "{head_dim}");
            assert_eq!(kept_values.q, value_q[q], "{head_dim}");
            assert_same(&kept_keys.scales, &key_scales[scales.clone()], "scales of keys");
            assert_same(&kept_values.scales, &value_scales[scales], "scales of values");
            // A page at a time.
            kernels.limit(1);
            let [turned, _] = kernels.kept(cache, 0, positions).unwrap();
            kernels.limit(1 << 26);
            assert_eq!(turned, kept_values, "the other layer's keys");
        }
        // What is added to one goes behind its own, and nowhere else.
        kernels.append_rows(&mut copy, 1, &keys, &values_, 0..2).unwrap();
        kernels.append_rows(&mut cache, 1, &values_, &keys, 0..2).unwrap();
        let [kept_keys, _] = kernels.kept(&copy, 1, len + 2).unwrap();
        assert_eq!(kept_keys.q[len * width..], key_q[..2 * width]);
        let refused = kernels.kept(&copy, 0, len + 1).unwrap_err();
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
    let pages = Pages::new(1, HEADS, head_dim).unwrap();
    let mut out = kernels.upload(&vec![0.0; 11 * width]).unwrap();
    let mut alone = Vec::new();
    for piece in [0..4, 4..5, 5..11] {
        let own = &rows[piece.start * width..piece.end * width];
        let (own, ..) = heads(kernels, own, head_dim);
        let mut cache = pages.cache();
        kernels.append(&mut cache, 0, &own, &own).unwrap();
        let mut one = kernels.floats(piece.len() * width).unwrap();
        kernels
            .attention(&own, &mut cache, 0, Mask::Causal { first: 0 }, &mut one)
            .unwrap();
        alone.extend(values(kernels, &one));
        kernels
            .attend_rows((&all, piece), &mut cache, 0, Mask::Causal { first: 0 }, &mut out)
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
