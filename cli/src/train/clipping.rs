//! The range that predictions are cut to.

use super::arguments::Clip;
use nnz::data::{AnyDataset, BatchOptions, Batches, DataSource};
use std::cell::OnceCell;

/// The range that predictions are cut to, which may be that of labels that have not been read yet.
pub(crate) struct Clipping<'a> {
    asked: Option<Clip>,
    train: &'a AnyDataset,
    of_labels: OnceCell<(f64, f64)>,
}

impl<'a> Clipping<'a> {
    pub(crate) fn new(asked: Option<Clip>, train: &'a AnyDataset) -> Self {
        Clipping { asked, train, of_labels: OnceCell::new() }
    }

    /// The range; `None` where nothing is cut, and of a stream before an epoch has read all of it.
    pub(crate) fn range(&self) -> Option<(f64, f64)> {
        match self.asked? {
            Clip::Range(low, high) => Some((low, high)),
            Clip::Train => {
                if self.of_labels.get().is_none() {
                    let range = range_of_labels(self.train)?;
                    return Some(*self.of_labels.get_or_init(|| range));
                }
                self.of_labels.get().copied()
            }
        }
    }

    /// The range after training. A stream is read for it where no epoch was left to be made.
    pub(crate) fn range_after_training(&self) -> nnz::Result<Option<(f64, f64)>> {
        if self.asked.is_some() && self.range().is_none() {
            let mut batches = self.train.batches(&[], &BatchOptions::default())?;
            batches.start_epoch(0)?;
            while batches.next_batch()?.is_some() {}
        }
        Ok(self.range())
    }

    /// What a run must ask for as well to go on with this one.
    pub(crate) fn setting(&self) -> Option<String> {
        match (self.asked?, self.range()) {
            (_, Some((low, high))) => Some(format!("{low},{high}")),
            (_, None) => Some("train".to_owned()),
        }
    }
}

/// The lowest and the highest of the first labels.
fn range_of_labels(data: &AnyDataset) -> Option<(f64, f64)> {
    data.label_statistics()?.first()?.range()
}
