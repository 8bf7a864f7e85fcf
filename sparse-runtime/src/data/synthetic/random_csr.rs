//! A matrix of a given density.

use super::{Stream, uniform};
use crate::data::DataError;
use crate::data::order::below;
use crate::formats::Csr;
use sparse_core::element::Float;

/// A random matrix with exactly `round(density * n_rows * n_cols)` stored entries at places drawn uniformly
/// without repetition, with values uniform in (0, 1). O(m log m) for m entries, or m empty places if those are
/// fewer, plus O(m).
///
/// # Errors
///
/// [`DataError::Synthetic`] unless the density is in [0, 1] and the places can be counted in 64 bits.
///
/// ```
/// use sparse_runtime::data::synthetic::random_csr;
///
/// let x = random_csr::<f32>(1000, 100, 0.01, 42)?;
/// assert_eq!((x.n_rows(), x.n_cols(), x.nnz()), (1000, 100, 1000));
/// # Ok::<(), sparse_runtime::Error>(())
/// ```
pub fn random_csr<T: Float>(
    n_rows: usize,
    n_cols: usize,
    density: f64,
    seed: u64,
) -> Result<Csr<T>, DataError> {
    let refuse = |message| Err(DataError::Synthetic { message });
    if !(0.0..=1.0).contains(&density) {
        return refuse(format!("the density {density} is not between 0 and 1"));
    }
    let Some(n_places) = (n_rows as u64).checked_mul(n_cols as u64) else {
        return refuse(format!("{n_rows} × {n_cols} places cannot be counted in 64 bits"));
    };
    let n_entries = ((density * n_places as f64).round() as u64).min(n_places);
    let mut generator = Stream::RandomCsr.generator(seed);
    let mut draw = || below(&mut generator, n_places);

    // A matrix that is more than half full is drawn by its empty places.
    let is_full = n_entries > n_places / 2;
    let n_drawn = if is_full { n_places - n_entries } else { n_entries };
    let drawn = distinct(n_drawn as usize, &mut draw);
    let places: Vec<u64> = if is_full {
        let mut empty = drawn.into_iter().peekable();
        (0..n_places).filter(|place| empty.next_if_eq(place).is_none()).collect()
    } else {
        drawn
    };

    let mut indptr = Vec::with_capacity(n_rows + 1);
    indptr.push(0);
    let mut stored = 0;
    for row in 0..n_rows as u64 {
        let end = (row + 1) * n_cols as u64;
        while places.get(stored).is_some_and(|&place| place < end) {
            stored += 1;
        }
        indptr.push(stored as u64);
    }
    let columns: Vec<u64> = places.iter().map(|place| place % n_cols as u64).collect();
    let values = places.iter().map(|_| T::of(uniform(&mut generator)));
    let values = values.collect();
    Ok(Csr::new(n_cols, indptr, columns, values)?)
}

/// `n` distinct draws, sorted. Draws that repeat an earlier one are drawn again, so that every set is equally likely.
fn distinct(n: usize, draw: &mut impl FnMut() -> u64) -> Vec<u64> {
    let mut drawn = Vec::with_capacity(n);
    while drawn.len() < n {
        while drawn.len() < n {
            drawn.push(draw());
        }
        drawn.sort_unstable();
        drawn.dedup();
    }
    drawn
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
