//! The real all-MiniLM-L6-v2: what it says, and that it says the same every time.

#![allow(clippy::unwrap_used)]

mod common;

use std::process::Command;

use common::{minilm, minilm_codec, minilm_job, run};
use serde_json::Value;
use surety_engine::{Embeddings, EngineError, Job, embedding_leaf};
use surety_proofs::merkle_root;
use surety_types::{input::ShapeFault, model::Operation};

const LINES: &str = "A man is eating food.\n\
    Someone is having a meal.\n\
    The stock market fell sharply on Monday.\n\
    Shares dropped steeply at the start of the week.\n\
    x\n\
    A sentence of some more words, so that the items of one input are of very different lengths indeed.\n";

fn cosine(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[test]
fn embeddings_equal_those_of_the_original_implementation() {
    let golden: Value = serde_json::from_str(include_str!("golden/all-MiniLM-L6-v2.json")).unwrap();
    let golden = golden["items"].as_array().unwrap();
    let texts: Vec<&str> = golden.iter().map(|item| item["text"].as_str().unwrap()).collect();
    let outcome = run(&minilm(), 2, texts.join("\n"));
    let embeddings = Embeddings::decode(&outcome.output).unwrap();
    assert_eq!((embeddings.len(), embeddings.width()), (golden.len(), 384));
    for (row, item) in embeddings.rows().zip(golden) {
        let expected = item["embedding"].as_array().unwrap();
        assert_eq!(row.len(), expected.len());
        for (value, expected) in row.iter().zip(expected) {
            let difference = (f64::from(*value) - expected.as_f64().unwrap()).abs();
            assert!(difference < 1e-5, "{difference} in {}", item["text"]);
        }
    }
}

#[test]
fn paraphrases_are_nearer_than_unrelated_sentences() {
    let outcome = run(&minilm(), 2, LINES);
    let embeddings = Embeddings::decode(&outcome.output).unwrap();
    let row = |index| embeddings.row(index).unwrap();
    let (meal, market) = (cosine(row(0), row(1)), cosine(row(2), row(3)));
    let unrelated = cosine(row(0), row(2)).max(cosine(row(1), row(3)));
    assert!(meal > 0.5 && market > 0.5, "{meal} {market}");
    assert!(unrelated < 0.3, "{unrelated}");
    for row in embeddings.rows() {
        assert!((cosine(row, row) - 1.0).abs() < 1e-5);
    }
}

#[test]
fn a_row_does_not_depend_on_its_neighbors() {
    let engine = minilm();
    let together = Embeddings::decode(&run(&engine, 2, LINES).output).unwrap();
    for (line, row) in LINES.lines().zip(together.rows()) {
        let alone = Embeddings::decode(&run(&engine, 2, line).output).unwrap();
        assert_eq!(alone.row(0).unwrap(), row, "{line}");
    }
}

#[test]
fn runs_and_pools_of_any_size_give_the_same_bits() {
    let engine = minilm();
    let first = run(&engine, 1, LINES);
    for threads in [1, 2, 3] {
        assert_eq!(run(&engine, threads, LINES), first, "{threads} threads");
    }
}

/// The tensor library splits products by the number of cores that it sees, or by this variable.
#[test]
fn the_number_of_cores_makes_no_difference() {
    let here = format!("{:?}", run(&minilm(), 2, LINES).claim);
    for cores in ["1", "2", "7"] {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "print_claim", "--ignored", "--nocapture"])
            .env("RAYON_NUM_THREADS", cores)
            .output()
            .unwrap();
        let printed = String::from_utf8(child.stdout).unwrap();
        assert!(printed.contains(&here), "{cores} cores: {printed}");
    }
}

#[test]
#[ignore = "run by `the_number_of_cores_makes_no_difference`"]
fn print_claim() {
    println!("\n{:?}", run(&minilm(), 2, LINES).claim);
}

#[test]
fn the_claim_is_of_the_blob_and_of_every_row() {
    let outcome = run(&minilm(), 2, LINES);
    assert_eq!(outcome.claim.output, surety_engine::content_hash(&outcome.output));
    assert_eq!(outcome.claim.units, 6);
    let embeddings = Embeddings::decode(&outcome.output).unwrap();
    let codec = minilm_codec();
    let leaves = (0..)
        .zip(LINES.lines().zip(embeddings.rows()))
        .map(|(index, (line, row))| embedding_leaf(index, &codec.encode(line).unwrap(), row));
    assert_eq!(outcome.claim.trace_root, merkle_root(leaves));
    let other = run(&minilm(), 2, LINES.replace('x', "y"));
    assert_ne!(other.claim.output, outcome.claim.output);
    assert_ne!(other.claim.trace_root, outcome.claim.trace_root);
}

#[test]
fn long_items_are_truncated_to_what_the_tokenizer_says() {
    let start = "word ".repeat(126);
    let outcome = run(
        &minilm(),
        2,
        format!("{start}\n{start} and more\n{}", &start[..start.len() - 5]),
    );
    let embeddings = Embeddings::decode(&outcome.output).unwrap();
    assert_eq!(embeddings.row(0), embeddings.row(1));
    assert_ne!(embeddings.row(0), embeddings.row(2));
}

#[test]
fn unusable_inputs_give_typed_errors() {
    let engine = minilm();
    let sink = &mut |_| std::ops::ControlFlow::Continue(());
    let mut fault = |change: fn(&mut Job)| {
        let mut job = minilm_job("a\nb");
        change(&mut job);
        match engine.run(&job, sink) {
            Err(EngineError::Input(fault)) => fault,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(fault(|job| job.units_max = 9), ShapeFault::TooShort);
    assert_eq!(fault(|job| job.input.truncate(30)), ShapeFault::Ragged);
    assert_eq!(engine.manifest().operations.to_vec(), [Operation::Embed]);
}

#[test]
fn what_looks_like_a_special_token_in_a_text_is_text() {
    let codec = minilm_codec();
    let ids = codec.encode("a [SEP] b [CLS] [PAD] [MASK]").unwrap();
    let special = |id: &&u32| [0, 101, 102, 103].contains(*id);
    assert_eq!(ids.iter().filter(special).collect::<Vec<_>>(), [&101, &102]);
    assert_eq!((ids.first(), ids.last()), (Some(&101), Some(&102)));
    assert_eq!(
        codec.decode(&ids).unwrap(),
        "a [ sep ] b [ cls ] [ pad ] [ mask ]"
    );
}
