//! Small models, and honest work on them.

use std::sync::Arc;

use sp_core::H256;
use surety_exact::Precision;
use surety_types::{
    input::{IdBounds, Settings, encode_items, encode_prompt},
    model::{self, Activation, Architecture, ModelFamily, Operation, Pooling, Smoothed, SpecialIds},
};

use crate::{
    CellReferee, Layout, Player, Rows, TaskFacts, TraceShape,
    testsuite::{MemoryModel, MemoryTrace, generation_output},
};
use surety_dispute_game::bisection::{Cell, CellValue, RowsShape, Shape, Trace};
use surety_proofs::content_hash;

/// A claim and the honest work behind it.
pub struct Work {
    pub model: Arc<MemoryModel>,
    pub layout: Layout,
    pub trace: MemoryTrace,
}

pub fn bert() -> Architecture {
    Architecture {
        vocabulary: 24,
        width: 32,
        layers: 2,
        heads: 2,
        kv_heads: 2,
        head_dim: 16,
        inner: 144,
        positions: 6,
        epsilon: 1e-12f32.to_bits(),
        activation: Activation::Gelu,
        smoothed: Smoothed {
            attention: true,
            down: true,
            ..Smoothed::default()
        },
        tied: false,
        precision: model::Precision::Int12,
        pooling: Pooling::Mean,
    }
}

pub fn llama() -> Architecture {
    Architecture {
        vocabulary: 24,
        width: 32,
        layers: 2,
        heads: 4,
        kv_heads: 2,
        head_dim: 8,
        inner: 40,
        positions: 64,
        epsilon: 1e-5f32.to_bits(),
        activation: Activation::SwiGlu,
        smoothed: Smoothed {
            output: true,
            inner: true,
            ..Smoothed::default()
        },
        tied: false,
        precision: model::Precision::Int8,
        pooling: Pooling::Mean,
    }
}

/// Its heads are wider together than a state, and wider than a state's part for each.
pub fn qwen3() -> Architecture {
    Architecture {
        head_dim: 12,
        tied: true,
        ..llama()
    }
}

/// Cut so fine that every kind of input occurs: each layer is a stride, chunks have two rows.
pub fn fine(family: ModelFamily, architecture: &Architecture) -> TraceShape {
    let cut = TraceShape::of(family, architecture);
    TraceShape {
        stride: 1,
        chunk: cut.chunk.min(2),
        ..cut
    }
}

/// Of a task with as many units as are claimed; a prompt has one token.
pub fn facts(family: ModelFamily, units: u32, output: H256) -> TaskFacts {
    let (operation, input_bytes) = match family {
        ModelFamily::Bert => (Operation::Embed, units.saturating_mul(12)),
        ModelFamily::Llama | ModelFamily::Qwen3 => (Operation::Generate, 4 * 7),
    };
    TaskFacts {
        family,
        operation,
        input: H256::repeat_byte(7),
        input_bytes,
        units_max: units,
        stop: SpecialIds::default(),
        units,
        output,
    }
}

/// The token that ends a generation.
pub const STOP: u32 = 2;

/// Of a task with this input; so much is paid for.
fn layout(
    model: &MemoryModel,
    cut: TraceShape,
    input: &[u8],
    (units, units_max): (u32, u32),
    output: H256,
) -> Layout {
    let facts = TaskFacts {
        input: content_hash(input),
        input_bytes: input.len() as u32,
        units_max,
        stop: vec![STOP].try_into().unwrap(),
        ..facts(cut.family, units, output)
    };
    Layout::with_cut(model.architecture(), facts, cut).unwrap()
}

pub fn bounds(model: &MemoryModel) -> IdBounds {
    IdBounds {
        vocabulary: model.architecture().vocabulary,
        positions: model.architecture().positions,
    }
}

pub fn embed(architecture: Architecture, items: &[&[u32]]) -> Work {
    let model = Arc::new(MemoryModel::arbitrary(ModelFamily::Bert, architecture, 1));
    embed_with(&model, items)
}

pub fn embed_with(model: &Arc<MemoryModel>, items: &[&[u32]]) -> Work {
    let items: Vec<Vec<u32>> = items.iter().map(|ids| ids.to_vec()).collect();
    let input = encode_items(&items, &bounds(model)).unwrap();
    embed_input(model, input, items.len() as u32)
}

/// The work on an input of any bytes.
pub fn embed_input(model: &Arc<MemoryModel>, input: Vec<u8>, units: u32) -> Work {
    let cut = fine(ModelFamily::Bert, model.architecture());
    let unknown = layout(model, cut, &input, (units, units), H256::zero());
    let trace = MemoryTrace::compute(model.clone(), &unknown, input.clone(), None).unwrap();
    let output = content_hash(&trace.own().unwrap());
    Work {
        layout: layout(model, cut, &input, (units, units), output),
        model: model.clone(),
        trace,
    }
}

/// What is asked for.
#[derive(Clone, Copy)]
pub struct Prompt<'a> {
    pub tokens: &'a [u32],
    pub settings: Settings,
}

fn forced(
    model: &Arc<MemoryModel>,
    cut: TraceShape,
    prompt: &Prompt<'_>,
    claimed: Vec<u8>,
) -> (Layout, MemoryTrace) {
    let count = claimed.len() as u32 / 4 - 1;
    let units = prompt.tokens.len() as u32 + count;
    let input = encode_prompt(prompt.tokens, &prompt.settings, &bounds(model)).unwrap();
    let most = model.architecture().positions;
    let layout = layout(model, cut, &input, (units, most), content_hash(&claimed));
    let trace = MemoryTrace::compute(model.clone(), &layout, input, Some(claimed)).unwrap();
    (layout, trace)
}

/// What a claimed output leads to, right or not.
pub fn claimed(model: &Arc<MemoryModel>, prompt: &Prompt<'_>, output: Vec<u8>) -> Work {
    let cut = fine(model.family(), model.architecture());
    let (layout, trace) = forced(model, cut, prompt, output);
    Work {
        model: model.clone(),
        layout,
        trace,
    }
}

pub const PROMPT: Prompt<'static> = Prompt {
    tokens: &[3, 17, 5],
    settings: Settings {
        max_tokens: 4,
        temperature_milli: 700,
        top_k: 12,
        top_p_milli: 950,
        seed: 0x1234_5678_9abc,
    },
};

impl Prompt<'_> {
    /// With so many tokens to add.
    pub fn adding(self, max_tokens: usize) -> Self {
        let max_tokens = max_tokens as u32;
        Self {
            settings: Settings {
                max_tokens,
                ..self.settings
            },
            ..self
        }
    }
}

/// The tokens that follow, one after the other, whether or not one of them ends it.
pub fn continuation(model: &Arc<MemoryModel>, prompt: &Prompt<'_>) -> Vec<u32> {
    let cut = fine(model.family(), model.architecture());
    let mut tokens = Vec::new();
    while tokens.len() < prompt.settings.max_tokens as usize {
        tokens.push(0);
        let (layout, trace) = forced(model, cut, prompt, generation_output(&tokens, false));
        let chosen = *trace.choices(&layout).last().unwrap();
        *tokens.last_mut().unwrap() = chosen;
    }
    tokens
}

pub fn generate(family: ModelFamily, architecture: Architecture, count: usize) -> Work {
    let model = Arc::new(MemoryModel::arbitrary(family, architecture, 2));
    let prompt = PROMPT.adding(count);
    let output = generation_output(&continuation(&model, &prompt), false);
    let work = claimed(&model, &prompt, output.clone());
    assert_eq!(work.trace.own().unwrap(), output);
    work
}

/// An encoder and a decoder, an encoder of which the first token's state is the vector, and a decoder that
/// norms its heads.
pub fn works() -> [Work; 4] {
    let first = Architecture {
        pooling: Pooling::First,
        ..bert()
    };
    let items: [&[u32]; 2] = [&[1, 9, 2], &[4]];
    [
        embed(bert(), &items),
        generate(ModelFamily::Llama, llama(), 3),
        embed(first, &items),
        generate(ModelFamily::Qwen3, qwen3(), 3),
    ]
}

impl Work {
    pub fn player(&self) -> Player<MemoryTrace> {
        Player::new(self.layout.clone(), self.trace.clone())
    }

    pub fn referee(&self) -> CellReferee<'_> {
        CellReferee::new(&self.layout, self.model.weight_root())
    }

    /// Every step of every leaf, also of those without steps: leaf, length, step, rows.
    pub fn steps(&self) -> Vec<(u32, u32, u32, RowsShape)> {
        let mut player = self.player();
        let mut all = Vec::new();
        for leaf in 0..self.layout.leaves() {
            let length = player.length(leaf).unwrap();
            for step in 0..self.layout.steps(leaf, length).unwrap_or(1) {
                let rows = self.layout.rows(leaf, length, step).unwrap();
                all.push((leaf, length, step, rows));
            }
        }
        all
    }
}

/// A cell as a trace has it.
pub fn cell(
    player: &mut Player<MemoryTrace>,
    at: (u32, u32, u32),
    shape: &RowsShape,
    row: u32,
    cell: u32,
) -> Cell {
    let (leaf, length, step) = at;
    let bytes = player.row(leaf, step, row).unwrap();
    let range = shape.bytes_of(cell).unwrap();
    let bytes = &bytes[range.start as usize..range.end as usize];
    let value = match bytes {
        [byte] if shape.quantized.is_some_and(|values| cell < values) => CellValue::Byte(*byte),
        bytes => {
            let mut word = [0; 4];
            word[..bytes.len()].copy_from_slice(bytes);
            CellValue::Word(word)
        }
    };
    Cell {
        leaf,
        length,
        step,
        row,
        cell,
        value,
    }
}

/// Another value in one bit.
pub fn flipped(value: CellValue, bit: u32) -> CellValue {
    match value {
        CellValue::Byte(byte) => CellValue::Byte(byte ^ (1 << (bit % 8))),
        CellValue::Word(word) => {
            CellValue::Word((u32::from_le_bytes(word) ^ (1 << (bit % 32))).to_le_bytes())
        }
    }
}

/// Writes a cell into rows.
pub fn write(rows: &mut Rows, row: u32, cell: u32, value: CellValue) {
    let shape_width = |width: u32| (row * width + cell) as usize;
    match (rows, value) {
        (Rows::Real { width, values }, CellValue::Word(word)) => {
            values[shape_width(*width)] = f32::from_le_bytes(word);
        }
        (
            Rows::Quantized {
                width, precision, q, ..
            },
            CellValue::Byte(byte),
        ) => {
            let of_value = precision.bytes();
            let value = &mut q[(row * *width) as usize + cell as usize / of_value];
            let mut bytes = value.to_le_bytes();
            bytes[cell as usize % of_value] = byte;
            *value = match precision {
                Precision::Int8 => i16::from(byte.cast_signed()),
                Precision::Int12 => i16::from_le_bytes(bytes),
            };
        }
        (
            Rows::Quantized {
                width,
                precision,
                words,
                scales,
                ..
            },
            CellValue::Word(word),
        ) => {
            let values = *width * precision.bytes() as u32;
            scales[(row * *words + cell - values) as usize] = f32::from_le_bytes(word);
        }
        (Rows::Bytes { row_bytes, bytes }, CellValue::Word(word)) => {
            let start = (row * *row_bytes + 4 * cell) as usize;
            let end = bytes.len().min(start + 4).min(((row + 1) * *row_bytes) as usize);
            bytes[start..end].copy_from_slice(&word[..end - start]);
        }
        _ => panic!("not a cell of these rows"),
    }
}
