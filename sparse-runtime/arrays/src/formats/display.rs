//! Arrays as people read them.
//!
//! `Display` prints a header and the rows, `Debug` the same in one line. Both leave out the middle
//! of long arrays and of long rows. A precision is passed on to the elements: `{:.2}`.

use super::{Csr, CsrView, Dense, DenseView, RowSparse, RowSparseView};
use sparse_core::element::{Element, Stored};
use sparse_core::storage::Storage;
use std::fmt::{self, Debug, Display, Formatter};

/// Rows or elements that are printed at each end; what is left out is at least two.
const EDGE: usize = 4;

/// The numbers below `n` that are printed; `None` stands for those left out.
fn shown(n: usize) -> impl Iterator<Item = Option<usize>> {
    let all = n <= 2 * EDGE + 1;
    let head = if all { n } else { EDGE };
    let tail = if all { n } else { n - EDGE };
    (0..head).map(Some).chain((!all).then_some(None)).chain((tail..n).map(Some))
}

/// The items separated by commas, the middle left out.
fn write_list(
    f: &mut Formatter<'_>,
    n: usize,
    mut item: impl FnMut(&mut Formatter<'_>, usize) -> fmt::Result,
) -> fmt::Result {
    for (k, i) in shown(n).enumerate() {
        if k > 0 {
            f.write_str(", ")?;
        }
        match i {
            Some(i) => item(f, i)?,
            None => f.write_str("…")?,
        }
    }
    Ok(())
}

/// A header, then the rows: one a line, or all in one line between braces.
fn write_array(
    f: &mut Formatter<'_>,
    one_line: bool,
    header: fmt::Arguments<'_>,
    n: usize,
    mut row: impl FnMut(&mut Formatter<'_>, usize) -> fmt::Result,
) -> fmt::Result {
    f.write_fmt(header)?;
    if one_line {
        f.write_str(" {")?;
    }
    for (k, i) in shown(n).enumerate() {
        f.write_str(match (one_line, k) {
            (false, _) => "\n  ",
            (true, 0) => "",
            (true, _) => "; ",
        })?;
        match i {
            Some(i) => row(f, i)?,
            None => f.write_str("…")?,
        }
    }
    f.write_str(if one_line { "}" } else { "" })
}

fn write_dense<T: Element>(
    x: DenseView<'_, T>,
    f: &mut Formatter<'_>,
    one_line: bool,
) -> fmt::Result {
    let (n_rows, row_size) = (x.shape.n_rows(), x.shape.row_size());
    let header = format_args!("{} {} {}", Storage::Dense, x.shape, T::TYPE);
    // A rank-1 array is one row to the eye.
    if x.shape.rank() < 2 {
        return write_array(f, one_line, header, 1, |f, _| {
            write_list(f, x.values.len(), |f, i| Debug::fmt(&x.values[i], f))
        });
    }
    write_array(f, one_line, header, n_rows, |f, i| {
        write!(f, "{i}: ")?;
        let row = x.row(i).unwrap_or_default();
        write_list(f, row_size, |f, k| Debug::fmt(&row[k], f))
    })
}

fn write_csr<T: Stored>(x: CsrView<'_, T>, f: &mut Formatter<'_>, one_line: bool) -> fmt::Result {
    let (n_rows, n_cols, nnz) = (x.n_rows(), x.n_cols, x.nnz());
    let share = Share { stored: nnz, of: n_rows as f64 * n_cols as f64 };
    let header =
        format_args!("{} [{n_rows}, {n_cols}] {}, {nnz} stored{share}", Storage::Csr, T::TYPE);
    write_array(f, one_line, header, n_rows, |f, i| {
        write!(f, "{i}:")?;
        let (columns, values) = x.row(i).unwrap_or_default();
        f.write_str(if values.is_empty() { "" } else { " " })?;
        write_list(f, values.len(), |f, k| {
            write!(f, "({}) ", columns.get(k).unwrap_or_default())?;
            Debug::fmt(&values[k], f)
        })
    })
}

fn write_row_sparse<T: Element>(
    x: RowSparseView<'_, T>,
    f: &mut Formatter<'_>,
    one_line: bool,
) -> fmt::Result {
    let n_stored = x.n_stored();
    let share = Share { stored: n_stored, of: x.shape.n_rows() as f64 };
    let rows = if n_stored == 1 { "row" } else { "rows" };
    let header = format_args!(
        "{} {} {}, {n_stored} {rows} stored{share}",
        Storage::RowSparse,
        x.shape,
        T::TYPE
    );
    write_array(f, one_line, header, n_stored, |f, position| {
        write!(f, "{}: ", x.row_id(position).unwrap_or_default())?;
        let row = x.stored_row(position).unwrap_or_default();
        write_list(f, row.len(), |f, k| Debug::fmt(&row[k], f))
    })
}

/// ` (37.5 %)`; nothing where there is nothing to store.
struct Share {
    stored: usize,
    of: f64,
}

impl Display for Share {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let percent = 100.0 * self.stored as f64 / self.of;
        match percent {
            _ if self.of == 0.0 => Ok(()),
            _ if percent == 0.0 || percent >= 0.1 => write!(f, " ({percent:.1} %)"),
            _ => write!(f, " ({percent:.1e} %)"),
        }
    }
}

macro_rules! printed {
    ($($write:ident: $array:ident $view:ident of $held:ident;)*) => {
        $(impl<T: $held> Display for $array<T> {
            fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
                $write(self.view(), f, false)
            }
        }

        impl<T: $held> Debug for $array<T> {
            fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
                $write(self.view(), f, true)
            }
        }

        impl<T: $held> Display for $view<'_, T> {
            fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
                $write(*self, f, false)
            }
        }

        impl<T: $held> Debug for $view<'_, T> {
            fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
                $write(*self, f, true)
            }
        })*
    };
}

printed! {
    write_dense: Dense DenseView of Element;
    write_csr: Csr CsrView of Stored;
    write_row_sparse: RowSparse RowSparseView of Element;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csr_prints_columns_and_density() {
        let x = Csr::from_rows(4, [vec![(1, 2.0f32), (3, 1.5)], vec![(0, 0.25)]]).unwrap();
        assert_eq!(
            x.to_string(),
            "csr [2, 4] f32, 3 stored (37.5 %)\n  0: (1) 2.0, (3) 1.5\n  1: (0) 0.25"
        );
        assert_eq!(
            format!("{x:?}"),
            "csr [2, 4] f32, 3 stored (37.5 %) {0: (1) 2.0, (3) 1.5; 1: (0) 0.25}"
        );
        assert_eq!(Csr::<f64>::zeros(1, 0).to_string(), "csr [1, 0] f64, 0 stored\n  0:");
        let thin = Csr::from_coo(1, 1 << 30, [(0, 5, 1.0f32)]).unwrap();
        assert!(thin.to_string().starts_with("csr [1, 1073741824] f32, 1 stored (9.3e-8 %)"));
    }

    #[test]
    fn long_arrays_lose_their_middle() {
        let x = Dense::new([20], (0..20u32).collect()).unwrap();
        assert_eq!(x.to_string(), "dense [20] u32\n  0, 1, 2, 3, …, 16, 17, 18, 19");
        let x = Dense::<f32>::zeros([1000, 1000]);
        assert_eq!(x.to_string().lines().count(), 1 + 9);
        assert_eq!(Dense::<f32>::zeros([9, 1]).to_string().lines().count(), 1 + 9);
    }

    #[test]
    fn row_sparse_prints_ids_and_takes_a_precision() {
        let x = RowSparse::new([6, 2], vec![1, 4], vec![0.5f32, 1.0, 2.0, 3.0]).unwrap();
        assert_eq!(
            format!("{x:.2}"),
            "row_sparse [6, 2] f32, 2 rows stored (33.3 %)\n  1: 0.50, 1.00\n  4: 2.00, 3.00"
        );
        assert_eq!(format!("{:?}", Dense::<f64>::default()), "dense [0] f64 {}");
    }
}
