//! MPI's functions, with checked return codes.

use mpi_sys as ffi;
use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// An error of MPI: its function and its text.
pub(crate) type Problem = String;

/// The bytes of MPI's longest error text, and of its longest name, in any library.
const LONGEST_TEXT: usize = 8192;

/// The error of a return code.
pub(crate) fn check(code: c_int, function: &str) -> Result<(), Problem> {
    // `MPI_SUCCESS` is 0 by the standard.
    if code == 0 {
        return Ok(());
    }
    let mut text = [0u8; LONGEST_TEXT];
    let mut len: c_int = 0;
    // SAFETY: there is room for `MPI_MAX_ERROR_STRING` characters, which is 512 or less.
    unsafe { ffi::MPI_Error_string(code, text.as_mut_ptr().cast(), &mut len) };
    let len = usize::try_from(len).unwrap_or(0).min(LONGEST_TEXT);
    Err(format!("{function}: {}", String::from_utf8_lossy(&text[..len])))
}

/// Begins MPI for calls from this thread. Returns a communicator of this library's own messages,
/// this process's rank and the number of processes.
pub(crate) fn begin() -> Result<(ffi::MPI_Comm, usize, usize), Problem> {
    let (mut is_begun, mut provided) = (0, 0);
    // SAFETY: allowed at any time.
    check(unsafe { ffi::MPI_Initialized(&mut is_begun) }, "MPI_Initialized")?;
    if is_begun != 0 {
        return Err("MPI has begun already in this process: it has one group".to_owned());
    }
    // SAFETY: MPI has not begun; it takes no arguments of the program.
    let code = unsafe {
        let funneled = ffi::RSMPI_THREAD_FUNNELED;
        ffi::MPI_Init_thread(ptr::null_mut(), ptr::null_mut(), funneled, &mut provided)
    };
    check(code, "MPI_Init_thread")?;
    // SAFETY: a constant of the library.
    if provided < unsafe { ffi::RSMPI_THREAD_FUNNELED } {
        return Err("this library of MPI is not for programs with threads".to_owned());
    }
    let (mut rank, mut size) = (0, 0);
    // SAFETY: MPI has begun. A communicator of its own, so that no other messages match; its
    // errors are return codes.
    let comm = unsafe {
        let mut comm = ffi::RSMPI_COMM_NULL;
        check(ffi::MPI_Comm_dup(ffi::RSMPI_COMM_WORLD, &mut comm), "MPI_Comm_dup")?;
        check(
            ffi::MPI_Comm_set_errhandler(comm, ffi::RSMPI_ERRORS_RETURN),
            "MPI_Comm_set_errhandler",
        )?;
        check(ffi::MPI_Comm_rank(comm, &mut rank), "MPI_Comm_rank")?;
        check(ffi::MPI_Comm_size(comm, &mut size), "MPI_Comm_size")?;
        comm
    };
    if size > 1 {
        IS_OPEN.store(true, Ordering::Release);
        // SAFETY: the function may be called at any time. Where it cannot be registered, the
        // launcher notices an exit by itself.
        unsafe { libc::atexit(at_exit) };
    }
    Ok((comm, usize::try_from(rank).unwrap_or(0), usize::try_from(size).unwrap_or(0)))
}

/// Whether MPI has begun in a job of several processes, and has not ended.
static IS_OPEN: AtomicBool = AtomicBool::new(false);

/// Ends the job where this process exits before it has ended MPI: not all launchers report that.
extern "C" fn at_exit() {
    if IS_OPEN.load(Ordering::Acquire) {
        abort(1);
    }
}

/// Ends MPI. All processes of the job do so, and wait for each other.
pub(crate) fn finish() -> Result<(), Problem> {
    IS_OPEN.store(false, Ordering::Release);
    // SAFETY: MPI has begun, on this thread.
    check(unsafe { ffi::MPI_Finalize() }, "MPI_Finalize")
}

/// The time before the end of a job in which its processes print their errors, and the launcher
/// passes them on: it may drop what it has not.
const TIME_TO_PRINT: Duration = Duration::from_millis(300);

/// Ends all processes of the job with this exit code.
pub(crate) fn abort(code: c_int) -> ! {
    thread::sleep(TIME_TO_PRINT);
    IS_OPEN.store(false, Ordering::Release);
    // SAFETY: MPI has begun. The libraries do not come back from it.
    unsafe {
        ffi::MPI_Abort(ffi::RSMPI_COMM_WORLD, code);
        libc::_exit(code)
    }
}

/// The first line of the text by which the library names itself.
pub(crate) fn name() -> String {
    let mut text = [0u8; LONGEST_TEXT];
    let mut len: c_int = 0;
    // SAFETY: allowed at any time; there is room for `MPI_MAX_LIBRARY_VERSION_STRING` characters.
    let code = unsafe { ffi::MPI_Get_library_version(text.as_mut_ptr().cast(), &mut len) };
    let len = usize::try_from(len).unwrap_or(0).min(LONGEST_TEXT);
    let text = String::from_utf8_lossy(&text[..len]).into_owned();
    match text.split(['\n', ',']).next() {
        Some(name) if code == 0 && !name.is_empty() => name.to_owned(),
        _ => "an unknown library of MPI".to_owned(),
    }
}

/// Begins to send bytes.
///
/// # Safety
///
/// `bytes` stays in its place, and is not written, until the request is done.
pub(crate) unsafe fn send(
    comm: ffi::MPI_Comm,
    bytes: &[u8],
    to: usize,
    tag: c_int,
) -> Result<ffi::MPI_Request, Problem> {
    // SAFETY: the buffer has so many bytes, and lives as long as the request by the contract above.
    unsafe {
        let mut request = ffi::RSMPI_REQUEST_NULL;
        let (at, len) = (bytes.as_ptr().cast::<c_void>(), count(bytes.len()));
        let code = ffi::MPI_Isend(at, len, ffi::RSMPI_UINT8_T, count(to), tag, comm, &mut request);
        check(code, "MPI_Isend").map(|()| request)
    }
}

/// A message that has arrived and is not yet received.
pub(crate) struct Arrived {
    message: ffi::MPI_Message,
    pub(crate) from: usize,
    pub(crate) tag: c_int,
    pub(crate) n_bytes: usize,
}

/// The next message of a worker, or of any, with a tag, or with any, if it has arrived.
pub(crate) fn probe(
    comm: ffi::MPI_Comm,
    from: Option<usize>,
    tag: Option<c_int>,
) -> Result<Option<Arrived>, Problem> {
    // SAFETY: constants of the library, and places for the answers.
    unsafe {
        let from = from.map_or(ffi::RSMPI_ANY_SOURCE, count);
        let tag = tag.unwrap_or(ffi::RSMPI_ANY_TAG);
        let (mut is_there, mut message) = (0, ffi::RSMPI_MESSAGE_NULL);
        let mut status: ffi::MPI_Status = std::mem::zeroed();
        let code = ffi::MPI_Improbe(from, tag, comm, &mut is_there, &mut message, &mut status);
        check(code, "MPI_Improbe")?;
        if is_there == 0 {
            return Ok(None);
        }
        let mut n_bytes = 0;
        check(ffi::MPI_Get_count(&status, ffi::RSMPI_UINT8_T, &mut n_bytes), "MPI_Get_count")?;
        Ok(Some(Arrived {
            message,
            from: usize::try_from(status.MPI_SOURCE).unwrap_or(0),
            tag: status.MPI_TAG,
            n_bytes: usize::try_from(n_bytes).unwrap_or(0),
        }))
    }
}

/// Begins to receive a message that has arrived.
///
/// # Safety
///
/// `place` has room for the message's bytes, and nothing else uses it until the request is done.
pub(crate) unsafe fn receive(
    mut arrived: Arrived,
    place: *mut u8,
) -> Result<ffi::MPI_Request, Problem> {
    // SAFETY: room for so many bytes by the contract above; the message was matched and is received
    // once.
    unsafe {
        let mut request = ffi::RSMPI_REQUEST_NULL;
        let (len, byte) = (count(arrived.n_bytes), ffi::RSMPI_UINT8_T);
        let code = ffi::MPI_Imrecv(place.cast(), len, byte, &mut arrived.message, &mut request);
        check(code, "MPI_Imrecv").map(|()| request)
    }
}

/// Whether a request is done; it is null afterwards.
pub(crate) fn is_done(request: &mut ffi::MPI_Request) -> Result<bool, Problem> {
    let mut done = 0;
    // SAFETY: a request of this library, or the null request, for which the answer is yes.
    let code = unsafe { ffi::MPI_Test(request, &mut done, ffi::RSMPI_STATUS_IGNORE) };
    check(code, "MPI_Test").map(|()| done != 0)
}

/// Whether all requests are done; they are null afterwards.
pub(crate) fn are_done(requests: &mut [ffi::MPI_Request]) -> Result<bool, Problem> {
    let mut done = 0;
    // SAFETY: so many requests of this library.
    let code = unsafe {
        let (len, ignored) = (count(requests.len()), ffi::RSMPI_STATUSES_IGNORE);
        ffi::MPI_Testall(len, requests.as_mut_ptr(), &mut done, ignored)
    };
    check(code, "MPI_Testall").map(|()| done != 0)
}

/// A number as MPI takes it. Ranks are below 1024, messages at most [`c_int::MAX`] bytes long.
fn count(number: usize) -> c_int {
    c_int::try_from(number).unwrap_or(c_int::MAX)
}
