//! A matrix of a given density.

use crate::DataError;
use nnz_arrays::formats::Csr;
use nnz_arrays::initializer::Seed;
use sparse_core::element::Float;

/// A random matrix of a given density: [`Csr::random`].
///
/// # Errors
///
/// [`DataError::Format`], as [`Csr::random`].
///
/// ```
/// use nnz::data::synthetic::random_csr;
///
/// let x = random_csr::<f32>(1000, 100, 0.01, 42)?;
/// assert_eq!((x.n_rows(), x.n_cols(), x.nnz()), (1000, 100, 1000));
/// # Ok::<(), nnz::Error>(())
/// ```
pub fn random_csr<T: Float>(
    n_rows: usize,
    n_cols: usize,
    density: f64,
    seed: u64,
) -> Result<Csr<T>, DataError> {
    Ok(Csr::random(n_rows, n_cols, density, Seed(seed))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn has_exactly_the_entries_asked_for() {
        for (n_rows, n_cols, density, nnz) in [
            (10, 10, 0.0, 0),
            (10, 10, 0.014, 1),
            (10, 10, 0.015, 2),
            (10, 10, 0.5, 50),
            (10, 10, 0.99, 99),
            (10, 10, 1.0, 100),
            (1, 1, 1.0, 1),
            (0, 10, 1.0, 0),
            (10, 0, 1.0, 0),
            (2, 1 << 40, 1e-10, 220),
        ] {
            let x = random_csr::<f64>(n_rows, n_cols, density, 1).unwrap();
            assert_eq!((x.n_rows(), x.n_cols(), x.nnz()), (n_rows, n_cols, nnz));
            assert!(x.values().iter().all(|&value| 0.0 < value && value < 1.0));
        }
    }

    #[test]
    fn places_and_values_are_uniform() {
        for density in [0.25, 0.75] {
            let x = random_csr::<f32>(100, 100, density, 5).unwrap();
            let expected = 100.0 * density;
            // Seven standard deviations of a binomial count.
            let tolerance = 7.0 * (100.0 * density * (1.0 - density)).sqrt();
            let mut in_column = [0.0; 100];
            for row in x.iter_rows() {
                assert!((row.len() as f64 - expected).abs() < tolerance);
                row.for_each(|(column, _)| in_column[column] += 1.0);
            }
            assert!(in_column.iter().all(|n: &f64| (n - expected).abs() < tolerance));
            let mean = x.values().iter().sum::<f32>() / x.nnz() as f32;
            assert!((mean - 0.5).abs() < 0.05, "{mean}");
        }
    }

    #[test]
    fn depends_on_the_seed_alone() {
        let x = |seed| random_csr::<f32>(20, 20, 0.2, seed).unwrap();
        assert_eq!(x(3), x(3));
        assert_ne!(x(3), x(4));
    }

    #[test]
    fn senseless_sizes_are_refused() {
        for density in [-0.1, 1.1, f64::NAN] {
            let error = random_csr::<f32>(3, 3, density, 0).unwrap_err();
            assert!(error.to_string().starts_with("the density"), "{error}");
        }
        let error = random_csr::<f32>(usize::MAX, 3, 0.0, 0).unwrap_err();
        assert!(error.to_string().contains("cannot be counted"), "{error}");
    }
}
