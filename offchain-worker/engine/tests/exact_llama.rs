//! Exact decoders: the bits of the definition, for prompts in pieces of any size.

#![allow(clippy::unwrap_used)]

mod common;

use common::{
    exact::Published,
    reference::{self, Steps, bytes},
    synthetic::{self, Dice},
};
use surety_engine::exact::{
    ExactLlama, LlamaModel, Probe, Sequence, Step,
    kernels::{Heads, Rows, available, with_isa},
};
use surety_model_trace::quantized_bytes;
use surety_models::{
    Form, ModelError,
    tokens::{TextFiles, text_form},
    weights::{HeadNorms, LlamaWeights},
};
use surety_types::model::{ModelFamily, Pooling};

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

/// Every step and every position's logits, for a sequence in pieces of these lengths.
fn pass(model: &LlamaModel, tokens: &[u32], pieces: &[usize]) -> (Vec<Vec<u8>>, Steps) {
    let mut sequence = Sequence::new(model, tokens.len());
    let (mut steps, mut all, mut some) = (Recorder::default(), Vec::new(), Vec::new());
    let mut rest = tokens;
    for piece in pieces.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (now, later) = rest.split_at((*piece).min(rest.len()));
        rest = later;
        model.forward(&mut sequence, now, &mut steps).unwrap();
        model.logits(sequence.states(), &mut some).unwrap();
        all.extend(some.chunks(model.vocabulary()).map(bytes));
    }
    assert_eq!(sequence.len(), tokens.len());
    (all, steps.0)
}

fn some_tokens(seed: u64, count: usize) -> Vec<u32> {
    let dice = &mut Dice::new(seed);
    (0..count).map(|_| dice.below(256) as u32).collect()
}

#[test]
fn every_cell_of_every_step_is_that_of_the_definition() {
    for (seed, weights) in [
        (1, synthetic::llama(1, true)),
        (2, synthetic::llama(2, false)),
        (3, synthetic::qwen3(3, false)),
        (4, synthetic::qwen3(4, true)),
    ] {
        let model = LlamaModel::new(weights.clone()).unwrap();
        let tokens = some_tokens(seed, 21);
        let (logits, expected) = reference::llama(&weights, &tokens);
        let logits: Vec<_> = logits.iter().map(|row| bytes(row)).collect();
        for isa in available() {
            let (found, steps) = with_isa(*isa, || pass(&model, &tokens, &[21]));
            assert!(found == logits, "{isa:?}");
            for (step, rows) in &expected.0 {
                assert!(steps.0.get(step) == Some(rows), "{isa:?} {step:?}");
            }
            assert_eq!(steps.0.len(), expected.0.len());
        }
    }
}

#[test]
fn a_prompt_in_pieces_and_token_by_token_gives_the_same_bits() {
    for weights in [synthetic::llama(3, true), synthetic::qwen3(3, true)] {
        in_pieces(&LlamaModel::new(weights).unwrap());
    }
}

fn in_pieces(model: &LlamaModel) {
    let tokens = some_tokens(3, 130);
    let whole = pass(model, &tokens, &[130]);
    for pieces in [&[1][..], &[2], &[7], &[32], &[65], &[64], &[100, 1, 1, 5]] {
        for threads in [1, 2, 7, 16] {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .unwrap();
            let found = pool.install(|| pass(model, &tokens, pieces));
            assert!(found == whole, "{pieces:?} {threads}");
        }
    }
}

#[test]
fn weights_that_do_not_fit_together_are_refused() {
    let changes: [fn(&mut LlamaWeights); 10] = [
        |weights| weights.heads = 3,
        |weights| weights.kv_heads = 0,
        |weights| weights.context = 0,
        |weights| weights.turns.truncate(7),
        |weights| weights.layers.clear(),
        |weights| weights.tokens.scales.truncate(7),
        |weights| weights.layers[1].output.inputs = 640,
        |weights| weights.head = Some(weights.layers[0].up.clone()),
        // Half a head would be normed at a time.
        |weights| norms(weights, 2).query.weight.truncate(16),
        |weights| norms(weights, 4).key.weight.clear(),
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let mut weights = synthetic::qwen3(15, true);
        change(&mut weights);
        let manifest = synthetic::manifest(ModelFamily::Qwen3, &weights);
        let made = ExactLlama::new(manifest, weights);
        assert!(matches!(made.err(), Some(ModelError::Malformed(_))), "{number}");
    }
}

fn norms(weights: &mut LlamaWeights, layer: usize) -> &mut HeadNorms {
    weights.layers[layer].head_norms.as_mut().unwrap()
}

#[test]
fn layers_that_norm_their_heads_in_different_ways_are_refused() {
    type Change = fn(&mut LlamaWeights);
    let changes: [(Change, &str); 3] = [
        (|weights| weights.layers[3].head_norms = None, "norms its heads"),
        (
            |weights| norms(weights, 1).query.epsilon = 1e-5,
            "another epsilon",
        ),
        (|weights| norms(weights, 2).key.epsilon = 0.0, "another epsilon"),
    ];
    for (change, said) in changes {
        let mut weights = synthetic::qwen3(16, true);
        change(&mut weights);
        let uneven = weights.form(Pooling::Mean).unwrap_err();
        assert!(uneven.to_string().contains(said), "{uneven}");
    }
}

/// Who judges its cells would norm heads that it does not, or the other way round: whoever runs it as
/// registered would lose.
#[test]
fn a_decoder_that_is_registered_as_one_of_another_family_is_not_run() {
    use ModelFamily::{Llama, Qwen3};
    for (weights, stated) in [
        (synthetic::qwen3(17, true), Llama),
        (synthetic::llama(17, true), Qwen3),
    ] {
        let found = weights.family();
        let manifest = synthetic::manifest(stated, &weights);
        let refused = ExactLlama::new(manifest, weights).err();
        assert_eq!(refused, Some(ModelError::Family { stated, found }));
    }
}

#[test]
fn tokenizers_with_parts_that_may_take_for_ever_are_refused() {
    let refused = |change: fn(&mut serde_json::Value)| {
        let mut tokenizer = synthetic::bytes_tokenizer();
        change(&mut tokenizer);
        let mut config = Published::llama(true, false).config;
        config["vocab_size"] = 260.into();
        let files = TextFiles {
            family: ModelFamily::Llama,
            form: Default::default(),
            tokenizer: tokenizer.to_string().into(),
            config: config.to_string().into(),
            template: None,
        };
        text_form(&files).err()
    };
    let pattern = |tokenizer: &mut serde_json::Value| {
        tokenizer["pre_tokenizer"] = serde_json::json!({ "type": "Sequence", "pretokenizers": [
            { "type": "Split", "pattern": { "Regex": "(a+)+$" }, "behavior": "Isolated", "invert": false },
        ]});
    };
    let changes: [fn(&mut serde_json::Value); 5] = [
        pattern,
        |tokenizer| tokenizer["normalizer"] = serde_json::json!({ "type": "NFKD" }),
        |tokenizer| {
            tokenizer["decoder"] = serde_json::json!({ "type": "WordPiece", "prefix": "##", "cleanup": true })
        },
        |tokenizer| tokenizer["model"]["dropout"] = serde_json::json!(0.5),
        |tokenizer| tokenizer["model"] = serde_json::json!(7),
    ];
    for (number, change) in changes.into_iter().enumerate() {
        assert!(
            matches!(refused(change), Some(ModelError::Tokenizer(_))),
            "{number}"
        );
    }
    let far = refused(|tokenizer| tokenizer["model"]["vocab"]["far"] = serde_json::json!(260));
    assert_eq!(
        far,
        Some(ModelError::Vocabulary {
            token: 260,
            vocabulary: 260
        })
    );
    assert_eq!(refused(|_| ()), None);
}
