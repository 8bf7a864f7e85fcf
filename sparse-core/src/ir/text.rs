//! Printer and parser of graphs: passes are tested on this text, and fingerprints are made of it.
//!
//! ```text
//! model LinearRegression f32
//! x = input csr f32 [n, d]
//! y = label dense f32 [n, 1]
//! w = param row_sparse f32 [d, 1] "Zeros"
//! pred = dot(x, w): dense [n, 1]
//! %4 = squared_error(pred, y): dense []
//! loss %4
//! output pred = pred
//! grad w = %7
//! ```

use super::{
    Alternatives, AttributeValue, Attributes, Entry, Fallback, Graph, Kind, NamedList, Number,
    Output, Place, Update, ValueId,
};
use crate::operators::{self, AttributeKind};
use crate::shapes::{Dim, Dims, show};
use crate::storage::{Storage, join};
use std::fmt::Write as _;

/// The graph as text.
pub fn print(graph: &Graph) -> String {
    let mut text = format!("model {} {}", graph.name, graph.element());
    match graph.fallback {
        Fallback::Deny => {}
        Fallback::Warn => text.push_str(" fallback = warn"),
        Fallback::Allow => text.push_str(" fallback = allow"),
    }
    text.push('\n');
    for id in graph.ids() {
        let value = graph.value(id);
        let label = graph.label(id);
        let storage = || match graph.alternatives.iter().find(|known| known.value == id) {
            Some(known) => join(&known.storages, " | "),
            None => graph.storage(id).to_string(),
        };
        let declared = || format!("{} {} {}", storage(), value.element, show(&graph.shape(id)));
        // Writing to a String cannot fail.
        let _ = match &value.kind {
            Kind::Constant(_) => continue,
            Kind::Named(formula) => {
                writeln!(text, "{} = number {}", reference_of(graph, id), formula.bare())
            }
            Kind::Input => writeln!(text, "{label} = input {}", declared()),
            Kind::Label => writeln!(text, "{label} = label {}", declared()),
            Kind::Parameter { initializer, frozen, decay } => {
                let word = parameter_word(*frozen, *decay);
                writeln!(text, "{label} = {word} {} {initializer:?}", declared())
            }
            Kind::Apply(apply) => {
                let mut call: Vec<String> =
                    apply.operands.iter().map(|operand| reference_of(graph, *operand)).collect();
                for (name, value) in apply.attributes.iter() {
                    call.push(format!("{name} = {value}"));
                }
                let _ = write!(text, "{label} = {}({})", apply.operator.name, call.join(", "));
                match (value.storage, &value.shape) {
                    (Some(storage), _) => {
                        let _ = write!(text, ": {storage} {}", show(&graph.shape(id)));
                    }
                    (None, Some(_)) => {
                        let _ = write!(text, ": _ {}", show(&graph.shape(id)));
                    }
                    (None, None) => {}
                }
                writeln!(text)
            }
        };
    }
    for loss in &graph.losses {
        let _ = writeln!(text, "loss {}", reference_of(graph, *loss));
    }
    for output in &graph.outputs {
        let _ = writeln!(text, "output {} = {}", output.name, reference_of(graph, output.value));
    }
    for update in &graph.updates {
        let (state, value) = (graph.label(update.state), graph.label(update.value));
        let _ = writeln!(text, "update {state} = {value}");
    }
    for (parameter, gradient) in &graph.gradients {
        let _ = writeln!(text, "grad {} = {}", graph.label(*parameter), graph.label(*gradient));
    }
    text
}

/// Reads a graph from text. Inferred types (`: dense [n, 1]`) and gradients are not read: passes
/// make them. The place of a value is its line.
///
/// # Errors
///
/// The line, and what is wrong with it.
pub fn parse(text: &str) -> Result<Graph, String> {
    let mut graph = Graph::default();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if !line.is_empty() && !line.starts_with("grad ") {
            parse_line(&mut graph, line, Place(number as u32))
                .map_err(|message| format!("line {}: {message}: `{line}`", number + 1))?;
        }
    }
    Ok(graph)
}

fn parse_line(graph: &mut Graph, line: &str, place: Place) -> Result<(), String> {
    let (word, rest) = line.split_once(' ').ok_or("expected a declaration")?;
    match word {
        "model" => {
            let mut words = rest.split_whitespace();
            graph.name = words.next().unwrap_or_default().to_owned();
            graph.element = words.next().and_then(|word| word.parse().ok());
            graph.fallback = match words.next_back() {
                Some("warn") => Fallback::Warn,
                Some("allow") => Fallback::Allow,
                _ => Fallback::Deny,
            };
            return Ok(());
        }
        "loss" => {
            let value = reference(graph, rest, place)?;
            graph.losses.push(value);
            return Ok(());
        }
        "update" => {
            let (state, value) = rest.split_once('=').ok_or("expected `=`")?;
            let state = reference(graph, state.trim(), place)?;
            let value = reference(graph, value.trim(), place)?;
            graph.updates.push(Update { state, value, place });
            return Ok(());
        }
        "output" => {
            let (name, value) = rest.split_once('=').ok_or("expected `=`")?;
            let value = reference(graph, value.trim(), place)?;
            graph.outputs.push(Output { name: name.trim().to_owned(), value, place });
            return Ok(());
        }
        _ => {}
    }
    let rest = rest.trim_start().strip_prefix('=').ok_or("expected `=`")?.trim();
    if let Some(formula) = rest.strip_prefix("number ") {
        let id = graph.number(crate::formula::parse(formula)?, place);
        graph.values[id.0].name = Some(word.to_owned());
        return Ok(());
    }
    let (head, tail) = rest.split_once([' ', '(']).ok_or("expected a value")?;
    let kind = match head {
        "input" => Kind::Input,
        "label" => Kind::Label,
        "param" => {
            let (frozen, decay) = parameter_kind(rest).ok_or("unknown kind of parameter")?;
            Kind::Parameter { initializer: String::new(), frozen, decay }
        }
        _ => return parse_apply(graph, word, rest, place),
    };
    let tail = if rest.starts_with("param(") {
        tail.split_once(") ").ok_or("expected a type")?.1
    } else {
        tail
    };
    let (types, tail) = tail.split_once('[').ok_or("expected a shape")?;
    let (shape, tail) = tail.split_once(']').ok_or("expected `]`")?;
    let (storages, element) =
        types.trim().rsplit_once(' ').ok_or("expected a storage and an element type")?;
    let storages: Vec<Storage> = storages
        .split('|')
        .map(|word| word.trim().parse().map_err(|()| "unknown storage"))
        .collect::<Result<_, _>>()?;
    let element = element.parse().map_err(|_| "unknown element type")?;
    let shape = dims(graph, shape);
    let kind = match kind {
        Kind::Parameter { frozen, decay, .. } => {
            let initializer = tail.trim().trim_matches('"').to_owned();
            Kind::Parameter { initializer, frozen, decay }
        }
        other => other,
    };
    let value = graph.declare(kind, word, storages[0], element, shape, place);
    if storages.len() > 1 {
        graph.alternatives.push(Alternatives { value, storages });
    }
    Ok(())
}

fn parse_apply(graph: &mut Graph, name: &str, text: &str, place: Place) -> Result<(), String> {
    let (operator, rest) = text.split_once('(').ok_or("expected `(`")?;
    let operator = operators::find(operator).ok_or_else(|| format!("no operator `{operator}`"))?;
    let (arguments, _) = rest.split_once(')').ok_or("expected `)`")?;
    let mut operands = Vec::new();
    let mut attributes = Attributes::default();
    for argument in arguments_of(arguments) {
        let Some((name, value)) = argument.split_once('=') else {
            operands.push(reference(graph, argument, place)?);
            continue;
        };
        let known = operator.attribute(name.trim()).ok_or("unknown attribute")?;
        let value = value.trim();
        let value = match known.kind {
            AttributeKind::Flag => AttributeValue::Flag(value == "true"),
            AttributeKind::Integer(_) => match value.parse() {
                Ok(integer) => AttributeValue::Integer(integer),
                Err(_) if known.is_extent => {
                    graph.unify.declare_constant(value);
                    AttributeValue::named(value)
                }
                Err(_) => return Err("expected an integer".to_owned()),
            },
            AttributeKind::Number(_) => match value.parse() {
                Ok(number) => AttributeValue::Number(Number(number)),
                Err(_) => {
                    graph.unify.declare_number(value);
                    AttributeValue::named(value)
                }
            },
            AttributeKind::Axes | AttributeKind::List => list(graph, value, known.is_extent)?,
            AttributeKind::Storage => {
                AttributeValue::Storage(value.parse().map_err(|()| "expected a storage")?)
            }
        };
        attributes.set(known.name, value);
    }
    let fits = operator.chain.is_some()
        || (operator.required()..=operator.operands.len()).contains(&operands.len());
    if !fits {
        return Err(format!("`{}` takes {} operands", operator.name, operator.operands.len()));
    }
    let id = graph.apply(operator, operands, attributes, place);
    if graph.values[id.0].name.is_none() {
        graph.values[id.0].name = Some(name.to_owned());
    }
    Ok(())
}

/// Splits at commas outside of brackets.
fn arguments_of(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0;
    let parts = text.split(move |letter| {
        match letter {
            '[' | '{' => depth += 1,
            ']' | '}' => depth -= 1,
            _ => {}
        }
        letter == ',' && depth == 0
    });
    parts.map(str::trim).filter(|argument| !argument.is_empty())
}

/// `[0, _]`, or one integer. Of extents an entry may be a constant.
fn list(graph: &mut Graph, text: &str, of_extents: bool) -> Result<AttributeValue, String> {
    let entries = arguments_of(text.trim_matches(['[', ']']));
    let entries = entries.map(|word| match word.parse() {
        _ if word == "_" => Ok(None),
        Ok(integer) => Ok(Some(Entry::Integer(integer))),
        Err(_) if of_extents => {
            graph.unify.declare_constant(word);
            Ok(Some(Entry::named(word)))
        }
        Err(_) => Err(format!("expected an integer, not `{word}`")),
    });
    let list = NamedList::new(&entries.collect::<Result<Vec<_>, _>>()?);
    Ok(list.integers().map_or(AttributeValue::NamedList(list), AttributeValue::List))
}

/// How a line names an operand.
fn reference_of(graph: &Graph, id: ValueId) -> String {
    let value = graph.value(id);
    match (&value.name, &value.kind) {
        (None, Kind::Named(_)) => format!("%{}", id.0),
        _ => graph.label(id),
    }
}

fn reference(graph: &mut Graph, word: &str, place: Place) -> Result<ValueId, String> {
    if let Ok(number) = word.parse::<f64>() {
        return Ok(graph.constant(number, place));
    }
    let found = graph.ids().rfind(|id| reference_of(graph, *id) == word);
    found.ok_or_else(|| format!("no value `{word}`"))
}

fn dims(graph: &mut Graph, text: &str) -> Dims {
    text.split(',')
        .map(str::trim)
        .filter(|word| !word.is_empty())
        .map(|word| match word.parse() {
            Ok(size) => Dim::Size(size),
            Err(_) if word == "_" => graph.unify.fresh(),
            Err(_) => Dim::Named(word.to_owned()),
        })
        .collect()
}

/// The kinds of parameters: the word, whether it is frozen, and whether it decays where that is
/// declared.
const PARAMETERS: [(&str, bool, Option<bool>); 4] = [
    ("param(frozen)", true, None),
    ("param(decay)", false, Some(true)),
    ("param(no_decay)", false, Some(false)),
    ("param", false, None),
];

fn parameter_word(frozen: bool, decay: Option<bool>) -> &'static str {
    let known = PARAMETERS
        .iter()
        .find(|(_, is_frozen, decays)| *is_frozen == frozen && (frozen || *decays == decay));
    known.map_or("param", |(word, ..)| word)
}

fn parameter_kind(text: &str) -> Option<(bool, Option<bool>)> {
    let word = text.split(' ').next()?;
    PARAMETERS.iter().find(|(known, ..)| *known == word).map(|(_, frozen, decay)| (*frozen, *decay))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODEL: &str = "\
model M f32 fallback = warn
x = input csr | dense f32 [n, d]
y = label dense u32 [n]
w = param row_sparse f32 [d, 3] \"Normal { mean: 0.0, std: 0.01 }\"
c = param(frozen) dense f32 [3] \"Zeros\"
%4 = dot(x, w, out = dense)
logits = add(%4, c)
half = multiply(logits, 0.5)
%8 = softmax_cross_entropy(half, y)
loss %8
output logits = logits
update c = c
";

    #[test]
    fn text_survives_a_round_trip() {
        assert_eq!(print(&parse(MODEL).unwrap()), MODEL);
    }

    #[test]
    fn attributes_of_every_kind_survive_a_round_trip() {
        let text = "model M f32\nx = input dense f32 [n, 3]\ns = sum(x, axis = [0, 1], keepdims = true)\n\
                    c = clip(x, lower = -1.5, upper = 2)\nl = norm(x, ord = 1)\noutput s = s\n";
        assert_eq!(print(&parse(text).unwrap()), text);
    }

    #[test]
    fn l8_constants_of_rust_and_extents_survive_a_round_trip_by_their_names() {
        let text = "model M f32\nx = input dense f32 [n, FIELDS]\ny = label dense f32 [n, FIELDS]\n\
                    r = reshape(x, shape = [0, FIELDS, crate::K, _])\nt = topk(x, k = {K + 1})\n\
                    l = huber(x, y, delta = {2.0 * crate::DELTA})\n%6 = number 1 / sqrt(n)\n\
                    s = multiply(x, %6)\nloss l\noutput s = s\n";
        let graph = parse(text).unwrap();
        assert_eq!(print(&graph), text);
        let known = |name: &str| graph.unify.is_constant_number(name);
        assert!(["FIELDS", "crate::K", "{K + 1}", "{2.0 * crate::DELTA}"].into_iter().all(known));
        assert!(!known("n") && !graph.unify.is_constant("{2.0 * crate::DELTA}"));
        let axis = "model M f32\nx = input dense f32 [n, 2]\ns = sum(x, axis = AXIS)\n";
        assert!(parse(axis).unwrap_err().contains("expected an integer, not `AXIS`"));
    }

    #[test]
    fn errors_name_the_line() {
        let error = parse("model M f32\nx = input csc f32 [n, d]").unwrap_err();
        assert_eq!(error, "line 2: unknown storage: `x = input csc f32 [n, d]`");
        assert!(parse("y = lgo(x)").unwrap_err().contains("no operator `lgo`"));
        assert!(parse("y = log(x)").unwrap_err().contains("no value `x`"));
    }

    #[test]
    fn building_folds_numbers_and_transposes() {
        let text = "model M f32\na = input csr f32 [n, d]\ng = input dense f32 [n, 2]\n\
                    t = transpose(a)\nu = dot(t, g)\nz = add(g, g)\n";
        let printed = print(&parse(text).unwrap());
        assert!(printed.contains("u = dot(a, g, transpose_lhs = true)"), "{printed}");
        assert!(printed.contains("z = add(g, g)"), "{printed}");
    }
}
