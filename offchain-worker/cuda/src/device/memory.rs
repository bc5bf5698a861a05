//! Pieces of a device's memory, and waiting for its work, on whichever thread.

use cudarc::driver::{self, CudaContext, CudaEvent, CudaSlice, CudaStream, DriverError};

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

/// Waits for an event. It has been waited for where this gives no error, whatever has failed elsewhere: see
/// [`bind`].
pub(super) fn wait(event: &CudaEvent) -> Result<(), DriverError> {
    bind(event.context())?;
    // SAFETY: the event is there.
    unsafe { driver::result::event::synchronize(event.cu_event()) }
}

/// The same for all that a stream was given.
pub(super) fn wait_for_all(stream: &CudaStream) -> Result<(), DriverError> {
    bind(stream.context())?;
    // SAFETY: the stream is there.
    unsafe { driver::result::stream::synchronize(stream.cu_stream()) }
}
