//! Training steps: an epoch by the emitted loop and by loops written by hand for the same model,
//! rule and arrays.

mod clipped;
mod deep;
mod emitted;
mod factors;
pub mod hand;
mod hogwild;
pub mod linear;
mod machine;
mod penalty;
mod softmax;
mod storage;
mod sums;
mod threads;
mod together;
mod tutorial;
mod units;
mod width;

use crate::data::Data;
use crate::workload::Named;

pub fn workloads(data: &Data) -> Vec<Named<'_>> {
    let all = [
        linear::workloads(data),
        units::workloads(data),
        machine::workloads(data),
        softmax::workloads(data),
        deep::workloads(data),
        factors::workloads(data),
        width::workloads(data),
        penalty::workloads(data),
        storage::workloads(data),
        tutorial::workloads(data),
        threads::workloads(data),
        hogwild::workloads(data),
        clipped::workloads(data),
    ];
    all.into_iter().flatten().collect()
}
