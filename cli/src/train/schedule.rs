//! The schedule that the command line asks for.

use super::arguments::{Arguments, ScheduleKind};
use crate::Failure;
use nnz::prelude::*;

/// The schedule; `n_rows` of the data, if they are known.
pub(super) fn schedule(arguments: &Arguments, n_rows: Option<usize>) -> Result<Schedule, Failure> {
    let unit = ScheduleUnit::Step;
    let total = || -> Result<u64, Failure> {
        let unknown = "the number of rows of a stream is not known before its first epoch, and this --schedule needs it";
        let steps = n_rows.ok_or(unknown)?.div_ceil(arguments.batch_size.max(1)) as u64;
        Ok(steps.saturating_mul(arguments.epochs).saturating_sub(arguments.warm_up).max(1))
    };
    let (factor, end, power) = (arguments.factor, arguments.end, arguments.power);
    let schedule = match arguments.schedule {
        ScheduleKind::Constant => Schedule::Constant,
        ScheduleKind::Step => {
            Schedule::Step { every: arguments.every, factor, unit: ScheduleUnit::Epoch }
        }
        ScheduleKind::MultiStep => Schedule::MultiStep {
            milestones: arguments.milestones.clone(),
            factor,
            unit: ScheduleUnit::Epoch,
        },
        ScheduleKind::InverseScaling => {
            Schedule::InverseScaling { decay: arguments.decay, power, unit }
        }
        ScheduleKind::Exponential => Schedule::Exponential { factor, unit: ScheduleUnit::Epoch },
        ScheduleKind::Polynomial => Schedule::Polynomial { total: total()?, power, end, unit },
        ScheduleKind::Cosine => Schedule::Cosine { total: total()?, end, unit },
    };
    Ok(match arguments.warm_up {
        0 => schedule,
        steps => schedule.warm_up(steps, unit),
    })
}
