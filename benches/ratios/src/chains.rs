//! Five element-wise operators, of which the compiler makes one loop: over dense arrays and over
//! what a csr stores, against that loop by hand and against the same model with `fuse = off`, a
//! kernel for each operator.

#[macro_use]
#[path = "../../../tests/twins/mod.rs"]
mod twins;

use crate::data::{Arrays, Data, Matrix, Random};
use crate::workload::{Error, Named, Workload, fingerprint};
use nnz::formats::{Csr, Dense};
use nnz::prelude::*;

twins! {
    /// Over dense arrays.
    Elements, ElementsUnfused {
        input x: dense[n, k];
        input z: dense[n, k];
        output y = square(relu(1.5 * x + z)) - z;
    }

    /// Over the stored elements of a csr.
    Stored, StoredUnfused {
        input x: csr[n, d];
        output y = 0.25 * square(relu(1.5 * x)) * abs(x);
    }
}

/// Elements that stay in a cache, and such that do not.
const SIZES: [(&str, usize); 2] = [("2^13", 1 << 13), ("2^22", 1 << 22)];

pub fn workloads(data: &Data) -> Vec<Named<'_>> {
    let mut list = Vec::new();
    for (name, size) in SIZES {
        list.push(Named::new(format!("chain of 5, dense {name}"), move || elements(size)));
    }
    for matrix in Matrix::ALL {
        let name = format!("chain of 5, csr {}", matrix.name());
        list.push(Named::new(name, move || stored(data.matrix(matrix)?)));
    }
    list
}

/// M elements of the result. What is small is computed many times a run.
fn elements(size: usize) -> Result<Workload<'static>, Error> {
    const COLUMNS: usize = 64;
    let times = (1 << 22) / size;
    let mut random = Random(1);
    let mut array = || {
        let values = (0..size).map(|_| (random.bits() % 2048) as f32 / 512.0 - 2.0);
        Dense::new([size / COLUMNS, COLUMNS], values.collect())
    };
    let (x, z) = (array()?, array()?);
    let [ours, unfused, hand] = [(); 3].map(|()| (x.clone(), z.clone()));
    let of_values = |values: &[f32]| fingerprint(values.iter().copied());
    let work = 1e-6 * (size * times) as f64;
    Ok(Workload::per_second("M elements/s", work)
        .contestant(
            "nnz",
            Elements::new(dims! {}, Seed(1))?,
            move |model| {
                for _ in 0..times {
                    let batch = ElementsBatch { x: ours.0.view(), z: ours.1.view() };
                    let _ = std::hint::black_box(model.forward(&batch));
                }
            },
            move |model| of_values(model.outputs().y.values()),
        )
        .contestant(
            "by hand",
            vec![0.0; size],
            move |out| {
                for _ in 0..times {
                    by_hand(
                        #[inline(always)]
                        || {
                            for ((out, x), z) in
                                out.iter_mut().zip(hand.0.values()).zip(hand.1.values())
                            {
                                let positive = (1.5 * x + z).max(0.0);
                                *out = positive * positive - z;
                            }
                        },
                    );
                    std::hint::black_box(&out);
                }
            },
            move |out| of_values(out),
        )
        .contestant(
            "a kernel each",
            ElementsUnfused::new(dims! {}, Seed(1))?,
            move |model| {
                for _ in 0..times {
                    let batch = ElementsUnfusedBatch { x: unfused.0.view(), z: unfused.1.view() };
                    let _ = std::hint::black_box(model.forward(&batch));
                }
            },
            move |model| of_values(model.outputs().y.values()),
        ))
}

/// M entries. The result is a matrix of its own: its pattern is copied.
fn stored(x: &Csr) -> Result<Workload<'_>, Error> {
    let arrays = Arrays::of(x)?;
    let of_csr = |columns: &[u32], values: &[f32]| {
        fingerprint(columns.iter().map(|&column| column as f32))
            + fingerprint(values.iter().copied())
    };
    let of_output = move |y: &Csr| Arrays::of(y).map_or(f64::NAN, |y| of_csr(y.columns, y.values));
    Ok(Workload::per_second("M entries/s", 1e-6 * x.nnz() as f64)
        .contestant(
            "nnz",
            Stored::new(dims! {}, Seed(1))?,
            move |model| {
                let _ = std::hint::black_box(model.forward(&StoredBatch { x: x.view() }));
            },
            move |model| of_output(&model.outputs().y),
        )
        .contestant(
            "by hand",
            (Vec::new(), Vec::new(), vec![0.0; x.nnz()]),
            move |(indptr, columns, values)| {
                indptr.clear();
                indptr.extend_from_slice(arrays.indptr);
                columns.clear();
                columns.extend_from_slice(arrays.columns);
                by_hand(
                    #[inline(always)]
                    || {
                        for (out, x) in values.iter_mut().zip(arrays.values) {
                            let positive = (1.5 * x).max(0.0);
                            *out = 0.25 * (positive * positive) * x.abs();
                        }
                    },
                );
                std::hint::black_box((&indptr, &columns, &values));
            },
            move |(_, columns, values)| of_csr(columns, values),
        )
        .contestant(
            "a kernel each",
            StoredUnfused::new(dims! {}, Seed(1))?,
            move |model| {
                let _ = std::hint::black_box(model.forward(&StoredUnfusedBatch { x: x.view() }));
            },
            move |model| of_output(&model.outputs().y),
        ))
}

/// Runs what inlines here, compiled for the widest vectors that the processor has.
fn by_hand(body: impl FnOnce()) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vl") {
        // SAFETY: both were found.
        return unsafe { with_avx512(body) };
    }
    body();
}

/// # Safety
///
/// The processor has the instructions.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl,avx2")]
unsafe fn with_avx512(body: impl FnOnce()) {
    body();
}
