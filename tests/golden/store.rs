//! A store of one process and of threads: rows pulled, gradients pushed by several devices,
//! updates.

use crate::golden::case::{Tensor, cases, id};
use crate::golden::compare::Tolerance;
use crate::golden::rules::configured;
use crate::golden::tally::Tally;
use nnz::core::storage::Storage;
use nnz::core::update_rules::{LazyUpdate, Sgd, UpdateRule};
use nnz::formats::{Dense, RowSparse};
use nnz::kernels::Array;
use nnz::optimizer::ParameterSpec;
use nnz::store::{Communicator, KvStore, LeafSum, OneProcess, Threads};
use serde_json::Value;

/// The devices of a case each give the gradient of one leaf.
const LEAVES: usize = 4;

#[test]
fn store() {
    let Some(cases) = cases("kvstore") else { return };
    let mut tally = Tally::new("kvstore");
    for case in &cases {
        tally.add(id(case), run_case(case).into());
    }
    tally.finish();
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn run_case(case: &Value) -> Result<(), String> {
    // What is not lazy there is exact here, and the same dense.
    let modes = match case["hyper"]["lazy_update"].as_bool() {
        Some(true) | None => &[LazyUpdate::Touched][..],
        Some(false) => &[LazyUpdate::Exact, LazyUpdate::Dense],
    };
    for &mode in modes {
        Case::read(case, mode)?.run(OneProcess)?;
        for n_workers in 1..=3 {
            let case = &Case::read(case, mode)?;
            let ends = Threads::group(n_workers).map_err(text)?;
            std::thread::scope(|scope| {
                let workers: Vec<_> =
                    ends.into_iter().map(|end| scope.spawn(move || case.run(end))).collect();
                workers.into_iter().try_for_each(|worker| match worker.join() {
                    Ok(result) => result,
                    Err(_) => Err("a worker has panicked".to_owned()),
                })
            })?;
        }
    }
    Ok(())
}

struct Case {
    op: String,
    /// The table: rows that are not stored are zero.
    stored: Dense,
    pushed: Vec<RowSparse>,
    row_ids: Vec<u64>,
    rule: Option<Sgd>,
    outputs: Vec<Tensor>,
}

impl Case {
    fn read(case: &Value, mode: LazyUpdate) -> Result<Self, String> {
        let op = case["op"].as_str().ok_or("no op")?.to_owned();
        let inputs: Option<Vec<Tensor>> = Tensor::read_all(&case["inputs"])?.into_iter().collect();
        let (mut stored, mut pushed, mut row_ids) = (None, Vec::new(), Vec::new());
        for input in inputs.ok_or("an input is null")? {
            match &input.name[..] {
                "stored" => match input.expanded().array()? {
                    Array::Dense(table) => stored = Some(table),
                    _ => return Err("`stored` does not expand".into()),
                },
                "row_ids" => row_ids = input.data.iter().map(|id| *id as u64).collect(),
                name if name.starts_with("push") => pushed.push(rows(&input)?),
                name => return Err(format!("unknown input `{name}`")),
            }
        }
        let rule = match case["optimizer"].as_str() {
            None => None,
            Some("sgd") => {
                let mut rule = configured(Sgd::default(), case)?;
                rule.set_lazy_update(mode);
                Some(rule)
            }
            Some(name) => return Err(format!("unknown optimizer `{name}`")),
        };
        let outputs: Option<Vec<Tensor>> =
            Tensor::read_all(&case["outputs"])?.into_iter().collect();
        let (stored, outputs) = (stored.ok_or("nothing stored")?, outputs.ok_or("a null")?);
        Ok(Case { op, stored, pushed, row_ids, rule, outputs })
    }

    fn run<C: Communicator>(&self, communicator: C) -> Result<(), String> {
        let shape = self.stored.shape();
        let spec =
            ParameterSpec::new("w", shape.n_rows(), shape.row_size(), Some(Storage::RowSparse));
        let mut store = KvStore::new(communicator, LEAVES).map_err(text)?;
        store.init(spec, self.stored.values()).map_err(text)?;
        if let Some(rule) = &self.rule {
            store.set_optimizer(rule.clone()).map_err(text)?;
        }
        for output in &self.outputs {
            let pulled = match &self.op[..] {
                "row_sparse_pull" => store.row_sparse_pull("w", &self.row_ids).map_err(text)?,
                "push_pull" | "push_update_pull" => {
                    let mut sum = LeafSum::new();
                    let own = store.own_leaves();
                    for (leaf, gradient) in self.pushed.iter().enumerate() {
                        if own.contains(&leaf) {
                            sum.add(leaf, gradient.view(), 1.0).map_err(text)?;
                        }
                    }
                    store.push("w", &mut sum).map_err(text)?;
                    let all: Vec<u64> = (0..shape.n_rows() as u64).collect();
                    store.row_sparse_pull("w", &all).map_err(text)?
                }
                op => return Err(format!("unknown operation `{op}`")),
            };
            if pulled.indices() != output.indices {
                let (found, expected) = (pulled.indices(), &output.indices);
                return Err(format!("rows {found:?} were pulled, expected {expected:?}"));
            }
            let found = pulled.values().iter().map(|value| f64::from(*value));
            Tolerance::of_case("", &self.op).compare("rows", found, &output.data)?;
        }
        Ok(())
    }
}

fn rows(tensor: &Tensor) -> Result<RowSparse, String> {
    match tensor.array()? {
        Array::RowSparse(rows) => Ok(rows),
        other => Err(format!("`{}` is {}", tensor.name, other.storage())),
    }
}
