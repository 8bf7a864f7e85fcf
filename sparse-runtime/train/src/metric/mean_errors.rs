//! Errors of outputs against labels, element by element: metrics that follow from their mean.

use super::mean::{OfMean, by_mean};
use super::{Element, LabelsView, MetricError, elements};
use nnz_arrays::formats::DenseView;

/// Metrics that follow from the mean of a function of output and label over all elements.
macro_rules! errors {
    ($($(#[$docs:meta])* $Metric:ident $name:literal = mean of $term:expr, then $finish:expr;)*) => {$(
        $(#[$docs])*
        #[derive(Clone, Copy, Debug, Default, PartialEq)]
        pub struct $Metric;

        by_mean!($Metric);

        impl OfMean for $Metric {
            const NAME: &'static str = $name;

            fn terms(
                &self,
                outputs: &DenseView<'_, f64>,
                labels: &LabelsView<'_, f64>,
                mut add: impl FnMut(usize, f64),
            ) -> Result<(), MetricError> {
                let term: fn(f64, f64) -> f64 = $term;
                for Element { row, output, label } in elements(Self::NAME, outputs, labels)? {
                    add(row, term(output, label));
                }
                Ok(())
            }

            fn of_mean(mean: f64) -> f64 {
                let finish: fn(f64) -> f64 = $finish;
                finish(mean)
            }
        }
    )*};
}

errors! {
    /// Mean squared error: the mean over all elements of `(output - label)²`.
    Mse "mse" = mean of |output, label| (output - label).powi(2), then |mean| mean;
    /// Root mean squared error: the root of the mean over all elements of `(output - label)²`.
    Rmse "rmse" = mean of |output, label| (output - label).powi(2), then f64::sqrt;
    /// Mean absolute error: the mean over all elements of `|output - label|`.
    Mae "mae" = mean of |output, label| (output - label).abs(), then |mean| mean;
}
