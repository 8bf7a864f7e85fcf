//! csrᵀ · dense → row_sparse: each entry adds a row of the right side to the row of its column.

use super::hand;
use super::peers;
use super::product::transposed;
use crate::data::{Arrays, Data, Matrix, Random, dense};
use crate::workload::{Error, Named, Workload, fingerprint};
use faer::sparse::linalg::matmul::sparse_dense_matmul;
use faer::{Accum, MatMut, MatRef, Par};
use nalgebra::{DMatrixView, DMatrixViewMut};
use nalgebra_sparse::ops::Op;
use nalgebra_sparse::ops::serial::spmm_csr_dense;
use ndarray::{ArrayView2, ArrayViewMut2};
use nnz::formats::{Csr, RowSelection, RowSparse};
use nnz::kernels::{Context, Parallel, dot};
use std::rc::Rc;

pub fn workloads(data: &Data) -> Vec<Named<'_>> {
    let mut list = Vec::new();
    for matrix in Matrix::ALL {
        for width in [1, 16] {
            let name = format!("csrᵀ·dense {width}, {}", matrix.name());
            list.push(Named::new(name.clone(), move || product(data.matrix(matrix)?, width)));
            let name = format!("2 threads, {name}");
            list.push(Named::new(name.clone(), move || {
                threads(data.matrix(matrix)?, width, false)
            }));
            let name = format!("{name}, divided");
            list.push(Named::new(name, move || threads(data.matrix(matrix)?, width, true)));
        }
    }
    for (order, shuffled) in [("in order", false), ("shuffled", true)] {
        let name = format!("csrᵀ·dense 16, clicks, batches of {BATCH} {order}");
        list.push(Named::new(name, move || batches(data.matrix(Matrix::Clicks)?, shuffled)));
    }
    list
}

/// The rows of a batch, in which a column of twenty occurs or fewer.
const BATCH: usize = 8192;

/// All batches of a matrix, one after the other.
fn batches(x: &Csr, shuffled: bool) -> Result<Workload<'_>, Error> {
    const WIDTH: usize = 16;
    let arrays = Arrays::of(x)?;
    let mut order: Vec<usize> = (0..x.n_rows() / BATCH * BATCH).collect();
    if shuffled {
        Random(7).shuffle(&mut order);
    }
    let order = Rc::new(order);
    let entries: usize = order.iter().map(|&row| arrays.row(row).0.len()).sum();
    let rhs = dense([BATCH, WIDTH], 2);
    let by_hand = hand::sixteens(rhs.values());
    let rows = Rc::clone(&order);
    let workload = Workload::per_second("GFLOP/s", 2e-9 * (entries * WIDTH) as f64).contestant(
        "ours",
        (RowSparse::default(), Context::default(), RowSelection::new()),
        move |(out, context, selection)| {
            for batch in rows.chunks_exact(BATCH) {
                let view = if shuffled {
                    selection.gather(x, batch)
                } else {
                    x.rows(batch[0]..batch[0] + BATCH)
                };
                if let Ok(view) = view {
                    dot::cpu::csr_transposed_dense(out, view, rhs.view(), false, context);
                }
            }
        },
        |(out, ..)| stored(out.indices(), out.values(), WIDTH),
    );
    Ok(workload.contestant(
        "hand",
        hand::Found::default(),
        move |found| {
            for batch in order.chunks_exact(BATCH) {
                hand::of_rows(found, arrays, batch, &by_hand);
            }
        },
        |found| stored(&found.ids, &found.values(), WIDTH),
    ))
}

fn gigaflops(x: &Csr, width: usize) -> Workload<'_> {
    Workload::per_second("GFLOP/s", 2e-9 * (x.nnz() * width) as f64)
}

fn product(x: &Csr, width: usize) -> Result<Workload<'_>, Error> {
    let arrays = Arrays::of(x)?;
    let (n_rows, n_cols) = (x.n_rows(), x.n_cols());
    // The same memory for all that read rows: where it begins within a line of the cache decides as
    // much as the loop.
    let rhs = Rc::new(dense([n_rows, width], 2));
    let by_columns = transposed(rhs.values(), width);
    let size = n_cols * width;
    // Others have a row for every column: those that do not occur are zero, and leave the sum as it
    // is.
    let of_columns = move |out: &Vec<f32>| {
        sum(out.iter().enumerate().map(|(i, &value)| (i % n_cols * width + i / n_cols, value)))
    };
    let of_rows = |out: &Vec<f32>| sum(out.iter().copied().enumerate());

    let rows = Rc::clone(&rhs);
    let mut workload = gigaflops(x, width).contestant(
        "ours",
        (RowSparse::default(), Context::default()),
        move |(out, context)| {
            dot::cpu::csr_transposed_dense(out, x.view(), rows.view(), false, context);
        },
        move |(out, _)| stored(out.indices(), out.values(), width),
    );
    let rows = Rc::clone(&rhs);
    workload = workload.contestant(
        "hand",
        hand::Rows::default(),
        move |out| hand::scatter(out, arrays, rows.values(), width),
        move |out| stored(&out.ids, &out.values, width),
    );
    let matrix = peers::sprs(arrays);
    workload = workload.contestant(
        "sprs",
        vec![0.0; size],
        move |out| {
            out.fill(0.0);
            if width == 1 {
                sprs::prod::mul_acc_mat_vec_csc(
                    matrix.transpose_view(),
                    rhs.values(),
                    &mut out[..],
                );
            } else if let (Ok(rows), Ok(out)) = (
                ArrayView2::from_shape((n_rows, width), rhs.values()),
                ArrayViewMut2::from_shape((n_cols, width), out),
            ) {
                sprs::prod::csc_mulacc_dense_rowmaj(matrix.transpose_view(), rows, out);
            }
        },
        of_rows,
    );
    let (matrix, columns) = (peers::faer(arrays), by_columns.clone());
    workload = workload.contestant(
        "faer",
        vec![0.0; size],
        move |out| {
            let out = MatMut::from_column_major_slice_mut(out, n_cols, width);
            let columns = MatRef::from_column_major_slice(&columns, n_rows, width);
            let matrix = matrix.as_ref().transpose();
            sparse_dense_matmul(out, Accum::Replace, matrix, columns, 1.0, Par::Seq);
        },
        of_columns,
    );
    let matrix = peers::nalgebra(arrays)?;
    Ok(workload.contestant(
        "nalgebra-sparse",
        vec![0.0; size],
        move |out| {
            let out = DMatrixViewMut::from_slice(out, n_cols, width);
            let columns = DMatrixView::from_slice(&by_columns, n_rows, width);
            spmm_csr_dense(0.0, out, 1.0, Op::Transpose(&matrix), Op::NoOp(columns));
        },
        of_columns,
    ))
}

/// Ours with two threads against ours with one, on the same right side. The former may read entries
/// that lie once more, divided for both.
fn threads(x: &Csr, width: usize, divides: bool) -> Result<Workload<'_>, Error> {
    let divided = Rc::new(if divides { Some(x.view().divided_for(2)?) } else { None });
    let rhs = Rc::new(dense([x.n_rows(), width], 2));
    let mut workload = gigaflops(x, width).wall().tolerance(0.0);
    for (name, parallel) in [("ours", Parallel::Threads(2)), ("one thread", Parallel::Sequential)] {
        let (rhs, divided) = (Rc::clone(&rhs), Rc::clone(&divided));
        let mut context = Context::default();
        context.parallel = parallel;
        workload = workload.contestant(
            name,
            (RowSparse::default(), context),
            move |(out, context)| {
                let view = match &*divided {
                    Some(divided) if parallel != Parallel::Sequential => divided.view(),
                    _ => x.view(),
                };
                dot::cpu::csr_transposed_dense(out, view, rhs.view(), false, context);
            },
            |(out, _)| fingerprint(out.values().iter().copied()),
        );
    }
    Ok(workload)
}

/// Of elements by their position among all rows.
fn sum(elements: impl Iterator<Item = (usize, f32)>) -> f64 {
    elements.map(|(i, value)| f64::from(value) * (1.0 + (i % 61) as f64)).sum()
}

fn stored(ids: &[u64], values: &[f32], width: usize) -> f64 {
    let rows = ids.iter().zip(values.chunks_exact(width));
    sum(rows.flat_map(|(&id, row)| {
        row.iter().enumerate().map(move |(column, &value)| (id as usize * width + column, value))
    }))
}
