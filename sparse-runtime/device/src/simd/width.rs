//! The width of a table row in a loop: a constant of the model's source, or a number that the model
//! has.

use sparse_core::element::Float;

/// The columns of the product: known to the compiler or to the model only.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a number of columns",
    note = "`graph!` chooses it: `Fixed` where the source has a number, else `Runtime`"
)]
pub trait Width: Copy + Sync {
    /// False of rows that are too short for vectors: elements that lie apart are better loaded one
    /// by one.
    const IN_VECTORS: bool;

    /// True of rows that are known to be made of sixteens.
    const IN_SIXTEENS: bool = false;

    /// True of rows that are known to be one element.
    const IS_ONE: bool = false;

    /// The number of columns.
    fn columns(&self) -> usize;

    /// Runs `body` with two rows of scratch, the first of them zero: on the stack where the width
    /// is known.
    fn with_rows<T: Float, O>(
        &self,
        scratch: &mut Vec<T>,
        body: impl FnOnce(&mut [T], &mut [T]) -> O,
    ) -> O;

    /// Runs `body` on a copy of a row of this width, which is then put back. No other pointer leads
    /// to the copy, so that the compiler keeps it in registers where it knows the width; where it
    /// does not, `body` gets the row itself.
    fn in_registers<T: Copy, O>(&self, row: &mut [T], body: impl FnOnce(&mut [T]) -> O) -> O;
}

/// A width written in the source.
#[derive(Clone, Copy, Debug)]
pub struct Fixed<const K: usize>;

/// A width given when the model was made.
#[derive(Clone, Copy, Debug)]
pub struct Runtime(pub usize);

impl<const K: usize> Width for Fixed<K> {
    const IN_VECTORS: bool = K >= 4;
    const IN_SIXTEENS: bool = K > 0 && K.is_multiple_of(16);
    const IS_ONE: bool = K == 1;

    #[inline(always)]
    fn columns(&self) -> usize {
        K
    }

    #[inline(always)]
    fn with_rows<T: Float, O>(
        &self,
        _: &mut Vec<T>,
        body: impl FnOnce(&mut [T], &mut [T]) -> O,
    ) -> O {
        body(&mut [T::zero(); K], &mut [T::zero(); K])
    }

    #[inline(always)]
    fn in_registers<T: Copy, O>(&self, row: &mut [T], body: impl FnOnce(&mut [T]) -> O) -> O {
        let Some(row) = row.first_chunk_mut::<K>() else { return body(row) };
        let mut copy = *row;
        let result = body(&mut copy);
        *row = copy;
        result
    }
}

impl Width for Runtime {
    const IN_VECTORS: bool = true;

    #[inline(always)]
    fn columns(&self) -> usize {
        self.0
    }

    #[inline(always)]
    fn with_rows<T: Float, O>(
        &self,
        scratch: &mut Vec<T>,
        body: impl FnOnce(&mut [T], &mut [T]) -> O,
    ) -> O {
        scratch.resize(2 * self.0, T::zero());
        let (scores, saved) = scratch.split_at_mut(self.0);
        // What the last row of data left there.
        scores.fill(T::zero());
        body(scores, saved)
    }

    #[inline(always)]
    fn in_registers<T: Copy, O>(&self, row: &mut [T], body: impl FnOnce(&mut [T]) -> O) -> O {
        body(row)
    }
}
