use super::terms::Visited as _;
use super::*;
use crate::optimizer::ParameterSpec;
use nnz_arrays::formats::{Csr, Dense};
use nnz_optim::{AdaGrad, GroupAdaGrad, LazyUpdate, Sgd};
use sparse_core::storage::Storage;

const ROWS: usize = 90;

/// The weights after some steps by terms of each kind, of rows of `SIZE` elements, in so many
/// parts. A row of the parameter is in every row of data, most are in none, some rows of data are
/// empty, and ids are beyond the table.
fn steps<R: UpdateRule, const SIZE: usize>(rule: &R, n_parts: usize) -> Result<Vec<f32>> {
    let rows = (0..40usize).map(|row| {
        let entries = (0..row * 7 % 23).map(move |k| (k * 3 + row % 5, (k % 5) as f32 - 1.5));
        entries.chain((row % 3 != 1).then_some((77, 1.0))).collect::<Vec<_>>()
    });
    let (x, empty) = (Csr::from_rows(ROWS, rows)?, Csr::<f32>::from_rows(ROWS, vec![vec![]; 40])?);
    let ids = Dense::new([40], (0..40).map(|i| i * i % 97 - 1).collect::<Vec<i64>>())?;
    let added = (0..40 * SIZE).map(|i| (i % 13) as f32 / 8.0 - 0.7).collect::<Vec<_>>();
    let added = Dense::new([40, SIZE], added)?;
    let spec = ParameterSpec::new("w", ROWS, SIZE, Some(Storage::RowSparse));
    let mut updater = Updater::<R, f32>::new(rule.clone(), vec![spec])?;
    let values: Vec<f32> = (0..SIZE * ROWS).map(|i| (i % 11) as f32 / 7.0).collect();
    let mut table = Table::from_values(SIZE, &values);
    let (mut scratch, mut parts) = (Vec::new(), Vec::new());
    let added = added.view();
    macro_rules! step {
        ($terms:expr) => {{
            updater.begin_step()?;
            with_rows!(R, f32; updater, [0 => &mut table], |[rows]| {
                let width = Runtime(SIZE);
                match n_parts {
                    1 => of_size(rows, $terms, width, 1, (&mut scratch, &mut parts)),
                    _ => {
                        let bounds = Bounds::of(n_parts, ROWS, &|place, of| $terms.sample(place, of));
                        in_parts(n_parts, &bounds, &mut rows, $terms, width, &mut parts);
                        rows.finish();
                    }
                }
            });
            updater.end_step()?;
        }};
    }
    for _ in 0..2 {
        for (mean, weighted) in [(false, false), (true, false), (true, true)] {
            step!(Bags { bags: x.view(), added, mean, weighted });
        }
        let (product, taken) = (Product { csr: x.view(), added }, Taken { ids: ids.view(), added });
        step!(product);
        step!(Product { csr: empty.view(), added });
        step!(taken);
        step!(Both(product, Both(taken, product)));
    }
    updater.flush(0, &mut table)?;
    Ok(table.values().to_vec())
}

#[test]
fn parts_have_the_bits_of_one() {
    fn of_size<R: UpdateRule, const SIZE: usize>(rule: &R) {
        let one = steps::<R, SIZE>(rule, 1).unwrap();
        assert!(one.iter().all(|weight| weight.is_finite()));
        for n_parts in [2, 3, 7] {
            let several = steps::<R, SIZE>(rule, n_parts).unwrap();
            assert!(several == one, "{SIZE} elements, {rule:?} in {n_parts}");
        }
    }
    fn every<R: UpdateRule>(rule: &R) {
        of_size::<R, 1>(rule);
        of_size::<R, 5>(rule);
    }
    for lazy_update in [LazyUpdate::Exact, LazyUpdate::Touched, LazyUpdate::Dense] {
        every(&Sgd { lazy_update, ..Sgd::default() });
        every(&Sgd { momentum: 0.9, weight_decay: 0.01, lazy_update, ..Sgd::default() });
        every(&AdaGrad { weight_decay: 0.01, lazy_update, ..AdaGrad::default() });
    }
    every(&GroupAdaGrad::default());
}

/// Of each size that the loops know, what they know not.
#[test]
fn sizes_have_the_sums_of_any() {
    let (updates, rows) = (3, 4);
    for size in [1, 2, 8, 16, 32, 33] {
        let ids = Dense::new([updates], vec![1u32, 3, 1]).unwrap();
        let added: Vec<f64> = (0..updates * size).map(|i| i as f64).collect();
        let added = Dense::new([updates, size], added).unwrap();
        let spec = ParameterSpec::new("w", rows, size, Some(Storage::RowSparse));
        let rule = Sgd { learning_rate: 0.5, ..Sgd::default() };
        let mut updater = Updater::<_, f64>::new(rule, vec![spec]).unwrap();
        let mut table = Table::from_values(size, &vec![0.0; rows * size]);
        updater.begin_step().unwrap();
        let terms = Taken { ids: ids.view(), added: added.view() };
        let scratch = &mut Scratch::default();
        update(0, &mut table, &mut updater, terms, Parallel::Sequential, scratch).unwrap();
        updater.end_step().unwrap();
        for column in 0..size {
            let of = |row: usize| table.values()[row * size + column];
            let added = |id: usize| (id * size + column) as f64;
            assert_eq!([of(0), of(2)], [0.0; 2]);
            assert_eq!([of(1), of(3)], [-0.5 * (added(0) + added(2)), -0.5 * added(1)], "{size}");
        }
    }
}

/// A row that a million ids name, and the step of each is far below the last digit of the weight.
#[test]
fn n1b_a_row_that_many_terms_name_has_one_step() {
    let n_terms = 1 << 20;
    let ids = Dense::new([n_terms], vec![1u32; n_terms]).unwrap();
    let added = Dense::full([n_terms, 1], -2.0 / n_terms as f32);
    let spec = ParameterSpec::new("w", 2, 1, Some(Storage::RowSparse));
    let rule = Sgd { learning_rate: 1.0, ..Sgd::default() };
    let mut updater = Updater::<_, f32>::new(rule, vec![spec]).unwrap();
    let mut table = Table::from_values(1, &[1.0, 1000.0]);
    updater.begin_step().unwrap();
    let terms = Taken { ids: ids.view(), added: added.view() };
    let scratch = &mut Scratch::default();
    update(0, &mut table, &mut updater, terms, Parallel::Threads(2), scratch).unwrap();
    updater.end_step().unwrap();
    assert_eq!(table.values(), [1.0, 1002.0]);
}
