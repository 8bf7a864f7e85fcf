//! The models by name: the graphs of the examples.

// Of an example, `main` is not called, nor what all of them call there.
#![allow(clippy::duplicate_mod, dead_code, unreachable_pub)]

#[path = "../../examples/factorization_machine.rs"]
mod factorization_machine;
#[path = "../../examples/logistic_regression.rs"]
mod logistic_regression;
#[path = "../../examples/multi_task.rs"]
mod multi_task;
#[path = "../../examples/poisson_regression.rs"]
mod poisson_regression;
#[path = "../../examples/softmax_regression.rs"]
mod softmax_regression;
#[path = "../../examples/wide_deep.rs"]
mod wide_deep;

use crate::changed::Clipped;
use clap::ValueEnum;
use factorization_machine::FactorizationMachine;
use logistic_regression::LogisticRegression;
use multi_task::MultiTask;
use nnz::metric::{Accuracy, Auc, Metric, Rmse};
use nnz::model::InputRole;
use nnz::prelude::*;
use poisson_regression::PoissonRegression;
use softmax_regression::SoftmaxRegression;
use wide_deep::WideDeep;

graph! {
    /// Least squares: half the squared error.
    pub model Linear {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        param b: dense[1] = Zeros;
        let prediction = dot(x, w) + b;
        loss squared_error(prediction, y);
        output prediction;
    }

    /// Ratings as inner products of users' and items' factors, and biases; of any range.
    pub model MatrixFactorization {
        input user: dense<u32>[n];
        input item: dense<u32>[n];
        label rating: dense[n];
        param p: row_sparse[users, k] = Normal { mean: 0.0, std: 0.1 };
        param q: row_sparse[items, k] = Normal { mean: 0.0, std: 0.1 };
        param of_user: row_sparse[users] = Zeros;
        param of_item: row_sparse[items] = Zeros;
        param mean: dense[1] = Zeros;
        let prediction = sum(take(p, user) * take(q, item), axis = 1)
            + take(of_user, user) + take(of_item, item) + mean;
        loss squared_error(prediction, rating);
        output prediction;
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ModelKind {
    /// Least squares.
    Linear,
    /// Binary classification.
    Logistic,
    /// Classification into any number of classes.
    Softmax,
    /// Counts.
    Poisson,
    /// Binary classification by features and pairs of them.
    #[value(alias = "fm")]
    FactorizationMachine,
    /// Ratings of items by users.
    #[value(alias = "mf")]
    MatrixFactorization,
    /// Binary classification by a linear model and embeddings through two layers.
    WideDeep,
    /// A number, the first label, and a binary class, the second, from what they have in common.
    MultiTask,
}

/// Something that is done with the model of a kind.
pub trait ModelVisitor {
    /// What comes of it.
    type Output;

    /// Does it; `make` is the model's `new`.
    fn visit<M: Model<Element = f32>>(self, make: fn(Dims, Seed) -> Result<M>) -> Self::Output;
}

impl ModelKind {
    /// The kind of a model by the name that its file has.
    pub fn of_name(name: &str) -> Option<Self> {
        struct Name;
        impl ModelVisitor for Name {
            type Output = &'static str;
            fn visit<M: Model<Element = f32>>(
                self,
                _: fn(Dims, Seed) -> Result<M>,
            ) -> &'static str {
                M::NAME
            }
        }
        ModelKind::value_variants().iter().copied().find(|kind| kind.with(Name) == name)
    }

    /// Whether the columns of its tables are the command line's to say.
    pub fn has_factors(self) -> bool {
        matches!(
            self,
            ModelKind::FactorizationMachine | ModelKind::MatrixFactorization | ModelKind::MultiTask
        )
    }

    /// How many labels it reads.
    pub fn n_labels(self) -> usize {
        struct Labels;
        impl ModelVisitor for Labels {
            type Output = usize;
            fn visit<M: Model<Element = f32>>(self, _: fn(Dims, Seed) -> Result<M>) -> usize {
                M::INPUTS.iter().filter(|input| input.role == InputRole::Label).count()
            }
        }
        self.with(Labels)
    }

    /// Calls the visitor with the model of this kind.
    pub fn with<V: ModelVisitor>(self, visitor: V) -> V::Output {
        match self {
            ModelKind::Linear => visitor.visit(Linear::new),
            ModelKind::Logistic => visitor.visit(LogisticRegression::new),
            ModelKind::Softmax => visitor.visit(SoftmaxRegression::new),
            ModelKind::Poisson => visitor.visit(PoissonRegression::new),
            ModelKind::FactorizationMachine => visitor.visit(FactorizationMachine::new),
            ModelKind::MatrixFactorization => visitor.visit(MatrixFactorization::new),
            ModelKind::WideDeep => visitor.visit(WideDeep::new),
            ModelKind::MultiTask => visitor.visit(MultiTask::new),
        }
    }

    /// Whether its first output is a number, which may be cut to a range.
    pub fn is_number(self) -> bool {
        matches!(
            self,
            ModelKind::Linear
                | ModelKind::Poisson
                | ModelKind::MatrixFactorization
                | ModelKind::MultiTask
        )
    }

    /// What the first output, cut to a range if there is one, is held to.
    pub fn metrics(self, clip: Option<(f64, f64)>) -> Vec<Box<dyn Metric>> {
        match self {
            ModelKind::Linear
            | ModelKind::Poisson
            | ModelKind::MatrixFactorization
            | ModelKind::MultiTask => match clip {
                Some((low, high)) => vec![Box::new(Clipped { metric: Rmse, low, high })],
                None => vec![Box::new(Rmse)],
            },
            ModelKind::Logistic | ModelKind::FactorizationMachine | ModelKind::WideDeep => {
                vec![Box::new(Accuracy), Box::new(Auc)]
            }
            ModelKind::Softmax => vec![Box::new(Accuracy)],
        }
    }
}
