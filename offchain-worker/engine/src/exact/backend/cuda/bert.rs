//! [`BertModel::embed`] on a device: one pass for all sequences, whose rows attend to spans of their own.

use std::{
    mem,
    sync::{Arc, Mutex},
};

use surety_cuda::{
    Cache, Floats, GpuBackend, Heads, Kernels, Mask, Numbers, Packed, Pages, Rows, Slot, Spans,
};
use surety_exact::ArithmeticError;
use surety_kernels::Packed as PackedHere;
use surety_model_trace::Op;
use surety_models::weights::{Activation, BertLayer};
use surety_types::model::Pooling;

use super::{
    super::{Encoder, Fault},
    Machine, NormThere, Shared, linear, locked, pass, product, products,
    shown::{Left, Looking, Shown},
    shown_pass, smoothing, table,
};
use crate::exact::{
    bert::{BertModel, Scratch},
    probe::Probe,
};

/// Enough rows to keep a device busy. Not measured yet.
const BATCH_ROWS: usize = 8192;

struct Layer<M: GpuBackend> {
    attention_smoothing: Option<Floats<M>>,
    query: Packed<M>,
    key: Packed<M>,
    value: Packed<M>,
    output_smoothing: Option<Floats<M>>,
    output: Packed<M>,
    attention_norm: NormThere<M>,
    up_smoothing: Option<Floats<M>>,
    up: Packed<M>,
    down_smoothing: Option<Floats<M>>,
    down: Packed<M>,
    norm: NormThere<M>,
}

impl<M: GpuBackend> Layer<M> {
    fn new(kernels: &mut Kernels<M>, layer: &BertLayer<PackedHere>) -> Result<Self, surety_cuda::Error> {
        Ok(Self {
            attention_smoothing: smoothing(kernels, layer.attention_smoothing.as_ref())?,
            query: linear(kernels, &layer.query)?,
            key: linear(kernels, &layer.key)?,
            value: linear(kernels, &layer.value)?,
            output_smoothing: smoothing(kernels, layer.output_smoothing.as_ref())?,
            output: linear(kernels, &layer.output)?,
            attention_norm: NormThere::new(kernels, &layer.attention_norm)?,
            up_smoothing: smoothing(kernels, layer.up_smoothing.as_ref())?,
            up: linear(kernels, &layer.up)?,
            down_smoothing: smoothing(kernels, layer.down_smoothing.as_ref())?,
            down: linear(kernels, &layer.down)?,
            norm: NormThere::new(kernels, &layer.norm)?,
        })
    }
}

/// What a pass is about, in memory that the next one writes again: so launches that come again are the same.
struct Input<M: GpuBackend> {
    tokens: Option<Numbers<M>>,
    places: Option<Numbers<M>>,
    segments: Option<Numbers<M>>,
    /// What each row sees.
    rows: Option<Spans<M>>,
    /// What each sequence's vector is the mean of.
    pooled: Option<Spans<M>>,
}

impl<M: GpuBackend> Default for Input<M> {
    fn default() -> Self {
        Self {
            tokens: None,
            places: None,
            segments: None,
            rows: None,
            pooled: None,
        }
    }
}

impl<M: GpuBackend> Input<M> {
    /// That of another pass, before any of its launches.
    fn write(
        &mut self,
        kernels: &mut Kernels<M>,
        sequences: &[&[u32]],
        pooling: Pooling,
    ) -> Result<(), surety_cuda::Error> {
        let spans = spans(sequences)?;
        let rows = spans.iter().flat_map(|span| span.clone().map(|_| span.clone()));
        kernels.spans_in(&mut self.rows, &rows.collect::<Vec<_>>())?;
        let pooled = spans.iter().map(|span| {
            let rows = u32::try_from(pooling.rows(span.len())).unwrap_or(u32::MAX);
            span.start..span.start.saturating_add(rows)
        });
        kernels.spans_in(&mut self.pooled, &pooled.collect::<Vec<_>>())?;
        let tokens = sequences.concat();
        kernels.numbers_in(&mut self.tokens, &tokens)?;
        let places = sequences.iter().flat_map(|ids| (0u32..).zip(*ids));
        let places: Vec<u32> = places.map(|(place, _)| place).collect();
        kernels.numbers_in(&mut self.places, &places)?;
        // All are of the first segment.
        kernels.numbers_in(&mut self.segments, &vec![0; tokens.len()])
    }
}

/// What passes are made in.
struct Workspace<M: GpuBackend> {
    state: Option<Floats<M>>,
    /// What takes the state's place next.
    normed: Option<Floats<M>>,
    sum: Option<Floats<M>>,
    query: Option<Floats<M>>,
    key: Option<Floats<M>>,
    value: Option<Floats<M>>,
    heads: [Heads<M>; 3],
    attended: Option<Floats<M>>,
    inner: Option<Floats<M>>,
    pooled: Option<Floats<M>>,
    rows: Rows<M>,
    /// Of one layer at a time.
    cache: Cache<M>,
    shown: Shown<M>,
}

struct Model<M: GpuBackend> {
    words: Packed<M>,
    positions: Packed<M>,
    types: Packed<M>,
    norm: NormThere<M>,
    layers: Vec<Layer<M>>,
    input: Input<M>,
    workspace: Workspace<M>,
}

/// An encoder on a device.
pub(super) struct CudaBert<M: GpuBackend> {
    kernels: Arc<Shared<M>>,
    model: Mutex<Model<M>>,
    width: usize,
    heads: usize,
    activation: Activation,
    pooling: Pooling,
}

impl<M: Machine> CudaBert<M> {
    pub(super) fn new(kernels: Arc<Shared<M>>, model: &BertModel) -> Result<Self, Fault> {
        let weights = model.weights();
        let there = pass(&kernels, |kernels| {
            Ok(Model {
                words: table(kernels, &weights.word_embeddings)?,
                positions: table(kernels, &weights.position_embeddings)?,
                types: table(kernels, &weights.token_type_embeddings)?,
                norm: NormThere::new(kernels, &weights.norm)?,
                layers: weights
                    .layers
                    .iter()
                    .map(|layer| Layer::new(kernels, layer))
                    .collect::<Result<_, _>>()?,
                input: Input::default(),
                workspace: Workspace {
                    state: None,
                    normed: None,
                    sum: None,
                    query: None,
                    key: None,
                    value: None,
                    heads: Default::default(),
                    attended: None,
                    inner: None,
                    pooled: None,
                    rows: Rows::new(weights.word_embeddings.q.precision()),
                    cache: Pages::new(1, weights.heads, model.width() / weights.heads)?.cache(),
                    shown: Shown::default(),
                },
            })
        })?;
        Ok(Self {
            kernels,
            model: Mutex::new(there),
            width: model.width(),
            heads: weights.heads,
            activation: weights.activation,
            pooling: model.pooling(),
        })
    }

    /// The whole pass: what it shows, with the vectors' place in it.
    fn run(
        &self,
        kernels: &mut Kernels<M>,
        model: &mut Model<M>,
        sequences: &[&[u32]],
        (probe, slot): (&dyn Probe, Slot<M::Landing>),
    ) -> Result<(Left<M::Landing>, std::ops::Range<usize>), surety_cuda::Error> {
        let width = self.width;
        model.workspace.shown.clear();
        model.input.write(kernels, sequences, self.pooling)?;
        let count: usize = sequences.iter().map(|ids| ids.len()).sum();
        kernels.reserve(&mut model.workspace.cache, count)?;
        let shown = &mut model.workspace.shown;
        shown.begin(kernels, probe, (count, sequences.len()))?;
        self.first_states(kernels, model, count, probe)?;
        let Model {
            layers,
            input,
            workspace,
            ..
        } = model;
        let row_spans = input.rows.as_ref().ok_or(ArithmeticError::Shape)?;
        let pooled = input.pooled.as_ref().ok_or(ArithmeticError::Shape)?;
        for (index, layer) in layers.iter().enumerate() {
            let looking = Looking { probe, layer: index };
            self.attention_part(kernels, layer, workspace, row_spans, looking)?;
            self.mlp_part(kernels, (layer, layers.get(index + 1)), workspace, looking)?;
        }
        let state = workspace.state.as_ref().ok_or(ArithmeticError::Shape)?;
        let vectors = kernels.sized(&mut workspace.pooled, sequences.len() * width)?;
        kernels.mean_pool(state, width, pooled, vectors)?;
        kernels.l2_normalize(vectors, width)?;
        let layer = layers.len().saturating_sub(1);
        let looking = Looking { probe, layer };
        workspace
            .shown
            .record(kernels, looking, (Op::Pool, vectors, width))?;
        let at = workspace
            .shown
            .needed(kernels, looking, (Op::Pool, vectors, width))?;
        Ok((workspace.shown.leave(kernels, slot)?, at))
    }

    fn first_states(
        &self,
        kernels: &mut Kernels<M>,
        model: &mut Model<M>,
        count: usize,
        probe: &dyn Probe,
    ) -> Result<(), surety_cuda::Error> {
        let Model {
            words,
            positions,
            types,
            norm,
            layers,
            input,
            workspace,
        } = model;
        let (Some(tokens), Some(places), Some(segments)) = (&input.tokens, &input.places, &input.segments)
        else {
            return Err(ArithmeticError::Shape.into());
        };
        let values = count * self.width;
        let sum = kernels.sized(&mut workspace.sum, values)?;
        let other = kernels.sized(&mut workspace.query, values)?;
        kernels.embed(words, tokens, sum)?;
        kernels.embed(positions, places, other)?;
        kernels.add(sum, other)?;
        kernels.embed(types, segments, other)?;
        kernels.add(sum, other)?;
        let state = kernels.sized(&mut workspace.state, values)?;
        let first = layers.first().ok_or(ArithmeticError::Shape)?;
        let into = (first.attention_smoothing.as_ref(), &mut workspace.rows);
        norm.quantize(kernels, (sum, None, None), Some(state), into)?;
        let looking = Looking { probe, layer: 0 };
        workspace
            .shown
            .real(kernels, looking, (Op::Embed, state, self.width))
    }

    /// Of the states that were quantized with it; quantizes those that it gives.
    fn attention_part(
        &self,
        kernels: &mut Kernels<M>,
        layer: &Layer<M>,
        workspace: &mut Workspace<M>,
        spans: &Spans<M>,
        looking: Looking<'_>,
    ) -> Result<(), surety_cuda::Error> {
        let (width, shape) = (self.width, (self.heads, self.width / self.heads));
        let Workspace {
            state,
            normed,
            sum,
            query,
            key,
            value,
            heads: [queries, keys, values],
            attended,
            rows,
            cache,
            shown,
            ..
        } = workspace;
        let before = state.as_ref().ok_or(ArithmeticError::Shape)?;
        let count = before.len() / width;
        let query = kernels.sized(query, count * width)?;
        let key = kernels.sized(key, count * width)?;
        let value = kernels.sized(value, count * width)?;
        let by = [&layer.query, &layer.key, &layer.value];
        products(kernels, rows, by, [&mut *query, &mut *key, &mut *value])?;
        for (op, out) in [(Op::Query, &*query), (Op::Key, &*key), (Op::Value, &*value)] {
            shown.real(kernels, looking, (op, out, width))?;
        }
        let parts = [
            (query, shape.0, &mut *queries),
            (key, shape.0, &mut *keys),
            (value, shape.0, &mut *values),
        ];
        kernels.rotate_quantize(parts, shape.1, None, None, None)?;
        for (op, heads) in [
            (Op::QuantQuery, &*queries),
            (Op::QuantKey, &*keys),
            (Op::QuantValue, &*values),
        ] {
            shown.heads(kernels, looking, (op, heads, shape))?;
        }
        cache.clear(0);
        kernels.append(cache, 0, keys, values)?;
        let attended = kernels.sized(attended, count * width)?;
        kernels.attention(queries, cache, 0, Mask::Spans(spans), attended)?;
        shown.real(kernels, looking, (Op::Attention, attended, width))?;
        kernels.quantize(attended, width, layer.output_smoothing.as_ref(), rows)?;
        let sum = product(kernels, (rows, count), &layer.output, sum)?;
        shown.real(kernels, looking, (Op::Output, sum, width))?;
        let after = kernels.sized(normed, count * width)?;
        let quantized = (layer.up_smoothing.as_ref(), rows);
        layer
            .attention_norm
            .quantize(kernels, (sum, Some(before), None), Some(&mut *after), quantized)?;
        shown.real(kernels, looking, (Op::AttentionSum, after, width))?;
        mem::swap(state, normed);
        Ok(())
    }

    /// The same; what it gives is quantized for the layer behind it, if there is one.
    fn mlp_part(
        &self,
        kernels: &mut Kernels<M>,
        (layer, behind): (&Layer<M>, Option<&Layer<M>>),
        workspace: &mut Workspace<M>,
        looking: Looking<'_>,
    ) -> Result<(), surety_cuda::Error> {
        let (width, inner_width) = (self.width, layer.up.outputs());
        let Workspace {
            state,
            normed,
            sum,
            inner,
            rows,
            shown,
            ..
        } = workspace;
        let before = state.as_ref().ok_or(ArithmeticError::Shape)?;
        let count = before.len() / width;
        let inner = product(kernels, (rows, count), &layer.up, inner)?;
        shown.real(kernels, looking, (Op::Up, inner, inner_width))?;
        let is_tanh = match self.activation {
            Activation::Gelu => false,
            Activation::GeluTanh => true,
        };
        let is_kept = looking.wants(Op::Activation);
        let by = (inner_width, layer.down_smoothing.as_ref());
        kernels.gelu_quantize((&mut *inner, is_tanh), is_kept, by, rows)?;
        shown.real(kernels, looking, (Op::Activation, inner, inner_width))?;
        let sum = product(kernels, (rows, count), &layer.down, sum)?;
        shown.real(kernels, looking, (Op::Down, sum, width))?;
        let after = kernels.sized(normed, count * width)?;
        match behind {
            Some(behind) => {
                let quantized = (behind.attention_smoothing.as_ref(), rows);
                layer
                    .norm
                    .quantize(kernels, (sum, Some(before), None), Some(&mut *after), quantized)?;
            }
            None => {
                kernels.add(sum, before)?;
                layer.norm.normalize(kernels, sum, after)?;
            }
        }
        shown.record(kernels, looking, (Op::Sum, after, width))?;
        shown.real(kernels, looking, (Op::Sum, after, width))?;
        mem::swap(state, normed);
        Ok(())
    }
}

/// The rows of each sequence.
fn spans(sequences: &[&[u32]]) -> Result<Vec<std::ops::Range<u32>>, ArithmeticError> {
    let mut end = 0u32;
    let span = |ids: &&[u32]| {
        let start = end;
        let more = u32::try_from(ids.len()).ok();
        end = more
            .and_then(|more| start.checked_add(more))
            .ok_or(ArithmeticError::Shape)?;
        (start < end).then_some(start..end).ok_or(ArithmeticError::Shape)
    };
    sequences.iter().map(span).collect()
}

impl<M: Machine> Encoder for CudaBert<M> {
    fn batch_rows(&self) -> usize {
        BATCH_ROWS
    }

    fn embed(&self, sequences: &[&[u32]], _: &mut Scratch, probe: &mut dyn Probe) -> Result<Vec<f32>, Fault> {
        let (mut left, at) = shown_pass(&self.kernels, |kernels, slot| {
            self.run(kernels, &mut locked(&self.model), sequences, (&*probe, slot))
        })?;
        // Others may have the device while this arrives and is looked at.
        let arrived = self.kernels.arrived(&mut left)?;
        arrived.show(probe)?;
        Ok(arrived.reals(&at)?)
    }
}
