//! The passes, one a file, in the order in which [`compile`](crate::compile::compile) runs them.
//! Each takes and returns plain data and is tested on text.

mod annotations;
mod at_pattern;
mod bytes;
mod choose_rule;
mod contributions;
mod conversions;
mod csr_patterns;
mod decay;
mod dense_gradient;
mod dense_temporaries;
mod differentiate;
mod fallback;
mod fuse;
mod gradient_faults;
mod infer_shapes;
mod infer_storage;
mod instantiate;
mod link;
mod masked;
mod misfit;
mod pass_on;
mod plan;
mod read_rows;
mod row_dimensions;
mod row_places;
mod row_program;
mod rows;
mod scatter;
mod separate;
mod simplify;

pub use decay::decays;
pub use differentiate::differentiate;
pub use fuse::{
    Chain, ChainRead, Chains, Fusion, Linear, Lookup, LookupRead, NamedRow, Reach, RowLoop, Term,
    Terms, chains, fuse,
};
pub use infer_shapes::infer_shapes;
pub use infer_storage::infer_storage;
pub use link::linked_score;
pub use plan::{Buffer, Destination, Plan, kernel_name, plan};
pub use read_rows::{leave_out_read_gradients, read_rows_first};
pub use row_dimensions::row_dimensions;
pub use row_program::{
    BaseLoss, DenseGradient, FEW, LossOf, MOST_PARAMETERS, Read, RowComputed, RowProgram, RowValue,
    are_few,
};
pub use rows::{RowSet, TableRows, rows, rows_stored};
pub use scatter::{NamedRows, Scatter};
pub use separate::separate_outputs;
pub use simplify::{Bits, REWRITES, Rewrite, Uses, merge_equal, simplify};
