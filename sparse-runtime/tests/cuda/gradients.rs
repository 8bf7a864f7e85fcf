//! Gradients with sparse operands and results: nothing stored, wide rows, equal ids and numbers
//! that are not ordinary, against the kernels of the CPU.

use crate::device::gpu;
use crate::given::Numbers;
use crate::rules::same;
use sparse_core::ir::{AttributeValue, Attributes};
use sparse_core::operators::find;
use sparse_core::storage::Storage;
use sparse_runtime::device::cuda::CudaError;
use sparse_runtime::formats::{Csr, Dense, Ids, RowSparse, RowSparseView, Shape};
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

/// A matrix that stores each element with a probability of `of_4` quarters, and now and then a
/// zero.
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
        // One of each is no number: in x, in what an element equal to 0 is multiplied by, and in
        // the last row.
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

fn axis(axis: i64) -> (&'static str, AttributeValue) {
    ("axis", AttributeValue::Integer(axis))
}

#[test]
fn rows_of_a_csr_go_back_to_where_they_were_taken() -> Result<(), CudaError> {
    let (mut context, mut numbers) = (CudaContext::new(&gpu()), Numbers(5));
    let of = ("take_gradient", "csr_ids_like_by_rows", Storage::Csr);
    for ([n, d], extent) in [
        ([0, 5], 3),
        ([4, 0], 3),
        ([5, 7], 0),
        ([5, 7], 1),
        ([40, 6], 11),
        ([3, 400], 2),
        ([300, 9], 5000),
        ([2200, 3], 4),
    ] {
        let like = Csr::<f32>::zeros(extent, d);
        for of_4 in [0, 1, 4] {
            let mut grad = csr([n, d], of_4, &mut numbers);
            if let Some(last) = grad.values_mut().last_mut() {
                *last = f32::NAN;
            }
            // In no order, most of them several times, some beyond the ends, and all of them the
            // same or nowhere.
            let within = extent.min(9) as i64 + 3;
            let any = (0..n as i64).map(|at| (at * 37 + 11) % within - 1).collect();
            for ids in [any, vec![extent as i64 - 1; n], vec![extent as i64; n]] {
                let ids = Ids::from(Dense::new([n], ids).unwrap());
                let (grad, like) = (Operand::Csr(grad.view()), Operand::Csr(like.view()));
                for beyond in [None, Some("clip"), Some("wrap")] {
                    let beyond = beyond.map(|name| (name, AttributeValue::Flag(true)));
                    let attributes: Vec<_> = [axis(0)].into_iter().chain(beyond).collect();
                    let operands = [grad, Operand::Ids(ids.view()), like];
                    check(of, &operands, &attributes, &mut context)?;
                }
            }
        }
    }
    // Columns of 64 bits.
    let entries = [(0, 1 << 32, 2.0), (0, 7, 1.0), (1, 7, 3.0), (2, 1 << 32, 4.0)];
    let grad = Csr::<f32>::from_coo(3, 1 << 33, entries).unwrap();
    let like = Csr::<f32>::zeros(6, 1 << 33);
    let ids = Ids::from(Dense::new([3], vec![4u32, 1, 4]).unwrap());
    let operands = [Operand::Csr(grad.view()), Operand::Ids(ids.view()), Operand::Csr(like.view())];
    check(of, &operands, &[axis(0)], &mut context)
}

#[test]
fn stored_rows_are_repeated_and_summed_up() -> Result<(), CudaError> {
    let (mut context, mut numbers) = (CudaContext::new(&gpu()), Numbers(7));
    // A shape that broadcasts to another.
    let shapes: [(&[usize], &[usize]); 14] = [
        (&[8, 1], &[8, 70]),
        (&[8, 5], &[8, 5]),
        (&[1, 5], &[8, 5]),
        (&[5], &[8, 5]),
        (&[1, 1], &[300, 40]),
        (&[1], &[9, 1]),
        (&[8, 1, 3], &[8, 4, 3]),
        (&[4, 3], &[8, 4, 3]),
        (&[8, 4, 1], &[8, 4, 3]),
        (&[1, 4, 1], &[2500, 4, 2]),
        (&[0, 1], &[0, 5]),
        (&[1, 1], &[0, 5]),
        (&[8, 1], &[8, 0]),
        (&[1, 3], &[1, 3]),
    ];
    for (small, large) in shapes.map(|(small, large)| (Shape::new(small), Shape::new(large))) {
        // Of rows the second and every third after it; nothing; one, whatever its number.
        let arrays = |shape: Shape, numbers: &mut Numbers| {
            let some = rows(shape, numbers);
            let last: Vec<u64> = (0..shape.n_rows() as u64).rev().take(1).collect();
            let row = vec![f32::NAN; last.len() * shape.row_size()];
            let one = RowSparse::new(shape, last, row).unwrap();
            [some, RowSparse::zeros(shape), one]
        };
        let [like, table] = [large, small].map(|shape| dense(shape, &mut numbers));
        let like_rows = rows(large, &mut numbers);
        let table = RowSparseView::all(small, table.values()).unwrap();
        let stored = arrays(small, &mut numbers);
        for x in stored.iter().map(RowSparse::view).chain([table]) {
            for mean in [false, true] {
                let mean = [("mean", AttributeValue::Flag(mean))];
                let (x, like) = (Operand::RowSparse(x), Operand::Dense(like.view()));
                let of = ("broadcast_like", "row_sparse_dense", Storage::RowSparse);
                check(of, &[x, like], &mean, &mut context)?;
                let like = Operand::RowSparse(like_rows.view());
                let of = ("broadcast_like", "row_sparse_row_sparse", Storage::RowSparse);
                check(of, &[x, like], &mean, &mut context)?;
            }
        }
        let of_small = dense(small, &mut numbers);
        let all = RowSparseView::all(large, like.values()).unwrap();
        let stored = arrays(large, &mut numbers);
        for x in stored.iter().map(RowSparse::view).chain([all]) {
            let of = ("reduce_to", "row_sparse_dense", Storage::Dense);
            let operands = [Operand::RowSparse(x), Operand::Dense(of_small.view())];
            check(of, &operands, &[], &mut context)?;
        }
        if large.rank() == 2 {
            for of_4 in [0, 1, 4] {
                let x = csr([large.n_rows(), large.row_size()], of_4, &mut numbers);
                let mut odd = x.clone();
                if let Some(first) = odd.values_mut().first_mut() {
                    *first = f32::NAN;
                }
                for x in [&x, &odd] {
                    let of = ("reduce_to", "csr_dense", Storage::Dense);
                    let operands = [Operand::Csr(x.view()), Operand::Dense(of_small.view())];
                    check(of, &operands, &[], &mut context)?;
                }
            }
        }
    }
    Ok(())
}
