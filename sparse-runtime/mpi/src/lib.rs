//! Workers of `nnz` as processes of MPI, on one machine or several.
//!
//! [`group()`] gives each process that `mpirun` or `srun` has started its [`Group`], which is a
//! [`Communicator`](nnz::store::Communicator):
//!
//! ```no_run
//! use nnz::prelude::*;
//! use nnz::store::{Communicator, Outcome};
//!
//! graph! {
//!     model Clicks {
//!         input x: csr[n, d];
//!         label y: dense[n, 1];
//!         param w: row_sparse[d, 1] = Zeros;
//!         let score = dot(x, w);
//!         loss logistic(score, y);
//!         output probability = sigmoid(score);
//!     }
//! }
//!
//! fn main() -> nnz::Result<()> {
//!     let mut group = nnz_mpi::group()?;
//!     let data = nnz::data::synthetic::click_log(500, 2000, 8, 1)?;
//!     let mut model = Clicks::new(dims! { d: 2000 }, Seed(42))?;
//!     let mut trainer = Trainer::new(AdaGrad::default()).batch_size(128);
//!     trainer.fit_as_worker(&mut model, &data, &mut group)?;
//!     if group.rank() == 0 {
//!         nnz::training::checkpoint::save(&model, "clicks.safetensors")?;
//!     }
//!     group.end(Outcome::Done)?;
//!     Ok(())
//! }
//! ```
//!
//! # Ends of a job
//!
//! | a process | the others | the job's exit code |
//! |---|---|---|
//! | returns from training with an error | end with [`PeerFailed`](nnz::store::CommunicatorError::PeerFailed) | 1 |
//! | panics | end with `PeerFailed` | 101 |
//! | drops its group, or exits, without [`Outcome::Done`](nnz::store::Outcome::Done) | end with `PeerFailed` | 1 |
//! | is killed | are killed by the launcher | the launcher's |
//! | gives no sign until the [deadline](Group::deadlines) | end with [`Deadline`](nnz::store::CommunicatorError::Deadline) | 75: try again |
//!
//! **Invariant:** no call of MPI blocks, except for its beginning and its end, and only the thread
//! that began MPI calls it, but for the end of the job by `exit`: a [`Group`] stays on its thread.

mod group;
mod launch;
mod library;
mod transfer;

pub use group::Group;
pub use launch::group;
