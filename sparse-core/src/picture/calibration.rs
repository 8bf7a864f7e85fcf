//! A calibration table as a picture: how often what is predicted comes true.

use super::{LETTERS, STYLE, Ticks, begin, escaped};
use std::fmt::Write as _;

/// The samples whose predicted probabilities are in one range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CalibrationPoint {
    /// The mean prediction.
    pub prediction: f64,
    /// The share of positive samples.
    pub positives: f64,
    /// The number of samples, or their weight.
    pub weight: f64,
}

const SIDE: f64 = 320.0;
const LEFT: f64 = 76.0;
const RIGHT: f64 = 204.0;
const TOP: f64 = 36.0;
const BOTTOM: f64 = 48.0;

/// The radii of points: that of the most samples, and what all have at least.
const LARGEST: f64 = 9.0;
const LEAST: f64 = 2.0;

/// The share of positive samples over the mean prediction, from 0 on, both by one scale. The area
/// of a point grows with its samples, and a perfect model is the dashed line. Points that are not
/// finite are left out. O(points).
pub fn calibration_svg(title: &str, points: &[CalibrationPoint]) -> String {
    let is_finite = |point: &&CalibrationPoint| {
        [point.prediction, point.positives, point.weight].iter().all(|number| number.is_finite())
    };
    let points: Vec<&CalibrationPoint> = points.iter().filter(is_finite).collect();
    let high = points.iter().map(|point| point.prediction.max(point.positives)).fold(0.0, f64::max);
    let most = points.iter().map(|point| point.weight).fold(0.0, f64::max);
    let ticks = Ticks::of(0.0, if high > 0.0 { high } else { 1.0 });
    let part = |value: f64| value / ticks.high() * SIDE;
    let (x, y) = (|value| LEFT + part(value), |value| TOP + SIDE - part(value));
    let (right, bottom) = (LEFT + SIDE, TOP + SIDE);

    let style = format!("text {{ font-family: {LETTERS}; font-size: 11.5px }} {STYLE}");
    let mut text = begin(title, [right + RIGHT, bottom + BOTTOM], &style);
    text.push_str("<rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n");
    let _ = writeln!(
        text,
        "<text class=\"ink name\" x=\"{LEFT}\" y=\"{:.1}\">{}</text>",
        TOP - 12.0,
        escaped(title)
    );
    for tick in 0..=ticks.count {
        let value = ticks.step * f64::from(tick);
        let (class, at_x, at_y) = (if tick == 0 { "axis" } else { "grid" }, x(value), y(value));
        let name = ticks.text(value);
        let _ = writeln!(
            text,
            "<line class=\"{class}\" x1=\"{LEFT}\" y1=\"{at_y:.1}\" x2=\"{right}\" y2=\"{at_y:.1}\"/>\
             <line class=\"{class}\" x1=\"{at_x:.1}\" y1=\"{TOP}\" x2=\"{at_x:.1}\" y2=\"{bottom}\"/>\
             <text class=\"soft\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{name}</text>\
             <text class=\"soft\" x=\"{at_x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{name}</text>",
            LEFT - 8.0,
            at_y + 4.0,
            bottom + 16.0
        );
    }
    let _ = writeln!(
        text,
        "<line class=\"mark\" x1=\"{LEFT}\" y1=\"{bottom}\" x2=\"{right}\" y2=\"{TOP}\"/>\
         <text class=\"soft\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">mean prediction</text>",
        LEFT + SIDE / 2.0,
        bottom + 36.0
    );
    let at = points.iter().map(|point| (x(point.prediction), y(point.positives), point.weight));
    let at: Vec<(f64, f64, f64)> = at.collect();
    let pairs: Vec<String> = at.iter().map(|(x, y, _)| format!("{x:.1},{y:.1}")).collect();
    let _ = writeln!(text, "<polyline class=\"evaluation\" points=\"{}\"/>", pairs.join(" "));
    for (x, y, weight) in at {
        let radius = LEAST + (LARGEST - LEAST) * (weight / most.max(f64::MIN_POSITIVE)).sqrt();
        let _ = writeln!(
            text,
            "<circle class=\"evaluation\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius:.1}\"/>"
        );
    }
    let (line, words) = (right + 16.0, right + 44.0);
    let _ = writeln!(
        text,
        "<line class=\"mark\" x1=\"{line}\" y1=\"{0}\" x2=\"{1}\" y2=\"{0}\"/>\
         <text class=\"soft\" x=\"{words}\" y=\"{2}\">as predicted</text>\
         <circle class=\"evaluation\" cx=\"{3}\" cy=\"{4}\" r=\"5\"/>\
         <text class=\"ink\" x=\"{words}\" y=\"{5}\">share of positives,</text>\
         <text class=\"ink\" x=\"{words}\" y=\"{6}\">area: samples</text>",
        TOP + 4.0,
        line + 20.0,
        TOP + 8.0,
        line + 10.0,
        TOP + 24.0,
        TOP + 28.0,
        TOP + 44.0
    );
    text.push_str("</svg>\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(prediction: f64, positives: f64, weight: f64) -> CalibrationPoint {
        CalibrationPoint { prediction, positives, weight }
    }

    #[test]
    fn points_lie_where_axes_say_and_grow_with_their_samples() {
        let points = [point(0.02, 0.01, 100.0), point(0.05, 0.08, 25.0), point(f64::NAN, 0.5, 1.0)];
        let svg = calibration_svg("<t>", &points);
        let document = roxmltree::Document::parse(&svg).unwrap();
        let number = |node: roxmltree::Node<'_, '_>, name| -> f64 {
            node.attribute(name).unwrap().parse().unwrap()
        };
        let circles = document.descendants().filter(|node| node.has_tag_name("circle"));
        let circles: Vec<[f64; 3]> =
            circles.map(|node| ["cx", "cy", "r"].map(|name| number(node, name))).collect();
        // Two points, and the one of the legend. The axes end at 0.08.
        assert_eq!(circles.len(), 3);
        assert_eq!(circles[0], [LEFT + SIDE / 4.0, TOP + SIDE * 7.0 / 8.0, LARGEST]);
        assert_eq!(circles[1], [LEFT + SIDE * 5.0 / 8.0, TOP, LEAST + (LARGEST - LEAST) / 2.0]);
        assert!(svg.contains(">0.08</text>") && svg.contains("<title>&lt;t&gt;</title>"), "{svg}");
    }

    /// The picture is a file beside this one, which `NNZ_BLESS=1` writes: look at it then.
    #[test]
    fn a_table_is_drawn_as_it_was_looked_at() {
        let points = [
            point(0.021, 0.018, 5200.0),
            point(0.064, 0.071, 1900.0),
            point(0.118, 0.13, 610.0),
            point(0.17, 0.151, 240.0),
            point(0.229, 0.26, 90.0),
            point(0.31, 0.24, 20.0),
        ];
        let picture = calibration_svg("Share of positives by prediction", &points);
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/picture/calibration.svg");
        if std::env::var_os("NNZ_BLESS").is_some() {
            std::fs::write(path, &picture).unwrap();
        }
        assert_eq!(picture, std::fs::read_to_string(path).unwrap());
    }

    #[test]
    fn a_table_without_samples_is_a_picture_too() {
        for points in [&[][..], &[point(0.0, 0.0, 0.0)]] {
            let svg = calibration_svg("nothing", points);
            assert!(!svg.contains("NaN") && roxmltree::Document::parse(&svg).is_ok(), "{svg}");
        }
    }
}
