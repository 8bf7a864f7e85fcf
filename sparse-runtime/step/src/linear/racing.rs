//! Hogwild: steps of one sample each, on a table that other threads update meanwhile.

use super::rows::{prefetch_data, row_of};
use super::{Scratch, Width, sum_of_products, with_row_loops};
use crate::model::RowSteps;
use crate::optimizer::{Place, PlacesAhead, RacingCursor, RacingRows};
use nnz_arrays::formats::{ColumnId, CsrView};
use nnz_arrays::kernels::row_loss::RowLoss;
use nnz_device::prefetch::AHEAD;
use sparse_core::element::{Factor, Float};
use sparse_core::update_rules::UpdateRule;
use std::ops::Range;

/// As [`steps`](super::steps), of a batch whose extents were compared with those of the rows.
#[inline(never)]
pub(super) fn steps<
    R: UpdateRule,
    T: Float,
    V: Factor<T>,
    W: Width,
    C: Copy,
    L: RowLoss<T::Accumulator>,
>(
    x: CsrView<'_, V>,
    range: Range<usize>,
    rows: RacingRows<'_, R, T>,
    width: W,
    scratch: &mut Scratch<T::Accumulator>,
    kept: &mut C,
    row_function: impl FnMut(usize, &mut [T::Accumulator], &mut [T::Accumulator], &mut C) -> L,
) -> RowSteps {
    let columns = width.columns();
    macro_rules! each_row {
        ($plain:literal, $copies:literal) => {{
            let (cursor, ahead) = rows.cursor::<$plain, $copies>(columns);
            with_row_loops!(W, x.columns(), |ids| {
                each_row(x, ids, range, cursor, ahead, width, scratch, kept, row_function)
            })
        }};
    }
    match (rows.is_plain(), rows.has_copies()) {
        (true, true) => each_row!(true, true),
        (true, false) => each_row!(true, false),
        (false, true) => each_row!(false, true),
        (false, false) => each_row!(false, false),
    }
}

#[inline(always)]
#[allow(clippy::too_many_arguments)]
fn each_row<
    'a,
    R: UpdateRule,
    T: Float,
    V: Factor<T>,
    W: Width,
    I: ColumnId,
    C: Copy,
    L: RowLoss<T::Accumulator>,
    const PLAIN: bool,
    const COPIES: bool,
>(
    x: CsrView<'a, V>,
    ids: &'a [I],
    range: Range<usize>,
    rows: RacingCursor<'_, R, T, PLAIN, COPIES>,
    ahead: &mut PlacesAhead,
    width: W,
    scratch: &mut Scratch<T::Accumulator>,
    kept: &mut C,
    mut row_function: impl FnMut(usize, &mut [T::Accumulator], &mut [T::Accumulator], &mut C) -> L,
) -> RowSteps {
    // Places are looked up once, early enough that what is there can be asked for.
    let look_up = |ahead: &mut PlacesAhead, row: usize| {
        let places = &mut ahead[row % (AHEAD + 1)];
        places.clear();
        places.extend(row_of(x, ids, row).0.iter().map(|id| rows.place(id.at())));
        for place in places {
            rows.prefetch(*place);
        }
    };
    let mut steps = RowSteps::default();
    let mut own = *kept;
    for row in range.clone().take(AHEAD) {
        look_up(ahead, row);
    }
    for row in range.clone() {
        prefetch_data(x, ids, row);
        if row + AHEAD < range.end {
            look_up(ahead, row + AHEAD);
        }
        let (places, values) = (&ahead[row % (AHEAD + 1)][..], row_of(x, ids, row).1);
        let loss = width.with_rows(
            &mut scratch.rows,
            #[inline(always)]
            |scores, saved| {
                // SAFETY: a view's columns are below its `n_cols`, which was compared with the
                // rows; there are as many scores as elements of a row.
                unsafe { product(places, values, rows, scores) };
                let loss = row_function(row, scores, saved, &mut own);
                for (place, value) in places.iter().zip(values) {
                    for (column, gradient) in scores.iter().enumerate() {
                        // SAFETY: as above.
                        unsafe { rows.update(*place, column, value.times(*gradient)) };
                    }
                }
                loss
            },
        );
        if !steps.add(loss.now().as_f64()) {
            break;
        }
    }
    *kept = own;
    steps
}

/// Adds the product of a csr row with the parameter to `scores`, which are zero.
///
/// # Safety
///
/// The places are those of rows that are there, which have as many elements as there are scores.
#[inline(always)]
unsafe fn product<R: UpdateRule, T: Float, V: Factor<T>, const PLAIN: bool, const COPIES: bool>(
    places: &[Place],
    values: &[V],
    rows: RacingCursor<'_, R, T, PLAIN, COPIES>,
    scores: &mut [T::Accumulator],
) {
    if let [score] = scores {
        // SAFETY: promised by the caller.
        let weight = |place: &Place| unsafe { rows.value(*place, 0) };
        *score = sum_of_products::<T, V, Place>(places, values, weight);
        return;
    }
    for (place, value) in places.iter().zip(values) {
        for (column, score) in scores.iter_mut().enumerate() {
            // SAFETY: promised by the caller.
            *score += value.times(unsafe { rows.value(*place, column) });
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::linear::{Fixed, Scratch, steps};
    use crate::optimizer::{HotRows, ParameterSpec, Racer, Shared, Updater};
    use nnz_arrays::formats::Csr;
    use nnz_arrays::parameter_memory::Table;
    use nnz_train::training::tests::linear::Linear;
    use sparse_core::storage::Storage;
    use sparse_core::update_rules::{AdaGrad, Racing, Sgd, UpdateRule};
    use std::sync::Arc;

    const COLUMNS: usize = 40;
    const STEPS: usize = 60;
    /// Updated by every step of every thread.
    const HOT: [usize; 2] = [3, 17];

    /// The weights after steps on three threads, each of which updates two columns of its own, and
    /// the hot ones; and the bias, which each thread moves by 1 at each step.
    fn train<R: UpdateRule>(rule: R, gradient: f64) -> (Vec<f64>, f64) {
        let spec = ParameterSpec::new("w", COLUMNS, 1, Some(Storage::RowSparse));
        let updater = || Updater::<Racing<R>, f64>::new(Racing(rule.clone()), vec![spec.clone()]);
        let mut model = Linear::<f64>::new(COLUMNS);
        model.b.values_mut()[0] = 5.0;
        let table = Table::from_values(1, &[1.0; COLUMNS]);
        let mut threads: Vec<_> =
            (0..3).map(|_| (updater().unwrap(), Linear::<f64>::new(COLUMNS))).collect();
        let hot = HotRows::new(HOT.into_iter(), 16);
        let shared = Arc::new(Shared::new(&threads[0].0, 0, table, &mut model, hot));
        std::thread::scope(|scope| {
            for (number, (updater, model)) in threads.iter_mut().enumerate() {
                let shared = &shared;
                scope.spawn(move || {
                    let mut columns = [HOT[0], HOT[1], 20 + number, 30 + number];
                    columns.sort_unstable();
                    let row: Vec<_> = columns.map(|column| (column, 1.0)).to_vec();
                    let x = Csr::from_rows(COLUMNS, vec![row; STEPS]).unwrap();
                    updater.set_racer(Some(Racer::new(0, shared, model)));
                    let mut unused = Table::zeros(COLUMNS, 1);
                    let mut first = 0;
                    while first < STEPS {
                        let count = updater.begin_steps((STEPS - first).min(10)).unwrap();
                        let row_function =
                            |_: usize, scores: &mut [f64], _: &mut [f64], _: &mut ()| {
                                scores[0] = gradient;
                                0.0
                            };
                        let (scratch, range) = (&mut Scratch::default(), first..first + count);
                        let (width, kept) = (Fixed::<1>, &mut ());
                        let made = steps(
                            x.view(),
                            range,
                            0,
                            &mut unused,
                            updater,
                            width,
                            scratch,
                            kept,
                            row_function,
                        );
                        updater.end_steps(made.unwrap().n_steps).unwrap();
                        first += count;
                        model.b.values_mut()[0] += count as f64;
                        updater.racer_mut().unwrap().merge(model);
                    }
                    assert_eq!(updater.clock(), STEPS as u64);
                    updater.set_racer(None);
                });
            }
        });
        drop(threads);
        let (table, _) = Arc::into_inner(shared).unwrap().end(&mut model);
        (table.values().to_vec(), model.b.values()[0])
    }

    /// Nothing is lost of what one thread updates, nor of hot rows and biases, whose changes are
    /// added up.
    #[test]
    fn changes_of_threads_add_up() {
        let (weights, bias) = train(Sgd { learning_rate: 0.5, ..Sgd::default() }, 2.0);
        assert_eq!(bias, 5.0 + 3.0 * STEPS as f64);
        for (column, weight) in weights.iter().enumerate() {
            let updates = match column {
                _ if HOT.contains(&column) => 3 * STEPS,
                20..23 | 30..33 => STEPS,
                _ => 0,
            };
            assert_eq!(*weight, 1.0 - updates as f64, "{column}");
        }
    }

    /// The state of a row is beside it: AdaGrad with gradient 1 moves by `1 / √k` at the k-th
    /// update.
    #[test]
    fn states_are_shared() {
        let rule = AdaGrad { learning_rate: 1.0, epsilon: 1e-12, ..AdaGrad::default() };
        let (weights, _) = train(rule, 1.0);
        let alone: f64 = (1..=STEPS).map(|k| 1.0 / (k as f64).sqrt()).sum();
        for column in [20, 21, 22, 30, 31, 32] {
            assert!(
                (weights[column] - (1.0 - alone)).abs() < 1e-9,
                "{column}: {}",
                weights[column]
            );
        }
        for column in HOT {
            // Threads learn from older sums of squares, so that together they go further than one
            // would, at most thrice as far.
            let way = 1.0 - weights[column];
            assert!(way > alone && way <= 3.0 * alone + 1e-9, "{column}: {way} against {alone}");
        }
    }

    #[test]
    fn other_parameters_are_refused() {
        let spec = ParameterSpec::new("w", COLUMNS, 1, Some(Storage::RowSparse));
        let rule = Racing(Sgd::default());
        let mut updater = Updater::<Racing<Sgd>, f64>::new(rule, vec![spec]).unwrap();
        updater.begin_step().unwrap();
        let error = updater.rows(0, &mut Table::<f64>::zeros(COLUMNS, 1)).unwrap_err();
        assert!(
            error.to_string().starts_with("parameter `w`: threads share it without locks only")
        );
    }
}
