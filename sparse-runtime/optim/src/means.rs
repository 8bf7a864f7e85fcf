//! Running means that start at 0, and how much of what they were given they hold.

/// e^-this is less than half of the last bit of 1.
const NOTHING_LEFT: f64 = 38.0;

/// 1 - beta^steps: what a mean that starts at 0 has taken up. 1 after [`corrected_after`] steps.
pub(super) fn taken_up(beta: f64, steps: u64) -> f64 {
    // beta^steps < e^-((1 - beta) steps).
    if (1.0 - beta) * steps as f64 >= NOTHING_LEFT {
        return 1.0;
    }
    // Beyond that many steps the power is 0 for any beta below 1 - 1e-8.
    1.0 - beta.powi(i32::try_from(steps).unwrap_or(i32::MAX))
}

/// The steps after which nothing is left of the start of a mean with this beta. As many as there
/// are of a beta of 1.
pub(super) fn corrected_after(beta: f64) -> u64 {
    (NOTHING_LEFT / (1.0 - beta)).ceil() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_ends_where_nothing_is_left_to_correct() {
        let until = corrected_after(0.999);
        assert!((30_000..50_000).contains(&until), "{until}");
        for steps in [1, 1000, until - 2, until - 1, until, until + 1] {
            // Whether a power is computed by the compiler or by the program, is seen in its last
            // bits.
            let difference = taken_up(0.999, steps) - (1.0 - 0.999f64.powi(steps as i32));
            assert!(difference.abs() < 1e-13, "{steps}: {difference:e}");
        }
        assert_eq!((taken_up(0.999, u64::MAX), corrected_after(1.0)), (1.0, u64::MAX));
    }
}
