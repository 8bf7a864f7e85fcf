//! The numbers in the losses of some models: the quantile, and the bound of Huber's loss.

use super::arguments::{name_of, share};
use crate::models::ModelKind;
use clap::Args;
use nnz::prelude::*;

/// The numbers in the losses of some models, which are frozen parameters of the same names.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct LossNumbers {
    /// quantile: the share of labels that lie below the prediction; 0.5, the median, if not said.
    #[arg(long, value_name = "SHARE", value_parser = share)]
    quantile: Option<f64>,
    /// huber: the size from which an error counts linearly; 1 if not said.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    delta: Option<f64>,
}

impl LossNumbers {
    /// The numbers that were given: the parameter, and the model that has it.
    fn given(self) -> impl Iterator<Item = (&'static str, ModelKind, f64)> {
        let all = [
            ("quantile", ModelKind::Quantile, self.quantile),
            ("delta", ModelKind::Huber, self.delta),
        ];
        all.into_iter().filter_map(|(name, kind, number)| Some((name, kind, number?)))
    }

    /// Refuses a number that the loss of this model does not have.
    pub(super) fn check(self, model: ModelKind) -> Result<(), String> {
        match self.given().find(|(_, kind, _)| *kind != model) {
            Some((name, kind, _)) => Err(format!(
                "--{name} is for --model {}, but the model is {}: leave --{name} out, or choose another --model",
                name_of(&kind),
                name_of(&model),
            )),
            None => Ok(()),
        }
    }

    /// Writes the numbers that were given into a model.
    pub(super) fn set<M: Model<Element = f32>>(self, model: &mut M) {
        let mut parameters = model.parameters_mut();
        for (name, _, number) in self.given() {
            for parameter in parameters.iter_mut().filter(|parameter| parameter.name == name) {
                parameter.table.values_mut().fill(number as f32);
            }
        }
    }
}

/// A number above 0.
fn size(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(size) if size > 0.0 && f64::is_finite(size) => Ok(size),
        _ => Err("it is a number above 0".to_owned()),
    }
}
