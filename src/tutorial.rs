#![doc = include_str!("../docs/tutorial/index.md")]

#[doc = include_str!("../docs/tutorial/csr.md")]
pub mod csr {}

#[doc = include_str!("../docs/tutorial/row_sparse.md")]
pub mod row_sparse {}

#[doc = include_str!("../docs/tutorial/linear_regression.md")]
pub mod linear_regression {}

#[doc = include_str!("../docs/tutorial/svrg.md")]
pub mod svrg {}

#[cfg(feature = "cuda")]
#[doc = include_str!("../docs/tutorial/gpu.md")]
pub mod gpu {}
