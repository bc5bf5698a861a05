//! Some items of a job computed alone are what they are among all others.

#![allow(clippy::unwrap_used)]

mod common;

use std::{ops::ControlFlow, sync::Arc};

use common::{embed_job, synthetic};
use proptest::prelude::*;
use surety_engine::{Engine, EngineError, Event, Job, exact::ExactBert};
use surety_model_trace::{Layout, TaskFacts, item_root, shown_item};
use surety_proofs::{content_hash, merkle_root};
use surety_types::{ContentHash, model::ModelFamily, task::ResultClaim, trust::ItemsFound};

fn go_on(_: Event) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn engine() -> Arc<dyn Engine> {
    let weights = synthetic::bert(3);
    let manifest = synthetic::manifest(ModelFamily::Bert, &weights);
    Arc::new(ExactBert::new(manifest, weights).unwrap())
}

fn lines(count: u32) -> Vec<String> {
    let words = [
        "the cat",
        "a dog sat",
        "the cat saw a dog",
        "mat",
        "a cat and the dog on the mat",
    ];
    let word = |index: u32| words[index as usize % words.len()];
    (0..count)
        .map(|index| format!("{} {}", word(index), word(index / 3)))
        .collect()
}

fn job(lines: &[String]) -> Job {
    embed_job(lines.join(
        "
",
    ))
}

fn found(engine: &Arc<dyn Engine>, job: &Job, items: &[u32]) -> ItemsFound {
    engine.audit_items(job, items, &mut go_on).unwrap()
}

/// A provider's claim, its leaves and its output.
fn provided(engine: &Arc<dyn Engine>, job: &Job) -> (ResultClaim, Vec<ContentHash>, Vec<u8>) {
    let outcome = engine.run(job, &mut go_on).unwrap();
    let leaves = engine.leaves(job, &outcome.output, &mut go_on).unwrap();
    (outcome.claim, leaves, outcome.output)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn items_alone_are_the_same_bits_as_within_the_batch(
        count in 1..150u32, own in 1..20usize, draw in any::<[u8; 32]>(),
    ) {
        let (engine, job) = (engine(), job(&lines(count)));
        let (claim, leaves, output) = provided(&engine, &job);
        let mut items: Vec<u32> = draw.iter().take(own).map(|draw| u32::from(*draw) % count).collect();
        items.sort_unstable();
        items.dedup();
        let alone = found(&engine, &job, &items);
        let strides = (leaves.len() - 2) / count as usize;
        let row_bytes = {
            let header = u64::from_le_bytes(output[..8].try_into().unwrap()) as usize + 8;
            prop_assert_eq!((output.len() - header) % count as usize, 0);
            (header, (output.len() - header) / count as usize)
        };
        prop_assert_eq!(alone.len(), items.len());
        for (item, found) in items.iter().zip(&alone) {
            let leaf = 1 + *item as usize * strides;
            prop_assert_eq!(found.leaves, item_root(&leaves[leaf..leaf + strides]));
            let row = row_bytes.0 + *item as usize * row_bytes.1;
            prop_assert_eq!(found.row, content_hash(&output[row..row + row_bytes.1]));
        }
        prop_assert!(engine.shows_items(&job, (&items, &alone), &claim, (&leaves, &output)));
    }
}

#[test]
fn a_wrong_item_is_seen_by_whoever_drew_it_and_by_nobody_else() {
    let (engine, lines) = (engine(), lines(10));
    let other = {
        let mut other = lines.clone();
        other[4] = "a mat".into();
        job(&other)
    };
    let job = job(&lines);
    // A provider that has computed line 4 of another text, and says it of this input.
    let (_, wrong, output) = provided(&engine, &other);
    let (right, leaves, _) = provided(&engine, &job);
    let mut lied = wrong.clone();
    lied[0] = leaves[0];
    let claim = ResultClaim {
        output: *wrong.last().unwrap(),
        trace_root: merkle_root(lied.iter().copied()),
        units: 10,
    };
    for item in 0..10 {
        let own = found(&engine, &job, &[item]);
        let shows = |claim: &ResultClaim| engine.shows_items(&job, (&[item], &own), claim, (&lied, &output));
        assert_eq!(shows(&claim), item != 4, "{item}");
        // Leaves that are not the claim's, and a claim of another length.
        assert!(!shows(&right));
        let longer = ResultClaim {
            units: 11,
            ..claim.clone()
        };
        assert!(!shows(&longer));
    }
}

#[test]
fn an_output_with_another_header_or_another_length_is_seen_by_whoever_audits_any_item() {
    let (engine, job) = (engine(), job(&lines(10)));
    let (_, mut leaves, output) = provided(&engine, &job);
    let items = [4];
    let own = found(&engine, &job, &items);
    let parts = engine.item_parts(&job, &items).unwrap();
    assert!(parts.output.contains(&0));
    assert_eq!(parts.output_bytes as usize, output.len());
    // Served, or demanded: all of it lies in one part.
    let mut shows = |output: &[u8]| {
        *leaves.last_mut().unwrap() = content_hash(output);
        let claim = ResultClaim {
            output: content_hash(output),
            trace_root: merkle_root(leaves.iter().copied()),
            units: 10,
        };
        let (own, shown) = ((&items[..], &own), (&leaves[..], output));
        [
            engine.shows_items(&job, own, &claim, shown),
            engine.shows_items_in_parts(&job, own, &claim, shown),
        ]
    };
    assert_eq!(shows(&output), [true; 2]);
    assert_eq!(shows(&[&output[..], b" "].concat()), [false; 2]);
    assert_eq!(shows(&output[..output.len() - 1]), [false; 2]);
    let header = u64::from_le_bytes(output[..8].try_into().unwrap()) as usize + 8;
    for at in 0..header {
        let mut other = output.clone();
        other[at] ^= 1;
        assert_eq!(shows(&other), [false; 2], "{at}");
    }
}

#[test]
fn a_guess_is_refuted_by_the_leaves_of_a_trace_as_the_chain_reads_them_and_nothing_else_is() {
    let (engine, job) = (engine(), job(&lines(10)));
    let (claim, leaves, _) = provided(&engine, &job);
    assert_eq!(engine.leaf_count(&job), Some(leaves.len() as u32));
    let layout = {
        let manifest = engine.manifest();
        let facts = TaskFacts {
            family: manifest.family,
            operation: job.operation,
            input: content_hash(&job.input),
            input_bytes: job.input.len() as u32,
            units_max: job.units_max,
            stop: manifest.text.stop.clone(),
            units: claim.units,
            output: claim.output,
        };
        Layout::new(&manifest.exact.as_ref().unwrap().architecture, facts).unwrap()
    };
    let items = [2, 5, 9];
    let right = found(&engine, &job, &items);
    assert!(engine.refuted_item(&job, (&items, &right), &leaves).is_none());
    for (place, item) in items.into_iter().enumerate() {
        let mut guessed = right.clone();
        guessed[place].leaves = ContentHash::repeat_byte(7);
        let refuted = engine.refuted_item(&job, (&items, &guessed), &leaves);
        let (refuted, shown) = refuted.unwrap();
        assert_eq!(refuted as usize, place);
        let root = shown_item(&layout, &claim.trace_root, item, &shown);
        assert_eq!(root, Some(right[place].leaves));
        // Leaves that are no trace of this job show nothing.
        assert!(
            engine
                .refuted_item(&job, (&items, &guessed), &leaves[1..])
                .is_none()
        );
    }
}

#[test]
fn nothing_of_a_generation_is_computed_alone() {
    let engine = common::generating::engine(synthetic::llama(6, true));
    let job = common::generating::job(&common::generating::request("once", 3));
    let refused = engine.audit_items(&job, &[0], &mut go_on);
    assert!(matches!(refused, Err(EngineError::NoItems)));
    assert_eq!(engine.leaf_count(&job), None);
}
