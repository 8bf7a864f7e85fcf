//! Gradients with sparse operands and results: nothing stored, wide rows, equal ids and numbers that are not ordinary, against the kernels of
//! the CPU.

use crate::device::gpu;
use crate::given::Numbers;
use crate::rules::same;
use sparse_core::ir::{AttributeValue, Attributes};
use sparse_core::operators::find;
use sparse_core::storage::Storage;
use sparse_runtime::device::cuda::CudaError;
use sparse_runtime::formats::{Csr, Dense, RowSparse, RowSparseView, Shape};
use sparse_runtime::kernels::cuda::CudaContext;
use sparse_runtime::kernels::{Array, Context, Operand, call_kernel, cuda};

/// Holds the kernel of the GPU to that of the CPU.
fn check(
    (operator, rule, result): (&str, &str, Storage),
    operands: &[Operand<'_, f32>],
    attributes: &[(&'static str, AttributeValue)],
    context: &mut CudaContext,
) -> Result<(), CudaError> {
    let mut given = Attributes::default();
    for (name, value) in attributes {
        given.set(name, *value);
    }
    let (name, operator) = (format!("{operator}_{rule}"), find(operator).unwrap());
    let mut expected = Array::Dense(Dense::default());
    call_kernel(&name, &mut expected, operands, &given, &mut Context::default()).unwrap();
    let found = cuda::call_kernel(operator, &name, result, operands, &given, context)?.unwrap();
    same(&format!("{name} {attributes:?} of {operands:?}"), &found, &expected);
    Ok(())
}

fn dense(shape: impl Into<Shape>, numbers: &mut Numbers) -> Dense {
    let shape = shape.into();
    Dense::new(shape, (0..shape.size()).map(|_| numbers.signed() as f32).collect()).unwrap()
}

/// A matrix that stores each element with a probability of `of_4` quarters, and now and then a zero.
fn csr([n_rows, n_cols]: [usize; 2], of_4: usize, numbers: &mut Numbers) -> Csr {
    let mut row = || {
        let columns: Vec<usize> = (0..n_cols).filter(|_| numbers.below(4) < of_4).collect();
        let value = |_: &usize| if numbers.below(9) == 0 { 0.0 } else { numbers.signed() as f32 };
        let values: Vec<f32> = columns.iter().map(value).collect();
        columns.into_iter().zip(values)
    };
    let rows: Vec<_> = (0..n_rows).map(|_| row()).collect();
    Csr::from_rows(n_cols, rows).unwrap()
}

/// An array that stores every third row, from the second on.
fn rows(shape: impl Into<Shape>, numbers: &mut Numbers) -> RowSparse {
    let shape = shape.into();
    let ids: Vec<u64> = (1..shape.n_rows() as u64).step_by(3).collect();
    let values = dense([ids.len(), shape.row_size()], numbers).values().to_vec();
    RowSparse::new(shape, ids, values).unwrap()
}

#[test]
fn interactions_of_dense_rows_and_slopes() -> Result<(), CudaError> {
    let (mut context, mut numbers) = (CudaContext::new(&gpu()), Numbers(3));
    for [n, d, width] in
        [[0, 5, 3], [4, 0, 3], [3, 5, 0], [2, 300, 1], [9, 40, 3], [3, 17, 33], [2, 9, 70]]
    {
        let v = dense([d, width], &mut numbers);
        let grad = dense([n, 1], &mut numbers);
        let stored = rows([d, width], &mut numbers);
        let full = dense([n, d], &mut numbers);
        let mut nan = [full.values().to_vec(), v.values().to_vec(), grad.values().to_vec()];
        // One of each is no number: in x, in what an element equal to 0 is multiplied by, and in the last row.
        for (values, x) in nan.iter_mut().zip([f32::NAN, f32::INFINITY, f32::NAN]) {
            if let Some(last) = values.last_mut() {
                *last = x;
            }
        }
        let [x, of_v, of_grad] = nan;
        let odd_x = Dense::new([n, d], x).unwrap();
        let odd_v = Dense::new([d, width], of_v).unwrap();
        let odd_grad = Dense::new([n, 1], of_grad).unwrap();
        let zeros = Dense::zeros([n, d]);
        for (x, v, grad) in [
            (&full, &v, &grad),
            (&zeros, &v, &grad),
            (&zeros, &odd_v, &grad),
            (&odd_x, &v, &grad),
            (&full, &v, &odd_grad),
        ] {
            let operands = [x, v, grad].map(|of| Operand::Dense(of.view()));
            let of = ("pairwise_interaction", "dense_dense", Storage::Dense);
            check(of, &operands[..2], &[], &mut context)?;
            for operator in ["pairwise_interaction_gradient", "pairwise_interaction_slope"] {
                let of = (operator, "dense_dense_dense", Storage::Dense);
                check(of, &operands, &[], &mut context)?;
            }
        }
        for of_4 in [0, 1, 4] {
            let x = csr([n, d], of_4, &mut numbers);
            for (v, grad) in [(&v, &grad), (&odd_v, &grad), (&v, &odd_grad)] {
                let (x, grad) = (Operand::Csr(x.view()), Operand::Dense(grad.view()));
                let of = ("pairwise_interaction_slope", "csr_dense_dense", Storage::Csr);
                check(of, &[x, Operand::Dense(v.view()), grad], &[], &mut context)?;
                let all = RowSparseView::all([d, width], v.values()).unwrap();
                for v in [stored.view(), all] {
                    let of = ("pairwise_interaction_slope", "csr_row_sparse_dense", Storage::Csr);
                    check(of, &[x, Operand::RowSparse(v), grad], &[], &mut context)?;
                }
            }
        }
    }
    // Columns of 64 bits.
    let x = Csr::from_coo(2, 1 << 33, [(0, 1 << 32, 2.0), (0, 7, 1.0), (1, 7, 3.0)]).unwrap();
    let v = RowSparse::new([1 << 33, 2], vec![3, 1 << 32], vec![1.0, 2.0, 3.0, 4.0]).unwrap();
    let grad = dense([2, 1], &mut numbers);
    let operands =
        [Operand::Csr(x.view()), Operand::RowSparse(v.view()), Operand::Dense(grad.view())];
    let of = ("pairwise_interaction_slope", "csr_row_sparse_dense", Storage::Csr);
    check(of, &operands, &[], &mut context)
}
