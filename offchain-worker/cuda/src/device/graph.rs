//! Launches that a device was given before.

use cudarc::driver::CudaGraph;

/// Launches as the driver has recorded them.
pub struct Graph(pub(super) CudaGraph);

impl std::fmt::Debug for Graph {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Graph")
    }
}

// SAFETY: the driver asks that a graph is used by one thread at a time, whichever. It is reached only through
// the device that records and replays it, by `&mut`, and only its owner drops it.
unsafe impl Send for Graph {}
