//! Operands: arrays of adversarial patterns.

use sparse_core::element::{Float, Unit};
use sparse_core::operators::Pattern;
use sparse_core::storage::Storage;
use sparse_runtime::formats::{Csr, Dense, RowSparse, Shape};
use sparse_runtime::kernels::Array;

/// A reproducible source of numbers (splitmix64).
#[derive(Clone, Debug)]
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// A multiple of 1/8 between 1/8 and 7/8: products and sums of a few are exact in f32,
    /// logarithms and inverse functions exist.
    pub(crate) fn positive(&mut self) -> f64 {
        (1 + self.below(7)) as f64 / 8.0
    }

    /// The same, of either sign.
    pub(crate) fn signed(&mut self) -> f64 {
        let value = self.positive();
        if self.next() & 1 == 0 { value } else { -value }
    }
}

/// What is stored of an operand, before it has an element type.
#[derive(Clone, Debug)]
pub(crate) enum Given {
    Scalar(f64),
    Ids(Vec<usize>, Vec<u32>),
    Dense(Vec<usize>, Vec<f64>),
    /// A row_sparse operand that is a table of all rows.
    Table(Vec<usize>, Vec<f64>),
    Csr(usize, Vec<Vec<(usize, f64)>>),
    /// A csr without values; they are 1 here.
    Unit(usize, Vec<Vec<(usize, f64)>>),
    RowSparse(Vec<usize>, Vec<usize>, Vec<f64>),
}

impl Given {
    pub(crate) fn array<T: Float>(&self) -> Option<Array<T>> {
        let convert = |values: &[f64]| values.iter().map(|value| T::of(*value)).collect();
        Some(match self {
            Given::Scalar(_) => return None,
            Given::Ids(shape, ids) => {
                Array::Ids(Dense::new(Shape::new(shape), ids.clone()).unwrap().into())
            }
            Given::Dense(shape, values) | Given::Table(shape, values) => {
                Array::Dense(Dense::new(Shape::new(shape), convert(values)).unwrap())
            }
            Given::Csr(n_cols, rows) => {
                let rows = rows
                    .iter()
                    .map(|row| row.iter().map(|&(column, value)| (column, T::of(value))));
                Array::Csr(Csr::from_rows(*n_cols, rows).unwrap())
            }
            Given::Unit(n_cols, rows) => {
                let rows = rows.iter().map(|row| row.iter().map(|&(column, _)| (column, Unit)));
                Array::Unit(Csr::from_rows(*n_cols, rows).unwrap())
            }
            Given::RowSparse(shape, ids, values) => {
                let ids = ids.iter().map(|id| *id as u64).collect();
                Array::RowSparse(RowSparse::new(Shape::new(shape), ids, convert(values)).unwrap())
            }
        })
    }
}

/// Operands of a pattern and shape, as it is stored (before any transposition). Class ids are below
/// `classes`.
pub(crate) fn operands(
    pattern: Pattern,
    shape: &[usize],
    classes: usize,
    signed: bool,
    numbers: &mut Numbers,
) -> Vec<Given> {
    let value = |numbers: &mut Numbers| {
        if signed { numbers.signed() } else { numbers.positive() }
    };
    let size: usize = shape.iter().product();
    match pattern {
        Pattern::Scalar => [value(numbers), 0.0, -0.5, 2.0].map(Given::Scalar).to_vec(),
        Pattern::Ids => {
            let ids = (0..size).map(|_| numbers.below(classes) as u32).collect();
            vec![
                Given::Ids(shape.to_vec(), ids),
                Given::Ids(shape.to_vec(), vec![classes as u32 - 1; size]),
            ]
        }
        Pattern::Like => vec![Given::Dense(shape.to_vec(), vec![f64::NAN; size])],
        Pattern::Array(Storage::Dense, _) => {
            let full: Vec<f64> = (0..size).map(|_| value(numbers)).collect();
            let row: usize = shape.iter().skip(1).product();
            // Zeros of both signs here and there, and a whole row of them.
            let holes = full.iter().enumerate().map(|(place, &value)| match place % 3 {
                0 => 0.0,
                1 if place / row.max(1) == 1 => -0.0,
                _ if place / row.max(1) == 1 => 0.0,
                _ => value,
            });
            vec![Given::Dense(shape.to_vec(), holes.collect()), Given::Dense(shape.to_vec(), full)]
        }
        Pattern::Array(Storage::Csr, _) => {
            csr(shape[0], shape[1], &mut |numbers| value(numbers), numbers)
        }
        Pattern::Unit(_) => {
            let units = |given| match given {
                Given::Csr(n_cols, rows) => Given::Unit(n_cols, rows),
                other => other,
            };
            let mut given: Vec<_> =
                csr(shape[0], shape[1], &mut |_| 1.0, numbers).into_iter().map(units).collect();
            for given in &mut given {
                if let Given::Unit(_, rows) = given {
                    rows.iter_mut().flatten().for_each(|(_, value)| *value = 1.0);
                }
            }
            given
        }
        Pattern::Array(Storage::RowSparse, _) => {
            row_sparse(shape, &mut |numbers| value(numbers), numbers)
        }
    }
}

fn csr(
    n_rows: usize,
    n_cols: usize,
    value: &mut dyn FnMut(&mut Numbers) -> f64,
    numbers: &mut Numbers,
) -> Vec<Given> {
    let mut build = |stores: &dyn Fn(usize, usize, &mut Numbers) -> Option<bool>| {
        let rows = (0..n_rows).map(|row| {
            let entries = (0..n_cols).filter_map(|column| {
                let zero = stores(row, column, numbers)?;
                Some((column, if zero { 0.0 } else { value(numbers) }))
            });
            entries.collect()
        });
        Given::Csr(n_cols, rows.collect())
    };
    vec![
        // no non-zeros
        build(&|_, _, _| None),
        // full
        build(&|_, _, _| Some(false)),
        // empty first and last rows, the last column empty
        build(&|row, column, _| {
            (row > 0 && row + 1 < n_rows && column + 1 < n_cols).then_some(false)
        }),
        // random, with stored zeros
        build(&|_, _, numbers| (numbers.below(5) < 2).then(|| numbers.below(3) == 0)),
        // stored zeros only
        build(&|row, column, _| ((row + column) % 2 == 0).then_some(true)),
        // the last element only
        build(&|row, column, _| (row + 1 == n_rows && column + 1 == n_cols).then_some(false)),
    ]
}

fn row_sparse(
    shape: &[usize],
    value: &mut dyn FnMut(&mut Numbers) -> f64,
    numbers: &mut Numbers,
) -> Vec<Given> {
    let row: usize = shape[1..].iter().product();
    let mut build = |stores: &dyn Fn(usize, &mut Numbers) -> Option<bool>| {
        let (mut ids, mut values) = (Vec::new(), Vec::new());
        for id in 0..shape[0] {
            if let Some(zero) = stores(id, numbers) {
                ids.push(id);
                values.extend((0..row).map(|_| if zero { 0.0 } else { value(numbers) }));
            }
        }
        Given::RowSparse(shape.to_vec(), ids, values)
    };
    let all = build(&|_, _| Some(false));
    let mut given = vec![
        // no rows
        build(&|_, _| None),
        // not the first and not the last row
        build(&|id, _| (id > 0 && id + 1 < shape[0]).then_some(false)),
        // random, with rows of zeros
        build(&|_, numbers| (numbers.below(2) == 0).then(|| numbers.below(3) == 0)),
        // the last row only
        build(&|id, _| (id + 1 == shape[0]).then_some(false)),
    ];
    if let Given::RowSparse(shape, _, values) = &all {
        given.push(Given::Table(shape.clone(), values.clone()));
    }
    given.push(all);
    given
}
