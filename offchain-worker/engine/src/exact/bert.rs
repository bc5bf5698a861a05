//! The forward pass of an exact encoder: post-norm BERT.
//!
//! Several sequences go through the products together, as rows below each other; only attention looks at more
//! than one row, and only within a sequence. So which sequences are computed together changes no bit.

use std::ops::Range;

use surety_exact::ArithmeticError;
use surety_kernels::{self as kernels, Cache, HeadRows, Heads, Mask, Packed, Rows};
use surety_model_trace::{Op, TraceShape};
use surety_models::weights::{Activation, BertLayer, BertWeights};
use surety_types::model::Pooling;

use super::{
    pass::{Pass, check_table, look_up, pack, part, sized, step},
    probe::Probe,
};

/// An encoder with its weights in the layout of the kernels, and how it pools.
pub struct BertModel {
    weights: BertWeights<Packed>,
    pooling: Pooling,
}

fn packed(layer: BertLayer, width: usize) -> Result<BertLayer<Packed>, ArithmeticError> {
    let inner = layer.up.outputs;
    let [attention_smoothing, output_smoothing] =
        [&layer.attention_smoothing, &layer.output_smoothing].map(Option::as_ref);
    Ok(BertLayer {
        query: pack(&layer.query, width, width, attention_smoothing)?,
        key: pack(&layer.key, width, width, attention_smoothing)?,
        value: pack(&layer.value, width, width, attention_smoothing)?,
        output: pack(&layer.output, width, width, output_smoothing)?,
        up: pack(&layer.up, width, inner, layer.up_smoothing.as_ref())?,
        down: pack(&layer.down, inner, width, layer.down_smoothing.as_ref())?,
        attention_smoothing: layer.attention_smoothing,
        output_smoothing: layer.output_smoothing,
        attention_norm: layer.attention_norm,
        up_smoothing: layer.up_smoothing,
        down_smoothing: layer.down_smoothing,
        norm: layer.norm,
    })
}

/// Rows that are there, or a fault.
fn rows_of<'a>(heads: &'a Heads, rows: &Range<usize>) -> Result<HeadRows<'a>, ArithmeticError> {
    heads.rows(rows.clone()).ok_or(ArithmeticError::Shape)
}

/// Memory of a forward pass. Reuse one: it keeps its size.
#[derive(Default)]
pub struct Scratch {
    state: Vec<f32>,
    sum: Vec<f32>,
    query: Vec<f32>,
    key: Vec<f32>,
    value: Vec<f32>,
    /// Of queries, keys and values.
    heads: [Heads; 3],
    attended: Vec<f32>,
    inner: Vec<f32>,
    rows: Rows,
    cache: Option<Cache>,
}

impl BertModel {
    /// Lays the weights out. Their lengths must fit together, as a reader of model files makes sure.
    ///
    /// # Errors
    /// [`ArithmeticError::Shape`] when they do not.
    pub fn new(weights: BertWeights, pooling: Pooling) -> Result<Self, ArithmeticError> {
        let width = weights.word_embeddings.width;
        let fits = width > 0 && weights.heads > 0 && width.is_multiple_of(weights.heads);
        if !fits || weights.layers.is_empty() {
            return Err(ArithmeticError::Shape);
        }
        for table in [
            &weights.word_embeddings,
            &weights.position_embeddings,
            &weights.token_type_embeddings,
        ] {
            check_table(table, width)?;
        }
        let layers = weights.layers.into_iter();
        let weights = BertWeights {
            heads: weights.heads,
            activation: weights.activation,
            word_embeddings: weights.word_embeddings,
            position_embeddings: weights.position_embeddings,
            token_type_embeddings: weights.token_type_embeddings,
            norm: weights.norm,
            layers: layers
                .map(|layer| packed(layer, width))
                .collect::<Result<_, _>>()?,
        };
        Ok(Self { weights, pooling })
    }

    /// What it was made of.
    pub(crate) fn weights(&self) -> &BertWeights<Packed> {
        &self.weights
    }

    /// How a sequence's states become one vector.
    pub(super) fn pooling(&self) -> Pooling {
        self.pooling
    }

    /// Numbers in a state and in the result.
    pub fn width(&self) -> usize {
        self.weights.word_embeddings.width
    }

    /// Number of transformer layers.
    pub fn layers(&self) -> usize {
        self.weights.layers.len()
    }

    /// Longest sequence, in tokens.
    pub fn positions(&self) -> usize {
        self.weights.position_embeddings.rows
    }

    /// Size of the vocabulary.
    pub fn vocabulary(&self) -> usize {
        self.weights.word_embeddings.rows
    }

    /// How its traces are cut.
    pub fn trace_shape(&self) -> TraceShape {
        // A file's dimensions are far smaller than either type.
        TraceShape::bert(self.layers() as u32, self.width() as u32)
    }

    /// One vector for each sequence, of length 1.
    ///
    /// # Errors
    /// [`ArithmeticError::Shape`] for an empty sequence, one that is too long, or tokens that there are no
    /// vectors for; the faults of the arithmetic.
    pub fn embed(
        &self,
        sequences: &[&[u32]],
        scratch: &mut Scratch,
        probe: &mut impl Probe,
    ) -> Result<Vec<f32>, ArithmeticError> {
        scratch
            .rows
            .set_precision(self.weights.word_embeddings.q.precision());
        self.first_states(sequences, scratch)?;
        probe.real(step(0, Op::Embed), &scratch.state, self.width());
        for (index, layer) in self.weights.layers.iter().enumerate() {
            self.layer(index, layer, sequences, scratch, probe)?;
        }
        let pooled = self.pool(sequences, &scratch.state)?;
        probe.real(step(self.layers() - 1, Op::Pool), &pooled, self.width());
        Ok(pooled)
    }

    fn first_states(&self, sequences: &[&[u32]], scratch: &mut Scratch) -> Result<(), ArithmeticError> {
        let width = self.width();
        let count: usize = sequences.iter().map(|ids| ids.len()).sum();
        let sum = sized(&mut scratch.sum, count * width);
        let mut rows = sum.chunks_exact_mut(width);
        for ids in sequences {
            if ids.is_empty() {
                return Err(ArithmeticError::Shape);
            }
            for ((position, id), row) in (0u32..).zip(*ids).zip(&mut rows) {
                look_up(&self.weights.word_embeddings, *id, row, |_, word| word)?;
                look_up(&self.weights.position_embeddings, position, row, |sum, value| {
                    sum + value
                })?;
                // All are of the first segment.
                look_up(&self.weights.token_type_embeddings, 0, row, |sum, value| {
                    sum + value
                })?;
            }
        }
        let state = sized(&mut scratch.state, count * width);
        kernels::layer_norm(sum, &self.weights.norm, state)
    }

    fn layer(
        &self,
        index: usize,
        layer: &BertLayer<Packed>,
        sequences: &[&[u32]],
        scratch: &mut Scratch,
        probe: &mut impl Probe,
    ) -> Result<(), ArithmeticError> {
        let width = self.width();
        let Scratch {
            state,
            sum,
            query,
            key,
            value,
            heads,
            attended,
            inner,
            rows,
            cache,
        } = scratch;
        let mut pass = Pass {
            layer: index,
            rows,
            probe,
        };

        pass.quantize(Op::QuantQkv, state, width, layer.attention_smoothing.as_deref())?;
        pass.product(Op::Query, &layer.query, query)?;
        pass.product(Op::Key, &layer.key, key)?;
        pass.product(Op::Value, &layer.value, value)?;
        let (of_heads, [queries, keys, values]) = ((self.weights.heads, width / self.weights.heads), heads);
        pass.heads(Op::QuantQuery, query, of_heads, queries)?;
        pass.heads(Op::QuantKey, key, of_heads, keys)?;
        pass.heads(Op::QuantValue, value, of_heads, values)?;
        let attended = sized(attended, query.len());
        self.attention(sequences, (queries, keys, values), cache, attended)?;
        pass.real(Op::Attention, attended, width);
        pass.quantize(
            Op::QuantOutput,
            attended,
            width,
            layer.output_smoothing.as_deref(),
        )?;
        pass.product(Op::Output, &layer.output, sum)?;
        kernels::add(sum, state)?;
        kernels::layer_norm(sum, &layer.attention_norm, state)?;
        pass.real(Op::AttentionSum, state, width);

        let inner_width = layer.up.outputs();
        pass.quantize(Op::QuantMlp, state, width, layer.up_smoothing.as_deref())?;
        pass.product(Op::Up, &layer.up, inner)?;
        match self.weights.activation {
            Activation::Gelu => kernels::gelu(inner),
            Activation::GeluTanh => kernels::gelu_tanh(inner),
        }
        pass.real(Op::Activation, inner, inner_width);
        pass.quantize(Op::QuantDown, inner, inner_width, layer.down_smoothing.as_deref())?;
        pass.product(Op::Down, &layer.down, sum)?;
        kernels::add(sum, state)?;
        kernels::layer_norm(sum, &layer.norm, state)?;
        pass.real(Op::Sum, state, width);
        Ok(())
    }

    fn attention(
        &self,
        sequences: &[&[u32]],
        (queries, keys, values): (&Heads, &Heads, &Heads),
        cache: &mut Option<Cache>,
        out: &mut [f32],
    ) -> Result<(), ArithmeticError> {
        let width = self.width();
        let cache = cache.get_or_insert_with(|| {
            Cache::new(
                self.weights.heads,
                width / self.weights.heads,
                self.weights.position_embeddings.rows,
            )
        });
        let mut start = 0;
        for ids in sequences {
            let rows = start..start + ids.len();
            start = rows.end;
            cache.clear();
            cache.append(rows_of(keys, &rows)?, rows_of(values, &rows)?)?;
            let out = out.get_mut(rows.start * width..rows.end * width);
            let out = out.ok_or(ArithmeticError::Shape)?;
            kernels::attention(rows_of(queries, &rows)?, cache, Mask::Full, out)?;
        }
        Ok(())
    }

    fn pool(&self, sequences: &[&[u32]], state: &[f32]) -> Result<Vec<f32>, ArithmeticError> {
        let width = self.width();
        let mut pooled = vec![0.0; sequences.len() * width];
        let mut start = 0;
        for (ids, row) in sequences.iter().zip(pooled.chunks_exact_mut(width)) {
            let range = start..start + self.pooling.rows(ids.len()) * width;
            start += ids.len() * width;
            surety_exact::mean_pool(part(state, &range)?, row)?;
            surety_exact::l2_normalize(row)?;
        }
        Ok(pooled)
    }
}
