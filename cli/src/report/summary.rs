//! What a file was read as, in one line; and the loss of the best constant, which a model should be
//! better than.

use crate::input::{Base, DataFiles, Format, Known, Occupancy, Reading};
use crate::models::{ModelKind, Task};
use crate::report::is_quiet;
use nnz::data::{AnyDataset, DataSource, LabelStatistics};
use nnz::prelude::*;

/// Where fewer features share a column, that is not told.
const FEW_SHARED: f64 = 0.005;

/// `titanic.txt: words, by its ending (guessed); 891 samples; 2^20 columns; labels 0, 1`. What is
/// known of the training data is `known` where the file is another.
pub(crate) fn summary(
    reading: &Reading,
    files: &DataFiles,
    data: &AnyDataset,
    known: Option<&Known>,
    n_features: Option<usize>,
) -> String {
    let path = files.first();
    let format = reading.format_of(path);
    let guessed = if reading.format.is_none() { " (guessed)" } else { "" };
    let reason = reading.reason(path);
    let mut parts = vec![format!("{files}: {}, {reason}{guessed}", format.name())];
    parts.push(match data {
        AnyDataset::Memory(data) => counted(data.n_rows(), "sample"),
        AnyDataset::Stream(data) => match data.n_rows() {
            Some(n_rows) => format!("{}, streamed", counted(n_rows, "sample")),
            None => "samples streamed".to_owned(),
        },
    });
    let of_training = known.is_some();
    match data {
        AnyDataset::Memory(data) if format == Format::Ratings => {
            let n_ids = |column| data.id_map(column).map_or(0, |ids| ids.len());
            if !of_training {
                parts.push(counted(n_ids("user"), "user"));
                parts.push(counted(n_ids("item"), "item"));
            }
        }
        _ if reading.is_hashed(path) => {
            let occupancy = match data {
                AnyDataset::Memory(data) if !of_training && !is_quiet() => Occupancy::of(data),
                _ => None,
            };
            let shared = occupancy.map(Occupancy::share).filter(|share| *share >= FEW_SHARED);
            let shared = shared.map(|share| {
                format!(", about {:.1} % of features share one (--hash-bits)", 100.0 * share)
            });
            let bits = reading.hash_bits();
            parts.push(format!("2^{bits} columns{}", shared.unwrap_or_default()));
        }
        _ => {
            let mut columns = counted(data.n_features(), "column");
            // A matrix says how many it has.
            if n_features.is_none() && !of_training && !format.is_matrix() {
                columns += ", as many as occur (guessed)";
            }
            parts.push(columns);
        }
    }
    let base = match data {
        AnyDataset::Memory(data) => data.report().and_then(|report| report.index_base),
        AnyDataset::Stream(data) => data.report().index_base,
    };
    if let Some(base) = base.filter(|_| !reading.is_hashed(path)) {
        let first = if base == IndexBase::Zero { "zero" } else { "one" };
        let guessed = match reading.index_base {
            Base::Detect if of_training => ", as in the training data",
            Base::Detect => " (guessed)",
            Base::Zero | Base::One => "",
        };
        parts.push(format!("counted from {first}{guessed}"));
    }
    match data.classes() {
        Some(classes) => {
            let labels = classes.labels();
            let range = labels.first().copied().zip(labels.last().copied());
            let few = Some(labels).filter(|labels| labels.len() <= 10);
            let names = reading.label_names.iter().take(10).map(String::as_str);
            parts.push(match reading.label_names.len() {
                0 => format!("classes {}", listed(few, range)),
                1..=10 => format!("classes {}", names.collect::<Vec<_>>().join(", ")),
                more => format!("{more} classes"),
            });
        }
        None if !reading.label_names.is_empty() => {
            parts.push(format!("labels {}", reading.label_names.join(", ")));
        }
        None => parts.extend(labels(data)),
    }
    for scale in &reading.scales {
        parts.push(format!(
            "`{}` less {:.4} and divided by {:.4}",
            scale.column, scale.mean, scale.deviation
        ));
    }
    parts.join("; ")
}

fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// `titanic.txt: 891 samples; labels 0, 1` of a stream, once an epoch has read all of it.
pub(crate) fn summary_of_pass(files: &DataFiles, data: &AnyDataset) -> Option<String> {
    let mut parts = vec![counted(data.n_rows()?, "sample")];
    if data.classes().is_none() {
        parts.extend(labels(data));
    }
    Some(format!("{files}: {}", parts.join("; ")))
}

/// What each label's values are, as far as they have been read: all of them if they are few, else
/// from where to where.
fn labels(data: &AnyDataset) -> Vec<String> {
    let statistics = data.label_statistics().unwrap_or_default();
    let said = statistics.iter().filter(|labels| labels.range().is_some()).map(|labels| {
        let name = match labels.name() {
            None | Some("y") => "labels".to_owned(),
            Some(name) => format!("labels `{name}`"),
        };
        format!("{name} {}", listed(labels.distinct(), labels.range()))
    });
    said.collect()
}

/// `0, 1`, or `-3 to 12.5` of many values.
fn listed(distinct: Option<&[f64]>, range: Option<(f64, f64)>) -> String {
    match (distinct, range) {
        (Some(few), _) => few.iter().map(f64::to_string).collect::<Vec<_>>().join(", "),
        (None, Some((lowest, highest))) => format!("{lowest} to {highest}"),
        (None, None) => String::new(),
    }
}

/// The mean loss over the training data of the best prediction that is the same for all samples;
/// of a stream once an epoch has read all of it.
pub(crate) fn constant_loss(kind: ModelKind, data: &AnyDataset) -> Option<f64> {
    // Statistics of labels do not weigh samples.
    let labels = data.label_statistics().filter(|_| !kind.is_weighted())?;
    let first = labels.first()?;
    match kind.task() {
        Task::Number => Some(first.variance()? / 2.0),
        // The best constant is a quantile of the labels, which statistics do not hold.
        Task::Quantile => None,
        Task::Margin => {
            let positive = share_of_positives(first)?;
            let less = positive.min(1.0 - positive);
            // Of hinge losses 1 or -1 is the best score, of squared ones `2 · positive - 1`.
            Some(match kind {
                ModelKind::SquaredHinge => 4.0 * positive * (1.0 - positive),
                _ => 2.0 * less,
            })
        }
        Task::Binary => binary_entropy(first),
        Task::Count => {
            let mean = first.mean()?;
            // The loss is exp(s) - y · s, and s = ln(mean) is the best.
            Some(if mean > 0.0 { mean - mean * mean.ln() } else { 0.0 })
        }
        Task::NumberAndBinary => Some(first.variance()? / 2.0 + binary_entropy(labels.get(1)?)?),
        Task::Classes => {
            let (counts, n) = (first.class_counts(), first.count() as f64);
            let part = |count: &u64| entropy_part(*count as f64 / n);
            (!counts.is_empty()).then(|| counts.values().map(part).sum())
        }
    }
}

/// Of labels that are 1 and -1, or from 0 to 1.
fn binary_entropy(labels: &LabelStatistics) -> Option<f64> {
    let rate = share_of_positives(labels)?;
    Some(entropy_part(rate) + entropy_part(1.0 - rate))
}

/// Of labels that are 1 and -1, or from 0 to 1.
fn share_of_positives(labels: &LabelStatistics) -> Option<f64> {
    let (mean, (lowest, _)) = (labels.mean()?, labels.range()?);
    Some(if lowest < 0.0 { (mean + 1.0) / 2.0 } else { mean })
}

fn entropy_part(p: f64) -> f64 {
    if p > 0.0 { -p * p.ln() } else { 0.0 }
}
