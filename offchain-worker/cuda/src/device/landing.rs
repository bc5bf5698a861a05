//! Where what is read beside a device's work arrives.

use std::sync::Arc;

use cudarc::driver::{CudaEvent, PinnedHostSlice};

use super::{failed, too_large};
use crate::{Error, backend::Landing};

/// Page-locked memory of the computer.
#[derive(Debug)]
pub struct PinnedLanding {
    pub(super) memory: PinnedHostSlice<u8>,
    /// The end of what was copied into it last.
    pub(super) arrived: Arc<CudaEvent>,
}

impl Landing for PinnedLanding {
    fn room(&self) -> usize {
        self.memory.len()
    }

    fn wait(&mut self, bytes: usize) -> Result<&[u8], Error> {
        self.arrived.synchronize().map_err(failed)?;
        let all = self.memory.as_slice().map_err(failed)?;
        all.get(..bytes).ok_or_else(too_large)
    }
}

impl Drop for PinnedLanding {
    fn drop(&mut self) {
        // The device may still write into it. Where it has vanished it does not.
        self.arrived.synchronize().ok();
    }
}
