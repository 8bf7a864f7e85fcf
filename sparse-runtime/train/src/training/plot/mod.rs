//! Plots of a run: loss and metrics by epoch.

mod pixels;

use super::{EpochReport, FitReport, TrainError};
use nnz_device::atomic_write::replace_file;
use pixels::Pixels;
use plotters::coord::Shift;
use plotters::prelude::*;
use std::fmt::Display;
use std::path::Path;

/// Pixels of a picture, and of each of its panels.
const WIDTH: u32 = 720;
const PANEL: u32 = 240;

/// A value by epoch, on the training data and on the evaluation set: pairs of the epoch, from 1,
/// and the value.
struct Panel {
    name: String,
    curves: [Curve; 2],
}

struct Curve {
    name: &'static str,
    color: RGBColor,
    points: Vec<(f64, f64)>,
}

impl FitReport {
    /// Plots the loss and each metric by epoch, on the training data and on the evaluation set, as
    /// SVG with a panel for each. Values that are not finite are left out.
    ///
    /// # Errors
    ///
    /// [`TrainError::Plot`] for a run without epochs.
    pub fn to_svg(&self) -> Result<String, TrainError> {
        let (panels, size) = self.panels()?;
        let mut text = String::new();
        draw_all(SVGBackend::with_string(&mut text, size), &panels)?;
        Ok(text)
    }

    /// The plot of [`to_svg`](Self::to_svg) as a PNG file. Letters are of the library's own font of
    /// 8 × 8 dots, and no system font is searched; a character without dots is a `?`.
    ///
    /// # Errors
    ///
    /// As [`to_svg`](Self::to_svg).
    pub fn to_png(&self) -> Result<Vec<u8>, TrainError> {
        let (panels, size) = self.panels()?;
        let mut pixels = Pixels::new(size);
        draw_all(&mut pixels, &panels)?;
        pixels.to_png().map_err(failed)
    }

    /// Writes [`to_svg`](Self::to_svg) to a file, which is replaced atomically.
    ///
    /// # Errors
    ///
    /// [`TrainError::Plot`], also for a file name with the ending of another kind of picture.
    pub fn save_svg(&self, path: impl AsRef<Path>) -> Result<(), TrainError> {
        save(path.as_ref(), "svg", || Ok(self.to_svg()?.into_bytes()))
    }

    /// Writes [`to_png`](Self::to_png) to a file, which is replaced atomically.
    ///
    /// # Errors
    ///
    /// [`TrainError::Plot`], also for a file name with the ending of another kind of picture.
    pub fn save_png(&self, path: impl AsRef<Path>) -> Result<(), TrainError> {
        save(path.as_ref(), "png", || self.to_png())
    }

    /// Draws one panel above the other; returns the width and height in pixels.
    fn panels(&self) -> Result<(Vec<Panel>, (u32, u32)), TrainError> {
        let panels = panels(&self.epochs);
        if panels.is_empty() {
            return Err(failed("there is no epoch with a finite value"));
        }
        let size = (WIDTH, PANEL * panels.len() as u32);
        Ok((panels, size))
    }
}

/// Writes a picture to a file whose name has no other ending.
fn save(
    path: &Path,
    kind: &str,
    picture: impl FnOnce() -> Result<Vec<u8>, TrainError>,
) -> Result<(), TrainError> {
    if let Some(ending) = path.extension().filter(|ending| !ending.eq_ignore_ascii_case(kind)) {
        return Err(failed(format_args!(
            "`{}` ends in `.{}`, but `save_{kind}` writes {}: name a file that ends in `.{kind}`, or call `save_svg` or `save_png`, whichever it should be",
            path.display(),
            ending.display(),
            kind.to_uppercase(),
        )));
    }
    let bytes = picture()?;
    replace_file(path, |writer| writer.write_all(&bytes))
        .map_err(|error| failed(format_args!("{}: {error}", path.display())))
}

fn failed(problem: impl Display) -> TrainError {
    TrainError::Plot { problem: problem.to_string() }
}

/// The data of the plot.
fn panels(epochs: &[EpochReport]) -> Vec<Panel> {
    let names = epochs.first().into_iter().flat_map(|epoch| &epoch.metrics);
    let names = names.map(|(name, _)| Some(name.as_ref()));
    let panels = std::iter::once(None).chain(names).map(|metric: Option<&str>| {
        let curve = |value: &dyn Fn(&EpochReport) -> Option<f64>| {
            let points = epochs.iter().filter_map(|epoch| {
                let value = value(epoch).filter(|value| value.is_finite())?;
                Some(((epoch.epoch + 1) as f64, value))
            });
            points.collect::<Vec<_>>()
        };
        let trained = curve(&|epoch| match metric {
            Some(name) => epoch.metric(name),
            None => Some(epoch.loss),
        });
        let evaluated = curve(&|epoch| {
            let score = epoch.evaluation.as_ref()?;
            match metric {
                Some(name) => score.metric(name),
                None => Some(score.loss),
            }
        });
        Panel {
            name: metric.unwrap_or("loss").to_owned(),
            curves: [
                Curve { name: "training", color: BLUE, points: trained },
                Curve { name: "evaluation", color: RED, points: evaluated },
            ],
        }
    });
    panels.filter(|panel| panel.curves.iter().any(|curve| !curve.points.is_empty())).collect()
}

fn draw_all<B: DrawingBackend>(backend: B, panels: &[Panel]) -> Result<(), TrainError> {
    let picture = backend.into_drawing_area();
    picture.fill(&WHITE).map_err(failed)?;
    let areas = picture.split_evenly((panels.len(), 1));
    for (area, panel) in areas.iter().zip(panels) {
        draw(area, panel)?;
    }
    picture.present().map_err(failed)
}

fn draw<B: DrawingBackend>(area: &DrawingArea<B, Shift>, panel: &Panel) -> Result<(), TrainError> {
    let points = || panel.curves.iter().flat_map(|curve| &curve.points);
    let bounds = |of: fn(&(f64, f64)) -> f64| {
        let (low, high) =
            points().map(of).fold((f64::INFINITY, f64::NEG_INFINITY), |bounds, value| {
                (bounds.0.min(value), bounds.1.max(value))
            });
        // One epoch, and values that are all the same, have an axis as well.
        let margin = if high > low { 0.05 * (high - low) } else { 0.5 * high.abs().max(1.0) };
        low - margin..high + margin
    };
    let mut chart = ChartBuilder::on(area)
        .margin(8)
        .caption(&panel.name, ("sans-serif", 16))
        .x_label_area_size(28)
        .y_label_area_size(64)
        .build_cartesian_2d(bounds(|point| point.0), bounds(|point| point.1))
        .map_err(failed)?;
    chart.configure_mesh().x_desc("epoch").draw().map_err(failed)?;
    for Curve { name, color, points } in &panel.curves {
        if !points.is_empty() {
            let line = LineSeries::new(points.iter().copied(), color).point_size(2);
            let drawn = chart.draw_series(line).map_err(failed)?;
            let color = *color;
            drawn.label(*name).legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], color));
        }
    }
    let mut legend = chart.configure_series_labels();
    // As wide as the letters of a PNG take.
    legend.label_font(("sans-serif", 15));
    legend.background_style(WHITE.mix(0.8)).border_style(BLACK).draw().map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_has_a_panel_with_its_curves() {
        let text = r#"{"epochs":[
            {"epoch":0,"epochs":2,"loss":0.7,"metrics":{"auc":"NaN","mse":2},"learning_rate":0.1,
             "n_rows":9,"seconds":1,"evaluation":{"loss":0.8,"metrics":{"auc":0.5,"mse":3},"n_rows":4}},
            {"epoch":1,"epochs":2,"loss":0.6,"metrics":{"auc":"NaN","mse":1},"learning_rate":0.1,
             "n_rows":9,"seconds":1,"evaluation":null}],"stopped":false}"#;
        let report: FitReport = serde_json::from_str(text).unwrap();
        let picture = report.to_svg().unwrap();
        assert!(picture.starts_with("<svg") && picture.contains("height=\"720\""), "{picture}");
        for name in ["loss", "auc", "mse", "training", "evaluation", "epoch"] {
            assert!(picture.contains(&format!("\n{name}\n")), "{name}: {picture}");
        }
        let refused = |result: Result<(), TrainError>| result.unwrap_err().to_string();
        let error = refused(report.save_svg("run.png"));
        assert!(error.contains("`run.png` ends in `.png`, but `save_svg` writes SVG"), "{error}");
        let error = refused(report.save_png("run.svg"));
        assert!(error.contains("`run.svg` ends in `.svg`, but `save_png` writes PNG"), "{error}");
        let picture = report.to_png().unwrap();
        let mut decoded = png::Decoder::new(std::io::Cursor::new(&picture)).read_info().unwrap();
        let mut pixels = vec![0; decoded.output_buffer_size().unwrap()];
        let info = decoded.next_frame(&mut pixels).unwrap();
        assert_eq!((info.width, info.height), (720, 720));
        // Letters and axes are black; of `auc` there is no number on the training data.
        let panels: Vec<_> = pixels.chunks_exact(720 * 240 * 3).collect();
        let count = |panel: usize, color: [u8; 3]| {
            panels[panel].chunks_exact(3).filter(|pixel| **pixel == color).count()
        };
        for panel in 0..3 {
            let found = [[0, 0, 0], [0, 0, 255], [255, 0, 0]].map(|color| count(panel, color) > 9);
            assert_eq!(found, [true, panel != 1, true], "panel {panel}");
        }
        let error = FitReport::default().to_png().unwrap_err().to_string();
        assert_eq!(error, "the run cannot be drawn: there is no epoch with a finite value");
        let error = FitReport::default().to_svg().unwrap_err().to_string();
        assert_eq!(error, "the run cannot be drawn: there is no epoch with a finite value");
    }
}
