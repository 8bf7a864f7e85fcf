//! The loops of kernels give the same bits with any instructions, as far as this processor has
//! them.

use crate::formats::{Csr, Dense, RowSparse};
use crate::kernels::dot::cpu;
use crate::kernels::parallel::below;
use crate::kernels::{Context, Parallel};
use nnz_device::simd::every_level_gives_the_same;
use sparse_core::element::Float;
use std::cell::RefCell;

const ROWS: usize = 40;
const COLUMNS: usize = 90;

/// Numbers whose sums round differently in another order.
fn numbers<T: Float>(n_rows: usize, n_cols: usize) -> Dense<T> {
    let number = |i: usize| T::of(((i * 7919 % 1009) as f64 - 500.0) / 300.0);
    Dense::new([n_rows, n_cols], (0..n_rows * n_cols).map(number).collect()).unwrap()
}

/// Rows of 0 to 40 entries.
fn matrix<T: Float>() -> Csr<T> {
    let rows = (0..ROWS).map(|row| {
        let entry = |k| (k * 2 + row % 3, T::of(((row * 41 + k) % 13) as f64 / 7.0));
        (0..row * 7 % 41).map(entry).collect::<Vec<_>>()
    });
    Csr::from_rows(COLUMNS, rows).unwrap()
}

fn bits<T: Float>(values: &[T]) -> Vec<u64> {
    values.iter().map(|value| value.as_f64().to_bits()).collect()
}

#[test]
fn ids_below_a_bound_are_as_many_at_any_level() {
    every_level_gives_the_same("below", || {
        let ids: Vec<u32> = (0..127).map(|id| (id * id) << 18).collect();
        let count = |len: usize, bound: u32| below(&ids[..len], bound as usize);
        let bounds = ids.iter().flat_map(|&id| [id, id + 1]);
        Vec::from_iter(bounds.flat_map(|bound| [0, 15, 16, 17, 100, 127].map(|n| count(n, bound))))
    });
}

fn products<T: Float>() {
    let x = matrix::<T>();
    let mut parts = x.clone().into_parts();
    parts.n_cols = 1 << 30;
    let wide = Csr::from_parts(parts).unwrap();
    let parallel = Parallel::Sequential;
    let context = RefCell::new(Context { parallel, ..Context::default() });
    for width in [1, 2, 3, 4, 7, 8, 15, 16, 17, 31, 32, 33, 64, 75, 150] {
        let (right, left) = (numbers::<T>(COLUMNS, width), numbers::<T>(ROWS, width));
        every_level_gives_the_same(&format!("csr · dense of {width}"), || {
            let mut out = Dense::default();
            let context = &mut context.borrow_mut();
            cpu::csr_dense(&mut out, x.view(), right.view(), false, context);
            bits(out.values())
        });
        let dense = x.to_dense().unwrap();
        every_level_gives_the_same(&format!("dense · dense of {width}"), || {
            let mut out = Dense::default();
            let context = &mut context.borrow_mut();
            cpu::dense_dense(&mut out, dense.view(), right.view(), false, false, context);
            bits(out.values())
        });
        every_level_gives_the_same(&format!("csrᵀ · dense of {width}"), || {
            let (mut table, mut rows) = (Dense::default(), RowSparse::default());
            let context = &mut context.borrow_mut();
            let into_table = cpu::csr_transposed_dense_into_dense;
            into_table(&mut table, x.view(), left.view(), false, context);
            cpu::csr_transposed_dense(&mut rows, x.view(), left.view(), false, context);
            (bits(table.values()), bits(rows.values()))
        });
        every_level_gives_the_same(&format!("csrᵀ · dense of {width}, many columns"), || {
            let mut rows = RowSparse::default();
            let context = &mut context.borrow_mut();
            cpu::csr_transposed_dense(&mut rows, wide.view(), left.view(), false, context);
            bits(rows.values())
        });
    }
}

#[test]
fn products_of_f32() {
    products::<f32>();
}

#[test]
fn products_of_f64() {
    products::<f64>();
}

#[test]
fn the_csr_form_of_a_dense_matrix() {
    let dense = matrix::<f32>().to_dense().unwrap();
    every_level_gives_the_same("dense → csr", || {
        let csr = dense.to_csr().unwrap();
        (csr.indptr().to_vec(), Vec::from_iter(csr.columns().iter()), bits(csr.values()))
    });
}
