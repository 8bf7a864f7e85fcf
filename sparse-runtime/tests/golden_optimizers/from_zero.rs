//! FTRL as it was recorded: the states of a weight start at zero whatever the weight is, so that
//! its first step forgets it. This library's rule starts from the states that give the weight; but
//! for the start, steps are the same.

use nnz_optim::{
    Ftrl, FtrlStep, Hyperparameter, Idle, LazyUpdate, MOST_NUMBERS, Recurrence, Step, UpdateRule,
};
use sparse_core::element::Float;

/// [`Ftrl`] whose states start at zero.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct FromZero(Ftrl);

impl UpdateRule for FromZero {
    const NAME: &'static str = Ftrl::NAME;
    const STATES: &'static [&'static str] = Ftrl::STATES;
    const ONE_RATE: bool = true;
    const RECURRENCE: Option<Recurrence> = match Ftrl::RECURRENCE {
        Some(recurrence) => Some(Recurrence {
            assignments: &[
                ("squares", "n + q * q"),
                ("root", "sqrt(squares)"),
                ("z", "z + q - (root - sqrt(n)) * inverse_rate * w"),
                ("n", "squares"),
                (
                    "w",
                    "select(abs(z) <= l1, 0, (sign(z) * l1 - z) / (root * inverse_rate + offset))",
                ),
            ],
            ..recurrence
        }),
        None => None,
    };

    type Step<T: Float> = FromZeroStep<T>;

    fn hyperparameters(&mut self) -> Vec<Hyperparameter<'_>> {
        self.0.hyperparameters()
    }

    fn learning_rate(&self) -> f64 {
        self.0.learning_rate()
    }

    fn lazy_update(&self) -> LazyUpdate {
        self.0.lazy_update()
    }

    fn set_lazy_update(&mut self, lazy_update: LazyUpdate) {
        self.0.set_lazy_update(lazy_update);
    }

    fn step<T: Float>(&self, learning_rate: f64, penalty_scale: f64, clock: u64) -> Self::Step<T> {
        FromZeroStep(self.0.step(learning_rate, penalty_scale, clock))
    }
}

/// A step of [`FromZero`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct FromZeroStep<T>(FtrlStep<T>);

impl<T: Float> Step<T> for FromZeroStep<T> {
    type State = [T; 2];
    type Idle = ();

    fn update(&self, weight: &mut T, state: &mut [T; 2], grad: T) {
        // So small that it changes no sum, and says that there is a state.
        state[1] = state[1].max(T::min_positive_value());
        self.0.update(weight, state, grad);
    }

    fn numbers(&self) -> [f64; MOST_NUMBERS] {
        self.0.numbers()
    }

    /// A step without a gradient forgets a weight too, which is nothing that later steps could make
    /// up for.
    fn idle(&self) -> Idle<()> {
        Idle::Open
    }

    fn apply_idle(&self, (): &(), _: &mut T, _: &mut [T; 2]) {}
}
