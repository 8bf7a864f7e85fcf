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
//! use nnz::device::cuda::{CudaError, Gpu};
//! use nnz::formats::Dense;
//! # fn main() -> Result<(), nnz::Error> {
//! let x = Dense::from_rows(&[[1.0f32, 2.0], [3.0, 4.0]]);
//! match Gpu::open(0) {
//!     Ok(gpu) => assert_eq!(x.to_gpu(&gpu)?.to_cpu()?, x),
//!     Err(CudaError::LibraryMissing | CudaError::NoDevice) => println!("computing on the CPU"),
//!     Err(other) => return Err(other.into()),
//! }
//! # Ok(())
//! # }
//! ```

pub use crate::formats::cuda::{CudaColumnIds, CudaColumnIdsSlice};
pub(crate) use nnz_device::cuda::{Blocks, Destination, Launch};
pub use nnz_device::cuda::{
    Code, Compiled, CudaBuffer, CudaDeviceInfo, CudaError, CudaInfo, CudaSlice, Gpu, Unit, Word,
    compile, probe,
};

use super::{Device, Run};
use sparse_core::element::{Element, Stored};

/// The memory of an NVIDIA GPU, as the device of arrays.
///
/// Which GPU is known when the program runs: an array remembers the [`Gpu`] that it was made on.
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

/// A text of several files, one after the other, by their paths from the sources of this crate.
macro_rules! text_of {
    ($($file:literal),+) => {{
        static TEXT: std::sync::LazyLock<String> = std::sync::LazyLock::new(|| {
            nnz_device::cuda::text_of_files(&[
                $(($file, include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/", $file)))),+
            ])
        });
        TEXT.as_str()
    }};
}
pub(crate) use text_of;
