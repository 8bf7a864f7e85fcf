//! A metric with another name.

use super::{Accumulator, Metric};

/// A metric with another name for reports and callbacks: for two metrics of one kind in a run.
///
/// ```
/// use nnz::core::update_rules::Sgd;
/// use nnz::metric::{Named, TopKAccuracy};
/// use nnz::training::{EarlyStopping, Trainer, Watch};
///
/// let trainer = Trainer::new(Sgd::default())
///     .metric(TopKAccuracy { k: 1 })
///     .metric(Named { name: "top_5_accuracy", metric: TopKAccuracy { k: 5 } })
///     .callback(EarlyStopping::patience(3).watch(Watch::largest("top_5_accuracy")));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Named<M> {
    /// The name.
    pub name: &'static str,
    /// The metric.
    pub metric: M,
}

impl<M: Metric> Metric for Named<M> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn start(&self) -> Box<dyn Accumulator> {
        self.metric.start()
    }
}
