//! Declared operators: specs like those of the table, made while the user's crate compiles.
//!
//! A spec lives as long as the compiler, which is one process for each crate: what a declaration
//! says is kept for good, a few hundred bytes.

use super::unary::{DENSE_ONLY, ZERO_PRESERVING, gradient_family, gradient_rules};
use super::write::{self, DEFAULTS, no_gradient};
use super::{
    DeclaredKernel, Gradient, IdsBelow, Kind, Operator, ResultRows, RowNames, RowUse, RowsRead,
    Rule, Weights,
};
use crate::shapes::{names_of, terms};
use crate::storage::{Storage, join};

/// The declaration of an operator. [`check`](Declaration::check) it before its specs are
/// made.
#[derive(Clone, Debug, Default)]
pub struct Declaration {
    /// The name in the language.
    pub name: String,
    /// Its operands, in order.
    pub operands: Vec<String>,
    /// The shape rule; where there is none, all arrays have one shape.
    pub shape: Option<String>,
    /// The storage rules.
    pub rules: Vec<String>,
    /// Operands and the formulas of their gradients.
    pub gradients: Vec<(String, String)>,
    /// Tables of which some rows are read, and what names these; all rows of any other.
    pub reads: Vec<(String, NamedRows)>,
    /// What names the table rows of a row_sparse result; where there is nothing, any rows.
    pub stores: Option<NamedRows>,
    /// What is said of a function of each element, which needs no rules.
    pub each: Option<Each>,
}

/// What names table rows, as [`RowNames`] in the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NamedRows {
    /// The columns that this csr operand stores.
    Columns(String),
    /// The ids in this operand.
    Ids(String),
}

impl NamedRows {
    /// The operand that holds the names.
    pub fn operand(&self) -> &str {
        match self {
            NamedRows::Columns(operand) | NamedRows::Ids(operand) => operand,
        }
    }

    /// How that operand is stored.
    pub(super) fn pattern(&self) -> &'static str {
        match self {
            NamedRows::Columns(_) => "csr",
            NamedRows::Ids(_) => "ids",
        }
    }

    fn kept(&self) -> RowNames {
        match self {
            NamedRows::Columns(operand) => RowNames::Columns(keep(operand)),
            NamedRows::Ids(operand) => RowNames::Ids(keep(operand)),
        }
    }
}

/// A function of each element.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Each {
    /// Its value at 0, where that is said: a function that is 0 there keeps what is stored.
    pub at_zero: Option<f64>,
    /// Whether its derivative is given, as a function too.
    pub has_derivative: bool,
    /// The derivative at 0, where that is said.
    pub slope_at_zero: Option<f64>,
}

/// What of a declaration is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeclaredPart {
    /// The shape rule.
    Shape,
    /// A storage rule, by position.
    Rule(usize),
    /// The table whose rows are read, by position.
    Reads(usize),
    /// The rows of the result.
    Stores,
}

/// The words of storage rules.
const PATTERNS: [&str; 5] = ["dense", "csr", "row_sparse", "scalar", "ids"];

impl Declaration {
    /// What is not well formed, and what to write.
    pub fn check(&self) -> Vec<(DeclaredPart, String, String)> {
        let rules = self.rules.iter().enumerate().filter_map(|(index, rule)| {
            let (message, help) = self.check_rule(rule).err()?;
            Some((DeclaredPart::Rule(index), message, help))
        });
        let shape = self.shape.as_deref().and_then(|shape| self.check_shape(shape).err());
        let shape = shape.map(|(message, help)| (DeclaredPart::Shape, message, help));
        let mut faults: Vec<_> = rules.chain(shape).collect();
        // What names rows is compared with rules and shapes that are well formed.
        if faults.is_empty() {
            faults = super::declared_rows::faults(self);
        }
        faults
    }

    fn check_rule(&self, rule: &str) -> Result<(), (String, String)> {
        let example = || {
            let operands = vec!["dense"; self.operands.len()].join(" ");
            format!("write `rule {operands} -> dense = crate::function;`")
        };
        let Some((operands, result)) = rule.split_once("->") else {
            return Err((format!("the rule `{rule}` has no result"), example()));
        };
        let operands: Vec<&str> = operands.split_whitespace().collect();
        if let Some(word) = operands.iter().find(|word| !PATTERNS.contains(word)) {
            let message = format!("`{word}` is not what an operand of a rule can be");
            return Err((message, format!("operands are `{}`", PATTERNS.join("`, `"))));
        }
        let result = result.trim();
        if result.parse::<Storage>().is_err() {
            let message = format!("`{result}` is not what the result of a rule can be");
            return Err((message, format!("results are `{}`", join(&Storage::ALL, "`, `"))));
        }
        if operands.len() != self.operands.len() {
            let message = format!(
                "the rule `{rule}` is for {}, but `{}` has {}",
                operands.len(),
                self.name,
                self.operands.len()
            );
            return Err((message, example()));
        }
        Ok(())
    }

    fn check_shape(&self, shape: &str) -> Result<(), (String, String)> {
        let example = |message: String| {
            let operands = vec!["[n, k]"; self.operands.len()].join(" ");
            let help = format!(
                "write a shape for each operand, and that of the result: `shape {operands} -> [n];`; `same` is one shape, `any` any"
            );
            Err((message, help))
        };
        let Some((operands, result)) = shape.split_once("->") else {
            return example(format!("the shape rule `{shape}` has no result"));
        };
        let patterns = terms(operands);
        if patterns.len() != self.operands.len() {
            let (found, name, wanted) = (patterns.len(), &self.name, self.operands.len());
            return example(format!(
                "the shape rule has {found} shapes for operands, but `{name}` has {wanted}"
            ));
        }
        let named = |pattern: &&&str| pattern.starts_with('[');
        if let Some(word) = patterns.iter().find(|word| {
            !named(word) && !["same", "any"].contains(*word) || word.matches('[').count() > 1
        }) {
            return example(format!("`{word}` is not the shape of an operand"));
        }
        let letters: Vec<&str> =
            patterns.iter().filter(named).flat_map(|word| names_of(word)).collect();
        match result.trim() {
            "same" if patterns.contains(&"same") => Ok(()),
            result if result.starts_with('[') && result.ends_with(']') => {
                let mut unknown = names_of(result).into_iter();
                let unknown =
                    unknown.find(|name| name.parse::<u64>().is_err() && !letters.contains(name));
                match unknown {
                    None => Ok(()),
                    Some(name) => {
                        example(format!("`{name}` is in the result's shape, and in no operand's"))
                    }
                }
            }
            other => example(format!("`{other}` is not the shape of a result")),
        }
    }

    /// The spec, and that of its gradient where it is a function of each element with a derivative.
    /// `index` is given back by [`Kind::Declared`].
    ///
    /// # Panics
    ///
    /// If a rule is not well formed: see [`check`](Declaration::check).
    pub fn specs(&self, index: usize) -> Vec<&'static Operator> {
        let name = keep(&self.name);
        let operands: Vec<&'static str> = self.operands.iter().map(|name| keep(name)).collect();
        let operands = keep_all(operands);
        let mut gradient: Vec<Gradient> = self
            .gradients
            .iter()
            .map(|(operand, formula)| write::gradient(keep(operand), keep(formula)))
            .collect();
        let Some(each) = self.each else {
            let rules = self.rules.iter().map(|rule| Rule::new(keep(rule))).collect();
            let spec = Operator {
                name,
                operands,
                shape: keep(self.shape.as_deref().unwrap_or(&self.one_shape())),
                storage: keep_all(rules),
                gradient: keep_all(gradient),
                kind: Kind::Declared(index, DeclaredKernel::OfRule),
                weights: Weights::Tables,
                reads_rows: keep_all(self.reads.iter().map(rows_read).collect()),
                result_rows: keep_all(self.stores.iter().map(rows_stored).collect()),
                ids_below: self.reads.iter().find_map(ids_below),
                ..DEFAULTS
            };
            return vec![Box::leak(Box::new(spec))];
        };
        let mut specs: Vec<&'static Operator> = Vec::new();
        let keeps_zero = each.at_zero == Some(0.0);
        if each.has_derivative {
            // Not said, it is not known to be 0.
            let slope = each.slope_at_zero.unwrap_or(1.0);
            let spec = Operator {
                name: keep(&format!("{name}_gradient")),
                operands: keep_all(vec!["grad", operands[0]]),
                shape: "same same -> same",
                storage: gradient_rules(each.at_zero.unwrap_or(1.0), slope),
                gradient: keep_all(vec![
                    no_gradient("grad", "second derivatives are not offered"),
                    no_gradient(operands[0], "second derivatives are not offered"),
                ]),
                kind: Kind::Declared(
                    index,
                    DeclaredKernel::EachGradient(gradient_family(slope) != gradient_family(0.0)),
                ),
                internal: true,
                ..DEFAULTS
            };
            let formula = format!("{name}_gradient(grad, {})", operands[0]);
            gradient.push(write::gradient(operands[0], keep(&formula)));
            specs.push(Box::leak(Box::new(spec)));
        }
        let alternative = match each.at_zero {
            Some(value) => {
                format!("`{name}(0)` is `{value}`; write `{name}(dense({{}}))` to accept the cost")
            }
            None => format!(
                "nothing says that `{name}(0)` is 0: write `at_zero = 0;` in the operator if it is, or `{name}(dense({{}}))` to \
                 accept the cost"
            ),
        };
        let spec = Operator {
            name,
            operands,
            storage: if keeps_zero { ZERO_PRESERVING } else { DENSE_ONLY },
            gradient: keep_all(gradient),
            kind: Kind::Declared(index, DeclaredKernel::Each),
            alternative: (!keeps_zero).then(|| keep(&alternative)),
            ..DEFAULTS
        };
        specs.insert(0, Box::leak(Box::new(spec)));
        specs
    }

    /// All arrays have one shape; numbers have none.
    fn one_shape(&self) -> String {
        let is_number = |operand: usize| {
            let word = |rule: &String| rule.split_whitespace().nth(operand) == Some("scalar");
            self.rules.iter().all(word)
        };
        let operands = 0..self.operands.len();
        let operands = operands.map(|operand| if is_number(operand) { "any" } else { "same" });
        format!("{} -> same", operands.collect::<Vec<_>>().join(" "))
    }
}

fn rows_read((table, by): &(String, NamedRows)) -> RowsRead {
    RowsRead { table: keep(table), by: Some(by.kept()), when: None, what: RowUse::Otherwise }
}

fn rows_stored(by: &NamedRows) -> ResultRows {
    ResultRows::Named(by.kept())
}

/// Ids that name rows of a table are below the number of its rows.
fn ids_below((table, by): &(String, NamedRows)) -> Option<IdsBelow> {
    match by {
        NamedRows::Ids(ids) => Some(IdsBelow { ids: keep(ids), of: keep(table), axis: 0 }),
        NamedRows::Columns(_) => None,
    }
}

fn keep(text: &str) -> &'static str {
    text.to_owned().leak()
}

fn keep_all<T>(list: Vec<T>) -> &'static [T] {
    list.leak()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_two() -> Declaration {
        let names = ["x", "y"].map(str::to_owned).to_vec();
        Declaration { name: "f".into(), operands: names, ..Declaration::default() }
    }

    #[test]
    fn malformed_declarations_are_named() {
        for (rule, message) in [
            ("dense dense", "the rule `dense dense` has no result"),
            ("dense csc -> dense", "`csc` is not what an operand of a rule can be"),
            ("dense dense -> ids", "`ids` is not what the result of a rule can be"),
            ("dense -> dense", "the rule `dense -> dense` is for 1, but `f` has 2"),
        ] {
            let declaration = Declaration { rules: vec![rule.into()], ..of_two() };
            let found = declaration.check();
            assert_eq!((found[0].0, found[0].1.as_str()), (DeclaredPart::Rule(0), message));
        }
        for (shape, message) in [
            ("[n, k] [k]", "the shape rule `[n, k] [k]` has no result"),
            ("[n, k] -> [n]", "the shape rule has 1 shapes for operands, but `f` has 2"),
            ("[n, k] like -> [n]", "`like` is not the shape of an operand"),
            ("[n, k] [k] -> [m]", "`m` is in the result's shape, and in no operand's"),
            ("[n, k] any -> same", "`same` is not the shape of a result"),
        ] {
            let declaration = Declaration { shape: Some(shape.into()), ..of_two() };
            let found = declaration.check();
            assert_eq!((found[0].0, found[0].1.as_str()), (DeclaredPart::Shape, message));
        }
        for shape in ["[n, k] [k] -> [n, 2]", "same any -> same", "same same -> []"] {
            let declaration = Declaration { shape: Some(shape.into()), ..of_two() };
            assert!(declaration.check().is_empty(), "{shape}");
        }
    }

    #[test]
    fn a_function_of_elements_has_the_rules_of_the_table() {
        let specs = |each| {
            let names = vec!["x".to_owned()];
            let each = Some(Each { has_derivative: true, ..each });
            Declaration { name: "f".into(), operands: names, each, ..Declaration::default() }
                .specs(3)
        };
        let rules =
            |operator: &Operator| operator.storage.iter().map(Rule::text).collect::<Vec<_>>();
        let zero = specs(Each { at_zero: Some(0.0), ..Each::default() });
        assert_eq!(rules(zero[0]), ["dense -> dense", "csr -> csr", "row_sparse -> row_sparse"]);
        assert!(rules(zero[1]).contains(&"dense csr -> dense"));
        let flat = specs(Each { at_zero: Some(0.0), slope_at_zero: Some(0.0), ..Each::default() });
        assert!(rules(flat[1]).contains(&"dense csr -> csr"));
        let unknown = specs(Each::default());
        assert_eq!(rules(unknown[0]), ["dense -> dense"]);
        assert_eq!(unknown[1].kind, Kind::Declared(3, DeclaredKernel::EachGradient(true)));
    }
}
