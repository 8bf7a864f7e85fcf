//! The same matrices as others hold them.

use crate::data::Arrays;
use crate::workload::Error;
use faer::sparse::{SparseRowMat, SymbolicSparseRowMat};
use nalgebra_sparse::CsrMatrix;
use sprs::CsMatI;

pub fn sprs(x: Arrays<'_>) -> CsMatI<f32, u32, usize> {
    let indptr = x.indptr.iter().map(|&start| start as usize).collect();
    CsMatI::new((x.n_rows(), x.n_cols), indptr, x.columns.to_vec(), x.values.to_vec())
}

pub fn faer(x: Arrays<'_>) -> SparseRowMat<u32, f32> {
    let indptr = x.indptr.iter().map(|&start| start as u32).collect();
    let pattern =
        SymbolicSparseRowMat::new_checked(x.n_rows(), x.n_cols, indptr, None, x.columns.to_vec());
    SparseRowMat::new(pattern, x.values.to_vec())
}

pub fn nalgebra(x: Arrays<'_>) -> Result<CsrMatrix<f32>, Error> {
    let indptr = x.indptr.iter().map(|&start| start as usize).collect();
    let columns = x.columns.iter().map(|&column| column as usize).collect();
    CsrMatrix::try_from_csr_data(x.n_rows(), x.n_cols, indptr, columns, x.values.to_vec())
        .map_err(|error| error.to_string().into())
}
