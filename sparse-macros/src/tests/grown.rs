//! Models that grow at random out of the operator table: each step takes any operator, any operands
//! that are there and any attributes, and keeps what the compiler accepts. `tests/grown.rs` of the
//! facade has some of them computed; more are grown by
//!
//! ```sh
//! NNZ_GROW=1000..1040 NNZ_BLESS=1 cargo test -p sparse-macros grown &&
//!     cargo test -p nnz-tests grown::
//! ```

use super::diagnostics::said;
use sparse_core::diagnostics::Severity;
use sparse_core::operators::{AttributeKind, Kind, Operator, families, find};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::ops::Range;
use std::path::Path;
use std::{env, fs};

/// The models that `tests/grown/models.rs` holds.
const KEPT: Range<u64> = 0..24;

/// What a model may read: names and declarations.
const LEAVES: [(&str, &str); 13] = [
    ("x", "input x: csr[n, d];"),
    ("ones", "input ones: csr<unit>[n, d];"),
    ("z", "input z: dense[n, 3];"),
    ("ids", "input ids: dense<u32>[n];"),
    ("y", "label y: dense[n, 1];"),
    ("class", "label class: dense<u32>[n];"),
    ("weight", "label weight: dense[n];"),
    ("w", "param w: row_sparse[d, 1] = Normal { mean: 0.0, std: 0.6 };"),
    ("v", "param v: row_sparse[d, 3] = Normal { mean: 0.0, std: 0.6 };"),
    ("t", "param t: row_sparse[e, 3] = Normal { mean: 0.0, std: 0.6 };"),
    ("a", "param a: dense[3, 3] = Normal { mean: 0.0, std: 0.6 };"),
    ("b", "param b: dense[3] = Normal { mean: 0.0, std: 0.6 };"),
    ("s", "param s: dense[] = Normal { mean: 0.0, std: 0.6 };"),
];

/// Of which nothing follows that is a gradient in the sense of differences: theirs are said to be
/// others.
const OF_OTHER_GRADIENT: [&str; 7] =
    ["stop_gradient", "scale_gradient", "make_loss", "round_ste", "sign_ste", "max", "min"];

/// What models begin with: parameters that a batch reads.
const ROOTS: [(&str, [&str; 2]); 7] = [
    ("dot", ["x", "v"]),
    ("dot", ["x", "w"]),
    ("dot", ["ones", "v"]),
    ("dot", ["z", "a"]),
    ("embedding", ["ids", "t"]),
    ("embedding_bag", ["x", "v"]),
    ("pairwise_interaction", ["x", "v"]),
];

/// SplitMix64: the same models on every machine and in every version.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % bound as u64) as usize
    }

    /// Once in so many times.
    fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    fn of<'a, T: ?Sized>(&mut self, choices: &[&'a T]) -> &'a T {
        choices[self.below(choices.len())]
    }
}

/// A value of a model.
struct Grown {
    name: String,
    call: String,
    operator: &'static Operator,
    /// The values and leaves that it is made of.
    operands: Vec<String>,
    /// Whether it comes from a label.
    is_of_label: bool,
    /// Whether it comes from a parameter.
    is_of_parameter: bool,
    /// Whether a loss can be made of it.
    is_trained: bool,
}

/// The text of a model.
struct Model {
    /// Inputs and labels that it has, in order.
    inputs: Vec<&'static str>,
    /// Dimensions of its parameters.
    dims: Vec<&'static str>,
    body: String,
    /// Whether its gradients are those of differences.
    has_differences: bool,
}

/// The text of an attribute, or nothing, so that it has its default.
fn attribute(kind: AttributeKind, random: &mut Random) -> Option<String> {
    const AXES: [&str; 6] = ["0", "1", "-1", "[0]", "[1]", "[0, 1]"];
    const ENTRIES: [&str; 6] = ["_", "0", "1", "2", "3", "-1"];
    match kind {
        AttributeKind::Flag => random.once_in(3).then(|| "true".into()),
        AttributeKind::Axes => (!random.once_in(4)).then(|| random.of(&AXES).into()),
        AttributeKind::Integer(None) => Some("4".into()),
        AttributeKind::Integer(_) => {
            random.once_in(2).then(|| random.of(&["0", "1", "2", "-1"]).into())
        }
        AttributeKind::Number(default) => (default.is_none() || random.once_in(2))
            .then(|| random.of(&["0.5", "1.5", "-0.7", "0.0"]).into()),
        AttributeKind::List => (!random.once_in(3)).then(|| {
            let entries: Vec<&str> =
                (0..1 + random.below(2)).map(|_| random.of(&ENTRIES)).collect();
            format!("[{}]", entries.join(", "))
        }),
        AttributeKind::Storage => random.once_in(4).then(|| "dense".into()),
    }
}

fn root(place: usize, random: &mut Random) -> Grown {
    let (name, operands) = ROOTS[random.below(ROOTS.len())];
    Grown {
        name: format!("v{place}"),
        call: format!("{name}({})", operands.join(", ")),
        operator: find(name).unwrap(),
        operands: operands.map(str::to_owned).to_vec(),
        is_of_label: false,
        is_of_parameter: true,
        is_trained: true,
    }
}

/// A call of any operator on any values.
fn call(values: &[Grown], random: &mut Random) -> Grown {
    // By families, as most operators are functions of one element.
    let families = families();
    let (_, family) = families[random.below(families.len())];
    let family: Vec<_> = family.iter().filter(|one| !one.internal).collect();
    let operator = family[random.below(family.len())];
    let n_operands = operator.operands.len() - random.below(operator.optional + 1);
    let mut operands = Vec::new();
    let mut arguments = Vec::new();
    let is_loss = matches!(operator.kind, Kind::Loss { .. });
    for place in 0..n_operands {
        let argument = match random.below(8) {
            _ if is_loss && place == 1 => random.of(&["y", "class", "z"]).to_owned(),
            _ if is_loss && place == 2 => "weight".to_owned(),
            0 if !is_loss => {
                arguments.push(random.of(&["2.0", "0.3", "-1.5"]).to_owned());
                continue;
            }
            // Rather of what was made than of what was given, and of what was made last, so that
            // there are chains.
            1..=2 if !values.is_empty() => values[values.len() - 1].name.clone(),
            3..=4 if !values.is_empty() => values[random.below(values.len())].name.clone(),
            _ => LEAVES[random.below(LEAVES.len())].0.to_owned(),
        };
        operands.push(argument.clone());
        arguments.push(argument);
    }
    for one in operator.attributes {
        if let Some(value) = attribute(one.kind, random) {
            arguments.push(format!("{} = {value}", one.name));
        }
    }
    let comes_from = |word: &str, of_value: fn(&Grown) -> bool| {
        operands.iter().any(|name| {
            LEAVES.iter().any(|(leaf, text)| leaf == name && text.starts_with(word))
                || values.iter().any(|value| value.name == *name && of_value(value))
        })
    };
    let is_of_label = comes_from("label", |value| value.is_of_label);
    let is_of_parameter = comes_from("param", |value| value.is_of_parameter);
    Grown {
        name: format!("v{}", values.len()),
        call: format!("{}({})", operator.name, arguments.join(", ")),
        operator,
        operands,
        is_of_label,
        is_of_parameter,
        is_trained: true,
    }
}

/// What a model of some values is: a loss of each that no other is made of.
fn model(values: &[&Grown]) -> Model {
    let mut used: BTreeSet<&str> =
        values.iter().flat_map(|value| &value.operands).map(String::as_str).collect();
    let ends: Vec<&&Grown> = values.iter().filter(|one| !used.contains(&*one.name)).collect();
    let output = values.iter().rev().find(|value| !value.is_of_label);
    // A model has something to predict.
    let output = output.map_or("w", |value| &value.name);
    used.insert(output);
    let mut body = String::new();
    for (name, declaration) in LEAVES {
        if used.contains(name) {
            let _ = writeln!(body, "        {declaration}");
        }
    }
    for value in values {
        let _ = writeln!(body, "        let {} = {};", value.name, value.call);
    }
    for Grown { name, operator, .. } in ends.into_iter().filter(|value| value.is_trained) {
        let _ = match operator.kind {
            Kind::Loss { .. } => writeln!(body, "        loss {name};"),
            _ => writeln!(body, "        loss mean(square({name}));"),
        };
    }
    let _ =
        writeln!(body, "        output {};", if output == "w" { "out = dense(w)" } else { output });
    let leaves: Vec<_> = LEAVES.into_iter().filter(|(name, _)| used.contains(name)).collect();
    let parameters = || leaves.iter().filter(|(_, text)| text.starts_with("param"));
    let has_dim = |dim: &str| parameters().any(|(_, text)| text.contains(&format!("[{dim},")));
    Model {
        inputs: leaves
            .iter()
            .filter(|(_, text)| !text.starts_with("param"))
            .map(|leaf| leaf.0)
            .collect(),
        dims: ["d", "e"].into_iter().filter(|dim| has_dim(dim)).collect(),
        has_differences: !values.iter().any(|one| OF_OTHER_GRADIENT.contains(&one.operator.name)),
        body,
    }
}

fn is_accepted(body: &str) -> bool {
    let said = said(&format!("model M {{ dtype = f64; {body} }}"));
    !said.iter().any(|one| one.code.severity() == Severity::Error)
}

/// The model of a seed.
fn grow(seed: u64) -> Model {
    let mut random = Random(seed);
    let mut values: Vec<Grown> = (0..2).map(|place| root(place, &mut random)).collect();
    let wanted = 4 + random.below(10);
    for _ in 0..1000 {
        if values.len() == wanted {
            break;
        }
        let mut value = call(&values, &mut random);
        // Of what no parameter is in there is no gradient.
        if !value.is_of_parameter && !random.once_in(8) {
            continue;
        }
        let accepted = |value: &Grown| {
            let all: Vec<&Grown> = values.iter().chain([value]).collect();
            is_accepted(&model(&all).body)
        };
        if !accepted(&value) {
            // Ids, and what has no gradient.
            value.is_trained = false;
            if !random.once_in(6) || !accepted(&value) {
                continue;
            }
        }
        values.push(value);
    }
    model(&values.iter().collect::<Vec<_>>())
}

fn text_of(seeds: Range<u64>) -> String {
    let mut text = String::from(
        "// Grown out of the operator table by `NNZ_BLESS=1 cargo test -p sparse-macros grown`.\n\ngrown! {",
    );
    for seed in seeds {
        let Model { inputs, dims, body, has_differences, .. } = grow(seed);
        let _ = write!(
            text,
            "\n    grown_{seed}, [{}], [{}], {has_differences} {{\n{body}    }}\n",
            inputs.join(", "),
            dims.join(", ")
        );
    }
    text + "}\n"
}

#[test]
fn grown_models_are_those_that_are_tested() {
    let seeds = env::var("NNZ_GROW").ok().map(|range| {
        let (first, end) = range.split_once("..").expect("`NNZ_GROW` is a range, 100..140");
        first.parse().unwrap()..end.parse().unwrap()
    });
    let text = text_of(seeds.unwrap_or(KEPT));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/grown/models.rs");
    if env::var_os("NNZ_BLESS").is_some_and(|value| value == "1") {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, &text).unwrap();
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == text,
        "`tests/grown/models.rs` is stale: `NNZ_BLESS=1 cargo test -p sparse-macros grown`"
    );
}
