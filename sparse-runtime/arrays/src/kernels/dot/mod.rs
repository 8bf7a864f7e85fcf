//! Matrix products.
//!
//! | rule | cost, for results of k columns | how |
//! | --- | --- | --- |
//! | `csr dense`, `csr row_sparse` | O(nnz · k) | each entry adds a row of the right side to a row of the result, held in registers |
//! | `csr' dense`, `csr' row_sparse` | O(nnz · k) | the columns that occur are numbered, then each entry adds a row of the right side to the row of its column; in small tables every column has a row until it is known which occur |
//! | the same into `dense` | O(nnz · k + size of the result) | the rows are those of the result |
//! | `dense csr` | O(rows · nnz) | every row of the result stores the columns that occur on the right |
//! | `dense csr'` | O(rows · nnz) | a product of a row of each |
//! | `dense row_sparse`, `row_sparse' dense` | O(values stored · other extent) | each stored row adds to the result |
//! | `dense row_sparse'`, `csr row_sparse'` | O(rows · values stored), O(nnz · rows stored) | a product with each stored row |
//! | `row_sparse dense` | O(values stored · k) | the stored rows as a dense matrix; they are the rows of the result |
//! | `dense dense` | O(m · n · k) | tiles of the result in registers |
//!
//! A row that a `row_sparse` operand does not store is zero. What is stored counts as it is: a
//! stored zero times infinity is NaN, while what is not stored is no part of the sum. The order of
//! each sum is that of the entries; a csr times one column is summed in eight sums that take turns,
//! times up to 32 columns in two.

pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
