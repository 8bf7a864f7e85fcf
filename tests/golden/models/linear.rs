//! The recorded models of one weight, each fused and unfused.

use super::{Family, Visit};
use crate::golden::device::{Device, Failure};
use crate::golden::recorded::Recorded;
use nnz::core::storage::Storage;
use nnz::prelude::*;

/// A score `dot(x, weight)`, with or without a bias, and a loss of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GeneralisedLinear {
    /// The operator at the end: what the reference calls it.
    head: &'static str,
    /// The storage of features and weight.
    arrays: Arrays,
    /// Whether there is a bias.
    bias: bool,
    /// The extents of the weight.
    extents: [usize; 2],
}

/// The storage of features and weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arrays {
    /// Sparse features, a weight updated by rows.
    Sparse,
    /// Sparse features, a dense weight, whose gradient is row_sparse all the same.
    DenseWeight,
    /// Everything dense.
    Dense,
}

impl GeneralisedLinear {
    /// The recorded graph that this stands for.
    fn graph(&self) -> String {
        let score = if self.bias {
            "%0 = dot(data, weight)\n%1 = broadcast_add(%0, bias)\n%2"
        } else {
            "%0 = dot(data, weight)\n%1"
        };
        let operand = if self.bias { "%1" } else { "%0" };
        format!("{score} = {}({operand}, label)", self.head)
    }
}

/// For every combination a fused and an unfused model, and the function that picks one.
macro_rules! models {
    ($($head:literal $dims:tt $columns:tt $label:tt $loss:ident $output:tt:
        $([$arrays:ident $bias:ident $fused:ident $unfused:ident])*;)*) => {
        $($(
            models!(@model $fused, $columns $label $loss $output $arrays $bias,);
            models!(@model $unfused, $columns $label $loss $output $arrays $bias, fuse = off;);
        )*)*

        impl Family for GeneralisedLinear {
            fn choose(recorded: &Recorded<'_>) -> Result<Vec<Self>, String> {
                let graph = recorded.graph()?;
                let features = recorded.data.first().map(|features| features.stype());
                let arrays = match (features, recorded.parameter("weight")?.storage) {
                    (Some(Storage::Csr), Storage::RowSparse) => Arrays::Sparse,
                    (Some(Storage::Csr), Storage::Dense) => Arrays::DenseWeight,
                    (Some(Storage::Dense), Storage::Dense) => Arrays::Dense,
                    (data, weight) => return Err(format!("data is {data:?}, the weight {weight}")),
                };
                let extents = recorded.extents("weight")?;
                let heads = [$($head),*].into_iter();
                heads
                    .flat_map(|head| [true, false].map(|bias| Self { head, arrays, bias, extents }))
                    .find(|choice| choice.graph() == graph)
                    .map(|choice| vec![choice])
                    .ok_or_else(|| format!("unknown graph\n{graph}"))
            }

            fn is_one_loop(&self) -> bool {
                self.arrays != Arrays::Dense
            }

            fn with_model(
                &self,
                fused: bool,
                on: &impl Device,
                visit: &mut impl Visit,
            ) -> Result<(), Failure> {
                let [d, k] = self.extents;
                match (self.head, self.arrays, self.bias, fused) {
                    $($(
                        ($head, Arrays::$arrays, models!(@flag $bias), true) =>
                            on.visit(&|| $fused::new(models!(@dims d k $dims), Seed(0)), visit),
                        ($head, Arrays::$arrays, models!(@flag $bias), false) =>
                            on.visit(&|| $unfused::new(models!(@dims d k $dims), Seed(0)), visit),
                    )*)*
                    _ => Err(format!("no model for {self:?}").into()),
                }
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
