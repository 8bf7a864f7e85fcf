//! Sums over as many rows as a large batch has, against `f64`.

use super::{Context, dot, embedding_bag_gradient, reduce_to, take_gradient};
use crate::formats::{ColumnIds, Csr, CsrParts, Dense, IdsView, RowSparse, Shape};
use crate::kernels::Parallel;

const N_ROWS: usize = 1 << 18;

/// A number of each row, whose sums have no end in `f32`.
const NUMBER: f32 = 0.1;

/// A csr of which each row has its first column, and every 64th its second.
fn matrix() -> Csr<f32> {
    let (mut indptr, mut columns) = (vec![0u64], Vec::new());
    for row in 0..N_ROWS {
        columns.push(0u32);
        if row % 64 == 0 {
            columns.push(1);
        }
        indptr.push(columns.len() as u64);
    }
    let values = vec![1.0; columns.len()];
    Csr::from_parts(CsrParts { n_cols: 3, indptr, columns: ColumnIds::U32(columns), values })
        .unwrap()
}

fn numbers(width: usize) -> Dense<f32> {
    Dense::full([N_ROWS, width], NUMBER)
}

fn hold(found: &[f32], n_terms: &[usize]) {
    assert_eq!(found.len(), n_terms.len());
    for (found, n_terms) in found.iter().zip(n_terms) {
        let expected = (f64::from(NUMBER) * *n_terms as f64) as f32;
        let error = (found - expected).abs();
        assert!(error <= 4.0 * (expected.next_up() - expected), "{found} {expected}");
    }
}

#[test]
fn n1b_transposed_products_of_many_rows_are_exact() {
    let (x, mut context) = (matrix(), Context::default());
    let (all, some) = (N_ROWS, N_ROWS / 64);
    let (mut rows, mut table) = (RowSparse::default(), Dense::default());
    for threads in [1, 2] {
        context.parallel = if threads == 1 { Parallel::Sequential } else { Parallel::Threads(2) };
        dot::cpu::csr_transposed_dense(&mut rows, x.view(), numbers(1).view(), false, &mut context);
        hold(rows.values(), &[all, some]);
        let right = numbers(2);
        dot::cpu::csr_transposed_dense(&mut rows, x.view(), right.view(), false, &mut context);
        hold(rows.values(), &[all, all, some, some]);
        dot::cpu::csr_transposed_dense_into_dense(
            &mut table,
            x.view(),
            numbers(1).view(),
            false,
            &mut context,
        );
        hold(table.values(), &[all, some, 0]);
    }
    // Columns that are numbered first.
    let mut parts = x.into_parts();
    parts.n_cols = 1 << 40;
    let ids = parts.columns.view().iter().map(|id| id as u64).collect();
    let wide = Csr::from_parts(CsrParts { columns: ColumnIds::U64(ids), ..parts }).unwrap();
    dot::cpu::csr_transposed_dense(&mut rows, wide.view(), numbers(1).view(), false, &mut context);
    hold(rows.values(), &[all, some]);
}

#[test]
fn n1b_products_of_dense_matrices_over_many_rows_are_exact() {
    let (mut out, mut context) = (Dense::default(), Context::default());
    let ones = Dense::full([N_ROWS, 1], 1.0f32);
    let right = numbers(5);
    dot::cpu::dense_dense(&mut out, ones.view(), right.view(), true, false, &mut context);
    // 256 terms at a time: their rounding is that of a few hundred terms, and not of a million.
    for sum in out.values() {
        let expected = f64::from(NUMBER) * N_ROWS as f64;
        assert!((f64::from(*sum) / expected - 1.0).abs() < 1e-5, "{sum} {expected}");
    }
    let (x, y) = (vec![1.0f32; N_ROWS], vec![NUMBER; N_ROWS]);
    let [x, y] = [x, y].map(|values| Dense::new([1, N_ROWS], values).unwrap());
    dot::cpu::dense_dense(&mut out, x.view(), y.view(), false, true, &mut context);
    let expected = f64::from(NUMBER) * N_ROWS as f64;
    assert!((f64::from(out.values()[0]) / expected - 1.0).abs() < 1e-5, "{:?}", out.values());
}

#[test]
fn n1b_gradients_of_look_ups_and_bags_over_many_rows_are_exact() {
    let (mut rows, mut context) = (RowSparse::default(), Context::default());
    let grad = numbers(1);
    let ids = Dense::new([N_ROWS], vec![2u32; N_ROWS]).unwrap();
    let like = Shape::from([5, 1]);
    take_gradient::cpu::dense_ids_like_by_rows(
        &mut rows,
        grad.view(),
        IdsView::U32(ids.view()),
        like,
        0,
        true,
        false,
        &mut context,
    );
    hold(rows.values(), &[N_ROWS]);
    let x = matrix();
    embedding_bag_gradient::cpu::csr_dense(
        &mut rows,
        x.view(),
        grad.view(),
        false,
        true,
        &mut context,
    );
    hold(rows.values(), &[N_ROWS, N_ROWS / 64]);
    let mut sum = Dense::default();
    let like = Dense::full([1], 0.0f32);
    reduce_to::cpu::dense_dense(&mut sum, grad.view(), like.view(), &mut context);
    hold(sum.values(), &[N_ROWS]);
}
