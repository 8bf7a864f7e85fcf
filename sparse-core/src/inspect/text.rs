//! Plans as tables of text, no wider than 100 columns where names allow it.

use super::bytes::bytes;
use super::{
    Operand, Part, PlanLookup, PlanPool, PlanRead, PlanRowSet, PlanStep, PlanTable, PlanValue,
    Sizes, Written,
};
use crate::passes::FEW;
use crate::storage::Storage;
use std::collections::BTreeMap;

const WIDTH: usize = 100;
/// The least room for the last column beside the others.
const ROOM: usize = 24;
const HEAD: [&str; 7] =
    ["value", "shape", "storage", "gradient", "bytes", "written to", "computed by"];
/// Where the last cell of a line may be broken.
const BREAK: char = '\u{0}';
/// The column of bytes.
const BYTES: usize = 4;

/// The whole table, and what holds of the model as a whole.
pub(super) fn table(plan: &PlanTable<'_>, sizes: &Sizes) -> String {
    let mut text = format!("{} ({})\n", plan.name, plan.element);
    let lines: Vec<_> = plan.positions().map(|position| cells(plan, position, sizes)).collect();
    text.push_str(&aligned(&lines));
    for rows in plan.rows {
        let describe = |set: &PlanRowSet<'_>| match set {
            PlanRowSet::All => "all rows".to_owned(),
            PlanRowSet::Columns([]) => "no rows".to_owned(),
            PlanRowSet::Columns(inputs) => {
                let names: Vec<String> = inputs.iter().map(|input| plan.label(*input)).collect();
                let word = if plan.are_csr(inputs) { "columns of" } else { "ids in" };
                format!("the {word} {}", names.join(" and "))
            }
        };
        let writes = rows.writes.as_ref().map_or("nothing".to_owned(), describe);
        let (parameter, reads) = (plan.label(rows.parameter), describe(&rows.reads));
        text.push_str(&wrapped(&format!(
            "rows of {parameter}: a batch reads {reads}, writes {writes}"
        )));
    }
    text.push_str(&loops(plan));
    text.push_str(&on_gpu(plan));
    text.push_str(&match plan.step {
        PlanStep::None => String::new(),
        PlanStep::Unfused { reason } => wrapped(&format!("step: not fused ({reason})")),
        PlanStep::Scattered { reason, parameters, one_row, many_rows, reads } => {
            let (scattered, reads) = (scattered(plan, parameters), self::reads(plan, reads));
            wrapped(&match (one_row, many_rows) {
                (Some(why), _) => format!(
                    "step: not fused ({reason}){scattered}; a step of one sample is no loop either ({why})"
                ),
                (None, Some(true)) => format!(
                    "step: one loop over the samples, each of which reads {reads}{scattered}; for one sample the updates are in the loop"
                ),
                (None, None) => format!(
                    "step: one loop over the samples, if the dense parameters have at most {FEW} elements; a sample reads {reads}{scattered}; for one sample the updates are in the loop"
                ),
                (None, Some(false)) => format!(
                    "step: not fused (the dense parameters have more than {FEW} elements: the product of a batch with them is a kernel's work){scattered}; a step of one sample is one loop, and reads {reads}"
                ),
            })
        }
        PlanStep::LinearRows { input, weight, factors, loss } => {
            let (input, weight) = (plan.label(input), plan.label(weight));
            let (terms, updated) = match factors {
                None => ("product", weight.to_string()),
                Some(factors) => {
                    ("product, interaction", format!("{weight} and {}", plan.label(factors)))
                }
            };
            wrapped(&format!(
                "step: one loop over the rows of {input} ({terms}, {loss}, update of {updated}), marked *"
            ))
        }
        PlanStep::LookupRows { reads, loss } => {
            let rows = reads.iter().flat_map(PlanLookup::rows);
            let names: Vec<String> = rows.map(|row| plan.label(row.table)).collect();
            wrapped(&format!(
                "step: one loop over the rows of the batch (rows named by ids, {loss}, update of {}), marked *",
                enumerated(&names)
            ))
        }
    });
    text
}

/// A line for each result of a loop over elements: `loop: %5, %6 and h over the elements of h`.
fn loops(plan: &PlanTable<'_>) -> String {
    let mut within: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    for (position, value) in plan.positions().zip(plan.values) {
        if let Some(Written::Within(result)) = value.written {
            within.entry(result).or_default().push(plan.label(position));
        }
    }
    let of_result = |(result, value): (u32, &PlanValue<'_>)| {
        let mut names = within.get(&result)?.clone();
        let name = plan.label(result);
        names.push(name.clone());
        let elements = match value.storage {
            Storage::Dense => "the elements",
            Storage::Csr => "the stored elements",
            Storage::RowSparse => "the stored rows",
        };
        Some(wrapped(&format!("loop: {} over {elements} of {name}", enumerated(&names))))
    };
    plan.positions().zip(plan.values).filter_map(of_result).collect()
}

/// What computes the values on a GPU: `on a GPU: unary for p, binary for s and logit; the others by
/// the same names`.
fn on_gpu(plan: &PlanTable<'_>) -> String {
    if plan.values.iter().any(|value| value.part == Part::State) {
        return wrapped("on a GPU: nothing, as states are written on the host");
    }
    let (mut shared, mut missing): (Vec<(&str, Vec<String>)>, Vec<String>) = Default::default();
    let mut same_name = 0;
    for (position, value) in plan.positions().zip(plan.values) {
        let Some(how) = value.computed.filter(|_| value.part != Part::Unused) else { continue };
        match how.on_gpu {
            Some(name) if name == how.kernel => same_name += 1,
            Some(name) => match shared.iter_mut().find(|(known, _)| *known == name) {
                Some((_, values)) => values.push(plan.label(position)),
                None => shared.push((name, vec![plan.label(position)])),
            },
            None => missing.push(format!("{} of {}", how.kernel, plan.label(position))),
        }
    }
    if !missing.is_empty() {
        let missing = enumerated(&missing);
        return wrapped(&format!("on a GPU: no kernel for {missing}: the model stays on the host"));
    }
    let shared: Vec<String> =
        shared.iter().map(|(name, values)| format!("{name} for {}", enumerated(values))).collect();
    match (shared.is_empty(), same_name) {
        (true, 0) => String::new(),
        (true, _) => wrapped("on a GPU: kernels of the same names"),
        (false, 0) => wrapped(&format!("on a GPU: {}", shared.join("; "))),
        (false, _) => {
            wrapped(&format!("on a GPU: {}; the others by the same names", shared.join("; ")))
        }
    }
}

/// `a, b and c`.
fn enumerated(names: &[String]) -> String {
    match names {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        _ => names.concat(),
    }
}

/// A sentence in lines.
pub(super) fn wrapped(sentence: &str) -> String {
    let (mut text, mut length) = (String::new(), 0);
    for word in sentence.split(' ') {
        let width = word.chars().count();
        if length > 0 && length + 1 + width > WIDTH {
            text.push_str("\n ");
            length = 1;
        }
        if length > 0 {
            text.push(' ');
            length += 1;
        }
        text.push_str(word);
        length += width;
    }
    text.push('\n');
    text
}

/// One value under its head, columns without an entry left out.
pub(super) fn line(plan: &PlanTable<'_>, position: u32) -> String {
    aligned(&[cells(plan, position, &Sizes::default())])
}

fn cells(plan: &PlanTable<'_>, position: u32, sizes: &Sizes) -> [String; 7] {
    let Some(value) = plan.values.get(position as usize) else {
        return Default::default();
    };
    let decays = plan.rows.iter().any(|rows| rows.parameter == position && rows.decays);
    let computed = match (value.part, value.computed) {
        (Part::Input, _) => "input".to_owned(),
        (Part::Label, _) => "label".to_owned(),
        (Part::Parameter, _) if decays => "parameter, decays".to_owned(),
        (Part::Parameter, _) => "parameter, no decay".to_owned(),
        (Part::Frozen, _) => "frozen parameter".to_owned(),
        (Part::State, _) => "state".to_owned(),
        (part, Some(how)) => {
            let operands: Vec<String> = how
                .operands
                .iter()
                .map(|operand| match operand {
                    Operand::Value(position) | Operand::Shape(position) => plan.label(*position),
                    Operand::Number(number) => number.to_string(),
                    Operand::Named { text, .. } => (*text).to_owned(),
                })
                .collect();
            let rule = how.kernel.strip_prefix(how.operator).unwrap_or_default();
            format!(
                "{}{}{BREAK}{rule}{BREAK}({}){}{}",
                if how.fallback { "fallback: " } else { "" },
                how.operator,
                operands.join(", "),
                if how.fused { " *" } else { "" },
                if part == Part::Unused { ", unused" } else { "" },
            )
        }
        (_, None) => String::new(),
    };
    let gradient = value.gradient.and_then(|gradient| plan.values.get(gradient as usize));
    let label = plan.label(position);
    let written = match value.written {
        None => String::new(),
        Some(Written::Buffer(index)) => format!("buffer {index}"),
        Some(Written::Output(name)) if name == label => "output".to_owned(),
        Some(Written::Output(name)) => format!("output {name}"),
        Some(Written::Gradient(_)) if value.name.is_empty() => "gradient".to_owned(),
        Some(Written::Gradient(parameter)) => format!("grad {}", plan.label(parameter)),
        Some(Written::Within(result)) => format!("loop of {}", plan.label(result)),
    };
    let storage = if value.element == plan.element {
        value.storage.to_string()
    } else {
        format!("{}<{}>", value.storage, value.element)
    };
    [
        label,
        sizes.shape(value.shape),
        storage,
        gradient.map_or(String::new(), |gradient| gradient.storage.to_string()),
        match value.written {
            Some(Written::Within(_)) => String::new(),
            _ => bytes(plan, position, sizes).to_string(),
        },
        written,
        computed,
    ]
}

/// Columns of equal width, empty ones left out. The last one is broken where it would be too wide.
fn aligned(lines: &[[String; 7]]) -> String {
    let used: Vec<usize> = (0..HEAD.len())
        .filter(|column| lines.iter().any(|line| !line[*column].is_empty()))
        .collect();
    let Some((&last, columns)) = used.split_last() else {
        return String::new();
    };
    let is_number = |cell: &str| cell.chars().all(|c| c.is_ascii_digit() || c == '_');
    let numbers = lines.iter().all(|line| is_number(&line[BYTES]));
    let width_of = |column: usize| {
        let cells = lines.iter().map(|line| line[column].chars().count());
        cells.max().unwrap_or(0).max(HEAD[column].len())
    };
    let widths: Vec<usize> = columns.iter().map(|column| width_of(*column)).collect();
    let left: usize = widths.iter().map(|width| width + 2).sum();
    // Where the others leave little room, what does not fit goes to the next line.
    let beside = WIDTH.saturating_sub(left);
    let (room, indent) = if beside < ROOM { (WIDTH - 2, 2) } else { (beside, left) };
    let mut text = String::new();
    let head = HEAD.map(String::from);
    for line in std::iter::once(&head).chain(lines) {
        let mut row = String::new();
        for (column, width) in columns.iter().zip(&widths) {
            let (cell, width) = (&line[*column], *width);
            // A width of `write!` is at most 65,535, and a name may be longer.
            let space = " ".repeat(width.saturating_sub(cell.chars().count()));
            let (before, after) =
                if *column == BYTES && numbers { (&*space, "") } else { ("", &*space) };
            row.extend([before, cell, after, "  "]);
        }
        let cell = &line[last];
        let fits = cell.chars().filter(|c| *c != BREAK).count() <= beside;
        let (room, mut own_line) = if fits { (beside, false) } else { (room, beside < ROOM) };
        for piece in broken(cell, room) {
            if own_line {
                text.push_str(row.trim_end());
                text.push('\n');
                row = " ".repeat(indent);
            }
            row.push_str(&piece);
            own_line = true;
        }
        text.push_str(row.trim_end());
        text.push('\n');
    }
    text
}

/// A cell in lines of at most `room` characters, broken where it may be, else after `_`; lines
/// after the first are indented.
fn broken(cell: &str, room: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for piece in cell.split(BREAK) {
        let mut rest = piece;
        loop {
            let last = lines.len() - 1;
            let left = room.saturating_sub(lines[last].chars().count());
            if rest.chars().count() <= left {
                lines[last].push_str(rest);
                break;
            }
            let is_new = lines[last].trim().is_empty();
            let end = rest.char_indices().nth(left).map_or(rest.len(), |(end, _)| end);
            match rest[..end].rfind('_').filter(|_| is_new) {
                Some(place) => {
                    lines[last].push_str(&rest[..=place]);
                    rest = &rest[place + 1..];
                }
                None if is_new => {
                    lines[last].push_str(rest);
                    break;
                }
                None => {}
            }
            lines.push("  ".to_owned());
        }
    }
    lines
}

/// `; the gradient of w is scattered into the update, marked *`, if any is.
fn scattered(plan: &PlanTable<'_>, parameters: &[u32]) -> String {
    let names: Vec<String> = parameters.iter().map(|id| plan.label(*id)).collect();
    let (word, verb) = if names.len() == 1 { ("gradient", "is") } else { ("gradients", "are") };
    if names.is_empty() {
        return String::new();
    }
    format!("; the {word} of {} {verb} scattered into the update, marked *", enumerated(&names))
}

/// `rows of w named by the columns of x, summed by value, and …`
fn reads(plan: &PlanTable<'_>, reads: &[PlanRead]) -> String {
    let read = |read: &PlanRead| {
        let (table, by) = (plan.label(read.table), plan.label(read.by));
        let is_csr = plan.values.get(read.by as usize).is_some_and(|by| by.storage.is_sparse());
        let by = if is_csr { format!("the columns of {by}") } else { by };
        let pool = match read.pool {
            PlanPool::Sum { weighted: true, mean: false } => "summed by value",
            PlanPool::Sum { weighted: false, mean: false } => "summed",
            PlanPool::Sum { weighted: true, mean: true } => "averaged by value",
            PlanPool::Sum { weighted: false, mean: true } => "averaged",
            PlanPool::Rows => "as they are",
            PlanPool::Pairs => "in pairs",
        };
        format!("rows of {table} named by {by}, {pool}")
    };
    let reads: Vec<String> = reads.iter().map(read).collect();
    reads.join("; ")
}
