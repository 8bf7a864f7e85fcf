//! Errors of opening a GPU and of work on it.

use cudarc::driver::{result, sys};
use cudarc::nvrtc::sys::nvrtcResult;
use std::borrow::Cow;

/// Why there is no GPU to use, or why work on it failed.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CudaError {
    /// The driver's library cannot be loaded.
    #[error(
        "the CUDA driver library ({}) cannot be loaded: install NVIDIA's driver, or put its folder on the library path; \
         everything but the GPU works without it",
        LIBRARY
    )]
    LibraryMissing,
    /// The driver is there, but no GPU.
    #[error(
        "the CUDA driver is installed, but it sees no GPU: check `nvidia-smi`, `CUDA_VISIBLE_DEVICES` and, in a \
         container, that the GPU is passed in"
    )]
    NoDevice,
    /// There is no GPU of this number.
    #[error("there is no GPU {ordinal}: the driver sees {count}, numbered from 0")]
    NoSuchDevice {
        /// The number asked for.
        ordinal: usize,
        /// How many there are.
        count: usize,
    },
    /// The driver serves an older CUDA than kernels are launched with.
    #[error(
        "the CUDA driver serves CUDA {}.{}, and {}.{} is the oldest that is used: install a newer driver",
        found.0, found.1, needed.0, needed.1
    )]
    DriverTooOld {
        /// The newest CUDA version that the driver serves: major and minor.
        found: (u32, u32),
        /// The oldest that is used.
        needed: (u32, u32),
    },
    /// The GPU does not allocate in the order of a stream, as some virtual ones do not.
    #[error(
        "GPU {ordinal} has no memory pools, from which arrays are allocated: use a GPU of its own, not a virtual one"
    )]
    NoMemoryPools {
        /// The GPU.
        ordinal: usize,
    },
    /// The driver refused a call.
    #[error(
        "the CUDA driver refused `{call}` with {code:?}: check `nvidia-smi`, and that driver and kernel module match"
    )]
    Driver {
        /// The call.
        call: &'static str,
        /// What it returned.
        code: sys::CUresult,
    },
    /// The GPU has less memory left than was asked for. What was allocated before is as it was.
    #[error(
        "there are no {bytes} bytes left on the GPU for {what}: use smaller batches, or drop arrays that are no longer needed"
    )]
    OutOfMemory {
        /// What the memory was for: part of an array, or a kernel.
        what: Cow<'static, str>,
        /// How much was asked for.
        bytes: usize,
    },
    /// The host has less memory left than was asked for that does not move, from which a GPU copies
    /// by itself.
    #[error(
        "there are no {bytes} bytes of pinned memory left on the host for {what}: use smaller batches"
    )]
    PinnedOutOfMemory {
        /// What the memory was for.
        what: Cow<'static, str>,
        /// How much was asked for.
        bytes: usize,
    },
    /// Arrays could not be copied to the GPU. What is on the host is as it was.
    #[error("{} could not be copied to the GPU: {code:?}", names(arrays))]
    Copy {
        /// The arrays.
        arrays: Box<[&'static str]>,
        /// What the driver returned.
        code: sys::CUresult,
    },
    /// The compiler of kernels cannot be loaded.
    #[error(
        "the compiler of CUDA kernels (libnvrtc) cannot be loaded: install the CUDA toolkit or the Python package \
         `nvidia-cuda-nvrtc`, and put its folder on the library path"
    )]
    CompilerMissing,
    /// The compiler refused a call that compiles nothing yet.
    #[error(
        "the compiler of CUDA kernels refused `{call}` with {code:?}: check that libnvrtc and libnvrtc-builtins are of one version"
    )]
    Compiler {
        /// The call.
        call: &'static str,
        /// What it returned.
        code: nvrtcResult,
    },
    /// A kernel does not compile.
    #[error(
        "`{file}` does not compile for {architecture}; please report this with the compiler's words: {log}"
    )]
    Compile {
        /// The file of the kernel.
        file: &'static str,
        /// What it was compiled for: `sm_90`.
        architecture: Box<str>,
        /// What the compiler says.
        log: Box<str>,
    },
    /// A kernel could not be launched.
    #[error("the kernel `{kernel}` could not be launched: {code:?}")]
    Launch {
        /// The kernel.
        kernel: &'static str,
        /// What the driver returned.
        code: sys::CUresult,
    },
    /// A kernel failed while it ran. Arrays on the GPU are lost, what is on the host is not.
    #[error(
        "{code:?} on the GPU, in {}: arrays on it are lost; with `Gpu::wait_for_each_kernel` the error names one kernel",
        named(kernels, copies)
    )]
    Kernel {
        /// The kernels that ran since the last synchronisation, each name once, the newest last.
        kernels: Box<[&'static str]>,
        /// The arrays whose copies it may have been instead, which were asked for since then.
        copies: Box<[&'static str]>,
        /// What the driver returned.
        code: sys::CUresult,
    },
    /// An operand is on another opened GPU than the one that should work with it.
    #[error(
        "an operand is on GPU {found}, which was opened by itself, and GPU {expected} is to work with it: open a GPU once and clone \
         it, or move the array by `to_cpu` and `to_gpu`"
    )]
    AnotherGpu {
        /// The number of the one it is on.
        found: usize,
        /// The number of the one it should be on.
        expected: usize,
    },
    /// More entries than positions on the GPU can count.
    #[error(
        "{what} has {count} entries, and a kernel counts up to {}: use smaller batches",
        u32::MAX
    )]
    TooManyEntries {
        /// What.
        what: &'static str,
        /// How many there are.
        count: usize,
    },
}

sparse_core::debug_of_errors!(CudaError);

const LIBRARY: &str = if cfg!(windows) { "nvcuda.dll" } else { "libcuda.so" };

fn named(kernels: &[&'static str], copies: &[&'static str]) -> String {
    let kernel = match kernels {
        [] if copies.is_empty() => return "a copy".to_owned(),
        [] => return format!("a copy of {}", names(copies)),
        [_] => names(kernels),
        _ => format!("one of {}", names(kernels)),
    };
    match copies {
        [] => kernel,
        _ => format!("{kernel}, or a copy of {}", names(copies)),
    }
}

fn names(names: &[&'static str]) -> String {
    format!("`{}`", names.join("`, `"))
}

/// The error of a call that the driver refused. The driver's own texts are not asked for: that is
/// one more call which may fail.
pub(super) fn refused(call: &'static str) -> impl Fn(result::DriverError) -> CudaError {
    move |error| match error.0 {
        sys::CUresult::CUDA_ERROR_NO_DEVICE => CudaError::NoDevice,
        code => CudaError::Driver { call, code },
    }
}
