//! Memory of a GPU: owned and borrowed runs of elements.

use super::error::refused;
use super::{CudaError, Destination, Gpu};
use cudarc::driver::{result, sys};
use sparse_core::element::{Number, Stored};
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

/// An owned run of elements on a GPU. A new one is on none.
///
/// Invariant: `memory` has room for `len` elements, and is on `gpu`.
pub struct CudaBuffer<T: Stored> {
    gpu: Option<Gpu>,
    memory: Option<Memory>,
    len: usize,
    elements: PhantomData<fn() -> T>,
}

/// A borrowed run of elements on a GPU.
#[derive(Clone, Copy)]
pub struct CudaSlice<'a, T: Stored> {
    memory: Option<&'a Memory>,
    /// Where it starts in the memory, in bytes.
    start: usize,
    len: usize,
    elements: PhantomData<fn() -> T>,
}

/// Memory from a GPU's pool, given back in the order of its stream: what was asked for before it is
/// dropped still finds it.
pub(super) struct Memory {
    gpu: Gpu,
    address: sys::CUdeviceptr,
    bytes: usize,
}

impl Memory {
    /// The text of `what` is asked for where there is not enough.
    pub(super) fn allocate(
        gpu: &Gpu,
        bytes: usize,
        what: impl FnOnce() -> Cow<'static, str>,
    ) -> Result<Self, CudaError> {
        gpu.enter()?;
        // SAFETY: the stream is the GPU's own, on which all uses of the memory are.
        let address = unsafe { result::malloc_async(gpu.stream(), bytes) };
        match address {
            Ok(address) => Ok(Memory { gpu: gpu.clone(), address, bytes }),
            Err(result::DriverError(sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY)) => {
                Err(CudaError::OutOfMemory { what: what(), bytes })
            }
            Err(error) => Err(refused("cuMemAllocAsync")(error)),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn address(&self) -> sys::CUdeviceptr {
        self.address
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if self.gpu.enter().is_ok() {
            // SAFETY: allocated by `allocate` on the same stream, and nobody has it any more. A
            // failure leaves nothing to be done.
            let _ = unsafe { result::free_async(self.address, self.gpu.stream()) };
        }
    }
}

impl<T: Stored> CudaBuffer<T> {
    /// A copy of elements of the host. The copy is made before this returns, or from the driver's
    /// own memory later.
    ///
    /// # Errors
    ///
    /// [`CudaError::OutOfMemory`], which names `what`.
    pub fn from_host(gpu: &Gpu, values: &[T], what: &'static str) -> Result<Self, CudaError> {
        let mut buffer = CudaBuffer::default();
        buffer.assign_from_host(gpu, values, what)?;
        Ok(buffer)
    }

    /// Becomes a copy of elements of the host, in its memory if there is room.
    ///
    /// # Errors
    ///
    /// As [`from_host`](CudaBuffer::from_host); the buffer is then as before.
    pub fn assign_from_host(
        &mut self,
        gpu: &Gpu,
        values: &[T],
        what: &'static str,
    ) -> Result<(), CudaError> {
        self.resize_for_overwrite(gpu, values.len(), what)?;
        let Some(memory) = self.memory.as_ref().filter(|_| size_of_val(values) > 0) else {
            return Ok(());
        };
        gpu.enter()?;
        // SAFETY: there is room for `len` elements, and memory that is not pinned is copied away
        // before the call returns.
        unsafe { result::memcpy_htod_async(memory.address, values, gpu.stream()) }
            .map_err(|error| CudaError::Copy { arrays: [what].into(), code: error.0 })?;
        gpu.copying(&[what]);
        Ok(())
    }

    /// Copies elements of the host to a run of its own, which it must have.
    ///
    /// # Errors
    ///
    /// [`CudaError::Copy`], which names `what`.
    pub fn write_run(
        &mut self,
        start: usize,
        values: &[T],
        what: &'static str,
    ) -> Result<(), CudaError> {
        debug_assert!(start.checked_add(values.len()).is_some_and(|end| end <= self.len));
        let Some(memory) = self.memory.as_ref().filter(|_| size_of_val(values) > 0) else {
            return Ok(());
        };
        memory.gpu.enter()?;
        let address = memory.address + (start * size_of::<T>()) as u64;
        // SAFETY: the run is within the elements, for which there is room, and memory that is not
        // pinned is copied away before the call returns.
        unsafe { result::memcpy_htod_async(address, values, memory.gpu.stream()) }
            .map_err(|error| CudaError::Copy { arrays: [what].into(), code: error.0 })?;
        memory.gpu.copying(&[what]);
        Ok(())
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The GPU; none where it was never written.
    pub fn gpu(&self) -> Option<&Gpu> {
        self.gpu.as_ref()
    }

    /// Borrowed.
    pub fn as_slice(&self) -> CudaSlice<'_, T> {
        CudaSlice { memory: self.memory.as_ref(), start: 0, len: self.len, elements: PhantomData }
    }

    /// Takes a number of elements, with whatever values are in its memory. Allocates only if there
    /// is no room.
    ///
    /// # Errors
    ///
    /// [`CudaError::OutOfMemory`]; the buffer is as before.
    pub fn resize_for_overwrite(
        &mut self,
        gpu: &Gpu,
        len: usize,
        what: &'static str,
    ) -> Result<(), CudaError> {
        let bytes = len.saturating_mul(size_of::<T>());
        let fits = |memory: &Memory| memory.bytes >= bytes && memory.gpu.is(gpu);
        if bytes > 0 && !self.memory.as_ref().is_some_and(fits) {
            self.memory = Some(Memory::allocate(gpu, bytes, || what.into())?);
        }
        if !self.gpu.as_ref().is_some_and(|known| known.is(gpu)) {
            self.gpu = Some(gpu.clone());
        }
        self.len = len;
        Ok(())
    }

    /// Takes no elements, on a GPU: what failed there is reported where they are asked for.
    pub fn clear(&mut self, gpu: &Gpu) {
        *self = CudaBuffer { gpu: Some(gpu.clone()), ..CudaBuffer::default() };
    }

    /// Gives every byte one value; elements of zero bytes are 0.
    pub fn fill_bytes(&mut self, byte: u8) -> Result<(), CudaError> {
        let bytes = self.len * size_of::<T>();
        let Some(memory) = self.memory.as_ref().filter(|_| bytes > 0) else { return Ok(()) };
        memory.gpu.enter()?;
        // SAFETY: there is room for `len` elements.
        unsafe { result::memset_d8_async(memory.address, byte, bytes, memory.gpu.stream()) }
            .map_err(refused("cuMemsetD8Async"))
    }

    /// Becomes a copy of a run on the same GPU.
    pub fn assign(
        &mut self,
        gpu: &Gpu,
        from: CudaSlice<'_, T>,
        what: &'static str,
    ) -> Result<(), CudaError> {
        self.resize_for_overwrite(gpu, from.len, what)?;
        let bytes = self.len * size_of::<T>();
        let Some(memory) = self.memory.as_ref().filter(|_| bytes > 0) else { return Ok(()) };
        let from = from.address_on(gpu)?;
        gpu.enter()?;
        // SAFETY: both have `len` elements, and one is borrowed exclusively.
        unsafe { result::memcpy_dtod_async(memory.address, from, bytes, gpu.stream()) }
            .map_err(refused("cuMemcpyDtoDAsync"))
    }

    /// A copy on the host, when everything asked for before is done.
    ///
    /// # Errors
    ///
    /// As [`Gpu::synchronize`].
    pub fn to_host(&self) -> Result<Vec<T>, CudaError> {
        let mut values = vec![T::from_number(Number::Integer(0)); self.len];
        let Some(gpu) = &self.gpu else { return Ok(values) };
        gpu.enter()?;
        if let Some(memory) = self.memory.as_ref().filter(|_| self.len * size_of::<T>() > 0) {
            // SAFETY: there are `len` elements, and `values` is not touched until the stream was
            // waited for.
            unsafe { result::memcpy_dtoh_async(&mut values, memory.address, gpu.stream()) }
                // What failed before says more.
                .map_err(|error| gpu.first_of(refused("cuMemcpyDtoHAsync")(error)))?;
        }
        gpu.synchronize()?;
        Ok(values)
    }
}

impl<'a, T: Stored> CudaSlice<'a, T> {
    /// The number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// A run of elements of memory that has them from a byte on.
    pub(super) fn within(memory: Option<&'a Memory>, start: usize, len: usize) -> Self {
        CudaSlice { memory, start, len, elements: PhantomData }
    }

    /// A run of it, which it must have.
    pub fn run(&self, start: usize, len: usize) -> CudaSlice<'a, T> {
        debug_assert!(start.checked_add(len).is_some_and(|end| end <= self.len));
        CudaSlice { start: self.start + start * size_of::<T>(), len, ..*self }
    }

    /// Makes all elements 0; nobody but the caller may have them.
    pub fn zero(&self) -> Result<(), CudaError> {
        let bytes = self.len * size_of::<T>();
        let Some(memory) = self.memory.filter(|_| bytes > 0) else { return Ok(()) };
        memory.gpu.enter()?;
        let address = memory.address + self.start as u64;
        // SAFETY: there are `len` elements from the start of the run. The zero of every element
        // type has no bits.
        unsafe { result::memset_d8_async(address, 0, bytes, memory.gpu.stream()) }
            .map_err(refused("cuMemsetD8Async"))
    }

    /// One element more, which must be there.
    pub fn with_next(&self) -> CudaSlice<'a, T> {
        CudaSlice { len: self.len + 1, ..*self }
    }

    /// Its address, on the GPU on which it must be.
    pub(super) fn address_on(&self, gpu: &Gpu) -> Result<sys::CUdeviceptr, CudaError> {
        match self.memory {
            None => Ok(0),
            Some(memory) if memory.gpu.is(gpu) => Ok(memory.address + self.start as u64),
            Some(memory) => {
                Err(CudaError::AnotherGpu { found: memory.gpu.ordinal(), expected: gpu.ordinal() })
            }
        }
    }
}

impl<T: Stored> Destination for CudaBuffer<T> {
    fn store_nothing(&mut self, gpu: &Gpu) {
        self.clear(gpu);
    }
}

/// No elements, on no GPU.
impl<T: Stored> Default for CudaBuffer<T> {
    fn default() -> Self {
        CudaBuffer { gpu: None, memory: None, len: 0, elements: PhantomData }
    }
}

/// No elements.
impl<T: Stored> Default for CudaSlice<'_, T> {
    fn default() -> Self {
        CudaSlice { memory: None, start: 0, len: 0, elements: PhantomData }
    }
}

/// The type and number of elements: their values are elsewhere.
impl<T: Stored> fmt::Debug for CudaBuffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} × {} on {:?}", self.len, T::TYPE.name(), self.gpu())
    }
}

/// The type and number of elements: their values are elsewhere.
impl<T: Stored> fmt::Debug for CudaSlice<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} × {} on a GPU", self.len, T::TYPE.name())
    }
}
