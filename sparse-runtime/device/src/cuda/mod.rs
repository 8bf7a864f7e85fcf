//! NVIDIA GPUs: their memory, streams and graphs, and the compiler of their kernels.
//!
//! [`Gpu`] is one GPU that was opened. Nothing of CUDA is needed to build: the driver is loaded
//! when a GPU is opened, and the compiler of kernels (NVRTC) when the first kernel is not in the
//! [cache](Gpu::open). Without them the errors of [`CudaError`] say so.

mod compile;
mod download;
mod error;
mod formula;
mod gpu;
mod graph;
mod kernel;
mod launch;
mod memory;
mod pinned;
mod probe;
mod signature;
mod stream;
mod upload;

pub use compile::{Code, Compiled, Source, Unit, Word, compile, text_of_files};
pub use download::Download;
pub use error::CudaError;
pub use formula::{expression, formula, formula_of_numbers, numbers};
pub use gpu::{Destination, Gpu};
pub use graph::Replay;
pub use kernel::Kernel;
pub use launch::{Blocks, Launch, MOST_SIDES};
pub use memory::{CudaBuffer, CudaSlice};
pub use probe::{CudaDeviceInfo, CudaInfo, probe};
pub use upload::{Layout, Span, Upload};
