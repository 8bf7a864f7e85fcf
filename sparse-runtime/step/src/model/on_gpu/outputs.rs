//! Outputs on their way from a GPU to the host, and evaluations that are read when the next one was
//! asked for.

use super::losses::{Losses, Term};
use crate::model::OutputInfo;
use nnz_arrays::device::cuda::{CudaError, Gpu};
use nnz_arrays::formats::{Csr, Dense, RowSparse, Shape};
use nnz_arrays::kernels::Array;
use nnz_arrays::kernels::cuda::GpuFloat;
use nnz_arrays::kernels::cuda::table::GpuArray;
use nnz_device::cuda::Download;
use sparse_core::storage::Storage;
use std::collections::VecDeque;

/// The outputs of a batch, on the host.
#[derive(Debug)]
pub(super) struct Outputs<T: GpuFloat> {
    /// Those that are dense.
    pub(super) dense: Vec<Dense<T>>,
    /// Of outputs that are csr, row_sparse or ids, in the place of each.
    pub(super) others: Vec<Array<T>>,
    /// The scores that the first is a link of, if it is one.
    pub(super) scores: Dense<T>,
    copies: Option<Download<T>>,
    /// The shapes of those that are being copied, the scores after all others.
    asked: Vec<Option<Shape>>,
}

impl<T: GpuFloat> Outputs<T> {
    /// Before they are computed.
    pub(super) fn new(infos: &[OutputInfo]) -> Self {
        Outputs {
            dense: infos.iter().map(|_| Dense::default()).collect(),
            others: infos.iter().map(nothing).collect(),
            scores: Dense::default(),
            copies: None,
            asked: vec![None; infos.len() + 1],
        }
    }

    /// A copy of those that are there.
    pub(super) fn copy(&self) -> Self {
        let asked = vec![None; self.asked.len()];
        let (dense, others) = (self.dense.clone(), self.others.clone());
        Outputs { dense, others, scores: self.scores.clone(), copies: None, asked }
    }

    /// Asks for those of the batch that was computed. Dense ones go through pinned memory, and are
    /// there after [`wait`](Outputs::wait); how large others are only the GPU knows, so that they
    /// are waited for.
    ///
    /// # Errors
    ///
    /// [`CudaError::PinnedOutOfMemory`]; what failed on the GPU where it waits.
    pub(super) fn ask<'w>(
        &mut self,
        gpu: &Gpu,
        infos: &[OutputInfo],
        of: impl Fn(&str) -> Option<&'w GpuArray<T>>,
        scores: Option<&'w GpuArray<T>>,
    ) -> Result<(), CudaError> {
        self.asked.fill(None);
        let arrays = infos.iter().map(|info| of(info.name));
        let sizes = arrays.clone().chain([scores]).map(|array| match array {
            Some(GpuArray::Dense(array)) => array.shape().size(),
            _ => 0,
        });
        let needed = sizes.sum::<usize>();
        let copies = match &mut self.copies {
            Some(copies) if copies.len() >= needed => copies,
            other => {
                // Given back before more is asked for.
                *other = None;
                other.insert(Download::new(gpu, needed, "the outputs of a batch")?)
            }
        };
        let mut place = 0;
        for (at, (array, info)) in arrays.zip(infos).enumerate() {
            match array {
                Some(GpuArray::Dense(array)) => {
                    let values = array.view().values();
                    copies.ask(place, values)?;
                    place += values.len();
                    self.asked[at] = Some(*array.shape());
                }
                Some(array) => self.others[at] = array.to_cpu()?.unwrap_or_else(|| nothing(info)),
                None => {}
            }
        }
        if let (Some(GpuArray::Dense(array)), Some(asked)) = (scores, self.asked.last_mut()) {
            copies.ask(place, array.view().values())?;
            *asked = Some(*array.shape());
        }
        Ok(())
    }

    /// Waits for those that were asked for.
    ///
    /// # Errors
    ///
    /// What failed on the GPU before them.
    pub(super) fn wait(&mut self) -> Result<(), CudaError> {
        let Some(copies) = self.copies.as_ref().filter(|_| self.asked.iter().any(Option::is_some))
        else {
            return Ok(());
        };
        let mut values = copies.wait()?;
        let outputs = self.dense.iter_mut().chain([&mut self.scores]);
        for (output, asked) in outputs.zip(&mut self.asked) {
            let Some(shape) = asked.take() else { continue };
            let (own, rest) = values.split_at(shape.size());
            output.reset_for_overwrite(shape);
            output.values_mut().copy_from_slice(own);
            values = rest;
        }
        Ok(())
    }
}

/// Batches that were asked for and not read yet, in their order.
#[derive(Debug)]
pub(super) struct Evaluations<T: GpuFloat> {
    begun: VecDeque<Evaluation<T>>,
    /// Memory of those that were read.
    read: Vec<Evaluation<T>>,
}

/// A batch that was asked for.
#[derive(Debug)]
struct Evaluation<T: GpuFloat> {
    outputs: Outputs<T>,
    loss: Losses<T>,
}

impl<T: GpuFloat> Evaluations<T> {
    pub(super) fn new() -> Self {
        Evaluations { begun: VecDeque::new(), read: Vec::new() }
    }

    /// Asks for the outputs of a batch that was computed, and for its loss where it has terms.
    ///
    /// # Errors
    ///
    /// As [`Outputs::ask`] and [`Losses::ask`].
    pub(super) fn ask<'w>(
        &mut self,
        gpu: &Gpu,
        infos: &[OutputInfo],
        of: impl Fn(&str) -> Option<&'w GpuArray<T>>,
        scores: Option<&'w GpuArray<T>>,
        n_terms: usize,
        terms: Option<impl Iterator<Item = Term<'w, T>>>,
    ) -> Result<(), CudaError> {
        let mut evaluation = self.read.pop().unwrap_or_else(|| Evaluation {
            outputs: Outputs::new(infos),
            loss: Losses::new(n_terms),
        });
        // What another one had, of which nobody knows.
        evaluation.loss.truncate(0);
        evaluation.outputs.ask(gpu, infos, of, scores)?;
        if let Some(terms) = terms {
            evaluation.loss.ask(gpu, terms)?;
        }
        self.begun.push_back(evaluation);
        Ok(())
    }

    /// Waits for the first: its loss, if it was asked for, and its outputs. `None` where none was
    /// begun.
    ///
    /// # Errors
    ///
    /// What failed on the GPU before it.
    pub(super) fn end(&mut self, outputs: &mut Outputs<T>) -> Option<Result<f64, CudaError>> {
        let mut first = self.begun.pop_front()?;
        let ended = first.outputs.wait().and_then(|()| match first.loss.len() {
            0 => Ok(f64::NAN),
            _ => first.loss.newest(),
        });
        std::mem::swap(outputs, &mut first.outputs);
        self.read.push(first);
        Some(ended)
    }
}

/// An output before it is computed, of its type: dense ones are elsewhere.
fn nothing<T: GpuFloat>(info: &OutputInfo) -> Array<T> {
    match info.storage {
        _ if info.element.is_id() => Array::Ids(Dense::<u64>::default().into()),
        Storage::Dense => Array::Dense(Dense::default()),
        Storage::Csr => Array::Csr(Csr::default()),
        Storage::RowSparse => Array::RowSparse(RowSparse::default()),
    }
}
