//! Arrays on a GPU, transfers, and what goes wrong.

use crate::device::{gpu, is_real};
use sparse_runtime::device::cuda::{CudaError, Gpu};
use sparse_runtime::formats::{Csr, Dense, RowSelection, RowSparse};

#[test]
fn arrays_come_back_as_they_were() {
    let gpu = gpu();
    let x = Dense::new([2, 3, 1], vec![1.0f32, -0.0, f32::MIN_POSITIVE, 4.0, 5.0, 6.0]).unwrap();
    assert_eq!(x.to_gpu(&gpu).unwrap().to_cpu().unwrap(), x);
    let none = Dense::<f64>::zeros([0, 7]);
    assert_eq!(none.to_gpu(&gpu).unwrap().to_cpu().unwrap(), none);

    let x = Csr::from_coo(4, 9, [(0, 8, 1.0f64), (2, 0, 2.0), (2, 8, 0.0)]).unwrap();
    assert_eq!(x.to_gpu(&gpu).unwrap().to_cpu().unwrap(), x);
    let wide = Csr::from_coo(1, 1 << 40, [(0, (1 << 40) - 1, 1.0f32)]).unwrap();
    assert_eq!(wide.to_gpu(&gpu).unwrap().to_cpu().unwrap(), wide);
    let pattern = Csr::pattern(9, vec![0, 0, 2], vec![1u32, 8]).unwrap();
    assert_eq!(pattern.to_gpu(&gpu).unwrap().to_cpu().unwrap(), pattern);
    let nothing = Csr::<f32>::zeros(0, 5);
    assert_eq!(nothing.to_gpu(&gpu).unwrap().to_cpu().unwrap(), nothing);

    let x = RowSparse::new([1 << 40, 2], vec![7, 1 << 39], vec![1.0f32, 2.0, 3.0, 4.0]).unwrap();
    let there = x.to_gpu(&gpu).unwrap();
    assert_eq!((there.n_stored(), there.shape()), (2, x.shape()));
    assert_eq!(there.to_cpu().unwrap(), x);
}

#[test]
fn a_selection_of_rows_is_a_matrix_there() {
    let gpu = gpu();
    let x = Csr::from_coo(3, 4, [(0, 1, 1.0f32), (1, 0, 2.0), (1, 3, 3.0)]).unwrap();
    let mut selection = RowSelection::new();
    let batch = selection.gather(&x, &[1, 2, 0, 1]).unwrap();
    let there = batch.to_gpu(&gpu).unwrap();
    assert_eq!((there.n_rows(), there.n_cols(), there.nnz()), (4, 4, 5));
    assert_eq!(there.to_cpu().unwrap(), batch.to_owned());
}

#[test]
fn a_gpu_that_is_not_there_is_an_error() {
    let first = gpu();
    assert!(first.info().memory_bytes > 0);
    let error = Gpu::open(1000).unwrap_err();
    assert!(matches!(error, CudaError::NoSuchDevice { ordinal: 1000, .. }));
    assert!(error.to_string().starts_with("there is no GPU 1000: the driver sees "));
}

#[test]
fn memory_that_is_not_there_is_an_error_and_the_gpu_stays_usable() {
    let gpu = gpu();
    if is_real() {
        return;
    }
    // The emulated GPU has 2³⁰ bytes.
    let huge = Dense::<f32>::zeros([1 << 29, 1]);
    let error = huge.to_gpu(&gpu).unwrap_err();
    assert_eq!(
        error,
        CudaError::OutOfMemory { what: "the elements of a dense array".into(), bytes: 1 << 31 }
    );
    let small = Dense::from_rows(&[[1.0f32]]);
    assert_eq!(small.to_gpu(&gpu).unwrap().to_cpu().unwrap(), small);
}
