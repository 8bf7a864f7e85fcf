//! Products, and sums of csr matrices.

use super::{N_FEATURES, assert_close, data, initial};
use sparse_core::element::Float;
use sparse_runtime::formats::{Csr, Dense, RowSparse};
use sparse_runtime::kernels::{Context, binary, dot};
use sparse_runtime::ops;

#[test]
fn products_of_every_width() {
    let x = data();
    for width in [1, 2, 3, 4, 8, 16, 32] {
        let w = Dense::new([N_FEATURES, width], initial(N_FEATURES, width)).unwrap();
        let mut expected = Dense::<f64>::zeros([x.n_rows(), width]);
        for (row, column, value) in x.iter() {
            let row = expected.row_mut(row).unwrap();
            for (sum, weight) in row.iter_mut().zip(w.row(column).unwrap()) {
                *sum += value * weight;
            }
        }
        let product = ops::dot(&x, &w).unwrap();
        assert_eq!(product.shape(), expected.shape());
        assert_close(product.values(), expected.values());
    }
}

/// Numbers whose sums depend on their order.
fn numbers<T: Float>(n: usize) -> Vec<T> {
    (0..n).map(|i| T::of(((i * 7919 % 1009) as f64 - 500.0) / 300.0)).collect()
}

/// Fewer for Miri, which takes its time.
const N_ROWS: usize = if cfg!(miri) { 43 } else { 300 };

const N_COLS: usize = 300;

/// Rows of up to 41 entries.
fn long_rows<T: Float>() -> Csr<T> {
    let mut values = numbers::<T>(N_ROWS * 41).into_iter().cycle();
    let rows = (0..N_ROWS).map(|row| {
        let entries = (0..row % 42).map(|k| (k * 7 + row % 7, values.next().unwrap()));
        entries.collect::<Vec<_>>()
    });
    Csr::from_rows(N_COLS, rows).unwrap()
}

/// The order of sums that `dot` documents, whatever instructions the processor has.
fn ordered_product<T: Float<Accumulator = T>>(x: &Csr<T>, y: &[T], width: usize) -> Vec<T> {
    let ways = match width {
        1 => 8,
        2..=32 => 2,
        _ => 1,
    };
    let mut out = Vec::new();
    for row in x.iter_rows() {
        let entries: Vec<(usize, T)> = row.collect();
        for k in 0..width {
            let mut sums = [T::zero(); 8];
            // Of two ways, what is left over goes to the first, as it would in its turn.
            for (at, &(column, value)) in entries.iter().enumerate() {
                sums[at % ways] += value * y[column * width + k];
            }
            let [a, b, c, d, e, f, g, h] = sums;
            out.push(match ways {
                8 => ((a + e) + (c + g)) + ((b + f) + (d + h)),
                2 => a + b,
                _ => a,
            });
        }
    }
    out
}

fn products_have_the_documented_bits<T: Float<Accumulator = T>>() {
    let (x, mut context) = (long_rows::<T>(), Context::default());
    let widths: &[usize] =
        if cfg!(miri) { &[1, 5, 16] } else { &[1, 3, 5, 16, 23, 32, 33, 64, 100, 150, 256] };
    for &width in widths {
        let y = Dense::new([N_COLS, width], numbers(N_COLS * width)).unwrap();
        let mut product = Dense::default();
        dot::cpu::csr_dense(&mut product, x.view(), y.view(), false, &mut context);
        assert!(product.values() == ordered_product(&x, y.values(), width), "{width} columns");

        let y: Dense<T> = Dense::new([N_ROWS, width], numbers(N_ROWS * width)).unwrap();
        let mut sums = vec![0.0; N_COLS * width];
        for (row, entries) in x.iter_rows().enumerate() {
            for (column, value) in entries {
                for k in 0..width {
                    let factor = y.values()[row * width + k].as_f64();
                    sums[column * width + k] += value.as_f64() * factor;
                }
            }
        }
        let expected: Vec<T> = sums.into_iter().map(T::of).collect();
        let mut product = RowSparse::default();
        dot::cpu::csr_transposed_dense(&mut product, x.view(), y.view(), false, &mut context);
        assert!(product.to_dense().unwrap().values() == expected, "{width} columns");
    }
}

#[test]
fn products_have_the_same_bits_with_all_instructions() {
    products_have_the_documented_bits::<f32>();
    products_have_the_documented_bits::<f64>();
}

#[test]
#[should_panic(expected = "extents of the operands")]
fn a_sum_of_other_extents_is_refused() {
    let wide = Csr::from_rows(9, [[(8, 1.0)]]).unwrap();
    let narrow = Csr::from_rows(2, [[(1, 1.0)]]).unwrap();
    let mut out = Csr::default();
    binary::cpu::union_csr_csr(
        &mut out,
        narrow.view(),
        wide.view(),
        |x, y| x + y,
        &mut Context::default(),
    );
}
