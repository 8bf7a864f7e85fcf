//! How a process becomes a worker: the launcher, and checks that it is the right one.

use crate::group::Group;
use crate::library;
use nnz::store::CommunicatorError;
use std::env;

/// The variable that says how many workers there must be.
const WORKERS: &str = "NNZ_WORKERS";

/// The variables by which launchers tell a process the size of its job: those of Open MPI, and of
/// MPICH and its kin.
const LAUNCHERS: [&str; 2] = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE"];

/// Begins MPI and gives this process's end of the group of all that `mpirun` or `srun` has started:
/// a group of one without a launcher. Once in a process; the thread that calls it keeps the group.
///
/// Where the variable `NNZ_WORKERS` is set, the group has that number of workers or is an error.
/// Set it where a launcher may not fit the library: `srun` without `--mpi`, say, starts processes
/// that do not find each other, of which each would train alone.
///
/// # Errors
///
/// [`CommunicatorError::OtherSize`] where `NNZ_WORKERS` or the launcher says that there are other
/// numbers of workers; [`CommunicatorError::TooManyWorkers`]; [`CommunicatorError::Failed`] with
/// the text of MPI, and for a second call.
pub fn group() -> nnz::Result<Group> {
    let failed = |problem| CommunicatorError::Failed { here: 0, problem };
    let required = expected(WORKERS).map_err(failed)?;
    let (comm, rank, size) = library::begin().map_err(failed)?;
    let group = Group::new(comm, rank, size);
    let launched = LAUNCHERS.into_iter().find(|name| env::var_os(name).is_some());
    // Launchers nest, and a variable of theirs may be anything.
    let launched = launched.and_then(|name| Some((name, expected(name).ok()??)));
    for (by, expected) in required.map(|workers| (WORKERS, workers)).into_iter().chain(launched) {
        if expected != size {
            let library = library::name();
            let error = CommunicatorError::OtherSize { by, library, expected, found: size };
            return Err(error.into());
        }
    }
    Ok(group)
}

/// The number in a variable, if it is set.
fn expected(name: &str) -> Result<Option<usize>, String> {
    let Ok(text) = env::var(name) else { return Ok(None) };
    let number = text.trim().parse();
    number.map(Some).map_err(|_| format!("`{name}` is `{text}`, which is no number of workers"))
}
