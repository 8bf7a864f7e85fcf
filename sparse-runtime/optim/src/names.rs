//! The one list of rules, and rules by name.

use super::{
    AdaDelta, AdaGrad, AdaMax, Adam, AdamW, CenteredRmsProp, DcAsgd, Ftml, Ftrl, GroupAdaGrad,
    Lamb, Nadam, RmsProp, Sgd, Signum, UpdateRule,
};

/// Something that is done with a rule whose name is known only when the program runs.
#[diagnostic::on_unimplemented(
    message = "`{Self}` says nothing to be done with an update rule",
    note = "implement `RuleVisitor` for it: `visit` is generic in the rule, which a closure cannot \
            be"
)]
pub trait RuleVisitor {
    /// What comes of it.
    type Output;

    /// Does it, with the rule at its default hyperparameters.
    fn visit<R: UpdateRule>(self, rule: R) -> Self::Output;
}

/// There is no rule of that name.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no update rule `{name}`: the rules are {}", NAMES.join(", "))]
pub struct UnknownRule {
    /// The name given.
    pub name: String,
}

macro_rules! names {
    ($($Rule:ident),* $(,)?) => {
        /// A rule of this crate. Other crates compile their loops for these rules once.
        #[doc(hidden)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs)]
        pub enum BuiltIn {
            $($Rule,)*
        }

        /// The names of all rules.
        pub const NAMES: &[&str] = &[$($Rule::NAME),*];

        /// Calls the visitor with the rule of this name.
        ///
        /// ```
        /// use nnz::core::update_rules::{RuleVisitor, UpdateRule, with_rule};
        ///
        /// struct Rate;
        /// impl RuleVisitor for Rate {
        ///     type Output = f64;
        ///     fn visit<R: UpdateRule>(self, rule: R) -> f64 {
        ///         rule.learning_rate()
        ///     }
        /// }
        /// assert_eq!(with_rule("ftrl", Rate)?, 0.1);
        /// assert!(with_rule("ftlr", Rate).is_err());
        /// # Ok::<(), nnz::core::update_rules::UnknownRule>(())
        /// ```
        ///
        /// # Errors
        ///
        /// No rule has this name; the message lists those that there are.
        pub fn with_rule<V: RuleVisitor>(name: &str, visitor: V) -> Result<V::Output, UnknownRule> {
            match name {
                $($Rule::NAME => Ok(visitor.visit($Rule::default())),)*
                _ => Err(UnknownRule { name: name.to_owned() }),
            }
        }
    };
}

/// Passes the names of all rules of this crate to a macro: the one list of them.
#[doc(hidden)]
#[macro_export]
macro_rules! for_built_in_rules {
    ($then:ident) => {
        $then!(
            Sgd,
            AdaGrad,
            GroupAdaGrad,
            Ftrl,
            Adam,
            AdamW,
            RmsProp,
            CenteredRmsProp,
            AdaDelta,
            AdaMax,
            Nadam,
            Ftml,
            Signum,
            DcAsgd,
            Lamb,
        );
    };
}

for_built_in_rules!(names);
