//! Training steps: an epoch by the emitted loop and by loops written by hand for the same model, rule and arrays.

mod emitted;
mod hand;
mod linear;
mod machine;

use crate::data::Data;
use crate::workload::Named;

pub fn workloads(data: &Data) -> Vec<Named<'_>> {
    linear::workloads(data).into_iter().chain(machine::workloads(data)).collect()
}
