//! Pinned memory of the host, which a GPU reads and writes by itself.

use super::CudaError;
use super::error::refused;
use cudarc::driver::{result, sys};
use std::borrow::Cow;
use std::ffi::c_void;
use std::ptr::NonNull;

/// Memory of the host that does not move, from which and to which a GPU copies by itself.
pub(super) struct Pinned {
    pub(super) start: NonNull<u8>,
    pub(super) bytes: usize,
}

// SAFETY: owned memory.
unsafe impl Send for Pinned {}
// SAFETY: written only where it is borrowed exclusively.
unsafe impl Sync for Pinned {}

impl Pinned {
    /// All 0. The text of `what` is asked for where there is not enough.
    pub(super) fn allocate(
        bytes: usize,
        what: impl FnOnce() -> Cow<'static, str>,
    ) -> Result<Self, CudaError> {
        // SAFETY: the memory is written before it is read, just below.
        let start = match unsafe { result::malloc_host(bytes, 0) } {
            Ok(start) => start.cast::<u8>(),
            Err(result::DriverError(sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY)) => {
                return Err(CudaError::PinnedOutOfMemory { what: what(), bytes });
            }
            Err(error) => return Err(refused("cuMemHostAlloc")(error)),
        };
        let Some(start) = NonNull::new(start) else {
            return Err(CudaError::PinnedOutOfMemory { what: what(), bytes });
        };
        // SAFETY: there are so many bytes.
        unsafe { start.write_bytes(0, bytes) };
        Ok(Pinned { start, bytes })
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // SAFETY: allocated by `allocate`, and no copy reads or writes it, for which its owner
        // waited. A failure leaves nothing to be done.
        let _ = unsafe { result::free_host(self.start.as_ptr().cast::<c_void>()) };
    }
}
