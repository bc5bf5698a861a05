//! The golden vectors: what `vectors/generate.py` computed a second time, bit for bit.

use super::bits;
use serde_json::Value;
use surety_exact::*;

fn read(json: &str) -> Value {
    serde_json::from_str(json).unwrap()
}

/// The cases of a list; an empty list would prove nothing.
fn cases(list: &Value) -> &[Value] {
    let cases = list.as_array().unwrap();
    assert!(cases.len() >= 4);
    cases
}

fn words(value: &Value) -> impl Iterator<Item = &str> {
    value.as_str().unwrap().split_whitespace()
}

fn floats(value: &Value) -> Vec<f32> {
    words(value)
        .map(|word| f32::from_bits(u32::from_str_radix(word, 16).unwrap()))
        .collect()
}

fn float(value: &Value) -> f32 {
    let [value] = floats(value)[..] else {
        panic!("not one number")
    };
    value
}

fn integers<T: core::str::FromStr>(value: &Value) -> Vec<T> {
    words(value).map(|word| word.parse().ok().unwrap()).collect()
}

#[test]
fn functions() {
    let vectors = read(include_str!("../../vectors/functions.json"));
    for case in cases(&vectors) {
        let name = case["function"].as_str().unwrap();
        let function = match name {
            "exp" => exp,
            "sqrt" => sqrt,
            "rsqrt" => rsqrt,
            "tanh" => tanh,
            "erf" => erf,
            "gelu" => gelu,
            "gelu_tanh" => gelu_tanh,
            "silu" => silu,
            other => panic!("no function {other}"),
        };
        for (x, expected) in floats(&case["arguments"])
            .into_iter()
            .zip(floats(&case["values"]))
        {
            let found = function(x);
            assert_eq!(
                found.to_bits(),
                expected.to_bits(),
                "{name}({x:e}) = {expected:e}, not {found:e}"
            );
        }
    }
}

#[test]
fn sums() {
    for case in cases(&read(include_str!("../../vectors/sums.json"))) {
        let row = floats(&case["row"]);
        assert_eq!(sum(&row).to_bits(), float(&case["sum"]).to_bits(), "{case}");
        assert_eq!(
            sum_of_squares(&row).to_bits(),
            float(&case["squares"]).to_bits(),
            "{case}"
        );
        if let Ok(lanes) = row.try_into() {
            assert_eq!(fold(lanes).to_bits(), float(&case["sum"]).to_bits(), "{case}");
        }
    }
}

#[test]
fn norms() {
    for case in cases(&read(include_str!("../../vectors/norms.json"))) {
        let (row, weight, bias) = (
            floats(&case["row"]),
            floats(&case["weight"]),
            floats(&case["bias"]),
        );
        let (epsilon, mut out) = (float(&case["epsilon"]), vec![0.0; row.len()]);
        layer_norm_row(&row, &weight, &bias, epsilon, &mut out).unwrap();
        assert_eq!(bits(&out), bits(&floats(&case["layer_norm"])));
        rms_norm_row(&row, &weight, epsilon, &mut out).unwrap();
        assert_eq!(bits(&out), bits(&floats(&case["rms_norm"])));
    }
}

#[test]
fn quantizing() {
    let vectors = read(include_str!("../../vectors/quantize.json"));
    assert_eq!(vectors["group"], GROUP);
    let rounded = &vectors["round"];
    let found: Vec<i32> = floats(&rounded["arguments"]).into_iter().map(round).collect();
    assert_eq!(found, integers::<i32>(&rounded["integers"]));
    for case in cases(&vectors["rows"]) {
        let row = floats(&case["row"]);
        let mut scaled = vec![0.0; row.len()];
        scale_row(&row, &floats(&case["by"]), &mut scaled).unwrap();
        assert_eq!(bits(&scaled), bits(&floats(&case["scaled"])));
        for (precision, of) in [(Precision::Int8, case), (Precision::Int12, &case["int12"])] {
            let (mut q, mut scales) = (vec![0; row.len()], vec![0.0; groups(row.len())]);
            quantize_row(&scaled, precision, &mut q, &mut scales).unwrap();
            assert_eq!(q, integers::<i16>(&of["q"]));
            assert_eq!(bits(&scales), bits(&floats(&of["scales"])));
            if row.len() <= GROUP {
                let scale = quantize_group(&scaled, precision, &mut q).unwrap();
                assert_eq!((q, scale), (integers(&of["q"]), float(&of["scales"])));
            }
        }
    }
}

#[test]
fn products() {
    for case in cases(&read(include_str!("../../vectors/product.json"))) {
        let (q, w): (Vec<i16>, Vec<i16>) = (integers(&case["q"]), integers(&case["w"]));
        assert_eq!(case["dot"], dot(&q, &w));
        let (s, t) = (floats(&case["q_scales"]), floats(&case["w_scales"]));
        let cell = product_cell(&q, &s, &w, &t, float(&case["bias"])).unwrap();
        assert_eq!(cell.to_bits(), float(&case["cell"]).to_bits());
    }
}

/// Rows of heads, quantized.
fn heads(rows: &[f32], width: usize) -> (Vec<i16>, Vec<f32>) {
    let (mut q, mut scales) = (vec![0; rows.len()], vec![0.0; rows.len() / width]);
    quantize_heads(rows, width, &mut q, &mut scales).unwrap();
    (q, scales)
}

fn head<'a>((q, scales): &'a (Vec<i16>, Vec<f32>), head: usize) -> Head<'a> {
    let width = q.len() / scales.len();
    Head {
        q: &q[head * width..(head + 1) * width],
        scale: scales[head],
    }
}

#[test]
fn attentions() {
    for case in cases(&read(include_str!("../../vectors/attention.json"))) {
        let (query, keys, values) = (
            floats(&case["query"]),
            floats(&case["keys"]),
            floats(&case["values"]),
        );
        let width = query.len();
        let both = heads(&[&query, &keys[..width]].concat(), width);
        assert_eq!(both.0, integers::<i16>(&case["heads"]["q"]));
        assert_eq!(bits(&both.1), bits(&floats(&case["heads"]["scales"])));

        let mut scores = floats(&case["scores"]);
        let mut weights = vec![0; scores.len()];
        let (block, scale) =
            softmax_block(&mut scores, &floats(&case["value_scales"]), &mut weights).unwrap();
        assert_eq!(bits(&scores), bits(&floats(&case["exponentials"])));
        assert_eq!(weights, integers::<i16>(&case["weights"]));
        let expected = [&case["largest"], &case["total"], &case["weight_scale"]].map(float);
        assert_eq!(bits(&[block.largest, block.total, scale]), bits(&expected));

        let (keys, values) = (heads(&keys, width), heads(&values, width));
        let mut out = vec![0.0; width];
        attention_row(
            head(&both, 0),
            |j| head(&keys, j),
            |j| head(&values, j),
            keys.1.len(),
            float(&case["scale"]),
            &mut out,
        )
        .unwrap();
        assert_eq!(bits(&out), bits(&floats(&case["out"])));
    }
}

#[test]
fn rotations() {
    let vectors = read(include_str!("../../vectors/rotary.json"));
    let angles = &vectors["angles"];
    let (sin, cos): (Vec<f32>, Vec<f32>) = integers(&angles["turns"]).into_iter().map(sin_cos_turn).unzip();
    assert_eq!(bits(&sin), bits(&floats(&angles["sin"])));
    assert_eq!(bits(&cos), bits(&floats(&angles["cos"])));
    for case in cases(&vectors["heads"]) {
        let turns: Vec<Turns> = integers(&case["turns"]).into_iter().map(Turns).collect();
        let position = u32::try_from(case["position"].as_u64().unwrap()).unwrap();
        let (mut head, expected) = (floats(&case["head"]), floats(&case["rotated"]));
        let half = turns.len();
        let (a, b) = rotate_pair(head[0], head[half], turns[0].at(position));
        assert_eq!(bits(&[a, b]), bits(&[expected[0], expected[half]]));
        rotate_row(&mut head, &turns, position).unwrap();
        assert_eq!(bits(&head), bits(&expected));
    }
}

#[test]
fn pooling() {
    for case in cases(&read(include_str!("../../vectors/pooling.json"))) {
        let mut expected = floats(&case["pooled"]);
        let mut pooled = vec![0.0; expected.len()];
        mean_pool(&floats(&case["rows"]), &mut pooled).unwrap();
        assert_eq!(bits(&pooled), bits(&expected));
        l2_normalize(&mut expected).unwrap();
        assert_eq!(bits(&expected), bits(&floats(&case["normalized"])));
    }
}

#[test]
fn sampling() {
    for case in cases(&read(include_str!("../../vectors/sampling.json"))) {
        let logits = floats(&case["logits"]);
        assert_eq!(case["greedy"], greedy(&logits).unwrap());
        for draw in cases(&case["draws"]) {
            let [temperature_milli, top_k, top_p_milli, random, token] = integers::<u64>(draw)[..] else {
                panic!("{draw}")
            };
            let [temperature_milli, top_k, top_p_milli, token] =
                [temperature_milli, top_k, top_p_milli, token].map(|value| u32::try_from(value).unwrap());
            let how = Sampling {
                temperature_milli,
                top_k,
                top_p_milli,
            };
            let found = sample(&logits, &how, random, &mut vec![0; logits.len()]);
            assert_eq!(found, Ok(token), "{draw}");
        }
    }
}
