//! SVRG: recorded parameters, metrics and mean gradients, and the two runs that the reference
//! cannot make.
//!
//! The reference never clears the mean gradient between two snapshots. Cases called `reset` have
//! the mean of the paper, and are met. Cases called `accumulates` have the reference's: they are
//! met up to the second snapshot, and from then on recognised by what is wrong with their mean; no
//! setting of the library imitates it.

use crate::folder::say;
use crate::golden::case::{Tensor, cases, id, numbers};
use crate::golden::compare::Tolerance;
use crate::golden::device::{Device, Failure, Host};
use crate::golden::epochs::Epochs;
use crate::golden::models::{Linear, LinearDense, LinearDenseWeight, Visit};
use crate::golden::reasons::{Deviation, Kind};
use crate::golden::recorded;
use crate::golden::rules::configured;
use crate::golden::tally::Tally;
use crate::golden::train;
use nnz::core::update_rules::{RuleError, UpdateRule};
use nnz::kernels::Array;
use nnz::model::GradientMut;
use nnz::prelude::*;
use serde_json::Value;

pub(crate) const FILE: &str = "train_svrg";

#[test]
fn trajectories() {
    run_all(&Host);
}

/// All cases, trained.
pub(crate) fn run_all<D: Device>(on: &D) {
    let Some(cases) = cases(FILE) else { return };
    let mut tally = Tally::new(&format!("{FILE}{}", D::SUFFIX));
    let mut epochs = Epochs::default();
    for case in &cases {
        let outcome = match (case["update_freq"].is_u64(), case["optimizer"].as_str()) {
            (false, _) => train::run_sgd(case, &cases, &mut epochs, on),
            (true, Some("sgd")) => run::<Sgd>(case, &cases, &mut epochs, on),
            (true, Some("adagrad")) => run::<AdaGrad>(case, &cases, &mut epochs, on),
            (true, name) => Err(format!("unknown optimizer {name:?}").into()),
        };
        tally.add(id(case), outcome.into());
    }
    say(&format!("golden {FILE}{}: {}", D::SUFFIX, epochs.describe(on)));
    tally.finish();
}

/// A csr input, which the reference refuses: the trajectory is the one recorded of the same numbers
/// as a dense array.
pub(crate) fn run_refused(case: &Value, on: &impl Device) -> Result<Vec<Deviation>, Failure> {
    let cases = cases(FILE).ok_or("no trajectories")?;
    let recorded = cases.iter().find(|case| id(case) == "svrg.reset.bs8.freq2.momentum");
    let run = Run::<Sgd>::read(recorded.ok_or("no such trajectory")?, &cases)?;
    let (mut follow, d) = (Follow::new(&run, true, on)?, run.features.shape[1]);
    match case["weight_stype"].as_str() {
        Some("row_sparse") => on.visit(&|| Linear::new(dims! { d: d }, Seed(0)), &mut follow)?,
        Some("default") => {
            on.visit(&|| LinearDenseWeight::new(dims! { d: d }, Seed(0)), &mut follow)?;
        }
        stype => return Err(format!("a weight that is {stype:?}").into()),
    }
    Ok(vec![Kind::Accepted.because("trained")])
}

fn run<R: UpdateRule>(
    case: &Value,
    cases: &[Value],
    epochs: &mut Epochs,
    on: &impl Device,
) -> Result<(), Failure> {
    let run = Run::<R>::read(case, cases)?;
    let (mut follow, d) = (Follow::new(&run, false, on)?, run.features.shape[1]);
    on.visit(&|| LinearDense::new(dims! { d: d }, Seed(0)), &mut follow)?;
    epochs.add(follow.epochs);
    Ok(())
}

/// A case, to be followed by a model.
struct Follow<'a, R> {
    run: &'a Run<'a, R>,
    data: Dataset,
    epochs: Epochs,
}

impl<'a, R: UpdateRule> Follow<'a, R> {
    /// The epochs of a case that a device makes, of its data as a csr or dense: one at least, for
    /// nothing is compared before its end.
    fn new(run: &'a Run<'a, R>, sparse: bool, on: &impl Device) -> Result<Self, String> {
        let history = run.case["history"].as_array().ok_or("no history")?;
        let data = run.dataset(sparse)?;
        let batches = data.n_rows().div_ceil(run.batch_size);
        let epochs = Epochs::within(on.most_steps().max(batches), history.len(), batches);
        Ok(Follow { run, data, epochs })
    }
}

impl<R: UpdateRule> Visit for Follow<'_, R> {
    fn visit<M: Model<Element = f32> + 'static>(
        &mut self,
        new: &dyn Fn() -> nnz::Result<M>,
    ) -> Result<(), Failure> {
        self.run.follow(new()?, &self.data, self.epochs.followed)
    }
}

/// A case, ready to be run.
struct Run<'a, R> {
    case: &'a Value,
    rule: Svrg<R>,
    features: Tensor,
    labels: Tensor,
    /// Initial values: weight, then bias.
    parameters: Vec<Tensor>,
    batch_size: usize,
    /// Whether the mean is that of the reference.
    accumulates: bool,
}

impl<'a, R: UpdateRule> Run<'a, R> {
    fn read(case: &'a Value, cases: &[Value]) -> Result<Self, String> {
        let batch_size = case["batch_size"].as_u64().ok_or("no batch size")? as usize;
        let parameters: Option<Vec<Tensor>> =
            Tensor::read_all(&case["params"])?.into_iter().collect();
        let accumulates = match case["snapshot_mean"].as_str() {
            Some("reset") => false,
            Some("accumulates") => true,
            mean => return Err(format!("unknown mean {mean:?}")),
        };
        // Nothing is idle in dense data; recorded gradients are sums over a batch.
        let mut rule = configured(R::default(), case)?;
        rule.set_lazy_update(LazyUpdate::Dense);
        let rescale = case["hyper"]["rescale_grad"].as_f64().ok_or("no rescale_grad")?;
        rule.set("rescale_grad", rescale * batch_size as f64).map_err(text)?;
        if accumulates {
            refused_by_name()?;
        }
        Ok(Run {
            case,
            rule: Svrg { update_freq: case["update_freq"].as_u64().ok_or("no update_freq")?, rule },
            features: recorded::data(case, cases, "data")?,
            labels: recorded::data(case, cases, "label")?,
            parameters: parameters.ok_or("a parameter is null")?,
            batch_size,
            accumulates,
        })
    }

    /// The data, as a csr or dense.
    fn dataset(&self, sparse: bool) -> Result<Dataset, String> {
        let (Array::Dense(x), Array::Dense(y)) = (self.features.array()?, self.labels.array()?)
        else {
            return Err("the data is sparse".into());
        };
        let builder = Dataset::builder();
        let builder = if sparse {
            builder.input("x", x.to_csr().map_err(text)?)
        } else {
            builder.input("x", x)
        };
        builder.label("y", y).build().map_err(text)
    }

    fn trainer(&self) -> Result<Trainer<'static, Svrg<R>>, String> {
        let last_batch = match self.case["tail"].as_str() {
            Some("discard") => LastBatch::Discard,
            Some("pad") => LastBatch::Pad,
            tail => return Err(format!("unknown tail {tail:?}")),
        };
        Ok(Trainer::new(self.rule.clone())
            .batch_size(self.batch_size)
            .shuffle(false)
            .last_batch(last_batch)
            .decay_all()
            .metric(Mse)
            .progress(Progress::Silent))
    }

    /// Trains a model and compares it with what is recorded, epoch by epoch of the first ones.
    fn follow<M: Model<Element = f32>>(
        &self,
        mut model: M,
        data: &Dataset,
        epochs: usize,
    ) -> Result<(), Failure> {
        self.set(&mut model, |name| {
            self.parameters
                .iter()
                .find(|tensor| tensor.name == name)
                .map(|tensor| tensor.data.clone())
        })?;
        let mut trainer = self.trainer()?;
        let mut updater = trainer.updater(&model)?;
        let history = self.case["history"].as_array().ok_or("no history")?;
        let update_freq = self.rule.update_freq;
        for (epoch, recorded) in (0..).zip(&history[..epochs]) {
            let when = format!("after epoch {epoch}");
            if self.accumulates && epoch >= update_freq {
                if epoch % update_freq == 0 {
                    let before = &history[(epoch - update_freq) as usize];
                    let start = &history[epoch as usize - 1]["params"];
                    self.recognise(data, start, &before["mean_gradient"], recorded)?;
                }
                continue;
            }
            let report = trainer.fit_epochs(&mut model, &mut updater, data, epoch..epoch + 1)?;
            for (index, named) in self.parameters.iter().enumerate() {
                let name = named.name.as_str();
                let parameter = &model.parameters()[index];
                let values = parameter.values().iter().map(|&value| f64::from(value));
                let expected = numbers(&recorded["params"][name]).ok_or("no parameters")?;
                Tolerance::TRAINED.compare(&format!("{when}: `{name}`"), values, &expected)?;
                if epoch % update_freq != 0 {
                    continue;
                }
                // The mean of batches, each a sum of its samples.
                let states = updater.states(index, parameter.table).map_err(text)?;
                let mean =
                    states.iter().map(|state| f64::from(state.mean) * self.batch_size as f64);
                let expected = numbers(&recorded["mean_gradient"][name]).ok_or("no mean")?;
                Tolerance::TRAINED.compare(
                    &format!("{when}: mean of `{name}`"),
                    mean,
                    &expected,
                )?;
            }
            let full = trainer.score(&mut model, data).map_err(text)?;
            let pairs =
                [("metric", report.epochs[0].metric("mse")), ("full_mse", full.metric("mse"))];
            for (what, found) in pairs {
                let expected = recorded[what].as_f64().ok_or("no metric")?;
                // The running metric counts the rows of padding as well.
                if what == "metric" && self.case["tail"] == "pad" {
                    continue;
                }
                Tolerance::TRAINED.compare(&format!("{when}: {what}"), found, &[expected])?;
            }
        }
        Ok(())
    }

    /// That a recorded mean is the sum over batches at the parameters `start` and the mean before
    /// it, divided by the number of batches. Nothing of it is trained: the gradients are those of
    /// the host, whatever device follows the case.
    fn recognise(
        &self,
        data: &Dataset,
        start: &Value,
        before: &Value,
        recorded: &Value,
    ) -> Result<(), String> {
        let d = self.features.shape[1];
        let mut model = LinearDense::new(dims! { d: d }, Seed(0)).map_err(text)?;
        self.set(&mut model, |name| numbers(&start[name]))?;
        let padded = self.case["tail"] == "pad";
        let n_batches = data.n_rows() as f64 / self.batch_size as f64;
        let mut sums = vec![Vec::new(); self.parameters.len()];
        let options = nnz::data::BatchOptions {
            batch_size: self.batch_size,
            last_batch: if padded { LastBatch::Pad } else { LastBatch::Discard },
            ..Default::default()
        };
        let mut batches =
            nnz::data::DataSource::batches(data, LinearDense::INPUTS, &options).map_err(text)?;
        while let Some(batch) = nnz::data::Batches::next_batch(&mut batches).map_err(text)? {
            let bound = model.bind(&batch).map_err(text)?;
            model.loss_and_grads(&bound).map_err(text)?;
            for (index, sum) in sums.iter_mut().enumerate() {
                let Some(GradientMut::Dense(gradient)) = model.gradient_mut(index) else {
                    return Err("a gradient is not dense".into());
                };
                sum.resize(gradient.values().len(), 0.0);
                for (sum, value) in sum.iter_mut().zip(gradient.values()) {
                    *sum += f64::from(*value) * self.batch_size as f64;
                }
            }
        }
        for (named, sum) in self.parameters.iter().zip(&sums) {
            let name = named.name.as_str();
            let previous = numbers(&before[name]).ok_or("no mean before")?;
            let leaked = sum.iter().zip(&previous).map(|(sum, before)| (sum + before) / n_batches);
            let expected = numbers(&recorded["mean_gradient"][name]).ok_or("no mean")?;
            Tolerance::TRAINED.compare(&format!("leaking mean of `{name}`"), leaked, &expected)?;
        }
        Ok(())
    }

    /// Sets the parameters of a model by name.
    fn set<M: Model<Element = f32>>(
        &self,
        model: &mut M,
        values: impl Fn(&str) -> Option<Vec<f64>>,
    ) -> Result<(), String> {
        for mut parameter in model.parameters_mut() {
            let values =
                values(parameter.name).ok_or_else(|| format!("no `{}`", parameter.name))?;
            if values.len() != parameter.values_mut().len() {
                return Err(format!("`{}` has {} values", parameter.name, values.len()));
            }
            for (to, from) in parameter.values_mut().iter_mut().zip(values) {
                *to = from as f32;
            }
        }
        Ok(())
    }
}

/// The mean of the reference has a name, by which it is refused.
fn refused_by_name() -> Result<(), String> {
    match Svrg::<Sgd>::default().set("accumulates", 1.0) {
        Err(RuleError::AccumulatingMean { .. }) => Ok(()),
        other => Err(format!("`accumulates` gives {other:?}")),
    }
}

fn text(error: impl Into<nnz::Error>) -> String {
    error.into().to_string()
}
