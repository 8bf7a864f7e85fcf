//! A plan as launches of kernels: the operands of each value, and its memory.

use super::batches::Batches;
use super::corrected::Corrected;
use super::fused::RowsLaunch;
use super::in_place::InPlace;
use super::losses::Term;
use super::workspace::{Place, Wanted, Workspace};
use crate::error::Result;
use crate::model::{Model, ModelError};
use crate::optimizer::cuda::{CudaGradient, CudaSamples, CudaTable, RowSums};
use nnz_arrays::device::cuda::{CudaBuffer, CudaError, CudaSlice};
use nnz_arrays::kernels::cuda::table::{Given, GpuArray, GpuKernel, GpuOperand};
use nnz_arrays::kernels::cuda::{CudaContext, GpuFloat};
use sparse_core::inspect::{Operand, Part, PlanTable, Written};
use sparse_core::ir::Attributes;
use sparse_core::operators::{Operator, find};
use sparse_core::storage::Storage;
use std::fmt::Write as _;

/// The launches of a model, in order.
#[derive(Clone, Debug)]
pub(super) struct Program<T: GpuFloat> {
    launches: Vec<Planned<T>>,
    /// What computes some of the values at once, where gradients are asked for.
    fused: Option<Fused>,
    /// The gradients that an update may do without.
    in_place: InPlace,
    /// How derivatives are corrected that are kept of samples, of a model that does.
    corrected: Option<Corrected>,
    /// For each value of the plan where it is.
    places: Vec<Place>,
    n_slots: usize,
}

/// One launch in place of several.
#[derive(Clone, Debug)]
struct Fused {
    launch: RowsLaunch,
    /// What it was when it was first computed.
    launched: Vec<&'static str>,
}

/// The launch that computes one value.
#[derive(Clone, Debug)]
struct Planned<T: GpuFloat> {
    value: usize,
    /// What it is computed for.
    needed: Wanted,
    operator: &'static Operator,
    attributes: Attributes,
    kernel: GpuKernel<T>,
    result: Storage,
    operands: Vec<Place>,
    slot: usize,
    /// What it was when it was first computed.
    launched: Vec<&'static str>,
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
        let fused = RowsLaunch::find(plan, &places, n_slots);
        let in_place = InPlace::find(plan, &places, fused.as_ref());
        if let Some(fused) = &fused {
            fused.keep(&mut places);
            n_slots += fused.slots().len();
        }
        n_slots += in_place.keep(plan, &mut places, n_slots);
        let corrected =
            if M::CORRECTS_SCORES { Corrected::find(plan, &places, fused.as_ref()) } else { None };
        let fused = fused.map(|launch| Fused { launch, launched: Vec::new() });
        let needed = needed(plan, &in_place);
        let launches = Vec::new();
        let mut program = Program { launches, fused, in_place, corrected, places, n_slots };
        let mut missing: Vec<&str> = Vec::new();
        for (position, value) in plan.values.iter().enumerate() {
            let (Some(how), Place::Slot(slot)) = (value.computed, program.places[position]) else {
                continue;
            };
            if value.part == Part::Unused {
                continue;
            }
            // Of extents, numbers are known with a model or a batch, and not with the program.
            for operand in how.operands {
                if let Operand::Named { text, .. } = operand
                    && operand.number(&|_| None).is_none()
                    && !missing.contains(text)
                {
                    missing.push(text);
                }
            }
            let operator = find(how.operator);
            match operator.and_then(|of| Some((of, T::kernel(of, how.kernel)?))) {
                Some((operator, kernel)) => {
                    let operands = how.operands.iter().map(|operand| program.place(operand));
                    program.launches.push(Planned {
                        value: position,
                        needed: needed[position],
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
        if let Some(fused) = &mut program.fused {
            let launches = program.launches.iter().map(|planned| (planned.value, planned.needed));
            fused.launch.note_readers(plan, &launches.collect::<Vec<_>>());
        }
        if M::WRITES_STATES {
            missing.push("updates of states");
        }
        if missing.is_empty() {
            Ok(program)
        } else {
            let missing = missing.join("`, `");
            Err(ModelError::NotOnGpu { model: M::NAME, missing }.into())
        }
    }

    /// The memory that the launches need, beside the parameters.
    pub(super) fn workspace(&self, tables: Vec<CudaTable<T>>) -> Workspace<T> {
        let slots = (0..self.n_slots).map(|_| GpuArray::default()).collect();
        let (batches, named) = (Batches::new(), self.in_place.memory());
        let (factor_sums, samples) = (CudaBuffer::default(), CudaSamples::default());
        Workspace { batches, tables, slots, named, factor_sums, samples }
    }

    fn place(&self, operand: &Operand) -> Place {
        match operand {
            Operand::Value(position) | Operand::Shape(position) => self.places[*position as usize],
            // One with an extent was refused.
            number => Place::Number(number.number(&|_| None).unwrap_or(f64::NAN)),
        }
    }

    /// Computes what is asked for, outputs and loss where only they are by a launch for each value.
    ///
    /// # Errors
    ///
    /// [`ModelError::NotOnGpu`] of a value whose kernel does not take what its operands are; what
    /// fails on the GPU is said by the next synchronisation.
    pub(super) fn run<M: Model<Element = T>>(
        &mut self,
        workspace: &mut Workspace<T>,
        wanted: Wanted,
        context: &mut CudaContext,
    ) -> Result<()> {
        let gpu = context.gpu().clone();
        let uses_samples = workspace.samples.are_used();
        let corrected = self.corrected.filter(|of| uses_samples && of.is_by_itself());
        let is_fused = wanted.meets(Wanted::GRADIENTS) && corrected.is_none();
        let mut fused = self.fused.as_mut().filter(|_| is_fused);
        let mut is_done = false;
        let launches = self.launches.iter_mut();
        for planned in launches.filter(|planned| planned.needed.meets(wanted)) {
            if let Some(fused) = &mut fused
                && fused.launch.values.contains(&planned.value)
            {
                // With the first of them.
                if !is_done && fused.run(workspace, wanted, context).is_none() {
                    let missing = M::PLAN.label(planned.value as u32);
                    return Err(ModelError::NotOnGpu { model: M::NAME, missing }.into());
                }
                is_done = true;
                continue;
            }
            let mut out = std::mem::take(&mut workspace.slots[planned.slot]);
            let operands: Option<Vec<_>> =
                planned.operands.iter().map(|place| workspace.operand(*place)).collect();
            let launched = operands.and_then(|operands| {
                let Planned { operator, result, ref attributes, .. } = *planned;
                let given = Given { operator, result, operands: &operands, attributes };
                let mut launch = || {
                    (planned.kernel)(&mut out, &given, context)?;
                    match corrected.filter(|of| of.follows(planned.value)) {
                        Some(corrected) => corrected.correct(&mut out, workspace, context),
                        None => Some(()),
                    }
                };
                if !planned.launched.is_empty() {
                    return launch();
                }
                let mut found = None;
                planned.launched = names(gpu.trace(|| found = launch()));
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

    /// What the loss of the batch is the sum of.
    pub(super) fn loss<'w>(
        &self,
        plan: &PlanTable<'_>,
        workspace: &'w Workspace<T>,
    ) -> impl Iterator<Item = Term<'w, T>> {
        plan.losses.iter().map(|loss| match self.place(loss) {
            Place::Number(number) => Term::Number(number),
            place => {
                let computed = workspace.operand(place).and_then(|of| of.dense());
                Term::Computed(computed.map_or_else(CudaSlice::default, |of| of.values()))
            }
        })
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

    /// The parameter whose derivatives of samples can be kept: what the scores of a row are the
    /// product with.
    pub(super) fn corrected(&self) -> Option<usize> {
        Some(self.corrected?.parameter)
    }

    /// Asks for the rows that gradients which are not made are sums over; nobody waits for their
    /// number.
    ///
    /// # Errors
    ///
    /// [`CudaError::OutOfMemory`], [`CudaError::TooManyEntries`].
    pub(super) fn ask_for_rows(
        &self,
        workspace: &mut Workspace<T>,
        context: &mut CudaContext,
    ) -> Result<(), CudaError> {
        self.in_place.ask_for_rows(workspace, context)
    }

    /// The gradient of a parameter that need not be made, when its operands and the rows of the
    /// batch are there.
    pub(super) fn row_sums<'w>(
        &self,
        workspace: &'w Workspace<T>,
        parameter: usize,
    ) -> Option<RowSums<'w, T>> {
        self.in_place.sums_of(&self.places, workspace, parameter)
    }

    /// An output by its name.
    pub(super) fn output<'w>(
        &self,
        plan: &PlanTable<'_>,
        workspace: &'w Workspace<T>,
        name: &str,
    ) -> Option<&'w GpuArray<T>> {
        let of_name = |written| written == Some(Written::Output(name));
        let position = plan.values.iter().position(|value| of_name(value.written))?;
        let Place::Slot(slot) = self.places[position] else { return None };
        workspace.slots.get(slot)
    }

    /// The scores that the first output is a link of.
    pub(super) fn scores<'w, M: Model>(
        &self,
        workspace: &'w Workspace<T>,
    ) -> Option<&'w GpuArray<T>> {
        let (_, position) = M::PLAN.linked_score(M::OUTPUTS.first()?.name)?;
        let Place::Slot(slot) = self.places[position] else { return None };
        workspace.slots.get(slot)
    }

    /// The kernels that compute each value, a line a value, then those that a step has instead.
    pub(super) fn describe(&self, plan: &PlanTable<'_>) -> String {
        let mut text = String::new();
        for planned in &self.launches {
            let kernel = plan.values[planned.value].computed.map_or("", |how| how.kernel);
            let label = plan.label(planned.value as u32);
            let launched = planned.launched.join(", ");
            // Writing to a string does not fail.
            let _ = if launched.is_empty() {
                writeln!(text, "{label} = {kernel}")
            } else {
                writeln!(text, "{label} = {kernel}: {launched}")
            };
        }
        if let Some(fused) = &self.fused {
            let labels = fused.launch.values.iter().map(|value| plan.label(*value as u32));
            let labels = labels.collect::<Vec<_>>().join(", ");
            let (kernel, launched) = (fused.launch.kernel(), fused.launched.join(", "));
            let _ = if launched.is_empty() {
                writeln!(text, "in a step: {labels} = {kernel}")
            } else {
                writeln!(text, "in a step: {labels} = {kernel}: {launched}")
            };
        }
        for gradient in self.in_place.gradients() {
            let _ = writeln!(text, "in a step: {} = the update", plan.label(gradient as u32));
        }
        text
    }
}

impl Fused {
    fn run<T: GpuFloat>(
        &mut self,
        workspace: &mut Workspace<T>,
        wanted: Wanted,
        context: &mut CudaContext,
    ) -> Option<()> {
        let gpu = context.gpu().clone();
        let Fused { launch, launched } = self;
        let taken = workspace.slots[launch.slots()].iter_mut().map(std::mem::take);
        let mut out: Vec<_> = taken.collect();
        let mut sums = std::mem::take(&mut workspace.factor_sums);
        let (operand, kept) = (|place| workspace.operand(place), workspace.samples.of_batch());
        let mut launch_it = || launch.launch(&mut out, &mut sums, kept, operand, wanted, context);
        let mut found = None;
        if launched.is_empty() {
            *launched = names(gpu.trace(|| found = launch_it()))
        } else {
            found = launch_it()
        }
        for (slot, array) in workspace.slots[launch.slots()].iter_mut().zip(out) {
            *slot = array;
        }
        workspace.factor_sums = sums;
        found
    }
}

/// Each once, in the order of their first launch.
fn names(launched: Vec<&'static str>) -> Vec<&'static str> {
    let mut names = Vec::new();
    for name in launched {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// What each value of a plan is computed for.
fn needed(plan: &PlanTable<'_>, in_place: &InPlace) -> Vec<Wanted> {
    let mut needed: Vec<_> = plan
        .values
        .iter()
        .map(|value| match value.part {
            Part::Forward => Wanted::OUTPUTS,
            _ => Wanted::NOTHING,
        })
        .collect();
    let mut ask = |position: u32, wanted: Wanted| {
        let of = &mut needed[position as usize];
        *of = of.and(wanted);
    };
    for loss in plan.losses {
        if let Operand::Value(position) = loss {
            ask(*position, Wanted::LOSS);
        }
    }
    // What an unmade value reads is read by the update, but for the terms of a sum.
    let as_gradient = |position: u32| {
        if in_place.is_unmade(position as usize) { Wanted::SUMS } else { Wanted::GRADIENTS }
    };
    for gradient in plan.values.iter().filter_map(|value| value.gradient) {
        ask(gradient, as_gradient(gradient));
    }
    // Operands come first. Shapes are those of values that are there as well.
    for position in (0..plan.values.len()).rev() {
        let of_value = needed[position];
        for operand in plan.values[position].computed.map_or(&[][..], |how| how.operands) {
            if let Operand::Value(read) | Operand::Shape(read) = operand {
                let wanted = if of_value == Wanted::SUMS { as_gradient(*read) } else { of_value };
                let of = &mut needed[*read as usize];
                *of = of.and(wanted);
            }
        }
    }
    needed
}
