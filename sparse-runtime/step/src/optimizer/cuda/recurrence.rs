//! Recurrences of update rules as statements of CUDA C++.

use nnz_device::cuda::{Source, Word, expression};
use nnz_optim::{MOST_NUMBERS, Recurrence, UpdateRule};
use std::any::Any;
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash, Hasher};

/// A part of the recurrence of an update rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum RecurrencePart {
    /// What becomes of a weight and its state.
    Weight,
    /// The term of a weight in the mean over its row.
    Term,
    /// What becomes of the state of a row.
    Row,
    /// What becomes of a weight and its state in a run of idle steps.
    Idle,
    /// Along what a weight moves by norms.
    Direction,
    /// How far, of the norms.
    Rate,
}

/// A part of the recurrence of a rule, as the source of a macro's text.
#[derive(Debug, PartialEq, Eq, Hash)]
struct PartOfRule {
    /// The part.
    part: RecurrencePart,
    /// The rule's formulas, if it has some.
    rule: Option<Recurrence>,
    /// The names of its states.
    states: &'static [&'static str],
}

impl PartOfRule {
    const fn of<R: UpdateRule>(part: RecurrencePart) -> Self {
        PartOfRule { part, rule: R::RECURRENCE, states: R::STATES }
    }
}

/// A part of the recurrence of a rule, as what a macro stands for.
pub(super) fn word<R: UpdateRule>(part: RecurrencePart) -> Word {
    Word::Source(match part {
        RecurrencePart::Weight => const { &PartOfRule::of::<R>(RecurrencePart::Weight) },
        RecurrencePart::Term => const { &PartOfRule::of::<R>(RecurrencePart::Term) },
        RecurrencePart::Row => const { &PartOfRule::of::<R>(RecurrencePart::Row) },
        RecurrencePart::Idle => const { &PartOfRule::of::<R>(RecurrencePart::Idle) },
        RecurrencePart::Direction => const { &PartOfRule::of::<R>(RecurrencePart::Direction) },
        RecurrencePart::Rate => const { &PartOfRule::of::<R>(RecurrencePart::Rate) },
    })
}

impl Source for PartOfRule {
    fn is(&self, other: &dyn Any) -> bool {
        other.downcast_ref() == Some(self)
    }

    fn hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        Hash::hash(self, &mut hasher);
        hasher.finish()
    }

    fn text(&self) -> String {
        let PartOfRule { part, rule: Some(rule), states } = self else { return String::new() };
        match part {
            RecurrencePart::Weight => recurrence(rule, states),
            RecurrencePart::Term => row_recurrence(rule, states)[0].clone(),
            RecurrencePart::Row => row_recurrence(rule, states)[1].clone(),
            RecurrencePart::Idle => idle_recurrence(rule, states),
            RecurrencePart::Direction => norm_recurrence(rule, states)[0].clone(),
            RecurrencePart::Rate => norm_recurrence(rule, states)[1].clone(),
        }
    }
}

/// The recurrence of an update rule as statements over numbers of the type `REAL`: they change the
/// weight `w` by its gradient `g` and the first elements of `state`, which have these names.
/// Numbers of the step are elements of `step`.
///
/// # Panics
///
/// If a formula is not well formed: the tests of the rules rule it out.
fn recurrence(rule: &Recurrence, states: &[&str]) -> String {
    let first = [("q", rule.gradient)];
    let assignments = || first.iter().chain(rule.assignments);
    let of_step = number_of_step(rule, REAL);
    match states.split_last().filter(|_| rule.corrects) {
        None => statements(REAL, states, assignments(), "", &of_step),
        // The last state is the mean gradient, which the other rule gets as well.
        Some((_, states)) => {
            let (mean, inner) =
                (states.len(), statements(REAL, states, assignments(), "", &of_step));
            let (gathers, share) = (MOST_NUMBERS - 2, MOST_NUMBERS - 1);
            format!(
                "REAL given_gradient = g, mean_gradient = state[{mean}]; \
                 if (step.at[{gathers}] == 0) {{ REAL g = given_gradient + mean_gradient; {inner}}} \
                 state[{mean}] = mean_gradient + REAL(step.at[{share}]) * given_gradient; "
            )
        }
    }
}

/// Of a rule with a state of the row: statements that make the `term` of a weight, and those that
/// change the state by the `mean`.
///
/// # Panics
///
/// As [`recurrence`].
fn row_recurrence(rule: &Recurrence, states: &[&str]) -> [String; 2] {
    let Some(row) = &rule.row else { return [String::new(), String::new()] };
    let term = [("q", rule.gradient), ("term", row.term)];
    let of_step = number_of_step(rule, REAL);
    [
        statements(REAL, states, term.iter(), "term", &of_step),
        statements(REAL, states, row.assignments.iter(), "", &of_step),
    ]
}

/// Of a rule that moves weights by norms: statements that make the `direction` of a weight, and
/// those that make the `rate`, which is an `f64`.
///
/// # Panics
///
/// As [`recurrence`].
fn norm_recurrence(rule: &Recurrence, states: &[&str]) -> [String; 2] {
    let Some(norms) = &rule.norms else { return [String::new(), String::new()] };
    let direction = [("direction", norms.direction)];
    let rate = [("rate", norms.rate)];
    [
        statements(REAL, states, direction.iter(), "direction", &number_of_step(rule, REAL)),
        statements("f64", &[], rate.iter(), "rate", &number_of_step(rule, "f64")),
    ]
}

/// What a run of idle steps does, as statements over numbers of the type `f64`: they change the
/// weight `w` and the first elements of `state` by the numbers of a map, which are elements of
/// `map`. Nothing of a rule without such formulas.
///
/// # Panics
///
/// As [`recurrence`].
fn idle_recurrence(rule: &Recurrence, states: &[&str]) -> String {
    let Some(idle) = &rule.idle else { return String::new() };
    let of_step = number_of_step(rule, "f64");
    let known = |name: &str| {
        let of_map = idle.numbers.iter().position(|number| *number == name);
        of_map.map(|position| format!("map[{position}]")).or_else(|| of_step(name))
    };
    match states.split_last().filter(|_| rule.corrects) {
        None => statements("f64", states, idle.assignments.iter(), "", &known),
        // Steps of the other rule by the mean gradient, which stays.
        Some((_, states)) => {
            let first = [("q", rule.gradient)];
            let assignments = first.iter().chain(idle.assignments);
            let inner = statements("f64", states, assignments, "", &known);
            format!("f64 g = state[{}]; {inner}", states.len())
        }
    }
}

/// The type of elements, in texts.
const REAL: &str = "REAL";

/// The number of a step by its name, of a type.
fn number_of_step(rule: &Recurrence, real: &str) -> impl Fn(&str) -> Option<String> {
    move |name| {
        let position = rule.numbers.iter().position(|number| *number == name)?;
        Some(format!("{real}(step.at[{position}])"))
    }
}

fn statements<'a>(
    real: &str,
    states: &[&str],
    assignments: impl Iterator<Item = &'a (&'a str, &'a str)>,
    result: &str,
    known: &dyn Fn(&str) -> Option<String>,
) -> String {
    let mut text = String::new();
    let mut declared = vec!["w", result];
    // Writing to a string does not fail.
    for (position, state) in states.iter().enumerate() {
        let _ = write!(text, "{real} {state} = state[{position}]; ");
        declared.push(state);
    }
    for (name, formula) in assignments {
        let value = expression(real, formula, known);
        if !declared.contains(name) {
            let _ = write!(text, "{real} ");
        }
        let _ = write!(text, "{name} = {value}; ");
        declared.push(name);
    }
    for (position, state) in states.iter().enumerate() {
        let _ = write!(text, "state[{position}] = {state}; ");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use nnz_optim::{IdleRecurrence, NormRecurrence};

    #[test]
    fn a_recurrence_declares_what_it_names_once() {
        let rule = Recurrence {
            numbers: &["rate"],
            gradient: "-g",
            row: None,
            assignments: &[("h", "h + q"), ("w", "w - rate * h")],
            norms: Some(NormRecurrence {
                direction: "h + w",
                rate: "rate * weight_norm / direction_norm",
            }),
            idle: Some(IdleRecurrence {
                numbers: &["scale"],
                assignments: &[("w", "w - scale * rate * h"), ("h", "max(h, 0)")],
            }),
            drift: None,
            corrects: false,
        };
        assert_eq!(
            recurrence(&rule, &["h"]),
            "REAL h = state[0]; REAL q = (-g); h = (h + q); w = (w - (REAL(step.at[0]) * h)); state[0] = h; "
        );
        assert_eq!(
            idle_recurrence(&rule, &["h"]),
            "f64 h = state[0]; w = (w - ((map[0] * f64(step.at[0])) * h)); h = formula_at_least<f64>(h, f64(0.0)); state[0] = h; "
        );
        let [direction, rate] = norm_recurrence(&rule, &["h"]);
        assert_eq!(direction, "REAL h = state[0]; direction = (h + w); state[0] = h; ");
        assert_eq!(rate, "rate = ((f64(step.at[0]) * weight_norm) / direction_norm); ");
        let corrects = Recurrence { corrects: true, ..rule };
        let step = recurrence(&corrects, &["h", "mean gradient"]);
        assert!(
            step.contains("REAL g = given_gradient + mean_gradient; REAL h = state[0];"),
            "{step}"
        );
        assert!(step.ends_with("state[1] = mean_gradient + REAL(step.at[11]) * given_gradient; "));
        let idle = idle_recurrence(&corrects, &["h", "mean gradient"]);
        assert!(
            idle.starts_with("f64 g = state[1]; f64 h = state[0]; f64 q = (-g); w = "),
            "{idle}"
        );
    }
}
