//! Rules, metrics and hooks of one's own that lack a part.
use nnz::core::element::Float;
use nnz::core::update_rules::{Hyperparameter, UpdateRule};
use nnz::data::{BatchOptions, DataSource};
use nnz::formats::Array;
use nnz::metric::Accumulator;
use nnz::model::ParameterStorage;
use nnz::optimizer::Updater;
use nnz::prelude::*;
use nnz::training::fit_epoch;

#[derive(Clone, Debug, Default, PartialEq)]
struct Sign {
    learning_rate: f64,
}

struct SignStep;

impl UpdateRule for Sign {
    const NAME: &'static str = "sign";
    type Step<T: Float> = SignStep;

    fn hyperparameters(&mut self) -> Vec<Hyperparameter<'_>> {
        Vec::new()
    }

    fn learning_rate(&self) -> f64 {
        self.learning_rate
    }

    fn lazy_update(&self) -> LazyUpdate {
        LazyUpdate::Dense
    }

    fn set_lazy_update(&mut self, _: LazyUpdate) {}

    fn step<T: Float>(&self, _: f64, _: f64, _: u64) -> SignStep {
        SignStep
    }
}

#[derive(Debug)]
struct Bias;

impl Metric for Bias {
    fn name(&self) -> &'static str {
        "bias"
    }

    fn start(&self) -> Box<dyn Accumulator> {
        Box::new(0.0)
    }
}

struct OnAnotherDevice {
    values: Dense<f32, u8>,
}

fn parameter_of<S: ParameterStorage>() {}

fn parameter_of_csr() {
    parameter_of::<Csr>();
}

fn size_of(_: &impl Array) {}

fn of_a_view(x: CsrView<'_, f32>) {
    size_of(&x);
}

fn hooked<M: Model>(
    model: &mut M,
    updater: &mut Updater<Sgd, M::Element>,
    data: &Dataset<M::Element>,
) -> Result<()> {
    let mut batches = data.batches(M::INPUTS, &BatchOptions::default())?;
    fit_epoch(model, updater, &mut batches, 0, &mut |loss: f64| println!("{loss}"))?;
    Ok(())
}

fn main() {}
