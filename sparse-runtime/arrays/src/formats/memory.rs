//! Memory that may not be there: for what takes more than the arguments of a call do.

use super::{FormatError, Shape};

// What of an array takes the memory.
pub(crate) const ELEMENTS: &str = "the elements";
pub(super) const ROW_POINTERS: &str = "the row pointers";
pub(super) const ROW_IDS: &str = "the row ids";

/// Makes room for `size` elements in all, so that growing to them neither panics nor ends the
/// process.
///
/// # Errors
///
/// [`FormatError::OutOfMemory`]; the buffer is as before.
pub(super) fn make_room<T>(
    buffer: &mut Vec<T>,
    size: usize,
    what: &'static str,
    shape: Shape,
) -> Result<(), FormatError> {
    let more = size.saturating_sub(buffer.len());
    buffer.try_reserve_exact(more).map_err(|_| {
        let bytes = size.saturating_mul(size_of::<T>());
        FormatError::OutOfMemory { what, shape, bytes }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_does_not_have_is_an_error() {
        let mut buffer = vec![1u64];
        let shape = Shape::from([usize::MAX, 2]);
        for size in [usize::MAX, usize::MAX / 8, usize::MAX / 32] {
            let error = make_room(&mut buffer, size, ROW_POINTERS, shape).unwrap_err();
            let expected = format!(
                "there is no memory for the row pointers of an array of shape {shape}, {} bytes",
                size.saturating_mul(8)
            );
            assert_eq!(error.to_string(), expected);
        }
        make_room(&mut buffer, 10, ELEMENTS, shape).unwrap();
        assert!(buffer.capacity() >= 10 && buffer == [1]);
    }
}
