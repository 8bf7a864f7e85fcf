//! Losses that are a sum over the columns of a row, the mean over the rows. O(size of the scores);
//! on a GPU they are formulas.

use super::Context;
use super::row_loss::RowLoss;
use super::rows::element_loss;
use super::scalar::{ScalarFunctions, Softplus, sigmoid_and_softplus};
use crate::formats::{CsrView, Dense, DenseView};
use sparse_core::element::Float;

pub mod squared_error {
    //! Half the squared error, summed over the columns of a row, the mean over the rows. O(size).

    pub mod cpu {
        //! On the CPU.

        use super::super::*;

        element_loss!(element);

        /// ½ (score - label)².
        #[inline(always)]
        fn element<T: Float>(score: T, label: T) -> (T, T) {
            let error = score - label;
            (T::of(0.5) * error * error, error)
        }
    }
}

pub mod absolute_error {
    //! The absolute error, summed over the columns of a row, the mean over the rows. O(size).

    pub mod cpu {
        //! On the CPU.

        use super::super::*;

        element_loss!(element);

        /// |score - label|. Where they are equal every slope in [-1, 1] is one; it is 0.
        #[inline(always)]
        fn element<T: Float>(score: T, label: T) -> (T, T) {
            let error = score - label;
            (error.abs(), error.sign())
        }
    }
}

pub mod huber {
    //! Huber's loss, summed over the columns of a row, the mean over the rows. O(size).

    pub mod cpu {
        //! On the CPU.

        use super::super::*;

        element_loss!(element, delta);

        /// ½e² where |e| ≤ delta, delta · (|e| - delta/2) beyond.
        #[inline(always)]
        fn element<T: Float>(score: T, label: T, delta: T) -> (T, T) {
            let error = score - label;
            // The slope; NaN stays NaN.
            let slope = if error > delta {
                delta
            } else if error < -delta {
                -delta
            } else {
                error
            };
            (slope * (error - T::of(0.5) * slope), slope)
        }

        #[cfg(test)]
        mod tests {
            use super::*;

            #[test]
            fn quadratic_up_to_delta_and_linear_beyond() {
                for (error, loss, slope) in [
                    (0.5, 0.125, 0.5),
                    (-2.0, 2.0, -2.0),
                    (5.0, 8.0, 2.0),
                    (-5.0, 8.0, -2.0),
                    (0.0, 0.0, 0.0),
                ] {
                    assert_eq!(element(error + 1.0f64, 1.0, 2.0), (loss, slope));
                }
                assert!(element(f64::NAN, 0.0, 1.0).0.is_nan());
            }
        }
    }
}

pub mod logistic {
    //! The logistic loss (binary cross entropy of a score), summed over the columns of a row, the
    //! mean over the rows. O(size), one exponential an element for loss and gradient together.

    pub mod cpu {
        //! On the CPU.

        use super::super::*;

        element_loss!(element, later = element_later -> Logistic);

        /// log(1 + exp(score)) - t · score.
        #[inline(always)]
        fn element<T: Float>(score: T, label: T) -> (T, T) {
            let (loss, gradient) = element_later(score, label);
            (loss.now(), gradient)
        }

        #[inline(always)]
        fn element_later<T: Float>(score: T, label: T) -> (Logistic<T>, T) {
            // The probability that a label stands for: -1 is the negative class, as 0 is.
            let target = label.at_least(T::zero());
            let (sigmoid, softplus) = sigmoid_and_softplus(score);
            (Logistic { softplus, linear: target * score }, sigmoid - target)
        }

        /// The loss of a score.
        #[derive(Clone, Copy, Debug, Default)]
        pub struct Logistic<T> {
            softplus: Softplus<T>,
            /// What is taken from it.
            linear: T,
        }

        impl<T: Float> RowLoss<T> for Logistic<T> {
            const LATER: bool = true;

            #[inline(always)]
            fn now(self) -> T {
                self.softplus.value() - self.linear
            }

            #[inline(always)]
            fn is_finite(self) -> bool {
                // What is left out is at most log 2, and 0 where it would not count.
                num_traits::Float::is_finite(self.softplus.bound() - self.linear)
            }
        }

        #[cfg(test)]
        mod tests {
            use super::*;

            #[test]
            fn large_scores_are_no_trouble() {
                for (score, label, loss, gradient) in [
                    (2e4f32, 1.0f32, 0.0, 0.0),
                    (2e4, 0.0, 2e4, 1.0),
                    (-2e4, 1.0, 2e4, -1.0),
                    (-2e4, 0.0, 0.0, 0.0),
                ] {
                    let mut scores = [score];
                    assert_eq!(
                        (row(&mut scores, &[label]), scores[0]),
                        (loss, gradient),
                        "{score} {label}"
                    );
                }
            }

            #[test]
            fn a_label_of_minus_one_is_one_of_zero_and_probabilities_are_labels() {
                let scores = [0.7f64, 0.7, 0.7];
                let (minus, zero, half) = ([-1.0], [0.0], [0.5]);
                let loss = |label: &[f64]| row(&mut [0.7], label);
                assert_eq!(loss(&minus), loss(&zero));
                assert!((loss(&half) - (loss(&zero) + loss(&[1.0])) / 2.0).abs() < 1e-15);
                let mut gradient = scores;
                let labels = [-1.0, 0.5, 1.0];
                let each = labels.map(|label| loss(&[label]));
                assert_eq!(row(&mut gradient, &labels), each[0] + each[1] + each[2]);
                let sigmoid = 0.7f64.sigmoid();
                assert_eq!(gradient, [sigmoid, sigmoid - 0.5, sigmoid - 1.0]);
            }
        }
    }
}

pub mod hinge {
    //! The hinge loss, summed over the columns of a row, the mean over the rows. O(size).

    pub mod cpu {
        //! On the CPU.

        use super::super::*;

        element_loss!(element);

        /// max(0, 1 - t · score).
        #[inline(always)]
        fn element<T: Float>(score: T, label: T) -> (T, T) {
            let target = side(label);
            let short = T::one() - target * score;
            // At the margin every slope between 0 and -t is one; it is 0. NaN stays NaN.
            if short <= T::zero() { (T::zero(), T::zero()) } else { (short, -target) }
        }

        /// 1 for a label of 1/2 or above, -1 for any other.
        #[inline(always)]
        pub(crate) fn side<T: Float>(label: T) -> T {
            if label >= T::of(0.5) { T::one() } else { -T::one() }
        }

        #[cfg(test)]
        mod tests {
            use super::*;

            #[test]
            fn labels_of_zero_are_negative_and_the_margin_is_flat() {
                for label in [-1.0, 0.0] {
                    assert_eq!(element(0.25f64, label), (1.25, 1.0));
                    assert_eq!(element(-1.0f64, label), (0.0, 0.0));
                }
                assert_eq!(
                    (element(0.25f64, 1.0), element(3.0f64, 1.0)),
                    ((0.75, -1.0), (0.0, 0.0))
                );
                assert!(element(f64::NAN, 1.0).0.is_nan());
            }

            #[test]
            fn n8_a_label_that_is_a_probability_is_positive_from_one_half_on() {
                assert_eq!([0.1, 0.49, 0.5, 0.9].map(side::<f64>), [-1.0, -1.0, 1.0, 1.0]);
            }
        }
    }
}

pub mod squared_hinge {
    //! The squared hinge loss, summed over the columns of a row, the mean over the rows. O(size).

    pub mod cpu {
        //! On the CPU.

        use super::super::hinge::cpu::side;
        use super::super::*;

        element_loss!(element);

        /// max(0, 1 - t · score)².
        #[inline(always)]
        fn element<T: Float>(score: T, label: T) -> (T, T) {
            let target = side(label);
            let short = T::one() - target * score;
            if short <= T::zero() {
                return (T::zero(), T::zero());
            }
            (short * short, T::of(-2.0) * target * short)
        }
    }
}

pub mod poisson {
    //! The loss of counts, summed over the columns of a row, the mean over the rows. O(size), one
    //! exponential an element for loss and gradient together.

    pub mod cpu {
        //! On the CPU.

        use super::super::*;

        element_loss!(element);

        /// exp(score) - label · score.
        #[inline(always)]
        fn element<T: Float>(score: T, label: T) -> (T, T) {
            let mean = score.exp();
            (mean - label * score, mean - label)
        }
    }
}
