//! The models of the recorded trajectories, each fused and unfused.

use crate::device::{Device, Failure};
use nnz::prelude::*;

/// Something to be done with a model, whichever it is.
pub(crate) trait Visit {
    /// Does it. `new` makes the model for so many features and outputs.
    fn visit<M: Model<Element = f32>>(
        &mut self,
        new: impl Fn(usize, usize) -> nnz::Result<M>,
    ) -> Result<(), Failure>;
}

/// What kind of score a model computes, from what kind of arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    /// The operator at the end: what the reference calls it.
    pub(crate) head: &'static str,
    /// The storage of features and weight.
    pub(crate) arrays: Arrays,
    /// Whether there is a bias.
    pub(crate) bias: bool,
    /// Whether the step may be fused.
    pub(crate) fused: bool,
}

/// The storage of features and weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrays {
    /// Sparse features, a weight updated by rows.
    Sparse,
    /// Sparse features, a dense weight, whose gradient is row_sparse all the same.
    DenseWeight,
    /// Everything dense.
    Dense,
}

/// For every combination a fused and an unfused model, and the function that picks one.
macro_rules! models {
    ($($head:literal $dims:tt $columns:tt $label:tt $loss:ident $output:tt:
        $([$arrays:ident $bias:ident $fused:ident $unfused:ident])*;)*) => {
        $($(
            models!(@model $fused, $columns $label $loss $output $arrays $bias,);
            models!(@model $unfused, $columns $label $loss $output $arrays $bias, fuse = off;);
        )*)*

        /// Visits the model chosen, on a device.
        pub(crate) fn with_model(
            choice: Choice,
            on: &impl Device,
            visit: &mut impl Visit,
        ) -> Result<(), Failure> {
            match choice {
                $($(
                    Choice { head: $head, arrays: Arrays::$arrays, bias: models!(@flag $bias), fused: true } =>
                        on.visit(|d, k| $fused::new(models!(@dims d k $dims), Seed(0)), visit),
                    Choice { head: $head, arrays: Arrays::$arrays, bias: models!(@flag $bias), fused: false } =>
                        on.visit(|d, k| $unfused::new(models!(@dims d k $dims), Seed(0)), visit),
                )*)*
                _ => Err(format!("no model for {choice:?}").into()),
            }
        }
    };
    (@flag bias) => { true };
    (@flag plain) => { false };
    (@dims $d:ident $k:ident (d)) => {{ let _ = $k; dims! { d: $d } }};
    (@dims $d:ident $k:ident (d k)) => { dims! { d: $d, k: $k } };
    (@model $name:ident, $columns:tt [$($label:tt)*] $loss:ident $output:tt $arrays:ident $bias:ident, $($option:tt)*) => {
        models!(@graph $name ($($option)*) $columns ($($label)*) $loss $output $arrays $bias);
    };
    (@graph $name:ident $option:tt $columns:tt $label:tt $loss:ident $output:tt Sparse $bias:ident) => {
        models!(@emit $name $option $columns $label $loss $output csr row_sparse $bias);
    };
    (@graph $name:ident $option:tt $columns:tt $label:tt $loss:ident $output:tt DenseWeight $bias:ident) => {
        models!(@emit $name $option $columns $label $loss $output csr dense $bias);
    };
    (@graph $name:ident $option:tt $columns:tt $label:tt $loss:ident $output:tt Dense $bias:ident) => {
        models!(@emit $name $option $columns $label $loss $output dense dense $bias);
    };
    (@emit $name:ident ($($option:tt)*) ($columns:tt) ($($label:tt)*) $loss:ident ($($output:tt)*) $x:ident $w:ident bias) => {
        graph! {
            /// A recorded model.
            pub(crate) model $name {
                $($option)*
                input x: $x[n, d];
                label y: $($label)*;
                param weight: $w[d, $columns] = Zeros;
                param bias: dense[$columns] = Zeros;
                let score = dot(x, weight) + bias;
                loss $loss(score, y);
                output prediction = $($output)*;
            }
        }
    };
    (@emit $name:ident ($($option:tt)*) ($columns:tt) ($($label:tt)*) $loss:ident ($($output:tt)*) $x:ident $w:ident plain) => {
        graph! {
            /// A recorded model without a bias.
            pub(crate) model $name {
                $($option)*
                input x: $x[n, d];
                label y: $($label)*;
                param weight: $w[d, $columns] = Zeros;
                let score = dot(x, weight);
                loss $loss(score, y);
                output prediction = $($output)*;
            }
        }
    };
}

models! {
    "LinearRegressionOutput" (d) (1) [dense[n, 1]] squared_error (score):
        [Sparse bias Linear LinearUnfused]
        [DenseWeight bias LinearDenseWeight LinearDenseWeightUnfused]
        [Dense bias LinearDense LinearDenseUnfused]
        [Sparse plain LinearPlain LinearPlainUnfused];
    "LogisticRegressionOutput" (d) (1) [dense[n, 1]] logistic (sigmoid(score)):
        [Sparse bias Logistic LogisticUnfused]
        [DenseWeight bias LogisticDenseWeight LogisticDenseWeightUnfused]
        [Dense bias LogisticDense LogisticDenseUnfused]
        [Sparse plain LogisticPlain LogisticPlainUnfused];
    "SoftmaxOutput" (d k) (k) [dense<u32>[n]] softmax_cross_entropy (softmax(score)):
        [Sparse bias Softmax SoftmaxUnfused]
        [DenseWeight bias SoftmaxDenseWeight SoftmaxDenseWeightUnfused]
        [Dense bias SoftmaxDense SoftmaxDenseUnfused]
        [Sparse plain SoftmaxPlain SoftmaxPlainUnfused];
}
