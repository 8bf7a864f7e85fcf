//! Products of a csr with a dense matrix, against the same on the CPU.

use crate::device::{gpu, is_real};
use crate::near;
use sparse_runtime::device::cuda::{Cuda, CudaError};
use sparse_runtime::formats::{Csr, CsrView, Dense, RowSparse};
use sparse_runtime::kernels::cuda::CudaContext;
use sparse_runtime::kernels::{Context, dot};

/// Numbers that look random, from -1 to 1, of which sums in any order are near each other.
fn numbers(count: usize) -> Vec<f32> {
    let mut state = 1u64;
    let mut next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

/// A matrix whose row `i` stores `lengths[i]` entries, as evenly spread as fits.
fn matrix(n_cols: usize, lengths: &[usize]) -> Csr {
    let mut values = numbers(lengths.iter().sum()).into_iter();
    let rows = lengths.iter().enumerate().map(|(row, &length)| {
        let step = n_cols.checked_div(length).unwrap_or(1);
        let entries: Vec<_> = (0..length)
            .map(|entry| (entry * step + row % step.max(1), values.next().unwrap_or(1.0)))
            .collect();
        entries
    });
    Csr::from_rows(n_cols, rows).expect("canonical")
}

/// Patterns at which kernels go wrong.
fn patterns() -> Vec<Csr> {
    vec![
        Csr::zeros(0, 5),
        Csr::zeros(3, 1),
        matrix(1, &[1]),
        matrix(40, &[0, 0, 40, 0, 1, 33, 32, 31, 0]),
        matrix(300, &[300; 5]),
        matrix(1 << 20, &[2; 70]),
        Csr::from_coo(3, 2, [(0, 0, 0.0), (0, 1, -0.0), (2, 1, 5.0)]).expect("canonical"),
        Csr::from_coo(4, 1 << 40, [(0, 1 << 39, 2.0), (1, 3, 1.0), (3, 1 << 39, 4.0)])
            .expect("canonical"),
    ]
}

#[test]
fn csr_by_dense() -> Result<(), CudaError> {
    let gpu = gpu();
    let (mut on_gpu, mut on_cpu) = (CudaContext::new(&gpu), Context::default());
    let (mut found, mut expected) = (Dense::default(), Dense::default());
    for x in patterns().iter().filter(|x| x.n_cols() < 1 << 30) {
        for width in [1, 2, 7, 33, 300] {
            for transposed in [false, true] {
                let size = x.n_cols() * width;
                if size > 1 << 22 || (transposed && width == 33) {
                    continue;
                }
                let shape = if transposed { [width, x.n_cols()] } else { [x.n_cols(), width] };
                let right = Dense::new(shape, numbers(size)).unwrap();
                dot::cpu::csr_dense(&mut expected, x.view(), right.view(), transposed, &mut on_cpu);
                let (x, right) = (x.to_gpu(&gpu)?, right.to_gpu(&gpu)?);
                dot::cuda::csr_dense(&mut found, x.view(), right.view(), transposed, &mut on_gpu);
                let found = found.to_cpu()?;
                assert_eq!(found.shape(), expected.shape());
                near("a product", found.values(), expected.values(), 1e-5);
            }
        }
    }
    Ok(())
}

#[test]
fn csr_transposed_by_dense() -> Result<(), CudaError> {
    let gpu = gpu();
    let (mut on_gpu, mut on_cpu) = (CudaContext::new(&gpu), Context::default());
    let (mut found, mut expected) = (RowSparse::default(), RowSparse::default());
    for x in &patterns() {
        for width in [1, 7, 33] {
            let right = Dense::new([x.n_rows(), width], numbers(x.n_rows() * width)).unwrap();
            dot::cpu::csr_transposed_dense(
                &mut expected,
                x.view(),
                right.view(),
                false,
                &mut on_cpu,
            );
            let (x, right) = (x.to_gpu(&gpu)?, right.to_gpu(&gpu)?);
            dot::cuda::csr_transposed_dense(&mut found, x.view(), right.view(), false, &mut on_gpu);
            let found = found.to_cpu()?;
            assert_eq!((found.shape(), found.indices()), (expected.shape(), expected.indices()));
            near("a product", found.values(), expected.values(), 1e-5);
        }
    }
    Ok(())
}

/// More entries than one level of tiles sums up, each column several times.
#[test]
fn many_entries_are_sorted_by_column() -> Result<(), CudaError> {
    let gpu = gpu();
    let x = matrix(5000, &[50; 400]);
    let right = Dense::new([400, 1], numbers(400)).unwrap();
    let mut expected = Dense::default();
    let mut context = Context::default();
    dot::cpu::csr_transposed_dense_into_dense(
        &mut expected,
        x.view(),
        right.view(),
        false,
        &mut context,
    );
    let (there, right) = (x.to_gpu(&gpu)?, right.to_gpu(&gpu)?);
    let mut found = Dense::default();
    let mut context = CudaContext::new(&gpu);
    dot::cuda::csr_transposed_dense(&mut found, there.view(), right.view(), false, &mut context);
    near("a product", found.to_cpu()?.values(), expected.values(), 1e-5);
    Ok(())
}

#[test]
fn patterns_are_ones() -> Result<(), CudaError> {
    let gpu = gpu();
    let units = Csr::pattern(5, vec![0, 2, 2, 5], vec![1u32, 4, 0, 1, 2]).unwrap();
    let ones = Csr::new(5, vec![0, 2, 2, 5], vec![1u32, 4, 0, 1, 2], vec![1.0f32; 5]).unwrap();
    let right = Dense::new([5, 3], numbers(15)).unwrap().to_gpu(&gpu)?;
    let mut context = CudaContext::new(&gpu);
    let mut out = [Dense::<f32, Cuda>::default(), Dense::default()];
    let (units, ones) = (units.to_gpu(&gpu)?, ones.to_gpu(&gpu)?);
    dot::cuda::csr_dense(&mut out[0], units.view(), right.view(), false, &mut context);
    dot::cuda::csr_dense(&mut out[1], ones.view(), right.view(), false, &mut context);
    assert_eq!(out[0].to_cpu()?, out[1].to_cpu()?);
    Ok(())
}

/// A matrix that a view promises to be canonical and is not: the driver finds out, and the error
/// names the kernel.
#[test]
fn a_failing_kernel_is_named_when_its_result_is_asked_for() -> Result<(), CudaError> {
    let gpu = gpu();
    if is_real() {
        return Ok(());
    }
    let x = matrix(4, &[2; 40]).to_gpu(&gpu)?;
    // Fewer rows than `x` has, which callers are to check.
    let right = Dense::new([20, 2], numbers(40)).unwrap().to_gpu(&gpu)?;
    let mut context = CudaContext::new(&gpu);
    let mut out = Dense::<f32, Cuda>::default();
    dot::cuda::csr_transposed_dense(&mut out, x.view(), right.view(), false, &mut context);
    let error = out.to_cpu().unwrap_err();
    let is_named = |kernels: &[&str]| kernels == ["csr_transposed_dense"];
    assert!(matches!(&error, CudaError::Kernel { kernels, .. } if is_named(kernels)), "{error}");
    Ok(())
}

/// What was asked for after a failure is not done, and the GPU goes on after a failure that did not
/// reach it.
#[test]
fn operands_on_another_gpu_are_refused() -> Result<(), CudaError> {
    let (gpu, other) = (gpu(), gpu());
    let x = matrix(4, &[2, 2]).to_gpu(&gpu)?;
    let right = Dense::new([4, 2], numbers(8)).unwrap();
    let (here, there) = (right.to_gpu(&gpu)?, right.to_gpu(&other)?);
    let mut context = CudaContext::new(&gpu);
    let (mut out, mut after) = (Dense::<f32, Cuda>::default(), Dense::<f32, Cuda>::default());
    dot::cuda::csr_dense(&mut after, x.view(), here.view(), false, &mut context);
    dot::cuda::csr_dense(&mut out, x.view(), there.view(), false, &mut context);
    dot::cuda::csr_dense(&mut after, x.view(), here.view(), false, &mut context);
    // The destination of what was left out says so as well as that of what failed.
    assert_eq!(after.to_cpu(), Err(CudaError::AnotherGpu { found: 0, expected: 0 }));
    assert_eq!(context.synchronize(), Ok(()));
    assert_eq!((out.to_cpu()?, after.to_cpu()?), (Dense::default(), Dense::default()));
    dot::cuda::csr_dense(&mut after, x.view(), here.view(), false, &mut context);
    assert_eq!(after.to_cpu()?.shape()[..], [2, 2]);
    Ok(())
}

#[test]
fn equal_calls_give_equal_bits() -> Result<(), CudaError> {
    let gpu = gpu();
    let x = matrix(40, &[0, 0, 40, 0, 1, 33, 32, 31, 0]).to_gpu(&gpu)?;
    let right = Dense::new([9, 7], numbers(63)).unwrap().to_gpu(&gpu)?;
    let view: CsrView<'_, f32, Cuda> = x.view();
    let mut context = CudaContext::new(&gpu);
    let mut results = Vec::new();
    for _ in 0..2 {
        let mut out = RowSparse::<f32, Cuda>::default();
        dot::cuda::csr_transposed_dense(&mut out, view, right.view(), false, &mut context);
        results.push(out.to_cpu()?);
    }
    assert_eq!(results[0], results[1]);
    Ok(())
}
