//! A rule in one statement.

/// The words of a [`Bound`](super::Bound), each once: in messages, and in the documentation of
/// fields.
macro_rules! words_of {
    (Positive) => {
        "positive"
    };
    (PositiveFinite) => {
        "positive and finite"
    };
    (AtLeastZero) => {
        "at least 0 and finite"
    };
    (BelowOne) => {
        "in [0, 1)"
    };
    (Finite) => {
        "finite"
    };
    (Flag) => {
        "0 or 1"
    };
}

/// States a rule: what it is, its name, the type of its step, the names of what a weight carries,
/// and its hyperparameters, each with type, default, bound and meaning. The struct, its defaults,
/// the rows of its hyperparameters, their documentation and the page of update rules follow.
///
/// The recurrence is that of `Step::update` as [formulas](super::Recurrence): `numbers` are what
/// they name of the resolved step, and `gradient` is how `q` is made,
/// [`CLIPPED`](super::recurrence::CLIPPED) or with decay.
///
/// `norms` has the formulas of `Step::direction` and `Step::rate_by_norms`, of a rule that has
/// these.
///
/// `idle` has the same of `Step::apply_idle`, over the numbers of its map, and `drift` of
/// `Step::apply_drift`: rules without them catch up on the host only.
///
/// `gives_weights` names the hyperparameters of which one must be above 0 where a weight is to have
/// a state, as [`UpdateRule::GIVES_WEIGHTS`](super::UpdateRule::GIVES_WEIGHTS) says.
///
/// Every rule has `clip_gradient`, `rescale_grad` and `lazy_update` besides. The step has a
/// function `resolve(rule, learning_rate, penalty_scale, clock)`; where a step depends on how many
/// were made before, `counts` names the rule's method that says for how long.
///
/// ```text
/// update_rule! {
///     /// Stochastic gradient descent.
///     pub struct Sgd = "sgd" {
///         /// Step size.
///         learning_rate: f64 = 0.01, PositiveFinite;
///     }
///     step: SgdStep;
///     states: ["velocity"];
///     numbers: |step| [learning_rate: step.learning_rate];
///     gradient: CLIPPED;
///     recurrence: [w = "w - learning_rate * q"];
/// }
/// ```
macro_rules! update_rule {
    (
        $(#[doc = $about:literal])+
        pub struct $Rule:ident = $name:literal {
            $(
                $(#[doc = $meaning:literal])+
                $field:ident: $type:ty = $default:expr, $bound:ident;
            )+
        }
        step: $Step:ident;
        states: [$($state:literal),*];
        $(one_rate: $one_rate:literal;)?
        $(gives_weights: [$($gives:literal),*];)?
        numbers: |$step:ident| [$($number:ident: $value:expr),* $(,)?];
        gradient: $gradient:ident;
        $(row: $term:literal, [$($of_row:ident = $row_formula:literal),*];)?
        recurrence: [$($assigned:ident = $formula:literal),* $(,)?];
        $(norms: $direction:literal, $by_norms:literal;)?
        $(idle: $IdleMap:ident [$($idle:ident = $idle_formula:literal),* $(,)?];)?
        $(drift: $DriftMap:ident [$($drifts:ident = $drift_formula:literal),* $(,)?];)?
        $(counts: $counts:ident;)?
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct $Rule {
            $(
                $(#[doc = $meaning])+
                #[doc = concat!(
                    "\n\n`", stringify!($default), "` by default; ",
                    $crate::rule::words_of!($bound), "."
                )]
                pub $field: $type,
            )+
            /// Clips each element of the rescaled gradient to ±this, where the formulas say `clip`.
            pub clip_gradient: Option<f64>,
            /// Multiplies the gradient before clipping. The gradient of a loss is already a mean
            /// over the batch.
            pub rescale_grad: f64,
            /// How row_sparse gradients are applied. `Exact`, the default, is refused where idle
            /// steps have no closed form.
            pub lazy_update: $crate::LazyUpdate,
        }

        impl Default for $Rule {
            fn default() -> Self {
                $Rule {
                    $($field: $default,)+
                    clip_gradient: None,
                    rescale_grad: 1.0,
                    lazy_update: $crate::LazyUpdate::Exact,
                }
            }
        }

        impl<T: sparse_core::element::Float> $Step<T> {
            /// What the rule's recurrence names, in its order.
            fn resolved(&self) -> [f64; $crate::MOST_NUMBERS] {
                #[allow(unused_imports)]
                use $crate::recurrence::{ChoiceOfStep as _, NumberOfStep as _};
                let $step = self;
                let [rescale, clip] = self.preparation.numbers();
                let given = [rescale, clip, $($value.number()),*];
                    std::array::from_fn(|place| given.get(place).copied().unwrap_or(0.0))
            }
        }

        impl $crate::UpdateRule for $Rule {
            const NAME: &'static str = $name;
            const BUILT_IN: Option<$crate::BuiltIn> = Some($crate::BuiltIn::$Rule);
            const ABOUT: &'static str = concat!($($about, "\n"),+);
            const STATES: &'static [&'static str] = &[$($state),*];
            $(const ONE_RATE: bool = $one_rate;)?
            $(const GIVES_WEIGHTS: &'static [&'static str] = &[$($gives),*];)?
            const RECURRENCE: Option<$crate::Recurrence> =
                Some($crate::Recurrence {
                    numbers: &["rescale", "clip", $(stringify!($number)),*],
                    gradient: $crate::recurrence::$gradient,
                    row: {
                        #[allow(unused_mut, unused_assignments)]
                        let mut row = None;
                        $(row = Some($crate::RowRecurrence {
                            term: $term,
                            assignments: &[$((stringify!($of_row), $row_formula)),*],
                        });)?
                        row
                    },
                    assignments: &[$((stringify!($assigned), $formula)),*],
                    norms: {
                        #[allow(unused_mut, unused_assignments)]
                        let mut norms = None;
                        $(norms = Some($crate::NormRecurrence {
                            direction: $direction,
                            rate: $by_norms,
                        });)?
                        norms
                    },
                    idle: {
                        #[allow(unused_mut, unused_assignments)]
                        let mut idle = None;
                        $(idle = Some($crate::IdleRecurrence {
                            numbers: <$IdleMap as $crate::IdleMap>::NUMBERS,
                            assignments: &[$((stringify!($idle), $idle_formula)),*],
                        });)?
                        idle
                    },
                    drift: {
                        #[allow(unused_mut, unused_assignments)]
                        let mut drift = None;
                        $(drift = Some($crate::IdleRecurrence {
                            numbers: <$DriftMap as $crate::IdleMap>::NUMBERS,
                            assignments: &[$((stringify!($drifts), $drift_formula)),*],
                        });)?
                        drift
                    },
                    corrects: false,
                });

            type Step<T: sparse_core::element::Float> = $Step<T>;

            fn hyperparameters(&mut self) -> Vec<$crate::Hyperparameter<'_>> {
                use $crate::{Bound, Hyperparameter};
                vec![
                    $(Hyperparameter {
                        name: stringify!($field),
                        meaning: concat!($($meaning),+),
                        value: (&mut self.$field).into(),
                        bound: Bound::$bound,
                    },)+
                    Hyperparameter {
                        name: "clip_gradient",
                        meaning: " Clips each element of the rescaled gradient to ±this.",
                        value: (&mut self.clip_gradient).into(),
                        bound: Bound::Positive,
                    },
                    Hyperparameter {
                        name: "rescale_grad",
                        meaning: " Multiplies the gradient before clipping.",
                        value: (&mut self.rescale_grad).into(),
                        bound: Bound::Finite,
                    },
                ]
            }

            fn learning_rate(&self) -> f64 {
                self.learning_rate
            }

            $(fn counts_until(&self) -> u64 {
                self.$counts()
            })?

            fn lazy_update(&self) -> $crate::LazyUpdate {
                self.lazy_update
            }

            fn set_lazy_update(&mut self, lazy_update: $crate::LazyUpdate) {
                self.lazy_update = lazy_update;
            }

            fn step<T: sparse_core::element::Float>(
                &self,
                learning_rate: f64,
                penalty_scale: f64,
                clock: u64,
            ) -> $Step<T> {
                $Step::resolve(self, learning_rate, penalty_scale, clock)
            }
        }
    };
}

pub(crate) use {update_rule, words_of};
