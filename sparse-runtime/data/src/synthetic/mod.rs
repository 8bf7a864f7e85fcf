//! Synthetic data for examples, tests and measurements. The same seed gives the same bytes on every
//! machine.

mod click_log;
mod random_csr;

pub use click_log::click_log;
pub use random_csr::random_csr;
