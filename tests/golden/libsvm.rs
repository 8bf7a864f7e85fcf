//! LibSVM text, cut into batches.
//!
//! The reference completes the last batch with samples from the beginning, which is
//! `LastBatch::Pad`. Its next pass goes on after those samples: all passes together are one endless
//! sequence, which is `LastBatch::RollOver`.

use crate::golden::case::{Tensor, cases, id};
use crate::golden::create::same_parts;
use crate::golden::differences::{Reason, judge};
use crate::golden::reasons::Relaxes;
use crate::golden::tally::{Outcome, Tally, finish};
use nnz::core::storage::{ElementType, Storage};
use nnz::data::libsvm::{IndexBase, Reader};
use nnz::data::{Batch, BatchOptions, Batches, DataSource, Dataset, LastBatch};
use nnz::formats::{Csr, Dense};
use nnz::kernels::Array;
use nnz::model::{BatchSource, Extent, InputInfo, InputRole, LabelKind};
use serde_json::Value;

pub(crate) const REASONS: &[Reason] = &[
    Reason {
        patterns: &["*passes*"],
        relaxes: Relaxes::Values,
        why: "every pass begins with the first sample; the reference's leaves out those that completed the last batch, which is `LastBatch::RollOver` here",
    },
    Reason {
        patterns: &["libsvm/no_round*"],
        relaxes: Relaxes::Refusal,
        why: "the last batch may be short",
    },
];

#[test]
fn libsvm() {
    finish(judged());
}

pub(crate) fn judged() -> Option<Tally> {
    let mut tally = Tally::new("libsvm");
    for case in &cases("libsvm")? {
        tally.add(id(case), judge(REASONS, id(case), run_case(case)));
    }
    Some(tally)
}

#[test]
fn libsvm_refusals() {
    let Some(cases) = cases("refusals") else { return };
    let mut tally = Tally::new("refusals of LibSVMIter");
    for case in cases.iter().filter(|case| case["op"] == "LibSVMIter") {
        tally.add(id(case), run_refusal(case));
    }
    tally.finish();
}

/// What becomes of a case that the reference's reader refuses.
pub(crate) fn run_refusal(case: &Value) -> Outcome {
    let difference = match Iteration::read(case) {
        Err(Problem::Text(_)) => Ok(Vec::new()),
        Err(Problem::Case(message)) => Err(message),
        // What is read must be there: every sample once.
        Ok(iteration) => iteration.batches(iteration.last_batch, 1).and_then(|batches| {
            let n_rows: usize = batches.iter().map(|batch| batch.features.n_rows()).sum();
            let same = n_rows == iteration.data.n_rows();
            if same { Ok(vec![Relaxes::Refusal]) } else { Err(format!("{n_rows} rows")) }
        }),
    };
    judge(REASONS, id(case), difference)
}

fn run_case(case: &Value) -> Result<Vec<Relaxes>, String> {
    let iteration = Iteration::read(case).map_err(|problem| match problem {
        Problem::Case(message) | Problem::Text(message) => message,
    })?;
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let first = list(&case["batches"]);
    compare(&iteration.batches(iteration.last_batch, 1)?, &first, true)?;
    let passes: Vec<Vec<Value>> = list(&case["passes"]).iter().map(list).collect();
    if passes.is_empty() {
        return Ok(Vec::new());
    }
    // Here every pass is as the first.
    let repeated = vec![first.clone(); passes.len()];
    compare(&iteration.batches(iteration.last_batch, passes.len())?, &repeated.concat(), true)?;
    // The reference's passes are one sequence, as those that roll over; these end elsewhere, and
    // are not padded.
    let rolling = passes.concat();
    let mut n_epochs = 0;
    let found = loop {
        n_epochs += 1;
        let found = iteration.batches(LastBatch::RollOver, n_epochs)?;
        if found.len() >= rolling.len() {
            break found;
        }
    };
    compare(&found[..rolling.len()], &rolling, false)?;
    let differs = passes.concat() != repeated.concat();
    Ok(differs.then_some(Relaxes::Values).into_iter().collect())
}

/// Why a case was not read.
enum Problem {
    /// The case is not understood.
    Case(String),
    /// Its text is refused.
    Text(String),
}

/// A file and how to go through it.
struct Iteration {
    data: Dataset,
    batch_size: usize,
    last_batch: LastBatch,
}

/// A batch as it came.
struct Found {
    features: Csr,
    labels: Array<f32>,
    n_padding: usize,
}

impl Iteration {
    fn read(case: &Value) -> Result<Self, Problem> {
        let attributes = &case["attrs"];
        const KNOWN: &[&str] =
            &["data_shape", "label_shape", "batch_size", "round_batch", "num_parts", "part_index"];
        let unknown = |name: &&String| !KNOWN.contains(&name.as_str());
        let mut names = attributes.as_object().into_iter().flat_map(|attributes| attributes.keys());
        if let Some(name) = names.find(unknown) {
            return Err(Problem::Case(format!("unknown attribute `{name}`")));
        }
        let integer = |name: &str, default: Option<usize>| match &attributes[name] {
            Value::Null => default,
            value => value.as_u64().map(|number| number as usize),
        };
        let width = |name: &str| match attributes[name].as_array().map(Vec::as_slice) {
            Some([width]) => width.as_u64().map(|width| width as usize),
            _ => None,
        };
        let missing = |what: &str| Problem::Case(format!("no `{what}` that can be read"));
        let part = integer("part_index", Some(0)).ok_or_else(|| missing("part_index"))?;
        let parts = integer("num_parts", Some(1)).ok_or_else(|| missing("num_parts"))?;
        let read = |text: &Value, width: usize| {
            let text = text.as_str().ok_or_else(|| missing("text"))?;
            let reader = Reader::new().index_base(IndexBase::Zero).n_features(width);
            let data = reader.part(part, parts).read_bytes("text", text.as_bytes());
            data.map_err(|error| Problem::Text(error.to_string()))
        };
        let n_features = width("data_shape").ok_or_else(|| missing("data_shape"))?;
        let mut data = read(&case["text"], n_features)?;
        if !case["label_text"].is_null() {
            let n_labels = width("label_shape").ok_or_else(|| missing("label_shape"))?;
            let labels = read(&case["label_text"], n_labels)?;
            data =
                data.with_labels_from(labels).map_err(|error| Problem::Text(error.to_string()))?;
        }
        Ok(Iteration {
            data,
            batch_size: integer("batch_size", None).ok_or_else(|| missing("batch_size"))?,
            last_batch: match attributes["round_batch"].as_bool() {
                Some(false) => LastBatch::Short,
                _ => LastBatch::Pad,
            },
        })
    }

    /// The batches of the first epochs.
    fn batches(&self, last_batch: LastBatch, n_epochs: usize) -> Result<Vec<Found>, String> {
        const N: Extent = Extent::Named("n");
        let declare = |name, role, storage, shape| InputInfo {
            name,
            role,
            storage,
            element: ElementType::F32,
            shape,
            label: LabelKind::Real,
        };
        let label = self.data.labels().ok_or("no labels")?.storage();
        let shape: &[Extent] = match label {
            Storage::Csr => &[N, Extent::Named("k")],
            _ => &[N],
        };
        let inputs = [
            declare("x", InputRole::Input, Storage::Csr, &[N, Extent::Named("d")]),
            declare("y", InputRole::Label, label, shape),
        ];
        let options =
            BatchOptions { batch_size: self.batch_size, last_batch, ..BatchOptions::default() };
        fn text(error: impl std::fmt::Display) -> String {
            error.to_string()
        }
        let mut batches = self.data.batches(&inputs, &options).map_err(text)?;
        let mut found = Vec::new();
        for epoch in 0..n_epochs {
            batches.start_epoch(epoch as u64).map_err(text)?;
            while let Some(batch) = batches.next_batch().map_err(text)? {
                found.push(Found {
                    features: batch.csr(0).map_err(text)?.to_owned(),
                    labels: match label {
                        Storage::Csr => Array::Csr(batch.csr(1).map_err(text)?.to_owned()),
                        _ => Array::Dense(batch.dense(1).map_err(text)?.to_owned()),
                    },
                    n_padding: batch.n_padding(),
                });
            }
        }
        Ok(found)
    }
}

/// Whether batches are those recorded: what is stored, labels and padding.
fn compare(found: &[Found], expected: &[Value], padding: bool) -> Result<(), String> {
    if found.len() != expected.len() {
        return Err(format!("{} batches, expected {}", found.len(), expected.len()));
    }
    for (number, (found, expected)) in found.iter().zip(expected).enumerate() {
        let at = |message| format!("batch {number}: {message}");
        let (data, label) = (Tensor::read(&expected["data"])?, Tensor::read(&expected["label"])?);
        same_parts(&Array::Csr(found.features.clone()), &data).map_err(at)?;
        match &found.labels {
            Array::Dense(labels) => same_labels(labels, &label).map_err(at)?,
            labels => same_parts(labels, &label).map_err(at)?,
        }
        let n_padding = expected["pad"].as_u64().ok_or("no padding")? as usize;
        if padding && found.n_padding != n_padding {
            let n_found = found.n_padding;
            return Err(format!("batch {number}: {n_found} of padding, expected {n_padding}"));
        }
    }
    Ok(())
}

fn same_labels(found: &Dense, expected: &Tensor) -> Result<(), String> {
    let Array::Dense(expected) = expected.array()? else { return Err("sparse labels".into()) };
    if *found == expected {
        Ok(())
    } else {
        Err(format!("labels {:?}, expected {:?}", found.values(), expected.values()))
    }
}
