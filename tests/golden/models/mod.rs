//! The models that stand for recorded graphs.

mod linear;
mod tables;

pub(crate) use linear::{GeneralisedLinear, Linear, LinearDense, LinearDenseWeight};
pub(crate) use tables::OfTables;

use crate::golden::case::{Tensor, cases, id};
use crate::golden::device::{Device, Failure};
use crate::golden::recorded::Recorded;
use nnz::prelude::Model;
use serde_json::Value;
use std::fmt::Debug;

/// Something to be done with a model, whichever it is.
pub(crate) trait Visit {
    /// Does it. `new` makes the model, of the sizes that the case has.
    fn visit<M: Model<Element = f32> + 'static>(
        &mut self,
        new: &dyn Fn() -> nnz::Result<M>,
    ) -> Result<(), Failure>;
}

/// Models of a kind. A value is one of them with its sizes, its step to be fused or not.
///
/// Parameters are called as they are in the case; inputs and labels are declared in the order of
/// [`columns`](Family::columns).
pub(crate) trait Family: Sized + Debug {
    /// The models that a recorded graph is. Everything about the graph is looked at: one that
    /// differs in anything is unknown.
    fn choose(recorded: &Recorded<'_>) -> Result<Vec<Self>, String>;

    /// The arrays of data, then the label.
    fn columns(&self, recorded: &Recorded<'_>) -> Result<Vec<Tensor>, String> {
        let label = [&recorded.label];
        Ok(recorded.data.iter().chain(label).cloned().collect())
    }

    /// Whether the step is one loop, where it may be.
    fn is_one_loop(&self) -> bool;

    /// Visits the model, or the same with `fuse = off`, on a device.
    fn with_model(
        &self,
        fused: bool,
        on: &impl Device,
        visit: &mut impl Visit,
    ) -> Result<(), Failure>;
}

/// Each node of each recorded graph, changed.
#[test]
fn a_graph_that_differs_in_anything_is_unknown() {
    fn is_unknown<F: Family>(file: &str) {
        let Some(cases) = cases(file) else { return };
        for case in &cases {
            let known =
                |case: &Value| F::choose(&Recorded::read(case, &cases)?).map(|models| models.len());
            assert!(known(case).is_ok_and(|models| models > 0), "{file}: {}", id(case));
            for node in 0..case["graph"]["nodes"].as_array().unwrap().len() {
                let changes: [fn(&mut Value); 4] = [
                    |node| node["op"] = "another".into(),
                    |node| node["attrs"]["another"] = 1.into(),
                    |node| drop(node["inputs"].as_array_mut().unwrap().pop()),
                    |node| node["inputs"][0] = "label".into(),
                ];
                for (number, change) in changes.iter().enumerate() {
                    let mut changed = case.clone();
                    change(&mut changed["graph"]["nodes"][node]);
                    assert!(known(&changed).is_err(), "{}: node {node}, {number}", id(case));
                }
            }
            let mut changed = case.clone();
            changed["graph"]["outputs"] = vec![case["graph"]["nodes"][0]["name"].clone()].into();
            assert!(known(&changed).is_err(), "{}: another output", id(case));
        }
    }
    is_unknown::<GeneralisedLinear>("train_linear");
    is_unknown::<GeneralisedLinear>("train_classify");
    is_unknown::<OfTables>("train_models");
}
