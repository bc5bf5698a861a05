//! Where what is read beside a device's work arrives.

use std::{mem::ManuallyDrop, sync::Arc};

use cudarc::driver::{self, CudaContext, CudaEvent, DevicePtr, PinnedHostSlice, sys::CUevent_flags};

use super::{
    failed, fits,
    memory::{Answers, DevicePiece, bind},
    too_large,
};
use crate::{Error, backend::Landing};

/// Page-locked memory of the computer.
#[derive(Debug)]
pub struct PinnedLanding {
    memory: ManuallyDrop<PinnedHostSlice<u8>>,
    answers: Answers,
    /// The work that what is copied into it waits for.
    pub(super) worked: CudaEvent,
    /// The end of what was copied into it last.
    pub(super) arrived: Arc<CudaEvent>,
    /// Whether a copy was begun whose end nothing tells.
    is_open: bool,
}

impl PinnedLanding {
    /// With all that a copy into it needs: none of it is asked for once work is under way.
    pub(super) fn new(context: &Arc<CudaContext>, answers: &Answers, bytes: usize) -> Result<Self, Error> {
        // A processor reads it: not write-combined. SAFETY: it is filled before it is read.
        let memory = unsafe { context.alloc_pinned_with_flags::<u8>(bytes, 0) };
        let mut memory = memory.map_err(|error| match failed(error) {
            lost @ Error::Lost(_) => lost,
            _ => Error::PinnedMemory(bytes),
        })?;
        let refused = |error| no_copies(failed(error));
        memory.as_mut_slice().map_err(refused)?.fill(0);
        let event = || {
            let event = context.new_event(Some(CUevent_flags::CU_EVENT_DISABLE_TIMING));
            event.map_err(refused)
        };
        Ok(Self {
            memory: ManuallyDrop::new(memory),
            answers: answers.clone(),
            worked: event()?,
            arrived: Arc::new(event()?),
            is_open: false,
        })
    }

    /// Begins to copy into it, on a stream beside the work.
    pub(super) fn copy(
        &mut self,
        from: &[(&DevicePiece, usize)],
        copies: &driver::CudaStream,
    ) -> Result<(), Error> {
        let mut rest = self.memory.as_mut_slice().map_err(failed)?;
        self.is_open = true;
        let mut begin = || -> Result<(), Error> {
            bind(copies.context()).map_err(failed)?;
            for (DevicePiece(memory), bytes) in from {
                fits(*bytes, memory)?;
                let (now, later) = std::mem::take(&mut rest)
                    .split_at_mut_checked(*bytes)
                    .ok_or_else(too_large)?;
                let (address, _) = memory.device_ptr(copies);
                // SAFETY: both are as large as that, and stay until the event below: this waits for it before
                // it is dropped, and callers keep the memory until then.
                unsafe { driver::result::memcpy_dtoh_async(now, address, copies.cu_stream()) }
                    .map_err(failed)?;
                rest = later;
            }
            Ok(())
        };
        let begun = begin();
        // Also after a part of them.
        if let Err(error) = self.arrived.record(copies) {
            // Nothing tells their end: both sides' memory is the caller's again when this returns.
            self.is_open = self.answers.wait_for_all(copies).is_err();
            return Err(failed(error));
        }
        self.is_open = false;
        begun
    }
}

/// What is refused to copies alone: all else goes on, through ordinary memory.
pub(super) fn no_copies(error: Error) -> Error {
    match error {
        lost @ Error::Lost(_) => lost,
        refused => Error::NoCopies(refused.to_string()),
    }
}

impl Landing for PinnedLanding {
    fn room(&self) -> usize {
        self.memory.len()
    }

    fn wait(&mut self, bytes: usize) -> Result<&[u8], Error> {
        if self.is_open {
            return Err(Error::Lost("it does not tell when a copy has ended".into()));
        }
        self.answers.wait(&self.arrived)?;
        let all = self.memory.as_slice().map_err(failed)?;
        all.get(..bytes).ok_or_else(too_large)
    }
}

impl Drop for PinnedLanding {
    fn drop(&mut self) {
        // A device that has not answered may still write into it: it is nobody's then.
        if !self.is_open && self.answers.wait(&self.arrived).is_ok() {
            // SAFETY: nobody uses it after this.
            unsafe { ManuallyDrop::drop(&mut self.memory) }
        }
    }
}
