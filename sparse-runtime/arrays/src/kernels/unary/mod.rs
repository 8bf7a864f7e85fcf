//! Element-wise functions of one operand: the pattern stays, the function is applied to what is
//! stored.
//!
//! O(stored elements). A stored zero, and an element of a stored row that is zero, stay stored: the
//! pattern of a result never depends on values. The table offers the sparse kernels only to
//! functions with f(0) = 0.

pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
