//! [`LlamaModel::forward_together`] on a device: rows of all sequences go through everything together, and
//! each attends to its own sequence's keys and values, which stay there.

mod layer;
mod needed;
mod workspace;

use std::sync::{Arc, Mutex};

use surety_cuda::{
    Cache, Floats, GpuBackend, Kernels, Numbers, Packed, Pages, Rotation, SequenceRows, Sequences, Slot,
};
use surety_exact::ArithmeticError;
use surety_kernels::Heads as HeadsHere;
use surety_model_trace::Op;

use super::{
    super::{Decoder, Fault},
    Machine, NormThere, Shared, linear, locked, pass,
    placed::Placed,
    product, products,
    shown::{Left, Looking},
    shown_pass, table,
};
use crate::exact::{
    kv::{KvCache, Piece, choosing_rows, state_rows},
    llama::{LlamaModel, Workspace as WorkspaceHere},
    probe::Probe,
};
use layer::Layer;
use needed::{Gathered, some_of};
use workspace::Workspace;

/// Positions of a prompt that go through together. On an H200 a decoder of 1.1 billion parameters takes 11 %
/// more of them a second than by 512, and 11 % less than by 2,048. Rows of a trace take memory, and others
/// wait for as long as a pass.
const CHUNK_ROWS: usize = 1024;

struct Model<M: GpuBackend> {
    tokens: Packed<M>,
    turns: Floats<M>,
    layers: Vec<Layer<M>>,
    norm: NormThere<M>,
    head: Packed<M>,
    /// Of the last pass: the next one writes its own there, so that all that read it are given the same
    /// address.
    numbers: Option<Numbers<M>>,
    placed: Placed<M>,
    workspace: Workspace<M>,
}

/// A sequence's keys and values on the device; no pages before the first pass.
struct Sequence<M: GpuBackend> {
    cache: Cache<M>,
    /// Most positions.
    most: usize,
}

/// A decoder on a device.
pub(super) struct CudaLlama<M: GpuBackend> {
    kernels: Arc<Shared<M>>,
    model: Mutex<Model<M>>,
    /// Of the keys and values of all its sequences.
    pages: Pages<M>,
    here: Arc<LlamaModel>,
}

impl<M: Machine> CudaLlama<M> {
    pub(super) fn new(kernels: Arc<Shared<M>>, model: &Arc<LlamaModel>) -> Result<Self, Fault> {
        let weights = model.weights();
        let head = model.head()?;
        let pages = Pages::new(weights.layers.len(), weights.kv_heads, weights.head_dim)?;
        let there = pass(&kernels, |kernels| {
            Ok(Model {
                tokens: table(kernels, &weights.tokens)?,
                turns: kernels.turns(&weights.turns)?,
                layers: weights
                    .layers
                    .iter()
                    .map(|layer| Layer::new(kernels, layer))
                    .collect::<Result<_, _>>()?,
                norm: NormThere::new(kernels, &weights.norm)?,
                head: linear(kernels, head)?,
                numbers: None,
                placed: Placed::default(),
                workspace: Workspace::new(weights.tokens.q.precision()),
            })
        })?;
        Ok(Self {
            kernels,
            model: Mutex::new(there),
            pages,
            here: model.clone(),
        })
    }

    /// Numbers in a row of queries, and in one of keys.
    fn widths(&self) -> (usize, usize) {
        let weights = self.here.weights();
        (weights.heads * weights.head_dim, self.here.kv_width())
    }

    /// The keys and values of a piece, which have to be on this device.
    fn sequence_of<'a>(&self, piece: &'a Piece<'_>) -> Result<&'a Sequence<M>, ArithmeticError> {
        let found = piece.kv.on_device(&self.kernels.standing);
        found.ok_or(ArithmeticError::Shape)
    }

    /// The same.
    fn sequence_mut<'a>(&self, piece: &'a mut Piece<'_>) -> Result<&'a mut Sequence<M>, ArithmeticError> {
        let found = piece.kv.device_mut(&self.kernels.standing);
        found.ok_or(ArithmeticError::Shape)
    }

    /// Takes pages for the rows of a pass. What sequences hold stays where it is.
    fn make_room(
        &self,
        kernels: &mut Kernels<M>,
        pieces: &mut [Piece<'_>],
    ) -> Result<(), surety_cuda::Error> {
        for piece in pieces {
            let positions = piece.kv.len().saturating_add(piece.tokens.len());
            let sequence = self.sequence_mut(piece)?;
            if positions > sequence.most {
                return Err(ArithmeticError::Shape.into());
            }
            kernels.reserve(&mut sequence.cache, positions)?;
        }
        Ok(())
    }

    /// The whole pass: what it shows, and where in it is what is needed here.
    fn run(
        &self,
        kernels: &mut Kernels<M>,
        model: &mut Model<M>,
        pieces: &mut [Piece<'_>],
        (probe, slot): (&dyn Probe, Slot<M::Landing>),
    ) -> Result<(Left<M::Landing>, Gathered), surety_cuda::Error> {
        let width = self.here.width();
        let Model {
            tokens: table,
            turns,
            layers,
            norm,
            head,
            numbers,
            placed,
            workspace,
        } = model;
        workspace.shown.clear();
        let (mut tokens, mut positions, mut sequences) = (Vec::new(), Vec::new(), Vec::new());
        self.make_room(kernels, pieces)?;
        for piece in pieces.iter() {
            let (first, rows) = (piece.kv.len(), piece.tokens.len());
            let cache = &self.sequence_of(piece)?.cache;
            sequences.push(SequenceRows { cache, rows, first });
            let first = u32::try_from(first).map_err(|_| ArithmeticError::Shape)?;
            tokens.extend_from_slice(piece.tokens);
            positions.extend((first..).zip(piece.tokens).map(|(position, _)| position));
        }
        placed.place(kernels, &positions, &sequences)?;
        kernels.numbers_in(numbers, &tokens)?;
        let rows = tokens.len();
        let needed = some_of(kernels, state_rows(pieces), rows, &mut workspace.needed)?;
        let choosing = some_of(kernels, choosing_rows(pieces), rows, &mut workspace.choosing)?;
        let numbers = numbers.as_ref().ok_or(ArithmeticError::Shape)?;
        let state = kernels.sized(&mut workspace.state, tokens.len() * width)?;
        kernels.embed(table, numbers, state)?;
        let looking = Looking { probe, layer: 0 };
        workspace.shown.begin(kernels, probe, (tokens.len(), 0))?;
        workspace
            .shown
            .real(kernels, looking, (Op::Embed, state, width))?;
        let last = layers.len().saturating_sub(1);
        for (index, layer) in layers.iter().enumerate() {
            let looking = Looking { probe, layer: index };
            self.project(kernels, layer, workspace, (turns, placed, pieces), looking)?;
            self.attend(kernels, layer, workspace, (pieces, placed.sequences()?), looking)?;
            self.attention_output(kernels, layer, workspace, looking)?;
            self.mlp_part(kernels, layer, workspace, looking)?;
        }
        let Workspace {
            state, sum, shown, ..
        } = &mut *workspace;
        let (state, sum) = state.as_mut().zip(sum.as_ref()).ok_or(ArithmeticError::Shape)?;
        kernels.add(state, sum)?;
        let looking = Looking { probe, layer: last };
        shown.record(kernels, looking, (Op::Sum, state, width))?;
        shown.real(kernels, looking, (Op::Sum, state, width))?;
        let gathered = needed::gather(kernels, (norm, head), workspace, (needed, choosing), width)?;
        Ok((workspace.shown.leave(kernels, slot)?, gathered))
    }

    /// From the states, to which those behind the first layer still add what the last one gave, to quantized
    /// queries, keys and values, of which those of keys and values are added to each sequence's cache.
    fn project(
        &self,
        kernels: &mut Kernels<M>,
        layer: &Layer<M>,
        workspace: &mut Workspace<M>,
        (turns, placed, pieces): (&Floats<M>, &Placed<M>, &mut [Piece<'_>]),
        looking: Looking<'_>,
    ) -> Result<(), surety_cuda::Error> {
        let ((queries, keys), width) = (self.widths(), self.here.width());
        let weights = self.here.weights();
        let (heads, kv_heads, head_dim) = (weights.heads, weights.kv_heads, weights.head_dim);
        let Workspace {
            state,
            normed,
            sum,
            query,
            key,
            value,
            heads: [query_heads, key_heads, value_heads],
            attended: spare,
            rows,
            shown,
            ..
        } = workspace;
        let state = state.as_mut().ok_or(ArithmeticError::Shape)?;
        let mut normed = match looking.wants(Op::AttentionInput) {
            true => Some(kernels.sized(normed, state.len())?),
            false => None,
        };
        let before = looking.layer_before();
        let added = before.and(sum.as_ref());
        let into = (layer.attention_smoothing.as_ref(), &mut *rows);
        let traced = before.and_then(|before| shown.state_in_rows(before, Op::Sum));
        layer.attention_norm.quantize(
            kernels,
            (&mut *state, added, traced.as_ref()),
            normed.as_deref_mut(),
            into,
        )?;
        if let Some(before) = before {
            shown.real(kernels, before, (Op::Sum, state, width))?;
        }
        if let Some(normed) = normed {
            shown.real(kernels, looking, (Op::AttentionInput, normed, width))?;
        }
        let out = [
            kernels.sized(query, placed.count * queries)?,
            kernels.sized(key, placed.count * keys)?,
            kernels.sized(value, placed.count * keys)?,
        ];
        products(kernels, rows, [&layer.query, &layer.key, &layer.value], out)?;
        for (op, out, width) in [
            (Op::Query, &*query, queries),
            (Op::Key, &*key, keys),
            (Op::Value, &*value, keys),
        ] {
            let out = out.as_ref().ok_or(ArithmeticError::Shape)?;
            shown.real(kernels, looking, (op, out, width))?;
        }
        layer.norm_heads(kernels, [&mut *query, &mut *key], spare, (&mut *shown, looking))?;
        let [query, key, value] = [query, key, value].map(Option::as_mut);
        let (query, (key, value)) = query.zip(key.zip(value)).ok_or(ArithmeticError::Shape)?;
        let rotation = Rotation {
            turns,
            positions: placed.positions()?,
            keeps: looking.wants(Op::RotateQuery) || looking.wants(Op::RotateKey),
        };
        let parts = [
            (&mut *query, heads, &mut *query_heads),
            (&mut *key, kv_heads, &mut *key_heads),
            (value, kv_heads, &mut *value_heads),
        ];
        let traced = shown.heads_in_rows(looking);
        let caches = pieces
            .iter_mut()
            .map(|piece| Ok(&mut self.sequence_mut(piece)?.cache));
        let mut caches: Vec<&mut Cache<M>> = caches.collect::<Result<_, ArithmeticError>>()?;
        // Where another sequence made a pass fail they may be there already: the same bits.
        let behind = (placed.sequences()?, &mut caches[..], looking.layer);
        kernels.rotate_quantize(parts, head_dim, Some(&rotation), traced.as_ref(), Some(behind))?;
        shown.real(kernels, looking, (Op::RotateQuery, query, queries))?;
        shown.heads(kernels, looking, (Op::QuantQuery, query_heads, (heads, head_dim)))?;
        shown.real(kernels, looking, (Op::RotateKey, key, keys))?;
        shown.heads(kernels, looking, (Op::QuantKey, key_heads, (kv_heads, head_dim)))?;
        shown.heads(
            kernels,
            looking,
            (Op::QuantValue, value_heads, (kv_heads, head_dim)),
        )
    }

    /// Has each sequence's queries attend to what is in its cache, and quantizes what comes out.
    fn attend(
        &self,
        kernels: &mut Kernels<M>,
        layer: &Layer<M>,
        workspace: &mut Workspace<M>,
        (pieces, sequences): (&[Piece<'_>], &Sequences<M>),
        looking: Looking<'_>,
    ) -> Result<(), surety_cuda::Error> {
        let (queries, _) = self.widths();
        let Workspace {
            query,
            heads: [query_heads, ..],
            attended,
            rows,
            shown,
            ..
        } = workspace;
        let values = query.as_ref().map_or(0, Floats::len);
        let attended = kernels.sized(attended, values)?;
        let caches = pieces.iter().map(|piece| Ok(&self.sequence_of(piece)?.cache));
        let caches: Vec<&Cache<M>> = caches.collect::<Result<_, ArithmeticError>>()?;
        let into = (&mut *attended, Some((layer.output_smoothing.as_ref(), rows)));
        kernels.attend_sequences(sequences, query_heads, &caches, looking.layer, into)?;
        shown.real(kernels, looking, (Op::Attention, attended, queries))
    }

    fn attention_output(
        &self,
        kernels: &mut Kernels<M>,
        layer: &Layer<M>,
        workspace: &mut Workspace<M>,
        looking: Looking<'_>,
    ) -> Result<(), surety_cuda::Error> {
        let (width, (queries, _)) = (self.here.width(), self.widths());
        let Workspace {
            sum,
            attended,
            rows,
            shown,
            ..
        } = workspace;
        let attended = attended.as_ref().ok_or(ArithmeticError::Shape)?;
        let sum = product(kernels, (rows, attended.len() / queries), &layer.output, sum)?;
        shown.real(kernels, looking, (Op::Output, sum, width))
    }

    /// All but adding what comes out to the states: the next layer does that.
    fn mlp_part(
        &self,
        kernels: &mut Kernels<M>,
        layer: &Layer<M>,
        workspace: &mut Workspace<M>,
        looking: Looking<'_>,
    ) -> Result<(), surety_cuda::Error> {
        let (width, inner) = (self.here.width(), layer.up.outputs());
        let Workspace {
            state,
            normed,
            sum,
            gate,
            up,
            rows,
            shown,
            ..
        } = workspace;
        let state = state.as_mut().ok_or(ArithmeticError::Shape)?;
        let count = state.len() / width;
        let mut normed = match looking.wants(Op::MlpInput) {
            true => Some(kernels.sized(normed, state.len())?),
            false => None,
        };
        let into = (layer.mlp_smoothing.as_ref(), &mut *rows);
        layer.mlp_norm.quantize(
            kernels,
            (&mut *state, sum.as_ref(), None),
            normed.as_deref_mut(),
            into,
        )?;
        shown.real(kernels, looking, (Op::AttentionSum, state, width))?;
        if let Some(normed) = normed {
            shown.real(kernels, looking, (Op::MlpInput, normed, width))?;
        }
        let gate = kernels.sized(gate, count * inner)?;
        let up = kernels.sized(up, count * inner)?;
        products(kernels, rows, [&layer.gate, &layer.up], [&mut *gate, &mut *up])?;
        shown.real(kernels, looking, (Op::Gate, gate, inner))?;
        shown.real(kernels, looking, (Op::Up, up, inner))?;
        let is_kept = looking.wants(Op::Activation);
        let by = (inner, layer.down_smoothing.as_ref());
        kernels.swiglu_quantize((&mut *gate, up), is_kept, by, rows)?;
        shown.real(kernels, looking, (Op::Activation, gate, inner))?;
        let sum = product(kernels, (rows, count), &layer.down, sum)?;
        shown.real(kernels, looking, (Op::Down, sum, width))
    }
}

impl<M: Machine> Decoder for CudaLlama<M> {
    fn chunk_rows(&self) -> usize {
        CHUNK_ROWS
    }

    fn kv(&self, positions: usize) -> KvCache {
        let sequence = Sequence::<M> {
            cache: self.pages.cache(),
            most: positions.min(self.here.context()),
        };
        KvCache::of_device(sequence, self.kernels.standing.clone(), 0)
    }

    fn chooses(&self) -> bool {
        true
    }

    fn forward_together(
        &self,
        pieces: &mut [Piece<'_>],
        workspace: &mut WorkspaceHere,
        probe: &mut dyn Probe,
    ) -> Result<(), Fault> {
        if pieces.is_empty() || pieces.iter().any(|piece| piece.tokens.is_empty()) {
            return Err(ArithmeticError::Shape.into());
        }
        let (mut left, gathered) = shown_pass(&self.kernels, |kernels, slot| {
            self.run(kernels, &mut locked(&self.model), pieces, (&*probe, slot))
        })?;
        // Others may have the device while this arrives and is looked at.
        let arrived = self.kernels.arrived(&mut left)?;
        arrived.reals_into(&gathered.states, workspace.states_mut())?;
        arrived.words_into(&gathered.chosen, workspace.chosen_mut())?;
        let is_there = |token: &u32| (*token as usize) < self.here.vocabulary();
        if !workspace.chosen().iter().all(is_there) {
            let error = surety_cuda::Error::Device("it has chosen a token that there is not".into());
            return Err(self.kernels.standing.fault(error));
        }
        arrived.show(probe)?;
        for piece in pieces {
            piece.kv.grow(piece.tokens.len());
        }
        Ok(())
    }

    fn logits(&self, states: &[f32], logits: &mut Vec<f32>) -> Result<(), Fault> {
        let (mut left, at) = shown_pass(&self.kernels, |kernels, slot| {
            let mut model = locked(&self.model);
            let Model {
                norm,
                head,
                workspace,
                ..
            } = &mut *model;
            let width = self.here.width();
            let states = kernels.upload_in(&mut workspace.last, states)?;
            let count = states.len() / width;
            norm.quantize(kernels, (states, None, None), None, (None, &mut workspace.rows))?;
            let out = product(kernels, (&workspace.rows, count), head, &mut workspace.logits)?;
            workspace.shown.clear();
            let at = workspace.shown.gather(kernels, out)?;
            Ok((workspace.shown.leave(kernels, slot)?, at))
        })?;
        self.kernels.arrived(&mut left)?.reals_into(&at, logits)?;
        Ok(())
    }

    fn copy(&self, kv: &KvCache) -> Result<KvCache, Fault> {
        let sequence: &Sequence<M> = kv
            .on_device(&self.kernels.standing)
            .ok_or(ArithmeticError::Shape)?;
        let cache = pass(&self.kernels, |kernels| kernels.copy_cache(&sequence.cache))?;
        let most = self.here.context();
        let standing = self.kernels.standing.clone();
        Ok(KvCache::of_device(Sequence { cache, most }, standing, kv.len()))
    }

    fn to_processor(&self, kv: &KvCache, positions: usize) -> Result<Option<KvCache>, Fault> {
        let sequence: &Sequence<M> = kv
            .on_device(&self.kernels.standing)
            .ok_or(ArithmeticError::Shape)?;
        let mut first = KvCache::new(&self.here, self.here.context());
        let weights = self.here.weights();
        let shape = (weights.kv_heads, weights.head_dim);
        let own = first.processor_mut().ok_or(ArithmeticError::Shape)?;
        for (layer, own) in own.iter_mut().enumerate() {
            let kept = |kernels: &mut Kernels<M>| kernels.kept(&sequence.cache, layer, positions);
            let [keys, values] = pass(&self.kernels, kept)?;
            let keys = HeadsHere::from_parts(shape, &keys.q, keys.scales)?;
            let values = HeadsHere::from_parts(shape, &values.q, values.scales)?;
            own.append(keys.all(), values.all())?;
        }
        first.grow(positions);
        Ok(Some(first))
    }
}
