//! The GPU that the tests run on: an emulated one, or with `NNZ_TEST_GPU=1` a real one.
//!
//! The emulation is a `libcuda.so` and a `libnvrtc.so` of C++ beside this file, built by g++ and
//! loaded before the library asks for them; what the library does is the same.

use sparse_runtime::device::cuda::Gpu;
use std::collections::hash_map::DefaultHasher;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// In the binary, so that it runs wherever it was copied to.
const SOURCES: [(&str, &str); 7] = [
    ("cuda_emulation.h", include_str!("emulation/cuda_emulation.h")),
    ("engine.h", include_str!("emulation/engine.h")),
    ("fibers.h", include_str!("emulation/fibers.h")),
    ("graphs.h", include_str!("emulation/graphs.h")),
    ("streams.h", include_str!("emulation/streams.h")),
    ("fake_cuda.cpp", include_str!("emulation/fake_cuda.cpp")),
    ("fake_nvrtc.cpp", include_str!("emulation/fake_nvrtc.cpp")),
];

/// A GPU, opened anew.
pub(crate) fn gpu() -> Gpu {
    static READY: OnceLock<()> = OnceLock::new();
    READY.get_or_init(|| {
        if !is_real() {
            emulate();
        }
    });
    Gpu::open(0).expect("a GPU")
}

/// Whether the GPU is a real one, of which nothing wrong may be asked.
pub(crate) fn is_real() -> bool {
    std::env::var_os("NNZ_TEST_GPU").is_some()
}

/// The emulated GPU gives the calling thread at most so many bytes at once.
#[allow(dead_code, reason = "the tests of models do")]
pub(crate) fn limit_memory(bytes: usize) {
    // SAFETY: the function takes a size and gives nothing.
    unsafe {
        let function = function_of_emulation(c"nnz_emulation_most_at_once");
        std::mem::transmute::<*mut c_void, extern "C" fn(usize)>(function)(bytes);
    }
}

/// The waits that the emulated GPU can leave out, as if nobody had asked for them.
#[allow(dead_code, reason = "the tests of models do")]
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wait {
    /// None is left out.
    Nothing = 0,
    /// Of streams on which kernels were launched.
    Kernels = 1,
    /// Of other streams.
    Copies = 2,
    /// Of the host for events.
    Host = 4,
}

/// The emulated GPU leaves out waits that the calling thread asks for from now on.
#[allow(dead_code, reason = "the tests of models do")]
pub(crate) fn leave_out(waits: Wait) {
    // SAFETY: the function takes an `int` and gives nothing.
    unsafe {
        let function = function_of_emulation(c"nnz_emulation_leave_out");
        std::mem::transmute::<*mut c_void, extern "C" fn(c_int)>(function)(waits as c_int);
    }
}

/// The next kernel of this name that the calling thread launches fails on the emulated GPU, as does
/// the next copy to it by the name `copy`; by the name `call` that copy is refused, and by the name
/// `graph` the next graph of launches.
#[allow(dead_code, reason = "the tests of models do")]
pub(crate) fn fail(name: &CStr) {
    // SAFETY: the function takes a text, which it copies, and gives nothing.
    unsafe {
        let function = function_of_emulation(c"nnz_emulation_fail");
        std::mem::transmute::<*mut c_void, extern "C" fn(*const c_char)>(function)(name.as_ptr());
    }
}

/// What the emulated GPU counts of each thread's calls.
#[allow(dead_code, reason = "the tests of models do")]
#[derive(Clone, Copy, Debug)]
pub(crate) enum Count {
    /// Waits of the host for all of a stream.
    StreamWaits = 0,
    /// Waits of the host for a place in a stream that was not reached yet.
    EventWaits = 1,
    /// Kernels that were launched one by one.
    Launches = 2,
    /// Graphs that were launched.
    GraphLaunches = 3,
    /// Launches of a graph that were given something else.
    GraphChanges = 4,
}

/// How often the calling thread has asked the emulated GPU for something.
#[allow(dead_code, reason = "the tests of models do")]
pub(crate) fn count(of: Count) -> usize {
    // SAFETY: the function takes an `int` and gives a size.
    unsafe {
        let function = function_of_emulation(c"nnz_emulation_count");
        std::mem::transmute::<*mut c_void, extern "C" fn(c_int) -> usize>(function)(of as c_int)
    }
}

/// Where memory of the host lay that the emulated GPU gave and was given back.
#[allow(dead_code, reason = "the tests of models do")]
pub(crate) fn place_of_freed_host_memory(bytes: usize) -> usize {
    let mut memory = std::ptr::null_mut();
    // SAFETY: the signatures are those of the driver, and the memory is not used.
    let results = unsafe {
        let allocate = function_of_emulation(c"cuMemHostAlloc");
        let free = function_of_emulation(c"cuMemFreeHost");
        let allocate = std::mem::transmute::<
            *mut c_void,
            extern "C" fn(*mut *mut c_void, usize, u32) -> c_int,
        >(allocate);
        let free = std::mem::transmute::<*mut c_void, extern "C" fn(*mut c_void) -> c_int>(free);
        (allocate(&mut memory, bytes, 0), free(memory))
    };
    assert_eq!(results, (0, 0));
    memory as usize
}

/// A function that the emulation has beside those of the driver.
fn function_of_emulation(name: &CStr) -> *mut c_void {
    // SAFETY: a look-up by a name that ends with 0; the emulation was loaded for all of the
    // process.
    let function = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    assert!(!function.is_null(), "the GPU is not emulated");
    function
}

fn emulate() {
    let mut hasher = DefaultHasher::new();
    SOURCES.hash(&mut hasher);
    // What was built of other sources is not found.
    let version = hasher.finish() % 1_000_000;
    let built = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("emulation-{version}"));
    fs::create_dir_all(&built).expect("a folder for the emulation");
    for (name, text) in SOURCES {
        let unfinished = built.join(format!("{name}.{}", std::process::id()));
        fs::write(&unfinished, text).expect("a source of the emulation");
        fs::rename(&unfinished, built.join(name)).expect("the source was written");
    }
    // SAFETY: no other thread of the tests reads the environment before this one call has ended.
    unsafe { std::env::set_var("NNZ_CUDA_CACHE", built.join("cache")) };
    for (source, library) in [("fake_cuda.cpp", "libcuda.so"), ("fake_nvrtc.cpp", "libnvrtc.so")] {
        let path = built.join(library);
        if !path.exists() {
            let unfinished = built.join(format!("{library}.{}", std::process::id()));
            let output = Command::new("g++")
                .args(["-std=gnu++17", "-O2", "-Wall", "-Wextra", "-fPIC", "-shared", "-o"])
                .arg(&unfinished)
                .arg(format!("-Wl,-soname,{library}"))
                .arg(format!("-DVERSION={version}"))
                .arg(format!("-DHEADERS=\"{}\"", built.display()))
                .arg(built.join(source))
                .arg("-ldl")
                .output()
                .expect("the tests of CUDA kernels need g++");
            let words = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{source} does not compile: {words}");
            fs::rename(&unfinished, &path).expect("the library was built");
        }
        load(&path);
    }
}

/// Loads a library for the process: one of its name is then taken to be it.
fn load(path: &Path) {
    let text = CString::new(path.to_str().expect("a path of UTF-8")).expect("a path without 0");
    // SAFETY: the library was just built, and loading it runs nothing.
    let handle = unsafe { libc::dlopen(text.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
    if handle.is_null() {
        // SAFETY: after a failure there is a message, which ends with 0.
        let message = unsafe { CStr::from_ptr(libc::dlerror() as *const c_char) };
        panic!("{}: {message:?}", path.display());
    }
}
