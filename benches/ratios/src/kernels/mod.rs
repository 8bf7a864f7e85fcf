//! Kernels over csr matrices.

mod hand;
mod peers;
mod product;

use crate::data::Data;
use crate::workload::Named;

pub fn workloads(data: &Data) -> Vec<Named<'_>> {
    product::workloads(data)
}
