//! NVIDIA GPUs: the device `Cuda`.
//!
//! [`Cuda`] is the device in the types of arrays: a `Dense<f32, Cuda>` lies in the memory of a GPU,
//! and code for arrays of the host does not accept it. [`Gpu`] is an opened GPU: its stream, its
//! memory, and its compiled kernels. Arrays move by `to_gpu` and `to_cpu`, never implicitly.
//!
//! Nothing of CUDA is needed to build: the driver is loaded when a GPU is opened, and the compiler
//! of kernels (NVRTC) when the first kernel is not in the [cache](Gpu::open). Without them
//! [`CudaError`] says so.
//!
//! Work on a GPU is done in order, some time later. Batches of a model are copied beside it, and
//! kernels that read them wait. A kernel that fails therefore does not report it itself:
//! [`Gpu::synchronize`] and every `to_cpu` report the first failure since the last of them, with
//! the kernel's name, and work after a failure is not done.
//!
//! ```
//! use sparse_runtime::device::cuda::{CudaError, Gpu};
//! use sparse_runtime::formats::Dense;
//! # fn main() -> Result<(), sparse_runtime::Error> {
//! let x = Dense::from_rows(&[[1.0f32, 2.0], [3.0, 4.0]]);
//! match Gpu::open(0) {
//!     Ok(gpu) => assert_eq!(x.to_gpu(&gpu)?.to_cpu()?, x),
//!     Err(CudaError::LibraryMissing | CudaError::NoDevice) => println!("computing on the CPU"),
//!     Err(other) => return Err(other.into()),
//! }
//! # Ok(())
//! # }
//! ```

mod column_ids;
mod compile;
mod download;
mod error;
mod gpu;
mod graph;
mod launch;
mod memory;
mod pinned;
mod probe;
mod signature;
mod stream;
mod upload;

pub use column_ids::{CudaColumnIds, CudaColumnIdsSlice};
pub(crate) use compile::text_of;
pub use compile::{Code, Compiled, RecurrencePart, Unit, Word, compile};
pub(crate) use download::Download;
pub use error::CudaError;
pub(crate) use gpu::Destination;
pub use gpu::Gpu;
pub(crate) use graph::Replay;
pub(crate) use launch::{Blocks, Launch, MOST_SIDES};
pub use memory::{CudaBuffer, CudaSlice};
pub use probe::{CudaDeviceInfo, CudaInfo, probe};
pub(crate) use upload::{Layout, Span, Upload};

use super::{Device, Run};
use sparse_core::element::{Element, Stored};

/// The memory of an NVIDIA GPU, as the device of arrays.
///
/// The GPU itself is known at run time: an array remembers the [`Gpu`] on which it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cuda;

impl Device for Cuda {
    const NAME: &'static str = "cuda";
    type Buffer<T: Stored> = CudaBuffer<T>;
    type Elements<T: Element> = CudaBuffer<T>;
    type Table<T: Element> = CudaBuffer<T>;
    type Slice<'a, T: Stored> = CudaSlice<'a, T>;
    type ColumnIds = CudaColumnIds;
    type ColumnIdsSlice<'a> = CudaColumnIdsSlice<'a>;

    fn slice<T: Stored>(buffer: &CudaBuffer<T>) -> CudaSlice<'_, T> {
        buffer.as_slice()
    }

    fn elements<T: Element>(elements: &CudaBuffer<T>) -> CudaSlice<'_, T> {
        elements.as_slice()
    }

    fn column_ids(ids: &CudaColumnIds) -> CudaColumnIdsSlice<'_> {
        ids.as_slice()
    }

    fn bounds(indptr: &CudaBuffer<u64>) -> (CudaSlice<'_, u64>, CudaSlice<'_, u64>) {
        let indptr = indptr.as_slice();
        match indptr.len().checked_sub(1) {
            None => (indptr, indptr),
            Some(n_rows) => (indptr.run(0, n_rows), indptr.run(1, n_rows)),
        }
    }
}

impl<T: Stored> Run for CudaSlice<'_, T> {
    fn len(&self) -> usize {
        CudaSlice::len(self)
    }
}
