//! Where cases are computed: on the host, or by another device through the same harness.

use crate::golden::models::Visit;
use crate::golden::tally::Outcome;
use nnz::core::compile::Compiled;
use nnz::interpreter::{InterpreterError, Values, evaluate};
use nnz::kernels::Array;
use nnz::prelude::*;
use std::collections::HashMap;
use std::fmt;

/// The arrays of a case by name.
pub(crate) type Inputs = HashMap<String, Array<f32>>;

/// What computes the values of graphs, and trains models.
pub(crate) trait Device {
    /// Said behind the name of a file.
    const SUFFIX: &'static str;

    /// The values of a graph.
    fn evaluate<'a>(
        &self,
        compiled: &'a Compiled,
        inputs: &Inputs,
    ) -> Result<Values<'a, f32>, Failure>;

    /// Does something with a model that is there; `new` makes it on the host.
    fn visit<M: Model<Element = f32> + 'static>(
        &self,
        new: &dyn Fn() -> nnz::Result<M>,
        visit: &mut impl Visit,
    ) -> Result<(), Failure>;

    /// Whether rows that miss steps are caught up with by the rules alone that say so
    /// ([`UpdateRule::CATCHES_UP_ON_GPU`]).
    const IS_GPU: bool = false;

    /// How many steps of a trajectory are made here. An epoch that does not end within them is
    /// counted, and left out.
    fn most_steps(&self) -> usize {
        usize::MAX
    }

    /// What only the host does, of which there is no case elsewhere.
    fn only_on_host(&self, what: &str) -> Result<(), Failure> {
        Err(Failure::NotThere(what.to_owned()))
    }
}

/// The host: the kernels that emitted code calls, and the models that it is.
pub(crate) struct Host;

impl Device for Host {
    const SUFFIX: &'static str = "";

    fn evaluate<'a>(
        &self,
        compiled: &'a Compiled,
        inputs: &Inputs,
    ) -> Result<Values<'a, f32>, Failure> {
        Ok(evaluate(compiled, inputs)?)
    }

    fn visit<M: Model<Element = f32> + 'static>(
        &self,
        new: &dyn Fn() -> nnz::Result<M>,
        visit: &mut impl Visit,
    ) -> Result<(), Failure> {
        visit.visit(new)
    }

    fn only_on_host(&self, _: &str) -> Result<(), Failure> {
        Ok(())
    }
}

/// Why there are no results to be compared, or that they are not those recorded.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The interpreter refuses it.
    Refused(InterpreterError),
    /// The device does not have what it needs.
    NotThere(String),
    /// Anything else.
    Wrong(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Refused(error) => error.fmt(f),
            Failure::NotThere(what) => write!(f, "not there: {what}"),
            Failure::Wrong(message) => f.write_str(message),
        }
    }
}

impl From<InterpreterError> for Failure {
    fn from(error: InterpreterError) -> Self {
        Failure::Refused(error)
    }
}

impl From<nnz::Error> for Failure {
    fn from(error: nnz::Error) -> Self {
        Failure::Wrong(error.to_string())
    }
}

impl From<String> for Failure {
    fn from(message: String) -> Self {
        Failure::Wrong(message)
    }
}

impl From<&str> for Failure {
    fn from(message: &str) -> Self {
        Failure::Wrong(message.to_owned())
    }
}

impl From<Failure> for Outcome {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::NotThere(what) => Outcome::NotThere(what),
            failure => Outcome::Failed(failure.to_string()),
        }
    }
}

/// As the case of a file that is judged by whether it is as recorded.
impl From<Result<(), Failure>> for Outcome {
    fn from(result: Result<(), Failure>) -> Self {
        match result {
            Ok(()) => Outcome::Passed,
            Err(failure) => failure.into(),
        }
    }
}
