//! The real all-MiniLM-L6-v2 on the exact tier: what int12 costs in meaning.

#![allow(clippy::unwrap_used)]

mod common;

use common::{exact_minilm, minilm, run};
use surety_engine::Embeddings;

fn sentences() -> String {
    let golden: serde_json::Value =
        serde_json::from_str(include_str!("golden/all-MiniLM-L6-v2.json")).unwrap();
    let items = golden["items"].as_array().unwrap();
    let texts: Vec<&str> = items.iter().map(|item| item["text"].as_str().unwrap()).collect();
    texts.join("\n") + "\n" + include_str!("../../../examples/text/paraphrases.txt")
}

fn cosine(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[test]
fn vectors_point_where_the_published_ones_do() {
    let (float, exact) = (
        run(&minilm(), 2, sentences()),
        run(&exact_minilm(), 2, sentences()),
    );
    assert_eq!(float.claim.units, exact.claim.units);
    let float = Embeddings::decode(&float.output).unwrap();
    let exact = Embeddings::decode(&exact.output).unwrap();
    let cosines: Vec<f32> = float
        .rows()
        .zip(exact.rows())
        .map(|(a, b)| cosine(a, b))
        .collect();
    let least = cosines.iter().copied().fold(1.0, f32::min);
    let mean = cosines.iter().sum::<f32>() / cosines.len() as f32;
    println!("{} sentences: mean {mean}, least {least}", cosines.len());
    assert!(least >= 0.9999 && mean >= 0.999_99, "mean {mean}, least {least}");
    let moved = (0..cosines.len()).filter(|row| nearest(&float, *row) != nearest(&exact, *row));
    let moved: Vec<usize> = moved.collect();
    assert!(
        moved.len() * 100 <= cosines.len(),
        "{moved:?} of {}",
        cosines.len()
    );
}

/// The row that points most nearly where this one does.
fn nearest(of: &Embeddings, row: usize) -> usize {
    let own = of.row(row).unwrap();
    let others = of.rows().enumerate().filter(|(other, _)| *other != row);
    let near = others.map(|(other, vector)| (cosine(own, vector), other));
    near.max_by(|a, b| a.0.total_cmp(&b.0)).unwrap().1
}
