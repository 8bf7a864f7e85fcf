//! The inputs and the output of a run of training.

use super::arguments::Arguments;
use super::best_epoch::BestEpoch;
use super::clipping::Clipping;
use crate::models::ModelKind;
use crate::models::saved::SavedModel;
use nnz::data::{AnyDataset, IdMap};
use std::cell::RefCell;
use std::io::{self, Write as _};

/// The data, settings and output of a run.
#[derive(Clone, Copy)]
pub(crate) struct Run<'a> {
    pub(crate) arguments: &'a Arguments,
    /// The kind of the model, with weights of samples or without.
    pub(crate) kind: ModelKind,
    pub(crate) train: &'a AnyDataset,
    pub(crate) test: Option<&'a AnyDataset>,
    /// The model to go on from.
    pub(crate) init: Option<&'a SavedModel>,
    /// What predictions are cut to.
    pub(crate) clipping: &'a Clipping<'a>,
    /// For the model's file.
    pub(crate) notes: &'a [(&'static str, String)],
    /// The number of fields of a model that reads them, if it is known.
    pub(crate) n_fields: Option<usize>,
    /// What the numbers of users and items stand for.
    pub(crate) ids: Option<&'a (IdMap, IdMap)>,
    pub(crate) output: &'a Output,
    /// The best epoch, as far as the run is.
    pub(crate) best: &'a BestEpoch,
}

/// Lines on the standard output. Where they cannot be written, training goes on: the model is not
/// lost with them.
#[derive(Debug, Default)]
pub(crate) struct Output(RefCell<Option<io::Error>>);

impl Output {
    /// Writes a line, unless an earlier one failed.
    pub(crate) fn line(&self, line: &str) {
        let mut failed = self.0.borrow_mut();
        if failed.is_none() {
            *failed = writeln!(io::stdout(), "{line}").err();
        }
    }

    /// The first error.
    pub(crate) fn finish(self) -> io::Result<()> {
        self.0.into_inner().map_or(Ok(()), Err)
    }
}
