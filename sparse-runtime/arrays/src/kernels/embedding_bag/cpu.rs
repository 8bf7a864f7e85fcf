//! Sums of rows of a table on the CPU.

use crate::formats::{CsrView, Dense, DenseView, RowSparseView};
use crate::kernels::features::{Entries, Table, add_scaled};
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
    match weighted && !mean {
        true => dot::cpu::csr_dense(out, bags, table, false, context),
        false => sums(out, bags, table, mean, weighted, &mut context.wide),
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
    match weighted && !mean {
        true => dot::cpu::csr_row_sparse(out, bags, table, context),
        false => sums(out, bags, table, mean, weighted, &mut context.wide),
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

/// What each entry of a bag is multiplied by: 1, or one over the number of entries or the sum of their values.
pub(crate) fn share<T: Float, V: Factor<T>>(
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
