//! Kernels over csr matrices.

mod entries;
mod hand;
mod peers;
mod product;
mod transposed;

use crate::data::Data;
use crate::workload::Named;

pub fn workloads(data: &Data) -> Vec<Named<'_>> {
    let families =
        [product::workloads(data), transposed::workloads(data), entries::workloads(data)];
    families.into_iter().flatten().collect()
}
