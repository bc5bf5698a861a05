//! Rows of a trace, put together and hashed on the machine.

use surety_cuda::{
    Error, Floats, GpuBackend, Heads, HeadsInRows, Kernels, Norm, Rows, Stage, StateInRows, TraceRows,
    hashes_rows_of,
};
use surety_exact as exact;
use surety_proofs::row_digest;

use super::Random;

fn bytes_of(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// One layer's keys or values: on the machine, not quantized yet, and each row's bytes.
fn heads<M: GpuBackend>(
    kernels: &mut Kernels<M>,
    random: &mut Random,
    (rows, heads, head_dim): (usize, usize, usize),
) -> (Floats<M>, Vec<[Vec<u8>; 2]>) {
    let values = random.activations(rows * heads * head_dim);
    let (mut q, mut scales) = (vec![0; values.len()], vec![0.0; rows * heads]);
    exact::quantize_heads(&values, head_dim, &mut q, &mut scales).unwrap();
    let found = kernels.upload(&values).unwrap();
    let of_rows = q
        .chunks(heads * head_dim)
        .zip(scales.chunks(heads))
        .map(|(q, scales)| {
            let q = q.iter().flat_map(|q: &i16| q.to_le_bytes()).collect();
            [q, bytes_of(scales)]
        });
    (found, of_rows.collect())
}

/// The sum of a layer's state and what was added to it, as its norm writes it on the way, or by itself.
fn state<M: GpuBackend>(
    kernels: &mut Kernels<M>,
    random: &mut Random,
    (width, into): (usize, &StateInRows<'_, M>),
    rows: usize,
) -> Vec<f32> {
    let values = random.activations(rows * width);
    let mut there = kernels.upload(&values).unwrap();
    if !rows.is_multiple_of(2) {
        kernels.record(&there, width, into).unwrap();
        return values;
    }
    let added = random.activations(rows * width);
    let added_there = kernels.upload(&added).unwrap();
    let norm = Norm {
        weight: &kernels.upload(&vec![1.0; width]).unwrap(),
        bias: None,
        epsilon: 1e-5,
    };
    let mut quantized = Rows::new(exact::Precision::Int8);
    kernels
        .norm_quantize(
            (&mut there, Some(&added_there), Some(into)),
            &norm,
            None,
            None,
            &mut quantized,
        )
        .unwrap();
    values.iter().zip(added).map(|(one, other)| one + other).collect()
}

/// Two layers in a group, then one layer in another; of lengths that fill segments and blocks of the hash,
/// and that do not.
pub fn rows_of_a_trace_have_the_digests_of_the_definition<M: GpuBackend>(kernels: &mut Kernels<M>) {
    let mut random = Random::new(41);
    let mut recorded = TraceRows::default();
    for (rows, kv_heads, head_dim, width) in [
        (3, 4, 64, 2048),
        (5, 2, 16, 64),
        (2, 1, 3, 5),
        (131, 0, 0, 8),
        (1, 0, 0, 1),
        (7, 0, 0, 256),
        (2, 0, 0, 288),
        (2, 0, 0, 20_000),
    ] {
        let (q, scales) = (2 * kv_heads * head_dim, 4 * kv_heads);
        let row_bytes = |layers: usize| layers * 2 * (q + scales) + 4 * width;
        let groups = [(rows, row_bytes(2)), (rows, row_bytes(1))];
        kernels.begin_rows(groups, &mut recorded).unwrap();
        let mut expected = Vec::new();
        for (group, layers) in [(0, 2), (1, 1)] {
            let (mut all_q, mut all_scales) = (vec![Vec::new(); rows], vec![Vec::new(); rows]);
            for layer in 0..if kv_heads == 0 { 0 } else { layers } {
                let shape = (rows, kv_heads, head_dim);
                let (mut query, _) = heads(kernels, &mut random, shape);
                let (mut key, of_keys) = heads(kernels, &mut random, shape);
                let (mut value, of_values) = heads(kernels, &mut random, shape);
                for pair in [of_keys, of_values] {
                    for (row, [q, scales]) in pair.into_iter().enumerate() {
                        all_q[row].extend(q);
                        all_scales[row].extend(scales);
                    }
                }
                let mut quantized: [Heads<M>; 3] = Default::default();
                let [queries, keys, values] = &mut quantized;
                let into = HeadsInRows {
                    rows: &recorded,
                    group,
                    heads: layer * 2 * q,
                    scales: layers * 2 * q + 4 * width + layer * 2 * scales,
                };
                let parts = [
                    (&mut query, kv_heads, queries),
                    (&mut key, kv_heads, keys),
                    (&mut value, kv_heads, values),
                ];
                kernels
                    .rotate_quantize(parts, head_dim, None, Some(&into), None)
                    .unwrap();
            }
            let into = StateInRows {
                rows: &recorded,
                group,
                at: layers * 2 * q,
            };
            let state = state(kernels, &mut random, (width, &into), rows);
            for (row, state) in state.chunks(width).enumerate() {
                let bytes = [&all_q[row][..], &bytes_of(state), &all_scales[row]].concat();
                assert_eq!(bytes.len(), row_bytes(layers));
                expected.extend(row_digest(&bytes).0);
            }
        }
        let digests = kernels.digest_rows(&recorded).unwrap();
        let mut stage = Stage::default();
        let at = kernels.stage(digests, &mut stage).unwrap();
        let found = kernels.staged(&stage).unwrap();
        assert!(
            found[at] == expected,
            "{rows} rows, {kv_heads} heads of {head_dim}, {width}"
        );
    }
}

/// Neither too large a row, nor a part that is outside of it.
pub fn rows_that_do_not_fit_are_refused<M: GpuBackend>(kernels: &mut Kernels<M>) {
    let shape = Err(Error::Arithmetic(exact::ArithmeticError::Shape));
    let mut rows = TraceRows::default();
    let largest = 128 * 1024;
    assert!(hashes_rows_of(largest) && !hashes_rows_of(largest + 1));
    assert_eq!(kernels.begin_rows([(1, largest + 1)], &mut rows), shape);
    kernels.begin_rows([(2, 12)], &mut rows).unwrap();
    let at = |group, at| StateInRows {
        rows: &rows,
        group,
        at,
    };
    let state = kernels.upload(&[1.0, 2.0]).unwrap();
    assert_eq!(kernels.record(&state, 1, &at(0, 8)), Ok(()));
    for (group, outside) in [(0, 12), (0, 2), (1, 0)] {
        assert_eq!(kernels.record(&state, 1, &at(group, outside)), shape);
    }
    let state = kernels.upload(&[1.0, 2.0, 3.0]).unwrap();
    assert_eq!(kernels.record(&state, 1, &at(0, 0)), shape);
}
