//! Kernels that were loaded, and the modules of the driver that they are in.

use super::CudaError;
use super::error::refused;
use cudarc::driver::{result, sys};
use std::ffi::CString;
use std::fmt;
use std::sync::Arc;

/// A kernel on the GPU.
pub struct Kernel {
    pub(super) name: &'static str,
    /// The types that it takes, words filled in.
    pub(super) parameters: Vec<String>,
    pub(super) function: sys::CUfunction,
    /// What the function is in.
    pub(super) _module: Arc<Module>,
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernel").field("name", &self.name).finish_non_exhaustive()
    }
}

// SAFETY: a function may be launched from any thread as long as its module is there, which
// `_module` sees to.
unsafe impl Send for Kernel {}
// SAFETY: as above.
unsafe impl Sync for Kernel {}

/// A module of the driver's, there as long as a kernel of it is.
pub(super) struct Module {
    handle: sys::CUmodule,
}

// SAFETY: a module may be used from any thread.
unsafe impl Send for Module {}
// SAFETY: as above; the driver has locks of its own.
unsafe impl Sync for Module {}

impl Drop for Module {
    fn drop(&mut self) {
        // SAFETY: loaded once, and no kernel of it is left. A failure leaves nothing to be done.
        let _ = unsafe { result::module::unload(self.handle) };
    }
}

impl Module {
    pub(super) fn load(image: &[u8]) -> Result<Self, CudaError> {
        // SAFETY: the image is what the compiler made, which says itself how long it is.
        let handle = unsafe { result::module::load_data(image.as_ptr().cast()) }
            .map_err(refused("cuModuleLoadData"))?;
        Ok(Module { handle })
    }

    pub(super) fn function(&self, name: &'static str) -> Result<sys::CUfunction, CudaError> {
        let not_found =
            CudaError::Launch { kernel: name, code: sys::CUresult::CUDA_ERROR_NOT_FOUND };
        let Ok(text) = CString::new(name) else { return Err(not_found) };
        // SAFETY: the module is loaded.
        unsafe { result::module::get_function(self.handle, text) }
            .map_err(|error| CudaError::Launch { kernel: name, code: error.0 })
    }
}
