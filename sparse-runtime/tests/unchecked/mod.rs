//! Every loop without bounds checks, on small input, against the same sums done by hand. What each
//! `unsafe` block relies on is said there; Miri, run as `CONTRIBUTING.md` says, sees whether it
//! holds.

mod products;

use nnz_optim::{LazyUpdate, Sgd};
use sparse_core::storage::Storage;
use sparse_runtime::engine::{self, Pass, Pool, Program, Read, Refs, Sample, Source, TrainedTable};
use sparse_runtime::formats::{Csr, CsrView, Dense, RowSelection, RowSparse, Shape};
use sparse_runtime::kernels::{Context, Parallel};
use sparse_runtime::linear::{Fixed, Runtime, Scratch, Width, step};
use sparse_runtime::model::ModelError;
use sparse_runtime::optimizer::{ParameterSpec, RowAccumulator, Updater};
use sparse_runtime::table::Table;
use sparse_runtime::{read_rows, scatter_gradient};
use std::ops::Range;

const N_FEATURES: usize = 7;

/// Rows of no, one, some and more than four entries: loops work on four at a time.
fn data() -> Csr<f64> {
    let rows = [
        vec![(0, 1.0), (6, -2.0)],
        vec![],
        vec![(0, 0.5), (1, 1.5), (2, -1.0), (3, 2.0), (5, 1.0), (6, 0.25)],
        vec![(6, 3.0)],
        vec![(1, -1.0), (2, 1.0), (3, 0.5), (4, -0.5)],
    ];
    Csr::from_rows(N_FEATURES, rows).unwrap()
}

fn updater(rule: &Sgd, n_rows: usize, width: usize) -> Updater<Sgd, f64> {
    let spec = ParameterSpec::new("w", n_rows, width, Some(Storage::RowSparse));
    Updater::new(rule.clone(), vec![spec]).unwrap()
}

fn initial(n_rows: usize, width: usize) -> Vec<f64> {
    (0..n_rows * width).map(|i| (i % 11) as f64 * 0.25 - 1.0).collect()
}

/// The rules that take different paths: only adding, with state, without state but more than
/// adding.
fn rules() -> Vec<Sgd> {
    let plain = Sgd { learning_rate: 0.125, ..Sgd::default() };
    let mut rules = vec![plain.clone()];
    for lazy_update in [LazyUpdate::Exact, LazyUpdate::Touched, LazyUpdate::Dense] {
        rules.push(Sgd { momentum: 0.5, lazy_update, ..plain.clone() });
        rules.push(Sgd { weight_decay: 0.25, lazy_update, ..plain.clone() });
    }
    rules
}

/// One step by the textbook: the gradient of Σ (score - 1)² / 2 over the batch, then the rule on
/// every row, or on those touched.
fn by_hand(rule: &Sgd, x: CsrView<'_, f64>, w: &mut [f64], v: &mut [f64], width: usize) -> f64 {
    let mut gradient = vec![0.0; w.len()];
    let mut touched = vec![false; w.len() / width];
    let mut loss = 0.0;
    for row in x.iter_rows() {
        let mut errors = vec![-1.0; width];
        for (column, value) in row.clone() {
            for (k, error) in errors.iter_mut().enumerate() {
                *error += value * w[column * width + k];
            }
        }
        loss += errors.iter().map(|error| error * error / 2.0).sum::<f64>();
        for (column, value) in row {
            touched[column] = true;
            for (k, error) in errors.iter().enumerate() {
                gradient[column * width + k] += value * error;
            }
        }
    }
    for (i, (w, v)) in w.iter_mut().zip(v).enumerate() {
        if touched[i / width] || rule.lazy_update != LazyUpdate::Touched {
            *v = rule.momentum * *v - rule.learning_rate * (gradient[i] + rule.weight_decay * *w);
            *w += *v;
        }
    }
    loss / x.n_rows().max(1) as f64
}

fn fused(
    x: CsrView<'_, f64>,
    w: &mut Table<f64>,
    updater: &mut Updater<Sgd, f64>,
    width: impl Width,
    scratch: &mut Scratch<f64>,
) -> f64 {
    updater.begin_step().unwrap();
    let loss = step(x, 0, w, updater, width, Parallel::Sequential, scratch, |_, scores, _| {
        scores.iter_mut().for_each(|score| *score -= 1.0);
        scores.iter().map(|error| error * error / 2.0).sum::<f64>()
    });
    updater.end_step().unwrap();
    loss.unwrap()
}

fn assert_close(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() <= 1e-12 * (1.0 + expected.abs()), "{found} {expected}");
    }
}

/// The same steps fused and by hand: whole batches, single rows, rows in any order, ids of 64 bits.
fn steps_agree(rule: &Sgd, width: impl Width) {
    let columns = width.columns();
    let x = data();
    let wide: Vec<u64> = x.columns().iter().map(|id| id as u64).collect();
    let wide = CsrView::new(N_FEATURES, x.indptr(), &wide[..], x.values()).unwrap();
    let mut selection = RowSelection::new();
    let shuffled = selection.gather(&x, &[3, 0, 3, 2, 1]).unwrap();
    let batches = [
        x.view(),
        x.rows(3..4).unwrap(),
        shuffled,
        wide,
        wide.rows(2..3).unwrap(),
        x.rows(1..2).unwrap(),
        x.rows(2..2).unwrap(),
    ];

    let (mut updater, mut scratch) = (updater(rule, N_FEATURES, columns), Scratch::default());
    let mut expected = initial(N_FEATURES, columns);
    let (mut w, mut v) = (Table::from_values(columns, &expected), vec![0.0; expected.len()]);
    for batch in batches {
        let loss = fused(batch, &mut w, &mut updater, width, &mut scratch);
        let by_hand = by_hand(rule, batch, &mut expected, &mut v, columns);
        assert_close(&[loss], &[by_hand]);
    }
    updater.flush(0, &mut w).unwrap();
    assert_close(w.values(), &expected);
}

#[test]
fn fused_steps() {
    for rule in rules() {
        steps_agree(&rule, Fixed::<1>);
        steps_agree(&rule, Fixed::<13>);
        steps_agree(&rule, Runtime(1));
        steps_agree(&rule, Runtime(13));
    }
}

/// A table that is far from the core is asked for ahead: of 32 MiB, which is enough for any
/// processor. For Miri, to which no processor says what it has, 1 MiB is.
#[test]
fn fused_steps_of_a_large_table() {
    const N_ROWS: usize = if cfg!(miri) { 1 << 17 } else { 1 << 22 };
    let rows = (0..9).map(|i| [(i, 1.0), (N_ROWS / 2 + i, 0.5), (N_ROWS - 1, -1.0)]);
    let x = Csr::from_rows(N_ROWS, rows).unwrap();
    let mut selection = RowSelection::new();
    let shuffled = selection.gather(&x, &[8, 1, 7, 2, 6, 3, 5, 4, 0, 8, 2]).unwrap();
    let rule = Sgd { learning_rate: 0.125, ..Sgd::default() };
    let (mut updater, mut scratch) = (updater(&rule, N_ROWS, 1), Scratch::default());
    let mut w = Table::zeros(N_ROWS, 1);
    let mut expected = vec![0.0; N_ROWS];
    for batch in [x.view(), shuffled, x.rows(4..5).unwrap()] {
        fused(batch, &mut w, &mut updater, Fixed::<1>, &mut scratch);
        // By hand, but on the stored columns only.
        let errors: Vec<f64> = (batch.iter_rows())
            .map(|row| row.map(|(column, value)| value * expected[column]).sum::<f64>() - 1.0)
            .collect();
        for (row, column, value) in batch.iter() {
            expected[column] -= 0.125 * value * errors[row];
        }
    }
    assert_close(w.values(), &expected);
}

/// How the rows of a batch are named.
#[derive(Clone, Copy, Debug)]
enum Named {
    Product,
    Bags { mean: bool, weighted: bool },
    Ids,
    Twice,
}

/// The csr whose product with the parameter is what is read.
fn as_product(x: CsrView<'_, f64>, named: Named) -> Csr<f64> {
    let rows = x.iter_rows().map(|row| {
        let entries: Vec<(usize, f64)> = row.collect();
        let sum: f64 = entries.iter().map(|(_, value)| value).sum();
        let (count, last) = (entries.len() as f64, entries.last().copied());
        let factor = |value: f64| match named {
            Named::Product | Named::Ids => value,
            Named::Twice => 2.0 * value,
            Named::Bags { mean: false, weighted: true } => value,
            Named::Bags { mean: false, weighted: false } => 1.0,
            Named::Bags { mean: true, weighted: true } => {
                if sum == 0.0 {
                    0.0
                } else {
                    value / sum
                }
            }
            Named::Bags { mean: true, weighted: false } => 1.0 / count,
        };
        match named {
            Named::Ids => vec![(last.map_or(0, |(column, _)| column), 1.0)],
            _ => entries.iter().map(|(column, value)| (*column, factor(*value))).collect(),
        }
    });
    Csr::from_rows(x.n_cols(), rows).unwrap()
}

/// A step in three parts, rows read, errors made of them, and terms of the gradient scattered;
/// gives the loss.
fn in_parts(
    x: CsrView<'_, f64>,
    named: Named,
    table: &mut Table<f64>,
    updater: &mut Updater<Sgd, f64>,
) -> f64 {
    let (mut out, mut context) = (Dense::default(), Context::default());
    let ids: Vec<i64> = x.iter_columns().map(|column| column as i64).collect();
    let ids = Dense::new([ids.len()], ids).unwrap();
    updater.begin_step().unwrap();
    let shape = Shape::from([table.n_rows(), table.row_size()]);
    let lent = read_rows::Lent { parameter: 0, shape, table: &mut *table, updater: &mut *updater };
    match named {
        Named::Product | Named::Twice => read_rows::product(&mut out, x, lent, &mut context),
        Named::Bags { mean, weighted } => {
            read_rows::bags(&mut out, x, lent, mean, weighted, &mut context)
        }
        Named::Ids => read_rows::taken(&mut out, ids.view(), lent, &mut context),
    }
    .unwrap();
    let doubled = if matches!(named, Named::Twice) { 2.0 } else { 1.0 };
    out.values_mut().iter_mut().for_each(|score| *score = doubled * *score - 1.0);
    let added = out.view();
    let csr = x;
    let (parallel, mut scratch) = (Parallel::Sequential, Scratch::default());
    let scratch = &mut scratch;
    match named {
        Named::Product => {
            let terms = scatter_gradient::Product { csr, added };
            scatter_gradient::update(0, table, updater, terms, parallel, scratch)
        }
        Named::Bags { mean, weighted } => {
            let terms = scatter_gradient::Bags { bags: x, added, mean, weighted };
            scatter_gradient::update(0, table, updater, terms, parallel, scratch)
        }
        Named::Ids => {
            let terms = scatter_gradient::Taken { ids: ids.view(), added };
            scatter_gradient::update(0, table, updater, terms, parallel, scratch)
        }
        Named::Twice => {
            let terms = scatter_gradient::Product { csr, added };
            scatter_gradient::update(
                0,
                table,
                updater,
                scatter_gradient::Both(terms, terms),
                parallel,
                scratch,
            )
        }
    }
    .unwrap();
    updater.end_step().unwrap();
    out.values().iter().map(|error| error * error / 2.0).sum::<f64>() / x.n_rows().max(1) as f64
}

#[test]
fn rows_gathered_and_scattered() {
    let kinds = [(false, false), (false, true), (true, false), (true, true)];
    let bags = kinds.map(|(mean, weighted)| Named::Bags { mean, weighted });
    for named in [Named::Product, Named::Ids, Named::Twice].into_iter().chain(bags) {
        let x = match named {
            Named::Ids => as_product(data().view(), named),
            _ => data(),
        };
        for (rule, columns) in rules().iter().flat_map(|rule| [(rule, 1), (rule, 21)]) {
            let mut updater = updater(rule, N_FEATURES, columns);
            let mut expected = initial(N_FEATURES, columns);
            let mut table = Table::from_values(columns, &expected);
            let mut states = vec![0.0; expected.len()];
            for rows in [0..5, 2..3, 1..4, 3..4, 2..2] {
                let x = x.rows(rows).unwrap();
                let loss = in_parts(x, named, &mut table, &mut updater);
                let x = as_product(x, named);
                let by_hand = by_hand(rule, x.view(), &mut expected, &mut states, columns);
                assert_close(&[loss], &[by_hand]);
            }
            updater.flush(0, &mut table).unwrap();
            assert_close(table.values(), &expected);
        }
    }
}

/// A read of table 0, whose rows a sample names.
fn read<'b>(refs: Refs<'b, f64>, pool: Pool, size: usize) -> Read<'b, 'static, f64> {
    Read { source: Source::Trained(0), refs, pool, size, has_gradient: true }
}

/// The only table of a program.
fn trained<'m>(
    table: &'m mut Table<f64>,
    gradient: &'m mut RowSparse<f64>,
) -> TrainedTable<'m, f64> {
    let shape = Shape::from([table.n_rows(), table.row_size()]);
    TrainedTable { parameter: 0, shape, table, gradient }
}

fn pass(updater: &mut dyn engine::AnyUpdater<f64>, each: bool) -> Pass<'_, f64> {
    if each { Pass::EachSample(updater) } else { Pass::Batch(updater) }
}

/// Steps of the engine, of one sample each and of all, on samples whose scores are sums of what is
/// read of rows of `size` elements: as [`by_hand`] makes them of the same as a product.
fn through_engine(
    reads: &[Read<'_, '_, f64>],
    as_product: &Csr<f64>,
    size: usize,
    scores: impl Fn(&[f64]) -> Vec<f64> + Sync,
) {
    let n_samples = as_product.n_rows();
    for (rule, each) in rules().into_iter().flat_map(|rule| [(rule.clone(), true), (rule, false)]) {
        let mut updater = updater(&rule, N_FEATURES, size);
        let mut expected = initial(N_FEATURES, size);
        let mut table = Table::from_values(size, &expected);
        let mut states = vec![0.0; expected.len()];
        let row_function = |sample: Sample<'_, f64>| {
            let errors: Vec<f64> = scores(sample.numbers).iter().map(|score| score - 1.0).collect();
            for gradients in sample.gradients.chunks_mut(size) {
                gradients.iter_mut().zip(&errors).for_each(|(out, error)| *out = *error);
            }
            errors.iter().map(|error| error * error / 2.0).sum()
        };
        let made = engine::run(
            &mut Program {
                n_samples,
                reads,
                tables: &mut [trained(&mut table, &mut RowSparse::default())],
                dense: &mut [],
                outputs: &mut [],
                work: 0,
            },
            pass(engine::erased(&mut updater), each),
            Parallel::Sequential,
            &mut Scratch::default(),
            &row_function,
        )
        .unwrap();
        let mut step = |row: Range<usize>| {
            let row = as_product.rows(row).unwrap();
            by_hand(&rule, row, &mut expected, &mut states, size)
        };
        let loss: f64 = if each {
            (0..n_samples).map(|row| step(row..row + 1)).sum()
        } else {
            step(0..n_samples)
        };
        updater.flush(0, &mut table).unwrap();
        assert_close(table.values(), &expected);
        assert_close(&[made.loss_sum], &[loss]);
    }
}

fn ids_of(ids: &Dense<u32>) -> Refs<'_, f64> {
    Refs::Ids(ids.view().into(), 1)
}

#[test]
fn steps_of_the_engine() {
    let x = data();
    let csr = Refs::Csr(x.view());
    for size in [1, 5, 8, 16] {
        through_engine(&[read(csr, Pool::Product, size)], &x, size, <[f64]>::to_vec);
    }
    for (mean, weighted) in [(false, false), (false, true), (true, false), (true, true)] {
        let bags = as_product(x.view(), Named::Bags { mean, weighted });
        let read = read(csr, Pool::Bag { mean, weighted }, 4);
        through_engine(&[read], &bags, 4, <[f64]>::to_vec);
    }
    let ids = [6u32, 0, 0, 3, 6];
    let taken = Csr::from_rows(N_FEATURES, ids.map(|id| vec![(id as usize, 1.0)])).unwrap();
    let ids = Dense::new([5], ids.to_vec()).unwrap();
    through_engine(&[read(ids_of(&ids), Pool::Rows, 3)], &taken, 3, <[f64]>::to_vec);
}

/// Sums of what two reads give.
fn added(numbers: &[f64]) -> Vec<f64> {
    let (first, second) = numbers.split_at(numbers.len() / 2);
    first.iter().zip(second).map(|(a, b)| a + b).collect()
}

/// Of a table that is read twice: by ids that the columns are among, and by those that they are
/// not.
#[test]
fn steps_of_the_engine_that_read_a_table_twice() {
    let x = data();
    for ids in [[6u32, 0, 0, 3, 6], [0, 1, 2, 3, 4], [5, 5, 5, 5, 5]] {
        let rows = ids.iter().enumerate().map(|(row, id)| {
            let mut dense = vec![None; N_FEATURES];
            let (columns, values) = x.view().row(row).unwrap();
            let columns = (0..columns.len()).filter_map(|at| columns.get(at));
            columns.zip(values).for_each(|(column, value)| dense[column] = Some(*value));
            *dense[*id as usize].get_or_insert(0.0) += 1.0;
            let stored = dense.into_iter().enumerate();
            stored.filter_map(|(column, value)| Some((column, value?))).collect::<Vec<_>>()
        });
        let both = Csr::from_rows(N_FEATURES, rows).unwrap();
        let ids = Dense::new([5], ids.to_vec()).unwrap();
        let reads =
            [read(Refs::Csr(x.view()), Pool::Product, 3), read(ids_of(&ids), Pool::Rows, 3)];
        through_engine(&reads, &both, 3, added);
    }
}

/// What is read and not updated: of the same table, some of it by another read as well, and of one
/// that is not trained.
#[test]
fn steps_of_the_engine_that_read_what_they_do_not_update() {
    let x = data();
    for ids in [[6u32, 0, 0, 3, 6], [0, 1, 2, 3, 4]] {
        let product = read(Refs::Csr(x.view()), Pool::Product, 3);
        let units = Csr::from_rows(N_FEATURES, ids.map(|id| vec![(id as usize, 2.0)])).unwrap();
        let ids = Dense::new([5], ids.to_vec()).unwrap();
        let still = Read { has_gradient: false, ..read(ids_of(&ids), Pool::Rows, 3) };
        through_engine(&[still, product], &x, 3, |numbers| numbers[3..].to_vec());
        let values = [1.0, 2.0, 3.0].repeat(N_FEATURES);
        let frozen = |refs, pool| Read {
            source: Source::Frozen(&values, 3),
            has_gradient: false,
            ..read(refs, pool, 3)
        };
        let by_ids = frozen(ids_of(&ids), Pool::Rows);
        let by_columns = frozen(Refs::Csr(units.view()), Pool::Product);
        through_engine(&[product, by_ids, by_columns], &x, 3, |numbers| {
            (0..3).map(|at| numbers[at] + numbers[6 + at] - 2.0 * numbers[3 + at]).collect()
        });
    }
}

#[test]
fn steps_of_the_engine_refuse_what_a_table_does_not_have() {
    let x = data();
    let refused = |reads: &[Read<'_, '_, f64>], n_samples| {
        let errors = [true, false].map(|each| {
            let mut updater = updater(&Sgd::default(), 3, 2);
            let mut table = Table::from_values(2, &[1.0; 6]);
            let mut gradient = RowSparse::default();
            let program = &mut Program {
                n_samples,
                reads,
                tables: &mut [trained(&mut table, &mut gradient)],
                dense: &mut [],
                outputs: &mut [],
                work: 0,
            };
            let (parallel, scratch) = (Parallel::Sequential, &mut Scratch::default());
            let pass = pass(engine::erased(&mut updater), each);
            engine::run(program, pass, parallel, scratch, &|_| 0.0).unwrap_err().to_string()
        });
        assert_eq!(errors[0], errors[1]);
        errors[0].clone()
    };
    assert!(refused(&[read(Refs::Csr(x.view()), Pool::Product, 2)], 1).contains('3'));
    let first = Dense::new([1], vec![0u32]).unwrap();
    assert!(refused(&[read(ids_of(&first), Pool::Rows, 4)], 1).contains('4'));
    let ids = Dense::new([2], vec![2i64, 3]).unwrap();
    let beyond = read(Refs::Ids(ids.view().into(), 1), Pool::Rows, 2);
    let expected = ModelError::Lookup { row: 1, id: 3, n_rows: 3 }.to_string();
    assert_eq!(refused(&[beyond], 2), expected);
    assert_eq!(refused(&[Read { has_gradient: false, ..beyond }], 2), expected);
    let known = Dense::new([2], vec![0u32, 1]).unwrap();
    let frozen = Read { source: Source::Frozen(&[1.0; 6], 2), has_gradient: false, ..beyond };
    assert_eq!(refused(&[read(ids_of(&known), Pool::Rows, 2), frozen], 2), expected);
}

/// A row that the table does not have is read as NaN and not written.
#[test]
fn rows_beyond_the_table() {
    for rule in rules() {
        let (mut updater, mut context) = (updater(&rule, 3, 2), Context::default());
        let mut table = Table::from_values(2, &[1.0; 6]);
        let ids = Dense::new([2], vec![3i64, -1]).unwrap();
        let mut out = Dense::default();
        updater.begin_step().unwrap();
        let shape = Shape::from([3, 2]);
        let lent =
            read_rows::Lent { parameter: 0, shape, table: &mut table, updater: &mut updater };
        read_rows::taken(&mut out, ids.view(), lent, &mut context).unwrap();
        assert!(out.values().iter().all(|value| value.is_nan()) && out.values().len() == 4);
        let added = Dense::new([2, 2], vec![1.0; 4]).unwrap();
        let terms = scatter_gradient::Taken { ids: ids.view(), added: added.view() };
        let (parallel, scratch) = (Parallel::Sequential, &mut Scratch::default());
        scatter_gradient::update(0, &mut table, &mut updater, terms, parallel, scratch).unwrap();
        updater.end_step().unwrap();
        if rule.lazy_update == LazyUpdate::Touched || rule.weight_decay == 0.0 {
            assert_eq!(table.values(), [1.0; 6]);
        }
    }
}

#[test]
fn rows_of_a_parameter() {
    for rule in rules() {
        let mut updater = updater(&rule, N_FEATURES, 2);
        let mut w = initial(N_FEATURES, 2);
        let (mut expected, mut v) = (w.clone(), vec![0.0; w.len()]);
        for round in 0..3 {
            updater.begin_step().unwrap();
            let mut rows = updater.rows(0, &mut w).unwrap();
            let gradients = [(6, [1.0, -1.0]), (round, [0.5, 2.0])];
            for (row, gradient) in gradients {
                rows.prefetch(row);
                rows.settle(row);
                rows.accumulate(row)[0] += gradient[0];
                rows.accumulate(row)[1] += gradient[1];
            }
            rows.apply_accumulated();
            rows.settle(5);
            rows.update(5, 0, 0.25);
            rows.update(5, 1, -0.25);
            rows.settle(4);
            rows.update_row(4, &[1.0, 0.0]);
            rows.finish();
            updater.end_step().unwrap();

            let mut gradient = vec![None; 2 * N_FEATURES];
            for (row, values) in gradients.into_iter().chain([(5, [0.25, -0.25]), (4, [1.0, 0.0])])
            {
                gradient[2 * row] = Some(values[0]);
                gradient[2 * row + 1] = Some(values[1]);
            }
            for ((w, v), gradient) in expected.iter_mut().zip(&mut v).zip(gradient) {
                if gradient.is_none() && rule.lazy_update == LazyUpdate::Touched {
                    continue;
                }
                let gradient = gradient.unwrap_or(0.0) + rule.weight_decay * *w;
                *v = rule.momentum * *v - rule.learning_rate * gradient;
                *w += *v;
            }
        }
        updater.flush(0, &mut w).unwrap();
        assert_close(&w, &expected);
    }
}

#[test]
fn sums_by_row() {
    let mut sums = RowAccumulator::new(5, 2);
    for round in 1..3 {
        for (row, value) in [(4, 1.0), (0, 2.0), (4, 0.5)] {
            sums.row_mut(row)[1] += value * f64::from(round);
        }
        assert_eq!(sums.rows(), [4, 0]);
        assert_eq!(sums.values(), [0.0, 1.5, 0.0, 2.0].map(|value| value * f64::from(round)));
        sums.clear();
    }
}
