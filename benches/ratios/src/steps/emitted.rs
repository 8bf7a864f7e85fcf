//! An epoch as a user trains it.

use crate::workload::Error;
use nnz::optimizer::{UpdateRule, Updater};
use nnz::prelude::*;

/// A model, its updater, and the number of the epoch.
pub struct Emitted<M: Model<Element = f32>, R: UpdateRule> {
    pub model: M,
    rule: R,
    batch: usize,
    shuffle: bool,
    parallel: Option<Parallel>,
    clip_norm: Option<f64>,
    updater: Updater<R, f32>,
    epoch: u64,
}

impl<M: Model<Element = f32>, R: UpdateRule> Emitted<M, R> {
    pub fn new(model: M, rule: R, batch: usize) -> Result<Self, Error> {
        let updater = Trainer::new(rule.clone()).updater(&model)?;
        let (shuffle, parallel, clip_norm, epoch) = (false, None, None, 0);
        Ok(Emitted { model, rule, batch, shuffle, parallel, clip_norm, updater, epoch })
    }

    /// The same on so many threads.
    pub fn on_threads(mut self, threads: usize) -> Self {
        self.parallel = Some(Parallel::Threads(threads));
        self
    }

    /// The same with gradients that are clipped by their norm.
    pub fn clipped(mut self, norm: f64) -> Self {
        self.clip_norm = Some(norm);
        self
    }

    /// The same with rows in another order in each epoch.
    pub fn shuffled(mut self) -> Self {
        self.shuffle = true;
        self
    }

    /// By a trainer of its own, so that a thread can have the rest. Nothing can go wrong in the
    /// second epoch that did not in the first; the result is compared.
    pub fn run(&mut self, data: &Dataset) {
        let mut trainer = Trainer::new(self.rule.clone())
            .batch_size(self.batch)
            .shuffle(self.shuffle)
            .clip_norm(self.clip_norm)
            .progress(Progress::Silent);
        if let Some(parallel) = self.parallel {
            trainer = trainer.parallel(parallel);
        }
        let epochs = self.epoch..self.epoch + 1;
        self.epoch += 1;
        if let Err(error) = trainer.fit_epochs(&mut self.model, &mut self.updater, data, epochs) {
            eprintln!("{error}");
            self.epoch = u64::MAX - 1;
        }
    }
}
