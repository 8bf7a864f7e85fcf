//! Plans as pictures in SVG.

use super::layout::{Diagram, Line, Point, layout};
use super::{FALLBACK, FORWARD, GRADIENT, Part, PlanTable, PlanValue, Sizes, colour};
use crate::picture::{LETTERS, begin, escaped};
use crate::storage::Storage;
use std::fmt::Write as _;

const HEIGHT: f64 = 44.0;
const MARGIN: f64 = 24.0;
/// The title and the legend.
const TOP: f64 = 74.0;
/// The width of a character of the two lines of a box.
const CHARACTER: f64 = 6.9;
const PADDING: f64 = 9.0;
const STYLE: &str =
    ".name { font-weight: bold } .soft { fill: #55606a } path { fill: none; stroke-width: 1.2 }";

pub(super) fn svg(plan: &PlanTable<'_>, sizes: &Sizes) -> String {
    let labels: Vec<[String; 3]> = plan
        .positions()
        .filter_map(|position| Some((position, plan.values.get(position as usize)?)))
        .map(|(position, value)| {
            let what = match (value.part, value.computed) {
                (Part::Input, _) => "input",
                (Part::Label, _) => "label",
                (Part::Parameter, _) => "parameter",
                (Part::Frozen, _) => "frozen",
                (Part::State, _) => "state",
                (_, how) => how.map_or("", |how| how.operator),
            };
            let kind = format!("{} {}", value.storage, sizes.shape(value.shape));
            [plan.label(position), what.to_owned(), kind]
        })
        .collect();
    let placed = layout(&Diagram {
        widths: labels.iter().map(width).collect(),
        height: HEIGHT,
        right: plan.values.iter().map(PlanValue::is_gradient).collect(),
        edges: edges(plan),
    });
    let legend = legend(plan);
    let width = placed.size.x.max(legend.width) + 2.0 * MARGIN;
    let height = placed.size.y + TOP + MARGIN;
    let style =
        format!("text {{ font-family: {LETTERS}; font-size: 11.5px; fill: #1d2329 }} {STYLE}");
    let mut text = begin(plan.name, [width, height], &style);
    for (name, colour) in [("forward", FORWARD), ("gradient", GRADIENT)] {
        let _ = writeln!(
            text,
            "<marker id=\"{name}\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" \
             orient=\"auto\"><path d=\"M0,1 L7,4 L0,7 z\" style=\"fill: {colour}\"/></marker>"
        );
    }
    let _ = writeln!(
        text,
        "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text class=\"name\" x=\"{MARGIN}\" y=\"{}\" style=\"font-size: 15px\">{}</text>\n{}",
        MARGIN + 6.0,
        escaped(plan.name),
        legend.text
    );
    let left = MARGIN + (width - 2.0 * MARGIN - placed.size.x) / 2.0;
    let _ = writeln!(text, "<g transform=\"translate({left:.1} {TOP})\">");
    for line in &placed.lines {
        text.push_str(&path(line));
    }
    for ((value, label), centre) in plan.values.iter().zip(&labels).zip(&placed.boxes) {
        text.push_str(&a_box(value, label, *centre));
    }
    text.push_str("</g>\n</svg>\n");
    text
}

/// From operand to user, each pair once.
fn edges(plan: &PlanTable<'_>) -> Vec<(usize, usize)> {
    let mut edges: Vec<(usize, usize)> = plan
        .values
        .iter()
        .enumerate()
        .flat_map(|(to, value)| value.reads().map(move |from| (from as usize, to)))
        .collect();
    edges.sort_unstable();
    edges.dedup();
    edges
}

fn width([name, what, kind]: &[String; 3]) -> f64 {
    let first = name.chars().count() + 2 + what.chars().count();
    first.max(kind.chars().count()) as f64 * CHARACTER + 2.0 * PADDING
}

fn a_box(value: &PlanValue<'_>, label: &[String; 3], centre: Point) -> String {
    let (width, [name, what, kind]) = (width(label), label);
    let fallback = value.computed.is_some_and(|how| how.fallback);
    let (line, radius) = if value.is_gradient() { (GRADIENT, 12) } else { (FORWARD, 2) };
    let (line, dashes) =
        if fallback { (FALLBACK, " stroke-dasharray=\"5 3\"") } else { (line, "") };
    let (left, right) = (centre.x - width / 2.0, centre.x + width / 2.0);
    let (first, second) = (centre.y - 4.0, centre.y + 13.0);
    format!(
        "<rect class=\"value\" x=\"{left:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{HEIGHT}\" rx=\"{radius}\" \
         fill=\"{}\" stroke=\"{line}\" stroke-width=\"1.4\"{dashes}/>\
         <text class=\"name\" x=\"{:.1}\" y=\"{first:.1}\">{}</text>\
         <text x=\"{:.1}\" y=\"{first:.1}\" text-anchor=\"end\">{}</text>\
         <text class=\"soft\" x=\"{:.1}\" y=\"{second:.1}\">{}</text>\n",
        centre.y - HEIGHT / 2.0,
        colour(value.storage),
        left + PADDING,
        escaped(name),
        right - PADDING,
        escaped(what),
        left + PADDING,
        escaped(kind),
    )
}

fn path(line: &Line) -> String {
    let (from, to) = (line.from, line.to);
    let (colour, marker) = if line.right { (GRADIENT, "gradient") } else { (FORWARD, "forward") };
    let middle = (from.y + to.y) / 2.0;
    let end = match line.through {
        Some(y) => format!(" V{y:.1}\""),
        None => format!("\" marker-end=\"url(#{marker})\""),
    };
    format!(
        "<path stroke=\"{colour}\" d=\"M{:.1},{:.1} C{:.1},{middle:.1} {:.1},{middle:.1} {:.1},{:.1}{end}/>\n",
        from.x, from.y, from.x, to.x, to.x, to.y
    )
}

struct Legend {
    text: String,
    width: f64,
}

/// The storage types, and what else the picture has.
fn legend(plan: &PlanTable<'_>) -> Legend {
    let mut entries: Vec<(String, String)> = Storage::ALL
        .iter()
        .map(|storage| {
            let style = format!("fill=\"{}\" stroke=\"{FORWARD}\" rx=\"2\"", colour(*storage));
            (storage.to_string(), style)
        })
        .collect();
    if plan.values.iter().any(PlanValue::is_gradient) {
        entries.push(("gradient".into(), format!("fill=\"white\" stroke=\"{GRADIENT}\" rx=\"7\"")));
    }
    if plan.fallbacks().next().is_some() {
        let style =
            format!("fill=\"white\" stroke=\"{FALLBACK}\" stroke-dasharray=\"5 3\" rx=\"2\"");
        entries.push(("fallback".into(), style));
    }
    let (mut text, mut x) = (String::new(), MARGIN);
    let y = MARGIN + 18.0;
    for (word, style) in entries {
        let _ = write!(
            text,
            "<rect x=\"{x:.1}\" y=\"{y}\" width=\"22\" height=\"14\" {style}/><text x=\"{:.1}\" y=\"{}\">{word}</text>",
            x + 28.0,
            y + 11.0
        );
        x += 28.0 + word.chars().count() as f64 * CHARACTER + 18.0;
    }
    Legend { text, width: x - MARGIN }
}
