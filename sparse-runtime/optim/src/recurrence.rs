//! Recurrences as formulas: what a device that compiles its kernels while the program runs is told
//! of a rule.

use sparse_core::formula::parse;
use sparse_core::operators::scalar;

/// Where the two numbers of a rule that corrects gradients are.
const GATHERS: usize = MOST_NUMBERS - 2;
const SHARE: usize = MOST_NUMBERS - 1;

/// How many numbers of a step a recurrence may name.
pub const MOST_NUMBERS: usize = 12;

/// The recurrence of an update rule: scalar formulas in the language of the
/// [operator table](sparse_core::operators::scalar), for one weight.
///
/// Formulas name the weight `w`, its gradient `g`, the states by their
/// [names](super::UpdateRule::STATES), the [numbers of the step](super::Step::numbers) by those in
/// `numbers`, and what was assigned before. [`Step::update`](super::Step::update) is the same
/// recurrence in Rust; a test holds each rule's to the other.
///
/// ```
/// use nnz::core::update_rules::{AdaGrad, UpdateRule};
/// let recurrence = AdaGrad::RECURRENCE.expect("a rule of this library");
/// assert_eq!(recurrence.numbers[..2], ["rescale", "clip"]);
/// assert_eq!(recurrence.assignments[0], ("G", "G + q * q"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Recurrence {
    /// The names of the numbers of a step, at most [`MOST_NUMBERS`].
    pub numbers: &'static [&'static str],
    /// The gradient as the rule uses it, `q`.
    pub gradient: &'static str,
    /// Of a rule with a state [of the row](super::OfRow): what is done to it before the
    /// assignments.
    pub row: Option<RowRecurrence>,
    /// Names and the formulas of what they become, in order: states, `w`, and others for later
    /// formulas.
    pub assignments: &'static [(&'static str, &'static str)],
    /// Of a rule [by norms](super::Step::BY_NORMS): what is done to all weights after the
    /// assignments, which leave them alone.
    pub norms: Option<NormRecurrence>,
    /// What idle steps do, where they have a closed form that is not the last of them.
    pub idle: Option<IdleRecurrence>,
    /// What steps do that all have the same gradient `g`, where they have one: of it the rule makes
    /// the same `q` at each.
    pub drift: Option<IdleRecurrence>,
    /// Of a rule that [corrects](super::UpdateRule::CORRECTS) gradients: all of this is that of the
    /// rule which gets them. A state more is the mean gradient, and two numbers of the step more,
    /// the [last](MOST_NUMBERS) ones, say whether it only gathers, and the share of a gradient in
    /// the mean. Idle steps of it are steps of the other rule with the mean as their gradient.
    pub corrects: bool,
}

/// What a run of steps does to a weight and its state, as formulas over the numbers of its map:
/// [`Step::apply_idle`](super::Step::apply_idle) or [`Step::apply_drift`](super::Step::apply_drift)
/// is the same in Rust, and a test holds the two to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IdleRecurrence {
    /// The names of the map's numbers, in the order in which it [writes](super::IdleMap::write)
    /// them.
    pub numbers: &'static [&'static str],
    /// Names and the formulas of what they become, in order; they may name the numbers of the step
    /// as well, which are the same at all rates.
    pub assignments: &'static [(&'static str, &'static str)],
}

/// Numbers of a map of idle steps that are arguments of a kernel, at most.
pub const MOST_IDLE_NUMBERS: usize = 6;

impl Recurrence {
    /// Whether there are formulas of idle steps, of few enough numbers for a kernel.
    pub(super) const fn has_idle_kernel(&self) -> bool {
        match self.idle {
            Some(idle) => idle.numbers.len() <= MOST_IDLE_NUMBERS,
            None => false,
        }
    }
}

/// What the gradients of a row do to the state of the row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RowRecurrence {
    /// The term of one weight in a mean over the row, `mean`.
    pub term: &'static str,
    /// Names of states and the formulas of what they become.
    pub assignments: &'static [(&'static str, &'static str)],
}

/// What all weights of a parameter do by its norms: `w ← w - rate · direction`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NormRecurrence {
    /// The direction, of a weight and its states as the assignments left them.
    pub direction: &'static str,
    /// The rate, of the numbers of the step, `weight_norm` and `direction_norm`.
    pub rate: &'static str,
}

/// `clip(rescale · g)`, see `Preparation::apply`.
pub(super) const CLIPPED: &str = "max(min(rescale * g, clip), -clip)";

/// `clip(rescale · g + decay · w)`, see `Preparation::with_decay`.
pub(super) const CLIPPED_WITH_DECAY: &str = "max(min(rescale * g + decay * w, clip), -clip)";

/// A hyperparameter of a step as a number. [`ChoiceOfStep`] has the method for choices: two traits,
/// since elsewhere `bool` might become an element type.
pub(super) trait NumberOfStep {
    fn number(self) -> f64;
}

impl<T: sparse_core::element::Float> NumberOfStep for T {
    fn number(self) -> f64 {
        self.as_f64()
    }
}

/// A choice of a step as a number: 0 or 1.
pub(super) trait ChoiceOfStep {
    fn number(self) -> f64;
}

impl ChoiceOfStep for bool {
    fn number(self) -> f64 {
        f64::from(u8::from(self))
    }
}

impl Recurrence {
    /// Whether a weight costs a quotient, and the root that goes with it, as a rule for loops that
    /// have vectors for these.
    ///
    /// ```
    /// use nnz::core::update_rules::{Ftrl, Sgd, UpdateRule};
    /// assert!(Ftrl::RECURRENCE.is_some_and(|recurrence| recurrence.divides()));
    /// assert!(!Sgd::RECURRENCE.is_some_and(|recurrence| recurrence.divides()));
    /// ```
    pub const fn divides(&self) -> bool {
        let mut assignments = self.assignments;
        while let [(_, formula), rest @ ..] = assignments {
            let mut symbols = formula.as_bytes();
            while let [symbol, rest @ ..] = symbols {
                if *symbol == b'/' {
                    return true;
                }
                symbols = rest;
            }
            assignments = rest;
        }
        false
    }

    /// Makes a step on the weights of a row, or of a parameter if it is [by norms](Self::norms), by
    /// the formulas, in `f64`: what kernels made of them are tested against. `numbers` are those of
    /// the step, and `weights` have a value and a gradient each.
    ///
    /// `states` are those of each weight, in order, or the one block of the row.
    ///
    /// # Errors
    ///
    /// A formula that is not well formed or names what there is not, in words.
    pub fn step(
        &self,
        names: &[&str],
        numbers: &[f64],
        weights: &mut [(f64, f64)],
        states: &mut [Vec<f64>],
    ) -> Result<(), String> {
        if self.corrects {
            return self.corrected_step(names, numbers, weights, states);
        }
        let known = |weight: (f64, f64), state: &[f64]| {
            let mut known = vec![("w", weight.0), ("g", weight.1)];
            known.extend(self.numbers.iter().copied().zip(numbers.iter().copied()));
            known.extend(names.iter().copied().zip(state.iter().copied()));
            known
        };
        if let (Some(row), Some(state)) = (&self.row, states.first_mut()) {
            let mut sum = 0.0;
            for weight in &*weights {
                let mut known = known(*weight, state);
                assign(&mut known, "q", self.gradient)?;
                sum += value(&known, row.term)?;
            }
            let mut known = known((0.0, 0.0), state);
            known.push(("mean", sum / weights.len().max(1) as f64));
            for (name, formula) in row.assignments {
                assign(&mut known, name, formula)?;
            }
            keep(&known, names, state);
        }
        for (position, weight) in weights.iter_mut().enumerate() {
            let of_row = self.row.is_some();
            let Some(state) = states.get_mut(if of_row { 0 } else { position }) else { continue };
            let mut known = known(*weight, state);
            assign(&mut known, "q", self.gradient)?;
            for (name, formula) in self.assignments {
                assign(&mut known, name, formula)?;
            }
            keep(&known, names, state);
            weight.0 = value(&known, "w")?;
        }
        let Some(norms) = &self.norms else { return Ok(()) };
        let mut directions = Vec::new();
        for (weight, state) in weights.iter().zip(&*states) {
            directions.push(value(&known(*weight, state), norms.direction)?);
        }
        let norm = |of: &mut dyn Iterator<Item = f64>| of.map(|x| x * x).sum::<f64>().sqrt();
        let mut known = known((0.0, 0.0), &[]);
        known.push(("weight_norm", norm(&mut weights.iter().map(|weight| weight.0))));
        known.push(("direction_norm", norm(&mut directions.iter().copied())));
        let rate = value(&known, norms.rate)?;
        weights.iter_mut().zip(directions).for_each(|(weight, along)| weight.0 -= rate * along);
        Ok(())
    }
}

impl Recurrence {
    /// [`step`](Self::step) of a rule that corrects gradients.
    fn corrected_step(
        &self,
        names: &[&str],
        numbers: &[f64],
        weights: &mut [(f64, f64)],
        states: &mut [Vec<f64>],
    ) -> Result<(), String> {
        let inner = Recurrence { corrects: false, ..*self };
        let number = |place: usize| numbers.get(place).copied().unwrap_or_default();
        for (weight, state) in weights.iter_mut().zip(states) {
            let Some((mean, of_inner)) = state.split_last_mut() else { continue };
            let given = weight.1;
            if number(GATHERS) == 0.0 {
                let (mut one, mut kept) = ([(weight.0, given + *mean)], [of_inner.to_vec()]);
                inner.step(names, numbers, &mut one, &mut kept)?;
                weight.0 = one[0].0;
                of_inner.copy_from_slice(&kept[0]);
            }
            *mean += number(SHARE) * given;
        }
        Ok(())
    }

    /// Makes a run of idle steps on a weight by the formulas, in `f64`. `numbers` are those of any
    /// step, and `map` those of the map of the run.
    ///
    /// # Errors
    ///
    /// As [`step`](Self::step); a rule without such formulas.
    pub fn idle_steps(
        &self,
        names: &[&str],
        numbers: &[f64],
        map: &[f64],
        weight: &mut f64,
        state: &mut [f64],
    ) -> Result<(), String> {
        let idle = self.idle.as_ref().ok_or("there are no formulas of idle steps")?;
        let mut known = vec![("w", *weight)];
        known.extend(self.numbers.iter().copied().zip(numbers.iter().copied()));
        known.extend(idle.numbers.iter().copied().zip(map.iter().copied()));
        known.extend(names.iter().copied().zip(state.iter().copied()));
        if self.corrects {
            known.extend(state.last().map(|mean| ("g", *mean)));
            assign(&mut known, "q", self.gradient)?;
        }
        for (name, formula) in idle.assignments {
            assign(&mut known, name, formula)?;
        }
        keep(&known, names, state);
        *weight = value(&known, "w")?;
        Ok(())
    }
}

/// Names that are known, the newest of each counting.
type Known<'a> = Vec<(&'a str, f64)>;

fn value(known: &Known<'_>, formula: &str) -> Result<f64, String> {
    let newest = |name: &str| known.iter().rev().find(|(known, _)| *known == name).map(|of| of.1);
    scalar::value(&parse(formula)?, &newest)
}

fn assign<'a>(known: &mut Known<'a>, name: &'a str, formula: &str) -> Result<(), String> {
    let value = value(known, formula)?;
    known.push((name, value));
    Ok(())
}

fn keep(known: &Known<'_>, names: &[&str], state: &mut [f64]) {
    for (state, name) in state.iter_mut().zip(names) {
        if let Some((_, value)) = known.iter().rev().find(|(known, _)| known == name) {
            *state = *value;
        }
    }
}
