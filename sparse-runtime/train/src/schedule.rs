//! Learning-rate schedules.

use nnz_optim::InvalidHyperparameter;
use serde::{Deserialize, Serialize};
use std::f64::consts::PI;

/// The unit that a schedule counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ScheduleUnit {
    /// Steps: updates since training began.
    #[default]
    Step,
    /// Whole epochs: the rate is constant within one.
    Epoch,
}

/// How the learning rate changes: a factor on the rule's own rate, a pure function of the step and
/// the epoch.
///
/// With `t` the number of steps or epochs made before, as `unit` says:
///
/// ```
/// use nnz::schedule::{Schedule, ScheduleUnit};
///
/// let halving = Schedule::Step { every: 2, factor: 0.5, unit: ScheduleUnit::Epoch };
/// let factors = [1, 2, 5].map(|epoch| halving.factor(0, epoch));
/// assert_eq!(factors, [1.0, 0.5, 0.25]);
///
/// let scaled = Schedule::InverseScaling { decay: 0.1, power: 1.0, unit: ScheduleUnit::Step };
/// assert_eq!(scaled.factor(10, 0), 0.5);
///
/// let warmed = scaled.warm_up(4, ScheduleUnit::Step);
/// assert_eq!((warmed.factor(0, 0), warmed.factor(1, 0), warmed.factor(14, 0)), (0.25, 0.5, 0.5));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Schedule {
    /// 1.
    #[default]
    Constant,
    /// `factor^⌊t / every⌋`.
    Step {
        /// The length of a step of the schedule, at least 1.
        every: u64,
        /// The factor at each, > 0.
        factor: f64,
        /// The unit of `t`.
        #[serde(default)]
        unit: ScheduleUnit,
    },
    /// `factor^m`, with `m` the milestones up to `t`.
    MultiStep {
        /// The milestones, ascending.
        milestones: Vec<u64>,
        /// The factor at each, > 0.
        factor: f64,
        /// The unit of `t`.
        #[serde(default)]
        unit: ScheduleUnit,
    },
    /// `1 / (1 + decay · t)^power`. With power 1, `decay = learning_rate · λ` is the classical rate
    /// for an objective of strong convexity λ (Bottou, "Stochastic gradient descent tricks", 2012).
    InverseScaling {
        /// How fast the rate falls, ≥ 0.
        decay: f64,
        /// The exponent, ≥ 0; 1/2 and 1 are usual.
        power: f64,
        /// The unit of `t`.
        #[serde(default)]
        unit: ScheduleUnit,
    },
    /// `factor^t`.
    Exponential {
        /// The factor at each step or epoch, > 0.
        factor: f64,
        /// The unit of `t`.
        #[serde(default)]
        unit: ScheduleUnit,
    },
    /// From 1 to `end` in `total` as `end + (1 - end) · (1 - t / total)^power`, then `end`.
    Polynomial {
        /// The time at which `end` is reached, at least 1.
        total: u64,
        /// The exponent, > 0; 1 is a straight line.
        power: f64,
        /// The last factor, ≥ 0.
        end: f64,
        /// The unit of `t`.
        #[serde(default)]
        unit: ScheduleUnit,
    },
    /// From 1 to `end` in `total` along half a cosine,
    /// `end + (1 - end) · (1 + cos(π t / total)) / 2`, then `end` (Loshchilov and Hutter, 2017,
    /// without restarts).
    Cosine {
        /// The time at which `end` is reached, at least 1.
        total: u64,
        /// The last factor, ≥ 0.
        end: f64,
        /// The unit of `t`.
        #[serde(default)]
        unit: ScheduleUnit,
    },
    /// `(t + 1) / length` for `t < length`, then another schedule, which counts from there.
    WarmUp {
        /// The length of the rise, at least 1.
        length: u64,
        /// The unit of `t`.
        #[serde(default)]
        unit: ScheduleUnit,
        /// The schedule after the rise; if it counts in the other unit, it counts from the
        /// beginning.
        then: Box<Schedule>,
    },
}

impl Schedule {
    /// This schedule after `length` steps or epochs in which the rate rises linearly.
    #[must_use]
    pub fn warm_up(self, length: u64, unit: ScheduleUnit) -> Self {
        Schedule::WarmUp { length, unit, then: Box::new(self) }
    }

    /// The factor on the learning rate in the step after `step` steps, in the epoch after `epoch`
    /// epochs.
    pub fn factor(&self, step: u64, epoch: u64) -> f64 {
        let count = |unit: &ScheduleUnit| match unit {
            ScheduleUnit::Step => step,
            ScheduleUnit::Epoch => epoch,
        };
        match self {
            Schedule::Constant => 1.0,
            Schedule::Step { every, factor, unit } => {
                factor.powf((count(unit) / (*every).max(1)) as f64)
            }
            Schedule::MultiStep { milestones, factor, unit } => {
                let passed = milestones.partition_point(|milestone| *milestone <= count(unit));
                factor.powf(passed as f64)
            }
            Schedule::InverseScaling { decay, power, unit } => {
                let base = 1.0 + decay * count(unit) as f64;
                // The usual exponents are exact and cost no logarithm.
                match *power {
                    1.0 => 1.0 / base,
                    0.5 => 1.0 / base.sqrt(),
                    power => base.powf(-power),
                }
            }
            Schedule::Exponential { factor, unit } => factor.powf(count(unit) as f64),
            Schedule::Polynomial { total, power, end, unit } => {
                end + (1.0 - end) * (1.0 - progress(count(unit), *total)).powf(*power)
            }
            Schedule::Cosine { total, end, unit } => {
                end + (1.0 - end) * 0.5 * (1.0 + (PI * progress(count(unit), *total)).cos())
            }
            Schedule::WarmUp { length, unit, then } => {
                let t = count(unit);
                if t < *length {
                    return (t + 1) as f64 / *length as f64;
                }
                match unit {
                    ScheduleUnit::Step => then.factor(step - length, epoch),
                    ScheduleUnit::Epoch => then.factor(step, epoch - length),
                }
            }
        }
    }

    /// True if the rate may change from step to step, false if only from epoch to epoch.
    pub fn changes_by_step(&self) -> bool {
        match self {
            Schedule::Constant => false,
            Schedule::Step { unit, .. }
            | Schedule::MultiStep { unit, .. }
            | Schedule::InverseScaling { unit, .. }
            | Schedule::Exponential { unit, .. }
            | Schedule::Polynomial { unit, .. }
            | Schedule::Cosine { unit, .. } => *unit == ScheduleUnit::Step,
            Schedule::WarmUp { unit, then, .. } => {
                *unit == ScheduleUnit::Step || then.changes_by_step()
            }
        }
    }

    /// Refuses invalid numbers.
    ///
    /// # Errors
    ///
    /// The first such number, by name.
    pub fn check(&self) -> Result<(), InvalidHyperparameter> {
        let at_least_one = |name, value: u64| demand(value >= 1, name, value as f64, "at least 1");
        let positive = |name, value: f64| {
            demand(value > 0.0 && value.is_finite(), name, value, "positive and finite")
        };
        let not_negative = |name, value: f64| {
            let holds = value >= 0.0 && value.is_finite();
            demand(holds, name, value, "at least 0 and finite")
        };
        match self {
            Schedule::Constant => Ok(()),
            Schedule::Step { every, factor, .. } => {
                at_least_one("every", *every)?;
                positive("factor", *factor)
            }
            Schedule::MultiStep { milestones, factor, .. } => {
                for pair in milestones.windows(2) {
                    let (name, next) = ("milestones", pair[1] as f64);
                    demand(pair[0] < pair[1], name, next, "above the one before it")?;
                }
                positive("factor", *factor)
            }
            Schedule::InverseScaling { decay, power, .. } => {
                not_negative("decay", *decay)?;
                not_negative("power", *power)
            }
            Schedule::Exponential { factor, .. } => positive("factor", *factor),
            Schedule::Polynomial { total, power, end, .. } => {
                at_least_one("total", *total)?;
                positive("power", *power)?;
                not_negative("end", *end)
            }
            Schedule::Cosine { total, end, .. } => {
                at_least_one("total", *total)?;
                not_negative("end", *end)
            }
            Schedule::WarmUp { length, then, .. } => {
                at_least_one("length", *length)?;
                then.check()
            }
        }
    }
}

/// The finished part of `total`, in [0, 1].
fn progress(count: u64, total: u64) -> f64 {
    (count as f64 / total.max(1) as f64).min(1.0)
}

fn demand(
    holds: bool,
    name: &'static str,
    value: f64,
    bound: &'static str,
) -> Result<(), InvalidHyperparameter> {
    if holds {
        return Ok(());
    }
    Err(InvalidHyperparameter { rule: "schedule", name, value, bound })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BY_STEP: ScheduleUnit = ScheduleUnit::Step;

    #[test]
    fn schedules_are_kept_in_a_text() {
        let text = r#"{"warm_up": {"length": 9, "unit": "epoch", "then": {"cosine": {"total": 50, "end": 0.1}}}}"#;
        let then = Box::new(Schedule::Cosine { total: 50, end: 0.1, unit: BY_STEP });
        let schedule = Schedule::WarmUp { length: 9, unit: ScheduleUnit::Epoch, then };
        assert_eq!(serde_json::from_str::<Schedule>(text).unwrap(), schedule);
        let text = serde_json::to_string(&schedule).unwrap();
        assert_eq!(serde_json::from_str::<Schedule>(&text).unwrap(), schedule);
        let error = serde_json::from_str::<Schedule>(r#"{"step": {"ever": 3}}"#).unwrap_err();
        assert!(error.to_string().contains("unknown field `ever`"), "{error}");
    }

    #[track_caller]
    fn check(schedule: Schedule, expected: &[(u64, f64)]) {
        schedule.check().unwrap();
        for &(t, factor) in expected {
            let found = schedule.factor(t, 1_000_000);
            assert!((found - factor).abs() < 1e-12, "{schedule:?} at {t}: {found}");
        }
    }

    /// Values computed by hand from the formulas.
    #[test]
    fn values() {
        check(Schedule::Constant, &[(0, 1.0), (1_000, 1.0)]);
        check(
            Schedule::Step { every: 3, factor: 0.1, unit: BY_STEP },
            &[(0, 1.0), (2, 1.0), (3, 0.1), (8, 0.01)],
        );
        check(
            Schedule::MultiStep { milestones: vec![3, 5], factor: 0.5, unit: BY_STEP },
            &[(0, 1.0), (2, 1.0), (3, 0.5), (4, 0.5), (5, 0.25), (100, 0.25)],
        );
        check(
            Schedule::InverseScaling { decay: 0.5, power: 0.5, unit: BY_STEP },
            &[(0, 1.0), (6, 0.5), (16, 1.0 / 3.0)],
        );
        check(
            Schedule::InverseScaling { decay: 1.0, power: 0.25, unit: BY_STEP },
            &[(0, 1.0), (15, 0.5)],
        );
        check(Schedule::Exponential { factor: 0.5, unit: BY_STEP }, &[(0, 1.0), (3, 0.125)]);
        check(
            Schedule::Polynomial { total: 10, power: 2.0, end: 0.2, unit: BY_STEP },
            &[(0, 1.0), (5, 0.4), (10, 0.2), (11, 0.2)],
        );
        check(
            Schedule::Cosine { total: 4, end: 0.0, unit: BY_STEP },
            &[(0, 1.0), (1, 0.853_553_390_593_273_8), (2, 0.5), (4, 0.0), (9, 0.0)],
        );
    }

    #[test]
    fn warming_up_shifts_what_follows() {
        let step = Schedule::Step { every: 2, factor: 0.5, unit: BY_STEP };
        check(step.warm_up(4, BY_STEP), &[(0, 0.25), (3, 1.0), (4, 1.0), (5, 1.0), (6, 0.5)]);
        let by_epoch = Schedule::Exponential { factor: 0.5, unit: ScheduleUnit::Epoch };
        let warmed = by_epoch.warm_up(2, ScheduleUnit::Epoch);
        let factors: Vec<_> = (0..5).map(|epoch| warmed.factor(77, epoch)).collect();
        assert_eq!(factors, [0.5, 1.0, 1.0, 0.5, 0.25]);
        assert!(!warmed.changes_by_step());
        assert!(warmed.warm_up(1, BY_STEP).changes_by_step());
    }

    #[test]
    fn senseless_numbers_are_refused_by_name() {
        let refused = [
            (Schedule::Step { every: 0, factor: 0.5, unit: BY_STEP }, "`every` is 0"),
            (Schedule::Exponential { factor: -1.0, unit: BY_STEP }, "`factor` is -1"),
            (
                Schedule::MultiStep { milestones: vec![4, 4], factor: 0.5, unit: BY_STEP },
                "`milestones` is 4, but must be above the one before it",
            ),
            (
                Schedule::InverseScaling { decay: f64::NAN, power: 1.0, unit: BY_STEP },
                "`decay` is NaN",
            ),
            (
                Schedule::Cosine { total: 0, end: 0.0, unit: BY_STEP }.warm_up(3, BY_STEP),
                "`total` is 0",
            ),
            (Schedule::Constant.warm_up(0, BY_STEP), "`length` is 0"),
        ];
        for (schedule, message) in refused {
            let error = schedule.check().unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
    }
}
