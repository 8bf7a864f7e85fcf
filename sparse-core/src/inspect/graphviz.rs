//! Plans in Graphviz's language.

use super::{FALLBACK, FORWARD, GRADIENT, Operand, PlanTable, Sizes, colour};
use std::fmt::Write as _;

pub(super) fn dot(plan: &PlanTable<'_>, sizes: &Sizes) -> String {
    let mut text = format!(
        "digraph {} {{\n  node [shape = box, style = filled, fontname = \"sans-serif\"];\n",
        quoted(plan.name)
    );
    for position in plan.positions() {
        let Some(value) = plan.values.get(position as usize) else { continue };
        let label = plan.label(position);
        let fallback = value.computed.is_some_and(|how| how.fallback);
        let what = match value.computed {
            Some(how) => format!("{label} = {}", how.operator),
            None => label,
        };
        let label = quoted(&format!("{what}\n{} {}", value.storage, sizes.shape(value.shape)));
        let (line, style) = match (fallback, value.is_gradient()) {
            (true, _) => (FALLBACK, "filled,dashed"),
            (false, true) => (GRADIENT, "filled,rounded"),
            (false, false) => (FORWARD, "filled"),
        };
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "  v{position} [label = {label}, fillcolor = \"{}\", color = \"{line}\", style = \"{style}\"];",
            colour(value.storage),
        );
        for operand in value.computed.map_or(&[][..], |how| how.operands) {
            let _ = match operand {
                Operand::Value(from) => {
                    writeln!(text, "  v{from} -> v{position} [color = \"{line}\"];")
                }
                Operand::Shape(from) => {
                    writeln!(text, "  v{from} -> v{position} [style = dotted, constraint = false];")
                }
                Operand::Number(_) | Operand::Named { .. } => Ok(()),
            };
        }
    }
    text.push_str("}\n");
    text
}

/// A string of the language.
fn quoted(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("\"{escaped}\"")
}
