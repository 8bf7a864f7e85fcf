//! The gradient of sums of rows of a table on the CPU.

use crate::formats::{CsrView, Dense, DenseView, RowSparse};
use crate::kernels::Context;
use crate::kernels::context::in_sums;
use crate::kernels::embedding_bag::cpu::share;
use crate::kernels::features::{Entries, add_scaled_wide, number_columns};
use sparse_core::element::{Factor, Float};

/// The columns that occur in the bags, ascending, and the sum for each.
pub fn csr_dense<T: Float, V: Factor<T>>(
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

/// The same as a table of all rows.
pub fn csr_dense_into_dense<T: Float, V: Factor<T>>(
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
