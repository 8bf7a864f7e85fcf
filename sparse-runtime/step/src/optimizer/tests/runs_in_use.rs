//! Norms of a table whose rows in use are known, against those of all its weights.

use super::*;
use crate::error::Result;
use nnz_arrays::parameter_memory::{Run, Table};

/// So many that not every run of rows is in use.
const MANY: usize = 12_000;

fn updater<R: UpdateRule>(rule: &R, row_size: usize) -> Result<Updater<R, f64>> {
    updater_of(rule, MANY, row_size)
}

fn updater_of<R: UpdateRule>(rule: &R, n_rows: usize, row_size: usize) -> Result<Updater<R, f64>> {
    let spec = ParameterSpec::new("w", n_rows, row_size, Some(Storage::RowSparse));
    Updater::new(rule.clone(), vec![spec])
}

/// A step on a batch that names some rows.
fn step<R: UpdateRule>(
    updater: &mut Updater<R, f64>,
    table: &mut Table<f64>,
    named: &[usize],
    grad: f64,
) -> Result<()> {
    let row_size = table.row_size();
    let mut updater = updater;
    updater.begin_step()?;
    crate::with_rows!(R, f64; updater, [0 => &mut *table], |[rows]| {
        for row in named {
            rows.settle(*row);
            let sums = rows.accumulate(*row);
            (0..row_size).for_each(|column| sums[column] += grad * (column + 1) as f64);
        }
        rows.apply_accumulated();
        rows.finish();
    });
    updater.end_step()
}

/// The sums over all weights, which no table makes shorter.
fn check(table: &Table<f64>, what: &str) {
    let (mut l1, mut squares, mut n_rows) = (0.0, 0.0, 0);
    for row in (0..table.n_rows()).map(|row| table.row(row)) {
        row.iter().for_each(|weight| l1 += weight.abs());
        row.iter().for_each(|weight| squares += weight * weight);
        n_rows += u64::from(row.iter().any(|weight| *weight != 0.0));
    }
    // Twice, since the first may have found what the second knows.
    for _ in 0..2 {
        let norms = table.norms();
        assert_eq!(
            (norms.l1, norms.sum_of_squares, norms.n_rows_not_zero),
            (l1, squares, n_rows),
            "after {what}"
        );
    }
}

/// Random sequences of everything that writes a table or changes who may: steps by one updater, by
/// its copy and by another rule, flushes, weights set by hand, copies, gradients of all rows, a
/// model that goes back to what a snapshot was, memory that is shared.
struct Everything {
    seed: u64,
    row_size: usize,
}

impl RuleVisitor for Everything {
    type Output = Result<()>;

    fn visit<R: UpdateRule>(self, mut rule: R) -> Result<()> {
        // Of those that it has, and where they can be.
        let _ = rule.set("weight_decay", 0.01);
        if rule.check().is_err() {
            let _ = rule.set("weight_decay", 0.0);
        }
        if rule.check().is_err() {
            return Ok(());
        }
        let mut random = ChaCha8Rng::seed_from_u64(self.seed);
        let mut table = Table::zeros(MANY, self.row_size);
        let mut own = updater(&rule, self.row_size)?;
        let touched = Sgd { lazy_update: LazyUpdate::Touched, momentum: 0.5, ..Sgd::default() };
        let mut other = updater(&touched, self.row_size)?;
        let mut plain = updater(&Sgd::default(), self.row_size)?;
        let mut copy = own.clone();
        let mut aside = table.clone();
        let pick = |random: &mut ChaCha8Rng, n: usize| random.random_range(0..n);
        for _ in 0..60 {
            // Steps are what there is most of.
            let operation = pick(&mut random, 20);
            let rows: Vec<usize> = (0..3).map(|_| pick(&mut random, MANY)).collect();
            let grad = random.random::<f64>() - 0.5;
            let what = match operation {
                0..=5 => step(&mut own, &mut table, &rows, grad).map(|()| "a step"),
                6..=9 => own.flush(0, &mut table).map(|()| "a flush"),
                10 => step(&mut copy, &mut table, &rows, grad).map(|()| "a step of a copy"),
                11 => copy.flush(0, &mut table).map(|()| "a flush by a copy"),
                12 => step(&mut other, &mut table, &rows, grad).map(|()| "another rule"),
                13 => step(&mut plain, &mut table, &rows, grad).map(|()| "a plain step"),
                14 => {
                    let place = rows[0] * self.row_size;
                    table.values_mut()[place] = if grad > 0.2 { 0.0 } else { grad };
                    Ok("a weight set by hand")
                }
                15 => {
                    std::mem::swap(&mut table, &mut aside);
                    Ok("another table")
                }
                16 => {
                    aside = table.clone();
                    Ok("a clone of the table")
                }
                17 => {
                    copy = own.clone();
                    std::mem::swap(&mut copy, &mut own);
                    Ok("a clone of the updater")
                }
                18 => {
                    own.flush(0, &mut table)?;
                    let snapshot = own.snapshot(&[&table]);
                    own.restore(snapshot);
                    Ok("a snapshot")
                }
                _ if pick(&mut random, 3) == 0 => {
                    table = Table::zeros(MANY, self.row_size);
                    own = updater(&rule, self.row_size)?;
                    (copy, aside) = (own.clone(), table.clone());
                    Ok("a new table")
                }
                _ => {
                    aside = table.take_shared();
                    Ok("memory that is shared")
                }
            };
            // An updater refuses the table of another model.
            check(&table, what.unwrap_or("a refusal"));
        }
        Ok(())
    }
}

#[test]
fn n15_norms_are_those_of_all_weights_whatever_wrote_them() -> Result<()> {
    for (index, name) in NAMES.iter().enumerate() {
        for row_size in [1, 3] {
            let seed = (index * 2 + row_size) as u64;
            with_rule(name, Everything { seed, row_size }).unwrap()?;
        }
    }
    Ok(())
}

/// After each flush of rows that wait, a table knows what is in use, and norms look at nothing
/// else.
#[test]
fn n15_rows_that_wait_for_steps_are_those_in_use() -> Result<()> {
    let known = |table: &Table<f64>| {
        let runs = table.known_runs()?;
        let row = |run: &Run| run.run * 64 + run.rows.trailing_zeros() as usize;
        assert!(runs.iter().all(|run| run.rows.is_power_of_two()));
        Some(runs.iter().map(row).collect::<Vec<_>>())
    };
    for momentum in [0.0, 0.9] {
        let rule = Sgd { weight_decay: 0.01, momentum, ..Sgd::default() };
        let mut table = Table::zeros(MANY, 1);
        let mut own = updater(&rule, 1)?;
        for t in 0..30 {
            step(&mut own, &mut table, &[t * 320, 77], 1.0)?;
            assert_eq!(table.known_runs(), None);
            if t % 3 == 0 {
                own.flush(0, &mut table)?;
                let mut rows: Vec<_> = (0..=t).map(|t| t * 320).chain([77]).collect();
                rows.sort();
                assert_eq!(known(&table), Some(rows));
                check(&table, "a flush");
            }
        }
        // What is found once is what a later flush adds to.
        table.values_mut()[11_000] = 1.0;
        assert_eq!(table.known_runs(), None);
        check(&table, "a weight set by hand");
        step(&mut own, &mut table, &[1000], 1.0)?;
        own.flush(0, &mut table)?;
        check(&table, "a flush");
    }
    Ok(())
}

/// What no flush tells is told by the first pass.
#[test]
fn n15_the_rows_that_a_pass_found_are_known_until_the_next_write() {
    let mut table = Table::<f64>::zeros(MANY, 2);
    assert_eq!(table.known_runs(), Some(&[][..]));
    table.values_mut()[6400] = 1.0;
    assert_eq!(table.known_runs(), None);
    table.norms();
    let row = Run { run: 50, rows: 1 };
    assert_eq!(table.known_runs(), Some(&[row][..]));
    assert_eq!(table.clone().known_runs(), Some(&[row][..]));
    table.values_mut();
    assert_eq!(table.known_runs(), None);
    // Where most runs are in use, a list of them saves nothing.
    table.values_mut().fill(1.0);
    table.norms();
    assert_eq!(table.known_runs(), None);
}

/// Hashed columns of which few are in use, under rules that record none: norms look at the pages
/// that steps touched, of 2 MiB at most.
#[test]
fn n15_norms_of_rules_without_a_record_look_at_the_pages_that_steps_touched() -> Result<()> {
    const N_ROWS: usize = 1 << 24;
    const ROWS_PER_PAGE: usize = (2 << 20) / size_of::<f64>();

    fn train<R: UpdateRule>(rule: &R) -> Result<()> {
        let mut table = Table::zeros(N_ROWS, 1);
        let mut own = updater_of(rule, N_ROWS, 1)?;
        for t in 0..3 {
            let named = [7, 8, 9_000_000 + t, N_ROWS - 1];
            step(&mut own, &mut table, &named, 20.0)?;
            own.flush(0, &mut table)?;
            assert_eq!(table.known_runs(), None, "{}", R::NAME);
            let n_looked_at = table.n_mapped_rows();
            if nnz_device::mapped_pages::MappedRanges::are_reported() {
                // Two pages where a row lies at the end of one.
                assert!(n_looked_at <= 6 * ROWS_PER_PAGE, "{}: {n_looked_at} rows", R::NAME);
            } else {
                eprintln!("skipped: the system does not report which pages are mapped");
            }
            let norms = table.norms();
            assert_eq!(norms.n_rows_not_zero, 4 + t as u64, "{}", R::NAME);
            let rows = [7, 8].into_iter().chain(9_000_000..=9_000_000 + t).chain([N_ROWS - 1]);
            assert_eq!(norms.l1, rows.map(|row| table.row(row)[0].abs()).sum::<f64>());
        }
        // Reads all rows.
        table.values_mut();
        check(&table, R::NAME);
        Ok(())
    }

    train(&Sgd::default())?;
    train(&nnz_optim::Ftrl::default())?;
    let touched = LazyUpdate::Touched;
    train(&Sgd { weight_decay: 0.01, momentum: 0.9, lazy_update: touched, ..Sgd::default() })
}
