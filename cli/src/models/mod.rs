//! The models of the program: a graph is a file of this folder and a line of the table.

// `graph!` makes a graph's items as visible as it is written.
#![allow(unreachable_pub)]

mod factorization_machine;
mod hinge;
mod huber;
mod linear;
mod logistic;
mod matrix_factorization;
mod multi_task;
pub(crate) mod notes;
pub(crate) mod output_change;
mod poisson;
mod quantile;
pub(crate) mod saved;
mod softmax;
mod squared_hinge;
mod wide_deep;

use clap::ValueEnum;
use nnz::data::{AnyDataset, Classes, IdMap, WEIGHT};
use nnz::metric::{Accuracy, Auc, Metric, Rmse};
use nnz::model::{InputInfo, InputRole};
use nnz::prelude::*;
use output_change::{Clipped, Margin};

/// What a model predicts, which says what its predictions are held to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    /// A number: the mean of the labels.
    Number,
    /// A number that is not the mean of the labels: a median or another quantile.
    Quantile,
    /// The mean of a count.
    Count,
    /// The probability of one of two classes.
    Binary,
    /// A score of one of two classes, which is predicted from 0 on.
    Margin,
    /// The probabilities of any number of classes.
    Classes,
    /// A number, and the probability of one of two classes.
    NumberAndBinary,
}

/// The dimensions of a model's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extents {
    /// `d` features.
    Features,
    /// `d` features and `k` classes.
    FeaturesAndClasses,
    /// `d` features and `k` columns of a table.
    FeaturesAndFactors,
    /// `users`, `items`, and `k` columns of their tables.
    Ids,
}

/// The kinds of models by the rows of a table. Those with a weight for each sample stand below:
/// they have names of their own in files, and none on the command line.
macro_rules! models {
    (
        plain {
            $($(#[$attribute:meta])* $Kind:ident = $module:ident::$Graph:ident, $Task:ident, $Extents:ident;)*
        }
        weighted {
            $($Weighted:ident = $base_module:ident::$WeightedGraph:ident of $Base:ident;)*
        }
    ) => {
        /// A kind of models, by its name on the command line.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
        pub(crate) enum ModelKind {
            $($(#[$attribute])* $Kind,)*
            $(#[value(skip)] $Weighted,)*
        }

        impl ModelKind {
            /// All kinds.
            const ALL: &'static [ModelKind] =
                &[$(ModelKind::$Kind,)* $(ModelKind::$Weighted,)*];

            /// Calls the visitor with the model of this kind.
            pub(crate) fn with<V: ModelVisitor>(self, visitor: V) -> V::Output {
                self.with_weighted(visitor, |visitor| visitor)
            }

            /// Calls the visitor, or what is made of it for a model with weights of samples, with
            /// the model of this kind.
            pub(crate) fn with_weighted<V, W>(self, visitor: V, weighted: fn(V) -> W) -> V::Output
            where
                V: ModelVisitor,
                W: ModelVisitor<Output = V::Output>,
            {
                match self {
                    $(ModelKind::$Kind => visitor.visit($module::$Graph::new),)*
                    $(ModelKind::$Weighted => {
                        weighted(visitor).visit($base_module::$WeightedGraph::new)
                    })*
                }
            }

            /// What it predicts.
            pub(crate) fn task(self) -> Task {
                match self {
                    $(ModelKind::$Kind => Task::$Task,)*
                    $(ModelKind::$Weighted => ModelKind::$Base.task(),)*
                }
            }

            fn extents(self) -> Extents {
                match self {
                    $(ModelKind::$Kind => Extents::$Extents,)*
                    $(ModelKind::$Weighted => ModelKind::$Base.extents(),)*
                }
            }

            /// The kind without weights of samples, which has a name on the command line.
            pub(crate) fn base(self) -> Self {
                match self {
                    $(ModelKind::$Weighted => ModelKind::$Base,)*
                    base => base,
                }
            }

            /// The kind with weights of samples, if there is one.
            pub(crate) fn weighted(self) -> Option<Self> {
                match self {
                    $(ModelKind::$Base => Some(ModelKind::$Weighted),)*
                    _ => None,
                }
            }
        }
    };
}

models! {
    plain {
        /// Least squares.
        Linear = linear::Linear, Number, Features;
        /// Binary classification.
        Logistic = logistic::LogisticRegression, Binary, Features;
        /// Classification into any number of classes.
        Softmax = softmax::SoftmaxRegression, Classes, FeaturesAndClasses;
        /// Binary classification by a support vector machine: the hinge loss.
        #[value(alias = "svm")]
        Hinge = hinge::LinearSvm, Margin, Features;
        /// Binary classification by a support vector machine: the squared hinge loss.
        SquaredHinge = squared_hinge::SquaredHingeSvm, Margin, Features;
        /// Numbers with outliers: errors above --delta count by their size, not by their square.
        Huber = huber::HuberRegression, Quantile, Features;
        /// The number that the share --quantile of the labels is below.
        Quantile = quantile::QuantileRegression, Quantile, Features;
        /// Counts.
        Poisson = poisson::PoissonRegression, Count, Features;
        /// Binary classification by features and pairs of them.
        #[value(alias = "fm")]
        FactorizationMachine = factorization_machine::FactorizationMachine, Binary, FeaturesAndFactors;
        /// Ratings of items by users.
        #[value(alias = "mf")]
        MatrixFactorization = matrix_factorization::MatrixFactorization, Number, Ids;
        /// Binary classification by a linear model and embeddings through two layers.
        WideDeep = wide_deep::WideDeep, Binary, Features;
        /// A number, the first label, and a binary class, the second, from what they share.
        MultiTask = multi_task::MultiTask, NumberAndBinary, FeaturesAndFactors;
    }
    weighted {
        WeightedLinear = linear::WeightedLinear of Linear;
        WeightedLogistic = logistic::WeightedLogisticRegression of Logistic;
        WeightedSoftmax = softmax::WeightedSoftmaxRegression of Softmax;
        WeightedMachine =
            factorization_machine::WeightedFactorizationMachine of FactorizationMachine;
    }
}

/// Something that is done with the model of a kind.
pub(crate) trait ModelVisitor {
    /// What comes of it.
    type Output;

    /// Does it; `make` is the model's `new`.
    fn visit<M: Model<Element = f32>>(self, make: fn(Dims, Seed) -> Result<M>) -> Self::Output;
}

impl ModelKind {
    /// The kind of a model by the name that its file has.
    pub(crate) fn of_name(name: &str) -> Option<Self> {
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
        ModelKind::ALL.iter().copied().find(|kind| kind.with(Name) == name)
    }

    /// Whether the columns of its tables are the command line's to say.
    pub(crate) fn has_factors(self) -> bool {
        matches!(self.extents(), Extents::FeaturesAndFactors | Extents::Ids)
    }

    /// Whether its samples have weights.
    pub(crate) fn is_weighted(self) -> bool {
        self != self.base()
    }

    /// How many labels it reads, weights apart.
    pub(crate) fn n_labels(self) -> usize {
        struct Labels;
        impl ModelVisitor for Labels {
            type Output = usize;
            fn visit<M: Model<Element = f32>>(self, _: fn(Dims, Seed) -> Result<M>) -> usize {
                let is_label =
                    |input: &&InputInfo| input.role == InputRole::Label && input.name != WEIGHT;
                M::INPUTS.iter().filter(is_label).count()
            }
        }
        self.with(Labels)
    }

    /// The extents of the parameters of a model for these data, whose tables have `factors`
    /// columns.
    pub(crate) fn dims(self, data: &AnyDataset, factors: usize) -> Dims {
        let (d, k) = (data.n_features(), factors);
        match self.extents() {
            Extents::Features => dims! { d: d },
            Extents::FeaturesAndClasses => {
                dims! { d: d, k: data.classes().map_or(0, Classes::len) }
            }
            Extents::FeaturesAndFactors => dims! { d: d, k: k },
            Extents::Ids => {
                let n_ids = |column| match data {
                    AnyDataset::Memory(data) => data.id_map(column).map_or(0, IdMap::len),
                    AnyDataset::Stream(_) => 0,
                };
                dims! { users: n_ids("user"), items: n_ids("item"), k: k }
            }
        }
    }

    /// Whether its first output is a number, which may be cut to a range.
    pub(crate) fn is_number(self) -> bool {
        matches!(self.task(), Task::Number | Task::Quantile | Task::Count | Task::NumberAndBinary)
    }

    /// Whether its labels are of two classes.
    pub(crate) fn has_two_classes(self) -> bool {
        matches!(self.task(), Task::Binary | Task::Margin)
    }

    /// What the first output, cut to a range if there is one, is held to after every epoch.
    pub(crate) fn metrics(self, clip: Option<(f64, f64)>) -> Vec<Box<dyn Metric>> {
        match self.task() {
            Task::Number | Task::Quantile | Task::Count | Task::NumberAndBinary => match clip {
                Some((low, high)) => vec![Box::new(Clipped { metric: Rmse, low, high })],
                None => vec![Box::new(Rmse)],
            },
            Task::Binary => vec![Box::new(Accuracy), Box::new(Auc)],
            Task::Margin => vec![Box::new(Margin(Accuracy)), Box::new(Auc)],
            Task::Classes => vec![Box::new(Accuracy)],
        }
    }
}
