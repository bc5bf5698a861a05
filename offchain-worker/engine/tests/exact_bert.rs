//! Exact encoders: the bits of the definition, whatever is computed beside a row.

#![allow(clippy::unwrap_used)]

mod common;

use std::{ops::ControlFlow, sync::Arc};

use common::{
    Tiny, embed_job,
    reference::{self, Steps, bytes},
    run,
    synthetic::{self, Dice},
    tiny_files,
};
use serde_json::json;
use surety_engine::{
    Embeddings, Engine, EngineError, Event, content_hash,
    exact::{
        BertModel, ExactBert, Op, Probe, Scratch, Step,
        kernels::{Heads, Rows, available, with_isa},
    },
};
use surety_model_trace::quantized_bytes;
use surety_models::{
    ModelError,
    tokens::text_form,
    weights::{BertWeights, Quanta},
};
use surety_proofs::{merkle_root, rows_digest};
use surety_types::{
    ContentHash,
    input::{IdBounds, encode_items},
    model::{ModelFamily, ModelManifest, Pooling},
};

/// Writes every step down.
#[derive(Default)]
struct Recorder(Steps);

impl Probe for Recorder {
    fn real(&mut self, step: Step, rows: &[f32], width: usize) {
        let rows = rows.chunks(width).map(bytes);
        self.0.0.entry(step).or_default().extend(rows);
    }

    fn quantized(&mut self, step: Step, _: &[f32], _: usize, rows: &Rows) {
        let all = (0..rows.count()).map(|row| {
            let (q, scales) = rows.row(row).unwrap();
            [quantized_bytes(rows.precision(), &q), bytes(scales)].concat()
        });
        self.0.0.entry(step).or_default().extend(all);
    }

    fn heads(&mut self, step: Step, heads: &Heads) {
        let all = (0..heads.all().count()).map(|row| {
            let (q, scales) = heads.all().row(row).unwrap();
            let q: Vec<u8> = q.flatten().flat_map(|value| value.to_le_bytes()).collect();
            [q, bytes(scales)].concat()
        });
        self.0.0.entry(step).or_default().extend(all);
    }
}

fn tokens(dice: &mut Dice, count: usize) -> Vec<u32> {
    (0..count).map(|_| dice.below(30) as u32).collect()
}

fn engine(weights: BertWeights) -> Arc<dyn Engine> {
    engine_pooling(weights, Pooling::Mean)
}

fn engine_pooling(weights: BertWeights, pooling: Pooling) -> Arc<dyn Engine> {
    let manifest = synthetic::manifest_pooling(ModelFamily::Bert, &weights, pooling);
    Arc::new(ExactBert::new(manifest, weights).unwrap())
}

/// Items of 1 to 70 words.
fn text(items: usize) -> Vec<String> {
    let dice = &mut Dice::new(5);
    let item = |_| {
        let words = (0..=dice.below(70)).map(|_| char::from(b'a' + dice.below(26) as u8).to_string());
        words.collect::<Vec<_>>().join(" ")
    };
    (0..items).map(item).collect()
}

#[test]
fn every_cell_of_every_step_is_that_of_the_definition() {
    for (seed, pooling) in [(1, Pooling::Mean), (2, Pooling::First)] {
        let weights = synthetic::bert(seed);
        let model = BertModel::new(weights.clone(), pooling).unwrap();
        for count in [1, 2, 7, 33] {
            let tokens = tokens(&mut Dice::new(seed + count as u64), count);
            let (pooled, expected) = reference::bert(&weights, pooling, &tokens);
            for isa in available() {
                let mut steps = Recorder::default();
                let embed = || model.embed(&[&tokens], &mut Scratch::default(), &mut steps);
                assert_eq!(bytes(&with_isa(*isa, embed).unwrap()), bytes(&pooled), "{isa:?}");
                for (step, rows) in &expected.0 {
                    assert!(steps.0.0.get(step) == Some(rows), "{isa:?} {step:?}");
                }
                assert_eq!(steps.0.0.len(), expected.0.len());
            }
        }
    }
}

#[test]
fn sequences_that_are_computed_together_do_not_see_each_other() {
    for pooling in [Pooling::Mean, Pooling::First] {
        computed_together(&BertModel::new(synthetic::bert(3), pooling).unwrap());
    }
}

fn computed_together(model: &BertModel) {
    let dice = &mut Dice::new(8);
    let all: Vec<Vec<u32>> = [1, 65, 7, 32, 2, 1, 12].map(|count| tokens(dice, count)).into();
    let embed = |sequences: &[&[u32]], scratch: &mut Scratch| {
        let vectors = model.embed(sequences, scratch, &mut Recorder::default()).unwrap();
        vectors.chunks(model.width()).map(bytes).collect::<Vec<_>>()
    };
    let alone: Vec<_> = all
        .iter()
        .map(|tokens| embed(&[tokens], &mut Scratch::default()).remove(0))
        .collect();
    // A used scratch holds the numbers of other sequences.
    let scratch = &mut Scratch::default();
    let forwards: Vec<&[u32]> = all.iter().map(Vec::as_slice).collect();
    assert_eq!(embed(&forwards, scratch), alone);
    let backwards: Vec<&[u32]> = all.iter().rev().map(Vec::as_slice).collect();
    let expected: Vec<_> = alone.iter().rev().cloned().collect();
    assert_eq!(embed(&backwards, scratch), expected);
    assert_eq!(embed(&forwards[1..3], scratch), alone[1..3]);
}

#[test]
fn results_do_not_depend_on_threads_or_order() {
    let engine = engine(synthetic::bert(4));
    let items = text(70);
    let first = run(&engine, 1, items.join("\n"));
    for threads in [2, 5, 16] {
        assert_eq!(run(&engine, threads, items.join("\n")), first, "{threads}");
    }
    let mut turned = items;
    turned.reverse();
    let turned = Embeddings::decode(&run(&engine, 3, turned.join("\n")).output).unwrap();
    let first = Embeddings::decode(&first.output).unwrap();
    let rows = |of: &Embeddings| of.rows().map(bytes).collect::<Vec<_>>();
    let mut turned = rows(&turned);
    turned.reverse();
    assert_eq!(turned, rows(&first));
}

/// The trace's root, by its definition.
fn trace_root(weights: &BertWeights, pooling: Pooling, items: &[Vec<u32>], output: &[u8]) -> ContentHash {
    let bounds = IdBounds {
        vocabulary: 30,
        positions: 80,
    };
    let mut leaves = vec![content_hash(&encode_items(items, &bounds).unwrap())];
    for ids in items {
        let (_, steps) = reference::bert(weights, pooling, ids);
        let leaf = |layer, op| rows_digest(steps.0[&Step { layer, op }].iter().map(|row| &row[..]));
        // 1152 / 192: strides of 6 layers.
        leaves.extend([leaf(5, Op::Sum), leaf(7, Op::Pool)]);
    }
    leaves.push(content_hash(output));
    merkle_root(leaves.into_iter())
}

#[test]
fn the_trace_is_that_of_the_definition() {
    for pooling in [Pooling::Mean, Pooling::First] {
        traced(pooling);
    }
}

fn traced(pooling: Pooling) {
    let weights = synthetic::bert(6);
    let engine = engine_pooling(weights.clone(), pooling);
    let outcome = run(&engine, 2, "a b c\nz\n\nq q q q q");
    // [CLS] is 2, [SEP] 3, a is 4.
    let ids = [
        vec![2, 4, 5, 6, 3],
        vec![2, 29, 3],
        vec![2, 20, 20, 20, 20, 20, 3],
    ];
    assert_eq!(
        outcome.claim.trace_root,
        trace_root(&weights, pooling, &ids, &outcome.output)
    );
    assert_eq!(outcome.claim.output, content_hash(&outcome.output));
    assert_eq!(outcome.claim.units, 3);
}

#[test]
fn one_changed_weight_changes_the_trace() {
    let root = |weights| run(&engine(weights), 2, "a b c\nd e").claim.trace_root;
    let weights = synthetic::bert(7);
    let honest = root(weights.clone());
    let changes: [fn(&mut BertWeights); 6] = [
        |weights| synthetic::flip(&mut weights.layers[0].query.q, 77, 64),
        |weights| synthetic::flip(&mut weights.layers[6].up.q, 5000, 64),
        |weights| weights.layers[7].down.scales[9] *= 1.001,
        |weights| synthetic::flip(&mut weights.word_embeddings.q, 2 * 192, 1),
        |weights| weights.layers[3].norm.weight[11] += 0.001,
        |weights| weights.layers[2].value.bias.as_mut().unwrap()[3] += 0.5,
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let mut changed = weights.clone();
        change(&mut changed);
        assert_ne!(root(changed), honest, "{number}");
    }
}

#[test]
fn an_audit_gives_the_right_claim_whatever_the_output() {
    let engine = engine(synthetic::bert(8));
    let job = embed_job("a b\nc\nd d d");
    let mut sink = |_| ControlFlow::Continue(());
    let outcome = engine.run(&job, &mut sink).unwrap();
    assert_eq!(
        engine.audit(&job, &outcome.output, &mut sink).unwrap(),
        outcome.claim
    );
    for at in [0, outcome.output.len() / 2, outcome.output.len() - 1] {
        let mut wrong = outcome.output.clone();
        wrong[at] ^= 1;
        assert_eq!(engine.audit(&job, &wrong, &mut sink).unwrap(), outcome.claim);
        assert_ne!(content_hash(&wrong), outcome.claim.output);
    }
    assert_eq!(engine.audit(&job, b"", &mut sink).unwrap(), outcome.claim);
    let leaves = engine.leaves(&job, b"", &mut sink).unwrap();
    assert_eq!(merkle_root(leaves.into_iter()), outcome.claim.trace_root);
}

#[test]
fn a_sink_ends_a_job_between_two_waves() {
    let engine = engine(synthetic::bert(9));
    let input = text(400).join("\n");
    let mut done = Vec::new();
    let mut sink = |event| {
        let Event::Progress {
            done: now,
            total: 400,
        } = event
        else {
            panic!("{event:?}")
        };
        done.push(now);
        match done.len() {
            2 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    };
    let run = engine.run(&embed_job(input), &mut sink);
    assert!(matches!(run, Err(EngineError::Cancelled)));
    assert!(done[0] == 0 && done[1] > 0 && done[1] < 400, "{done:?}");
}

#[test]
fn weights_that_overflow_are_a_fault_of_the_first_item_that_meets_them() {
    let mut weights = synthetic::bert(10);
    // The vector of the letter d.
    let at = (4 + 3) * weights.word_embeddings.width;
    synthetic::set(&mut weights.word_embeddings.q, at, 127);
    weights.word_embeddings.scales[at / 192 * 2] = f32::MAX;
    let engine = engine(weights);
    let faulty = engine.run(&embed_job("a\nb\nc d\nd\na"), &mut |_| ControlFlow::Continue(()));
    assert!(
        matches!(faulty, Err(EngineError::NotFinite { item: 2 })),
        "{faulty:?}"
    );
    let fine = engine.run(&embed_job("a\nb\nc"), &mut |_| ControlFlow::Continue(()));
    assert_eq!(fine.unwrap().claim.units, 3);
}

#[test]
fn weights_that_do_not_fit_together_are_refused() {
    let changes: [fn(&mut BertWeights); 8] = [
        |weights| weights.heads = 5,
        |weights| weights.heads = 0,
        |weights| weights.layers.clear(),
        |weights| weights.word_embeddings.q = Quanta::default(),
        |weights| weights.layers[1].key.scales.truncate(7),
        |weights| weights.layers[1].up.inputs = 191,
        |weights| weights.layers[1].down.bias = Some(vec![0.0; 3]),
        |weights| weights.layers[1].down_smoothing = Some(vec![1.0; 3]),
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let mut weights = synthetic::bert(11);
        change(&mut weights);
        let manifest = synthetic::manifest(ModelFamily::Bert, &weights);
        let made = ExactBert::new(manifest, weights);
        assert!(matches!(made.err(), Some(ModelError::Malformed(_))), "{number}");
    }
}

#[test]
fn a_manifest_that_says_something_else_of_the_weights_is_refused() {
    let weights = synthetic::bert(13);
    let refused = |change: fn(&mut ModelManifest), weights: BertWeights| {
        let mut manifest = synthetic::manifest(ModelFamily::Bert, &synthetic::bert(13));
        change(&mut manifest);
        ExactBert::new(manifest, weights).err()
    };
    assert_eq!(refused(|_| (), weights.clone()), None);
    // How it pools is the manifest's to say.
    let first = |manifest: &mut ModelManifest| {
        manifest.exact.as_mut().unwrap().architecture.pooling = Pooling::First;
    };
    assert_eq!(refused(first, weights.clone()), None);
    let changes: [fn(&mut ModelManifest); 4] = [
        |manifest| manifest.exact = None,
        |manifest| manifest.exact.as_mut().unwrap().architecture.positions += 1,
        |manifest| manifest.exact.as_mut().unwrap().architecture.epsilon ^= 1,
        |manifest| manifest.exact.as_mut().unwrap().architecture.smoothed.down ^= true,
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let error = refused(change, weights.clone());
        assert!(
            matches!(error, Some(ModelError::Architecture { .. })),
            "{number}: {error:?}"
        );
    }
    let mut changed = weights.clone();
    changed.layers[7].norm.weight[191] += 1.0;
    assert_eq!(refused(|_| (), changed), Some(ModelError::WeightRoot));
    let mut uneven = weights.clone();
    let smoothing_scale = &mut uneven.layers[3].output_smoothing;
    *smoothing_scale = match smoothing_scale {
        Some(_) => None,
        None => Some(vec![1.0; 192]),
    };
    let error = refused(|_| (), uneven);
    assert!(
        matches!(error, Some(ModelError::UnevenLayers { layer: 3, .. })),
        "{error:?}"
    );
}

#[test]
fn a_tokenizer_that_knows_several_segments_is_refused() {
    let mut files = tiny_files(80);
    let mut tokenizer = Tiny::new().tokenizer;
    tokenizer["post_processor"] = json!({
        "type": "TemplateProcessing",
        "single": [{ "Sequence": { "id": "A", "type_id": 1 } }],
        "pair": [{ "Sequence": { "id": "A", "type_id": 0 } }, { "Sequence": { "id": "B", "type_id": 1 } }],
        "special_tokens": {},
    });
    files.tokenizer = tokenizer.to_string().into();
    let error = text_form(&files).err();
    assert!(
        matches!(&error, Some(ModelError::Tokenizer(reason)) if reason.contains("segment")),
        "{error:?}"
    );
}
