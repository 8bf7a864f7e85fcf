//! Recorded results of another implementation: every case of every file of a folder.
//!
//! The folder is `NNZ_GOLDEN` (default `../shared/golden` beside the repository), so that the
//! runner can be pointed at other files of the same form. Without it every test says `SKIPPED`, or
//! fails where `NNZ_REQUIRE_DATA=1`. A case that the runner does not understand has failed; what is
//! not built yet is in an explicit list ([`recipes::not_built`]), and printed with its number.

mod case;
mod compare;
mod compilation;
mod corrections;
mod coverage;
mod create;
mod device;
mod differences;
mod epochs;
#[path = "../../sparse-runtime/tests/golden_optimizers/from_zero.rs"]
mod from_zero;
mod graphs;
mod infer;
mod libsvm;
mod metrics;
mod models;
mod noncanonical;
#[cfg(feature = "cuda")]
mod on_gpu;
mod operators;
mod reasons;
mod recipes;
mod recorded;
mod refusals;
mod refused_updates;
mod rules;
mod store;
mod svrg;
mod tally;
mod train;
