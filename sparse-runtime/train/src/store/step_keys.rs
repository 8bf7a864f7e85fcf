//! The keys of a training step, the rows that it names of their tables, and their gradients.

use super::communicator::Communicator;
use super::error::StoreError;
use super::kv_store::KvStore;
use super::leaf_sum::LeafSum;
use super::owners::Owners;
use super::slot_sum::SlotSum;
use crate::error::Result;
use nnz_arrays::formats::{RowIdsView, RowSparseView};
use nnz_arrays::kernels::row_numbers::RowNumbers;
use sparse_core::element::Float;
use sparse_core::storage::Storage;

/// What the steps of several keys keep from one to the next. Keys whose rows the same inputs name
/// share a *list* of rows, which travels once.
#[derive(Clone, Debug)]
pub(crate) struct StepKeys<T: Float> {
    pub(super) keys: Vec<StepKey<T>>,
    pub(super) lists: Vec<RowList>,
}

#[derive(Clone, Debug)]
pub(super) struct StepKey<T: Float> {
    name: String,
    /// The position in the store.
    pub(super) index: usize,
    pub(super) gradient: Gradient<T>,
}

/// The gradients of a key.
#[derive(Clone, Debug)]
pub(super) enum Gradient<T: Float> {
    /// Of the rows of a list. The second are those of the rows that this worker owns, from all
    /// workers.
    Listed(usize, SlotSum<T::Accumulator>, SlotSum<T::Accumulator>),
    /// Of a dense parameter.
    Whole(LeafSum<T>),
}

/// The rows that a step names of the tables of some keys.
#[derive(Clone, Debug, Default)]
pub(super) struct RowList {
    /// The rows of the whole tables.
    pub(super) n_rows: usize,
    /// The rows that this worker names.
    n_slots: usize,
    /// By owner: the numbers of these rows, ascending.
    pub(super) slots: Vec<Vec<u32>>,
    /// By worker: the rows that it names of those that this worker owns.
    pub(super) asked: Vec<Vec<u64>>,
    /// All of these.
    pub(super) owned: RowNumbers,
    /// By worker: the numbers of its rows among all.
    pub(super) numbers: Vec<Vec<u32>>,
}

impl<T: Float> StepKeys<T> {
    /// Keys of a store, each with the position of its list unless it is dense. `lists` are the
    /// rows of the tables of each list.
    pub(crate) fn new<C: Communicator>(
        store: &KvStore<T, C>,
        keys: &[(&str, Option<usize>)],
        lists: &[usize],
    ) -> Result<Self> {
        let keys = keys.iter().map(|(key, list)| {
            let index = store.index(key)?;
            let gradient = match list {
                Some(list) => Gradient::Listed(*list, SlotSum::default(), SlotSum::default()),
                None => Gradient::Whole(LeafSum::new()),
            };
            Ok(StepKey { name: (*key).to_owned(), index, gradient })
        });
        let size = store.size();
        let list = |n_rows: &usize| RowList {
            n_rows: *n_rows,
            slots: vec![Vec::new(); size],
            asked: vec![Vec::new(); size],
            numbers: vec![Vec::new(); size],
            ..RowList::default()
        };
        Ok(StepKeys { keys: keys.collect::<Result<_>>()?, lists: lists.iter().map(list).collect() })
    }

    /// Starts with the gradients of leaves from `first` on, for the rows that were pulled.
    pub(crate) fn begin<C: Communicator>(&mut self, store: &KvStore<T, C>, first: usize) {
        for StepKey { index, gradient, .. } in &mut self.keys {
            match gradient {
                Gradient::Listed(list, sum, _) => {
                    let row_size = store.shards[*index].spec.row_size;
                    sum.begin(self.lists[*list].n_slots, row_size, first);
                }
                Gradient::Whole(sum) => sum.clear(),
            }
        }
    }

    /// Adds `share` times the gradient of a leaf to the sum of key `position`: its rows have the
    /// numbers of the step.
    pub(crate) fn add(
        &mut self,
        position: usize,
        leaf: usize,
        gradient: RowSparseView<'_, T>,
        share: f64,
    ) -> Result<()> {
        let StepKey { name, gradient: sum, .. } = &mut self.keys[position];
        match (sum, gradient.indices()) {
            (Gradient::Listed(_, sum, _), RowIdsView::Listed(slots)) => {
                sum.add(leaf, slots, gradient.values(), share);
            }
            (Gradient::Listed(..), RowIdsView::All) => {
                let [expected, found] = [Storage::RowSparse, Storage::Dense].map(Storage::name);
                let key = name.clone();
                return Err(StoreError::GradientStorage { key, expected, found }.into());
            }
            (Gradient::Whole(sum), _) => sum.add(leaf, gradient, share)?,
        }
        Ok(())
    }
}

impl RowList {
    /// Divides the rows that this worker names among their owners.
    pub(super) fn divide(&mut self, rows: &[u64], owners: Owners, rank: usize) {
        self.n_slots = rows.len();
        self.slots.iter_mut().for_each(Vec::clear);
        self.asked.iter_mut().for_each(Vec::clear);
        for (slot, row) in (0..).zip(rows) {
            let (owner, place) = owners.of(*row);
            self.slots[owner].push(slot);
            if owner == rank {
                self.asked[rank].push(place);
            }
        }
    }

    /// Numbers the rows that workers name of those that this worker owns.
    pub(super) fn number_owned(&mut self, n_owned: usize) {
        let RowList { asked, owned, numbers, .. } = self;
        owned.begin(n_owned, asked.iter().map(Vec::len).sum());
        asked.iter().for_each(|rows| owned.add_rows(rows));
        owned.finish();
        for (rows, numbers) in asked.iter().zip(numbers) {
            owned.number_rows(rows, numbers);
        }
    }
}
