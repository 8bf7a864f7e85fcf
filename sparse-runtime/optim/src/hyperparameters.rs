//! The hyperparameters of a rule as rows: name, place, bound. Checks and settings by name follow
//! from them.

use super::rule::words_of;
use super::{InvalidHyperparameter, RuleError};

/// A hyperparameter of a rule: its name, where its value lies, and what it may be.
#[derive(Debug)]
pub struct Hyperparameter<'a> {
    /// The field's name.
    pub name: &'static str,
    /// What it does, in a sentence of Markdown, for pages and command lines.
    pub meaning: &'static str,
    /// The field.
    pub value: Setting<'a>,
    /// What it may be.
    pub bound: Bound,
}

/// Where the value of a hyperparameter lies.
#[derive(Debug)]
pub enum Setting<'a> {
    /// A number.
    Number(&'a mut f64),
    /// A number that may be left out.
    Optional(&'a mut Option<f64>),
    /// A choice, 0 or 1 where numbers are written.
    Flag(&'a mut bool),
}

impl<'a> From<&'a mut f64> for Setting<'a> {
    fn from(value: &'a mut f64) -> Self {
        Setting::Number(value)
    }
}

impl<'a> From<&'a mut Option<f64>> for Setting<'a> {
    fn from(value: &'a mut Option<f64>) -> Self {
        Setting::Optional(value)
    }
}

impl<'a> From<&'a mut bool> for Setting<'a> {
    fn from(value: &'a mut bool) -> Self {
        Setting::Flag(value)
    }
}

/// What a hyperparameter may be. NaN is nowhere within.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// Above 0.
    Positive,
    /// Above 0 and finite.
    PositiveFinite,
    /// At least 0 and finite.
    AtLeastZero,
    /// In [0, 1).
    BelowOne,
    /// Finite.
    Finite,
    /// 0 or 1.
    Flag,
}

impl Bound {
    /// The bound in words, as messages say it after "must be".
    pub fn words(self) -> &'static str {
        match self {
            Bound::Positive => words_of!(Positive),
            Bound::PositiveFinite => words_of!(PositiveFinite),
            Bound::AtLeastZero => words_of!(AtLeastZero),
            Bound::BelowOne => words_of!(BelowOne),
            Bound::Finite => words_of!(Finite),
            Bound::Flag => words_of!(Flag),
        }
    }

    /// True where the bound holds of `value`.
    pub fn holds(self, value: f64) -> bool {
        match self {
            Bound::Positive => value > 0.0,
            Bound::PositiveFinite => value > 0.0 && value.is_finite(),
            Bound::AtLeastZero => value >= 0.0 && value.is_finite(),
            Bound::BelowOne => (0.0..1.0).contains(&value),
            Bound::Finite => value.is_finite(),
            Bound::Flag => value == 0.0 || value == 1.0,
        }
    }
}

impl Hyperparameter<'_> {
    /// The value as a number, or `None` where it is left out.
    pub fn get(&self) -> Option<f64> {
        match &self.value {
            Setting::Number(value) => Some(**value),
            Setting::Optional(value) => **value,
            Setting::Flag(value) => Some(f64::from(u8::from(**value))),
        }
    }

    /// Sets the value; whether it is within the bound is for [`check`](Self::check) to say. Of a
    /// choice, what is not 0 means yes.
    pub fn set(&mut self, number: f64) {
        match &mut self.value {
            Setting::Number(value) => **value = number,
            Setting::Optional(value) => **value = Some(number),
            Setting::Flag(value) => **value = number != 0.0,
        }
    }

    /// Refuses a value outside the bound.
    ///
    /// # Errors
    ///
    /// [`RuleError::Hyperparameter`], with the name, the value and the bound.
    pub fn check(&self, rule: &'static str) -> Result<(), RuleError> {
        self.get().map_or(Ok(()), |value| self.check_number(rule, value))
    }

    /// Refuses a number outside the bound.
    pub(super) fn check_number(&self, rule: &'static str, value: f64) -> Result<(), RuleError> {
        if self.bound.holds(value) {
            return Ok(());
        }
        let bound = self.bound.words();
        Err(InvalidHyperparameter { rule, name: self.name, value, bound }.into())
    }
}
