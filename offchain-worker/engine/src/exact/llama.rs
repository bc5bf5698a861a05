//! The forward pass of an exact decoder: RMS norm, rotary positions, grouped attention, SwiGLU; with Qwen 3
//! a norm of every head of queries and keys.
//!
//! A position's numbers depend on the tokens up to it and on nothing else, so a prompt in chunks of any
//! length, one token at a time, or a prompt together with its continuation all give the same bits.

use std::mem;

use rayon::prelude::*;
use surety_exact::ArithmeticError;
use surety_kernels::{self as kernels, Cache, HeadRows, Heads, Mask, Packed, Rows};
use surety_model_trace::{Op, TraceShape};
use surety_models::weights::{LlamaLayer, LlamaWeights};

use super::{
    kv::{KvCache, Piece, row_ranges, state_rows},
    pass::{Pass, check_table, look_up, pack, sized, step},
    probe::Probe,
};

/// Positions that go through the products together: enough to read each weight seldom, few enough to stay in
/// a processor's cache and to be cancelled between.
const CHUNK: usize = 64;

/// Multiplications of attention that are worth waking another thread.
const TASK: usize = 1 << 20;

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

/// The memory of passes. Reuse one: it keeps it.
pub(super) struct Workspace {
    state: Vec<f32>,
    chosen: Vec<u32>,
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

impl Workspace {
    pub(super) fn new(model: &LlamaModel) -> Self {
        Self {
            state: Vec::new(),
            chosen: Vec::new(),
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

    /// The last layer's states of the last pass: those that were needed of each piece, one after the other.
    pub(super) fn states(&self) -> &[f32] {
        &self.state
    }

    /// Where those of a pass go that was a device's.
    pub(super) fn states_mut(&mut self) -> &mut Vec<f32> {
        &mut self.state
    }

    /// The tokens that the last pass has chosen, one for each piece that was to.
    pub(super) fn chosen(&self) -> &[u32] {
        &self.chosen
    }

    /// Where those of a pass go that was a device's.
    pub(super) fn chosen_mut(&mut self) -> &mut Vec<u32> {
        &mut self.chosen
    }
}

/// One sequence's part of a layer's attention.
struct Attending<'a> {
    queries: HeadRows<'a>,
    cache: &'a Cache,
    first: usize,
    out: &'a mut [f32],
}

impl Attending<'_> {
    fn run(self) -> Result<(), ArithmeticError> {
        let mask = Mask::Causal { first: self.first };
        kernels::attention(self.queries, self.cache, mask, self.out)
    }
}

/// A sequence's keys and values, and the memory of its passes.
pub struct Sequence {
    kv: KvCache,
    workspace: Workspace,
}

impl Sequence {
    /// An empty sequence with room for so many positions, but no more than the model has.
    pub fn new(model: &LlamaModel, positions: usize) -> Self {
        Self::behind(model, KvCache::new(model, positions))
    }

    /// One that has these keys and values.
    pub(super) fn behind(model: &LlamaModel, kv: KvCache) -> Self {
        Self {
            kv,
            workspace: Workspace::new(model),
        }
    }

    pub(super) fn kv(&self) -> &KvCache {
        &self.kv
    }

    pub(super) fn parts(&mut self) -> (&mut KvCache, &mut Workspace) {
        (&mut self.kv, &mut self.workspace)
    }

    /// Positions in it.
    pub fn len(&self) -> usize {
        self.kv.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.kv.len() == 0
    }

    /// The last layer's states of the positions that were added last, or of those of them that were asked
    /// for.
    pub fn states(&self) -> &[f32] {
        self.workspace.states()
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

    /// What makes the logits.
    pub(super) fn head(&self) -> Result<&Packed, ArithmeticError> {
        let head = self.weights.head.as_ref().or(self.tied.as_ref());
        head.ok_or(ArithmeticError::Shape)
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
        let piece = Piece {
            kv: &mut sequence.kv,
            tokens,
            states: tokens.len(),
            chooses: false,
        };
        self.forward_together(&mut [piece], &mut sequence.workspace, probe)
    }

    /// Adds tokens to several sequences, with each weight read once for all of them; [`Workspace::states`]
    /// then has their states, and `probe` has seen their rows, one sequence after the other.
    ///
    /// # Errors
    /// As for [`LlamaModel::forward`], when one of the sequences has it. None has grown then, and each takes
    /// *the same tokens* once more, alone, as if nothing had been: so whose fault it is can be found out.
    pub(super) fn forward_together(
        &self,
        pieces: &mut [Piece<'_>],
        workspace: &mut Workspace,
        probe: &mut impl Probe,
    ) -> Result<(), ArithmeticError> {
        let width = self.width();
        let layers = self.weights.layers.len();
        let has_layers = |kv: &KvCache| kv.on_processor().is_some_and(|kept| kept.len() == layers);
        let fits = |piece: &Piece<'_>| !piece.tokens.is_empty() && !piece.chooses && has_layers(piece.kv);
        if pieces.is_empty() || !pieces.iter().all(fits) {
            return Err(ArithmeticError::Shape);
        }
        let rows = pieces.iter().map(|piece| piece.tokens.len()).sum::<usize>();
        let state = sized(&mut workspace.state, rows * width);
        let tokens = pieces.iter().flat_map(|piece| piece.tokens);
        for (token, row) in tokens.zip(state.chunks_exact_mut(width)) {
            look_up(&self.weights.tokens, *token, row, |_, value| value)?;
        }
        probe.real(step(0, Op::Embed), state, width);
        for (index, layer) in self.weights.layers.iter().enumerate() {
            self.attention_part(index, layer, pieces, workspace, probe)?;
            self.mlp_part(index, layer, workspace, probe)?;
        }
        let mut needed = 0;
        for (to, from) in state_rows(pieces).enumerate() {
            needed = to + 1;
            workspace
                .state
                .copy_within(from * width..(from + 1) * width, to * width);
        }
        workspace.state.truncate(needed * width);
        for piece in pieces {
            piece.kv.grow(piece.tokens.len());
        }
        Ok(())
    }

    fn attention_part(
        &self,
        index: usize,
        layer: &LlamaLayer<Packed>,
        pieces: &mut [Piece<'_>],
        workspace: &mut Workspace,
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
        let (state, query) = (&mut workspace.state, &mut workspace.query);
        let (key, value) = (&mut workspace.key, &mut workspace.value);
        let mut pass = Pass {
            layer: index,
            rows: &mut workspace.rows,
            probe,
        };
        let normed = sized(&mut workspace.normed, state.len());
        kernels::rms_norm(state, &layer.attention_norm, normed)?;
        pass.real(Op::AttentionInput, normed, width);
        pass.quantize(Op::QuantQkv, normed, width, layer.attention_smoothing.as_deref())?;
        pass.product(Op::Query, &layer.query, query)?;
        pass.product(Op::Key, &layer.key, key)?;
        pass.product(Op::Value, &layer.value, value)?;
        if let Some(norms) = &layer.head_norms {
            let spare = &mut workspace.attended;
            pass.norm_heads(Op::NormQuery, query, (&norms.query, queries), spare)?;
            pass.norm_heads(Op::NormKey, key, (&norms.key, keys), spare)?;
        }
        self.rotate(pieces, query, self.weights.heads)?;
        pass.real(Op::RotateQuery, query, queries);
        self.rotate(pieces, key, self.weights.kv_heads)?;
        pass.real(Op::RotateKey, key, keys);
        pass.heads(Op::QuantQuery, query, of_queries, &mut workspace.query_heads)?;
        pass.heads(Op::QuantKey, key, of_keys, &mut workspace.key_heads)?;
        pass.heads(Op::QuantValue, value, of_keys, &mut workspace.value_heads)?;
        let heads = (
            &workspace.query_heads,
            &workspace.key_heads,
            &workspace.value_heads,
        );
        let out = sized(&mut workspace.attended, query.len());
        attend_together(index, pieces, heads, out, queries)?;
        let attended = &mut workspace.attended;
        pass.real(Op::Attention, attended, queries);
        pass.quantize(
            Op::QuantOutput,
            attended,
            queries,
            layer.output_smoothing.as_deref(),
        )?;
        pass.product(Op::Output, &layer.output, &mut workspace.sum)?;
        kernels::add(state, &workspace.sum)?;
        pass.real(Op::AttentionSum, state, width);
        Ok(())
    }

    /// Rotates so many heads of each row, by its position in its sequence.
    fn rotate(
        &self,
        pieces: &mut [Piece<'_>],
        rows: &mut [f32],
        heads: usize,
    ) -> Result<(), ArithmeticError> {
        let width = heads * self.weights.head_dim;
        for (piece, range) in row_ranges(pieces) {
            let first = u32::try_from(piece.kv.len()).map_err(|_| ArithmeticError::Shape)?;
            let own = rows.get_mut(range.start * width..range.end * width);
            let own = own.ok_or(ArithmeticError::Shape)?;
            kernels::rotate(own, heads, &self.weights.turns, first)?;
        }
        Ok(())
    }

    fn mlp_part(
        &self,
        index: usize,
        layer: &LlamaLayer<Packed>,
        workspace: &mut Workspace,
        probe: &mut impl Probe,
    ) -> Result<(), ArithmeticError> {
        let (width, inner) = (self.width(), layer.up.outputs());
        let (state, gate) = (&mut workspace.state, &mut workspace.gate);
        let mut pass = Pass {
            layer: index,
            rows: &mut workspace.rows,
            probe,
        };
        let normed = sized(&mut workspace.normed, state.len());
        kernels::rms_norm(state, &layer.mlp_norm, normed)?;
        pass.real(Op::MlpInput, normed, width);
        pass.quantize(Op::QuantMlp, normed, width, layer.mlp_smoothing.as_deref())?;
        pass.product(Op::Gate, &layer.gate, gate)?;
        pass.product(Op::Up, &layer.up, &mut workspace.up)?;
        kernels::swiglu(gate, &workspace.up)?;
        pass.real(Op::Activation, gate, inner);
        pass.quantize(Op::QuantDown, gate, inner, layer.down_smoothing.as_deref())?;
        pass.product(Op::Down, &layer.down, &mut workspace.sum)?;
        kernels::add(state, &workspace.sum)?;
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
        let head = self.head()?;
        kernels::product(&rows, head, sized(logits, rows.count() * head.outputs()))
    }
}

/// Adds a layer's new keys and values to each sequence's cache, and has its queries attend to what is there
/// then. `out` has rows of so many numbers.
fn attend_together(
    layer: usize,
    pieces: &mut [Piece<'_>],
    (queries, keys, values): (&Heads, &Heads, &Heads),
    mut out: &mut [f32],
    width: usize,
) -> Result<(), ArithmeticError> {
    let mut attending = Vec::with_capacity(pieces.len());
    for (piece, rows) in row_ranges(pieces) {
        let first = piece.kv.len();
        let layers = piece.kv.processor_mut();
        let cache = layers.and_then(|layers| layers.get_mut(layer));
        let cache = cache.ok_or(ArithmeticError::Shape)?;
        let (Some(keys), Some(values)) = (keys.rows(rows.clone()), values.rows(rows.clone())) else {
            return Err(ArithmeticError::Shape);
        };
        if cache.len() == first {
            cache.append(keys, values)?;
        } else if cache.len() != first + rows.len() {
            // All of them are there already where another sequence made a pass fail: the same bits.
            return Err(ArithmeticError::Shape);
        }
        let (own, rest) = mem::take(&mut out)
            .split_at_mut_checked(rows.len() * width)
            .ok_or(ArithmeticError::Shape)?;
        out = rest;
        attending.push(Attending {
            queries: queries.rows(rows).ok_or(ArithmeticError::Shape)?,
            cache,
            first,
            out: own,
        });
    }
    attend(attending)
}

/// Every sequence's attention, on all threads when there is work for them.
fn attend(all: Vec<Attending<'_>>) -> Result<(), ArithmeticError> {
    let work = |one: &Attending<'_>| one.out.len() * one.cache.len();
    let total: usize = all.iter().map(work).sum();
    if all.len() == 1 || total < 2 * TASK || rayon::current_num_threads() == 1 {
        return all.into_iter().try_for_each(Attending::run);
    }
    all.into_par_iter().try_for_each(Attending::run)
}
