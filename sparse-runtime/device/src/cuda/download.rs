//! Asynchronous copies from a GPU to the host.

use super::error::refused;
use super::pinned::Pinned;
use super::stream::Event;
use super::{CudaError, CudaSlice, Gpu};
use cudarc::driver::result;
use sparse_core::element::Stored;
use std::fmt;
use std::marker::PhantomData;

/// Places in pinned memory of the host to which elements are copied when the GPU has come so far,
/// and which are read when somebody waits for them: until then nobody does.
pub struct Download<T: Stored> {
    pinned: Pinned,
    /// After the last copy.
    copied: Event,
    /// What had been launched then.
    mark: u64,
    gpu: Gpu,
    elements: PhantomData<fn() -> T>,
}

impl<T: Stored> Download<T> {
    /// Room for so many elements, at least one.
    ///
    /// # Errors
    ///
    /// [`CudaError::PinnedOutOfMemory`], which names `what`.
    pub fn new(gpu: &Gpu, len: usize, what: &'static str) -> Result<Self, CudaError> {
        gpu.enter()?;
        let bytes = len.max(1) * size_of::<T>().max(1);
        Ok(Download {
            pinned: Pinned::allocate(bytes, || what.into())?,
            copied: Event::new()?,
            mark: 0,
            gpu: gpu.clone(),
            elements: PhantomData,
        })
    }

    /// For how many elements there is room.
    pub fn len(&self) -> usize {
        self.pinned.bytes / size_of::<T>().max(1)
    }

    /// True where there is room for no element.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Asks for a copy of elements, which are those that they will be when all is done that was
    /// asked for so far, to a place and those after it. What was copied there before is lost.
    ///
    /// # Errors
    ///
    /// The call that the driver refused.
    pub fn ask(&mut self, place: usize, from: CudaSlice<'_, T>) -> Result<(), CudaError> {
        let bytes = from.len() * size_of::<T>();
        let start = place * size_of::<T>();
        assert!(start + bytes <= self.pinned.bytes, "a place that is not there");
        if bytes == 0 {
            return Ok(());
        }
        let from = from.address_on(&self.gpu)?;
        self.gpu.enter()?;
        // SAFETY: within the pinned memory, as was just checked, which is there until the event,
        // for which `drop` waits, and is read after it only: `wait` borrows it.
        let to =
            unsafe { std::slice::from_raw_parts_mut(self.pinned.start.as_ptr().add(start), bytes) };
        // SAFETY: there are as many bytes on the GPU.
        unsafe { result::memcpy_dtoh_async(to, from, self.gpu.stream()) }
            .map_err(refused("cuMemcpyDtoHAsync"))?;
        self.mark = self.gpu.mark(&self.copied)?;
        Ok(())
    }

    /// The elements, when the last copy was made. What else the GPU was asked for may not be done
    /// yet.
    ///
    /// # Errors
    ///
    /// What failed on the GPU before the copy, with the kernels that were launched since somebody
    /// waited.
    pub fn wait(&self) -> Result<&[T], CudaError> {
        self.gpu.reach(&self.copied, self.mark)?;
        let len = self.len();
        // SAFETY: the memory was written when it was allocated, it is aligned to a page, and no
        // copy writes there any more.
        Ok(unsafe { std::slice::from_raw_parts(self.pinned.start.as_ptr().cast(), len) })
    }
}

impl<T: Stored> Drop for Download<T> {
    fn drop(&mut self) {
        if self.gpu.enter().is_ok() {
            // The copies write to memory that is given back. A failure leaves nothing to be done.
            let _ = self.copied.synchronize();
        }
    }
}

/// The type and number of elements.
impl<T: Stored> fmt::Debug for Download<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes of {} from {:?}", self.pinned.bytes, T::TYPE.name(), self.gpu)
    }
}
