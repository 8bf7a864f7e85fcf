//! Training, for the model and the rule that the command line names.

use super::epochs::{Lines, Objective};
use super::optimizer::{self, Penalty};
use super::run::Run;
use super::{keep, schedule::schedule, state};
use crate::Failure;
use crate::models::notes::note_of_clip;
use crate::models::{ModelVisitor, Sizes};
use nnz::core::update_rules::{RuleVisitor, UpdateRule};
use nnz::data::{AnyDataset, DataSource};
use nnz::model::ParameterInfo;
use nnz::optimizer::ParameterSpec;
use nnz::prelude::*;
use nnz::training::checkpoint::Attachments;
use nnz::training::{Evaluation, ScoreReport, score};
use std::cell::Cell;

/// Training of a model by any rule.
impl ModelVisitor for Run<'_> {
    type Output = Result<(), Failure>;

    fn visit<M: Model<Element = f32>>(
        self,
        make: fn(Dims, Seed) -> nnz::Result<M>,
    ) -> Self::Output {
        let model = self.model(make)?;
        self.save(&optimizer::with(&self.arguments.optimizer, Fit { run: self, model })??)
    }
}

/// Training of a model by a few rules.
pub(super) struct FewRules<'a>(pub(super) Run<'a>);

impl ModelVisitor for FewRules<'_> {
    type Output = Result<(), Failure>;

    fn visit<M: Model<Element = f32>>(
        self,
        make: fn(Dims, Seed) -> nnz::Result<M>,
    ) -> Self::Output {
        let FewRules(run) = self;
        let model = run.model(make)?;
        run.save(&optimizer::with_few(&run.arguments.optimizer, Fit { run, model })??)
    }
}

impl Run<'_> {
    /// The model before the first step.
    fn model<M: Model<Element = f32>>(
        &self,
        make: fn(Dims, Seed) -> nnz::Result<M>,
    ) -> Result<M, Failure> {
        if let Some(saved) = self.init {
            return Ok(saved.load(make)?);
        }
        let sizes = Sizes { fields: self.n_fields, ..self.arguments.sizes() };
        let dims = self.arguments.model.dims(self.train, sizes)?;
        let mut model = make(dims, Seed(self.arguments.seed))?;
        self.arguments.loss_numbers.set(&mut model);
        Ok(model)
    }

    /// Saves the model after the last epoch, unless the best one is in the file already.
    fn save<M: Model<Element = f32>>(&self, trained: &M) -> Result<(), Failure> {
        if let (Some(path), None) = (&self.arguments.save, self.arguments.patience) {
            check_finite(trained)?;
            let clip = self.clipping.range_after_training()?.map(note_of_clip);
            let notes = self.notes.iter().chain(&clip);
            let notes = notes.map(|(name, note)| (*name, &note[..])).collect::<Vec<_>>();
            let ids = keep::ids_by_name(self.ids);
            checkpoint::save_with(trained, path, Attachments { notes: &notes, ids: &ids })?;
        }
        Ok(())
    }
}

/// Training with the rule that the command line names: all that is compiled for each pair of a
/// model and a rule.
struct Fit<'a, M> {
    run: Run<'a>,
    model: M,
}

impl<M: Model<Element = f32>> RuleVisitor for Fit<'_, M> {
    /// The trained model.
    type Output = Result<M, Failure>;

    fn visit<R: UpdateRule>(self, rule: R) -> Result<M, Failure> {
        let Fit { run, mut model } = self;
        let objective = Cell::default();
        let mut trainer = trainer(rule, &run, M::PARAMETERS, &objective)?;
        if let Some(path) = keep::resumed(run.arguments)? {
            keep::tell_end(&trainer.resume(&mut model, run.train, path)?, run.arguments);
            return Ok(model);
        }
        let mut updater = trainer.updater(&model)?;
        if let Some(state) = run.init.and_then(state::of) {
            state::load(&mut model, &mut updater, &state)?;
        }
        let epochs = 0..run.arguments.epochs;
        let report = trainer.fit_epochs(&mut model, &mut updater, run.train, epochs)?;
        keep::tell_end(&report, run.arguments);
        if let Some(path) = state::to_save(run.arguments) {
            checkpoint::save_run(&model, &updater, &checkpoint::Run::default(), path)?;
        }
        Ok(model)
    }
}

/// What is the same for every model.
#[inline(never)]
fn trainer<'a, R: UpdateRule>(
    rule: R,
    run: &'a Run<'a>,
    parameters: &[ParameterInfo],
    objective: &'a Cell<Option<Objective>>,
) -> Result<Trainer<'a, R, Evaluated<'a>>, Failure> {
    let arguments = run.arguments;
    let rule = optimizer::configured(rule, arguments)?;
    let penalty = Penalty::of(&rule);
    let mut trainer = Trainer::new(rule)
        .batch_size(arguments.batch_size)
        .epochs(arguments.epochs)
        .shuffle(!arguments.no_shuffle)
        .seed(arguments.seed)
        .schedule(schedule(arguments, run.train.n_rows())?)
        .clip_norm(arguments.clip_norm)
        .parallel(arguments.reading.parallel())
        .progress(Progress::Silent)
        .evaluation(Evaluated { run, penalty, objective })
        .callback(Lines::new(run, objective, run.best));
    if arguments.no_bias {
        trainer = trainer.learning_rate_scale("b", 0.0);
    }
    for parameter in parameters.iter().filter(|info| info.gradient.is_some()) {
        if let Some(share) = arguments.share_of_decay(parameter.name) {
            trainer = trainer.weight_decay_scale(parameter.name, share);
        }
    }
    keep::attach(trainer, run)
}

/// Refuses to save a model whose last step made a number that is not finite.
fn check_finite<M: Model<Element = f32>>(model: &M) -> Result<(), Failure> {
    for parameter in model.parameters() {
        if let Some(value) = parameter.values().iter().find(|value| !value.is_finite()) {
            let name = parameter.name;
            return Err(format!(
                "parameter `{name}` has the value {value} after the last epoch, and nothing is saved: scale the features, or lower --learning-rate"
            )
            .into());
        }
    }
    Ok(())
}

/// What is computed after every epoch; compiled once a model, whatever the rule.
#[derive(Clone, Copy)]
pub(crate) struct Evaluated<'a> {
    run: &'a Run<'a>,
    penalty: Penalty,
    /// For whoever prints it.
    objective: &'a Cell<Option<Objective>>,
}

impl Evaluation<f32> for Evaluated<'_> {
    type Source = AnyDataset;

    fn source(&self) -> Option<&AnyDataset> {
        self.run.test
    }

    #[inline(never)]
    fn evaluate<M: Model<Element = f32>>(
        &self,
        model: &mut M,
        _: &[Box<dyn Metric>],
        _: usize,
    ) -> nnz::Result<Option<ScoreReport>> {
        let (arguments, rows) = (self.run.arguments, self.run.arguments.eval_batch);
        if arguments.objective {
            let train_loss = score(model, self.run.train, &[], rows)?.loss;
            let penalty = self.penalty_of(model);
            self.objective.set(Some(Objective { train_loss, penalty }));
        }
        let Some(test) = self.run.test else { return Ok(None) };
        score(model, test, &arguments.model.metrics(self.run.clipping.range()), rows).map(Some)
    }
}

impl Evaluated<'_> {
    /// The penalty of all parameters that the rule shrinks: it costs what their rows do that were
    /// written.
    fn penalty_of<M: Model<Element = f32>>(&self, model: &M) -> f64 {
        let specs = ParameterSpec::of_model(model);
        let parameters = model.parameters().into_iter().zip(specs);
        let shares = parameters.map(|(parameter, spec)| {
            let share = self.run.arguments.share_of_decay(parameter.name);
            (parameter, share.unwrap_or(spec.weight_decay_scale))
        });
        let shrunk = shares.filter(|(_, share)| *share != 0.0);
        shrunk.map(|(parameter, share)| share * self.penalty.at(parameter.table)).sum()
    }
}
