//! Steps whose gradients are clipped by their common norm, against the same steps fused. The norm
//! is never reached, so that both learn the same: what is measured is what whole gradients cost.

use super::deep::WideDeep;
use super::emitted::Emitted;
use super::factors::{self, Factors, ITEMS, USERS};
use super::machine::Machine;
use crate::data::Data;
use crate::workload::{Error, Named, Workload, fingerprint};
use nnz::prelude::*;

const BATCH: usize = 1024;

pub fn workloads(data: &Data) -> Vec<Named<'_>> {
    vec![
        Named::new("machine k = 16 adagrad, clipped, batch 1024", move || {
            let log = data.log(20)?;
            workload(log, &Machine::new(dims! { d: log.n_features() }, Seed(0))?)
        }),
        Named::new("wide & deep 16-32 adagrad, clipped, batch 1024", move || {
            let log = data.log(20)?;
            workload(log, &WideDeep::new(dims! { d: log.n_features() }, Seed(0))?)
        }),
        Named::new("ratings k = 16 adagrad, clipped, batch 1024", move || {
            let ratings: &'static Dataset =
                Box::leak(Box::new(factors::dataset(&factors::ratings())?));
            workload(ratings, &Factors::new(dims! { users: USERS, items: ITEMS }, Seed(0))?)
        }),
    ]
}

fn workload<'a, M>(data: &'a Dataset, model: &M) -> Result<Workload<'a>, Error>
where
    M: Model<Element = f32> + 'a,
{
    let rule = AdaGrad { learning_rate: 0.02, ..AdaGrad::default() };
    let emitted = || Emitted::new(model.clone(), rule.clone(), BATCH);
    let result = |emitted: &Emitted<M, AdaGrad>| {
        let parameters = emitted.model.parameters();
        fingerprint(parameters.iter().flat_map(|parameter| parameter.values().iter().copied()))
    };
    Ok(Workload::per_second("M samples/s", data.n_rows() as f64 / 1e6)
        .tolerance(2e-3)
        .contestant("clipped", emitted()?.clipped(1e9), move |it| it.run(data), result)
        .contestant("fused", emitted()?, move |it| it.run(data), result))
}
