//! The view that worker 0 gives callbacks of a run whose parameters and states are spread over
//! workers.

use super::job::Job;
use super::worker::Worker;
use crate::error::{Error, Result};
use crate::store::Communicator;
use crate::training::ParameterReport;
use crate::training::any_updater::{AnyUpdater, erased};
use crate::training::callback::{State, check_finite, parameter_reports};
use crate::training::checkpoint::{self, Attachments, Run};
use crate::training::coordinator::CoordinatedRun;
use nnz_optim::UpdateRule;
use nnz_step::model::{AnyModel, Model};
use nnz_step::optimizer::Updater;
use std::cell::RefCell;
use std::path::Path;

/// A run on workers between two steps, while the others wait for requests.
pub(super) struct Session<'w, 'm, R: UpdateRule, M: Model, C> {
    job: &'w Job<R, M::Element>,
    worker: RefCell<&'w mut Worker<'m, M, C>>,
    /// Whether all table rows of the model are up to date: after an epoch.
    is_settled: bool,
    /// The updater that one process would have, once it was requested.
    updater: RefCell<Option<Updater<R, M::Element>>>,
    /// An error that could not be returned where it occurred.
    failed: RefCell<Option<Error>>,
}

impl<'w, 'm, R: UpdateRule, M: Model, C: Communicator> Session<'w, 'm, R, M, C> {
    pub(super) fn new(
        job: &'w Job<R, M::Element>,
        worker: &'w mut Worker<'m, M, C>,
        is_settled: bool,
    ) -> Self {
        let (updater, failed) = (RefCell::new(None), RefCell::new(None));
        Session { job, worker: RefCell::new(worker), is_settled, updater, failed }
    }

    /// An error that no callback has seen.
    pub(super) fn end(self) -> Result<()> {
        self.failed.into_inner().map_or(Ok(()), Err)
    }

    /// Reads model and updater as one process would have them.
    fn look<A>(&self, look: impl FnOnce(&dyn State) -> Result<A>) -> Result<A> {
        let mut worker = self.worker.borrow_mut();
        let mut known = self.updater.borrow_mut();
        let updater = match known.take() {
            Some(updater) => updater,
            None => worker.gather(self.job)?,
        };
        let updater: &dyn AnyUpdater<M::Element> = erased(known.insert(updater));
        let model: &dyn AnyModel<M::Element> = worker.model();
        look(&(model, updater))
    }
}

impl<R: UpdateRule, M: Model, C: Communicator> State for Session<'_, '_, R, M, C> {
    fn n_steps(&self) -> u64 {
        self.worker.borrow().n_steps()
    }

    fn learning_rate(&self) -> f64 {
        self.worker.borrow().learning_rate()
    }

    fn parameters(&self) -> Vec<ParameterReport> {
        match self.look(|state| Ok(state.parameters())) {
            Ok(reports) => reports,
            Err(error) => {
                self.failed.borrow_mut().get_or_insert(error);
                parameter_reports(self.worker.borrow_mut().model(), &|_| None)
            }
        }
    }

    fn check_finite(&self) -> Result<()> {
        if self.is_settled {
            let mut worker = self.worker.borrow_mut();
            worker.collect()?;
            check_finite(worker.model())
        } else {
            self.look(|state| state.check_finite())
        }
    }

    fn save_model(&self, path: &Path, attachments: Attachments<'_>) -> Result<()> {
        if self.is_settled {
            let mut worker = self.worker.borrow_mut();
            worker.collect()?;
            checkpoint::save_with(worker.model(), path, attachments)
        } else {
            self.look(|state| state.save_model(path, attachments))
        }
    }

    fn save_run(&self, run: &Run, path: &Path) -> Result<()> {
        self.look(|state| state.save_run(run, path))
    }
}

impl<R: UpdateRule, M: Model, C: Communicator> CoordinatedRun<M> for Session<'_, '_, R, M, C> {
    fn model(&mut self) -> Result<&mut M> {
        let worker = self.worker.get_mut();
        worker.collect()?;
        Ok(worker.model())
    }

    fn facts(&mut self) -> &M {
        self.worker.get_mut().model()
    }
}
