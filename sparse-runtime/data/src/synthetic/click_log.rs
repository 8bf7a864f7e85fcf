//! A synthetic log of clicks on hashed categorical features.

use crate::{DataError, Dataset};
use chacha20::ChaCha8Rng;
use nnz_arrays::formats::Csr;
use nnz_arrays::random::{Purpose, uniform};

/// The values that a field can have.
const VALUES_PER_FIELD: u32 = 7775;

/// A log of clicks: each sample has `n_fields` distinct ids below `n_features`, all of value 1, and
/// a label 0 or 1, of which a quarter (rounded up) is 1. O(n_rows · n_fields²).
///
/// *Features.* Every field takes one of 7775 values whose popularity follows a power law: with u
/// uniform in (0, 1) the value is ⌊(1 - 5u/6)⁻⁵⌋, so that the m most popular values have a share of
/// 6/5 · (1 - (m+1)^-0.2). Field and value are hashed to an id; an id that the sample already has
/// moves on to the next free one. With 39 fields and 2²⁰ features the 256 most popular ids carry
/// about 40 % of all entries and 4096 about 73 %, as in logs of display advertising.
///
/// *Labels.* Every id has a hidden weight, uniform in (-1, 1). The score of a sample is the sum of
/// its weights plus noise of about the same variance, a sum of `n_fields` numbers uniform in (-1,
/// 1); the quarter of the samples with the highest scores are clicks.
///
/// # Errors
///
/// [`DataError::Synthetic`] if there are fewer features than fields, or more entries than fit in
/// memory.
pub fn click_log(
    n_rows: usize,
    n_features: usize,
    n_fields: usize,
    seed: u64,
) -> Result<Dataset<f32>, DataError> {
    if n_fields > n_features {
        return Err(DataError::Synthetic {
            message: format!(
                "{n_fields} distinct ids a row need as many features: {n_features} are too few"
            ),
        });
    }
    let too_many = || DataError::Synthetic {
        message: format!("{n_rows} rows of {n_fields} entries do not fit in memory"),
    };
    let n_entries = n_rows.checked_mul(n_fields).ok_or_else(too_many)?;
    let mut generator = Purpose::ClickLog.generator(seed);
    let (mut columns, mut scores): (Vec<u64>, Vec<f64>) = Default::default();
    columns.try_reserve_exact(n_entries).map_err(|_| too_many())?;
    scores.try_reserve_exact(n_rows).map_err(|_| too_many())?;
    for _ in 0..n_rows {
        let start = columns.len();
        for field in 0..n_fields as u64 {
            let value = popular_value(uniform(&mut generator));
            let mut id = below(hash(seed, field << 32 | u64::from(value)), n_features);
            while columns[start..].contains(&id) {
                id = (id + 1) % n_features as u64;
            }
            columns.push(id);
        }
        let row = &mut columns[start..];
        row.sort_unstable();
        let signal: f64 = row.iter().map(|&id| hidden_weight(seed, id)).sum();
        scores.push(signal + noise(&mut generator, n_fields));
    }
    let labels = clicks(&scores);
    let indptr = (0..=n_rows).map(|row| (row * n_fields) as u64).collect();
    let features = Csr::new(n_features, indptr, columns, vec![1.0; n_entries])?;
    Dataset::new(features, labels)
}

/// A value from 1, with the probabilities that [`click_log`] documents.
///
/// A fifth power needs no library function, whose last bit may differ between machines.
fn popular_value(u: f64) -> u32 {
    let y = 1.0 - u * (5.0 / 6.0);
    let power = y * y * y * y * y;
    ((1.0 / power) as u32).clamp(1, VALUES_PER_FIELD)
}

fn noise(generator: &mut ChaCha8Rng, n_fields: usize) -> f64 {
    (0..n_fields).map(|_| 2.0 * uniform(generator) - 1.0).sum()
}

fn hidden_weight(seed: u64, id: u64) -> f64 {
    let bits = hash(!seed, id) >> 11;
    bits as f64 / (1u64 << 52) as f64 - 1.0
}

/// 1 for the quarter with the highest scores, 0 for the others.
fn clicks(scores: &[f64]) -> Vec<f32> {
    let n_clicks = scores.len().div_ceil(4);
    let mut rows: Vec<usize> = (0..scores.len()).collect();
    let mut labels = vec![0.0; scores.len()];
    if n_clicks > 0 {
        // The sample breaks ties of equal scores, so that the choice is unique.
        rows.select_nth_unstable_by(n_clicks - 1, |&a, &b| {
            scores[b].total_cmp(&scores[a]).then(a.cmp(&b))
        });
        rows[..n_clicks].iter().for_each(|&row| labels[row] = 1.0);
    }
    labels
}

/// Scales a hash down to a range.
fn below(hash: u64, bound: usize) -> u64 {
    ((u128::from(hash) * bound as u128) >> 64) as u64
}

/// The finalizer of MurmurHash3 over seed and key.
fn hash(seed: u64, key: u64) -> u64 {
    let mut h = key ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for factor in [0xff51_afd7_ed55_8ccd, 0xc4ce_b9fe_1a85_ec53] {
        h ^= h >> 33;
        h = h.wrapping_mul(factor);
    }
    h ^ (h >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ColumnValues;

    fn labels(data: &Dataset) -> &[f32] {
        match data.labels() {
            Some(ColumnValues::Dense(labels)) => labels.values(),
            _ => panic!("the labels are numbers"),
        }
    }

    #[test]
    fn popularity_is_as_documented() {
        let data = click_log(20_000, 1 << 20, 39, 42).unwrap();
        let x = data.features().unwrap();
        assert_eq!((x.n_rows(), x.n_cols(), x.nnz()), (20_000, 1 << 20, 20_000 * 39));
        assert!(x.values().iter().all(|&value| value == 1.0));
        let mut counts = vec![0usize; 1 << 20];
        x.columns().iter().for_each(|column| counts[column] += 1);
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let share = |n: usize| counts[..n].iter().sum::<usize>() as f64 / x.nnz() as f64;
        assert!((share(256) - 0.40).abs() < 0.01, "{}", share(256));
        assert!((share(4096) - 0.73).abs() < 0.01, "{}", share(4096));
        let rate = labels(&data).iter().sum::<f32>() / 20_000.0;
        assert_eq!(rate, 0.25);
    }

    #[test]
    fn rows_have_distinct_ids_even_where_the_features_are_few() {
        for n_features in [5, 6, 64] {
            let data = click_log(100, n_features, 5, 1).unwrap();
            let x = data.features().unwrap();
            assert!(x.iter_rows().all(|row| row.len() == 5));
        }
        let error = click_log(1, 4, 5, 1).unwrap_err();
        assert!(error.to_string().contains("4 are too few"), "{error}");
        let error = click_log(usize::MAX >> 2, 8, 2, 1).unwrap_err();
        assert!(error.to_string().contains("do not fit in memory"), "{error}");
        assert_eq!(click_log(0, 4, 2, 1).unwrap().n_rows(), 0);
    }

    #[test]
    fn labels_can_be_learned() {
        // The hidden weights alone must rank clicks above the others, though not without fault.
        let seed = 9;
        let data = click_log(4000, 1 << 16, 20, seed).unwrap();
        let x = data.features().unwrap();
        let score = |i: usize| -> f64 {
            let (columns, _) = x.row(i).unwrap();
            columns.iter().map(|id| hidden_weight(seed, id as u64)).sum()
        };
        let mean = |clicked: f32| {
            let rows: Vec<usize> = (0..4000).filter(|&i| labels(&data)[i] == clicked).collect();
            rows.iter().map(|&i| score(i)).sum::<f64>() / rows.len() as f64
        };
        let gap = mean(1.0) - mean(0.0);
        // A row's score and its noise have a standard deviation of about (20/3)^0.5 = 2.6 each.
        assert!((1.5..6.0).contains(&gap), "{gap}");
    }

    #[test]
    fn depends_on_the_seed_alone() {
        let rows = |seed| {
            let data = click_log(50, 1000, 4, seed).unwrap();
            (data.features().unwrap().clone(), labels(&data).to_vec())
        };
        assert_eq!(rows(1), rows(1));
        assert_ne!(rows(1).0, rows(2).0);
    }
}
