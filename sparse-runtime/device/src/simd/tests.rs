//! Sums of terms give the same bits with any instructions, as far as this processor has them.

use super::{Eights, every_level_gives_the_same, inner, squares_less};

/// Numbers whose sums round differently in another order.
fn numbers(count: usize) -> Vec<f32> {
    (0..count).map(|i| (((i * 7919 % 1009) as f64 - 500.0) / 300.0) as f32).collect()
}

#[test]
fn sums_of_terms_have_the_bits_of_any_level() {
    for len in [0, 1, 7, 8, 16, 20, 24, 33] {
        let (a, b) = (&numbers(len)[..], &numbers(2 * len)[len..]);
        let check = |sum: fn(&[f32], &[f32]) -> f32, term: fn(f64, f64) -> f64| {
            every_level_gives_the_same(&format!("{len} elements"), || sum(a, b).to_bits());
            let exact: f64 = a.iter().zip(b).map(|(a, b)| term((*a).into(), (*b).into())).sum();
            assert!((f64::from(sum(a, b)) - exact).abs() < 1e-4, "{len} elements");
        };
        check(inner, |a, b| a * b);
        check(squares_less, |a, b| a * a - b);
    }
}

#[test]
fn sums_with_squares_are_those_of_a_plain_loop() {
    for len in [8, 16, 24, 64] {
        let (row, start) = (numbers(len), numbers(2 * len));
        let (mut sums, mut squares) = (start[..len].to_vec(), start[len..].to_vec());
        let terms = row.iter().map(|element| 0.3 * element);
        let expected: (Vec<f32>, Vec<f32>) = (sums.iter().zip(&squares).zip(terms))
            .map(|((sum, square), term)| (sum + term, square + term * term))
            .unzip();
        if let Some(eights) = Eights::of::<f32>(len) {
            // SAFETY: three rows of this size.
            unsafe { eights.add_with_squares(0.3, &row, &mut sums, &mut squares) };
            assert_eq!((sums, squares), expected, "{len} elements");
        }
    }
    assert!(Eights::of::<f32>(12).is_none() && Eights::of::<f64>(16).is_none());
}
