//! Columns that passes ask in place of names: each is held to the row's formula, shape or words.

use super::*;
use std::fs;
use std::path::{Path, PathBuf};

/// The value of an element-wise operator of two operands, where all its attributes have defaults.
fn value(operator: &Operator, x: f64, y: f64) -> Option<f64> {
    matches!(operator.kind, Kind::Binary(family, _) if !family.is_gradient())
        .then(|| operator.elementwise(&Attributes::default(), &[x, y]).ok())?
}

const SAMPLES: [f64; 4] = [-1.5, 0.0, 2.0, 7.0];

#[test]
fn sums_and_products_are_what_their_formulas_compute() {
    for operator in all() {
        let is = |f: fn(f64, f64) -> f64| {
            let pairs = SAMPLES.iter().flat_map(|x| SAMPLES.map(|y| (*x, y)));
            pairs.into_iter().all(|(x, y)| value(operator, x, y) == Some(f(x, y)))
        };
        assert_eq!(operator.is_sum, is(|x, y| x + y), "{}", operator.name);
        assert_eq!(operator.is_product, is(|x, y| x * y), "{}", operator.name);
    }
}

#[test]
fn neutral_numbers_leave_the_other_operand_as_it_is() {
    for operator in all() {
        for x in SAMPLES {
            let [left, right] = operator.neutral;
            let of_left = left.is_none_or(|neutral| value(operator, neutral, x) == Some(x));
            let of_right = right.is_none_or(|neutral| value(operator, x, neutral) == Some(x));
            assert!(of_left && of_right, "{} of {x}", operator.name);
        }
    }
    assert!(all().any(|operator| operator.neutral[0].is_some()));
}

#[test]
fn scalings_are_linear_in_the_operand_that_they_scale() {
    for operator in all() {
        let linear = |f: &dyn Fn(f64) -> Option<f64>| {
            SAMPLES.iter().all(|x| f(2.0 * x) == f(*x).map(|value| 2.0 * value))
        };
        let by_right = || linear(&|x| value(operator, x, 3.0));
        let holds = match operator.scaling {
            Scaling::None => continue,
            Scaling::Always => linear(&|x| operator.elementwise(&Attributes::default(), &[x]).ok()),
            Scaling::ByRight => by_right(),
            Scaling::ByEither => by_right() && linear(&|x| value(operator, 3.0, x)),
        };
        assert!(holds, "{}", operator.name);
    }
}

/// A conversion has the name of a storage type, and gives nothing else.
#[test]
fn conversions_are_named_by_the_storage_that_they_give() {
    for operator in all() {
        assert_eq!(operator.converts_to, operator.name.parse().ok(), "{}", operator.name);
        let Some(to) = operator.converts_to else { continue };
        let mut rules = operator.storage.iter().map(Rule::signature);
        assert!(rules.all(|rule| rule.results().eq([to])), "{}", operator.name);
    }
}

/// Each operator with a matrix product in its shape says which one it is, but for that at a
/// pattern.
#[test]
fn matrix_products_have_the_shape_of_one() {
    for operator in all() {
        let shape = operator.shape.split('|').next().unwrap_or_default().trim();
        let wanted = match operator.matrix_product {
            MatrixProduct::None => {
                let names = crate::shapes::terms(shape);
                let is_product = names.starts_with(&["[m, k]", "[k, n]"]);
                assert!(!is_product || operator.operand_index("like").is_some(), "{shape}");
                continue;
            }
            MatrixProduct::ByFlags => {
                let flags = [0, 1].map(|operand| operator.transpose_flag(operand));
                assert!(flags.iter().all(Option::is_some), "{}", operator.name);
                "[m, k] [k, n] -> [m, n]"
            }
            MatrixProduct::WithTransposed(as_it_is) => {
                assert_eq!(find(as_it_is).unwrap().matrix_product, MatrixProduct::ByFlags);
                "[n, d] [h, d] [h] -> [n, h]"
            }
            MatrixProduct::Outer => "[m] [n] -> [m, n]",
        };
        assert_eq!(shape, wanted, "{}", operator.name);
    }
}

#[test]
fn operators_that_place_elements_have_the_attributes_of_their_placement() {
    for operator in all() {
        let has = |names: &[&str]| names.iter().all(|name| operator.attribute(name).is_some());
        let like = operator.operands == ["x", "like"];
        let holds = match operator.placement {
            Placement::Other => true,
            Placement::Joined => has(&["axis"]) && operator.chain.is_some(),
            Placement::PartLike => has(&["axes", "from_end"]) && like,
            Placement::RepeatedLike => has(&["axis", "exclude", "mean"]) && like,
            Placement::Transposed => operator.shape == "[m, n] -> [n, m]",
        };
        assert!(holds && (operator.placement == Placement::Other || operator.kind == Kind::Kernel));
    }
}

#[test]
fn operators_named_by_others_are_in_the_table() {
    for operator in all() {
        let named = [
            operator.chain,
            operator.chain_of_one,
            operator.mirror,
            operator.at_pattern,
            operator.where_stored,
        ];
        let known = |name: &&str| find(name).is_some_and(|found| found.is_called(name));
        assert!(named.iter().flatten().all(known), "{}", operator.name);
        assert!(operator.chain_of_one.is_none() || operator.chain.is_some(), "{}", operator.name);
    }
}

/// Rust's signs compute what the formulas do.
#[test]
fn traits_of_rust_stand_for_the_operators_of_their_sign() {
    for (name, wanted) in [
        ("add", Some(("Add", "add"))),
        ("subtract", Some(("Sub", "sub"))),
        ("multiply", Some(("Mul", "mul"))),
        ("divide", Some(("Div", "div"))),
        ("negative", Some(("Neg", "neg"))),
        ("maximum", None),
    ] {
        assert_eq!(find(name).unwrap().std_trait, wanted);
    }
    assert_eq!(all().filter(|operator| operator.std_trait.is_some()).count(), 5);
}

/// The files of a folder, those of its folders among them.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files(&path, found) } else { found.push(path) }
    }
}

/// What an operator is, is asked of its columns: outside of the table no code compares its name.
#[test]
fn no_code_outside_the_table_compares_the_name_of_an_operator() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut all_files = Vec::new();
    for folder in ["src", "../sparse-macros/src"] {
        // Where the crate is built by itself there is no other.
        if root.join(folder).exists() {
            files(&root.join(folder), &mut all_files);
        }
    }
    let is_code = |path: &PathBuf| {
        let mut parts = path.strip_prefix(root).unwrap_or(path).components();
        let name = |part: std::path::Component<'_>| part.as_os_str().to_owned();
        !parts.any(|part| ["operators", "tests", "update_rules"].iter().any(|it| name(part) == *it))
            && !path.ends_with("tests.rs")
            && path.extension().is_some_and(|ending| ending == "rs")
    };
    let compares = |line: &str| {
        let line = line.trim();
        let by_field = ["operator.name == ", "operator.name != ", "(&apply.operator.name)"];
        let of_match = ["operator.name {", "operator.name, "].iter().any(|it| line.contains(it));
        let matched = line.contains("match ") && of_match;
        let named = |name: &str| {
            let literal = [
                format!("== \"{name}\""),
                format!("!= \"{name}\""),
                format!("is_called(\"{name}\")"),
                format!("\"{name}\" =>"),
                format!("\"{name}\" if "),
                format!("\"{name}\" | "),
            ];
            literal.iter().any(|text| line.contains(text))
        };
        !line.starts_with("//")
            && (matched
                || by_field.iter().any(|text| line.contains(text))
                || line.contains("operator") && all().any(|operator| named(operator.name)))
    };
    let mut checked = 0;
    for path in all_files.iter().filter(|path| is_code(path)) {
        let text = fs::read_to_string(path).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        for line in code.lines() {
            assert!(!compares(line), "{}: {line}", path.display());
        }
        checked += 1;
    }
    assert!(checked > 50, "{checked} files");
}
