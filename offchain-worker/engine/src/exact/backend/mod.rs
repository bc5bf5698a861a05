//! What exact models run on: the processor, or a device.
//!
//! A backend takes a whole pass of a model: `docs/adr/0043-a-backend-takes-a-pass.md`. The model in the
//! processor's memory stays, whatever runs it: a device is held against it, and disputes read its weights.

mod answers;
mod choice;
mod copies;
mod cuda;
mod device;

use std::sync::Arc;

use surety_exact::ArithmeticError;

use super::{
    bert::{BertModel, Scratch},
    kv::{KvCache, Piece},
    llama::{LlamaModel, Workspace},
    probe::Probe,
};

pub use answers::Patience;
pub use choice::{Choice, ChoiceError};
pub(super) use copies::{Copies, Runs};
use cuda::CudaBackend;
pub(super) use device::Standing;
pub use device::{Device, Devices, Dropped};

/// Why a pass gave nothing.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum Fault {
    /// The numbers have no canonical result, or do not fit together. Every honest machine finds the same.
    #[error("there is no canonical result: {0:?}")]
    Arithmetic(ArithmeticError),
    /// A device failed. That says nothing of the task.
    #[error("{device}: {error}")]
    Device {
        /// What a person knows it by.
        device: String,
        error: surety_cuda::Error,
    },
}

impl From<ArithmeticError> for Fault {
    fn from(fault: ArithmeticError) -> Self {
        Self::Arithmetic(fault)
    }
}

/// Where the weights of exact models are, and what their passes run on.
pub(super) trait Backend: Send + Sync {
    /// An encoder, its weights uploaded.
    fn encoder(&self, model: &Arc<BertModel>) -> Result<Arc<dyn Encoder>, Fault>;

    /// A decoder, its weights uploaded.
    fn decoder(&self, model: &Arc<LlamaModel>) -> Result<Arc<dyn Decoder>, Fault>;
}

/// The passes of an encoder.
pub(super) trait Encoder: Send + Sync {
    /// Rows that are worth a pass: more are cut, at sequences.
    fn batch_rows(&self) -> usize;

    /// [`BertModel::embed`]. `scratch` is for passes on the processor.
    fn embed(
        &self,
        sequences: &[&[u32]],
        scratch: &mut Scratch,
        probe: &mut dyn Probe,
    ) -> Result<Vec<f32>, Fault>;
}

/// The passes of a decoder.
pub(super) trait Decoder: Send + Sync {
    /// Positions of one sequence that are worth a pass.
    fn chunk_rows(&self) -> usize;

    /// An empty sequence's keys and values, for so many positions, but no more than the model has.
    fn kv(&self, positions: usize) -> KvCache;

    /// Whether its passes choose the likeliest tokens behind their rows. Otherwise no piece may ask for one.
    fn chooses(&self) -> bool {
        false
    }

    /// [`LlamaModel::forward_together`]: the states that are needed are the workspace's then, in the
    /// processor's memory, and so are the tokens that were chosen.
    fn forward_together(
        &self,
        pieces: &mut [Piece<'_>],
        workspace: &mut Workspace,
        probe: &mut dyn Probe,
    ) -> Result<(), Fault>;

    /// [`LlamaModel::logits`].
    fn logits(&self, states: &[f32], logits: &mut Vec<f32>) -> Result<(), Fault>;

    /// The same keys and values again.
    fn copy(&self, kv: &KvCache) -> Result<KvCache, Fault>;

    /// Those of so many first positions, as the processor has them; nothing where it has them already.
    fn to_processor(&self, kv: &KvCache, positions: usize) -> Result<Option<KvCache>, Fault>;
}

/// Enough rows to read each weight seldom, few enough to stay in a processor's cache.
const BATCH_ROWS: usize = 96;

impl Encoder for BertModel {
    fn batch_rows(&self) -> usize {
        BATCH_ROWS
    }

    fn embed(
        &self,
        sequences: &[&[u32]],
        scratch: &mut Scratch,
        mut probe: &mut dyn Probe,
    ) -> Result<Vec<f32>, Fault> {
        Ok(Self::embed(self, sequences, scratch, &mut probe)?)
    }
}

impl Decoder for LlamaModel {
    fn chunk_rows(&self) -> usize {
        self.chunk()
    }

    fn kv(&self, positions: usize) -> KvCache {
        KvCache::new(self, positions)
    }

    fn forward_together(
        &self,
        pieces: &mut [Piece<'_>],
        workspace: &mut Workspace,
        mut probe: &mut dyn Probe,
    ) -> Result<(), Fault> {
        Ok(Self::forward_together(self, pieces, workspace, &mut probe)?)
    }

    fn logits(&self, states: &[f32], logits: &mut Vec<f32>) -> Result<(), Fault> {
        Ok(Self::logits(self, states, logits)?)
    }

    fn copy(&self, kv: &KvCache) -> Result<KvCache, Fault> {
        let layers = kv.on_processor().ok_or(ArithmeticError::Shape)?;
        Ok(KvCache::of_processor(layers.clone(), kv.len()))
    }

    fn to_processor(&self, _: &KvCache, _: usize) -> Result<Option<KvCache>, Fault> {
        Ok(None)
    }
}
