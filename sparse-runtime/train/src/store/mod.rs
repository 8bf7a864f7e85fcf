//! A parameter store in shards: the owner of a table row updates it; workers pull the rows that
//! they read and push gradients.
//!
//! A [`KvStore`] is one worker's end of a store that all workers of a [`Communicator`] share. It
//! owns every row whose number is the worker's rank modulo the number of workers, with the state of
//! the update rule, and requests other rows from their owners. One process is a group of one worker
//! ([`OneProcess`]), threads are a group of several ([`Threads`]). Both run the same code, and so
//! do processes with your own communicator.
//!
//! Calls that move data are *collective*: all workers make the same calls in the same order. A
//! worker that ends, by an error or a panic, ends the calls of the others with
//! [`CommunicatorError::PeerLost`] or [`CommunicatorError::PeerFailed`], and one that gives no sign
//! with [`CommunicatorError::Deadline`]. Errors say in which call and after how many steps
//! ([`StoreError::Exchange`]). [`agree`] compares the settings of workers before they begin.
//!
//! # The same bits for any number of workers
//!
//! A step is cut into a fixed number of [`Leaves`], say 8. A [`LeafSum`] adds the gradients by one
//! binary tree over all leaves: a worker adds the subtrees that are its own, the owner of a row
//! continues with these. The order of additions thus follows from the leaves alone.
//!
//! ```
//! use nnz::core::storage::Storage;
//! use nnz::core::update_rules::Sgd;
//! use nnz::formats::RowSparse;
//! use nnz::optimizer::ParameterSpec;
//! use nnz::store::{KvStore, LeafSum, OneProcess};
//!
//! let mut store = KvStore::new(OneProcess, 2)?;
//! store.init(ParameterSpec::new("w", 4, 1, Some(Storage::RowSparse)), &[1.0f32; 4])?;
//! store.set_optimizer(Sgd { learning_rate: 0.5, ..Sgd::default() })?;
//!
//! let gradient = RowSparse::new([4, 1], vec![2], vec![1.0f32])?;
//! let mut sum = LeafSum::new();
//! sum.add(0, gradient.view(), 1.0)?;
//! sum.add(1, gradient.view(), 1.0)?;
//! store.push("w", &mut sum)?;
//!
//! let rows = store.row_sparse_pull("w", &[3, 2])?;
//! assert_eq!((rows.indices(), rows.values()), (&[2, 3][..], &[0.0, 1.0][..]));
//! # Ok::<(), nnz::Error>(())
//! ```

mod agreement;
mod communicator;
mod deadline;
#[cfg(test)]
mod ending_tests;
mod error;
#[cfg(test)]
mod fault_tests;
mod kv_store;
mod leaf_sum;
mod message;
mod owners;
mod pull_step;
mod push;
mod push_step;
mod shard;
mod slot_sum;
mod state;
mod step_keys;
#[cfg(test)]
mod tests;
mod threads;
#[cfg(test)]
mod traffic_tests;

pub use agreement::agree;
pub(crate) use agreement::share;
pub use communicator::{Communicator, CommunicatorError, OneProcess, Outcome, Parcels};
pub use deadline::{Deadlines, Wait, Waiting};
pub use error::StoreError;
pub use kv_store::KvStore;
pub use leaf_sum::{LeafSum, Leaves};
pub(crate) use pull_step::Pulled;
pub(crate) use step_keys::StepKeys;
pub use threads::Threads;
