//! Elements in order, positions and counts: ties, numbers that are not ordinary, and rows of more
//! elements than a block takes, against the kernels of the CPU, bit by bit.

use crate::device::gpu;
use sparse_core::element::Unit;
use sparse_core::ir::{AttributeValue, Attributes};
use sparse_core::operators::find;
use sparse_core::storage::Storage;
use sparse_runtime::device::Cpu;
use sparse_runtime::device::cuda::CudaError;
use sparse_runtime::formats::{Csr, Dense, Ids, RowSparse, RowSparseView, Shape};
use sparse_runtime::kernels::cuda::{CudaContext, GpuFloat};
use sparse_runtime::kernels::{Array, Context, Kernels, Operand, call_kernel, cuda};

/// Few different numbers, so that most are tied, and each of those that are compared in a way of
/// their own.
fn tied<T: GpuFloat>(count: usize) -> Vec<T> {
    const NUMBERS: [f64; 11] =
        [1.5, 0.0, -0.0, f64::NAN, 2.0, f64::INFINITY, -1.0, f64::NEG_INFINITY, 1.5, 0.25, -3.0];
    let mut state = count as u64;
    let mut next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        T::of(NUMBERS[(state >> 40) as usize % NUMBERS.len()])
    };
    (0..count).map(|_| next()).collect()
}

/// The result and its bits.
fn bits<T: GpuFloat>(array: &Array<T>) -> (Shape, Vec<u64>) {
    match array {
        Array::Dense(array) => {
            (*array.shape(), array.values().iter().map(|of| of.as_f64().to_bits()).collect())
        }
        Array::Ids(Ids::U64(ids)) => (*ids.shape(), ids.values().to_vec()),
        other => panic!("no array or ids of 64 bits: {other:?}"),
    }
}

/// Holds the kernel of the GPU to that of the CPU.
fn check<T: GpuFloat>(
    operator: &str,
    rule: &str,
    operands: &[Operand<'_, T>],
    attributes: &[(&'static str, AttributeValue)],
    context: &mut CudaContext,
) -> Result<(), CudaError>
where
    Cpu: Kernels<T>,
{
    let mut given = Attributes::default();
    for (name, value) in attributes {
        given.set(name, *value);
    }
    let (name, operator) = (format!("{operator}_{rule}"), find(operator).unwrap());
    let mut expected = Array::Dense(Dense::default());
    call_kernel(&name, &mut expected, operands, &given, &mut Context::default()).unwrap();
    let found =
        cuda::call_kernel(operator, &name, Storage::Dense, operands, &given, context)?.unwrap();
    assert_eq!(bits(&found), bits(&expected), "{name} {attributes:?} of {operands:?}");
    Ok(())
}

fn at(axis: i64) -> (&'static str, AttributeValue) {
    ("axis", AttributeValue::Integer(axis))
}

/// Shapes, and an axis of each.
fn lines() -> Vec<(Shape, i64)> {
    vec![
        ([0, 5].into(), 1),
        ([0, 5].into(), 0),
        ([5, 0].into(), 1),
        ([1].into(), 0),
        ([7, 1].into(), 1),
        ([40, 5].into(), -1),
        ([3, 33].into(), 1),
        ([2, 300, 3].into(), 1),
        ([2, 1024].into(), 1),
        ([2, 1025].into(), 1),
        ([2600, 2].into(), 0),
        ([1, 5000].into(), 1),
    ]
}

fn elements_in_order<T: GpuFloat>() -> Result<(), CudaError>
where
    Cpu: Kernels<T>,
{
    let mut context = CudaContext::new(&gpu());
    for (shape, axis) in lines() {
        let x = Dense::<T>::new(shape, tied(shape.size())).unwrap();
        let operands = [Operand::Dense(x.view())];
        for turned in [false, true] {
            for operator in ["sort", "argsort"] {
                let attributes = [at(axis), ("descending", AttributeValue::Flag(turned))];
                check(operator, "dense", &operands, &attributes, &mut context)?;
            }
            let extent = shape[if axis < 0 { 1 } else { axis as usize }];
            for k in [0, 1, 7, 1030].into_iter().filter(|k| *k <= extent) {
                for operator in ["topk", "topk_ids"] {
                    let k = ("k", AttributeValue::Integer(k as i64));
                    let attributes = [k, at(axis), ("smallest", AttributeValue::Flag(turned))];
                    check(operator, "dense", &operands, &attributes, &mut context)?;
                }
            }
        }
    }
    Ok(())
}

#[test]
fn elements_of_f32_in_order() -> Result<(), CudaError> {
    elements_in_order::<f32>()
}

#[test]
fn elements_of_f64_in_order() -> Result<(), CudaError> {
    elements_in_order::<f64>()
}

#[test]
fn a_gradient_goes_back_to_where_elements_came_from() -> Result<(), CudaError> {
    let mut context = CudaContext::new(&gpu());
    for (part, whole, axis) in
        [([3, 400], [3, 900], 1), ([500, 3], [500, 3], 0), ([0, 3], [4, 3], 0)]
    {
        let grad = Dense::new(part, (0..part[0] * part[1]).map(|i| i as f32 / 7.0).collect());
        let grad = grad.unwrap();
        // Each position several times, and some that do not exist.
        let extent = whole[axis] as i64;
        let ids = (0..part[0] * part[1]).map(|i| (i as i64 * 37) % (extent / 2 + 9) * 2 - 1);
        let ids = Ids::from(Dense::new(part, ids.collect()).unwrap());
        let like = Dense::<f32>::zeros(whole);
        let operands =
            [Operand::Dense(grad.view()), Operand::Ids(ids.view()), Operand::Dense(like.view())];
        let axis = [at(axis as i64)];
        check("order_gradient", "dense_ids_like", &operands, &axis, &mut context)?;
    }
    Ok(())
}

/// Of all axes without one.
fn of_axis(axis: Option<i64>) -> Vec<(&'static str, AttributeValue)> {
    axis.map(at).into_iter().collect()
}

#[test]
fn positions_of_dense_arrays() -> Result<(), CudaError> {
    let mut context = CudaContext::new(&gpu());
    for (shape, axis) in lines() {
        let ordinary = |at: usize| ((at * 7919) % 101) as f64 - 40.0;
        for values in [tied(shape.size()), (0..shape.size()).map(ordinary).collect()] {
            let x = Dense::<f64>::new(shape, values).unwrap();
            for axis in [None, Some(axis)] {
                for operator in ["argmax", "argmin"] {
                    let attributes = of_axis(axis);
                    let operands = [Operand::Dense(x.view())];
                    check(operator, "dense", &operands, &attributes, &mut context)?;
                }
            }
        }
    }
    Ok(())
}

/// Matrices of all negative, all positive and tied numbers: what is not stored wins, loses and is
/// tied.
fn matrices() -> Vec<Csr> {
    let matrix = |n_cols: usize, rows: &[&[usize]], value: fn(usize) -> f32| {
        let mut entry = 0;
        let mut next = |column: &usize| {
            entry += 1;
            (*column, value(entry))
        };
        Csr::from_rows(n_cols, rows.iter().map(|row| row.iter().map(&mut next).collect::<Vec<_>>()))
            .unwrap()
    };
    let full: Vec<usize> = (0..70).collect();
    let rows: &[&[usize]] = &[&[], &full, &full[..40], &full[1..], &[69], &[0, 1, 3], &full, &[]];
    let tall: Vec<&[usize]> =
        (0..2100).map(|row| if row % 300 == 7 { &[1][..] } else { &[] }).collect();
    vec![
        Csr::zeros(0, 5),
        Csr::zeros(3, 0),
        Csr::zeros(3, 2),
        matrix(70, rows, |entry| -(entry as f32)),
        matrix(70, rows, |entry| entry as f32),
        matrix(70, rows, |entry| tied(entry)[entry - 1]),
        matrix(70, &[&full, &full, &full], |entry| -((entry * 31 % 17) as f32)),
        matrix(3, &tall, |entry| (entry * 5 % 7) as f32),
        Csr::from_coo(2, 1 << 33, [(0, 0, -1.0), (1, 1 << 32, f32::NAN)]).unwrap(),
    ]
}

#[test]
fn positions_and_counts_of_csr_matrices() -> Result<(), CudaError> {
    let mut context = CudaContext::new(&gpu());
    for x in matrices() {
        let wide = x.n_cols() > 1 << 30;
        for axis in [None, Some(0), Some(1)].into_iter().filter(|axis| !wide || *axis != Some(0)) {
            let attributes = of_axis(axis);
            for operator in ["argmax", "argmin", "count_stored"] {
                let operands = [Operand::Csr(x.view())];
                check(operator, "csr", &operands, &attributes, &mut context)?;
            }
            let units = x.iter_rows().map(|row| row.map(|(column, _)| (column, Unit)));
            let units = Csr::from_rows(x.n_cols(), units).unwrap();
            let operands: [Operand<'_, f32>; 1] = [Operand::Unit(units.view())];
            check("count_stored", "unit", &operands, &attributes, &mut context)?;
        }
    }
    Ok(())
}

#[test]
fn positions_and_counts_of_row_sparse_arrays() -> Result<(), CudaError> {
    let mut context = CudaContext::new(&gpu());
    let arrays: [(&[usize], &[u64]); 7] = [
        (&[6, 3], &[]),
        (&[6, 3], &[0, 1, 4]),
        (&[6, 3], &[2]),
        (&[4, 2, 40], &[1, 3]),
        (&[3, 5], &[0, 1, 2]),
        (&[2, 0], &[1]),
        (&[3000, 1], &[0, 1, 2999]),
    ];
    for (shape, ids) in arrays {
        let shape = Shape::new(shape);
        let size = ids.len() * shape.row_size();
        let falling = (0..size).map(|at| -(at as f32) - 1.0).collect();
        for values in [tied(size), falling] {
            let x = RowSparse::new(shape, ids.to_vec(), values).unwrap();
            let table = Dense::new(shape, tied(shape.size())).unwrap();
            let table = RowSparseView::all(shape, table.values()).unwrap();
            for of in [x.view(), table] {
                for axis in [None, Some(0), Some(1)] {
                    for operator in ["argmax", "argmin", "count_stored"] {
                        let (operands, attributes) = ([Operand::RowSparse(of)], of_axis(axis));
                        check(operator, "row_sparse", &operands, &attributes, &mut context)?;
                    }
                }
            }
        }
    }
    Ok(())
}
