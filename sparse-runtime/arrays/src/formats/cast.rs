//! Casts of the elements, whatever the storage; what they do is in the documentation of
//! [`formats`](super).

use super::{Csr, Dense, FormatError, RowSparse};
use sparse_core::element::{Element, Float, Number, Stored};

macro_rules! casts {
    ($($array:ident of $held:ident: $source:ident => $rebuilt:expr;)*) => {
        $(impl<T: $held> $array<T> {
            /// The same array with another type of element, each value the nearest of that type, as
            /// the [table](crate::formats#casts) says. What is stored stays stored, also where a
            /// value becomes zero. O(stored values).
            #[must_use]
            pub fn cast<U: $held>(&self) -> $array<U> {
                let ($source, values) = (self, cast(&self.values));
                $rebuilt(values)
            }

            /// The same array with another type of element, where each value is one of that type:
            /// nothing is lost. O(stored values).
            ///
            /// # Errors
            ///
            /// [`FormatError::Inexact`], with the position among the stored values, for the first
            /// that is not.
            pub fn try_cast<U: $held>(&self) -> Result<$array<U>, FormatError> {
                let ($source, values) = (self, try_cast(&self.values)?);
                Ok($rebuilt(values))
            }
        }

        impl<T: Float> $array<T> {
            /// [`cast`](Self::cast), between floats only.
            #[doc(hidden)]
            pub fn cast_elements<U: Float>(&self) -> $array<U> {
                self.cast()
            }
        })*
    };
}

casts! {
    Dense of Element: source => |values: Vec<U>| Dense { shape: source.shape, values: values.into() };
    Csr of Stored: source => |values| Csr {
        n_cols: source.n_cols,
        indptr: source.indptr.clone(),
        columns: source.columns.clone(),
        values,
    };
    RowSparse of Element: source => |values: Vec<U>| RowSparse {
        shape: source.shape,
        indices: source.indices.clone(),
        values: values.into(),
    };
}

fn cast<T: Stored, U: Stored>(values: &[T]) -> Vec<U> {
    values.iter().map(|value| U::from_number(value.to_number())).collect()
}

fn try_cast<T: Stored, U: Stored>(values: &[T]) -> Result<Vec<U>, FormatError> {
    let convert = |(position, value): (usize, &T)| {
        let number = value.to_number();
        let result = U::from_number(number);
        if same(number, result.to_number()) {
            Ok(result)
        } else {
            Err(FormatError::Inexact { position, value: value.to_string(), element: U::TYPE })
        }
    };
    values.iter().enumerate().map(convert).collect()
}

/// Equal as numbers; NaN is NaN.
fn same(left: Number, right: Number) -> bool {
    match (left, right) {
        (Number::Float(left), Number::Float(right)) => {
            left == right || left.is_nan() && right.is_nan()
        }
        (Number::Integer(left), Number::Integer(right)) => left == right,
        // 2¹²⁷ is no integer of an array, so that the cast below does not stop at a bound that the
        // float exceeds.
        (Number::Float(float), Number::Integer(integer))
        | (Number::Integer(integer), Number::Float(float)) => {
            float.fract() == 0.0 && float as i128 == integer
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn storage_and_pattern_stay() {
        let wide = Csr::from_rows(3, [[(1, 0.1f64), (2, 1e-60)]]).unwrap();
        let narrow: Csr<f32> = wide.cast();
        assert_eq!(narrow, Csr::from_rows(3, [[(1, 0.1f32), (2, 0.0)]]).unwrap());
        assert_eq!(narrow.cast::<f64>().values(), [f64::from(0.1f32), 0.0]);
        assert_eq!(wide.cast_elements::<f32>(), narrow);
        let rows = RowSparse::new([2, 1], vec![1], vec![0.1f64]).unwrap();
        assert_eq!(rows.cast::<f32>().row(1), Some(&[0.1f32][..]));
        assert_eq!(rows.cast::<u32>(), RowSparse::new([2, 1], vec![1], vec![0]).unwrap());
    }

    #[test]
    fn floats_become_ids_only_where_nothing_is_lost_or_it_is_asked_for() {
        let labels = Dense::from(vec![0.0f32, 2.0, -0.0, 1.5]);
        assert_eq!(labels.cast::<u32>().values(), [0, 2, 0, 1]);
        assert_eq!(
            labels.try_cast::<u32>().unwrap_err().to_string(),
            "the value 1.5 (position 3) is not exactly a number of type u32: `cast` takes the nearest"
        );
        assert_eq!(labels.try_cast::<f64>().unwrap().values(), [0.0, 2.0, 0.0, 1.5]);
        let ids = Dense::from(vec![u64::MAX, 1 << 60]);
        assert!(matches!(ids.try_cast::<i64>(), Err(FormatError::Inexact { position: 0, .. })));
        // The nearest float is 2⁶⁴, which is another number although it casts back to this one.
        assert!(matches!(ids.try_cast::<f64>(), Err(FormatError::Inexact { position: 0, .. })));
        assert_eq!(Dense::from(vec![-1i64]).cast::<u64>().values(), [0]);
        for odd in [f32::NAN, f32::INFINITY, 1e38, -1.0] {
            let odd = Dense::from(vec![odd]);
            assert!(odd.try_cast::<u64>().is_err());
            assert_eq!(
                odd.try_cast::<f64>().unwrap().values()[0].to_bits(),
                f64::from(odd.values()[0]).to_bits()
            );
        }
    }
}
