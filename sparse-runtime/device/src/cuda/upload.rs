//! Asynchronous copies of batches to a GPU, while it computes.

use super::memory::Memory;
use super::pinned::Pinned;
use super::stream::Event;
use super::{CudaError, CudaSlice, Gpu};
use cudarc::driver::result;
use sparse_core::element::Stored;
use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;

/// What copies of arrays begin at a multiple of: the widest access of a kernel, and a line of the
/// GPU's cache.
const ALIGNMENT: usize = 128;

/// Where an array is in a block.
#[derive(Clone, Copy, Debug)]
pub struct Span<T> {
    /// In bytes.
    start: usize,
    len: usize,
    elements: PhantomData<fn() -> T>,
}

/// A block that is being laid out, array after array.
#[derive(Debug, Default)]
pub struct Layout {
    bytes: usize,
}

impl Layout {
    /// Room for so many elements more.
    pub fn span<T: Stored>(&mut self, len: usize) -> Span<T> {
        let start = self.bytes;
        let end = start.saturating_add(len.saturating_mul(size_of::<T>()));
        self.bytes = end.checked_next_multiple_of(ALIGNMENT).unwrap_or(usize::MAX);
        Span { start, len, elements: PhantomData }
    }
}

/// A block of arrays in pinned memory of the host, and its copy on a GPU.
///
/// It is copied by one call, on a stream that does nothing else, so that kernels run meanwhile.
/// Three orders are kept: the host writes into the pinned block when it was copied
/// ([`begin`](Upload::begin)), a copy is made when kernels have read the one before it
/// ([`is_read`](Upload::is_read)), and kernels read it when it is there ([`wait`](Upload::wait)).
pub struct Upload {
    pinned: Option<Pinned>,
    memory: Option<Memory>,
    /// In the stream of copies, after the last one.
    copied: Event,
    /// In the stream of kernels, after those that read the block.
    read: Event,
    bytes: usize,
    /// What is in it.
    arrays: Vec<&'static str>,
    /// After what is given back to it.
    gpu: Gpu,
}

impl Upload {
    /// An empty block.
    pub fn new(gpu: &Gpu) -> Result<Self, CudaError> {
        gpu.enter()?;
        Ok(Upload {
            copied: Event::new()?,
            read: Event::new()?,
            gpu: gpu.clone(),
            pinned: None,
            memory: None,
            bytes: 0,
            arrays: Vec::new(),
        })
    }

    /// Becomes a block that was laid out, to be written. Waits until what it was before was copied,
    /// which it is when kernels were asked to read it some time ago. Allocates only if there is no
    /// room.
    ///
    /// # Errors
    ///
    /// [`CudaError::OutOfMemory`], which names the arrays as part of `of`; the failure of the copy
    /// that it waits for.
    pub fn begin(
        &mut self,
        layout: &Layout,
        of: &'static str,
        arrays: impl Iterator<Item = &'static str>,
    ) -> Result<(), CudaError> {
        self.gpu.enter()?;
        self.copied
            .synchronize()
            .map_err(|code| CudaError::Copy { arrays: self.arrays.as_slice().into(), code })?;
        self.bytes = 0;
        self.arrays.clear();
        self.arrays.extend(arrays);
        let bytes = layout.bytes;
        let what = || format!("`{}` of `{of}`", self.arrays.join("`, `")).into();
        if self.pinned.as_ref().map_or(0, |pinned| pinned.bytes) < bytes {
            // Before there are two.
            self.pinned = None;
            self.pinned = Some(Pinned::allocate(bytes, what)?);
        }
        if self.memory.as_ref().map_or(0, Memory::bytes) < bytes {
            self.memory = Some(Memory::allocate(&self.gpu, bytes, what)?);
            // Memory is there from this place of the stream on.
            self.is_read()?;
        }
        self.bytes = bytes;
        Ok(())
    }

    /// An array of the block, to be written before it is [sent](Upload::send). It has whatever
    /// values were there.
    pub fn write<T: Stored>(&mut self, span: Span<T>) -> &mut [T] {
        let bytes = span.len * size_of::<T>();
        let pinned = self.pinned.as_mut().filter(|_| bytes > 0);
        let Some(pinned) = pinned else {
            // SAFETY: a run of no bytes.
            return unsafe {
                std::slice::from_raw_parts_mut(NonNull::dangling().as_ptr(), span.len)
            };
        };
        assert!(span.start + bytes <= self.bytes, "a span of another block");
        // SAFETY: within the block, as was just checked, and aligned, as it is to `ALIGNMENT`; any
        // bits that were written once are an element. The block is borrowed exclusively, and no
        // copy reads it, for which `begin` has waited.
        unsafe {
            std::slice::from_raw_parts_mut(pinned.start.as_ptr().add(span.start).cast(), span.len)
        }
    }

    /// Asks for the copy, which is made when kernels have read what was there before, and returns.
    ///
    /// # Errors
    ///
    /// [`CudaError::Copy`], which names the arrays.
    pub fn send(&mut self) -> Result<(), CudaError> {
        let (Some(pinned), Some(memory)) = (&self.pinned, &self.memory) else { return Ok(()) };
        self.gpu.enter()?;
        let copies = self.gpu.copies();
        copies.wait(&self.read)?;
        self.gpu.copying(&self.arrays);
        // SAFETY: the block has as many bytes, written once at least.
        let block = unsafe { std::slice::from_raw_parts(pinned.start.as_ptr(), self.bytes) };
        if !block.is_empty() {
            // SAFETY: there is room, and the pinned block stays as it is until `copied`, for which
            // `begin` and `drop` wait.
            unsafe { result::memcpy_htod_async(memory.address(), block, copies.handle) }.map_err(
                |error| CudaError::Copy { arrays: self.arrays.as_slice().into(), code: error.0 },
            )?;
        }
        let recorded = self.copied.record(copies);
        if recorded.is_err() {
            // Nobody else could wait for it. That it fails too leaves nothing to be done.
            let _ = copies.synchronize();
        }
        recorded
    }

    /// Kernels that are launched from now on find the block.
    pub fn wait(&self) -> Result<(), CudaError> {
        self.gpu.enter()?;
        self.gpu.copying(&self.arrays);
        self.gpu.kernels().wait(&self.copied)
    }

    /// All kernels that read the block were launched: the next copy waits for them.
    pub fn is_read(&self) -> Result<(), CudaError> {
        self.gpu.enter()?;
        self.read.record(self.gpu.kernels())
    }

    /// An array of the block, on the GPU.
    pub fn slice<T: Stored>(&self, span: Span<T>) -> CudaSlice<'_, T> {
        let end = span.start + span.len * size_of::<T>();
        assert!(end <= self.bytes, "a span of another block");
        CudaSlice::within(self.memory.as_ref(), span.start, span.len)
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        if self.gpu.enter().is_ok() {
            // The copy reads memory that is given back, and writes to memory that is. A failure
            // leaves nothing to be done.
            let _ = self.copied.synchronize();
        }
    }
}

/// The number of bytes, and what they are.
impl fmt::Debug for Upload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes of {:?} on {:?}", self.bytes, self.arrays, self.gpu)
    }
}
