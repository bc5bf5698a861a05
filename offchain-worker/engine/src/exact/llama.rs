//! The forward pass of an exact decoder: RMS norm, rotary positions, grouped attention, SwiGLU; with Qwen 3
//! a norm of every head of queries and keys.
//!
//! A position's numbers depend on the tokens up to it and on nothing else, so a prompt in chunks of any
//! length, one token at a time, or a prompt together with its continuation all give the same bits.

use surety_exact::ArithmeticError;
use surety_kernels::{self as kernels, Cache, Heads, Mask, Packed, Rows};
use surety_model_trace::{Op, TraceShape};
use surety_models::weights::{LlamaLayer, LlamaWeights};

use super::{
    pass::{Pass, check_table, look_up, pack, sized, step},
    probe::Probe,
};

/// Positions that go through the products together: enough to read each weight seldom, few enough to stay in
/// a processor's cache and to be cancelled between.
const CHUNK: usize = 64;

/// A decoder with its weights in the layout of the kernels.
pub struct LlamaModel {
    weights: LlamaWeights<Packed>,
    /// Makes the logits, where the tokens' vectors do.
    tied: Option<Packed>,
}

fn packed(
    layer: LlamaLayer,
    width: usize,
    (heads, kv_heads): (usize, usize),
    head_dim: usize,
) -> Result<LlamaLayer<Packed>, ArithmeticError> {
    let (queries, keys, inner) = (heads * head_dim, kv_heads * head_dim, layer.up.outputs);
    let norms = layer
        .head_norms
        .iter()
        .flat_map(|norms| [&norms.query, &norms.key]);
    if norms.into_iter().any(|norm| norm.weight.len() != head_dim) {
        return Err(ArithmeticError::Shape);
    }
    let [attention_smoothing, output_smoothing] =
        [&layer.attention_smoothing, &layer.output_smoothing].map(Option::as_ref);
    let [mlp_smoothing, down_smoothing] = [&layer.mlp_smoothing, &layer.down_smoothing].map(Option::as_ref);
    Ok(LlamaLayer {
        query: pack(&layer.query, width, queries, attention_smoothing)?,
        key: pack(&layer.key, width, keys, attention_smoothing)?,
        value: pack(&layer.value, width, keys, attention_smoothing)?,
        head_norms: layer.head_norms,
        output: pack(&layer.output, queries, width, output_smoothing)?,
        gate: pack(&layer.gate, width, inner, mlp_smoothing)?,
        up: pack(&layer.up, width, inner, mlp_smoothing)?,
        down: pack(&layer.down, inner, width, down_smoothing)?,
        attention_norm: layer.attention_norm,
        attention_smoothing: layer.attention_smoothing,
        output_smoothing: layer.output_smoothing,
        mlp_norm: layer.mlp_norm,
        mlp_smoothing: layer.mlp_smoothing,
        down_smoothing: layer.down_smoothing,
    })
}

/// A sequence's keys and values, and the memory of its passes.
pub struct Sequence {
    caches: Vec<Cache>,
    len: usize,
    state: Vec<f32>,
    normed: Vec<f32>,
    sum: Vec<f32>,
    query: Vec<f32>,
    key: Vec<f32>,
    value: Vec<f32>,
    query_heads: Heads,
    key_heads: Heads,
    value_heads: Heads,
    attended: Vec<f32>,
    gate: Vec<f32>,
    up: Vec<f32>,
    rows: Rows,
}

impl Sequence {
    /// An empty sequence with room for so many positions, but no more than the model has.
    pub fn new(model: &LlamaModel, positions: usize) -> Self {
        let cache = Cache::new(
            model.weights.kv_heads,
            model.weights.head_dim,
            positions.min(model.weights.context),
        );
        Self {
            caches: vec![cache; model.weights.layers.len()],
            len: 0,
            state: Vec::new(),
            normed: Vec::new(),
            sum: Vec::new(),
            query: Vec::new(),
            key: Vec::new(),
            value: Vec::new(),
            query_heads: Heads::default(),
            key_heads: Heads::default(),
            value_heads: Heads::default(),
            attended: Vec::new(),
            gate: Vec::new(),
            up: Vec::new(),
            rows: Rows::new(model.weights.tokens.q.precision()),
        }
    }

    /// Positions in it.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The last layer's states of the positions that were added last.
    pub fn states(&self) -> &[f32] {
        &self.state
    }
}

impl LlamaModel {
    /// Lays the weights out. Their lengths must fit together, as a reader of model files makes sure.
    ///
    /// # Errors
    /// [`ArithmeticError::Shape`] when they do not.
    pub fn new(weights: LlamaWeights) -> Result<Self, ArithmeticError> {
        let width = weights.tokens.width;
        let (heads, head_dim) = ((weights.heads, weights.kv_heads), weights.head_dim);
        let fits = width > 0
            && weights.context > 0
            && weights.kv_heads > 0
            && head_dim > 0
            && weights.heads.is_multiple_of(weights.kv_heads)
            && weights.head_dim == 2 * weights.turns.len();
        if !fits || weights.layers.is_empty() {
            return Err(ArithmeticError::Shape);
        }
        check_table(&weights.tokens, width)?;
        let (head, tied) = match &weights.head {
            Some(head) => (Some(pack(head, width, weights.tokens.rows, None)?), None),
            None => (None, Some(Packed::from_table(&weights.tokens)?)),
        };
        let layers = weights.layers.into_iter();
        let weights = LlamaWeights {
            heads: weights.heads,
            kv_heads: weights.kv_heads,
            head_dim: weights.head_dim,
            context: weights.context,
            turns: weights.turns,
            tokens: weights.tokens,
            layers: layers
                .map(|layer| packed(layer, width, heads, head_dim))
                .collect::<Result<_, _>>()?,
            norm: weights.norm,
            head,
        };
        Ok(Self { weights, tied })
    }

    /// What it was made of.
    pub(crate) fn weights(&self) -> &LlamaWeights<Packed> {
        &self.weights
    }

    /// Numbers in a state.
    pub fn width(&self) -> usize {
        self.weights.tokens.width
    }

    /// Numbers in a position's key, and in its value.
    pub fn kv_width(&self) -> usize {
        self.weights.kv_heads * self.weights.head_dim
    }

    /// Number of transformer layers.
    pub fn layers(&self) -> usize {
        self.weights.layers.len()
    }

    /// Most positions of a sequence.
    pub fn context(&self) -> usize {
        self.weights.context
    }

    /// Size of the vocabulary.
    pub fn vocabulary(&self) -> usize {
        self.weights.tokens.rows
    }

    /// How its traces are cut.
    pub fn trace_shape(&self) -> TraceShape {
        // A file's dimensions are far smaller than either type.
        let shape = TraceShape::llama(
            self.layers() as u32,
            self.width() as u32,
            self.weights.kv_heads as u32,
            self.weights.head_dim as u32,
        );
        TraceShape {
            family: self.weights.family(),
            ..shape
        }
    }

    /// How many positions to add at a time.
    pub fn chunk(&self) -> usize {
        CHUNK
    }

    /// Adds tokens to a sequence; [`Sequence::states`] then has theirs.
    ///
    /// # Errors
    /// [`ArithmeticError::Shape`] for no tokens, unknown ones, or more than there is room for; the faults of
    /// the arithmetic. The sequence is of no use afterwards.
    pub fn forward(
        &self,
        sequence: &mut Sequence,
        tokens: &[u32],
        probe: &mut impl Probe,
    ) -> Result<(), ArithmeticError> {
        let width = self.width();
        if tokens.is_empty() || sequence.caches.len() != self.weights.layers.len() {
            return Err(ArithmeticError::Shape);
        }
        let state = sized(&mut sequence.state, tokens.len() * width);
        for (token, row) in tokens.iter().zip(state.chunks_exact_mut(width)) {
            look_up(&self.weights.tokens, *token, row, |_, value| value)?;
        }
        probe.real(step(0, Op::Embed), state, width);
        for (index, layer) in self.weights.layers.iter().enumerate() {
            self.attention_part(index, layer, sequence, probe)?;
            self.mlp_part(index, layer, sequence, probe)?;
        }
        sequence.len += tokens.len();
        Ok(())
    }

    fn attention_part(
        &self,
        index: usize,
        layer: &LlamaLayer<Packed>,
        sequence: &mut Sequence,
        probe: &mut impl Probe,
    ) -> Result<(), ArithmeticError> {
        let (width, queries, keys) = (
            self.width(),
            self.weights.heads * self.weights.head_dim,
            self.kv_width(),
        );
        let (of_queries, of_keys) = (
            (self.weights.heads, self.weights.head_dim),
            (self.weights.kv_heads, self.weights.head_dim),
        );
        let first = sequence.len;
        let first_position = u32::try_from(first).map_err(|_| ArithmeticError::Shape)?;
        let cache = sequence.caches.get_mut(index).ok_or(ArithmeticError::Shape)?;
        let (state, query) = (&mut sequence.state, &mut sequence.query);
        let (key, value) = (&mut sequence.key, &mut sequence.value);
        let mut pass = Pass {
            layer: index,
            rows: &mut sequence.rows,
            probe,
        };
        let normed = sized(&mut sequence.normed, state.len());
        kernels::rms_norm(state, &layer.attention_norm, normed)?;
        pass.real(Op::AttentionInput, normed, width);
        pass.quantize(Op::QuantQkv, normed, width, layer.attention_smoothing.as_deref())?;
        pass.product(Op::Query, &layer.query, query)?;
        pass.product(Op::Key, &layer.key, key)?;
        pass.product(Op::Value, &layer.value, value)?;
        if let Some(norms) = &layer.head_norms {
            let spare = &mut sequence.attended;
            pass.norm_heads(Op::NormQuery, query, (&norms.query, queries), spare)?;
            pass.norm_heads(Op::NormKey, key, (&norms.key, keys), spare)?;
        }
        kernels::rotate(query, self.weights.heads, &self.weights.turns, first_position)?;
        pass.real(Op::RotateQuery, query, queries);
        kernels::rotate(key, self.weights.kv_heads, &self.weights.turns, first_position)?;
        pass.real(Op::RotateKey, key, keys);
        pass.heads(Op::QuantQuery, query, of_queries, &mut sequence.query_heads)?;
        pass.heads(Op::QuantKey, key, of_keys, &mut sequence.key_heads)?;
        pass.heads(Op::QuantValue, value, of_keys, &mut sequence.value_heads)?;
        cache.append(sequence.key_heads.all(), sequence.value_heads.all())?;
        let attended = sized(&mut sequence.attended, query.len());
        kernels::attention(
            sequence.query_heads.all(),
            cache,
            Mask::Causal { first },
            attended,
        )?;
        pass.real(Op::Attention, attended, queries);
        pass.quantize(
            Op::QuantOutput,
            attended,
            queries,
            layer.output_smoothing.as_deref(),
        )?;
        pass.product(Op::Output, &layer.output, &mut sequence.sum)?;
        kernels::add(state, &sequence.sum)?;
        pass.real(Op::AttentionSum, state, width);
        Ok(())
    }

    fn mlp_part(
        &self,
        index: usize,
        layer: &LlamaLayer<Packed>,
        sequence: &mut Sequence,
        probe: &mut impl Probe,
    ) -> Result<(), ArithmeticError> {
        let (width, inner) = (self.width(), layer.up.outputs());
        let (state, gate) = (&mut sequence.state, &mut sequence.gate);
        let mut pass = Pass {
            layer: index,
            rows: &mut sequence.rows,
            probe,
        };
        let normed = sized(&mut sequence.normed, state.len());
        kernels::rms_norm(state, &layer.mlp_norm, normed)?;
        pass.real(Op::MlpInput, normed, width);
        pass.quantize(Op::QuantMlp, normed, width, layer.mlp_smoothing.as_deref())?;
        pass.product(Op::Gate, &layer.gate, gate)?;
        pass.product(Op::Up, &layer.up, &mut sequence.up)?;
        kernels::swiglu(gate, &sequence.up)?;
        pass.real(Op::Activation, gate, inner);
        pass.quantize(Op::QuantDown, gate, inner, layer.down_smoothing.as_deref())?;
        pass.product(Op::Down, &layer.down, &mut sequence.sum)?;
        kernels::add(state, &sequence.sum)?;
        pass.real(Op::Sum, state, width);
        Ok(())
    }

    /// A logit for each token, for each of some states of the last layer.
    ///
    /// # Errors
    /// [`ArithmeticError::Shape`] for states of another width; the faults of the arithmetic.
    pub fn logits(&self, states: &[f32], logits: &mut Vec<f32>) -> Result<(), ArithmeticError> {
        let width = self.width();
        let mut normed = vec![0.0; states.len()];
        kernels::rms_norm(states, &self.weights.norm, &mut normed)?;
        let mut rows = Rows::new(self.weights.tokens.q.precision());
        rows.quantize(&normed, width, None)?;
        let head = self.weights.head.as_ref().or(self.tied.as_ref());
        let head = head.ok_or(ArithmeticError::Shape)?;
        kernels::product(&rows, head, sized(logits, rows.count() * head.outputs()))
    }
}
