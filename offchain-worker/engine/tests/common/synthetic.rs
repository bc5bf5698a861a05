//! Small models of the exact tier, with random weights.

use serde_json::{json, Value};
use surety_engine::exact::{
    weights::{Activation, BertLayer, BertWeights, Linear, LlamaLayer, LlamaWeights, Norm, Table},
    Form,
};
use surety_exact::{groups, Turns};
use surety_types::model::{ModelFamily, ModelManifest, Operation, Tier};

/// SplitMix64.
pub struct Dice(pub u64);

impl Dice {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// Between -1 and 1.
    pub fn real(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    }

    fn reals(&mut self, count: usize, middle: f32, reach: f32) -> Vec<f32> {
        (0..count).map(|_| middle + reach * self.real()).collect()
    }

    fn q(&mut self, count: usize) -> Vec<i8> {
        (0..count)
            .map(|_| self.below(255) as i8)
            .map(|q| q.max(-127))
            .collect()
    }

    fn linear(&mut self, inputs: usize, outputs: usize, bias: bool) -> Linear {
        // Results of about the size of the inputs.
        let scale = 1.0 / (73.0 * (inputs as f32).sqrt());
        Linear {
            inputs,
            outputs,
            q: self.q(inputs * outputs),
            scales: self.reals(outputs * groups(inputs), scale, scale * 0.3),
            bias: bias.then(|| self.reals(outputs, 0.0, 0.2)),
        }
    }

    fn table(&mut self, rows: usize, width: usize, scale: f32) -> Table {
        Table {
            rows,
            width,
            q: self.q(rows * width),
            scales: self.reals(rows * groups(width), scale, scale * 0.3),
        }
    }

    fn norm(&mut self, width: usize, bias: bool) -> Norm {
        Norm {
            weight: self.reals(width, 1.0, 0.3),
            bias: bias.then(|| self.reals(width, 0.0, 0.3)),
            epsilon: 1e-6,
        }
    }

    fn pre(&mut self, smoothed: bool, width: usize) -> Option<Vec<f32>> {
        smoothed.then(|| self.reals(width, 1.0, 0.5))
    }
}

/// An encoder of 8 layers and width 192: two strides, and groups that are not full.
pub fn bert(seed: u64) -> BertWeights {
    let (width, inner) = (192, 320);
    let dice = &mut Dice(seed);
    let [attention, output, inner_pre, down] = [(); 4].map(|()| dice.below(2) == 0);
    BertWeights {
        heads: 6,
        activation: match dice.below(2) {
            0 => Activation::Gelu,
            _ => Activation::GeluTanh,
        },
        words: dice.table(30, width, 0.01),
        positions: dice.table(80, width, 0.01),
        types: dice.table(2, width, 0.01),
        norm: dice.norm(width, true),
        layers: (0..8)
            .map(|_| BertLayer {
                attention_pre: dice.pre(attention, width),
                query: dice.linear(width, width, true),
                key: dice.linear(width, width, true),
                value: dice.linear(width, width, true),
                output_pre: dice.pre(output, width),
                output: dice.linear(width, width, true),
                attention_norm: dice.norm(width, true),
                up_pre: dice.pre(inner_pre, width),
                up: dice.linear(width, inner, true),
                down_pre: dice.pre(down, inner),
                down: dice.linear(inner, width, true),
                norm: dice.norm(width, true),
            })
            .collect(),
    }
}

/// A decoder of 5 layers and width 640, so three strides; 4 heads of queries share 2 of keys, and are narrower
/// together than the state. Its tokens are those of [`bytes_tokenizer`].
pub fn llama(seed: u64, tied: bool) -> LlamaWeights {
    let (width, inner, head_dim, heads, kv_heads) = (640, 200, 32, 4, 2);
    let (queries, keys) = (heads * head_dim, kv_heads * head_dim);
    let dice = &mut Dice(seed);
    let [attention, output, inner_pre, down] = [(); 4].map(|()| dice.below(2) == 0);
    LlamaWeights {
        heads,
        kv_heads,
        head_dim,
        context: 256,
        turns: (0..head_dim / 2).map(|i| Turns((u64::MAX / 7) >> i)).collect(),
        tokens: dice.table(260, width, 0.001),
        layers: (0..5)
            .map(|_| LlamaLayer {
                attention_norm: dice.norm(width, false),
                attention_pre: dice.pre(attention, width),
                query: dice.linear(width, queries, false),
                key: dice.linear(width, keys, false),
                value: dice.linear(width, keys, true),
                output_pre: dice.pre(output, queries),
                output: dice.linear(queries, width, false),
                mlp_norm: dice.norm(width, false),
                mlp_pre: dice.pre(inner_pre, width),
                gate: dice.linear(width, inner, false),
                up: dice.linear(width, inner, true),
                down_pre: dice.pre(down, inner),
                down: dice.linear(inner, width, false),
            })
            .collect(),
        norm: dice.norm(width, false),
        head: (!tied).then(|| dice.linear(width, 260, false)),
        end_tokens: vec![END],
    }
}

/// Starts every prompt.
pub const START: u32 = 256;
/// Ends a continuation.
pub const END: u32 = 257;

/// A token for each byte, and two special ones.
pub fn bytes_tokenizer() -> Value {
    let printable = |byte: &u32| matches!(byte, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff);
    let (plain, other): (Vec<u32>, Vec<u32>) = (0..256).partition(printable);
    let letters = plain.into_iter().chain((256..).take(other.len()));
    let letters = letters.map(|letter| char::from_u32(letter).unwrap().to_string());
    let mut vocab = serde_json::Map::new();
    for (id, token) in letters.chain(["<s>".into(), "</s>".into()]).enumerate() {
        vocab.insert(token, id.into());
    }
    let special = |id: u32, content: &str| {
        json!({
            "id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false,
            "normalized": false, "special": true,
        })
    };
    json!({
        "version": "1.0", "truncation": null, "padding": null, "normalizer": null,
        "added_tokens": [special(START, "<s>"), special(END, "</s>")],
        "pre_tokenizer": { "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true },
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [{ "SpecialToken": { "id": "<s>", "type_id": 0 } }, { "Sequence": { "id": "A", "type_id": 0 } }],
            "pair": [{ "Sequence": { "id": "A", "type_id": 0 } }, { "Sequence": { "id": "B", "type_id": 1 } }],
            "special_tokens": { "<s>": { "id": "<s>", "ids": [START], "tokens": ["<s>"] } },
        },
        "decoder": { "type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true },
        "model": {
            "type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
            "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "vocab": vocab, "merges": [],
        },
    })
}

/// A manifest of these weights, if they can have one.
pub fn manifest(family: ModelFamily, weights: &impl Form) -> ModelManifest {
    let operation = match family {
        ModelFamily::Bert => Operation::Embed,
        ModelFamily::Llama => Operation::Generate,
    };
    ModelManifest {
        name: b"synthetic".to_vec().try_into().unwrap(),
        family,
        tier: Tier::Exact,
        operations: vec![operation].try_into().unwrap(),
        weights: Default::default(),
        weights_bytes: 0,
        tokenizer: Default::default(),
        config: Default::default(),
        exact: weights.form().ok(),
    }
}
