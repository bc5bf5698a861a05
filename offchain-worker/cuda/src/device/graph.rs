//! Launches that a device was given before.

use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaGraph};

use super::memory::bind;

/// Launches as the driver has recorded them.
pub struct Graph {
    pub(super) recorded: CudaGraph,
    pub(super) context: Arc<CudaContext>,
}

impl Drop for Graph {
    fn drop(&mut self) {
        // `CudaGraph` destroys it on the context of this thread.
        self.context.record_err(bind(&self.context));
    }
}

impl std::fmt::Debug for Graph {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Graph")
    }
}

// SAFETY: the driver asks that a graph is used by one thread at a time, whichever. It is reached only through
// the device that records and replays it, by `&mut`, and only its owner drops it.
unsafe impl Send for Graph {}
