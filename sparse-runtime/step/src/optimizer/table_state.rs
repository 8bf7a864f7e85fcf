//! The state of an updater, table by table, in shares of a table's rows: workers keep shares, and a
//! checkpoint, which has no workers, joins them.

use super::snapshot::{GroupSnapshot, RecordSnapshot, Snapshot};
use super::updater::Updater;
use crate::error::Result;
use nnz_arrays::parameter_memory::Table;
use nnz_optim::{StateBlock, UpdateRule};
use sparse_core::element::Float;

/// What there is of one table, or of the rows of it that one worker owns: every `size`-th from row
/// `rank` on.
#[derive(Clone, Debug)]
pub struct TableState<T: Float> {
    /// The number of table rows.
    pub n_rows: usize,
    /// That of an updater of this table alone.
    pub snapshot: Snapshot,
    /// Of a rule that adds a mean gradient: whether there is one.
    pub has_mean: bool,
    /// The weights, as they are: rows may wait for steps that they missed.
    pub weights: Vec<T>,
    /// The numbers of the states; empty where there are none.
    pub states: Vec<T::Accumulator>,
    /// The weights when the mean gradient was begun; empty where there is none.
    pub kept: Vec<T>,
}

impl<T: Float> TableState<T> {
    /// The rows that worker `rank` of `size` owns. O(its values).
    pub fn share(&self, rank: usize, size: usize) -> Self {
        let mut snapshot = self.snapshot.clone();
        for record in &mut snapshot.parameters {
            record.last = share_of(&record.last, self.n_rows, rank, size);
        }
        TableState {
            n_rows: (rank..self.n_rows).step_by(size).count(),
            snapshot,
            has_mean: self.has_mean,
            weights: share_of(&self.weights, self.n_rows, rank, size),
            states: share_of(&self.states, self.n_rows, rank, size),
            kept: share_of(&self.kept, self.n_rows, rank, size),
        }
    }

    /// The table whose [shares](Self::share) these are, by rank; `None` where they are not those of
    /// one table at one time. O(values).
    pub fn join(shares: &[Self]) -> Option<Self> {
        // Which has the longest history, where they differ.
        let oldest = shares.iter().min_by_key(|share| share.base())?;
        let mut whole = TableState {
            n_rows: shares.iter().map(|share| share.n_rows).sum(),
            snapshot: oldest.snapshot.clone(),
            has_mean: oldest.has_mean,
            weights: Vec::new(),
            states: Vec::new(),
            kept: Vec::new(),
        };
        let (clock, n_rows, base) = (whole.snapshot.clock, whole.n_rows, oldest.base());
        if shares.iter().any(|share| {
            (share.snapshot.clock, share.snapshot.parameters.len()) != (clock, 1)
                || share.has_mean != whole.has_mean
        }) {
            return None;
        }
        let record = whole.snapshot.parameters.first_mut()?;
        let records = || shares.iter().flat_map(|share| &share.snapshot.parameters);
        record.touched_is_complete = records().all(|record| record.touched_is_complete);
        record.zero_elsewhere = records().all(|record| record.zero_elsewhere);
        record.has_states = records().any(|record| record.has_states);
        let last = records().map(|record| record.last_since(base)).collect::<Option<Vec<_>>>()?;
        record.last = joined(&Vec::from_iter(last.iter().map(Vec::as_slice)), n_rows)?;
        let lists = |of: fn(&Self) -> &[T]| joined(&Vec::from_iter(shares.iter().map(of)), n_rows);
        whole.weights = lists(|share| &share.weights)?;
        whole.kept = lists(|share| &share.kept)?;
        let states = shares.iter().map(|share| share.states.as_slice());
        whole.states = joined(&Vec::from_iter(states), n_rows)?;
        Some(whole)
    }

    fn base(&self) -> u64 {
        self.snapshot.parameters.first().map_or(0, |record| record.base)
    }
}

impl RecordSnapshot {
    /// Up to which step rows are settled, counted from another step, which is not after
    /// [`base`](Self::base).
    fn last_since(&self, base: u64) -> Option<Vec<u32>> {
        let later = u32::try_from(self.base.checked_sub(base)?).ok()?;
        let since = |last: &u32| match (*last, later) {
            (0, 0) => Some(0),
            (0, later) => later.checked_add(1),
            (last, later) => last.checked_add(later),
        };
        self.last.iter().map(since).collect()
    }
}

/// The rows of worker `rank` of `size`, of a list with equally many numbers for each of `n_rows`
/// rows.
fn share_of<V: Copy>(list: &[V], n_rows: usize, rank: usize, size: usize) -> Vec<V> {
    let row_size = list.len() / n_rows.max(1);
    let rows = list.chunks_exact(row_size.max(1)).skip(rank).step_by(size);
    rows.flatten().copied().collect()
}

/// The list of `n_rows` rows whose shares these are, by rank. A share without numbers, among others
/// with some, has zeros. `None` where their lengths do not fit.
fn joined<V: Copy + Default>(shares: &[&[V]], n_rows: usize) -> Option<Vec<V>> {
    let size = shares.len();
    let n_own = |rank: usize| (rank..n_rows).step_by(size).count();
    let row_size = (0..size).map(|rank| shares[rank].len() / n_own(rank).max(1)).max()?;
    let fits = |(rank, share): (usize, &&[V])| {
        share.is_empty() || n_own(rank).checked_mul(row_size) == Some(share.len())
    };
    if !shares.iter().enumerate().all(fits) {
        return None;
    }
    let mut list = vec![V::default(); n_rows.checked_mul(row_size)?];
    for (row, to) in list.chunks_exact_mut(row_size.max(1)).enumerate() {
        let place = row / size * row_size;
        if let Some(from) = shares[row % size].get(place..place + row_size) {
            to.copy_from_slice(from);
        }
    }
    Some(list)
}

impl<R: UpdateRule, T: Float> Updater<R, T> {
    /// What there is of one parameter, which lies in `table`; `kept` are its weights when the mean
    /// gradient was begun. O(values).
    pub fn table_state(
        &self,
        parameter: usize,
        table: &Table<T>,
        kept: Option<&Table<T>>,
    ) -> TableState<T> {
        let mut record = self.record_snapshot(parameter, table);
        self.visit_settled(parameter, table, |last| record.last.push(last));
        let mut states = Vec::new();
        self.visit_states(parameter, table, |row| {
            row.iter().for_each(|state| states.extend(state.values()));
        });
        TableState {
            n_rows: table.n_rows(),
            snapshot: Snapshot {
                clock: self.clock,
                learning_rate: self.learning_rate.to_bits(),
                groups: vec![self.group_snapshot(self.parameters[parameter].group)],
                parameters: vec![record],
            },
            has_mean: self.reduction.has_mean,
            weights: table.values().to_vec(),
            states,
            kept: kept.map_or(Vec::new(), |kept| kept.values().to_vec()),
        }
    }

    /// Becomes the updater of tables with these states, one for each parameter, `None` for a frozen
    /// one, and writes their weights. O(values).
    ///
    /// # Errors
    ///
    /// [`OptimizerError::Snapshot`](super::OptimizerError::Snapshot) for states that no updater of
    /// these tables can have; then nothing has changed.
    pub fn restore_tables<'t>(
        &mut self,
        tables: impl IntoIterator<Item = &'t mut Table<T>>,
        states: &[Option<TableState<T>>],
    ) -> Result<()> {
        let of_group = |group: usize| {
            let records =
                self.parameters.iter().zip(states).filter(move |(record, _)| record.group == group);
            // Whose tables are not lazy keep no history.
            let lazy =
                records.filter(|(record, _)| record.lazy).filter_map(|(_, state)| state.as_ref());
            let oldest = lazy.min_by_key(|state| state.base());
            oldest.and_then(|state| state.snapshot.groups.first()).cloned().unwrap_or_default()
        };
        let any = states.iter().flatten().next();
        let snapshot = Snapshot {
            clock: any.map_or(0, |state| state.snapshot.clock),
            learning_rate: any
                .map_or(self.learning_rate.to_bits(), |state| state.snapshot.learning_rate),
            groups: (0..self.groups.len()).map(of_group).collect::<Vec<GroupSnapshot>>(),
            parameters: states
                .iter()
                .map(|state| {
                    let record = state.as_ref().and_then(|state| state.snapshot.parameters.first());
                    record.cloned().unwrap_or_default()
                })
                .collect(),
        };
        self.check_snapshot(&snapshot)?;
        let records = snapshot.parameters.clone();
        self.restore(snapshot);
        self.set_has_mean(any.is_some_and(|state| state.has_mean));
        for (index, ((table, record), state)) in
            tables.into_iter().zip(&records).zip(states).enumerate()
        {
            let Some(state) = state else { continue };
            let weights = self.weights_mut(record, table).iter_mut().zip(&state.weights);
            weights.for_each(|(to, from)| *to = *from);
            let numbers = self.states_mut(index).iter_mut().flat_map(StateBlock::values_mut);
            numbers.zip(&state.states).for_each(|(to, from)| *to = *from);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::optimizer::ParameterSpec;
    use nnz_optim::{Ftrl, Sgd};
    use sparse_core::storage::Storage;

    fn step<R: UpdateRule>(
        mut updater: &mut Updater<R, f64>,
        table: &mut Table<f64>,
        t: usize,
    ) -> Result<()> {
        updater.set_learning_rate(rate::<R>(t))?;
        updater.begin_step()?;
        let n_rows = table.n_rows();
        crate::with_rows!(R, f64; updater, [0 => &mut *table], |[rows]| {
            for row in [t * 3 % n_rows, (t * 3 + 1) % n_rows] {
                rows.settle(row);
                rows.update(row, 0, (t as f64).sin());
            }
            rows.finish();
        });
        updater.end_step()
    }

    fn rate<R: UpdateRule>(t: usize) -> f64 {
        if R::ONE_RATE { 0.1 } else { 0.1 / (1.0 + t as f64) }
    }

    /// A run whose state is divided among workers and joined again goes on to the same bits.
    fn divides<R: UpdateRule>(rule: R) {
        const N_ROWS: usize = 7;
        let new = || {
            let spec = ParameterSpec::new("w", N_ROWS, 1, Some(Storage::RowSparse));
            Updater::<R, f64>::new(rule.clone(), vec![spec]).unwrap()
        };
        let (mut updater, mut table) = (new(), Table::from_values(1, &[0.5; N_ROWS]));
        (0..9).for_each(|t| step(&mut updater, &mut table, t).unwrap());
        for size in [1, 2, 3, 9] {
            let whole = updater.table_state(0, &table, None);
            let shares = Vec::from_iter((0..size).map(|rank| whole.share(rank, size)));
            let state = TableState::join(&shares).unwrap();
            let (mut again, mut copy) = (new(), Table::zeros(N_ROWS, 1));
            again.restore_tables([&mut copy], &[Some(state)]).unwrap();
            let (mut expected, mut original) = (updater.clone(), table.clone());
            for t in 9..20 {
                step(&mut expected, &mut original, t).unwrap();
                step(&mut again, &mut copy, t).unwrap();
            }
            expected.flush(0, &mut original).unwrap();
            again.flush(0, &mut copy).unwrap();
            let bits = |table: &Table<f64>| {
                Vec::from_iter(table.values().iter().map(|value| value.to_bits()))
            };
            assert_eq!(bits(&copy), bits(&original), "{} in {size} shares", R::NAME);
        }
    }

    #[test]
    fn shares_of_a_table_make_the_table() {
        divides(Sgd { momentum: 0.9, weight_decay: 0.01, ..Sgd::default() });
        divides(Ftrl { l1: 0.01, ..Ftrl::default() });
    }

    #[test]
    fn rows_settled_later_than_the_oldest_share_count_from_it() {
        let record = RecordSnapshot { base: 5, last: vec![0, 1, 4], ..RecordSnapshot::default() };
        assert_eq!(record.last_since(5), Some(vec![0, 1, 4]));
        assert_eq!(record.last_since(3), Some(vec![3, 3, 6]));
        assert_eq!(record.last_since(6), None);
    }

    #[test]
    fn lists_that_are_no_shares_are_not_joined() {
        assert_eq!(joined(&[&[1, 2, 5, 6][..], &[3, 4]], 3), Some(vec![1, 2, 3, 4, 5, 6]));
        assert_eq!(joined(&[&[1, 5][..], &[]], 3), Some(vec![1, 0, 5]));
        assert_eq!(joined(&[&[1, 2, 5, 6][..], &[3]], 3), None);
        assert_eq!(joined(&[&[][..], &[]], 3), Some(Vec::<u32>::new()));
    }
}
