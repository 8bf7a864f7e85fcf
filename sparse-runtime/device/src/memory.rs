//! Checks for memory before large allocations: ordinary allocations end the process if there is
//! none.

/// Whether the system provides memory for this number of elements. The memory is released: if the
/// system overcommits, it may still be missing later. Small arrays are assumed to fit.
pub fn is_there_for<T>(count: usize) -> bool {
    const SMALL: usize = 1 << 20;
    count.saturating_mul(size_of::<T>()) < SMALL || Vec::<T>::new().try_reserve_exact(count).is_ok()
}

/// Reserves memory for further elements, plus half of the present ones if possible: copies are then
/// rare in the long run.
///
/// # Errors
///
/// The bytes of all elements for which there is no memory; the vector is unchanged.
pub fn make_room<T>(run: &mut Vec<T>, more: usize) -> Result<(), usize> {
    if run.capacity() - run.len() >= more || run.try_reserve_exact(more.max(run.len() / 2)).is_ok()
    {
        return Ok(());
    }
    let bytes = run.len().saturating_add(more).saturating_mul(size_of::<T>());
    run.try_reserve_exact(more).map_err(|_| bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_made_or_the_bytes_are_told() {
        let mut run = vec![1u64, 2, 3, 4];
        make_room(&mut run, 1).unwrap();
        assert!(run.capacity() >= 6 && run == [1, 2, 3, 4]);
        assert_eq!(make_room(&mut run, 1 << 58), Err(8 * ((1 << 58) + 4)));
        assert_eq!(
            (make_room(&mut run, usize::MAX), &run[..]),
            (Err(usize::MAX), &[1, 2, 3, 4][..])
        );
    }

    #[test]
    fn memory_beyond_the_address_space_is_not_there() {
        assert!(is_there_for::<u64>(1 << 10) && is_there_for::<()>(usize::MAX));
        assert!(!is_there_for::<u64>(1 << 60) && !is_there_for::<u64>(1 << 45));
    }
}
