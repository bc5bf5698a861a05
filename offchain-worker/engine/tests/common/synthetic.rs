//! Small models of the exact tier, with random weights.

use serde_json::{Value, json};
use surety_exact::{Precision, SplitMix64, Turns, groups};
use surety_models::{
    Form,
    weights::{
        Activation, BertLayer, BertWeights, HeadNorms, Linear, LlamaLayer, LlamaWeights, Norm, Quanta, Table,
    },
};
use surety_types::model::{ModelFamily, ModelManifest, Operation, Pooling, TextForm, Tier};

/// [`SplitMix64`], whose numbers are taken modulo here.
pub struct Dice(SplitMix64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.0.next() % end
    }

    /// From -1 up to 1.
    pub fn real(&mut self) -> f32 {
        self.0.real()
    }
}

/// Makes weights of one precision.
struct Maker {
    dice: Dice,
    precision: Precision,
}

impl Maker {
    /// Of int8 for odd seeds, of int12 for even ones.
    fn new(seed: u64) -> Self {
        Self {
            dice: Dice::new(seed),
            precision: match seed % 2 {
                0 => Precision::Int12,
                _ => Precision::Int8,
            },
        }
    }

    fn reals(&mut self, count: usize, middle: f32, reach: f32) -> Vec<f32> {
        (0..count).map(|_| middle + reach * self.dice.real()).collect()
    }

    fn q(&mut self, count: usize) -> Quanta {
        let most = self.precision.max();
        let ends = 2 * u64::from(most.unsigned_abs()) + 1;
        let values = (0..count).map(|_| self.dice.below(ends) as i16 - most);
        match self.precision {
            Precision::Int8 => Quanta::Int8(values.map(|q| q as i8).collect()),
            Precision::Int12 => Quanta::Int12(values.collect()),
        }
    }

    /// What int8's step is to this precision.
    fn step(&self, of_int8: f32) -> f32 {
        of_int8 * 127.0 / f32::from(self.precision.max())
    }

    fn linear(&mut self, inputs: usize, outputs: usize, bias: bool) -> Linear {
        // Results of about the size of the inputs.
        let scale = self.step(1.0 / (73.0 * (inputs as f32).sqrt()));
        Linear {
            inputs,
            outputs,
            q: self.q(inputs * outputs),
            scales: self.reals(outputs * groups(inputs), scale, scale * 0.3),
            bias: bias.then(|| self.reals(outputs, 0.0, 0.2)),
        }
    }

    fn table(&mut self, rows: usize, width: usize, scale: f32) -> Table {
        let scale = self.step(scale);
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

    fn smoothing_scale(&mut self, smoothed: bool, width: usize) -> Option<Vec<f32>> {
        smoothed.then(|| self.reals(width, 1.0, 0.5))
    }
}

/// Changes bits of one value.
pub fn flip(q: &mut Quanta, at: usize, bits: u8) {
    match q {
        Quanta::Int8(q) => q[at] ^= bits.cast_signed(),
        Quanta::Int12(q) => q[at] ^= i16::from(bits),
    }
}

/// An encoder of 8 layers and width 192: two strides, and groups that are not full.
pub fn bert(seed: u64) -> BertWeights {
    let (width, inner) = (192, 320);
    let maker = &mut Maker::new(seed);
    let [attention, output, inner_smoothing, down] = [(); 4].map(|()| maker.dice.below(2) == 0);
    BertWeights {
        heads: 6,
        activation: match maker.dice.below(2) {
            0 => Activation::Gelu,
            _ => Activation::GeluTanh,
        },
        word_embeddings: maker.table(30, width, 0.01),
        position_embeddings: maker.table(80, width, 0.01),
        token_type_embeddings: maker.table(2, width, 0.01),
        norm: maker.norm(width, true),
        layers: (0..8)
            .map(|_| BertLayer {
                attention_smoothing: maker.smoothing_scale(attention, width),
                query: maker.linear(width, width, true),
                key: maker.linear(width, width, true),
                value: maker.linear(width, width, true),
                output_smoothing: maker.smoothing_scale(output, width),
                output: maker.linear(width, width, true),
                attention_norm: maker.norm(width, true),
                up_smoothing: maker.smoothing_scale(inner_smoothing, width),
                up: maker.linear(width, inner, true),
                down_smoothing: maker.smoothing_scale(down, inner),
                down: maker.linear(inner, width, true),
                norm: maker.norm(width, true),
            })
            .collect(),
    }
}

/// A decoder of 5 layers and width 640, so three strides; 4 heads of queries share 2 of keys, and are
/// narrower together than the state. Its tokens are those of [`bytes_tokenizer`].
pub fn llama(seed: u64, tied: bool) -> LlamaWeights {
    let (width, inner, head_dim, heads, kv_heads) = (640, 200, 32, 4, 2);
    let (queries, keys) = (heads * head_dim, kv_heads * head_dim);
    let maker = &mut Maker::new(seed);
    let [attention, output, inner_smoothing, down] = [(); 4].map(|()| maker.dice.below(2) == 0);
    LlamaWeights {
        heads,
        kv_heads,
        head_dim,
        context: 256,
        turns: (0..head_dim / 2).map(|i| Turns((u64::MAX / 7) >> i)).collect(),
        tokens: maker.table(260, width, 0.001),
        layers: (0..5)
            .map(|_| LlamaLayer {
                attention_norm: maker.norm(width, false),
                attention_smoothing: maker.smoothing_scale(attention, width),
                query: maker.linear(width, queries, false),
                key: maker.linear(width, keys, false),
                value: maker.linear(width, keys, true),
                head_norms: None,
                output_smoothing: maker.smoothing_scale(output, queries),
                output: maker.linear(queries, width, false),
                mlp_norm: maker.norm(width, false),
                mlp_smoothing: maker.smoothing_scale(inner_smoothing, width),
                gate: maker.linear(width, inner, false),
                up: maker.linear(width, inner, true),
                down_smoothing: maker.smoothing_scale(down, inner),
                down: maker.linear(inner, width, false),
            })
            .collect(),
        norm: maker.norm(width, false),
        head: (!tied).then(|| maker.linear(width, 260, false)),
    }
}

/// The same, whose heads are normed.
pub fn qwen3(seed: u64, tied: bool) -> LlamaWeights {
    let mut weights = llama(seed, tied);
    let maker = &mut Maker::new(seed + 1_000);
    for layer in &mut weights.layers {
        layer.head_norms = Some(HeadNorms {
            query: maker.norm(weights.head_dim, false),
            key: maker.norm(weights.head_dim, false),
        });
    }
    weights
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

/// Writes one value.
pub fn set(q: &mut Quanta, at: usize, value: i8) {
    match q {
        Quanta::Int8(q) => q[at] = value,
        Quanta::Int12(q) => q[at] = value.into(),
    }
}

/// A manifest of these weights, if they can have one; an encoder pools by the mean.
pub fn manifest(family: ModelFamily, weights: &impl Form) -> ModelManifest {
    manifest_pooling(family, weights, Pooling::Mean)
}

/// The same of an encoder that pools like this.
pub fn manifest_pooling(family: ModelFamily, weights: &impl Form, pooling: Pooling) -> ModelManifest {
    let operation = match family {
        ModelFamily::Bert => Operation::Embed,
        ModelFamily::Llama | ModelFamily::Qwen3 => Operation::Generate,
    };
    ModelManifest {
        name: b"synthetic".to_vec().try_into().unwrap(),
        family,
        tier: Tier::Exact,
        operations: vec![operation].try_into().unwrap(),
        weights: Default::default(),
        weights_bytes: 0,
        text: TextForm {
            stop: match family {
                ModelFamily::Bert => Default::default(),
                ModelFamily::Llama | ModelFamily::Qwen3 => vec![END].try_into().unwrap(),
            },
            ..TextForm::default()
        },
        config: Default::default(),
        exact: weights.form(pooling).ok(),
    }
}
