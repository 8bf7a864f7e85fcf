//! Tensors of a file that is written: what they are called, and where their bytes come from.

use nnz_arrays::bytes::{Checksum, PIECE, encode};
use nnz_step::model::ParameterRef;
use safetensors::tensor::Dtype;
use sparse_core::element::Float;
use sparse_core::storage::ElementType;
use std::io;

/// Takes a piece of the bytes of a tensor.
pub(in crate::training) type Take<'t> = &'t mut dyn FnMut(&[u8]) -> io::Result<()>;

/// A tensor whose bytes are made piece by piece, each time they are needed: once for the checksum,
/// once for the file.
pub(super) struct Tensor<'a> {
    pub(super) name: String,
    pub(super) dtype: Dtype,
    pub(super) shape: Vec<usize>,
    bytes: Box<dyn Fn(Take<'_>) -> io::Result<()> + 'a>,
}

impl<'a> Tensor<'a> {
    /// With bytes, as many as `shape` and `dtype` say, from a function that gives the same ones at
    /// every call.
    pub(super) fn new(
        name: String,
        dtype: Dtype,
        shape: Vec<usize>,
        bytes: impl Fn(Take<'_>) -> io::Result<()> + 'a,
    ) -> Self {
        Tensor { name, dtype, shape, bytes: Box::new(bytes) }
    }

    /// Of numbers.
    pub(super) fn of_values<T: Float>(name: String, shape: Vec<usize>, values: &'a [T]) -> Self {
        Tensor::new(name, dtype(T::TYPE), shape, |take| encode(values, take))
    }

    /// Of integers: the little-endian bytes of `of` each.
    pub(super) fn of_integers<I: Copy, const N: usize>(
        name: String,
        dtype: Dtype,
        values: &'a [I],
        of: fn(I) -> [u8; N],
    ) -> Self {
        Tensor::new(name, dtype, vec![values.len()], move |take| {
            let mut bytes = Vec::new();
            for piece in values.chunks(PIECE) {
                bytes.clear();
                bytes.extend(piece.iter().flat_map(|value| of(*value)));
                take(&bytes)?;
            }
            Ok(())
        })
    }

    /// The bytes, in pieces of a few kilobytes, all but the last of them whole words of 32 bits.
    pub(super) fn visit(&self, take: Take<'_>) -> io::Result<()> {
        (self.bytes)(take)
    }

    pub(super) fn checksum(&self) -> io::Result<u64> {
        let mut sum = Checksum::new();
        self.visit(&mut |bytes| {
            sum.add(bytes);
            Ok(())
        })?;
        Ok(sum.value())
    }
}

/// The parameters of a model, each by its name.
pub(super) fn parameters<T: Float>(parameters: Vec<ParameterRef<'_, T>>) -> Vec<Tensor<'_>> {
    parameters
        .into_iter()
        .map(|parameter| {
            let (name, shape) = (parameter.name.to_owned(), parameter.shape.to_vec());
            Tensor::of_values(name, shape, parameter.values())
        })
        .collect()
}

/// The types that a file and the language have in common, each pair once.
const TYPES: [(ElementType, Dtype); 7] = [
    (ElementType::F32, Dtype::F32),
    (ElementType::F64, Dtype::F64),
    (ElementType::F16, Dtype::F16),
    (ElementType::BF16, Dtype::BF16),
    (ElementType::U32, Dtype::U32),
    (ElementType::U64, Dtype::U64),
    (ElementType::I64, Dtype::I64),
];

pub(super) fn dtype(element: ElementType) -> Dtype {
    let known = TYPES.iter().find(|(known, _)| *known == element);
    // The table has every type that a parameter can have, as a test checks.
    known.map_or(Dtype::U8, |(_, dtype)| *dtype)
}

pub(super) fn element(dtype: Dtype) -> Option<ElementType> {
    let known = TYPES.iter().find(|(_, known)| *known == dtype);
    known.map(|(element, _)| *element)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_type_can_be_written() {
        for element_type in ElementType::ALL.into_iter().filter(|known| known.bytes() > 0) {
            let dtype = dtype(element_type);
            assert_eq!(element(dtype), Some(element_type));
            assert_eq!(dtype.bitsize() as u64, 8 * element_type.bytes());
        }
    }
}
