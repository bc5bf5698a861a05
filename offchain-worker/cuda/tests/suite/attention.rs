//! Attention and rotary positions.

use std::ops::Range;

use surety_cuda::{GpuBackend, Heads, Kernels, Mask, Mixing, Pages, Rotation, Stage};
use surety_exact::{self as exact, BLOCK, Head, Turns};

use super::{Random, assert_same, values};

struct Case {
    heads: usize,
    kv_heads: usize,
    head_dim: usize,
    /// How many positions are cached.
    len: usize,
    keys: Vec<f32>,
    values: Vec<f32>,
    queries: Vec<f32>,
}

impl Case {
    fn new(random: &mut Random, shape: (usize, usize, usize), len: usize, rows: usize) -> Self {
        let (heads, kv_heads, head_dim) = shape;
        let width = kv_heads * head_dim;
        Self {
            heads,
            kv_heads,
            head_dim,
            len,
            keys: random.activations(len * width),
            values: random.activations(len * width),
            queries: random.activations(rows * heads * head_dim),
        }
    }

    /// By the definition; row `i` sees `spans[i]`.
    fn expected(&self, spans: &[Range<u32>]) -> Vec<f32> {
        let Self {
            heads,
            kv_heads,
            head_dim,
            ..
        } = *self;
        let quantized = |rows: &[f32]| {
            let (mut q, mut scales) = (vec![0; rows.len()], vec![0.0; rows.len() / head_dim]);
            exact::quantize_heads(rows, head_dim, &mut q, &mut scales).unwrap();
            (q, scales)
        };
        let (queries, keys, values) = (
            quantized(&self.queries),
            quantized(&self.keys),
            quantized(&self.values),
        );
        fn head((q, scales): &(Vec<i16>, Vec<f32>), head: usize) -> Head<'_> {
            let width = q.len() / scales.len();
            Head {
                q: &q[head * width..(head + 1) * width],
                scale: scales[head],
            }
        }
        let mut out = vec![0.0; self.queries.len()];
        for (cell, out) in out.chunks_mut(head_dim).enumerate() {
            let span = &spans[cell / heads];
            let at = |j: usize| (span.start as usize + j) * kv_heads + cell % heads / (heads / kv_heads);
            exact::attention_row(
                head(&queries, cell),
                |j| head(&keys, at(j)),
                |j| head(&values, at(j)),
                span.len(),
                exact::rsqrt(head_dim as f32),
                out,
            )
            .unwrap();
        }
        out
    }

    fn found<M: GpuBackend>(&self, kernels: &mut Kernels<M>, mask: Mask<'_, M>) -> Vec<f32> {
        let width = self.kv_heads * self.head_dim;
        let mut cache = Pages::new(1, self.kv_heads, self.head_dim).unwrap().cache();
        let first = (self.len / 3).max(1);
        for part in [0..first, first..self.len] {
            if part.is_empty() {
                continue;
            }
            let cells = part.start * width..part.end * width;
            let keys = quantized(kernels, &self.keys[cells.clone()], self.kv_heads, self.head_dim);
            let values = quantized(kernels, &self.values[cells], self.kv_heads, self.head_dim);
            kernels.append(&mut cache, 0, &keys, &values).unwrap();
        }
        let queries = quantized(kernels, &self.queries, self.heads, self.head_dim);
        let mut out = kernels.floats(self.queries.len()).unwrap();
        kernels
            .attention(&queries, &mut cache, 0, mask, &mut out)
            .unwrap();
        values(kernels, &out)
    }
}

/// Rows of heads on the machine.
pub fn quantized<M: GpuBackend>(
    kernels: &mut Kernels<M>,
    rows: &[f32],
    heads: usize,
    head_dim: usize,
) -> Heads<M> {
    let (rows, mut into) = (kernels.upload(rows).unwrap(), Heads::default());
    kernels.quantize_heads(&rows, heads, head_dim, &mut into).unwrap();
    into
}

/// Spans that begin and end anywhere, and rows of several in one block of threads.
pub fn spans_of_any_place_equal_the_definition<M: GpuBackend>(kernels: &mut Kernels<M>) {
    let mut random = Random::new(39);
    let len = 3 * BLOCK + 9;
    // Beginnings, how many rows see on from there, and how many positions the first of them does.
    let all = [
        (0, 3, 1),
        (1, 5, 127),
        (31, 2, 128),
        (32, 4, 2 * BLOCK),
        (BLOCK + 95, 6, 30),
        (2 * BLOCK - 1, 1, 129),
        (2 * BLOCK + 17, 3, 100),
    ];
    let spans: Vec<_> = all
        .iter()
        .flat_map(|&(start, rows, first)| (0..rows).map(move |i| start as u32..(start + first + i) as u32))
        .collect();
    for shape in [(2, 2, 32), (4, 1, 40), (16, 2, 16)] {
        let case = Case::new(&mut random, shape, len, spans.len());
        let expected = case.expected(&spans);
        for mixing in [Mixing::Rows, Mixing::Blocks] {
            kernels.mix_by(mixing);
            let on_machine = kernels.spans(&spans).unwrap();
            let found = case.found(kernels, Mask::Spans(&on_machine));
            assert_same(&found, &expected, &format!("{shape:?}, {mixing:?}"));
        }
    }
    kernels.mix_by(Mixing::Auto);
}

pub fn attention_equals_the_definition<M: GpuBackend>(kernels: &mut Kernels<M>) {
    let shapes = [(1, 1, 8), (4, 2, 32), (6, 1, 5), (3, 3, 64)];
    for mixing in [Mixing::Rows, Mixing::Blocks] {
        kernels.mix_by(mixing);
        check(kernels, &shapes, &[(1, 1), (2, 1), (17, 17), (129, 2), (300, 3)]);
        // More columns than a block of threads takes, and more heads that share keys.
        check(kernels, &[(2, 1, 160), (19, 1, 40)], &[(130, 2)]);
    }
    kernels.mix_by(Mixing::Auto);
}

/// Little room: a round takes few of the queries.
pub fn rounds_of_queries_do_not_show<M: GpuBackend>(kernels: &mut Kernels<M>) {
    kernels.limit(3 * 4 * 8 + 1);
    kernels.mix_by(Mixing::Blocks);
    check(kernels, &[(4, 2, 8)], &[(17, 17), (40, 2)]);
    kernels.mix_by(Mixing::Auto);
}

fn check<M: GpuBackend>(
    kernels: &mut Kernels<M>,
    shapes: &[(usize, usize, usize)],
    sizes: &[(usize, usize)],
) {
    let mut random = Random::new(7);
    for shape in shapes.iter().copied() {
        for (len, rows) in sizes.iter().copied() {
            let what = format!("{shape:?}, {rows} queries of {len} positions");
            let case = Case::new(&mut random, shape, len, rows);
            let end = len as u32;

            let full = vec![0..end; rows];
            assert_same(
                &case.found(kernels, Mask::Full),
                &case.expected(&full),
                &format!("full, {what}"),
            );

            let first = len - rows;
            let causal: Vec<_> = (0..rows).map(|i| 0..(first + i + 1) as u32).collect();
            let found = case.found(kernels, Mask::Causal { first });
            assert_same(&found, &case.expected(&causal), &format!("causal, {what}"));

            let spans: Vec<_> = (0..rows as u32)
                .map(|i| i..end.min(i + 1 + 2 * end / 3))
                .collect();
            let on_machine = kernels.spans(&spans).unwrap();
            let found = case.found(kernels, Mask::Spans(&on_machine));
            assert_same(&found, &case.expected(&spans), &format!("spans, {what}"));
        }
    }
}

/// Queries and keys are rotated, values are not; what was rotated is kept, or only quantized.
pub fn rotating_equals_the_definition<M: GpuBackend>(kernels: &mut Kernels<M>) {
    let mut random = Random::new(8);
    for (heads, kv_heads, head_dim, first) in [
        (1, 1, 2, 0),
        (6, 3, 8, 1),
        (2, 1, 64, 1_000_000),
        (4, 2, 10, u32::MAX - 40),
        (2, 2, 130, 5),
    ] {
        let turns: Vec<Turns> = (0..head_dim / 2).map(|_| Turns(random.next())).collect();
        let table = kernels.turns(&turns).unwrap();
        let positions: Vec<u32> = match first {
            0 => (0..33).map(|i| (i * 7919) % 1000).collect(),
            _ => (0..33).map(|i| first + i).collect(),
        };
        let numbers = kernels.numbers(&positions).unwrap();
        let counts = [heads, kv_heads, kv_heads];
        let parts = counts.map(|heads| random.activations(33 * heads * head_dim));
        for keeps in [false, true] {
            let what = format!("{heads} heads of {head_dim} from {first}, {keeps}");
            let mut there = parts.each_ref().map(|rows| kernels.upload(rows).unwrap());
            let mut into: [Heads<M>; 3] = Default::default();
            let rotation = Rotation {
                turns: &table,
                positions: &numbers,
                keeps,
            };
            let [query, key, value] = &mut there;
            let [queries, keys, values_] = &mut into;
            let given = [
                (query, heads, queries),
                (key, kv_heads, keys),
                (value, kv_heads, values_),
            ];
            kernels
                .rotate_quantize(given, head_dim, Some(&rotation), None, None)
                .unwrap();
            for (part, rows) in parts.iter().enumerate() {
                let mut expected = rows.clone();
                for (row, position) in expected.chunks_mut(counts[part] * head_dim).zip(&positions) {
                    for head in row.chunks_mut(head_dim).filter(|_| part < 2) {
                        exact::rotate_row(head, &turns, *position).unwrap();
                    }
                }
                let alone = quantized(kernels, &expected, counts[part], head_dim);
                let bytes = |kernels: &mut Kernels<M>, heads: &Heads<M>| {
                    let mut stage = Stage::default();
                    kernels.stage_heads(heads, &mut stage).unwrap();
                    kernels.staged(&stage).unwrap()
                };
                let alone = bytes(kernels, &alone);
                assert_eq!(bytes(kernels, &into[part]), alone, "{what}");
                let left = if keeps { &expected } else { rows };
                assert_same(&values(kernels, &there[part]), left, &what);
            }
        }
    }
}
