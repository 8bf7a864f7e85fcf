//! Losses on their way from a GPU to the host.

use nnz_arrays::device::cuda::{CudaError, CudaSlice, Gpu};
use nnz_arrays::kernels::cuda::GpuFloat;
use nnz_device::cuda::Download;

/// Losses that the host has no room for: one more is waited for.
const MOST: usize = 32;

/// A term of a loss.
#[derive(Clone, Copy, Debug)]
pub(super) enum Term<'w, T: GpuFloat> {
    /// A number of the plan.
    Number(f64),
    /// One element on the GPU; none where it was not computed.
    Computed(CudaSlice<'w, T>),
}

/// The losses of batches that were asked for and not given yet, in the order of the batches.
#[derive(Debug)]
pub(super) struct Losses<T: GpuFloat> {
    copies: Option<Download<T>>,
    /// What those that are copied are the sums of, term by term: a number, or where there is none,
    /// what is copied.
    terms: Vec<Option<f64>>,
    /// How many terms a loss has.
    n_terms: usize,
    /// Those that were waited for, which are before the others.
    arrived: Vec<f64>,
}

impl<T: GpuFloat> Losses<T> {
    /// Of losses that are sums of so many terms.
    pub(super) fn new(n_terms: usize) -> Self {
        let terms = Vec::with_capacity(n_terms * MOST);
        Losses { copies: None, terms, n_terms, arrived: Vec::with_capacity(MOST) }
    }

    /// Asks for the loss of a batch that is computed, and waits for none unless many were asked
    /// for.
    ///
    /// # Errors
    ///
    /// [`CudaError::PinnedOutOfMemory`], at first; what failed on the GPU where it waits.
    pub(super) fn ask<'w>(
        &mut self,
        gpu: &Gpu,
        terms: impl Iterator<Item = Term<'w, T>>,
    ) -> Result<(), CudaError> {
        if self.terms.len() >= self.n_terms * MOST {
            self.wait()?;
        }
        let copies = match &mut self.copies {
            Some(copies) => copies,
            none => none.insert(Download::new(gpu, self.n_terms * MOST, "the losses of steps")?),
        };
        let first = self.terms.len();
        for term in terms.take(self.n_terms) {
            let place = self.terms.len();
            let number = match term {
                Term::Number(number) => Some(number),
                Term::Computed(of) if of.len() == 1 => match copies.ask(place, of) {
                    Ok(()) => None,
                    Err(error) => {
                        self.terms.truncate(first);
                        return Err(error);
                    }
                },
                Term::Computed(_) => Some(f64::NAN),
            };
            self.terms.push(number);
        }
        Ok(())
    }

    /// How many were asked for and not given yet.
    pub(super) fn len(&self) -> usize {
        self.arrived.len() + self.terms.len() / self.n_terms.max(1)
    }

    /// Forgets those after the first.
    pub(super) fn truncate(&mut self, len: usize) {
        self.terms.truncate(len.saturating_sub(self.arrived.len()) * self.n_terms);
        self.arrived.truncate(len);
    }

    /// The loss that was asked for last, which is waited for. Those before it stay.
    ///
    /// # Errors
    ///
    /// What failed on the GPU before it.
    pub(super) fn newest(&mut self) -> Result<f64, CudaError> {
        self.wait()?;
        Ok(self.arrived.pop().unwrap_or(f64::NAN))
    }

    /// All of them, which are waited for.
    ///
    /// # Errors
    ///
    /// What failed on the GPU before the last.
    pub(super) fn give(&mut self, losses: &mut Vec<f64>) -> Result<(), CudaError> {
        self.wait()?;
        losses.append(&mut self.arrived);
        Ok(())
    }

    fn wait(&mut self) -> Result<(), CudaError> {
        let Some(copies) = self.copies.as_ref().filter(|_| !self.terms.is_empty()) else {
            return Ok(());
        };
        let copied = copies.wait()?;
        let values = self.terms.iter().zip(copied);
        let values = values.map(|(number, copied)| number.unwrap_or_else(|| copied.as_f64()));
        // Of one term after the other, as the host adds them.
        let mut values = values.peekable();
        while values.peek().is_some() {
            self.arrived.push(values.by_ref().take(self.n_terms).fold(0.0, |sum, term| sum + term));
        }
        self.terms.clear();
        Ok(())
    }
}
