//! The bytes of a step are those of the formula in the documentation of [`KvStore`].

use super::*;
use nnz_arrays::formats::{RowIdsView, RowSparse};
use nnz_optim::{Sgd, Svrg};
use nnz_step::optimizer::ParameterSpec;
use sparse_core::storage::Storage;
use std::cell::Cell;
use std::thread;

const ROWS: usize = 640;
const COLUMNS: usize = 3;

/// Rows that a worker reads and updates: a run whose length every group divides.
const U: usize = 64;

/// Bytes of an id and of a value.
const S: usize = 4;
const B: usize = 4;

/// A communicator that counts the bytes that it sends to others.
struct Counted<'b> {
    end: Threads,
    sent: &'b Cell<usize>,
}

impl Communicator for Counted<'_> {
    fn rank(&self) -> usize {
        self.end.rank()
    }

    fn size(&self) -> usize {
        self.end.size()
    }

    fn exchange(
        &mut self,
        outgoing: &mut Parcels,
        incoming: &mut Parcels,
    ) -> Result<(), CommunicatorError> {
        let lengths = outgoing.iter().map(<[u8]>::len).enumerate();
        let to_others = lengths.filter(|(to, _)| *to != self.rank()).map(|(_, len)| len);
        self.sent.set(self.sent.get() + to_others.sum::<usize>());
        self.end.exchange(outgoing, incoming)
    }
}

/// The bytes that each worker of `size` sends in one step, with rows of a snapshot or without.
fn sent(size: usize, reads_snapshot: bool) -> Vec<usize> {
    let work = |end: Threads| {
        let (rank, sent) = (end.rank(), Cell::new(0));
        let mut store = KvStore::new(Counted { end, sent: &sent }, 8)?;
        let mut table = vec![0.0f32; ROWS * COLUMNS];
        store.init(ParameterSpec::new("w", ROWS, COLUMNS, Some(Storage::RowSparse)), &table)?;
        if reads_snapshot {
            store.set_optimizer(Svrg { update_freq: 1, rule: Sgd::default() })?;
            store.begin_mean()?;
            store.end_mean(0, 1)?;
        } else {
            store.set_optimizer(Sgd::default())?;
        }
        let ids: Vec<u64> = (0..U as u64).map(|row| row + 16 * rank as u64).collect();
        store.pull_rows("w", RowIdsView::Listed(ids.as_slice()), &mut table)?;
        if reads_snapshot {
            store.pull_snapshot_rows("w", RowIdsView::Listed(ids.as_slice()), &mut table)?;
        }
        let gradient = RowSparse::new([ROWS, COLUMNS], ids, vec![1.0; U * COLUMNS])?;
        let mut sum = LeafSum::new();
        for leaf in store.own_leaves() {
            sum.add(leaf, gradient.view(), 0.125)?;
        }
        store.push("w", &mut sum)?;
        drop(store);
        Ok::<usize, crate::Error>(sent.get())
    };
    thread::scope(|scope| {
        let ends = Threads::group(size).unwrap().into_iter();
        let workers: Vec<_> = ends.map(|end| scope.spawn(move || work(end).unwrap())).collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).collect()
    })
}

#[test]
fn a_step_sends_the_bytes_of_the_formula() {
    for size in [1, 2, 4, 8] {
        let others = size - 1;
        // As many of a run's rows belong to each worker.
        let foreign = U / size * others;
        // Of a request, its answer and a push of one subtree, to each of the others.
        let (of_pull, of_push) = (10 + 8, 8 + 24);
        let expected = foreign * (2 * S + 2 * B * COLUMNS) + others * (of_pull + of_push);
        assert_eq!(sent(size, false), vec![expected; size], "{size} workers");
        let expected = foreign * (3 * S + 3 * B * COLUMNS) + others * (2 * of_pull + of_push);
        assert_eq!(sent(size, true), vec![expected; size], "{size} workers, with a snapshot");
    }
}
