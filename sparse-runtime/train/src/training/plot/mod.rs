//! Plots of a run: loss and metrics by epoch.

use super::{EpochReport, FitReport, TrainError};
use nnz_device::atomic_write::replace_file;
use sparse_core::picture::{Curves, Panel};
use std::fmt::Display;
use std::path::Path;

impl FitReport {
    /// Plots the loss and each metric by epoch, on the training data and on the evaluation set, as
    /// SVG with a panel for each. The epoch of the least loss on the evaluation set is marked, and
    /// the end of a run that was stopped. Values that are not finite are left out. The picture has
    /// colours for light and for dark pages.
    ///
    /// # Errors
    ///
    /// [`TrainError::Plot`] for a run without epochs.
    pub fn to_svg(&self) -> Result<String, TrainError> {
        let panels = panels(&self.epochs);
        if panels.is_empty() {
            return Err(failed("there is no epoch with a finite value"));
        }
        Ok(Curves { title: "A run of training", panels, marks: self.marks() }.to_svg())
    }

    /// Writes [`to_svg`](Self::to_svg) to a file, which is replaced atomically.
    ///
    /// # Errors
    ///
    /// [`TrainError::Plot`], also for a file name with the ending of another kind of picture.
    pub fn save_svg(&self, path: impl AsRef<Path>) -> Result<(), TrainError> {
        let path = path.as_ref();
        if let Some(ending) = path.extension().filter(|ending| !ending.eq_ignore_ascii_case("svg"))
        {
            return Err(failed(format_args!(
                "`{}` ends in `.{}`, but `save_svg` writes SVG: name a file that ends in `.svg`",
                path.display(),
                ending.display(),
            )));
        }
        let picture = self.to_svg()?;
        replace_file(path, |writer| writer.write_all(picture.as_bytes()))
            .map_err(|error| failed(format_args!("{}: {error}", path.display())))
    }

    /// The epoch that is the best on the evaluation set, and the end of a run that was stopped.
    fn marks(&self) -> Vec<(u64, String)> {
        let evaluated = self.epochs.iter().filter_map(|epoch| {
            let loss = epoch.evaluation.as_ref()?.loss;
            loss.is_finite().then_some((epoch.epoch + 1, loss))
        });
        let best = evaluated.min_by(|one, other| one.1.total_cmp(&other.1));
        let best = best.map(|(epoch, _)| (epoch, "best: epoch".to_owned()));
        let last = self.epochs.last().filter(|_| self.stopped);
        let end = last.map(|last| (last.epoch + 1, "stopped: epoch".to_owned()));
        best.into_iter().chain(end).collect()
    }
}

fn failed(problem: impl Display) -> TrainError {
    TrainError::Plot { problem: problem.to_string() }
}

/// The loss and each metric, as far as they have finite values.
fn panels(epochs: &[EpochReport]) -> Vec<Panel<'_>> {
    let names = epochs.first().into_iter().flat_map(|epoch| &epoch.metrics);
    let names = names.map(|(name, _)| Some(name.as_ref()));
    let panels = std::iter::once(None).chain(names).map(|metric: Option<&str>| {
        let curve = |value: &dyn Fn(&EpochReport) -> Option<f64>| {
            let points = epochs.iter().filter_map(|epoch| {
                let value = value(epoch).filter(|value| value.is_finite())?;
                Some((epoch.epoch + 1, value))
            });
            points.collect::<Vec<_>>()
        };
        Panel {
            name: metric.unwrap_or("loss"),
            training: curve(&|epoch| match metric {
                Some(name) => epoch.metric(name),
                None => Some(epoch.loss),
            }),
            evaluation: curve(&|epoch| {
                let score = epoch.evaluation.as_ref()?;
                match metric {
                    Some(name) => score.metric(name),
                    None => Some(score.loss),
                }
            }),
        }
    });
    panels.filter(|panel| !panel.training.is_empty() || !panel.evaluation.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: &str = r#"{"epochs":[
        {"epoch":0,"epochs":4,"loss":0.7,"metrics":{"auc":"NaN","mse<":2},"learning_rate":0.1,
         "n_rows":9,"seconds":1,"evaluation":{"loss":0.8,"metrics":{"auc":0.5,"mse<":3},"n_rows":4}},
        {"epoch":1,"epochs":4,"loss":0.6,"metrics":{"auc":"NaN","mse<":1},"learning_rate":0.1,
         "n_rows":9,"seconds":1,"evaluation":{"loss":0.65,"metrics":{"auc":0.7,"mse<":2.5},"n_rows":4}},
        {"epoch":2,"epochs":4,"loss":0.5,"metrics":{"auc":"NaN","mse<":0.5},"learning_rate":0.1,
         "n_rows":9,"seconds":1,"evaluation":{"loss":0.72,"metrics":{"auc":0.6,"mse<":2.75},"n_rows":4}}],
        "stopped":true}"#;

    /// The picture is a file beside this one, which `NNZ_BLESS=1` writes: look at it then.
    #[test]
    fn a_run_is_drawn_as_it_was_looked_at() {
        let report: FitReport = serde_json::from_str(RUN).unwrap();
        let picture = report.to_svg().unwrap();
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/training/plot/run.svg");
        if std::env::var_os("NNZ_BLESS").is_some() {
            std::fs::write(path, &picture).unwrap();
        }
        assert_eq!(picture, std::fs::read_to_string(path).unwrap());
    }

    #[test]
    fn each_value_has_a_panel_with_its_curves() {
        let report: FitReport = serde_json::from_str(RUN).unwrap();
        let picture = report.to_svg().unwrap();
        let document = roxmltree::Document::parse(&picture).unwrap();
        let texts = document.descendants().filter(|node| node.has_tag_name("text"));
        let texts: Vec<&str> = texts.filter_map(|node| node.text()).collect();
        let count = |text: &str| texts.iter().filter(|found| **found == text).count();
        // Of `auc` there is no number on the training data.
        for (text, expected) in [
            ("loss", 1),
            ("auc", 1),
            ("mse<", 1),
            ("training", 2),
            ("evaluation", 3),
            ("epoch", 3),
            ("best: epoch 2", 3),
            ("stopped: epoch 3", 3),
        ] {
            assert_eq!(count(text), expected, "{text}: {texts:?}");
        }
        assert_eq!(document.descendants().filter(|node| node.has_tag_name("circle")).count(), 15);
    }

    #[test]
    fn what_cannot_be_drawn_is_refused() {
        let report: FitReport = serde_json::from_str(RUN).unwrap();
        let error = report.save_svg("run.png").unwrap_err().to_string();
        assert!(error.contains("`run.png` ends in `.png`, but `save_svg` writes SVG"), "{error}");
        let error = FitReport::default().to_svg().unwrap_err().to_string();
        assert_eq!(error, "the run cannot be drawn: there is no epoch with a finite value");
    }
}
