//! Some items of a job computed alone are what they are among all others.

#![allow(clippy::unwrap_used)]

mod common;

use std::{ops::ControlFlow, sync::Arc};

use common::{Tiny, embed_job, synthetic};
use proptest::prelude::*;
use surety_engine::{Engine, Event, FoundItems, Job, exact::ExactBert};
use surety_model_trace::item_root;
use surety_models::file_hash;
use surety_types::{ContentHash, model::ModelFamily, task::ResultClaim};

fn go_on(_: Event) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn engine() -> Arc<dyn Engine> {
    let weights = synthetic::bert(3);
    let manifest = synthetic::manifest(ModelFamily::Bert, &weights);
    let tokenizer = Tiny::new().tokenizer.to_string();
    Arc::new(ExactBert::new(manifest, weights, tokenizer.as_bytes()).unwrap())
}

fn lines(count: u32) -> Job {
    let words = [
        "the cat",
        "a dog sat",
        "the cat saw a dog",
        "mat",
        "a cat and the dog on the mat",
    ];
    let line = |index: u32| {
        format!(
            "{} {}",
            words[index as usize % words.len()],
            words[index as usize / 3 % words.len()]
        )
    };
    embed_job((0..count).map(line).collect::<Vec<_>>().join("\n"))
}

fn found(engine: &Arc<dyn Engine>, job: &Job, items: &[u32]) -> FoundItems {
    let choose = |_: u32| Some(items.to_vec());
    engine.audit_items(job, &choose, &mut go_on).unwrap().unwrap()
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
        let (engine, job) = (engine(), lines(count));
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
        prop_assert_eq!(alone.found.units, count);
        prop_assert_eq!(alone.found.input, leaves[0]);
        for (item, found) in items.iter().zip(&alone.found.items) {
            let leaf = 1 + *item as usize * strides;
            prop_assert_eq!(found.leaves, item_root(&leaves[leaf..leaf + strides]));
            let row = row_bytes.0 + *item as usize * row_bytes.1;
            prop_assert_eq!(found.row, file_hash(&output[row..row + row_bytes.1]));
        }
        prop_assert!(engine.shows_items(&alone, &claim, &leaves, &output));
    }
}

#[test]
fn a_wrong_item_is_seen_by_whoever_drew_it_and_by_nobody_else() {
    let (engine, job) = (engine(), lines(10));
    let other = {
        let mut other = job.clone();
        let text = String::from_utf8(other.input).unwrap();
        let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
        lines[4] = "a mat".into();
        other.input = lines.join("\n").into_bytes();
        other
    };
    // A provider that has computed line 4 of another text, and says it of this input.
    let (_, wrong, output) = provided(&engine, &other);
    let (right, leaves, _) = provided(&engine, &job);
    let mut lied = wrong.clone();
    lied[0] = leaves[0];
    let claim = ResultClaim {
        output: *wrong.last().unwrap(),
        trace_root: surety_proofs::merkle_root(lied.iter().copied()),
        units: 10,
    };
    for item in 0..10 {
        let own = found(&engine, &job, &[item]);
        assert_eq!(
            engine.shows_items(&own, &claim, &lied, &output),
            item != 4,
            "{item}"
        );
        // Leaves that are not the claim's, and a claim of another length.
        assert!(!engine.shows_items(&own, &right, &lied, &output));
        let longer = ResultClaim {
            units: 11,
            ..claim.clone()
        };
        assert!(!engine.shows_items(&own, &longer, &lied, &output));
    }
}

#[test]
fn nothing_is_computed_where_nothing_is_picked() {
    let (engine, job) = (engine(), lines(5));
    let mut heard = 0;
    let choose = |_: u32| None;
    let none = engine.audit_items(&job, &choose, &mut |_: Event| {
        heard += 1;
        ControlFlow::Continue(())
    });
    assert_eq!((none.unwrap(), heard), (None, 0));
}
