//! Random arrays of a given density.

use super::memory::{ELEMENTS, ROW_IDS, ROW_POINTERS, make_room};
use super::{Csr, FormatError, RowSparse, Shape};
use crate::initializer::Seed;
use crate::random::{Purpose, below, uniform};
use chacha20::ChaCha8Rng;
use sparse_core::element::Float;

impl<T: Float> Csr<T> {
    /// A random matrix: exactly `round(density · n_rows · n_cols)` entries are stored, at places
    /// drawn uniformly without repetition, with values uniform in (0, 1). The same seed gives the
    /// same matrix on every machine. O(n_rows + m log m) for m entries, or m empty places if those
    /// are fewer.
    ///
    /// # Errors
    ///
    /// [`FormatError::Density`] unless the density is in [0, 1]; [`FormatError::Uncountable`] if
    /// there are more places than 64 bits count; [`FormatError::OutOfMemory`].
    ///
    /// ```
    /// use nnz::formats::Csr;
    /// use nnz::initializer::Seed;
    /// let x = Csr::<f32>::random(1000, 100, 0.01, Seed(42))?;
    /// assert_eq!((x.n_rows(), x.n_cols(), x.nnz()), (1000, 100, 1000));
    /// # Ok::<(), nnz::formats::FormatError>(())
    /// ```
    pub fn random(
        n_rows: usize,
        n_cols: usize,
        density: f64,
        seed: Seed,
    ) -> Result<Self, FormatError> {
        let shape = Shape::from([n_rows, n_cols]);
        let n_places = (n_rows as u64).checked_mul(n_cols as u64);
        let n_places = n_places.ok_or(FormatError::Uncountable { shape })?;
        let mut generator = Purpose::Csr.generator(seed.0);
        let places = places(n_places, density, shape, &mut generator)?;

        let mut indptr = Vec::new();
        make_room(&mut indptr, n_rows.saturating_add(1), ROW_POINTERS, shape)?;
        indptr.push(0);
        let mut stored = 0;
        for row in 0..n_rows as u64 {
            let end = (row + 1) * n_cols as u64;
            while places.get(stored).is_some_and(|&place| place < end) {
                stored += 1;
            }
            indptr.push(stored as u64);
        }
        let values = values(places.len(), shape, &mut generator)?;
        let mut columns = places;
        columns.iter_mut().for_each(|place| *place %= n_cols as u64);
        Csr::new(n_cols, indptr, columns, values)
    }
}

impl<T: Float> RowSparse<T> {
    /// A random array: exactly `round(density · n_rows)` rows are stored, drawn uniformly without
    /// repetition, with all their values uniform in (0, 1). The same seed gives the same array on
    /// every machine. O(k log k) for k rows, or rows that are not stored if those are fewer, plus
    /// O(stored values).
    ///
    /// # Errors
    ///
    /// [`FormatError::Density`] unless the density is in [0, 1]; [`FormatError::OutOfMemory`].
    ///
    /// ```
    /// use nnz::formats::RowSparse;
    /// use nnz::initializer::Seed;
    /// let table = RowSparse::<f32>::random([1000, 8], 0.05, Seed(42))?;
    /// assert_eq!((table.n_stored(), table.values().len()), (50, 400));
    /// # Ok::<(), nnz::formats::FormatError>(())
    /// ```
    pub fn random(shape: impl Into<Shape>, density: f64, seed: Seed) -> Result<Self, FormatError> {
        let shape = shape.into();
        let mut generator = Purpose::RowSparse.generator(seed.0);
        let indices = places(shape.n_rows() as u64, density, shape, &mut generator)?;
        let size = indices.len().saturating_mul(shape.row_size());
        let values = values(size, shape, &mut generator)?;
        RowSparse::new(shape, indices, values)
    }
}

/// `round(density · n_places)` distinct numbers below `n_places`, sorted, every set equally likely.
fn places(
    n_places: u64,
    density: f64,
    shape: Shape,
    generator: &mut ChaCha8Rng,
) -> Result<Vec<u64>, FormatError> {
    // Written so that NaN is refused.
    if !(0.0..=1.0).contains(&density) {
        return Err(FormatError::Density { density });
    }
    let n_taken = ((density * n_places as f64).round() as u64).min(n_places);
    // An array that is more than half full is drawn by its empty places.
    let is_full = n_taken > n_places / 2;
    let n_drawn = if is_full { n_places - n_taken } else { n_taken };
    let mut drawn = Vec::new();
    make_room(&mut drawn, usize::try_from(n_drawn).unwrap_or(usize::MAX), ROW_IDS, shape)?;
    while (drawn.len() as u64) < n_drawn {
        // Draws that repeat an earlier one are drawn again.
        while (drawn.len() as u64) < n_drawn {
            drawn.push(below(generator, n_places));
        }
        drawn.sort_unstable();
        drawn.dedup();
    }
    if !is_full {
        return Ok(drawn);
    }
    let mut taken = Vec::new();
    make_room(&mut taken, usize::try_from(n_taken).unwrap_or(usize::MAX), ROW_IDS, shape)?;
    let mut empty = drawn.into_iter().peekable();
    taken.extend((0..n_places).filter(|place| empty.next_if_eq(place).is_none()));
    Ok(taken)
}

fn values<T: Float>(
    size: usize,
    shape: Shape,
    generator: &mut ChaCha8Rng,
) -> Result<Vec<T>, FormatError> {
    let mut values = Vec::new();
    make_room(&mut values, size, ELEMENTS, shape)?;
    values.extend((0..size).map(|_| T::of(uniform(generator))));
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_as_many_as_asked_for_and_uniform() {
        for (n_rows, density, stored) in
            [(10, 0.0, 0), (10, 0.04, 0), (10, 0.05, 1), (10, 0.5, 5), (10, 0.99, 10), (0, 1.0, 0)]
        {
            let x = RowSparse::<f64>::random([n_rows, 2, 3], density, Seed(1)).unwrap();
            assert_eq!((x.n_stored(), x.values().len()), (stored, stored * 6));
            assert!(x.values().iter().all(|&value| 0.0 < value && value < 1.0));
        }
        for density in [0.3, 0.7] {
            let mut counts = [0.0f64; 20];
            for seed in 0..2000 {
                let x = RowSparse::<f32>::random([20], density, Seed(seed)).unwrap();
                x.indices().iter().for_each(|&id| counts[id as usize] += 1.0);
            }
            // Six standard deviations of a binomial count.
            let tolerance = 6.0 * (2000.0 * density * (1.0 - density)).sqrt();
            assert!(counts.iter().all(|n| (n - 2000.0 * density).abs() < tolerance), "{counts:?}");
        }
    }

    #[test]
    fn sizes_beyond_reach_are_errors() {
        let error = Csr::<f32>::random(usize::MAX, 1, 0.0, Seed(0)).unwrap_err();
        assert!(matches!(error, FormatError::OutOfMemory { .. }), "{error}");
        let error = Csr::<f32>::random(1 << 31, 1 << 32, 1.0, Seed(0)).unwrap_err();
        assert!(matches!(error, FormatError::OutOfMemory { .. }), "{error}");
        let error = RowSparse::<f32>::random([2, usize::MAX], 0.5, Seed(0)).unwrap_err();
        assert!(matches!(error, FormatError::OutOfMemory { .. }), "{error}");
        let error = RowSparse::<f32>::random([4, 4], -0.5, Seed(0)).unwrap_err();
        assert_eq!(error.to_string(), "the density -0.5 is not between 0 and 1");
        let thin = RowSparse::<f32>::random([usize::MAX, 1], 1e-17, Seed(0)).unwrap();
        assert_eq!(thin.n_stored(), 184);
    }
}
