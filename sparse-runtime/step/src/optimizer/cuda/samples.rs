//! Derivatives that are kept for every sample, on a GPU: those of
//! [`Samples`](crate::optimizer::Samples), in memory of the updater.

use super::super::samples::Usage;
use super::super::updater::Updater;
use crate::error::Result;
use crate::model::on_gpu::rows::KeptRows;
use nnz_arrays::device::cuda::{CudaBuffer, Gpu};
use nnz_arrays::kernels::cuda::GpuFloat;
use nnz_arrays::parameter_memory::Owner;
use nnz_optim::UpdateRule;

const DERIVATIVES: &str = "the derivatives of samples";

/// That of no derivatives: of an updater they count from 0.
const NO_VERSION: u64 = u64::MAX;

/// The bit of a sample's number that says that an earlier row of the batch is the same sample.
const AGAIN: u64 = 1 << 63;

/// What a model on a GPU keeps of each sample, and which ones the rows of its batch are.
#[derive(Debug)]
pub(crate) struct CudaSamples<T: GpuFloat> {
    usage: Usage,
    /// The derivatives of each updater that makes steps with this model, those of the last step
    /// first.
    kept: Vec<UpdaterDerivatives<T>>,
    /// The number of each row's sample, with [`AGAIN`].
    ids: CudaBuffer<u64>,
    /// Scratch: ids on the host, and for each sample the last batch that was looked through for it.
    marked: Vec<u64>,
    last_seen: Vec<u64>,
    n_batches: u64,
}

/// The derivatives of all samples, as one updater keeps them.
#[derive(Debug)]
struct UpdaterDerivatives<T: GpuFloat> {
    owner: Owner,
    /// Which of the owner's they are.
    version: u64,
    /// `columns` a sample, sample by sample.
    derivatives: CudaBuffer<T>,
}

/// None.
impl<T: GpuFloat> Default for CudaSamples<T> {
    fn default() -> Self {
        CudaSamples {
            usage: Usage::Nothing,
            kept: Vec::new(),
            ids: CudaBuffer::default(),
            marked: Vec::new(),
            last_seen: Vec::new(),
            n_batches: 0,
        }
    }
}

impl<T: GpuFloat> CudaSamples<T> {
    /// A copy. What cannot be copied is reported by the next synchronisation.
    pub(crate) fn copy(&self, gpu: &Gpu) -> Self {
        let copies = self.kept.iter().filter(|of| of.owner.is_there()).map(|of| {
            let mut derivatives = CudaBuffer::default();
            gpu.attempt(&mut derivatives, |copy| {
                copy.assign(gpu, of.derivatives.as_slice(), DERIVATIVES)
            });
            UpdaterDerivatives { owner: of.owner.clone(), version: of.version, derivatives }
        });
        CudaSamples { kept: copies.collect(), ..CudaSamples::default() }
    }

    /// Those of the batch.
    pub(crate) fn of_batch(&self) -> KeptRows<'_, T> {
        match (self.usage, self.kept.first()) {
            (Usage::Nothing, _) | (_, None) => KeptRows::default(),
            (usage, Some(kept)) => {
                let (derivatives, ids) = (kept.derivatives.as_slice(), self.ids.as_slice());
                KeptRows { usage, derivatives, ids }
            }
        }
    }

    /// Whether the step of the batch reads or writes what is kept.
    pub(crate) fn are_used(&self) -> bool {
        self.usage != Usage::Nothing
    }

    /// Whether the step of the batch puts new derivatives in the place of those that are kept.
    pub(crate) fn are_exchanged(&self) -> bool {
        self.usage == Usage::Exchange
    }

    /// No further batch is one of these samples until it is said.
    pub(crate) fn rest(&mut self) {
        self.usage = Usage::Nothing;
    }

    /// The samples of the rows of the next batch, each but its first row marked where derivatives
    /// are exchanged: rows that come in any order must not exchange those of one sample.
    fn mark(&mut self, ids: &[usize], n_samples: usize) -> &[u64] {
        self.marked.clear();
        self.marked.extend(ids.iter().map(|id| *id as u64));
        if self.usage == Usage::Exchange {
            self.last_seen.resize(n_samples, 0);
            self.n_batches += 1;
            for (id, marked) in ids.iter().zip(&mut self.marked) {
                let last = std::mem::replace(&mut self.last_seen[*id], self.n_batches);
                if last == self.n_batches {
                    *marked |= AGAIN;
                }
            }
        }
        &self.marked
    }
}

impl<R: UpdateRule, T: GpuFloat> Updater<R, T> {
    /// Copies to a GPU what the next step does with derivatives of samples, which have `columns`
    /// numbers each: those that are kept, unless they are there.
    ///
    /// # Errors
    ///
    /// [`CudaError::OutOfMemory`](nnz_arrays::device::cuda::CudaError::OutOfMemory).
    pub(crate) fn samples_to_gpu(
        &mut self,
        samples: &mut CudaSamples<T>,
        columns: usize,
        gpu: &Gpu,
    ) -> Result<()> {
        samples.rest();
        let kept = &self.reduction.samples;
        if !R::CORRECTS || kept.usage() == Usage::Nothing {
            return Ok(());
        }
        samples.kept.retain(|of| of.owner.is_there());
        let known = samples.kept.iter().position(|of| of.owner.is(&self.tenant));
        let mut own = match known {
            Some(position) => samples.kept.swap_remove(position),
            None => {
                let (owner, derivatives) = (self.tenant.as_owner(), CudaBuffer::default());
                UpdaterDerivatives { owner, version: NO_VERSION, derivatives }
            }
        };
        if own.version != kept.version() {
            own.version = NO_VERSION;
            let (values, len) = (kept.derivatives(), kept.n_samples() * columns);
            if values.len() == len {
                own.derivatives.assign_from_host(gpu, values, DERIVATIVES)?;
            } else {
                own.derivatives.resize_for_overwrite(gpu, len, DERIVATIVES)?;
                // The zero of every float has no bits.
                own.derivatives.fill_bytes(0)?;
            }
            own.version = kept.version();
        }
        samples.kept.insert(0, own);
        samples.usage = kept.usage();
        samples.mark(kept.ids(), kept.n_samples());
        let named = samples.ids.assign_from_host(gpu, &samples.marked, "the samples of a batch");
        if named.is_err() {
            samples.rest();
        }
        Ok(named?)
    }

    /// Takes derivatives of samples back from a GPU, if they are there. O(samples).
    ///
    /// # Errors
    ///
    /// What failed on the GPU.
    pub(crate) fn samples_from_gpu(&mut self, samples: &CudaSamples<T>) -> Result<()> {
        let version = self.reduction.samples.version();
        let is_own =
            |of: &&UpdaterDerivatives<T>| of.owner.is(&self.tenant) && of.version == version;
        if R::CORRECTS
            && let Some(own) = samples.kept.iter().find(is_own)
        {
            self.reduction.samples.bring(own.derivatives.to_host()?);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_exchanged_once_a_batch() {
        let mut samples = CudaSamples::<f32>::default();
        assert_eq!(samples.mark(&[3, 3], 4), [3, 3]);
        samples.usage = Usage::Exchange;
        for _ in 0..2 {
            assert_eq!(samples.mark(&[3, 0, 3, 1, 0], 4), [3, 0, 3 | AGAIN, 1, AGAIN]);
        }
        assert_eq!(samples.mark(&[7], 8), [7]);
        assert_eq!(samples.mark(&[], 0), [0; 0]);
    }
}
