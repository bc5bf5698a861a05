//! How one leaf is computed.

use core::ops::Range;

use surety_exact::{HEAD_PRECISION, Precision, blocks};
use surety_types::model::ModelFamily;

use crate::{
    inputs::Source,
    layout::{Dims, Layout, Part, words_of},
    quanta::bytes_of,
    steps::{Op, Program, SAMPLED_TOKENS, Step, program},
    tensors::scales,
};
use surety_dispute_game::bisection::RowsShape;

/// So many rows of attention's quantized values, each with so many scales.
fn quantized_heads(rows: u32, values: u32, scales: u32) -> Option<RowsShape> {
    let bytes = values.checked_mul(HEAD_PRECISION.bytes() as u32)?;
    Some(RowsShape {
        rows,
        row_bytes: scales.checked_mul(4)?.checked_add(bytes)?,
        quantized: Some(bytes),
    })
}

/// Where the quantized heads of a position are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heads {
    pub from: Source,
    pub row: u32,
    /// Their first value, among all of the row.
    pub first: u32,
    /// Their first scale, among the row's numbers.
    pub scales: u32,
}

/// The computation of one leaf: its steps, and where each of them finds its inputs.
#[derive(Clone, Debug)]
pub struct LeafPlan<'l> {
    pub(super) layout: &'l Layout,
    leaf: u32,
    length: u32,
    part: Part,
    program: Program,
    layers: Range<u32>,
    positions: Range<u32>,
}

impl<'l> LeafPlan<'l> {
    pub(super) fn new(layout: &'l Layout, leaf: u32, length: u32) -> Option<Self> {
        let part = layout.part(leaf)?;
        let (chunk, layers, program) = match part {
            Part::Rows { chunk, stride, .. } => {
                let last = stride.checked_add(1)? == layout.cut.strides();
                let program = program(layout.facts.family, stride == 0, last);
                (chunk, layout.cut.layers_of(stride), program)
            }
            Part::SampledTokens { chunk } => (chunk, 0..0, SAMPLED_TOKENS),
            Part::Input | Part::Output => return None,
        };
        Some(Self {
            positions: layout.positions(chunk, length)?,
            layout,
            leaf,
            length,
            part,
            program,
            layers,
        })
    }

    /// The leaf's number.
    pub fn leaf(&self) -> u32 {
        self.leaf
    }

    /// Its length: the positions that are visible at its end.
    pub fn length(&self) -> u32 {
        self.length
    }

    /// The part of the trace that the leaf is.
    pub fn part(&self) -> Part {
        self.part
    }

    /// The positions of its sequence that it is about.
    pub fn positions(&self) -> Range<u32> {
        self.positions.clone()
    }

    pub(super) fn family(&self) -> ModelFamily {
        self.layout.facts.family
    }

    pub(super) fn dims(&self) -> &'l Dims {
        &self.layout.dims
    }

    /// The item that it is about; 0 for a generation.
    pub(super) fn sequence(&self) -> u32 {
        match self.part {
            Part::Rows { sequence, .. } => sequence,
            _ => 0,
        }
    }

    fn chunk(&self) -> u32 {
        match self.part {
            Part::Rows { chunk, .. } | Part::SampledTokens { chunk } => chunk,
            _ => 0,
        }
    }

    /// Positions that row `row` sees.
    pub(super) fn visible(&self, row: u32) -> u32 {
        match self.family() {
            ModelFamily::Bert => self.positions.end,
            ModelFamily::Llama | ModelFamily::Qwen3 => {
                let position = self.positions.start.saturating_add(row);
                position.saturating_add(1).min(self.positions.end)
            }
        }
    }

    /// Number of steps, [`Op::Record`] included.
    #[allow(
        clippy::arithmetic_side_effects,
        reason = "few kinds of leaves, and places within ranges"
    )]
    pub fn steps(&self) -> u32 {
        let Program { before, each, after } = self.program;
        let layers = (each.len() as u32).saturating_mul(self.layers.len() as u32);
        layers.saturating_add((before.len() + after.len()) as u32)
    }

    /// The rows of every kind of step.
    pub(super) fn into_kinds(self) -> impl Iterator<Item = Option<RowsShape>> + 'l {
        self.kinds().map(move |step| self.rows_of(step))
    }

    /// A step of every kind: layers are alike, so that the first stands for all.
    #[allow(
        clippy::arithmetic_side_effects,
        reason = "few kinds of leaves, and places within ranges"
    )]
    pub(super) fn kinds(&self) -> impl Iterator<Item = u32> + use<> {
        let Program { before, each, after } = self.program;
        let first = (before.len() + each.len()) as u32;
        let last = self.steps().saturating_sub(after.len() as u32);
        let rest = last..last.saturating_add(after.len() as u32);
        (0..first).chain(rest)
    }

    /// Bytes of all rows of all steps: what it takes to unfold the leaf. Nothing where they are no number.
    pub(super) fn bytes(&self) -> Option<u64> {
        let Program { before, each, .. } = self.program;
        let layers = before.len()..before.len().saturating_add(each.len());
        self.kinds().try_fold(0u64, |sum, number| {
            let rows = self.rows_of(number)?;
            let times = match layers.contains(&(number as usize)) {
                true => self.layers.len() as u64,
                false => 1,
            };
            let bytes = u64::from(rows.rows).checked_mul(u64::from(rows.row_bytes))?;
            sum.checked_add(bytes.checked_mul(times)?)
        })
    }

    /// A step by its number.
    pub fn step(&self, number: u32) -> Option<Step> {
        let Program { before, each, after } = self.program;
        let step = |layer, op: Option<&Op>| op.map(|op| Step { layer, op: *op });
        let Some(number) = number.checked_sub(before.len() as u32) else {
            return step(self.layers.start, before.get(number as usize));
        };
        let of_layers = (each.len() as u32).saturating_mul(self.layers.len() as u32);
        if let Some(number) = number.checked_sub(of_layers) {
            return step(self.layers.end.saturating_sub(1), after.get(number as usize));
        }
        let layer = number.checked_div(each.len() as u32)?;
        let op = each.get(number.checked_rem(each.len() as u32)? as usize);
        step(self.layers.start.checked_add(layer)?, op)
    }

    /// The number of a step; nothing when the leaf has no such step.
    #[allow(
        clippy::arithmetic_side_effects,
        reason = "few kinds of leaves, and places within ranges"
    )]
    pub fn number(&self, layer: u32, op: Op) -> Option<u32> {
        let Program { before, each, after } = self.program;
        let find = |ops: &[Op]| {
            ops.iter()
                .position(|other| *other == op)
                .map(|place| place as u32)
        };
        if let Some(place) = find(before) {
            return Some(place);
        }
        let before = before.len() as u32;
        let (width, layers) = (each.len() as u32, self.layers.len() as u32);
        if let Some(place) = find(each) {
            let layer = self.layers.contains(&layer).then(|| layer - self.layers.start)?;
            return before.checked_add(layer.checked_mul(width)?)?.checked_add(place);
        }
        before
            .checked_add(width.checked_mul(layers)?)?
            .checked_add(find(after)?)
    }

    pub(super) fn source(&self, layer: u32, op: Op) -> Option<Source> {
        self.number(layer, op).map(Source::Step)
    }

    pub(super) fn first_layer(&self) -> u32 {
        self.layers.start
    }

    /// The layer whose result the leaf records.
    pub(super) fn last_layer(&self) -> u32 {
        self.layers.end.saturating_sub(1)
    }

    /// Whether the leaf records one vector.
    pub(super) fn pools(&self) -> bool {
        matches!(self.part, Part::Rows { stride, .. } if self.layout.cut.pools(stride))
    }

    /// Positions whose states the vector is the mean of.
    pub(super) fn pooled(&self) -> u32 {
        let pooling = self.layout.architecture.pooling;
        pooling.rows(self.positions.len()) as u32
    }

    /// Where the state is that goes into a layer, or into the choices.
    pub(super) fn state_before(&self, layer: u32) -> Option<Source> {
        let chunk = self.chunk();
        let earlier = |stride: Option<u32>| {
            let part = Part::Rows {
                sequence: self.sequence(),
                chunk,
                stride: stride?,
            };
            self.layout.leaf_of(part).map(Source::Leaf)
        };
        match self.part {
            Part::SampledTokens { .. } => earlier(self.layout.cut.strides().checked_sub(1)),
            Part::Rows { stride: 0, .. } if layer == 0 => self.source(layer, Op::Embed),
            Part::Rows { stride, .. } if layer == self.layers.start => earlier(stride.checked_sub(1)),
            _ => self.source(layer.checked_sub(1)?, Op::Sum),
        }
    }

    /// Where a position's key (or value) of a layer is.
    pub(super) fn cached(&self, layer: u32, position: u32, key: bool) -> Option<Heads> {
        if let Some(row) = position.checked_sub(self.positions.start) {
            let op = if key { Op::QuantKey } else { Op::QuantValue };
            return Some(Heads {
                from: self.source(layer, op)?,
                row,
                first: 0,
                scales: 0,
            });
        }
        let cut = &self.layout.cut;
        let (chunk, stride) = (position.checked_div(cut.chunk)?, cut.stride_of(layer)?);
        let part = Part::Rows {
            sequence: self.sequence(),
            chunk,
            stride,
        };
        let leaf = self.layout.leaf_of(part)?;
        let at = if key { cut.key(layer)? } else { cut.value(layer)? };
        Some(Heads {
            from: Source::Leaf(leaf),
            row: position.checked_rem(cut.chunk)?,
            first: at.q.start / 2,
            scales: at.scales.start.checked_sub(cut.quantized(stride)?)? / 4,
        })
    }

    /// Leaves whose rows the leaf's cells read, leaf 0 the first.
    pub fn reads(&self) -> impl Iterator<Item = u32> + '_ {
        let before = self.state_before(self.layers.start).into_iter();
        let before = before.filter_map(|source| match source {
            Source::Leaf(leaf) => Some(leaf),
            _ => None,
        });
        let earlier = move |chunk| match self.part {
            Part::Rows { sequence, stride, .. } => self.layout.leaf_of(Part::Rows {
                sequence,
                chunk,
                stride,
            }),
            _ => None,
        };
        core::iter::once(0)
            .chain((0..self.chunk()).filter_map(earlier))
            .chain(before)
    }

    /// The rows of a step; nothing when there is no such step.
    pub fn rows_of(&self, number: u32) -> Option<RowsShape> {
        let Step { op, .. } = self.step(number)?;
        let dims = self.dims();
        let (rows, seen) = (self.positions.len() as u32, self.positions.end);
        match op {
            Op::EmbedAdd
            | Op::Embed
            | Op::AttentionInput
            | Op::Output
            | Op::AttentionAdd
            | Op::AttentionSum
            | Op::MlpInput
            | Op::Down
            | Op::Add
            | Op::Sum
            | Op::FinalInput => words_of(rows, dims.width),
            Op::EmbedStats | Op::AttentionStats | Op::MlpStats | Op::Stats | Op::FinalStats => {
                words_of(rows, self.stats())
            }
            Op::QuantQkv | Op::QuantMlp | Op::FinalQuant => self.quantized(rows, dims.width),
            Op::QuantOutput => self.quantized(rows, dims.queries),
            Op::QuantDown => self.quantized(rows, dims.inner),
            Op::Query | Op::NormQuery | Op::RotateQuery | Op::Attention => words_of(rows, dims.queries),
            Op::Key | Op::NormKey | Op::RotateKey | Op::Value => words_of(rows, dims.keys),
            Op::QuantQuery => quantized_heads(rows, dims.queries, dims.heads),
            Op::QuantKey | Op::QuantValue => {
                quantized_heads(rows, dims.keys, dims.keys.checked_div(dims.head_dim)?)
            }
            Op::Scores | Op::Exps => words_of(rows, dims.heads.checked_mul(seen)?),
            Op::Maxima | Op::Totals => words_of(rows, dims.heads.checked_mul(self.blocks())?),
            Op::ValueScales => words_of(dims.keys.checked_div(dims.head_dim)?, seen),
            Op::QuantWeights => {
                let scales = dims.heads.checked_mul(self.blocks())?;
                quantized_heads(rows, dims.heads.checked_mul(self.even())?, scales)
            }
            Op::ValuesTransposed => quantized_heads(dims.keys, self.even(), 0),
            Op::Partials => words_of(rows, dims.queries.checked_mul(self.blocks())?),
            Op::Gate | Op::Up | Op::Activation => words_of(rows, dims.inner),
            Op::StatesTransposed => words_of(dims.width, self.pooled()),
            Op::Mean | Op::Pool => words_of(1, dims.width),
            Op::Logits => words_of(rows, dims.vocabulary),
            Op::Record => self.record(rows),
        }
    }

    /// That of the rows that weights are multiplied with.
    pub fn precision(&self) -> Precision {
        self.layout.architecture.precision.into()
    }

    /// That of a step's quantized values: attention's is always the same.
    pub(super) fn precision_of(&self, op: Op) -> Precision {
        match op {
            Op::QuantQkv | Op::QuantOutput | Op::QuantMlp | Op::QuantDown | Op::FinalQuant => {
                self.precision()
            }
            _ => HEAD_PRECISION,
        }
    }

    /// The positions that are visible at the leaf's end, or one more: so many int12 values are whole words.
    pub(super) fn even(&self) -> u32 {
        self.positions.end.saturating_add(self.positions.end % 2)
    }

    /// Blocks of the positions that are visible at the leaf's end.
    pub(super) fn blocks(&self) -> u32 {
        blocks(self.positions.end as usize) as u32
    }

    fn quantized(&self, rows: u32, values: u32) -> Option<RowsShape> {
        let bytes = bytes_of(self.precision(), values);
        Some(RowsShape {
            rows,
            row_bytes: scales(values).checked_mul(4)?.checked_add(bytes)?,
            quantized: Some(bytes),
        })
    }

    /// Numbers that a norm is said by.
    fn stats(&self) -> u32 {
        match self.family() {
            ModelFamily::Bert => 2,
            ModelFamily::Llama | ModelFamily::Qwen3 => 1,
        }
    }

    fn record(&self, rows: u32) -> Option<RowsShape> {
        match self.part {
            Part::SampledTokens { .. } => words_of(rows, 1),
            Part::Rows { .. } if self.pools() => words_of(1, self.dims().width),
            Part::Rows { stride, .. } => {
                let cut = &self.layout.cut;
                Some(RowsShape {
                    rows,
                    row_bytes: cut.row_bytes(stride)?,
                    quantized: cut.quantized(stride).filter(|bytes| *bytes > 0),
                })
            }
            Part::Input | Part::Output => None,
        }
    }
}
