//! A plan as launches of kernels: what is computed from what, and where it is kept.

use crate::device::cuda::{Cuda, CudaError, Gpu};
use crate::error::Result;
use crate::formats::Dense;
use crate::kernels::cuda::table::{Given, GpuArray, GpuKernel, GpuOperand, Staged};
use crate::kernels::cuda::{CudaContext, GpuFloat};
use crate::model::{Model, ModelError};
use crate::optimizer::cuda::{CudaGradient, CudaTable};
use sparse_core::inspect::{Operand, Part, PlanTable, Written};
use sparse_core::ir::Attributes;
use sparse_core::operators::{Operator, find};
use sparse_core::storage::Storage;
use std::fmt::Write as _;

/// The launches of a model, in order.
#[derive(Clone, Debug)]
pub(super) struct Program<T: GpuFloat> {
    launches: Vec<Planned<T>>,
    /// For each value of the plan where it is.
    places: Vec<Place>,
    n_slots: usize,
}

/// The launch that computes one value.
#[derive(Clone, Debug)]
struct Planned<T: GpuFloat> {
    value: usize,
    part: Part,
    operator: &'static Operator,
    attributes: Attributes,
    kernel: GpuKernel<T>,
    result: Storage,
    operands: Vec<Place>,
    slot: usize,
    /// What it was when it was first computed.
    launched: Vec<&'static str>,
}

/// Where a value is.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    /// In the batch, by position.
    Input(usize),
    /// A parameter, by position.
    Parameter(usize),
    /// In the workspace.
    Slot(usize),
    /// In the call.
    Number(f64),
}

/// The arrays that a program reads and writes.
#[derive(Debug)]
pub(super) struct Workspace<T: GpuFloat> {
    pub(super) inputs: Vec<GpuArray<T>>,
    pub(super) staged: Staged<T>,
    pub(super) tables: Vec<CudaTable<T>>,
    slots: Vec<GpuArray<T>>,
}

impl<T: GpuFloat> Workspace<T> {
    pub(super) fn new<M: Model>(program: &Program<T>, tables: Vec<CudaTable<T>>) -> Self {
        let arrays = |n: usize| (0..n).map(|_| GpuArray::default()).collect();
        let (inputs, slots) = (arrays(M::INPUTS.len()), arrays(program.n_slots));
        Workspace { inputs, staged: Staged::default(), tables, slots }
    }

    fn operand(&self, place: Place) -> Option<GpuOperand<'_, T>> {
        match place {
            Place::Input(index) => self.inputs.get(index).map(GpuArray::operand),
            Place::Parameter(index) => {
                Some(GpuOperand::Dense(self.tables.get(index)?.weights.view()))
            }
            Place::Slot(index) => self.slots.get(index).map(GpuArray::operand),
            Place::Number(number) => Some(GpuOperand::Number(number)),
        }
    }
}

impl<T: GpuFloat> Program<T> {
    /// The launches of a model.
    ///
    /// # Errors
    ///
    /// [`ModelError::NotOnGpu`], with all kernels that there are none of on a GPU.
    pub(super) fn of<M: Model>() -> Result<Self> {
        let plan = &M::PLAN;
        let buffers = plan.values.iter().filter_map(|value| match value.written {
            Some(Written::Buffer(index)) => Some(index as usize + 1),
            _ => None,
        });
        let mut n_slots = buffers.max().unwrap_or(0);
        let mut places = Vec::with_capacity(plan.values.len());
        for value in plan.values {
            let input = M::INPUTS.iter().position(|input| input.name == value.name);
            let parameter = M::PARAMETERS.iter().position(|known| known.name == value.name);
            places.push(match (value.part, input, parameter, value.written) {
                (Part::Input | Part::Label, Some(index), ..) => Place::Input(index),
                (Part::Parameter | Part::Frozen | Part::State, _, Some(index), _) => {
                    Place::Parameter(index)
                }
                (.., Some(Written::Buffer(index))) => Place::Slot(index as usize),
                _ => {
                    n_slots += 1;
                    Place::Slot(n_slots - 1)
                }
            });
        }
        let mut program = Program { launches: Vec::new(), places, n_slots };
        let mut missing: Vec<&str> = Vec::new();
        for (position, value) in plan.values.iter().enumerate() {
            let (Some(how), Place::Slot(slot)) = (value.computed, program.places[position]) else {
                continue;
            };
            if value.part == Part::Unused {
                continue;
            }
            let operator = find(how.operator);
            match operator.and_then(|of| Some((of, T::kernel(of, how.kernel)?))) {
                Some((operator, kernel)) => {
                    let operands = how.operands.iter().map(|operand| program.place(operand));
                    program.launches.push(Planned {
                        value: position,
                        part: value.part,
                        operator,
                        attributes: Attributes::from(how.attributes),
                        kernel,
                        result: value.storage,
                        operands: operands.collect(),
                        slot,
                        launched: Vec::new(),
                    });
                }
                None if !missing.contains(&how.kernel) => missing.push(how.kernel),
                None => {}
            }
        }
        if M::WRITES_STATES {
            missing.push("updates of states");
        }
        match missing.is_empty() {
            true => Ok(program),
            false => {
                let missing = missing.join("`, `");
                Err(ModelError::NotOnGpu { model: M::NAME, missing }.into())
            }
        }
    }

    fn place(&self, operand: &Operand) -> Place {
        match operand {
            Operand::Value(position) | Operand::Shape(position) => self.places[*position as usize],
            Operand::Number(number) => Place::Number(*number),
        }
    }

    /// Computes the values that are needed for some parts of a model.
    ///
    /// # Errors
    ///
    /// [`ModelError::NotOnGpu`] of ids; what fails on the GPU is said by the next synchronisation.
    pub(super) fn run<M: Model<Element = T>>(
        &mut self,
        workspace: &mut Workspace<T>,
        parts: &[Part],
        context: &mut CudaContext,
    ) -> Result<()> {
        let gpu = context.gpu().clone();
        let launches = self.launches.iter_mut();
        for planned in launches.filter(|planned| parts.contains(&planned.part)) {
            let mut out = std::mem::take(&mut workspace.slots[planned.slot]);
            let operands: Option<Vec<_>> =
                planned.operands.iter().map(|place| workspace.operand(*place)).collect();
            let launched = operands.and_then(|operands| {
                let Planned { operator, result, ref attributes, .. } = *planned;
                let given = Given { operator, result, operands: &operands, attributes };
                let mut launch = || (planned.kernel)(&mut out, &given, context);
                if !planned.launched.is_empty() {
                    return launch();
                }
                let mut found = None;
                planned.launched = gpu.trace(|| found = launch());
                found
            });
            workspace.slots[planned.slot] = out;
            if launched.is_none() {
                let missing = M::PLAN.label(planned.value as u32);
                return Err(ModelError::NotOnGpu { model: M::NAME, missing }.into());
            }
        }
        Ok(())
    }

    /// The sum of the losses, when they are there.
    ///
    /// # Errors
    ///
    /// What failed on the GPU so far.
    pub(super) fn loss(
        &self,
        plan: &PlanTable<'_>,
        workspace: &Workspace<T>,
        gpu: &Gpu,
    ) -> Result<f64, CudaError> {
        let mut sum = 0.0;
        for loss in plan.losses {
            sum += match (loss, self.place(loss)) {
                (Operand::Number(number), _) => *number,
                (_, Place::Slot(slot)) => match &workspace.slots[slot] {
                    GpuArray::Dense(loss) => {
                        loss.to_cpu()?.values().first().map_or(f64::NAN, |loss| loss.as_f64())
                    }
                    _ => f64::NAN,
                },
                _ => f64::NAN,
            };
        }
        gpu.synchronize()?;
        Ok(sum)
    }

    /// The gradient of a parameter, when it is there.
    pub(super) fn gradient<'w>(
        &self,
        plan: &PlanTable<'_>,
        workspace: &'w Workspace<T>,
        parameter: usize,
    ) -> Option<CudaGradient<'w, T>> {
        let position = self.places.iter().position(|at| *at == Place::Parameter(parameter))?;
        let gradient = plan.values[position].gradient?;
        match workspace.operand(self.places[gradient as usize])? {
            GpuOperand::Dense(gradient) => Some(CudaGradient::Dense(gradient)),
            GpuOperand::RowSparse(gradient) => Some(CudaGradient::RowSparse(gradient)),
            _ => None,
        }
    }

    /// An output by its name, if it is dense.
    pub(super) fn output<'w>(
        &self,
        plan: &PlanTable<'_>,
        workspace: &'w Workspace<T>,
        name: &str,
    ) -> Option<&'w Dense<T, Cuda>> {
        let of_name = |written| written == Some(Written::Output(name));
        let position = plan.values.iter().position(|value| of_name(value.written))?;
        let Place::Slot(slot) = self.places[position] else { return None };
        match &workspace.slots[slot] {
            GpuArray::Dense(array) => Some(array),
            _ => None,
        }
    }

    /// The kernels that compute each value, a line a value.
    pub(super) fn describe(&self, plan: &PlanTable<'_>) -> String {
        let mut text = String::new();
        for planned in &self.launches {
            let kernel = plan.values[planned.value].computed.map_or("", |how| how.kernel);
            let label = plan.label(planned.value as u32);
            let launched = planned.launched.join(", ");
            // Writing to a string does not fail.
            let _ = match launched.is_empty() {
                true => writeln!(text, "{label} = {kernel}"),
                false => writeln!(text, "{label} = {kernel}: {launched}"),
            };
        }
        text
    }
}
