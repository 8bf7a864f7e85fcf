//! Launches of kernels, with their arguments checked against the kernel's parameters.

use super::kernel::Kernel;
use super::{CudaError, CudaSlice, Gpu};
use cudarc::driver::{result, sys};
use sparse_core::element::Stored;
use std::ffi::c_void;
use std::fmt;
use std::sync::Arc;

/// How many blocks of how many threads.
#[derive(Clone, Copy, Debug)]
pub struct Blocks {
    /// Blocks along the first axis of the grid.
    pub x: usize,
    /// Blocks along the second axis.
    pub y: usize,
    /// Threads of each block.
    pub threads: u32,
}

impl Blocks {
    /// As many blocks as `items` take, of which each does so many.
    pub fn of(items: usize, each: usize, threads: u32) -> Self {
        Blocks { x: items.div_ceil(each), y: 1, threads }
    }
}

const MOST_ARGUMENTS: usize = 32;

/// How many arrays the prelude's `sides` are at most.
pub const MOST_SIDES: usize = 4;

/// What all arguments of a launch take at most, in units of 8 bytes.
const MOST_BITS: usize = 64;

/// A launch whose arguments are being put together.
pub struct Launch<'a> {
    gpu: &'a Gpu,
    call: Call,
    /// Why it cannot be launched.
    refused: Option<CudaError>,
}

impl fmt::Debug for Launch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Launch").field("refused", &self.refused).finish_non_exhaustive()
    }
}

/// A kernel with its arguments.
#[derive(Clone)]
pub(super) struct Call {
    kernel: Arc<Kernel>,
    /// The blocks, and the threads of each.
    grid: [u32; 3],
    /// The arguments, one after the other; the bits of a number are in its first bytes.
    bits: [u64; MOST_BITS],
    used: usize,
    /// Where each argument is.
    starts: [usize; MOST_ARGUMENTS],
    number: usize,
}

impl Call {
    fn new(kernel: Arc<Kernel>) -> Self {
        let (bits, starts) = ([0; MOST_BITS], [0; MOST_ARGUMENTS]);
        Call { kernel, grid: [0; 3], bits, used: 0, starts, number: 0 }
    }

    /// Whether both are of one kernel.
    pub(super) fn is_of_kernel_of(&self, other: &Call) -> bool {
        Arc::ptr_eq(&self.kernel, &other.kernel)
    }

    /// Whether both, of one kernel, do the same.
    pub(super) fn is_same(&self, other: &Call) -> bool {
        // Of one kernel the arguments are as many, and begin where the others do.
        self.grid == other.grid && self.bits[..self.used] == other.bits[..other.used]
    }

    /// Where each argument is, for a call of the driver, which copies them.
    fn addresses(&mut self) -> [*mut c_void; MOST_ARGUMENTS] {
        let mut addresses = [std::ptr::null_mut::<c_void>(); MOST_ARGUMENTS];
        for (address, &start) in addresses.iter_mut().zip(&self.starts[..self.number]) {
            *address = (&raw mut self.bits[start]).cast();
        }
        addresses
    }

    /// Gives it to the driver as a node of a graph.
    pub(super) fn with_parameters<R>(
        &mut self,
        give: impl FnOnce(&sys::CUDA_KERNEL_NODE_PARAMS) -> R,
    ) -> R {
        let mut addresses = self.addresses();
        let [x, y, threads] = self.grid;
        give(&sys::CUDA_KERNEL_NODE_PARAMS {
            func: self.kernel.function,
            gridDimX: x,
            gridDimY: y,
            gridDimZ: 1,
            blockDimX: threads,
            blockDimY: 1,
            blockDimZ: 1,
            sharedMemBytes: 0,
            kernelParams: addresses.as_mut_ptr(),
            extra: std::ptr::null_mut(),
            // The function is in the context of the calling thread.
            kern: std::ptr::null_mut(),
            ctx: std::ptr::null_mut(),
        })
    }

    /// Asks for it.
    ///
    /// # Safety
    ///
    /// As of [`Launch::launch`], which it was made for.
    pub(super) unsafe fn launch(&mut self, gpu: &Gpu) -> Result<(), CudaError> {
        gpu.enter()?;
        let mut addresses = self.addresses();
        let ([x, y, threads], kernel) = (self.grid, &*self.kernel);
        // SAFETY: the arguments are of the kernel's types, which builds with debug assertions
        // compare, and outlive the call, which copies them; hosts of CUDA are little-endian, so
        // that the first bytes of each are the number. The rest the caller sees to.
        unsafe {
            result::launch_kernel(
                kernel.function,
                (x, y, 1),
                (threads, 1, 1),
                0,
                gpu.launches(),
                &mut addresses[..self.number],
            )
        }
        .map_err(|error| CudaError::Launch { kernel: kernel.name, code: error.0 })
    }
}

impl<'a> Launch<'a> {
    /// A launch of a kernel of `gpu`, without arguments.
    pub fn new(gpu: &'a Gpu, kernel: Arc<Kernel>) -> Self {
        Launch { gpu, call: Call::new(kernel), refused: None }
    }

    fn argument(mut self, bits: &[u64], fits: impl Fn(&str) -> bool) -> Self {
        let call = &mut self.call;
        debug_assert!(
            call.kernel.parameters.get(call.number).is_some_and(|of| fits(of)),
            "argument {} of `{}` is not a {:?}",
            call.number,
            call.kernel.name,
            call.kernel.parameters.get(call.number),
        );
        call.starts[call.number] = call.used;
        call.bits[call.used..][..bits.len()].copy_from_slice(bits);
        call.used += bits.len();
        call.number += 1;
        self
    }

    /// The address of elements, for a record.
    pub fn address<T: Stored>(&mut self, slice: CudaSlice<'_, T>) -> u64 {
        slice.address_on(self.gpu).unwrap_or_else(|error| {
            self.refused = Some(error);
            0
        })
    }

    fn slice<T: Stored>(mut self, slice: CudaSlice<'_, T>, qualifier: &str) -> Self {
        let address = self.address(slice);
        self.argument(&[address], |of| {
            of.strip_prefix(qualifier).and_then(|of| of.strip_suffix(" *")) == Some(T::TYPE.name())
        })
    }

    /// Elements that the kernel reads.
    pub fn reads<T: Stored>(self, slice: CudaSlice<'_, T>) -> Self {
        self.slice(slice, "const ")
    }

    /// Elements that the kernel writes.
    pub fn writes<T: Stored>(self, slice: CudaSlice<'_, T>) -> Self {
        self.slice(slice, "")
    }

    /// A number of elements, or a position.
    pub fn size(self, size: usize) -> Self {
        self.argument(&[size as u64], |of| of == "u64")
    }

    /// A number.
    pub fn f64(self, number: f64) -> Self {
        self.argument(&[number.to_bits()], |of| of == "f64")
    }

    /// Numbers, in a struct of the prelude by the name `of`.
    pub fn record(self, of: &str, bits: &[u64]) -> Self {
        self.argument(bits, |parameter| parameter == of)
    }

    /// Arrays that the kernel reads, each of so many rows, as the prelude's `sides`: at most
    /// [`MOST_SIDES`], which further ones are not among.
    pub fn sides<T: Stored>(mut self, sides: &[(CudaSlice<'_, T>, usize)]) -> Self {
        let (mut bits, mut end) = ([0; 2 * MOST_SIDES - 1], 0);
        for (at, (side, n_rows)) in sides.iter().take(MOST_SIDES).enumerate() {
            bits[at] = self.address(*side);
            end += *n_rows as u64;
            if at + 1 < MOST_SIDES {
                bits[MOST_SIDES + at] = end;
            }
        }
        self.record("sides", &bits)
    }

    /// Launches it, unless there are no blocks. What is done happens later.
    ///
    /// # Safety
    ///
    /// The kernel must stay within the slices that it was given for the sizes that it was given,
    /// and nobody but it may have those that it writes.
    pub unsafe fn launch(self, blocks: Blocks) -> Result<(), CudaError> {
        let Blocks { x, y, threads } = blocks;
        let Launch { gpu, mut call, refused } = self;
        if let Some(refused) = refused {
            return Err(refused);
        }
        let name = call.kernel.name;
        debug_assert_eq!(call.number, call.kernel.parameters.len(), "arguments of `{name}`");
        if x == 0 || y == 0 {
            return Ok(());
        }
        let (Ok(x), Ok(y)) = (u32::try_from(x), u32::try_from(y)) else {
            let code = sys::CUresult::CUDA_ERROR_INVALID_VALUE;
            return Err(CudaError::Launch { kernel: name, code });
        };
        call.grid = [x, y, threads];
        if !gpu.records(&call) {
            // SAFETY: the caller sees to it.
            unsafe { call.launch(gpu) }?;
        }
        gpu.launched(name)
    }
}
