//! Update rules at work on parameters: states, lazy updates, and the dense, exact and touched-rows
//! modes.
//!
//! A rule states what one step does to one weight ([`nnz_optim`]); [`Updater`]
//! derives everything else. For a `row_sparse` gradient:
//!
//! | mode | rows of the gradient | other rows | a step costs |
//! |---|---|---|---|
//! | `Exact` | caught up in closed form, updated | caught up when next read | O(rows touched) |
//! | `Touched` | updated | left alone | O(rows touched) |
//! | `Dense` | updated | updated with gradient 0 | O(rows) |
//!
//! `Exact` and `Dense` are the same mathematics. In `Exact` a table is up to date only where it was
//! [caught up](Updater::settle_rows). [`Updater::flush`] catches up all of it, before it is
//! evaluated or saved; it visits only rows that a batch has touched, unless idle steps change
//! others.
//!
//! ```
//! use nnz::core::storage::Storage;
//! use nnz::core::update_rules::Sgd;
//! use nnz::optimizer::{ParameterSpec, Updater};
//!
//! let rule = Sgd { learning_rate: 0.5, ..Sgd::default() };
//! let spec = ParameterSpec::new("w", 4, 1, Some(Storage::RowSparse));
//! let mut updater = Updater::<Sgd, f32>::new(rule, vec![spec])?;
//! let mut w = [1.0, 1.0, 1.0, 1.0];
//!
//! updater.begin_step()?;
//! let mut rows = updater.rows(0, &mut w)?;
//! rows.settle(2); // before the forward pass reads row 2
//! rows.update(2, 0, 1.0);
//! rows.finish();
//! updater.end_step()?;
//!
//! assert_eq!(w, [1.0, 1.0, 0.5, 1.0]);
//! # Ok::<(), nnz::Error>(())
//! ```

mod accumulator;
mod apply;
mod begun_steps;
mod borrowed_rows;
mod catch_up;
#[cfg(target_arch = "x86_64")]
mod catch_up_avx512;
pub mod clip;
#[cfg(feature = "cuda")]
pub mod cuda;
mod cursor;
mod dense_steps;
pub(crate) mod error;
mod flush;
mod hogwild;
mod hot_rows;
mod idle_rows;
mod initial;
mod last_steps;
mod memory;
mod missed;
mod norms;
mod numbers;
mod precision;
mod reserve;
mod rows;
mod samples;
mod shared;
mod snapshot;
mod spec;
mod table_state;
#[cfg(test)]
mod tests;
mod touched;
#[cfg(target_arch = "x86_64")]
mod update_avx512;
mod update_kind;
mod updater;
mod variance_reduction;

pub use accumulator::RowAccumulator;
pub(crate) use accumulator::{Slots, term};
pub(crate) use catch_up::CatchUp;
pub(crate) use cursor::{ReadRows, RowCursor, SumsOfRows};
pub(crate) use dense_steps::DenseStates;
pub use dense_steps::{DenseSteps, FewSteps};
pub use error::OptimizerError;
pub(crate) use hogwild::{AddressesAhead, AnyHogwildRows, HogwildCursor, HogwildRows, RowAddress};
pub use hogwild::{OwnTable, Racer, Shared, why_not_racing};
pub use hot_rows::HotRows;
pub use memory::Weights;
pub use nnz_optim::UpdateRule;
pub use precision::Precision;
pub use rows::RowUpdater;
pub use samples::{Samples, Usage};
pub(crate) use shared::{RowWeights, SharedRows};
pub use snapshot::{MOST_STEPS, RecordSnapshot, Snapshot};
pub use spec::ParameterSpec;
pub use table_state::TableState;
pub use update_kind::{Beside, General, Plain, StateOf, UpdateKind, WithSlots};
pub use updater::Updater;
pub use variance_reduction::ReductionSnapshot;

/// Runs `$body` with `$rows` bound to the [`RowUpdater`] of a parameter, whose table is given. It
/// is compiled for a rule whose state lies beside the weights and, for a rule that can do without
/// state, also for `weight += factor · grad` and for any other case. One branch a call, none
/// inside. `$R` and `$T` are the updater's rule and element type.
///
/// `$body` is an expression of one type, evaluated in a function that returns a `Result` whose
/// error is made from [`crate::Error`]. Several parameters:
/// `with_rows!(R, T; updater, [0 => &mut w, 1 => &mut v], |[w, v]| …)`, or
/// `with_rows!(R, T; updater, weights, |rows| …)` for an array of them.
///
/// ```
/// use nnz::core::{storage::Storage, update_rules::Sgd};
/// use nnz::optimizer::{ParameterSpec, Updater};
/// use nnz::table::Table;
///
/// # fn main() -> nnz::Result<()> {
/// let spec = ParameterSpec::new("w", 4, 1, Some(Storage::RowSparse));
/// let mut updater = Updater::<Sgd, f32>::new(Sgd::default(), vec![spec])?;
/// let mut w = Table::from_values(1, &[1.0; 4]);
/// updater.begin_step()?;
/// nnz::with_rows!(Sgd, f32; updater, [0 => &mut w], |[rows]| {
///     rows.settle(2);
///     rows.update(2, 0, 1.0);
///     rows.finish();
/// });
/// updater.end_step()?;
/// assert_eq!(w.values()[2], 0.99);
/// # Ok(())
/// # }
/// ```
#[doc(hidden)]
#[macro_export]
macro_rules! with_rows {
    ($R:ty, $T:ty; $updater:expr, $weights:ident, |$rows:ident| $body:expr) => {{
        let updater = &mut $updater;
        // The first condition is known to the compiler, which makes nothing of what then cannot
        // happen.
        if $crate::optimizer::Updater::<$R, $T>::OPTIONAL_STATE
            && $weights.iter().all(|(index, _)| updater.is_plain(*index))
        {
            #[allow(unused_mut)]
            let mut $rows = updater.rows_of::<$crate::optimizer::Plain, _>($weights)?;
            $body
        } else if $crate::optimizer::Updater::<$R, $T>::OPTIONAL_STATE
            && !$weights.iter().all(|(index, weights)| updater.is_beside(*index, weights))
        {
            #[allow(unused_mut)]
            let mut $rows = updater.rows_of::<$crate::optimizer::General, _>($weights)?;
            $body
        } else {
            #[allow(unused_mut)]
            let mut $rows = updater.rows_of::<$crate::optimizer::Beside, _>($weights)?;
            $body
        }
    }};
    ($R:ty, $T:ty; $updater:expr, [$index:expr => $table:expr], |[$rows:ident]| $body:expr) => {{
        let (updater, index) = (&mut $updater, $index);
        let weights = $crate::optimizer::Weights::Table($table);
        if $crate::optimizer::Updater::<$R, $T>::OPTIONAL_STATE && updater.is_plain(index) {
            #[allow(unused_mut)]
            let mut $rows = updater.rows_as::<$crate::optimizer::Plain>(index, weights)?;
            $body
        } else if $crate::optimizer::Updater::<$R, $T>::OPTIONAL_STATE
            && !updater.is_beside(index, &weights)
        {
            #[allow(unused_mut)]
            let mut $rows = updater.rows_as::<$crate::optimizer::General>(index, weights)?;
            $body
        } else {
            #[allow(unused_mut)]
            let mut $rows = updater.rows_as::<$crate::optimizer::Beside>(index, weights)?;
            $body
        }
    }};
    ($R:ty, $T:ty; $updater:expr, [$($index:expr => $table:expr),+ $(,)?], |[$($rows:ident),+ $(,)?]| $body:expr) => {{
        let weights = [$(($index, $crate::optimizer::Weights::Table($table))),+];
        $crate::with_rows!($R, $T; $updater, weights, |rows| {
            #[allow(unused_mut)]
            let [$(mut $rows),+] = rows;
            $body
        })
    }};
}
