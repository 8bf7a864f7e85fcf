//! Arrays in the memory of a GPU.

mod column_ids;
mod launch;

pub use column_ids::{CudaColumnIds, CudaColumnIdsSlice};
pub use launch::ArrayArguments;
