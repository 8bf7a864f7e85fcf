//! The L2 penalty: one for all tables, or one for each.

use super::arguments::Arguments;
use crate::models::ModelVisitor;
use nnz::model::ParameterInfo;
use nnz::prelude::*;

/// An L2 penalty, as `1e-4` or as `w=1e-5,v=1e-4`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Decay {
    /// Of all parameters but biases.
    All(f64),
    /// Of each parameter that is named; others have none.
    Tables(Vec<(String, f64)>),
}

/// A penalty as on the command line.
pub(super) fn decay(text: &str) -> Result<Decay, String> {
    let number = |text: &str| text.trim().parse().map_err(|error| format!("`{text}`: {error}"));
    if !text.contains('=') {
        return Ok(Decay::All(number(text)?));
    }
    let mut tables: Vec<(String, f64)> = Vec::new();
    for part in text.split(',') {
        let (name, value) = part.split_once('=').ok_or_else(|| {
            format!("`{part}`: it is one number, or one for each table as in `w=1e-5,v=1e-4`")
        })?;
        let name = name.trim();
        if tables.iter().any(|(known, _)| known == name) {
            return Err(format!("`{name}` has two penalties: say one"));
        }
        tables.push((name.to_owned(), number(value)?));
    }
    Ok(Decay::Tables(tables))
}

impl Decay {
    /// The penalty of the update rule: the largest of all tables, each of which takes its share of
    /// it.
    pub(super) fn of_rule(&self) -> f64 {
        match self {
            Decay::All(penalty) => *penalty,
            Decay::Tables(tables) => tables.iter().map(|(_, penalty)| *penalty).fold(0.0, f64::max),
        }
    }

    /// The share of the rule's penalty that a parameter takes; `None` for one that takes what its
    /// uses say.
    pub(super) fn share(&self, parameter: &str) -> Option<f64> {
        let Decay::Tables(tables) = self else { return None };
        let penalty = tables.iter().find(|(name, _)| name == parameter).map_or(0.0, |(_, p)| *p);
        let largest = self.of_rule();
        Some(if largest > 0.0 { penalty / largest } else { 0.0 })
    }

    /// Refuses tables that the model does not have, and penalties beside these that would be scaled
    /// with them.
    fn check(&self, parameters: &[ParameterInfo], arguments: &Arguments) -> Result<(), String> {
        let Decay::Tables(tables) = self else { return Ok(()) };
        let trained = parameters.iter().filter(|info| info.gradient.is_some());
        let known: Vec<&str> = trained.map(|info| info.name).collect();
        for (name, penalty) in tables {
            if !known.contains(&&name[..]) {
                return Err(format!(
                    "--l2: the model has no table `{name}`: it has {}",
                    known.join(", ")
                ));
            }
            if !(*penalty >= 0.0 && penalty.is_finite()) {
                return Err(format!(
                    "--l2: the penalty of `{name}` is {penalty}, but must be at least 0 and finite"
                ));
            }
        }
        let others = arguments.hyperparameters.iter().map(|(name, _)| *name);
        let mut others = others.chain(arguments.set.iter().map(|(name, _)| &name[..]));
        match others.find(|name| matches!(*name, "l1" | "weight_decay")) {
            Some(name) => Err(format!(
                "--l2 of single tables and `{name}` are two penalties: leave one of them out"
            )),
            None => Ok(()),
        }
    }
}

/// Refuses penalties of tables that the model does not have, before any data is read.
pub(super) fn check(arguments: &Arguments) -> Result<(), String> {
    struct Parameters;
    impl ModelVisitor for Parameters {
        type Output = &'static [ParameterInfo];
        fn visit<M: Model<Element = f32>>(
            self,
            _: fn(Dims, Seed) -> Result<M>,
        ) -> &'static [ParameterInfo] {
            M::PARAMETERS
        }
    }
    match &arguments.l2 {
        Some(decay) => decay.check(arguments.model.with(Parameters), arguments),
        None => Ok(()),
    }
}
