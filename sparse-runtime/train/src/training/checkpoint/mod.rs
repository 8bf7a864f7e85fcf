//! Saving and loading the parameters of a model, as a [safetensors](https://docs.rs/safetensors)
//! file.
//!
//! One tensor a parameter, by its name. The file's metadata has one entry, `nnz`: the model's name,
//! the fingerprint of its typed graph, its dimensions, storage type and checksum of each parameter,
//! notes, and a checksum of all that.
//!
//! [`save_with`] adds notes and ids to the same file.
//!
//! [`save_run`] adds the state that resuming a run to the bit needs: the states of the optimizer as
//! tensors `w.velocity`, the last steps of their rows, position, settings and history. [`load`]
//! reads such a file like any other.
//!
//! A file is replaced atomically: it is written beside its destination and renamed once its bytes
//! are on the disk. The destination is the old file or the new one at any time. Values are streamed
//! both ways. Equal parameters give equal bytes.

pub(crate) mod error;
mod file;
mod ids;
mod load_options;
mod map;
mod metadata;
pub(super) mod parameters;
pub(super) mod run;
pub(super) mod run_file;
pub(super) mod run_state;
pub(super) mod tensor;
#[cfg(test)]
mod tests;

pub use error::{CheckpointError, ParameterMismatch};
pub use ids::{Attachments, read_ids};
pub use load_options::LoadOptions;
pub(crate) use map::map;
pub use metadata::{CheckpointMetadata, SavedParameter};
pub use parameters::{
    Loaded, load, load_with, read_metadata, save, save_with, save_with_notes, warm_start,
};
pub use run::{load_run, save_run};
pub use run_state::{CallbackState, KEPT_REPORTS, Run};
