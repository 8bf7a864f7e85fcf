//! Hogwild: table rows that several threads read and update at once, without locks.
//!
//! Every access to what threads share is a relaxed atomic load or store of one number, which
//! compiles to a plain move. So no thread sees half a number, and what another one adds meanwhile
//! may be lost. Rows that most rows of data name would go from cache to cache with every step: each
//! thread may keep copies of those, whose changes are added up now and then.

pub(super) mod racer;
mod rows;
mod shared_table;
#[cfg(test)]
mod tests;

pub use racer::Racer;
pub(crate) use rows::{AddressesAhead, AnyHogwildRows, HogwildCursor, HogwildRows, RowAddress};
pub use shared_table::{OwnTable, Shared};

use self::racer::Copies;
use self::shared_table::{Layout, Merged, SharedTable, imply_states, visit_dense};
use super::error::OptimizerError;
use super::spec::ParameterSpec;
use super::update_kind::{StateOf, StepOf};
use super::updater::Updater;
use crate::error::Result;
use crate::model::Model;
use nnz_optim::{LazyUpdate, StateBlock, Step, UpdateRule};
use sparse_core::element::Float;
use std::sync::Mutex;

/// Why threads cannot share the weights and states of a rule, where they cannot; with copies of
/// rows, if `copies`.
pub fn why_not_racing<R: UpdateRule, T: Float>(rule: &R, copies: bool) -> Option<&'static str> {
    type State<R, T> = StateOf<R, T>;
    let step = rule.step::<T::Accumulator>(rule.learning_rate(), 1.0, 0);
    let has_states = !StepOf::<R, T>::OPTIONAL_STATE || step.uses_state();
    // Numbers and nothing else: no padding.
    let n_numbers = State::<R, T>::default().values().count();
    let is_numbers = size_of::<State<R, T>>() == n_numbers * size_of::<T::Accumulator>();
    if R::CORRECTS {
        Some("a mean gradient belongs to steps that are made one after the other")
    } else if StepOf::<R, T>::BY_NORMS {
        Some("a step depends on norms of the whole parameter; use a rule such as `AdaGrad`")
    } else if State::<R, T>::BY_ROW || !is_numbers {
        Some("its state is not that of one weight; use a rule such as `AdaGrad`")
    } else if rule.lazy_update() != LazyUpdate::Touched && step.idle().changes() {
        Some(
            "steps change rows that they do not touch, of which threads do not tell each other; choose `LazyUpdate::Touched`",
        )
    } else if copies && has_states && !StepOf::<R, T>::CHANGES_ADD {
        Some("changes of its state cannot be added up; choose `hot_rows(0)`")
    } else {
        None
    }
}

impl<T: Float> Shared<T> {
    /// Tables for the threads of an epoch, given by the updater that keeps its states there, in the
    /// order of their parameters; and the present values of the model's parameters with dense
    /// gradients. O(numbers of the hot rows), in the first epoch O(values).
    pub fn new<R: UpdateRule, M: Model<Element = T>>(
        updater: &Updater<R, T>,
        tables: Vec<OwnTable<T>>,
        model: &mut M,
    ) -> Self {
        let mut merged = Merged { hot: Vec::new(), dense: Vec::new() };
        visit_dense(model, |value| merged.dense.push(*value));
        let share = |(parameter, mut table, hot): OwnTable<T>| {
            let blocks = updater.blocks_of(parameter, &mut table);
            let layout = Layout::of::<R, T>(table.row_size(), blocks.is_some());
            let first = blocks.unwrap_or_else(|| table.values_mut().as_mut_ptr().cast());
            let shared = SharedTable { parameter, table, first, layout, hot };
            let step = updater.groups[updater.parameters[parameter].group].step;
            merged.hot.push(numbers_of_hot_rows::<R, T>(&shared, &step));
            shared
        };
        let tables = tables.into_iter().map(share).collect();
        Shared { tables, merged: Mutex::new(merged) }
    }
}

/// The numbers of the hot rows of a table that no other thread has yet, by slot.
fn numbers_of_hot_rows<R: UpdateRule, T: Float>(
    shared: &SharedTable<T>,
    step: &StepOf<R, T>,
) -> Vec<T::Accumulator> {
    let SharedTable { first, layout, hot, .. } = shared;
    let n_numbers = layout.numbers_of_row();
    let mut numbers = vec![T::zero().widen(); hot.n_slots() * n_numbers];
    for (slot, row) in hot.rows() {
        for (number, value) in numbers[slot * n_numbers..][..n_numbers].iter_mut().enumerate() {
            // SAFETY: the rows lie there, and no other thread has the table yet.
            *value = unsafe { layout.get::<T>(first.add(row * layout.stride), number) };
        }
    }
    for row in numbers.chunks_exact_mut(n_numbers.max(1)) {
        imply_states::<R, T>(step, row.split_at_mut(layout.row_size), layout.n_numbers);
    }
    numbers
}

impl<R: UpdateRule, T: Float> Updater<R, T> {
    /// Gives the steps that follow a part in shared tables, or takes it from them.
    pub fn set_racer(&mut self, racer: Option<Racer<T>>) {
        self.racer = racer;
    }

    /// The part in shared tables that steps have.
    pub fn racer_mut(&mut self) -> Option<&mut Racer<T>> {
        self.racer.as_mut()
    }

    /// The shared rows of a parameter during this step.
    ///
    /// # Errors
    ///
    /// [`OptimizerError::NotShared`] of any parameter but those of the [`Racer`].
    pub(crate) fn hogwild_rows(&mut self, parameter: usize) -> Result<HogwildRows<'_, R, T>> {
        self.record(parameter)?;
        let (facts, racer) = (self.hogwild_facts(parameter), self.racer.as_mut());
        let rows =
            racer.and_then(|racer| racer.tables_mut().find(|it| it.0.parameter == parameter));
        match rows {
            Some((shared, copies)) => Ok(HogwildRows::new(facts, shared, copies)),
            None => Err(not_shared::<R>(&self.parameters[parameter].spec)),
        }
    }

    /// The shared rows of several parameters during this step, `None` beyond these. In the order of
    /// the parameters.
    ///
    /// # Errors
    ///
    /// As [`hogwild_rows`](Self::hogwild_rows).
    pub(crate) fn hogwild_rows_in_order<const N: usize>(
        &mut self,
        parameters: impl Iterator<Item = usize>,
    ) -> Result<[Option<HogwildRows<'_, R, T>>; N]> {
        let mut facts = [None; N];
        for (facts, parameter) in facts.iter_mut().zip(parameters) {
            self.record(parameter)?;
            *facts = Some((parameter, self.hogwild_facts(parameter)));
        }
        let mut tables = self.racer.iter_mut().flat_map(Racer::tables_mut);
        let mut rows = [const { None }; N];
        for (rows, (parameter, facts)) in rows.iter_mut().zip(facts.into_iter().flatten()) {
            match tables.find(|it| it.0.parameter == parameter) {
                Some((shared, copies)) => *rows = Some(HogwildRows::new(facts, shared, copies)),
                None => return Err(not_shared::<R>(&self.parameters[parameter].spec)),
            }
        }
        Ok(rows)
    }

    /// What a step does to a row of a parameter that there is; a factor where it only adds.
    fn hogwild_facts(&self, parameter: usize) -> (StepOf<R, T>, Option<T::Accumulator>) {
        let step = self.groups[self.parameters[parameter].group].step;
        (step, step.gradient_factor().filter(|_| self.is_plain(parameter)))
    }
}

impl<'a, R: UpdateRule, T: Float> HogwildRows<'a, R, T> {
    fn new(
        (step, factor): (StepOf<R, T>, Option<T::Accumulator>),
        shared: &'a SharedTable<T>,
        copies: &'a mut Copies<T>,
    ) -> Self {
        let Copies { own, ahead, .. } = copies;
        HogwildRows { step, factor, shared, own: own.as_mut_ptr().cast(), ahead }
    }
}

#[cold]
pub(super) fn not_shared<R: UpdateRule>(parameter: &ParameterSpec) -> crate::Error {
    OptimizerError::NotShared { parameter: parameter.name.to_string(), rule: R::NAME }.into()
}
