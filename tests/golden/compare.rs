//! How close is close enough.

use nnz::core::operators::{Kind, find};

/// What two numbers may differ by: `absolute + relative · |expected|`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tolerance {
    pub(crate) absolute: f64,
    pub(crate) relative: f64,
}

impl Tolerance {
    /// Sums and products of small multiples of 1/8.
    pub(crate) const EXACT: Tolerance = Tolerance { absolute: 1e-6, relative: 1e-5 };
    /// Random numbers and transcendental functions.
    const ROUNDED: Tolerance = Tolerance { absolute: 1e-6, relative: 1e-4 };
    /// Parameters after thousands of steps in `f32`.
    pub(crate) const TRAINED: Tolerance = Tolerance { absolute: 1e-4, relative: 1e-4 };

    /// The same, where a step is as long for a small gradient as for a large one.
    pub(crate) const TRAINED_BY_ADAM: Tolerance = Tolerance { absolute: 1e-3, relative: 1e-3 };

    /// What an operator's case may differ by.
    pub(crate) fn of_case(id: &str, op: &str) -> Self {
        let exact = find(op).is_none_or(|operator| match operator.kind {
            // A formula that calls a function is one of the transcendental ones, near enough.
            Kind::Unary(formula) => !formula.contains('('),
            _ => true,
        });
        let layer = ["softmax", "Activation"].contains(&op);
        if id.contains("big") || !exact || layer { Self::ROUNDED } else { Self::EXACT }
    }

    /// The wider of two.
    pub(crate) fn wider(self, other: Self) -> Self {
        if self.relative < other.relative { other } else { self }
    }

    /// Compares all numbers, or names the first that differs. Infinities and NaN must be where they
    /// are expected.
    pub(crate) fn compare(
        self,
        what: &str,
        found: impl IntoIterator<Item = f64>,
        expected: &[f64],
    ) -> Result<(), String> {
        let mut count = 0;
        for (at, found) in found.into_iter().enumerate() {
            count += 1;
            let Some(&expected) = expected.get(at) else {
                continue;
            };
            if !self.is_close(found, expected) {
                return Err(format!("{what}: element {at} is {found}, expected {expected}"));
            }
        }
        if count == expected.len() {
            Ok(())
        } else {
            Err(format!("{what}: {count} elements, expected {}", expected.len()))
        }
    }

    fn is_close(self, found: f64, expected: f64) -> bool {
        if found.is_nan() || expected.is_nan() {
            return found.is_nan() && expected.is_nan();
        }
        if found.is_infinite() || expected.is_infinite() {
            return found == expected;
        }
        (found - expected).abs() <= self.absolute + self.relative * expected.abs()
    }
}

#[test]
fn what_differs_is_named() {
    let close = |found: &[f64], expected: &[f64]| {
        Tolerance::EXACT.compare("w", found.iter().copied(), expected)
    };
    let (nan, inf) = (f64::NAN, f64::INFINITY);
    assert_eq!(close(&[1.0, nan, inf, -0.0], &[1.000001, nan, inf, 0.0]), Ok(()));
    assert_eq!(close(&[], &[]), Ok(()));
    let refused = [
        (&[1.0][..], &[1.1][..], "w: element 0 is 1, expected 1.1"),
        (&[nan], &[0.0], "w: element 0 is NaN, expected 0"),
        (&[0.0], &[nan], "w: element 0 is 0, expected NaN"),
        (&[inf], &[-inf], "w: element 0 is inf, expected -inf"),
        (&[1e30], &[inf], "w: element 0 is 1000000000000000000000000000000, expected inf"),
        (&[1.0], &[1.0, 2.0], "w: 1 elements, expected 2"),
        (&[1.0, 2.0], &[1.0], "w: 2 elements, expected 1"),
    ];
    for (found, expected, message) in refused {
        assert_eq!(close(found, expected), Err(message.to_owned()));
    }
}
