//! Keys and values of a sequence, wherever they are.

use std::{any::Any, ops::Range};

use surety_kernels::Cache;

use super::{backend::Standing, llama::LlamaModel};

/// A sequence's keys and values, layer by layer.
pub(super) struct KvCache {
    layers: Kept,
    len: usize,
}

/// Where they are.
enum Kept {
    Processor(Vec<Cache>),
    /// What a device's backend makes of it, and whose memory that is.
    Device(Box<dyn Any + Send + Sync>, Standing),
}

impl KvCache {
    /// An empty one with room for so many positions, but no more than the model has. Memory is taken as they
    /// come.
    pub(super) fn new(model: &LlamaModel, positions: usize) -> Self {
        let weights = model.weights();
        let cache = Cache::new(weights.kv_heads, weights.head_dim, positions.min(weights.context));
        Self::of_processor(vec![cache; weights.layers.len()], 0)
    }

    /// With so many positions in each layer.
    pub(super) fn of_processor(layers: Vec<Cache>, len: usize) -> Self {
        let layers = Kept::Processor(layers);
        Self { layers, len }
    }

    /// With so many positions, in a device's memory.
    pub(super) fn of_device(layers: impl Any + Send + Sync, device: Standing, len: usize) -> Self {
        let layers = Kept::Device(Box::new(layers), device);
        Self { layers, len }
    }

    /// The layers, where the processor has them.
    pub(super) fn on_processor(&self) -> Option<&Vec<Cache>> {
        match &self.layers {
            Kept::Processor(layers) => Some(layers),
            Kept::Device(..) => None,
        }
    }

    /// The same.
    pub(super) fn processor_mut(&mut self) -> Option<&mut Vec<Cache>> {
        match &mut self.layers {
            Kept::Processor(layers) => Some(layers),
            Kept::Device(..) => None,
        }
    }

    /// The device whose memory they are in, if they are.
    pub(super) fn device(&self) -> Option<&Standing> {
        match &self.layers {
            Kept::Processor(_) => None,
            Kept::Device(_, device) => Some(device),
        }
    }

    /// Whether both are in one place.
    pub(super) fn is_with(&self, other: &Self) -> bool {
        match (self.device(), other.device()) {
            (Some(one), Some(other)) => one.is(other),
            (one, other) => one.is_none() && other.is_none(),
        }
    }

    /// What this device's backend made.
    pub(super) fn on_device<T: Any>(&self, device: &Standing) -> Option<&T> {
        match &self.layers {
            Kept::Device(layers, own) if own.is(device) => layers.downcast_ref(),
            _ => None,
        }
    }

    /// The same.
    pub(super) fn device_mut<T: Any>(&mut self, device: &Standing) -> Option<&mut T> {
        match &mut self.layers {
            Kept::Device(layers, own) if own.is(device) => layers.downcast_mut(),
            _ => None,
        }
    }

    /// So many positions were added to each layer.
    pub(super) fn grow(&mut self, positions: usize) {
        self.len += positions;
    }

    /// Positions in it.
    pub(super) fn len(&self) -> usize {
        self.len
    }
}

/// What a pass adds to one of its sequences.
pub(super) struct Piece<'a> {
    pub(super) kv: &'a mut KvCache,
    pub(super) tokens: &'a [u32],
    /// The states of so many of the last tokens are needed afterwards.
    pub(super) states: usize,
    /// Whether the likeliest token behind the last one is, too:
    /// [`Decoder::chooses`](super::backend::Decoder).
    pub(super) chooses: bool,
}

/// The last row of each piece that chooses a token.
pub(super) fn choosing_rows(pieces: &[Piece<'_>]) -> impl Iterator<Item = usize> {
    let mut end = 0;
    pieces.iter().filter_map(move |piece| {
        end += piece.tokens.len();
        piece.chooses.then(|| end.saturating_sub(1))
    })
}

/// The rows whose states are needed of a pass.
pub(super) fn state_rows(pieces: &[Piece<'_>]) -> impl Iterator<Item = usize> {
    let mut end = 0;
    pieces.iter().flat_map(move |piece| {
        end += piece.tokens.len();
        end - piece.states.min(piece.tokens.len())..end
    })
}

/// Each piece, and which of all rows are its own.
pub(super) fn row_ranges<'a, 'p>(
    pieces: &'a mut [Piece<'p>],
) -> impl Iterator<Item = (&'a mut Piece<'p>, Range<usize>)> {
    let mut end = 0;
    pieces.iter_mut().map(move |piece| {
        let start = end;
        end += piece.tokens.len();
        (piece, start..end)
    })
}
