//! Pieces of a device's memory, and waiting for its work, on whichever thread.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use cudarc::driver::{
    self, CudaContext, CudaEvent, CudaSlice, CudaStream, DriverError,
    sys::{CUresult, cuStreamQuery},
};

use super::failed;
use crate::{
    Error,
    patience::{self, ANSWER_MAX},
};

/// A piece of a device's memory. Any thread may drop it.
#[derive(Debug)]
pub struct DevicePiece(pub(super) CudaSlice<u8>);

impl Drop for DevicePiece {
    fn drop(&mut self) {
        // `CudaSlice` frees it on the context of this thread, which has none where it has never worked with
        // the device: the memory would be lost, and the next call would be told that it failed.
        let context = self.0.context();
        context.record_err(bind(context));
    }
}

/// Makes a context this thread's own. [`CudaContext::bind_to_thread`] does not where the drop of something
/// has failed before: it returns that, once.
pub(super) fn bind(context: &CudaContext) -> Result<(), DriverError> {
    // SAFETY: the context is there as long as what names it.
    unsafe { driver::result::ctx::set_current(context.cu_ctx()) }
}

/// Whether a device has answered so far. The driver's own waits have no end: here it is asked again and
/// again, for [`ANSWER_MAX`], and never after it has let that pass.
#[derive(Clone, Debug, Default)]
pub(super) struct Answers(Arc<AtomicBool>);

impl Answers {
    /// Fails once the device has not answered.
    pub(super) fn given(&self) -> Result<(), Error> {
        if self.0.load(Ordering::Relaxed) {
            let seconds = ANSWER_MAX.as_secs();
            return Err(Error::Lost(format!("it has not answered for {seconds} s")));
        }
        Ok(())
    }

    /// Waits for an event. It has been waited for where this gives no error, whatever has failed elsewhere:
    /// see [`bind`].
    pub(super) fn wait(&self, event: &CudaEvent) -> Result<(), Error> {
        bind(event.context()).map_err(failed)?;
        // SAFETY: the event is there.
        self.wait_until(|| unsafe { driver::result::event::query(event.cu_event()) })
    }

    /// The same for all that a stream was given.
    pub(super) fn wait_for_all(&self, stream: &CudaStream) -> Result<(), Error> {
        bind(stream.context()).map_err(failed)?;
        // SAFETY: the stream is there.
        self.wait_until(|| unsafe { cuStreamQuery(stream.cu_stream()) }.result())
    }

    fn wait_until(&self, mut query: impl FnMut() -> Result<(), DriverError>) -> Result<(), Error> {
        self.given()?;
        let is_done = || match query() {
            Ok(()) => Ok(true),
            Err(DriverError(CUresult::CUDA_ERROR_NOT_READY)) => Ok(false),
            Err(error) => Err(failed(error)),
        };
        if !patience::wait(ANSWER_MAX, is_done)? {
            self.0.store(true, Ordering::Relaxed);
        }
        self.given()
    }
}
