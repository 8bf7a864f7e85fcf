//! The loops of kernels give the same bits with any instructions, as far as this processor has
//! them.

use super::x86::Level;
use super::{Eights, inner, squares_less};
use crate::formats::{Csr, Dense, RowSparse};
use crate::kernels::dot::cpu;
use crate::kernels::parallel::below;
use crate::kernels::{Context, Parallel};
use crate::optimizer::{ParameterSpec, RowAccumulator, Updater};
use crate::parameter_memory::Table;
use crate::with_rows;
use sparse_core::element::Float;
use sparse_core::storage::Storage;
use sparse_core::update_rules::{
    LazyUpdate, NAMES, RuleVisitor, StateBlock, UpdateRule, with_rule,
};
use std::cell::{Cell, RefCell};

thread_local! {
    /// The best level that loops on this thread may use.
    pub(super) static HIGHEST: Cell<Option<Level>> = const { Cell::new(Some(Level::Avx512)) };
}

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
fn sums_of_terms() {
    for len in [0, 1, 7, 8, 16, 20, 24, 33] {
        let (a, b) = (numbers::<f32>(1, len), numbers::<f32>(2, len));
        let (a, b) = (a.values(), &b.values()[len..]);
        let check = |sum: fn(&[f32], &[f32]) -> f32, term: fn(f64, f64) -> f64| {
            any_level_gives_the_same(&format!("{len} elements"), || sum(a, b).to_bits());
            let exact: f64 = a.iter().zip(b).map(|(a, b)| term((*a).into(), (*b).into())).sum();
            assert!((f64::from(sum(a, b)) - exact).abs() < 1e-4, "{len} elements");
        };
        check(inner, |a, b| a * b);
        check(squares_less, |a, b| a * a - b);
    }
}

#[test]
fn sums_with_squares() {
    for len in [8, 16, 24, 64] {
        let (row, start) = (numbers::<f32>(1, len), numbers::<f32>(2, len));
        let (mut sums, mut squares) =
            (start.values()[..len].to_vec(), start.values()[len..].to_vec());
        let terms = row.values().iter().map(|element| 0.3 * element);
        let expected: (Vec<f32>, Vec<f32>) = (sums.iter().zip(&squares).zip(terms))
            .map(|((sum, square), term)| (sum + term, square + term * term))
            .unzip();
        if let Some(eights) = Eights::of::<f32>(len) {
            // SAFETY: three rows of this size.
            unsafe { eights.add_with_squares(0.3, row.values(), &mut sums, &mut squares) };
            assert_eq!((sums, squares), expected, "{len} elements");
        }
    }
    assert!(Eights::of::<f32>(12).is_none() && Eights::of::<f64>(16).is_none());
}

#[test]
fn ids_below_a_bound_are_as_many_at_any_level() {
    any_level_gives_the_same("below", || {
        let ids: Vec<u32> = (0..127).map(|id| (id * id) << 18).collect();
        let count = |len: usize, bound: u32| below(&ids[..len], bound as usize);
        let bounds = ids.iter().flat_map(|&id| [id, id + 1]);
        Vec::from_iter(bounds.flat_map(|bound| [0, 15, 16, 17, 100, 127].map(|n| count(n, bound))))
    });
}

/// What `run` gives without instructions for vectors, and with more and more of them.
fn any_level_gives_the_same<R: PartialEq + std::fmt::Debug>(what: &str, run: impl Fn() -> R) {
    let at = |level| {
        HIGHEST.set(level);
        run()
    };
    let plain = at(None);
    for level in [Level::Avx2, Level::Avx512] {
        assert_eq!(at(Some(level)), plain, "{what}: {level:?}");
    }
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
        any_level_gives_the_same(&format!("csr · dense of {width}"), || {
            let mut out = Dense::default();
            let context = &mut context.borrow_mut();
            cpu::csr_dense(&mut out, x.view(), right.view(), false, context);
            bits(out.values())
        });
        let dense = x.to_dense().unwrap();
        any_level_gives_the_same(&format!("dense · dense of {width}"), || {
            let mut out = Dense::default();
            let context = &mut context.borrow_mut();
            cpu::dense_dense(&mut out, dense.view(), right.view(), false, false, context);
            bits(out.values())
        });
        any_level_gives_the_same(&format!("csrᵀ · dense of {width}"), || {
            let (mut table, mut rows) = (Dense::default(), RowSparse::default());
            let context = &mut context.borrow_mut();
            let into_table = cpu::csr_transposed_dense_into_dense;
            into_table(&mut table, x.view(), left.view(), false, context);
            cpu::csr_transposed_dense(&mut rows, x.view(), left.view(), false, context);
            (bits(table.values()), bits(rows.values()))
        });
        any_level_gives_the_same(&format!("csrᵀ · dense of {width}, many columns"), || {
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
    any_level_gives_the_same("dense → csr", || {
        let csr = dense.to_csr().unwrap();
        (csr.indptr().to_vec(), Vec::from_iter(csr.columns().iter()), bits(csr.values()))
    });
}

/// Steps on rows of one weight: some at once, as a row of data names them, and sums of several.
/// Weights and states afterwards.
fn updates<R: UpdateRule, T: Float>(rule: &R) -> crate::error::Result<Vec<u64>> {
    const N_ROWS: usize = 60;
    let spec = ParameterSpec::new("w", N_ROWS, 1, Some(Storage::RowSparse));
    let mut updater = Updater::<R, T>::new(rule.clone(), vec![spec])?;
    let mut table = Table::from_values(1, numbers::<T>(N_ROWS, 1).values());
    for n_rows in (0..50).chain([1, 4, 39]) {
        // At rate 0 some rules do nothing.
        let rate = if n_rows == 9 { 0.0 } else { 0.1 };
        updater.set_learning_rate(rate).ok();
        updater.begin_step()?;
        let grads = numbers::<T::Accumulator>(n_rows + 1, 1);
        let (row, grad) = (|place: usize| (place * 7 + n_rows) % N_ROWS, grads.values());
        with_rows!(R, T; updater, [0 => &mut table], |[rows]| {
            // SAFETY: multiples of 7 below 60 of them are different modulo 60, each below the
            // number of rows.
            unsafe { rows.cursor(1).update_each(n_rows, row, |place| grad[place]) };
            let mut sums = RowAccumulator::new(N_ROWS, 1);
            let slots = sums.own_slots();
            for place in 0..n_rows {
                let entry = (row(3 * place % N_ROWS) as u32, T::one());
                // SAFETY: below the number of rows, of one element.
                unsafe { sums.add_outer::<_, T, _>(slots, [entry].into_iter(), &grad[place..=place]) };
            }
            // SAFETY: each row that was summed is one of the parameter's.
            unsafe { rows.shared(1).update_summed(&sums) };
            rows.finish();
        });
        updater.end_step()?;
    }
    updater.flush(0, &mut table)?;
    let mut found = bits(table.values());
    updater.visit_states(0, &table, |states| {
        let numbers = states.iter().flat_map(|state| state.values());
        found.extend(numbers.map(|number| number.as_f64().to_bits()));
    });
    Ok(found)
}

/// Of a rule: with each of its options, and without.
struct Updates;

impl RuleVisitor for Updates {
    type Output = ();

    fn visit<R: UpdateRule>(self, mut rule: R) {
        rule.set_lazy_update(LazyUpdate::Touched);
        if rule.check().is_err() {
            rule.set_lazy_update(LazyUpdate::Dense);
        }
        let options = ["weight_decay", "l1", "l2", "clip_gradient", "momentum"];
        let set = |option: &str| {
            let mut rule = rule.clone();
            rule.set(option, 0.1).ok()?;
            rule.check().is_ok().then_some(rule)
        };
        let rules = options.into_iter().filter_map(set).chain([rule.clone()]);
        for rule in rules {
            any_level_gives_the_same(&format!("{rule:?}"), || updates::<R, f32>(&rule).unwrap());
            any_level_gives_the_same(&format!("{rule:?}"), || updates::<R, f64>(&rule).unwrap());
        }
    }
}

#[test]
fn updates_of_rows_of_one_weight() {
    for name in NAMES {
        with_rule(name, Updates).unwrap();
    }
}
