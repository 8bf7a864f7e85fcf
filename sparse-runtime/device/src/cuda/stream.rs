//! CUDA streams and events.

use super::CudaError;
use super::error::refused;
use cudarc::driver::{result, sys};

/// Work that is done in the order in which it is asked for. Each call is preceded by the GPU's
/// `enter` on its thread.
pub(super) struct Stream {
    pub(super) handle: sys::CUstream,
}

// SAFETY: a stream may be used from any thread.
unsafe impl Send for Stream {}
// SAFETY: as above; the driver has locks of its own.
unsafe impl Sync for Stream {}

impl Stream {
    pub(super) fn open() -> Result<Self, CudaError> {
        let handle = result::stream::create(result::stream::StreamKind::NonBlocking)
            .map_err(refused("cuStreamCreate"))?;
        Ok(Stream { handle })
    }

    /// The calling thread waits until all is done that was asked for. What failed is the error.
    pub(super) fn synchronize(&self) -> Result<(), sys::CUresult> {
        // SAFETY: the stream is there as long as its owner.
        unsafe { result::stream::synchronize(self.handle) }.map_err(|error| error.0)
    }

    /// What is asked for from now on waits for an event, as far as it was recorded before this
    /// call.
    pub(super) fn wait(&self, event: &Event) -> Result<(), CudaError> {
        let flags = sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
        // SAFETY: stream and event are there as long as their owners.
        unsafe { result::stream::wait_event(self.handle, event.handle, flags) }
            .map_err(refused("cuStreamWaitEvent"))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // SAFETY: created by `open`, and nobody has it any more. What was asked for is done before
        // the driver frees it.
        let _ = unsafe { result::stream::destroy(self.handle) };
    }
}

/// A place in a stream, which others can wait for. One that was never recorded is one that was
/// reached.
pub(super) struct Event {
    handle: sys::CUevent,
}

// SAFETY: an event may be used from any thread.
unsafe impl Send for Event {}
// SAFETY: as above; the driver has locks of its own.
unsafe impl Sync for Event {}

impl Event {
    pub(super) fn new() -> Result<Self, CudaError> {
        // Without times, which would cost.
        let handle = result::event::create(sys::CUevent_flags::CU_EVENT_DISABLE_TIMING)
            .map_err(refused("cuEventCreate"))?;
        Ok(Event { handle })
    }

    /// Becomes the place of a stream that is reached when all is done that was asked of it so far.
    pub(super) fn record(&self, stream: &Stream) -> Result<(), CudaError> {
        // SAFETY: stream and event are there as long as their owners.
        unsafe { result::event::record(self.handle, stream.handle) }
            .map_err(refused("cuEventRecord"))
    }

    /// The calling thread waits until the place is reached. What failed in the stream before it is
    /// the error.
    pub(super) fn synchronize(&self) -> Result<(), sys::CUresult> {
        // SAFETY: the event is there as long as its owner.
        unsafe { result::event::synchronize(self.handle) }.map_err(|error| error.0)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: created by `new`, and nobody has it any more; a stream that waits for it goes on
        // doing so.
        let _ = unsafe { result::event::destroy(self.handle) };
    }
}
