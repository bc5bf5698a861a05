//! How fast the kernels are, per instruction set: medians. `cargo run --release -p surety-kernels --example
//! speed`.
#![allow(clippy::unwrap_used)]

use std::{hint::black_box, time::Instant};

use surety_exact::{Precision, Turns, groups};
use surety_kernels::{
    Cache, Heads, Isa, Mask, Packed, Rows, attention, available, gelu, layer_norm, product, rotate, swiglu,
    weights::{Linear, Norm, Quanta},
    with_isa,
};

/// Median of the seconds that `work` takes.
fn seconds(mut work: impl FnMut()) -> f64 {
    let begun = Instant::now();
    let mut times = Vec::new();
    while times.len() < 5 || (begun.elapsed().as_millis() < 150 && times.len() < 10_000) {
        let one = Instant::now();
        work();
        times.push(one.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn values(count: usize) -> Vec<f32> {
    (0..count)
        .map(|i| ((i * 7919) % 1009) as f32 / 504.0 - 1.0)
        .collect()
}

fn packed(precision: Precision, inputs: usize, outputs: usize) -> Packed {
    let most = usize::from(precision.max().unsigned_abs());
    let values = (0..inputs * outputs).map(|i| ((i * 31) % (2 * most + 1)) as i16 - precision.max());
    let linear = Linear {
        inputs,
        outputs,
        q: match precision {
            Precision::Int8 => Quanta::Int8(values.map(|value| value as i8).collect()),
            Precision::Int12 => Quanta::Int12(values.collect()),
        },
        scales: vec![0.001; outputs * groups(inputs)],
        bias: None,
    };
    Packed::new(&linear).unwrap()
}

fn products(isa: Isa, precision: Precision, threads: usize) {
    for (inputs, outputs) in [(384, 384), (384, 1536), (1536, 384)] {
        let weights = packed(precision, inputs, outputs);
        for m in [8, 32, 128, 512] {
            let mut rows = Rows::new(precision);
            rows.quantize(&values(m * inputs), inputs, None).unwrap();
            let mut out = vec![0.0; m * outputs];
            let time = seconds(|| product(&rows, &weights, &mut out).unwrap());
            let rate = (m * inputs * outputs) as f64 / time / 1e9;
            println!(
                "{isa:?}, {precision:?}, {threads} threads: {m} x {inputs} x {outputs}: {rate:.0} GMAC/s, {:.1} us",
                time * 1e6
            );
        }
    }
    // More than the caches hold, as when a model's layers follow one another.
    let weights: Vec<Packed> = (0..24).map(|_| packed(precision, 2048, 5632)).collect();
    for m in [1, 2, 4] {
        let mut rows = Rows::new(precision);
        rows.quantize(&values(m * 2048), 2048, None).unwrap();
        let mut out = vec![0.0; m * 5632];
        let time = seconds(|| {
            weights
                .iter()
                .for_each(|weights| product(&rows, weights, &mut out).unwrap())
        });
        let bytes = weights.len() * 2048 * 5632 * precision.bytes();
        println!(
            "{isa:?}, {precision:?}, {threads} threads: {m} x 2048 x 5632: {:.1} GB/s",
            bytes as f64 / time / 1e9
        );
    }
}

fn rows(isa: Isa) {
    let per = |what: &str, count: usize, time: f64| {
        println!("{isa:?}: {what}: {:.3} ns", time * 1e9 / count as f64)
    };
    let (m, n) = (64, 384);
    let input = values(m * n);
    let mut out = vec![0.0; m * n];
    let mut quantized = Rows::default();
    per(
        "quantize, per value",
        m * n,
        seconds(|| quantized.quantize(&input, n, None).unwrap()),
    );
    let smoothing_scale = values(n);
    per(
        "quantize with factors, per value",
        m * n,
        seconds(|| quantized.quantize(&input, n, Some(&smoothing_scale)).unwrap()),
    );
    let norm = Norm {
        weight: values(n),
        bias: Some(values(n)),
        epsilon: 1e-12,
    };
    per(
        "layer norm, per value",
        m * n,
        seconds(|| layer_norm(&input, &norm, &mut out).unwrap()),
    );
    per(
        "gelu, per value",
        m * n,
        seconds(|| {
            out.copy_from_slice(&input);
            gelu(&mut out)
        }),
    );
    per(
        "swiglu, per value",
        m * n,
        seconds(|| {
            out.copy_from_slice(&input);
            swiglu(&mut out, &input).unwrap()
        }),
    );
    let turns: Vec<Turns> = (0..32).map(|i| Turns((u64::MAX / 7) >> i)).collect();
    per(
        "rotate, per value",
        m * n,
        seconds(|| rotate(&mut out, 6, &turns, 5).unwrap()),
    );
}

fn attentions(isa: Isa) {
    for (m, n, heads, kv_heads, d) in [
        (32, 32, 12, 12, 32),
        (128, 128, 12, 12, 32),
        (1, 512, 32, 4, 64),
        (1, 512, 12, 12, 64),
        (64, 512, 32, 4, 64),
    ] {
        let mut cache = Cache::new(kv_heads, d, n);
        let (input, mut kept) = (values(n * kv_heads * d), Heads::default());
        let filled = seconds(|| {
            cache.clear();
            kept.quantize(&input, kv_heads, d).unwrap();
            cache.append(kept.all(), kept.all()).unwrap();
        });
        let (input, mut queries) = (values(m * heads * d), Heads::default());
        let mut out = vec![0.0; input.len()];
        let time = seconds(|| {
            queries.quantize(black_box(&input), heads, d).unwrap();
            attention(queries.all(), &cache, Mask::Full, &mut out).unwrap();
        });
        let rate = (2 * m * n * heads * d) as f64 / time / 1e9;
        println!(
            "{isa:?}: attention {m} on {n}, {heads}/{kv_heads} x {d}: {:.1} us, {rate:.1} GMAC/s; keys and values: {:.1} us",
            time * 1e6,
            filled * 1e6
        );
    }
}

fn main() {
    let asked: Vec<String> = std::env::args().skip(1).collect();
    let wanted = |isa: &Isa| asked.is_empty() || asked.contains(&format!("{isa:?}"));
    for isa in available().iter().copied().filter(wanted) {
        with_isa(isa, || {
            for threads in [1, 2] {
                let pool = rayon::ThreadPoolBuilder::new()
                    .num_threads(threads)
                    .build()
                    .unwrap();
                pool.install(|| {
                    for precision in [Precision::Int8, Precision::Int12] {
                        products(isa, precision, threads);
                    }
                    if threads == 1 {
                        rows(isa);
                        attentions(isa);
                    }
                });
            }
        });
    }
}
