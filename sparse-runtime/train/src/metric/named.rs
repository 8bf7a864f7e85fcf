//! A metric by another name.

use super::{Accumulator, Metric};

/// A metric that reports and callbacks know by another name: for two of one kind, whose names would be one.
///
/// ```
/// use sparse_core::update_rules::Sgd;
/// use sparse_runtime::metric::{Named, TopKAccuracy};
/// use sparse_runtime::training::{EarlyStopping, Trainer, Watch};
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
    /// What is measured.
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
