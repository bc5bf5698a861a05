//! The definition of a cell: what is asked for, and what comes of it.

use alloc::borrow::Cow;
use core::ops::Range;

use surety_exact::{
    ArithmeticError, GROUP, gelu, gelu_tanh, layer_norm_cell, layer_norm_stats, product_cell, quantize_group,
    rms_norm_cell, rms_norm_scale, scale_row, silu,
};
use surety_types::model::{Activation, ModelFamily};

use crate::{
    inputs::{Inputs, Source, WeightRow},
    plan::LeafPlan,
    quanta::bytes_of,
    steps::{Op, Step},
    tensors::{InLayer, Tensor, VECTOR_ROW},
};
use surety_dispute_game::bisection::CellValue;

/// What stands in a word where the arithmetic has no value: the quiet NaN. No right computation records it.
pub const NO_NUMBER: u32 = 0x7fc0_0000;

/// Why a cell cannot be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop<E> {
    /// The trace has no such cell.
    NoSuchPlace,
    /// An input is not there.
    Input(E),
}

/// Why a cell has no value, or cannot be told.
pub(super) enum Halt<E> {
    /// The arithmetic has no value.
    Arithmetic,
    Stop(Stop<E>),
}

impl<E> From<ArithmeticError> for Halt<E> {
    fn from(_: ArithmeticError) -> Self {
        Self::Arithmetic
    }
}

pub(super) type Found<E> = Result<f32, Halt<E>>;

/// What is in cell `cell` of row `row` of step `step`.
///
/// # Errors
/// [`Stop::Input`] when an input is not there, and for a place that is not in the leaf.
pub fn cell<'a, I: Inputs<'a>>(
    plan: &LeafPlan<'_>,
    step: u32,
    row: u32,
    cell: u32,
    inputs: &mut I,
) -> Result<CellValue, Stop<I::Error>> {
    let Some(step) = plan.step(step) else {
        return Err(Stop::NoSuchPlace);
    };
    let mut work = Work {
        plan,
        step,
        row,
        inputs,
    };
    let value = work.value(cell);
    told(value, || work.is_byte(cell))
}

/// A value as it stands in a row.
pub(super) fn told<E>(
    value: Result<CellValue, Halt<E>>,
    is_byte: impl FnOnce() -> bool,
) -> Result<CellValue, Stop<E>> {
    match value {
        Ok(value) => Ok(value),
        Err(Halt::Stop(stop)) => Err(stop),
        Err(Halt::Arithmetic) if is_byte() => Ok(CellValue::Byte(0)),
        Err(Halt::Arithmetic) => Ok(CellValue::Word(NO_NUMBER.to_le_bytes())),
    }
}

/// One of the two bytes of a value; which of them follows from the cell's number.
pub(super) fn byte_of<E>(value: Option<i16>, cell: u32) -> Result<CellValue, Halt<E>> {
    let [low, high] = value.ok_or(ArithmeticError::Shape)?.to_le_bytes();
    Ok(CellValue::Byte(if cell.is_multiple_of(2) { low } else { high }))
}

/// A number as it stands in a row. Machines write a NaN in more than one way.
pub(super) fn number(value: f32) -> CellValue {
    let bits = if value.is_nan() {
        NO_NUMBER
    } else {
        value.to_bits()
    };
    CellValue::Word(bits.to_le_bytes())
}

/// One cell being computed.
pub(super) struct Work<'w, 'l, I> {
    pub plan: &'w LeafPlan<'l>,
    pub step: Step,
    pub row: u32,
    pub inputs: &'w mut I,
}

impl<'a, I: Inputs<'a>> Work<'_, '_, I> {
    fn value(&mut self, cell: u32) -> Result<CellValue, Halt<I::Error>> {
        let dims = self.plan.dims();
        match (self.step.op, self.plan.family()) {
            (Op::QuantQkv, _) => self.quantize(dims.width, Some(InLayer::AttentionSmoothing), cell),
            (Op::QuantOutput, _) => self.quantize(dims.queries, Some(InLayer::OutputSmoothing), cell),
            (Op::QuantMlp, _) => self.quantize(dims.width, Some(InLayer::InnerSmoothing), cell),
            (Op::QuantDown, _) => self.quantize(dims.inner, Some(InLayer::DownSmoothing), cell),
            (Op::FinalQuant, _) => self.quantize(dims.width, None, cell),
            (Op::QuantQuery | Op::QuantKey | Op::QuantValue, _) => self.quantize_head(cell),
            (Op::QuantWeights, _) => self.quantize_weight(cell),
            (Op::ValuesTransposed, _) => self.value_column(cell),
            (Op::Record, _) => self.record(cell),
            (_, ModelFamily::Bert) => self.encoder(cell).map(number),
            (_, ModelFamily::Llama | ModelFamily::Qwen3) => self.decoder(cell).map(number),
        }
    }

    fn is_byte(&self, cell: u32) -> bool {
        let step = self.plan.number(self.step.layer, self.step.op);
        let shape = step.and_then(|step| self.plan.rows_of(step));
        let bytes = shape.and_then(|shape| shape.quantized);
        bytes.is_some_and(|bytes| cell < bytes)
    }

    fn encoder(&mut self, cell: u32) -> Found<I::Error> {
        match self.step.op {
            Op::EmbedAdd => self.embed_add(cell),
            Op::EmbedStats => self.moments(Op::EmbedAdd, cell),
            Op::Embed => {
                let by = (Tensor::EmbeddingsNorm, Tensor::EmbeddingsNormBias);
                self.layer_norm(Op::EmbedAdd, Op::EmbedStats, by, cell)
            }
            Op::AttentionAdd => self.add_state(cell),
            Op::AttentionStats => self.moments(Op::AttentionAdd, cell),
            Op::AttentionSum => {
                let by = (InLayer::AttentionNorm, InLayer::AttentionNormBias);
                let by = (self.tensor(by.0), self.tensor(by.1));
                self.layer_norm(Op::AttentionAdd, Op::AttentionStats, by, cell)
            }
            Op::Activation => {
                let up = self.one(Op::Up, cell)?;
                Ok(match self.plan.layout.architecture.activation {
                    Activation::GeluTanh => gelu_tanh(up),
                    _ => gelu(up),
                })
            }
            Op::Add => self.add(Op::Down, Op::AttentionSum, cell),
            Op::Stats => self.moments(Op::Add, cell),
            Op::Sum => {
                let by = (self.tensor(InLayer::Norm), self.tensor(InLayer::NormBias));
                self.layer_norm(Op::Add, Op::Stats, by, cell)
            }
            Op::StatesTransposed => self.state_column(cell),
            Op::Mean => self.mean(cell),
            Op::Pool => self.pool(cell),
            _ => self.shared(cell),
        }
    }

    fn decoder(&mut self, cell: u32) -> Found<I::Error> {
        let layer = self.step.layer;
        match self.step.op {
            Op::Embed => self.embed(cell),
            Op::AttentionStats | Op::FinalStats => {
                let state = self.plan.state_before(layer);
                self.inv_rms(state)
            }
            Op::AttentionInput => {
                let state = self.plan.state_before(layer);
                let weight = self.tensor(InLayer::AttentionNorm);
                self.rms_norm(state, Op::AttentionStats, weight, cell)
            }
            Op::FinalInput => {
                let state = self.plan.state_before(layer);
                self.rms_norm(state, Op::FinalStats, Tensor::FinalNorm, cell)
            }
            Op::NormQuery => self.norm_head(Op::Query, InLayer::QueryNorm, cell),
            Op::NormKey => self.norm_head(Op::Key, InLayer::KeyNorm, cell),
            Op::RotateQuery | Op::RotateKey => self.rotate(cell),
            Op::AttentionSum => self.add_state(cell),
            Op::MlpStats => {
                let sum = self.plan.source(layer, Op::AttentionSum);
                self.inv_rms(sum)
            }
            Op::MlpInput => {
                let sum = self.plan.source(layer, Op::AttentionSum);
                self.rms_norm(sum, Op::MlpStats, self.tensor(InLayer::Norm), cell)
            }
            Op::Gate => self.product(Op::QuantMlp, self.tensor(InLayer::Gate), cell),
            Op::Activation => {
                let gate = self.one(Op::Gate, cell)?;
                Ok(silu(gate) * self.one(Op::Up, cell)?)
            }
            Op::Sum => self.add(Op::AttentionSum, Op::Down, cell),
            Op::Logits => {
                let head = if self.plan.layout.architecture.tied {
                    Tensor::Tokens
                } else {
                    Tensor::Head
                };
                self.product(Op::FinalQuant, head, cell)
            }
            _ => self.shared(cell),
        }
    }

    fn shared(&mut self, cell: u32) -> Found<I::Error> {
        match self.step.op {
            Op::Query => self.product(Op::QuantQkv, self.tensor(InLayer::Query), cell),
            Op::Key => self.product(Op::QuantQkv, self.tensor(InLayer::Key), cell),
            Op::Value => self.product(Op::QuantQkv, self.tensor(InLayer::Value), cell),
            Op::Scores => self.score(cell),
            Op::Maxima => self.maximum(cell),
            Op::Exps => self.exponential(cell),
            Op::Totals => self.total(cell),
            Op::ValueScales => self.value_scale(cell),
            Op::Partials => self.partial(cell),
            Op::Attention => self.attention(cell),
            Op::Output => self.product(Op::QuantOutput, self.tensor(InLayer::Output), cell),
            Op::Up => self.product(Op::QuantMlp, self.tensor(InLayer::Up), cell),
            Op::Down => self.product(Op::QuantDown, self.tensor(InLayer::Down), cell),
            _ => Err(ArithmeticError::Shape.into()),
        }
    }

    pub fn tensor(&self, part: InLayer) -> Tensor {
        Tensor::Layer(self.step.layer, part)
    }

    /// Numbers of a row of a source.
    pub fn numbers(
        &mut self,
        from: Option<Source>,
        row: u32,
        words: Range<u32>,
    ) -> Result<Cow<'a, [f32]>, Halt<I::Error>> {
        let from = from.ok_or(ArithmeticError::Shape)?;
        let numbers = self.inputs.numbers(from, row, words);
        numbers.map_err(|error| Halt::Stop(Stop::Input(error)))
    }

    /// Some of attention's quantized values of a row of a source.
    pub fn quanta(
        &mut self,
        from: Option<Source>,
        row: u32,
        values: Range<u32>,
    ) -> Result<Cow<'a, [i16]>, Halt<I::Error>> {
        let from = from.ok_or(ArithmeticError::Shape)?;
        let quanta = self.inputs.quanta(from, row, values);
        quanta.map_err(|error| Halt::Stop(Stop::Input(error)))
    }

    /// One number of a row of a source.
    pub fn number(&mut self, from: Option<Source>, row: u32, word: u32) -> Found<I::Error> {
        let numbers = self.numbers(from, row, word..word.saturating_add(1))?;
        Ok(numbers.first().copied().ok_or(ArithmeticError::Shape)?)
    }

    /// One number of this row of another step of this layer.
    pub fn one(&mut self, op: Op, word: u32) -> Found<I::Error> {
        let from = self.plan.source(self.step.layer, op);
        self.number(from, self.row, word)
    }

    pub fn integers(
        &mut self,
        from: Source,
        row: u32,
        words: Range<u32>,
    ) -> Result<Cow<'a, [u32]>, Halt<I::Error>> {
        let integers = self.inputs.integers(from, row, words);
        integers.map_err(|error| Halt::Stop(Stop::Input(error)))
    }

    pub fn weights(&mut self, tensor: Tensor, row: u32) -> Result<WeightRow<'a>, Halt<I::Error>> {
        let weights = self.inputs.weights(tensor, row);
        weights.map_err(|error| Halt::Stop(Stop::Input(error)))
    }

    /// One value of a vector.
    pub fn of_vector(&mut self, tensor: Tensor, index: u32) -> Found<I::Error> {
        let row = self.weights(tensor, index / VECTOR_ROW)?;
        let value = row.scales.get((index % VECTOR_ROW) as usize);
        Ok(value.copied().ok_or(ArithmeticError::Shape)?)
    }

    /// Where the input of a quantized row is.
    fn to_quantize(&self) -> Option<Source> {
        let layer = self.step.layer;
        let op = match (self.step.op, self.plan.family()) {
            (Op::QuantQkv, ModelFamily::Bert) => return self.plan.state_before(layer),
            (Op::QuantQkv, ModelFamily::Llama | ModelFamily::Qwen3) => Op::AttentionInput,
            (Op::QuantOutput, _) => Op::Attention,
            (Op::QuantMlp, ModelFamily::Bert) => Op::AttentionSum,
            (Op::QuantMlp, ModelFamily::Llama | ModelFamily::Qwen3) => Op::MlpInput,
            (Op::QuantDown, _) => Op::Activation,
            _ => Op::FinalInput,
        };
        self.plan.source(layer, op)
    }

    /// A byte of a value, or a scale, of a quantized row: it depends on its group alone.
    #[allow(
        clippy::arithmetic_side_effects,
        reason = "dimensions that divide are at least 1 in a layout"
    )]
    fn quantize(
        &mut self,
        width: u32,
        smoothing_scale: Option<InLayer>,
        cell: u32,
    ) -> Result<CellValue, Halt<I::Error>> {
        let (each, precision) = (GROUP as u32, self.plan.precision());
        let of_value = precision.bytes() as u32;
        let (bytes, value) = (bytes_of(precision, width), cell / of_value);
        let group = match cell.checked_sub(bytes) {
            Some(group) => group,
            None => value / each,
        };
        let start = group.saturating_mul(each);
        let end = start.saturating_add(each).min(width);
        let from = self.to_quantize();
        let values = self.numbers(from, self.row, start..end)?;
        let mut scaled = [0.0; GROUP];
        let scaled = scaled.get_mut(..values.len()).ok_or(ArithmeticError::Shape)?;
        match smoothing_scale.filter(|smoothing_scale| self.is_smoothed(*smoothing_scale)) {
            Some(smoothing_scale) => {
                // A row of a vector is a group.
                let by = self.weights(self.tensor(smoothing_scale), group)?;
                scale_row(&values, &by.scales, scaled)?;
            }
            None => scaled.copy_from_slice(&values),
        }
        let mut q = [0i16; GROUP];
        let q = q.get_mut(..values.len()).ok_or(ArithmeticError::Shape)?;
        let scale = quantize_group(scaled, precision, q)?;
        if cell >= bytes {
            return Ok(number(scale));
        }
        let value = q
            .get((value % each) as usize)
            .ok_or(ArithmeticError::Shape)?
            .to_le_bytes();
        let byte = value
            .get((cell % of_value) as usize)
            .ok_or(ArithmeticError::Shape)?;
        Ok(CellValue::Byte(*byte))
    }

    fn is_smoothed(&self, smoothing_scale: InLayer) -> bool {
        let smoothed = &self.plan.layout.architecture.smoothed;
        match smoothing_scale {
            InLayer::AttentionSmoothing => smoothed.attention,
            InLayer::OutputSmoothing => smoothed.output,
            InLayer::InnerSmoothing => smoothed.inner,
            _ => smoothed.down,
        }
    }

    fn product(&mut self, quantized: Op, by: Tensor, cell: u32) -> Found<I::Error> {
        let step = self
            .plan
            .number(self.step.layer, quantized)
            .ok_or(ArithmeticError::Shape)?;
        let input = self.inputs.quantized(step, self.row);
        let input = input.map_err(|error| Halt::Stop(Stop::Input(error)))?;
        let by = self.weights(by, cell)?;
        let bias = by.bias.unwrap_or(0.0);
        Ok(product_cell(&input.q, &input.scales, &by.q, &by.scales, bias)?)
    }

    fn add(&mut self, first: Op, second: Op, cell: u32) -> Found<I::Error> {
        Ok(self.one(first, cell)? + self.one(second, cell)?)
    }

    /// What attention found, added to the state that went in.
    fn add_state(&mut self, cell: u32) -> Found<I::Error> {
        let state = self.plan.state_before(self.step.layer);
        Ok(self.number(state, self.row, cell)? + self.one(Op::Output, cell)?)
    }

    /// Mean, or inverse standard deviation, of a row.
    fn moments(&mut self, of: Op, cell: u32) -> Found<I::Error> {
        let dims = self.plan.dims();
        let from = self.plan.source(self.step.layer, of);
        let row = self.numbers(from, self.row, 0..dims.width)?;
        let (mean, scale) = layer_norm_stats(&row, dims.epsilon)?;
        Ok(match cell {
            0 => mean,
            _ => scale,
        })
    }

    fn layer_norm(&mut self, of: Op, stats: Op, by: (Tensor, Tensor), cell: u32) -> Found<I::Error> {
        let value = self.one(of, cell)?;
        let from = self.plan.source(self.step.layer, stats);
        let stats = self.numbers(from, self.row, 0..2)?;
        let weight = self.of_vector(by.0, cell)?;
        let bias = self.of_vector(by.1, cell)?;
        match stats[..] {
            [mean, scale] => Ok(layer_norm_cell(value, (mean, scale), weight, bias)),
            _ => Err(ArithmeticError::Shape.into()),
        }
    }

    /// Inverse root mean square of a state.
    fn inv_rms(&mut self, of: Option<Source>) -> Found<I::Error> {
        let dims = self.plan.dims();
        let row = self.numbers(of, self.row, 0..dims.width)?;
        Ok(rms_norm_scale(&row, dims.epsilon)?)
    }

    fn rms_norm(&mut self, of: Option<Source>, stats: Op, by: Tensor, cell: u32) -> Found<I::Error> {
        let value = self.number(of, self.row, cell)?;
        let scale = self.one(stats, 0)?;
        Ok(rms_norm_cell(value, scale, self.of_vector(by, cell)?))
    }

    /// What is recorded: a copy, or the token that is chosen.
    fn record(&mut self, cell: u32) -> Result<CellValue, Halt<I::Error>> {
        match self.plan.number(self.step.layer, Op::Logits) {
            Some(_) => Ok(CellValue::Word(self.choose()?.to_le_bytes())),
            None => self.recorded(cell),
        }
    }

    /// With a decoder, bytes of the key and value of each layer, in turn; the state; with a decoder, their
    /// scales.
    #[allow(
        clippy::arithmetic_side_effects,
        reason = "dimensions that divide are at least 1 in a layout"
    )]
    fn recorded(&mut self, cell: u32) -> Result<CellValue, Halt<I::Error>> {
        let (dims, cut) = (self.plan.dims(), &self.plan.layout.cut);
        if self.plan.pools() {
            return self.one(Op::Pool, cell).map(number);
        }
        let heads = cut.kv_heads;
        let layers = self.plan.last_layer().saturating_add(1) - self.plan.first_layer();
        let bytes = layers.saturating_mul(4).saturating_mul(dims.keys);
        // Of the first layer's key the 0th, of its value the 1st.
        let cached = |place: u32| {
            let op = if place.is_multiple_of(2) {
                Op::QuantKey
            } else {
                Op::QuantValue
            };
            self.plan
                .source(self.plan.first_layer().saturating_add(place / 2), op)
        };
        let Some(word) = cell.checked_sub(if heads > 0 { bytes } else { 0 }) else {
            let each = dims.keys.saturating_mul(2);
            let (from, byte) = (cached(cell / each), cell % each);
            let found = self.quanta(from, self.row, byte / 2..byte / 2 + 1)?;
            return byte_of(found.first().copied(), cell);
        };
        match word.checked_sub(dims.width) {
            None => {
                let from = self.plan.source(self.plan.last_layer(), Op::Sum);
                self.number(from, self.row, word).map(number)
            }
            Some(scale) => {
                let from = cached(scale.checked_div(heads).unwrap_or(0));
                self.number(from, self.row, scale.checked_rem(heads).unwrap_or(0))
                    .map(number)
            }
        }
    }
}
