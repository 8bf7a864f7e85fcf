//! Kernels of fused steps: scores, loss and derivatives of the rows of a batch at once.

pub(crate) mod corrected;
pub(crate) mod kept_rows;
pub(crate) mod layer_rows;
pub(crate) mod linear_rows;
pub(crate) mod lookup_rows;
pub(crate) mod row_results;
mod units;

pub(crate) use kept_rows::KeptRows;
pub(crate) use units::for_each_unit;
