//! Errors of stores and workers.

use super::communicator::CommunicatorError;
use std::time::Duration;

/// The largest number of leaves of a step.
pub(super) const MAX_LEAVES: usize = 1 << 31;

/// A store cannot do what a call requests.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// An unknown key.
    #[error(
        "the store has no key `{key}` (it has: {known}): make it by `init` before it is pushed or pulled"
    )]
    UnknownKey {
        /// The key.
        key: String,
        /// The known keys.
        known: String,
    },
    /// A key exists already.
    #[error("the store has a key `{key}` already")]
    KeyExists {
        /// The key.
        key: String,
    },
    /// Several gradients of one key in one push.
    #[error("key `{key}` is pushed twice at once: a leaf adds its gradients up before")]
    RepeatedKey {
        /// The key.
        key: String,
    },
    /// The number of values differs from that of the table.
    #[error("key `{key}` has {n_rows} rows of {row_size} values, but {found} values were given")]
    ValueCount {
        /// The key.
        key: String,
        /// Its rows.
        n_rows: usize,
        /// The values of a row.
        row_size: usize,
        /// The values given.
        found: usize,
    },
    /// A gradient has other extents than its table.
    #[error(
        "key `{key}` has {n_rows} rows of {row_size} values, but its gradient has {found_rows} of {found_size}"
    )]
    GradientShape {
        /// The key.
        key: String,
        /// Its rows.
        n_rows: usize,
        /// The values of a row.
        row_size: usize,
        /// The rows of the gradient.
        found_rows: usize,
        /// The values of a row of the gradient.
        found_size: usize,
    },
    /// A row_sparse gradient for a dense key, or the other way round.
    #[error(
        "key `{key}` takes {expected} gradients, as its `ParameterSpec` says, but was pushed a {found} one"
    )]
    GradientStorage {
        /// The key.
        key: String,
        /// The storage type declared.
        expected: &'static str,
        /// The storage type given.
        found: &'static str,
    },
    /// A rule that needs norms of whole tables, of which each worker owns some rows.
    #[error(
        "steps of `{rule}` depend on norms of whole tables, but {n_workers} workers own some rows of each: give a rule that updates rows by themselves, such as `adam`"
    )]
    ByNorms {
        /// The rule.
        rule: &'static str,
        /// The workers.
        n_workers: usize,
    },
    /// A gradient for a key without one.
    #[error("key `{key}` is frozen: it can be pulled, but not pushed")]
    Frozen {
        /// The key.
        key: String,
    },
    /// A row out of the range of its table.
    #[error("key `{key}` has {n_rows} rows, but row {row} was asked for")]
    RowOutOfRange {
        /// The key.
        key: String,
        /// The row.
        row: u64,
        /// The number of rows.
        n_rows: usize,
    },
    /// Rows that are not ascending.
    #[error(
        "row {row} of key `{key}` was asked for after row {previous}: rows come in ascending order, each once"
    )]
    RowOrder {
        /// The key.
        key: String,
        /// The row.
        row: u64,
        /// The previous row.
        previous: u64,
    },
    /// A number of leaves that is no power of two.
    #[error(
        "a step is cut into {found} leaves, but their number must be a power of two, at most 2^31"
    )]
    LeafCount {
        /// The number given.
        found: usize,
    },
    /// Leaves that are not ascending.
    #[error(
        "a gradient of leaf {leaf} was added after one of leaf {previous}: leaves come in ascending order, each once"
    )]
    LeafOrder {
        /// The leaf.
        leaf: usize,
        /// The previous leaf.
        previous: usize,
    },
    /// A leaf out of the range of the step.
    #[error("a gradient of leaf {leaf} was added, but a step has {MAX_LEAVES} leaves at most")]
    NoSuchLeaf {
        /// The leaf.
        leaf: usize,
    },
    /// Gradients of one sum that belong to different tables.
    #[error(
        "the gradient of leaf {leaf} is {found}, but those added before it are {expected}: a `LeafSum` is of one key"
    )]
    LeafShape {
        /// The leaf.
        leaf: usize,
        /// The shape of the earlier ones.
        expected: String,
        /// Its shape.
        found: String,
    },
    /// A gradient of a leaf of another worker.
    #[error(
        "a gradient of leaf {leaf} was pushed, but the leaves of this worker are {first}..{end}"
    )]
    Leaf {
        /// The leaf.
        leaf: usize,
        /// The worker's first leaf.
        first: usize,
        /// One past its last.
        end: usize,
    },
    /// A call that requires an update rule of some kind.
    #[error("key `{key}` has no update rule that {needed}: give one to `set_optimizer`")]
    NoOptimizer {
        /// The key.
        key: String,
        /// The property that the rule must have.
        needed: &'static str,
    },
    /// Rows of a snapshot that was not taken.
    #[error("key `{key}` has no snapshot: call `begin_mean` first")]
    NoSnapshot {
        /// The key.
        key: String,
    },
    /// Workers have made different calls.
    #[error(
        "worker {rank} made another call than worker {here}: all workers make the same calls in the same order"
    )]
    OutOfStep {
        /// The other worker's call.
        rank: usize,
        /// This worker's call.
        here: usize,
    },
    /// Workers were started with different settings.
    #[error(
        "worker {rank} has `{name}` = {found}, worker 0 has {expected}: all workers of a group train with the same settings and data"
    )]
    Disagreement {
        /// The first worker that differs from worker 0.
        rank: usize,
        /// The first setting in which it differs.
        name: String,
        /// Its value.
        found: String,
        /// The value of worker 0.
        expected: String,
    },
    /// A malformed message.
    #[error("what worker {rank} sent cannot be read: {problem}")]
    Message {
        /// The worker.
        rank: usize,
        /// The fault.
        problem: &'static str,
    },
    /// A worker's thread has panicked.
    #[error("worker {rank} has panicked: {message}")]
    Panicked {
        /// The worker.
        rank: usize,
        /// The message of the panic.
        message: String,
    },
    /// An exchange has failed.
    #[error("{error} (in `{call}` after {n_steps} steps, {waited:.1?} after it began)")]
    Exchange {
        /// The call that needed the exchange.
        call: &'static str,
        /// The steps before it.
        n_steps: u64,
        /// The time from the beginning of the exchange.
        waited: Duration,
        /// The error of the communicator, which names the workers.
        #[source]
        error: CommunicatorError,
    },
    /// Workers cannot form a group.
    #[error(transparent)]
    Communicator(#[from] CommunicatorError),
}

sparse_core::debug_of_errors!(StoreError);
