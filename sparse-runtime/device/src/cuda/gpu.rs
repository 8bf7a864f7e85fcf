//! An opened GPU: its context, streams and kernels.

use super::CudaError;
use super::compile::{Modules, Unit};
use super::error::refused;
use super::kernel::Kernel;
use super::probe::{CudaDeviceInfo, probe};
use super::stream::{Event, Stream};
use cudarc::driver::{result, sys};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// The oldest CUDA whose driver is used.
const OLDEST_DRIVER: (u32, u32) = (12, 0);

/// A GPU: its context, the stream on which everything is done in order but for copies of batches,
/// which have another, and the kernels compiled for it.
///
/// Clones are the same GPU, and arrays on it have one, so that it is closed when the last of all
/// these is dropped. Threads may share it.
#[derive(Clone)]
pub struct Gpu {
    shared: Arc<Shared>,
}

struct Shared {
    /// Before what they were loaded into.
    modules: Modules,
    kernels: Stream,
    copies: Stream,
    context: Context,
    ordinal: usize,
    info: CudaDeviceInfo,
    waits: AtomicBool,
    /// Why launches are made one by one.
    graphs_refused: OnceLock<CudaError>,
    progress: Mutex<Progress>,
}

/// What was asked for, most of it since the last synchronisation.
#[derive(Default)]
struct Progress {
    launched: Vec<Submission>,
    copying: Vec<Submission>,
    /// How much was noted ever.
    n_noted: u64,
    /// All launches in their order, while somebody asks for them.
    traced: Option<Vec<&'static str>>,
    failure: Option<CudaError>,
    /// What a kernel or a copy has left, for which the GPU must be opened anew.
    broken: Option<CudaError>,
}

impl Progress {
    /// The failure of what was asked for since the last synchronisation; ever after the same.
    fn broken(&mut self, code: sys::CUresult) -> CudaError {
        let names = |noted: &[Submission]| noted.iter().map(|of| of.name).collect();
        let (kernels, copies) = (names(&self.launched), names(&self.copying));
        self.broken.get_or_insert(CudaError::Kernel { kernels, copies, code }).clone()
    }
}

/// A kernel or copy that was submitted, by name.
#[derive(Clone, Copy)]
struct Submission {
    name: &'static str,
    /// The number of the last time.
    last: u64,
}

/// What a kernel writes.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a destination of a kernel",
    note = "kernels write arrays and buffers of a GPU"
)]
pub trait Destination {
    /// Becomes an array without elements, which is on a GPU.
    fn store_nothing(&mut self, gpu: &Gpu);
}

impl Gpu {
    /// Opens the GPU of a number, from 0, as `nvidia-smi` and `CUDA_VISIBLE_DEVICES` count them.
    ///
    /// Kernels are compiled when they are first used, and kept on disk: in the folder that the
    /// environment variable `NNZ_CUDA_CACHE` names, else in `nnz/cuda` under `XDG_CACHE_HOME` or
    /// `~/.cache`. An empty `NNZ_CUDA_CACHE` keeps none.
    ///
    /// # Errors
    ///
    /// [`CudaError`] where there is no driver, no such GPU, the driver is too old or refuses.
    pub fn open(ordinal: usize) -> Result<Self, CudaError> {
        let found = probe()?;
        let count = found.devices.len();
        let Some(info) = found.devices.into_iter().nth(ordinal) else {
            return Err(CudaError::NoSuchDevice { ordinal, count });
        };
        if found.driver_version < OLDEST_DRIVER {
            let needed = OLDEST_DRIVER;
            return Err(CudaError::DriverTooOld { found: found.driver_version, needed });
        }
        let device = result::device::get(ordinal as i32).map_err(refused("cuDeviceGet"))?;
        let context = Context::open(device)?;
        keep_freed_memory(device, ordinal)?;
        let (kernels, copies) = (Stream::open()?, Stream::open()?);
        let (major, minor) = info.compute_capability;
        let modules = Modules::new(format!("sm_{major}{minor}"));
        Ok(Gpu {
            shared: Arc::new(Shared {
                modules,
                kernels,
                copies,
                context,
                ordinal,
                info,
                waits: AtomicBool::new(false),
                graphs_refused: OnceLock::new(),
                progress: Mutex::default(),
            }),
        })
    }

    /// Its number.
    pub fn ordinal(&self) -> usize {
        self.shared.ordinal
    }

    /// What the driver says of it.
    pub fn info(&self) -> &CudaDeviceInfo {
        &self.shared.info
    }

    /// Waits until all work so far is done.
    ///
    /// # Errors
    ///
    /// The first failure since the last synchronisation, with its name if it is a kernel; later
    /// work was not done. The GPU can be used again after [`CudaError::OutOfMemory`] and any other
    /// failure before work reached the GPU, and must be opened anew after [`CudaError::Kernel`].
    pub fn synchronize(&self) -> Result<(), CudaError> {
        self.shared.context.enter()?;
        let done = self.kernels().synchronize();
        let mut progress = self.progress();
        let failure = progress.failure.take();
        if let Err(code) = done {
            // It came before what could not be launched because of it.
            return Err(progress.broken(code));
        }
        progress.launched.clear();
        progress.copying.clear();
        failure.map_or(Ok(()), Err)
    }

    /// Reports what failed before it reached the GPU, for which nobody waits unless something did.
    ///
    /// # Errors
    ///
    /// As [`synchronize`](Gpu::synchronize).
    pub fn check(&self) -> Result<(), CudaError> {
        let has_failed = self.progress().failure.is_some();
        if has_failed { self.synchronize() } else { Ok(()) }
    }

    /// An event becomes the place that is reached when all is done that was asked for so far, of
    /// which the number is returned.
    pub(super) fn mark(&self, event: &Event) -> Result<u64, CudaError> {
        self.enter()?;
        event.record(self.kernels())?;
        Ok(self.progress().n_noted)
    }

    /// Waits for a place that was marked, and for no more.
    ///
    /// # Errors
    ///
    /// The first failure before it, as [`synchronize`](Gpu::synchronize) has it.
    pub(super) fn reach(&self, event: &Event, mark: u64) -> Result<(), CudaError> {
        self.enter()?;
        let reached = event.synchronize();
        let mut progress = self.progress();
        reached.map_err(|code| progress.broken(code))?;
        let Progress { launched, copying, .. } = &mut *progress;
        [launched, copying].into_iter().for_each(|noted| noted.retain(|of| of.last > mark));
        Ok(())
    }

    /// What failed before an error, if something did: whatever is asked of a GPU after a kernel has
    /// failed is refused.
    pub fn first_of(&self, error: CudaError) -> CudaError {
        self.synchronize().err().unwrap_or(error)
    }

    /// Whether each launch of a kernel waits for its end, so that a failure names the one kernel
    /// that caused it; no launch is then part of a graph. Slow; off by default.
    pub fn wait_for_each_kernel(&self, wait: bool) {
        self.shared.waits.store(wait, Ordering::Relaxed);
    }

    pub(super) fn waits_for_each_kernel(&self) -> bool {
        self.shared.waits.load(Ordering::Relaxed)
    }

    /// The reason why the launches of a step are made one by one, if the driver refused to make
    /// them by a CUDA graph. Results are the same, and steps of small batches slower.
    pub fn graphs_refused(&self) -> Option<&CudaError> {
        self.shared.graphs_refused.get()
    }

    pub(super) fn refuse_graphs(&self, because: CudaError) {
        // The first reason stays.
        let _ = self.shared.graphs_refused.set(because);
    }

    /// True where they are the same opened GPU.
    pub fn is(&self, other: &Gpu) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// Does `work` unless something failed before it. Its failure is kept for the next
    /// synchronisation, and its destination is left storing nothing, which is canonical, as half a
    /// result would not be.
    pub fn attempt<R: Destination>(
        &self,
        out: &mut R,
        work: impl FnOnce(&mut R) -> Result<(), CudaError>,
    ) {
        let failed_before = self.progress().failure.is_some();
        if !failed_before {
            match work(out) {
                Ok(()) => return,
                Err(failure) => self.fail(failure),
            }
        }
        out.store_nothing(self);
    }

    /// Keeps a failure for the next synchronisation, unless there is one.
    pub(super) fn fail(&self, failure: CudaError) {
        self.progress().failure.get_or_insert(failure);
    }

    /// Makes the calling thread's calls go to this GPU.
    pub(super) fn enter(&self) -> Result<(), CudaError> {
        self.shared.context.enter()
    }

    pub(super) fn stream(&self) -> sys::CUstream {
        self.kernels().handle
    }

    /// The stream on which all is done but what [`copies`](Gpu::copies) has. Launches that are
    /// recorded are made first.
    pub(super) fn kernels(&self) -> &Stream {
        self.interrupt();
        &self.shared.kernels
    }

    /// The same stream, for launches.
    pub(super) fn launches(&self) -> sys::CUstream {
        self.shared.kernels.handle
    }

    /// The stream of copies that kernels wait for by name.
    pub(super) fn copies(&self) -> &Stream {
        &self.shared.copies
    }

    /// A kernel of a unit, compiled or loaded where it is not there yet.
    pub fn kernel(&self, unit: &Unit<'_>, name: &'static str) -> Result<Arc<Kernel>, CudaError> {
        self.enter()?;
        self.shared.modules.kernel(unit, name)
    }

    /// The kernels that `work` launches, by name, in the order of their launches: the parts of a
    /// step.
    pub fn trace(&self, work: impl FnOnce()) -> Vec<&'static str> {
        let around = self.progress().traced.replace(Vec::new());
        work();
        let mut progress = self.progress();
        let traced = progress.traced.take().unwrap_or_default();
        // What asked for them before gets these as well.
        progress.traced = around.map(|mut all| {
            all.extend(&traced);
            all
        });
        traced
    }

    /// Notes a launch, and waits for it where that was asked for.
    pub(super) fn launched(&self, kernel: &'static str) -> Result<(), CudaError> {
        if let Some(traced) = &mut self.progress().traced {
            traced.push(kernel);
        }
        if self.waits_for_each_kernel() {
            return self.kernels().synchronize().map_err(|code| {
                let mut progress = self.progress();
                progress.launched = vec![Submission { name: kernel, last: 0 }];
                progress.broken(code)
            });
        }
        let mut progress = self.progress();
        progress.n_noted += 1;
        let last = progress.n_noted;
        note(&mut progress.launched, Submission { name: kernel, last });
        Ok(())
    }

    /// Notes copies that the next synchronisation may wait for.
    pub(super) fn copying(&self, arrays: &[&'static str]) {
        let mut progress = self.progress();
        progress.n_noted += 1;
        let last = progress.n_noted;
        arrays.iter().for_each(|name| note(&mut progress.copying, Submission { name, last }));
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        // Each access leaves it whole.
        self.shared.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Each name once, the newest last.
fn note(all: &mut Vec<Submission>, new: Submission) {
    all.retain(|of| of.name != new.name);
    all.push(new);
}

/// The name and number.
impl fmt::Debug for Gpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Gpu({}: {})", self.ordinal(), self.info().name)
    }
}

/// The driver's context of a device, which all of the process share.
struct Context {
    device: sys::CUdevice,
    handle: sys::CUcontext,
}

// SAFETY: the driver's contexts may be used from any thread; each call is preceded by `enter` on
// its thread.
unsafe impl Send for Context {}
// SAFETY: as above; the driver has locks of its own.
unsafe impl Sync for Context {}

impl Context {
    fn open(device: sys::CUdevice) -> Result<Self, CudaError> {
        // SAFETY: `device` came from `cuDeviceGet`.
        let handle = unsafe { result::primary_ctx::retain(device) }
            .map_err(refused("cuDevicePrimaryCtxRetain"))?;
        let context = Context { device, handle };
        context.enter()?;
        Ok(context)
    }

    fn enter(&self) -> Result<(), CudaError> {
        // SAFETY: the context was retained and is released by `drop` only.
        unsafe { result::ctx::set_current(self.handle) }.map_err(refused("cuCtxSetCurrent"))
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: retained once, in `open`. A failure leaves nothing to be done.
        let _ = unsafe { result::primary_ctx::release(self.device) };
    }
}

/// The pool that arrays are allocated from gives nothing back to the system, so that a step does
/// not map memory anew.
fn keep_freed_memory(device: sys::CUdevice, ordinal: usize) -> Result<(), CudaError> {
    use sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED as SUPPORTED;
    use sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD as THRESHOLD;

    // SAFETY: `device` came from `cuDeviceGet`.
    let supported = unsafe { result::device::get_attribute(device, SUPPORTED) }
        .map_err(refused("cuDeviceGetAttribute"))?;
    if supported == 0 {
        return Err(CudaError::NoMemoryPools { ordinal });
    }
    // SAFETY: as above.
    let pool = unsafe { result::device::get_default_mem_pool(device) }
        .map_err(refused("cuDeviceGetDefaultMemPool"))?;
    let mut all = u64::MAX;
    // SAFETY: the pool is the device's, and the value of this attribute is a `u64`.
    unsafe { result::mem_pool::set_attribute(pool, THRESHOLD, (&raw mut all).cast()) }
        .map_err(refused("cuMemPoolSetAttribute"))
}
