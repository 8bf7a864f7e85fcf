//! A recorded training run: its arrays, its graph, and which updates mean it.

use crate::golden::case::{Tensor, storage};
use nnz::core::storage::Storage;
use nnz::core::update_rules::LazyUpdate;
use serde_json::Value;

/// A training run as a file has it.
pub(crate) struct Recorded<'a> {
    pub(crate) case: &'a Value,
    /// The arrays of data that the graph reads, and the label.
    pub(crate) data: Vec<Tensor>,
    pub(crate) label: Tensor,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) batch_size: usize,
}

/// A parameter of a recorded run.
pub(crate) struct Parameter {
    /// The values at the start.
    pub(crate) initial: Tensor,
    pub(crate) storage: Storage,
    /// The storage of the gradient.
    pub(crate) gradient: Storage,
}

impl<'a> Recorded<'a> {
    /// Reads a case; `cases` are those of its file.
    pub(crate) fn read(case: &'a Value, cases: &[Value]) -> Result<Self, String> {
        let names = words(&case["data_names"]).into_iter();
        let label = case["label_name"].as_str().ok_or("no label")?;
        let parameters = Tensor::read_all(&case["params"])?.into_iter().enumerate();
        let parameter = |(index, initial): (usize, Option<Tensor>)| {
            let initial = initial.ok_or("a parameter is null")?;
            let named = |of: &Value| {
                storage(of).ok_or_else(|| format!("`{}`: no storage type {of}", initial.name))
            };
            Ok::<_, String>(Parameter {
                storage: named(&case["params"][index]["param_stype"])?,
                gradient: named(&case["grad_stypes"][initial.name.as_str()])?,
                initial,
            })
        };
        Ok(Recorded {
            case,
            data: names.map(|name| data(case, cases, name)).collect::<Result<_, _>>()?,
            label: data(case, cases, label)?,
            parameters: parameters.map(parameter).collect::<Result<_, _>>()?,
            batch_size: case["batch_size"].as_u64().ok_or("no batch size")? as usize,
        })
    }

    /// The parameter of a name.
    pub(crate) fn parameter(&self, name: &str) -> Result<&Parameter, String> {
        let found = self.parameters.iter().find(|parameter| parameter.initial.name == name);
        found.ok_or_else(|| format!("no parameter `{name}`"))
    }

    /// The extents of a parameter that is a matrix.
    pub(crate) fn extents(&self, name: &str) -> Result<[usize; 2], String> {
        let shape = &self.parameter(name)?.initial.shape;
        shape[..].try_into().map_err(|_| format!("`{name}` is no matrix"))
    }

    /// The number of batches of an epoch: what does not fill one is left out.
    pub(crate) fn batches(&self) -> usize {
        self.label.shape[0] / self.batch_size
    }

    /// What is recorded of each epoch.
    pub(crate) fn history(&self) -> Result<&'a [Value], String> {
        let history = self.case["history"].as_array().ok_or("no history")?;
        if self.case["epochs"] == history.len() {
            Ok(history)
        } else {
            Err(format!("{} epochs are recorded", history.len()))
        }
    }

    /// The graph, a line for each node, attributes behind the operands: `%1 = sum(%0, axis=1)`. The
    /// last node is the output.
    pub(crate) fn graph(&self) -> Result<String, String> {
        let graph = &self.case["graph"];
        let nodes = graph["nodes"].as_array().ok_or("no graph")?;
        let arrays = self.data.iter().chain([&self.label]);
        let arrays = arrays.chain(self.parameters.iter().map(|parameter| &parameter.initial));
        let mut known: Vec<(&str, String)> =
            arrays.map(|array| (array.name.as_str(), array.name.clone())).collect();
        let mut lines = Vec::new();
        for (number, node) in nodes.iter().enumerate() {
            let word = |field: &str| {
                node[field].as_str().ok_or_else(|| format!("node {number} has no {field}"))
            };
            let operand = |name: &str| {
                let found = known.iter().find(|(known, _)| *known == name);
                found.map(|(_, text)| text.clone()).ok_or_else(|| format!("no value `{name}`"))
            };
            let operands = words(&node["inputs"]).into_iter().map(operand);
            let mut written = operands.collect::<Result<Vec<_>, _>>()?;
            let mut attributes: Vec<String> = node["attrs"].as_object().map_or(Vec::new(), |map| {
                map.iter().map(|(name, value)| format!("{name}={value}")).collect()
            });
            attributes.sort();
            written.append(&mut attributes);
            lines.push(format!("%{number} = {}({})", word("op")?, written.join(", ")));
            known.push((word("name")?, format!("%{number}")));
        }
        let last = nodes.last().map_or("", |node| node["name"].as_str().unwrap_or(""));
        match words(&graph["outputs"])[..] {
            [output] if output == last => Ok(lines.join("\n")),
            ref outputs => Err(format!("the outputs are {outputs:?}, the last node is {last}")),
        }
    }

    /// The updates that mean this run. Gradients of rows are recorded lazily unless it says
    /// otherwise, dense ones reach every row at every step.
    pub(crate) fn lazy_updates(&self) -> &'static [LazyUpdate] {
        let (hyper, optimizer) = (&self.case["hyper"], self.case["optimizer"].as_str());
        let is_zero = |name: &str| hyper[name].as_f64().is_none_or(|value| value == 0.0);
        let idle_steps_change_nothing = match optimizer {
            Some("adagrad" | "groupadagrad") => is_zero("wd"),
            Some("sgd") => is_zero("wd") && is_zero("momentum"),
            _ => false,
        };
        let rows = self.parameters.iter().any(|of| of.gradient == Storage::RowSparse);
        let every_row = hyper["lazy_update"] == false || !rows;
        match (optimizer, every_row) {
            _ if idle_steps_change_nothing => {
                &[LazyUpdate::Dense, LazyUpdate::Exact, LazyUpdate::Touched]
            }
            // There is no closed form with a decay that the running means see, nor of ftrl, because
            // weights without states are forgotten.
            (Some("adam"), true) if !is_zero("wd") => &[LazyUpdate::Dense],
            (Some("ftrl"), true) => &[LazyUpdate::Dense],
            (_, true) => &[LazyUpdate::Dense, LazyUpdate::Exact],
            (_, false) => &[LazyUpdate::Touched],
        }
    }
}

/// An array of a case's data, which may be that of another case of its file.
pub(crate) fn data(case: &Value, cases: &[Value], name: &str) -> Result<Tensor, String> {
    let of = |case: &Value| {
        let list = case["data"].as_array().map_or(&[][..], |list| list);
        list.iter().find(|tensor| tensor["name"] == name).cloned()
    };
    let here = of(case).ok_or(format!("no data called `{name}`"))?;
    match here["same_as"].as_str() {
        None => Tensor::read(&here),
        Some(other) => {
            let other = cases.iter().find(|case| case["id"] == other);
            let there = other.and_then(of).ok_or(format!("`{name}` is the same as none"))?;
            Tensor::read(&there)
        }
    }
}

fn words(list: &Value) -> Vec<&str> {
    list.as_array().map_or(&[][..], |list| list).iter().filter_map(Value::as_str).collect()
}
