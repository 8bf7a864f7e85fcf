//! csr · dense: each entry adds a row of the right side to a row of the result.

use super::hand;
use super::peers;
use crate::data::{Arrays, Data, Matrix, dense};
use crate::workload::{Error, Named, Workload, fingerprint};
use faer::sparse::linalg::matmul::sparse_dense_matmul;
use faer::{Accum, MatMut, MatRef, Par};
use nalgebra::{DMatrixView, DMatrixViewMut};
use nalgebra_sparse::ops::Op;
use nalgebra_sparse::ops::serial::spmm_csr_dense;
use ndarray::{ArrayView2, ArrayViewMut2};
use nnz::formats::{Csr, Dense};
use nnz::kernels::{Context, Parallel, dot};
use std::rc::Rc;

pub fn workloads(data: &Data) -> Vec<Named<'_>> {
    let mut list = Vec::new();
    for matrix in Matrix::ALL {
        for width in [1, 16, 64, 256] {
            let name = format!("csr·dense {width}, {}", matrix.name());
            list.push(Named::new(name.clone(), move || product(data.matrix(matrix)?, width)));
            let name = format!("2 threads, {name}");
            list.push(Named::new(name, move || threads(data.matrix(matrix)?, width)));
        }
    }
    list
}

fn gigaflops(x: &Csr, width: usize) -> Workload<'_> {
    Workload::per_second("GFLOP/s", 2e-9 * (x.nnz() * width) as f64)
}

fn product(x: &Csr, width: usize) -> Result<Workload<'_>, Error> {
    let arrays = Arrays::of(x)?;
    let (n_rows, n_cols) = (x.n_rows(), x.n_cols());
    // The same memory for all that read rows: where it begins within a line of the cache decides as
    // much as the loop.
    let rhs = Rc::new(dense([n_cols, width], 2));
    // Faer and nalgebra hold matrices by columns.
    let by_columns = transposed(rhs.values(), width);
    let size = n_rows * width;
    let of_columns =
        move |out: &Vec<f32>| fingerprint((0..size).map(|i| out[i % width * n_rows + i / width]));

    let rows = Rc::clone(&rhs);
    let ours = (Dense::default(), Context::default());
    let mut workload = gigaflops(x, width).contestant(
        "ours",
        ours,
        move |(out, context)| dot::cpu::csr_dense(out, x.view(), rows.view(), false, context),
        |(out, _)| fingerprint(out.values().iter().copied()),
    );
    let rows = Rc::clone(&rhs);
    workload = workload.contestant(
        "hand",
        vec![0.0; size],
        move |out| hand::product(out, arrays, rows.values(), width),
        |out| fingerprint(out.iter().copied()),
    );
    let matrix = peers::sprs(arrays);
    workload = workload.contestant(
        "sprs",
        vec![0.0; size],
        move |out| {
            out.fill(0.0);
            if width == 1 {
                sprs::prod::mul_acc_mat_vec_csr(matrix.view(), rhs.values(), &mut out[..]);
            } else if let (Ok(rows), Ok(out)) = (
                ArrayView2::from_shape((n_cols, width), rhs.values()),
                ArrayViewMut2::from_shape((n_rows, width), out),
            ) {
                sprs::prod::csr_mulacc_dense_rowmaj(matrix.view(), rows, out);
            }
        },
        |out| fingerprint(out.iter().copied()),
    );
    let (matrix, columns) = (peers::faer(arrays), by_columns.clone());
    workload = workload.contestant(
        "faer",
        vec![0.0; size],
        move |out| {
            let out = MatMut::from_column_major_slice_mut(out, n_rows, width);
            let columns = MatRef::from_column_major_slice(&columns, n_cols, width);
            sparse_dense_matmul(out, Accum::Replace, matrix.as_ref(), columns, 1.0, Par::Seq);
        },
        of_columns,
    );
    let matrix = peers::nalgebra(arrays)?;
    Ok(workload.contestant(
        "nalgebra-sparse",
        vec![0.0; size],
        move |out| {
            let out = DMatrixViewMut::from_slice(out, n_rows, width);
            let columns = DMatrixView::from_slice(&by_columns, n_cols, width);
            spmm_csr_dense(0.0, out, 1.0, Op::NoOp(&matrix), Op::NoOp(columns));
        },
        of_columns,
    ))
}

/// Ours with two threads against ours with one, on the same right side: rows of another may lie in
/// more lines of the cache.
fn threads(x: &Csr, width: usize) -> Result<Workload<'_>, Error> {
    let rhs = Rc::new(dense([x.n_cols(), width], 2));
    let mut workload = gigaflops(x, width).wall().tolerance(0.0);
    for (name, parallel) in [("ours", Parallel::Threads(2)), ("one thread", Parallel::Sequential)] {
        let rhs = Rc::clone(&rhs);
        let mut context = Context::default();
        context.parallel = parallel;
        workload = workload.contestant(
            name,
            (Dense::default(), context),
            move |(out, context)| dot::cpu::csr_dense(out, x.view(), rhs.view(), false, context),
            |(out, _)| fingerprint(out.values().iter().copied()),
        );
    }
    Ok(workload)
}

/// The elements by columns, of which there are `width`.
pub fn transposed(rows: &[f32], width: usize) -> Vec<f32> {
    let n_rows = rows.len() / width;
    (0..rows.len()).map(|i| rows[i % n_rows * width + i / n_rows]).collect()
}
