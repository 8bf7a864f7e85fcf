//! The writer of pictures in SVG: of plans, of curves by epoch, and of calibration tables.

mod calibration;

pub use self::calibration::{CalibrationPoint, calibration_svg};

use std::fmt::Write as _;

/// The writing of every picture.
pub(crate) const LETTERS: &str = "ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace";

/// Text as XML.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// The beginning of a picture: its size in pixels, its title and its style.
pub(crate) fn begin(title: &str, [width, height]: [f64; 2], style: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
         viewBox=\"0 0 {width:.0} {height:.0}\">\n<title>{}</title>\n<style>{style}</style>\n",
        escaped(title)
    )
}

/// The style of curves; a dark page has light ink.
const STYLE: &str = "\
.paper { fill: #ffffff } .grid { stroke: #e3e6e9 } .axis { stroke: #8a949d } .ink { fill: #1d2329 } \
.soft { fill: #55606a } .name { font-weight: bold; font-size: 13px } \
.training { stroke: #3f4a54; fill: #3f4a54 } .evaluation { stroke: #b4530f; fill: #b4530f } \
.mark { stroke: #8a949d; stroke-dasharray: 4 3 } polyline { fill: none !important; stroke-width: 1.8; stroke-linejoin: round } \
@media (prefers-color-scheme: dark) { .paper { fill: #15191d } .grid { stroke: #2b323a } .axis { stroke: #76818b } \
.ink { fill: #e6e9ec } .soft { fill: #a3adb6 } .training { stroke: #a9b6c2; fill: #a9b6c2 } \
.evaluation { stroke: #f0a060; fill: #f0a060 } .mark { stroke: #76818b } }";

const WIDTH: f64 = 720.0;
const PANEL: f64 = 216.0;
/// What is left of the curves, and right of them, where the legend is.
const LEFT: f64 = 76.0;
const RIGHT: f64 = 184.0;
/// Above and below the curves of a panel.
const TOP: f64 = 36.0;
const BOTTOM: f64 = 40.0;
/// Curves of more points have no dots.
const FEW_POINTS: usize = 40;

/// Values by epoch, in panels one above the other.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Curves<'a> {
    /// What is shown.
    pub title: &'a str,
    /// From the top to the bottom.
    pub panels: Vec<Panel<'a>>,
    /// Epochs that are marked in every panel, each with what it is.
    pub marks: Vec<(u64, String)>,
}

/// The curves of one quantity.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Panel<'a> {
    /// The quantity.
    pub name: &'a str,
    /// Pairs of the epoch, from 1, and the value, on the training data.
    pub training: Vec<(u64, f64)>,
    /// Those on the evaluation set.
    pub evaluation: Vec<(u64, f64)>,
}

impl Panel<'_> {
    fn series(&self) -> [(&'static str, &[(u64, f64)]); 2] {
        [("training", &self.training), ("evaluation", &self.evaluation)]
    }

    fn points(&self) -> impl Iterator<Item = (u64, f64)> {
        let finite = |(_, value): &(u64, f64)| value.is_finite();
        self.training.iter().chain(&self.evaluation).copied().filter(finite)
    }
}

impl Curves<'_> {
    /// The picture: a light grid, whole epochs below, the legend at the right. Values that are not
    /// finite, and panels without others, are left out. Its size grows with the number of points.
    pub fn to_svg(&self) -> String {
        let panels: Vec<&Panel<'_>> =
            self.panels.iter().filter(|panel| panel.points().next().is_some()).collect();
        let height = PANEL * panels.len() as f64;
        let style = format!("text {{ font-family: {LETTERS}; font-size: 11.5px }} {STYLE}");
        let mut text = begin(self.title, [WIDTH, height], &style);
        text.push_str("<rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n");
        let epochs = || panels.iter().flat_map(|panel| panel.points()).map(|(epoch, _)| epoch);
        let (first, last) = (epochs().min().unwrap_or(1), epochs().max().unwrap_or(1));
        for (index, panel) in panels.iter().enumerate() {
            let low = panel.points().map(|point| point.1).fold(f64::INFINITY, f64::min);
            let high = panel.points().map(|point| point.1).fold(f64::NEG_INFINITY, f64::max);
            let frame = Frame {
                top: PANEL * index as f64 + TOP,
                epochs: (first, last),
                values: Ticks::of(low, high),
            };
            frame.draw(panel, &self.marks, &mut text);
        }
        text.push_str("</svg>\n");
        text
    }
}

/// Round numbers that enclose the values of an axis.
struct Ticks {
    low: f64,
    step: f64,
    count: u32,
    decimals: usize,
}

impl Ticks {
    fn of(low: f64, high: f64) -> Self {
        // Values that are all the same have an axis as well.
        let margin = if high > low { 0.0 } else { 0.1 * high.abs().max(1e-3) };
        let (low, high) = (low - margin, high + margin);
        let rough = (high - low) / 4.0;
        let unit = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 2.5, 5.0, 10.0].map(|factor| factor * unit);
        let step = step.into_iter().find(|step| *step >= rough).unwrap_or(rough);
        let (from, to) = ((low / step).floor(), (high / step).ceil());
        let two = (step / unit - 2.5).abs() < 0.1;
        let decimals = (f64::from(u8::from(two)) - unit.log10().floor()).clamp(0.0, 12.0);
        Ticks { low: from * step, step, count: (to - from) as u32, decimals: decimals as usize }
    }

    fn high(&self) -> f64 {
        self.low + self.step * f64::from(self.count)
    }

    /// The text of a tick, with as many decimals as all of its axis need.
    fn text(&self, value: f64) -> String {
        if self.high().abs().max(self.low.abs()) >= 1e6 {
            return format!("{value:.2e}");
        }
        // No `-0`.
        format!("{:.*}", self.decimals, if value.abs() < self.step / 2.0 { 0.0 } else { value })
    }
}

/// Where the curves of a panel are, and what its axes show.
struct Frame {
    top: f64,
    epochs: (u64, u64),
    values: Ticks,
}

impl Frame {
    fn x(&self, epoch: u64) -> f64 {
        let (first, last) = self.epochs;
        let part = if last > first {
            epoch.saturating_sub(first) as f64 / (last - first) as f64
        } else {
            0.5
        };
        LEFT + part * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, value: f64) -> f64 {
        let part = (value - self.values.low) / (self.values.high() - self.values.low);
        self.bottom() - part * (PANEL - TOP - BOTTOM)
    }

    fn bottom(&self) -> f64 {
        self.top + PANEL - TOP - BOTTOM
    }

    fn draw(&self, panel: &Panel<'_>, marks: &[(u64, String)], text: &mut String) {
        let right = WIDTH - RIGHT;
        let _ = writeln!(
            text,
            "<text class=\"ink name\" x=\"{LEFT}\" y=\"{:.1}\">{}</text>",
            self.top - 12.0,
            escaped(panel.name)
        );
        for tick in 0..=self.values.count {
            let value = self.values.low + self.values.step * f64::from(tick);
            let (y, class) = (self.y(value), if tick == 0 { "axis" } else { "grid" });
            let _ = writeln!(
                text,
                "<line class=\"{class}\" x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{right}\" y2=\"{y:.1}\"/>\
                 <text class=\"soft\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                LEFT - 8.0,
                y + 4.0,
                self.values.text(value)
            );
        }
        self.draw_epochs(text);
        for (epoch, _) in marks {
            let _ = writeln!(
                text,
                "<line class=\"mark\" x1=\"{0:.1}\" y1=\"{1:.1}\" x2=\"{0:.1}\" y2=\"{2:.1}\"/>",
                self.x(*epoch),
                self.top,
                self.bottom()
            );
        }
        let mut y = self.top + 4.0;
        let (line, words) = (right + 16.0, right + 44.0);
        for (name, points) in panel.series().into_iter().filter(|(_, points)| !points.is_empty()) {
            self.draw_points(name, points, text);
            let _ = writeln!(
                text,
                "<polyline class=\"{name}\" points=\"{line},{y:.1} {:.1},{y:.1}\"/>\
                 <text class=\"ink\" x=\"{words}\" y=\"{:.1}\">{name}</text>",
                line + 20.0,
                y + 4.0
            );
            y += 20.0;
        }
        for (epoch, what) in marks {
            let _ = writeln!(
                text,
                "<line class=\"mark\" x1=\"{line}\" y1=\"{y:.1}\" x2=\"{:.1}\" y2=\"{y:.1}\"/>\
                 <text class=\"soft\" x=\"{words}\" y=\"{:.1}\">{} {epoch}</text>",
                line + 20.0,
                y + 4.0,
                escaped(what)
            );
            y += 20.0;
        }
    }

    /// Whole epochs below the axis, at most about ten of them.
    fn draw_epochs(&self, text: &mut String) {
        let (first, last) = self.epochs;
        let mut steps = (0..19).flat_map(|power| [1, 2, 5].map(|factor| factor * 10u64.pow(power)));
        let step = steps.find(|step| (last - first) / step <= 10).unwrap_or(1);
        let below = self.bottom() + 16.0;
        for epoch in (first.next_multiple_of(step)..=last).step_by(step as usize) {
            let x = self.x(epoch);
            let _ = writeln!(
                text,
                "<text class=\"soft\" x=\"{x:.1}\" y=\"{below:.1}\" text-anchor=\"middle\">{epoch}</text>"
            );
        }
        let _ = writeln!(
            text,
            "<text class=\"soft\" x=\"{:.1}\" y=\"{below:.1}\">epoch</text>",
            WIDTH - RIGHT + 16.0
        );
    }

    fn draw_points(&self, name: &str, points: &[(u64, f64)], text: &mut String) {
        let finite = points.iter().filter(|(_, value)| value.is_finite());
        let at: Vec<(f64, f64)> =
            finite.map(|(epoch, value)| (self.x(*epoch), self.y(*value))).collect();
        let pairs: Vec<String> = at.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let _ = writeln!(text, "<polyline class=\"{name}\" points=\"{}\"/>", pairs.join(" "));
        if at.len() <= FEW_POINTS {
            for (x, y) in at {
                let _ = writeln!(
                    text,
                    "<circle class=\"{name}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.4\"/>"
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(last: u64, value: impl Fn(u64) -> f64) -> String {
        let training = (1..=last).map(|epoch| (epoch, value(epoch))).collect();
        let panel = Panel { name: "a & b", training, evaluation: Vec::new() };
        Curves { title: "<t>", panels: vec![panel], marks: Vec::new() }.to_svg()
    }

    /// The texts of class `soft`, which are those of the axes.
    fn axis_texts(svg: &str) -> Vec<String> {
        let document = roxmltree::Document::parse(svg).unwrap();
        let soft = document.descendants().filter(|node| node.attribute("class") == Some("soft"));
        soft.filter_map(|node| node.text().map(str::to_owned)).collect()
    }

    #[test]
    fn axes_have_few_round_numbers_and_whole_epochs() {
        assert_eq!(
            axis_texts(&picture(25, |epoch| 0.31 + 0.01 * epoch as f64)),
            ["0.30", "0.40", "0.50", "0.60", "5", "10", "15", "20", "25", "epoch"]
        );
        assert_eq!(
            axis_texts(&picture(3, |_| -2.0)),
            ["-2.2", "-2.0", "-1.8", "1", "2", "3", "epoch"]
        );
        for last in [1, 2, 9, 10, 11, 99, 137, 5000] {
            let texts = axis_texts(&picture(last, |epoch| 1e9 * epoch as f64));
            assert!((4..=18).contains(&texts.len()), "{last}: {texts:?}");
        }
    }

    #[test]
    fn values_that_are_not_finite_are_left_out() {
        let some = |epoch| if epoch == 2 { f64::NAN } else { epoch as f64 };
        let svg = picture(3, some);
        let document = roxmltree::Document::parse(&svg).unwrap();
        assert_eq!(document.descendants().filter(|node| node.has_tag_name("circle")).count(), 2);
        assert!(!svg.contains("NaN"), "{svg}");
        assert!(axis_texts(&picture(3, |_| f64::INFINITY)).is_empty());
    }

    #[test]
    fn a_dark_page_has_colours_of_its_own() {
        assert!(picture(1, |_| 1.0).contains("@media (prefers-color-scheme: dark) { .paper"));
    }
}
