//! The models of the program: a graph is a file of this folder and a line of the table.

// `graph!` makes a graph's items as visible as it is written.
#![allow(unreachable_pub)]

mod factorization_machine;
mod field_aware_machine;
pub(crate) mod fields;
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
use nnz::model::{Extent, InputInfo, InputRole};
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
    /// `d` features, and `k` columns of a table for each of `fields`.
    FeaturesFieldsAndFactors,
    /// `d` features, `e` columns of a table, and the sizes `h1`, `h2`, … of layers.
    FeaturesAndLayers,
    /// `users`, `items`, and `k` columns of their tables.
    Ids,
}

/// The sizes of a model that the command line says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes<'a> {
    /// The columns of tables.
    pub(crate) factors: usize,
    /// The columns of the table before layers.
    pub(crate) embedding: usize,
    /// The sizes of layers.
    pub(crate) hidden: &'a [usize],
    /// The number of fields, if it is known.
    pub(crate) fields: Option<usize>,
}

/// The dimensions of the sizes of layers, by their position: a graph for each number of them is in
/// the table below.
const LAYERS: [&str; 3] = ["h1", "h2", "h3"];

/// The kinds of models by the rows of a table: those of any update rule, those of a
/// [few](crate::train::optimizer::FEW) rules, since each pair of a model and a rule is compiled,
/// and variants of them, by a few rules too: with weights of samples, or with more layers. Variants
/// have names of their own in files, and none on the command line.
macro_rules! models {
    (
        any_rule {
            $($(#[$attribute:meta])* $Kind:ident = $module:ident::$Graph:ident, $Task:ident, $Extents:ident;)*
        }
        few_rules {
            $($(#[$few_attribute:meta])* $Few:ident = $few_module:ident::$FewGraph:ident, $FewTask:ident, $FewExtents:ident;)*
        }
        variants {
            $($Variant:ident = $base_module:ident::$VariantGraph:ident of $Base:ident;)*
        }
    ) => {
        /// A kind of models, by its name on the command line.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
        pub(crate) enum ModelKind {
            $($(#[$attribute])* $Kind,)*
            $($(#[$few_attribute])* $Few,)*
            $(#[value(skip)] $Variant,)*
        }

        impl ModelKind {
            /// All kinds.
            const ALL: &'static [ModelKind] = &[
                $(ModelKind::$Kind,)* $(ModelKind::$Few,)* $(ModelKind::$Variant,)*
            ];

            /// Calls the visitor with the model of this kind.
            pub(crate) fn with<V: ModelVisitor>(self, visitor: V) -> V::Output {
                self.with_few(visitor, |visitor| visitor)
            }

            /// Calls the visitor, or what is made of it for a model of a few update rules, with the
            /// model of this kind.
            pub(crate) fn with_few<V, W>(self, visitor: V, few: fn(V) -> W) -> V::Output
            where
                V: ModelVisitor,
                W: ModelVisitor<Output = V::Output>,
            {
                match self {
                    $(ModelKind::$Kind => visitor.visit($module::$Graph::new),)*
                    $(ModelKind::$Few => few(visitor).visit($few_module::$FewGraph::new),)*
                    $(ModelKind::$Variant => {
                        few(visitor).visit($base_module::$VariantGraph::new)
                    })*
                }
            }

            /// What it predicts.
            pub(crate) fn task(self) -> Task {
                match self {
                    $(ModelKind::$Kind => Task::$Task,)*
                    $(ModelKind::$Few => Task::$FewTask,)*
                    $(ModelKind::$Variant => ModelKind::$Base.task(),)*
                }
            }

            fn extents(self) -> Extents {
                match self {
                    $(ModelKind::$Kind => Extents::$Extents,)*
                    $(ModelKind::$Few => Extents::$FewExtents,)*
                    $(ModelKind::$Variant => ModelKind::$Base.extents(),)*
                }
            }

            /// The kind that has a name on the command line.
            pub(crate) fn base(self) -> Self {
                match self {
                    $(ModelKind::$Variant => ModelKind::$Base,)*
                    base => base,
                }
            }

            /// Whether it is trained by a few update rules alone.
            pub(crate) fn has_few_rules(self) -> bool {
                match self {
                    $(ModelKind::$Kind => false,)*
                    $(ModelKind::$Few => true,)*
                    $(ModelKind::$Variant => true,)*
                }
            }
        }
    };
}

models! {
    any_rule {
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
        /// Binary classification by a linear model and embeddings through one to three layers.
        WideDeep = wide_deep::WideDeep, Binary, FeaturesAndLayers;
        /// A number, the first label, and a binary class, the second, from what they share.
        MultiTask = multi_task::MultiTask, NumberAndBinary, FeaturesAndFactors;
    }
    few_rules {
        /// Binary classification by features and pairs of them, with factors for each field
        /// (libffm).
        #[value(alias = "ffm")]
        FieldAwareMachine = field_aware_machine::FieldAwareMachine, Binary, FeaturesFieldsAndFactors;
    }
    variants {
        WeightedLinear = linear::WeightedLinear of Linear;
        WeightedLogistic = logistic::WeightedLogisticRegression of Logistic;
        WeightedSoftmax = softmax::WeightedSoftmaxRegression of Softmax;
        WeightedHinge = hinge::WeightedLinearSvm of Hinge;
        WeightedSquaredHinge = squared_hinge::WeightedSquaredHingeSvm of SquaredHinge;
        WeightedHuber = huber::WeightedHuberRegression of Huber;
        WeightedQuantile = quantile::WeightedQuantileRegression of Quantile;
        WeightedPoisson = poisson::WeightedPoissonRegression of Poisson;
        WeightedMachine =
            factorization_machine::WeightedFactorizationMachine of FactorizationMachine;
        WeightedFactorization =
            matrix_factorization::WeightedMatrixFactorization of MatrixFactorization;
        WeightedWideDeep = wide_deep::WeightedWideDeep of WideDeep;
        WideDeepTwoLayers = wide_deep::WideDeepTwoLayers of WideDeep;
        WeightedWideDeepTwoLayers = wide_deep::WeightedWideDeepTwoLayers of WideDeep;
        WideDeepThreeLayers = wide_deep::WideDeepThreeLayers of WideDeep;
        WeightedWideDeepThreeLayers = wide_deep::WeightedWideDeepThreeLayers of WideDeep;
        WeightedMultiTask = multi_task::WeightedMultiTask of MultiTask;
        WeightedFieldAwareMachine =
            field_aware_machine::WeightedFieldAwareMachine of FieldAwareMachine;
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
        matches!(
            self.extents(),
            Extents::FeaturesAndFactors | Extents::FeaturesFieldsAndFactors | Extents::Ids
        )
    }

    /// Whether the sizes of its layers are the command line's to say.
    pub(crate) fn has_layers(self) -> bool {
        self.extents() == Extents::FeaturesAndLayers
    }

    /// Whether it reads the fields of features.
    pub(crate) fn reads_fields(self) -> bool {
        self.extents() == Extents::FeaturesFieldsAndFactors
    }

    /// Whether its samples have weights.
    pub(crate) fn is_weighted(self) -> bool {
        struct Weights;
        impl ModelVisitor for Weights {
            type Output = bool;
            fn visit<M: Model<Element = f32>>(self, _: fn(Dims, Seed) -> Result<M>) -> bool {
                M::INPUTS.iter().any(|input| input.name == WEIGHT)
            }
        }
        self.with(Weights)
    }

    /// The variant with weights of samples, and as many layers, if there is one.
    pub(crate) fn weighted(self) -> Option<Self> {
        self.variant(true, self.n_layers())
    }

    /// The variant with so many layers, and weights if this has them, if there is one.
    pub(crate) fn with_layers(self, n_layers: usize) -> Option<Self> {
        self.variant(self.is_weighted(), n_layers)
    }

    fn variant(self, is_weighted: bool, n_layers: usize) -> Option<Self> {
        let is_it = |kind: &Self| {
            kind.base() == self.base()
                && kind.is_weighted() == is_weighted
                && kind.n_layers() == n_layers
        };
        ModelKind::ALL.iter().copied().find(is_it)
    }

    fn n_layers(self) -> usize {
        struct Layers;
        impl ModelVisitor for Layers {
            type Output = usize;
            fn visit<M: Model<Element = f32>>(self, _: fn(Dims, Seed) -> Result<M>) -> usize {
                let has = |name: &&&'static str| {
                    let name: &'static str = name;
                    let mut shapes = M::PARAMETERS.iter().flat_map(|parameter| parameter.shape);
                    shapes.any(|extent| *extent == Extent::Named(name))
                };
                LAYERS.iter().filter(has).count()
            }
        }
        self.with(Layers)
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

    /// The extents of the parameters of a model for these data.
    pub(crate) fn dims(self, data: &AnyDataset, sizes: Sizes<'_>) -> Result<Dims, String> {
        let (d, k) = (data.n_features(), sizes.factors);
        Ok(match self.extents() {
            Extents::Features => dims! { d: d },
            Extents::FeaturesAndClasses => {
                dims! { d: d, k: data.classes().map_or(0, Classes::len) }
            }
            Extents::FeaturesAndFactors => dims! { d: d, k: k },
            Extents::FeaturesFieldsAndFactors => {
                let fields = sizes.fields.ok_or(
                    "the number of fields of a stream is not known before it is read: say it, --fields N",
                )?;
                dims! { d: d, fields: fields, k: k }
            }
            Extents::FeaturesAndLayers => {
                let layers = LAYERS.iter().zip(sizes.hidden);
                layers.fold(dims! { d: d, e: sizes.embedding }, |dims, (name, size)| {
                    dims.with(name, *size)
                })
            }
            Extents::Ids => {
                let n_ids = |column| match data {
                    AnyDataset::Memory(data) => data.id_map(column).map_or(0, IdMap::len),
                    AnyDataset::Stream(_) => 0,
                };
                dims! { users: n_ids("user"), items: n_ids("item"), k: k }
            }
        })
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
