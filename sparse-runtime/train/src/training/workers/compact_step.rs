//! A worker's step with tables of those rows alone that the step names.

use super::compact::{Compact, NumberedSamples, list_of};
use super::job::Job;
use super::worker::{Goal, Worker, gradient_of, gradients, trained};
use crate::error::Result;
use crate::store::{Communicator, KvStore, Pulled, StepKeys};
use nnz_data::{Batch, Part};
use nnz_optim::UpdateRule;
use nnz_step::model::{Model, ParameterInfo};

/// The compact model, and the keys of its parameters.
pub(super) type CompactStep<M> = (Compact<M>, StepKeys<<M as Model>::Element>);

impl<M: Model, C: Communicator> Worker<'_, M, C> {
    /// A compact model and the keys of its parameters, for models that allow it.
    pub(super) fn compact<R: UpdateRule>(
        job: &Job<R, M::Element>,
        model: &M,
        store: &KvStore<M::Element, C>,
    ) -> Result<Option<CompactStep<M>>> {
        let Some(compact) = Compact::of(model, job.parallel)? else { return Ok(None) };
        let key = |(index, name)| {
            let info: &ParameterInfo = &M::PARAMETERS[index];
            (name, list_of::<M>(info))
        };
        let keys = Vec::from_iter(trained::<M>().map(key));
        let lists = Vec::from_iter(compact.numbering.lists.iter().map(|list| list.n_rows));
        let keys = StepKeys::new(store, &keys, &lists)?;
        Ok(Some((compact, keys)))
    }

    /// Pulls the rows of a step, computes the gradients of this worker's leaves, and adds up those
    /// of all workers. The losses of all are in `all_losses` then.
    pub(super) fn add_compact<'b, B: Batch<'b, M::Element>>(
        &mut self,
        batch: &B,
        goal: Goal,
    ) -> Result<()> {
        let (n_rows, leaves) = (batch.n_rows(), self.store.leaves());
        let n_real = n_rows - batch.n_padding().min(n_rows);
        let own = self.own_rows(n_rows);
        let Some((compact, keys)) = &mut self.compact else { return Ok(()) };
        let samples = Part::new(batch, own.clone());
        compact.number(&*self.model, &samples)?;
        let Compact { model, snapshot, numbering, .. } = compact;
        let mut snapshot = snapshot.as_mut().filter(|_| goal == Goal::CorrectedStep);
        {
            let rows = Vec::from_iter(numbering.lists.iter().map(|list| list.rows()));
            let mut of_snapshot = snapshot.as_deref_mut().map(M::parameters_mut);
            let mut of_snapshot = of_snapshot.iter_mut().flatten();
            let mut newest = model.parameters_mut();
            let tables = newest.iter_mut().zip(M::PARAMETERS).filter_map(|(parameter, info)| {
                let snapshot = of_snapshot.next();
                info.gradient?;
                Some(Pulled {
                    newest: parameter.table.values_mut(),
                    snapshot: snapshot.map(|parameter| parameter.table.values_mut()),
                })
            });
            let mut tables = Vec::from_iter(tables);
            self.store.pull_step(keys, &rows, &mut tables)?;
        }
        keys.begin(&self.store, self.store.own_leaves().start);
        let numbered = NumberedSamples::new(&samples, numbering);
        // Leaves without a row are passed over, be they millions.
        let mut next = own.start;
        while next < own.end {
            let leaf = leaves.of_row(next, n_rows);
            let rows = leaves.rows_of(leaf, n_rows);
            next = rows.end;
            let share = rows.len() as f64 / n_rows as f64;
            let real = rows.start..rows.end.min(n_real).max(rows.start);
            let [rows, real] = [rows, real].map(|of| of.start - own.start..of.end - own.start);
            let loss = gradients(model, snapshot.as_deref_mut(), &numbered, rows, real)?;
            self.losses.push(loss);
            for (position, (index, _)) in trained::<M>().enumerate() {
                let snapshot = snapshot.as_deref_mut();
                if let Some(gradient) = gradient_of(&mut *model, snapshot, index)? {
                    keys.add(position, leaf, gradient.view(), share)?;
                }
            }
        }
        self.store.exchange_gradients(keys, &self.losses, &mut self.all_losses)
    }
}
