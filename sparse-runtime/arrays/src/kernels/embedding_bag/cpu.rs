//! Sums of rows of a table on the CPU.

use crate::formats::{CsrView, Dense, DenseView, RowSparse, RowSparseView};
use crate::kernels::context::in_sums;
use crate::kernels::features::{Entries, Table, add_scaled, add_scaled_wide, number_columns};
use crate::kernels::{Context, dot};
use sparse_core::element::{Factor, Float};

/// Sums of rows of a dense table.
pub fn csr_dense<T: Float, V: Factor<T>>(
    out: &mut Dense<T>,
    bags: CsrView<'_, V>,
    table: DenseView<'_, T>,
    mean: bool,
    weighted: bool,
    context: &mut Context,
) {
    if weighted && !mean {
        dot::cpu::csr_dense(out, bags, table, false, context)
    } else {
        sums(out, bags, table, mean, weighted, &mut context.wide)
    }
}

/// Sums of rows of a row_sparse table; one that is not stored is zero.
pub fn csr_row_sparse<T: Float, V: Factor<T>>(
    out: &mut Dense<T>,
    bags: CsrView<'_, V>,
    table: RowSparseView<'_, T>,
    mean: bool,
    weighted: bool,
    context: &mut Context,
) {
    if weighted && !mean {
        dot::cpu::csr_row_sparse(out, bags, table, context)
    } else {
        sums(out, bags, table, mean, weighted, &mut context.wide)
    }
}

fn sums<T: Float, V: Factor<T>>(
    out: &mut Dense<T>,
    bags: CsrView<'_, V>,
    table: impl Table<T>,
    mean: bool,
    weighted: bool,
    scratch: &mut Vec<f32>,
) {
    out.reset([bags.n_rows(), table.width()]);
    for (bag, out) in out.values_mut().chunks_exact_mut(table.width().max(1)).enumerate() {
        let share = share::<T, V>(bags, bag, mean, weighted);
        T::in_accumulator(out, scratch, |out| {
            bags.for_each(bag, |column, value: T| {
                if let Some(row) = table.stored(column) {
                    add_scaled(out, row, if weighted { share * value.widen() } else { share });
                }
            });
        });
    }
}

/// What each entry of a bag is multiplied by: 1, or one over the number of entries or the sum of
/// their values.
pub fn share<T: Float, V: Factor<T>>(
    bags: CsrView<'_, V>,
    bag: usize,
    mean: bool,
    weighted: bool,
) -> T::Accumulator {
    let (zero, one) = (T::zero().widen(), T::one().widen());
    if !mean {
        return one;
    }
    let mut total = zero;
    bags.for_each(bag, |_, value: T| total += if weighted { value.widen() } else { one });
    if total == zero { total } else { one / total }
}

/// The gradient: the columns that occur in the bags, ascending, and the sum for each.
pub fn gradient_csr_dense<T: Float, V: Factor<T>>(
    out: &mut RowSparse<T>,
    bags: CsrView<'_, V>,
    grad: DenseView<'_, T>,
    mean: bool,
    weighted: bool,
    context: &mut Context,
) {
    let (columns, width) = (&mut context.ids, grad.shape().row_size());
    out.rebuild([bags.n_cols(), width], |rows, values| {
        number_columns(columns, bags, |column| rows.push(column as u64));
        values.resize(rows.len() * width, T::zero());
        in_sums(values, &mut context.sums, |sums| {
            scatter(sums, bags, grad, mean, weighted, |column| columns.rank(column));
        });
    });
}

/// The gradient as a table of all rows.
pub fn gradient_csr_dense_into_dense<T: Float, V: Factor<T>>(
    out: &mut Dense<T>,
    bags: CsrView<'_, V>,
    grad: DenseView<'_, T>,
    mean: bool,
    weighted: bool,
    context: &mut Context,
) {
    out.reset([bags.n_cols(), grad.shape().row_size()]);
    in_sums(out.values_mut(), &mut context.sums, |sums| {
        scatter(sums, bags, grad, mean, weighted, |column| column);
    });
}

fn scatter<T: Float, V: Factor<T>>(
    sums: &mut [f64],
    bags: CsrView<'_, V>,
    grad: DenseView<'_, T>,
    mean: bool,
    weighted: bool,
    place: impl Fn(usize) -> usize,
) {
    let width = grad.shape().row_size();
    for (bag, grad) in grad.values().chunks_exact(width.max(1)).enumerate() {
        let share = share::<T, V>(bags, bag, mean, weighted).as_f64();
        bags.for_each(bag, |column, value: T| {
            let start = place(column) * width;
            let factor = if weighted { share * value.as_f64() } else { share };
            add_scaled_wide(&mut sums[start..start + width], grad, factor);
        });
    }
}
