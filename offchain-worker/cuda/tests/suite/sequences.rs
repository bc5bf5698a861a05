//! Several sequences in the same launches.

use surety_cuda::{Cache, Error, GpuBackend, Kernels, Mask, SequenceRows, TABLE};
use surety_exact::ArithmeticError;

use super::{Random, assert_same, attention::quantized, values};

const KV_HEADS: usize = 2;
const HEADS: usize = 4;

fn rows(random: &mut Random, count: usize, heads: usize, head_dim: usize) -> Vec<f32> {
    random.activations(count * heads * head_dim)
}

/// More sequences than a launch takes, of different lengths and rooms: keys, values and results are those of
/// each alone. A cache that has another room than the machine was told is not read wrongly.
pub fn sequences_attend_together_as_alone<M: GpuBackend>(kernels: &mut Kernels<M>) {
    let mut random = Random::new(34);
    for head_dim in [5, 16] {
        // Rows, first position and room; longer than a block of softmax too.
        let shapes = [
            (1, 0, 1),
            (3, 0, 9),
            (1, 130, 131),
            (2, 127, 200),
            (5, 1, 6),
            (1, 7, 8),
        ];
        let shapes: Vec<_> = shapes.into_iter().cycle().take(TABLE + 3).collect();
        let all: Vec<SequenceRows> = shapes
            .iter()
            .map(|&(rows, first, capacity)| SequenceRows {
                rows,
                first,
                capacity,
            })
            .collect();
        let count: usize = all.iter().map(|sequence| sequence.rows).sum();
        let key_rows = rows(&mut random, count, KV_HEADS, head_dim);
        let value_rows = rows(&mut random, count, KV_HEADS, head_dim);
        let query_rows = rows(&mut random, count, HEADS, head_dim);
        let keys = quantized(kernels, &key_rows, KV_HEADS, head_dim);
        let key_values = quantized(kernels, &value_rows, KV_HEADS, head_dim);
        let queries = quantized(kernels, &query_rows, HEADS, head_dim);
        let sequences = kernels.sequences(&all).unwrap();

        for more_room in [0, 1] {
            let (mut together, mut alone) = (Vec::new(), Vec::new());
            let mut expected = kernels.upload(&vec![0.0; query_rows.len()]).unwrap();
            let mut from = 0;
            for (index, sequence) in all.iter().enumerate() {
                // Of the third alone.
                let room = sequence.capacity + if index == 2 { more_room } else { 0 };
                let mut cache = kernels.cache(KV_HEADS, head_dim, room).unwrap();
                if sequence.first > 0 {
                    let before = rows(&mut random, sequence.first, KV_HEADS, head_dim);
                    let before = quantized(kernels, &before, KV_HEADS, head_dim);
                    kernels.append(&mut cache, &before, &before).unwrap();
                }
                together.push(kernels.copy_cache(&cache, room).unwrap());
                let own = from..from + sequence.rows;
                from = own.end;
                kernels
                    .append_rows(&mut cache, &keys, &key_values, own.clone())
                    .unwrap();
                let mask = Mask::Causal {
                    first: sequence.first,
                };
                kernels
                    .attend_rows(&queries, own, &cache, mask, &mut expected)
                    .unwrap();
                alone.push(cache);
            }
            let expected = values(kernels, &expected);
            // The second time all of them are there already.
            for _ in 0..2 {
                let mut caches: Vec<&mut Cache<M>> = together.iter_mut().collect();
                kernels
                    .append_sequences(&sequences, &mut caches, &keys, &key_values)
                    .unwrap();
            }
            for (cache, alone) in together.iter().zip(&alone) {
                assert_eq!(cache.len(), alone.len());
                let (found, kept) = (
                    kernels.kept(cache, cache.len()).unwrap(),
                    kernels.kept(alone, alone.len()).unwrap(),
                );
                assert_eq!(found, kept);
            }
            let caches: Vec<&Cache<M>> = together.iter().collect();
            // All at once, and with little room for scores: a few rows at a time.
            for room in [1 << 26, 3 * HEADS * 131] {
                kernels.limit(room);
                let mut out = kernels.floats(query_rows.len()).unwrap();
                kernels
                    .attend_sequences(&sequences, &queries, &caches, &mut out)
                    .unwrap();
                let what = format!("heads of {head_dim}, {room}, {more_room} more");
                assert_same(&values(kernels, &out), &expected, &what);
            }
            kernels.limit(1 << 26);
        }

        let shape = Err(Error::Arithmetic(ArithmeticError::Shape));
        let empty = kernels.cache(KV_HEADS, head_dim, 300).unwrap();
        let caches = vec![&empty; all.len()];
        let mut out = kernels.floats(query_rows.len()).unwrap();
        let found = kernels.attend_sequences(&sequences, &queries, &caches, &mut out);
        assert_eq!(found, shape, "positions that are not there");
        let found = kernels.attend_sequences(&sequences, &queries, &caches[1..], &mut out);
        assert_eq!(found, shape, "too few caches");
    }
    let shape = Err(Error::Arithmetic(ArithmeticError::Shape));
    for (rows, first, capacity) in [(0, 1, 4), (2, 3, 4), (1, usize::MAX, 4)] {
        let sequence = SequenceRows {
            rows,
            first,
            capacity,
        };
        assert_eq!(kernels.sequences(&[sequence]).map(drop), shape, "{rows}, {first}");
    }
}
