//! Models that were grown at random out of the operator table (`sparse-macros/src/tests/grown.rs`):
//! fused and unfused they compute the same, gradients are the slopes of the loss, and rows of
//! parameters that a batch is not said to read do not matter.

// What a model lacks is a warning: these have values that nothing reads.
#![allow(clippy::unwrap_used, dead_code, deprecated, unreachable_pub)]

use nnz::formats::{RowIdsView, Unit};
use nnz::model::{GradientMut, RowIds};
use nnz::optimizer::{UpdateRule, Updater};
use nnz::prelude::*;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

const ROWS: usize = 5;

/// Also rows without entries by themselves, and no rows.
const BATCHES: [Range<usize>; 5] = [0..ROWS, 0..1, 1..2, 1..4, 2..2];

struct Data {
    x: Csr<f64>,
    ones: Csr<Unit>,
    z: Dense<f64>,
    ids: Dense<u32>,
    y: Dense<f64>,
    class: Dense<u32>,
    weight: Dense<f64>,
}

fn data() -> Data {
    let rows = [
        vec![(0, 0.913), (3, -0.547)],
        vec![],
        vec![(3, -0.771), (5, 0.613)],
        vec![(1, 0.329), (2, 1.127), (3, 0.871)],
        vec![(0, 0.691)],
    ];
    let numbers = |n: usize| (0..n).map(|i| ((i * 37 + 11) % 101) as f64 / 47.3 - 1.031).collect();
    Data {
        x: Csr::from_rows(6, rows).unwrap(),
        ones: Csr::pattern(6, vec![0, 2, 3, 3, 6, 8], vec![1u32, 3, 0, 2, 3, 5, 0, 4]).unwrap(),
        z: Dense::new([ROWS, 3], numbers(3 * ROWS)).unwrap(),
        ids: Dense::new([ROWS], vec![0, 0, 2, 0, 1]).unwrap(),
        y: Dense::new([ROWS, 1], vec![1.0, 0.0, 1.0, 0.25, 0.5]).unwrap(),
        class: Dense::new([ROWS], vec![0, 1, 0, 0, 1]).unwrap(),
        weight: Dense::new([ROWS], vec![1.0, 0.5, 2.0, 0.25, 1.5]).unwrap(),
    }
}

fn near(found: f64, expected: f64, tolerance: f64) -> bool {
    found == expected
        || found.is_nan() && expected.is_nan()
        || (found - expected).abs() <= tolerance * (1.0 + expected.abs())
}

#[track_caller]
fn all_near(found: &[f64], expected: &[f64], tolerance: f64, what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let is_near = |(found, expected): (&f64, &f64)| near(*found, *expected, tolerance);
    assert!(found.iter().zip(expected).all(is_near), "{what}: {found:?} {expected:?}");
}

/// The gradient of each parameter as a dense one, and the rows that it stores.
fn gradients<M: Model<Element = f64>>(model: &mut M) -> Vec<(Vec<f64>, Option<Vec<u64>>)> {
    let of_parameter = |index| match model.gradient_mut(index).unwrap() {
        GradientMut::Dense(all) => (all.values().to_vec(), None),
        GradientMut::RowSparse(some) => {
            let dense = some.view().to_dense().unwrap();
            (dense.values().to_vec(), Some(some.indices().to_vec()))
        }
    };
    (0..M::PARAMETERS.len()).map(of_parameter).collect()
}

fn is_of(rows: RowIdsView<'_>, row: u64) -> bool {
    match rows {
        RowIdsView::All => true,
        RowIdsView::Listed(rows) => rows.contains(&row),
    }
}

/// A model by itself, and what is computed of it on a batch.
trait Computed: Model<Element = f64> {
    fn on<O>(data: &Data, rows: Range<usize>, call: impl FnOnce(&Self::Batch<'_>) -> O) -> O;
}

/// Along what slopes are measured.
fn along(at: usize) -> f64 {
    ((at * 7919 + 13) % 101) as f64 / 50.0 - 1.0
}

/// What holds of the loss, the gradients and the outputs of a batch. Whether they are numbers.
fn agree<F: Computed, U: Computed>(
    data: &Data,
    rows: &Range<usize>,
    (fused, unfused): (&F, &U),
    has_differences: bool,
) -> bool {
    let loss_of = |mut model: F| {
        F::on(data, rows.clone(), |batch| model.loss_and_grads(batch).map(|loss| (loss, model)))
    };
    let mut u = unfused.clone();
    let expected = U::on(data, rows.clone(), |batch| u.loss_and_grads(batch));
    let ((loss, mut f), expected) = match (loss_of(fused.clone()), expected) {
        (Ok(found), Ok(expected)) => (found, expected),
        // Ids of rows that a smaller batch does not have.
        (Err(found), Err(expected)) => {
            let of_fused = expected.to_string().replace("Unfused", "Fused");
            assert_eq!(found.to_string(), of_fused, "{rows:?}");
            return false;
        }
        (found, expected) => panic!("{rows:?}: {:?}, {expected:?}", found.map(|found| found.0)),
    };
    assert!(near(loss, expected, 1e-10), "{rows:?}: loss {loss} {expected}");
    let mut are_numbers = loss.is_finite();
    let by_unfused = gradients(&mut u);
    for (index, (found, expected)) in gradients(&mut f).iter().zip(&by_unfused).enumerate() {
        let name = F::PARAMETERS[index].name;
        all_near(&found.0, &expected.0, 1e-9, &format!("{rows:?}: gradient of `{name}`"));
        assert_eq!(found.1, expected.1, "{rows:?}: rows of the gradient of `{name}`");
        let (mut ids, mut other) = (RowIds::new(), fused.clone());
        F::on(data, rows.clone(), |batch| {
            let written = fused.rows_written(batch, index, &mut ids).unwrap();
            let are_told = found.1.iter().flatten().all(|row| is_of(written, *row));
            assert!(
                are_told,
                "{rows:?}: rows of `{name}` {:?} are not said to be written",
                found.1
            );
            // Rows that are not read have any values.
            let read = fused.rows_read(batch, index, &mut ids).unwrap();
            let parameter = &mut other.parameters_mut()[index];
            let row_size = parameter.shape.row_size();
            for (row, values) in (0..).zip(parameter.values_mut().chunks_mut(row_size)) {
                if !is_of(read, row) {
                    values.fill(7.5);
                }
            }
        });
        let (same, _) = loss_of(other).unwrap();
        assert!(near(same, loss, 1e-10), "{rows:?}: of rows of `{name}`: {same}, not {loss}");
        let slope: f64 = found.0.iter().enumerate().map(|(at, slope)| slope * along(at)).sum();
        are_numbers &= slope.is_finite();
        if !has_differences || !are_numbers {
            continue;
        }
        let moved = |by: f64| {
            let mut model = fused.clone();
            let parameter = &mut model.parameters_mut()[index];
            let values = parameter.values_mut().iter_mut();
            values.enumerate().for_each(|(at, value)| *value += by * along(at));
            loss_of(model).unwrap().0
        };
        // Over several lengths: rounding needs long ones, kinks and steps short ones.
        let differences = [1e-4, 1e-5, 1e-6].map(|by| (moved(by) - moved(-by)) / (2.0 * by));
        let is_slope = differences.iter().any(|difference| near(*difference, slope, 2e-4));
        assert!(is_slope, "{rows:?}: slope of `{name}` {slope}, differences {differences:?}");
    }
    F::on(data, rows.clone(), |batch| f.forward(batch).map(|_| ())).unwrap();
    U::on(data, rows.clone(), |batch| u.forward(batch).map(|_| ())).unwrap();
    if let (Some(found), Some(expected)) = (f.dense_output(0), u.dense_output(0)) {
        assert_eq!(found.shape(), expected.shape(), "{rows:?}");
        let [found, expected] = [found, expected].map(|output| output.to_owned());
        all_near(found.values(), expected.values(), 1e-10, &format!("{rows:?}: output"));
    }
    are_numbers
}

/// Steps of both on batches of one and of several rows.
fn learn<F: Computed, U: Computed, R: UpdateRule>(
    data: &Data,
    (mut fused, mut unfused): (F, U),
    rule: &R,
) {
    let mut f = Updater::for_model(rule.clone(), &fused).unwrap();
    let mut u = Updater::for_model(rule.clone(), &unfused).unwrap();
    for step in 0..9 {
        let rows = match step % 4 {
            0 => 0..ROWS,
            3 => 1..4,
            _ => step % ROWS..step % ROWS + 1,
        };
        let found = F::on(data, rows.clone(), |batch| fused.train_step(batch, &mut f));
        let expected = U::on(data, rows, |batch| unfused.train_step(batch, &mut u));
        let (Ok(found), Ok(expected)) = (&found, &expected) else {
            assert!(found.is_err() && expected.is_err(), "{rule:?}: {found:?} {expected:?}");
            return;
        };
        assert!(near(*found, *expected, 1e-8), "{rule:?}: step {step}: loss {found} {expected}");
        if !found.is_finite() {
            return;
        }
    }
    f.flush_model(&mut fused).unwrap();
    u.flush_model(&mut unfused).unwrap();
    for (p, q) in fused.parameters().iter().zip(unfused.parameters()) {
        all_near(p.values(), q.values(), 1e-7, &format!("{rule:?}: `{}`", p.name));
    }
}

/// All that holds of a model and its twin. Whether the losses and gradients of all batches with
/// rows are numbers.
fn holds<F: Computed, U: Computed>(
    data: &Data,
    new: fn() -> (F, U),
    has_differences: bool,
) -> bool {
    let (fused, unfused) = new();
    let mut are_numbers = true;
    for rows in BATCHES {
        are_numbers &= agree(data, &rows, (&fused, &unfused), has_differences) || rows.is_empty();
    }
    learn(data, new(), &Sgd { learning_rate: 0.05, ..Sgd::default() });
    let rule = Sgd { learning_rate: 0.05, momentum: 0.5, weight_decay: 0.02, ..Sgd::default() };
    learn(data, new(), &rule);
    learn(data, new(), &AdaGrad { learning_rate: 0.05, ..AdaGrad::default() });
    let lazy_update = LazyUpdate::Touched;
    learn(data, new(), &Adam { learning_rate: 0.02, lazy_update, ..Adam::default() });
    are_numbers
}

/// The extent of a dimension of parameters.
fn extent(dim: &str) -> usize {
    if dim == "d" { 6 } else { 4 }
}

macro_rules! grown {
    ($($name:ident, [$($input:ident),*], [$($dim:ident),*], $has_differences:literal { $($body:tt)* })*) => {
        $(mod $name {
            use super::*;

            graph! {
                pub model Fused { dtype = f64; $($body)* }
                pub model Unfused { dtype = f64; fuse = off; $($body)* }
            }

            grown!(@on $name Fused FusedBatch $($input)*);
            grown!(@on $name Unfused UnfusedBatch $($input)*);

            pub(super) fn new() -> (Fused, Unfused) {
                let dims = || dims! { $($dim: extent(stringify!($dim))),* };
                (Fused::new(dims(), Seed(5)).unwrap(), Unfused::new(dims(), Seed(5)).unwrap())
            }
        })*

        /// Their names, and whether they hold.
        const MODELS: &[(&str, fn(&Data) -> bool)] =
            &[$((stringify!($name), |data| holds(data, $name::new, $has_differences))),*];
    };
    (@on $name:ident $Model:ident $Batch:ident $($input:ident)*) => {
        impl Computed for $Model {
            fn on<O>(data: &Data, rows: Range<usize>, call: impl FnOnce(&Self::Batch<'_>) -> O) -> O {
                $(let $input = data.$input.view().rows(rows.clone()).unwrap();)*
                call(&$Batch { $($input),* })
            }
        }
    };
}

include!("grown/models.rs");

#[test]
fn grown_models_hold() {
    let data = data();
    let (mut n_numbers, mut failed) = (0, Vec::new());
    for (name, holds) in MODELS {
        match catch_unwind(AssertUnwindSafe(|| holds(&data))) {
            Ok(are_numbers) => n_numbers += usize::from(are_numbers),
            Err(_) => failed.push(*name),
        }
    }
    assert!(failed.is_empty(), "{failed:?}");
    assert!(2 * n_numbers > MODELS.len(), "{n_numbers} of {} give numbers", MODELS.len());
}
