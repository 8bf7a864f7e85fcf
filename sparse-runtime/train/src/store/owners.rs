//! The owners of table rows.

/// Which worker of a group owns a row, and where it is among those that this worker owns: row
/// `place · size + rank` belongs to worker `rank`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Owners {
    size: u64,
    /// Of a power of two, its logarithm.
    shift: Option<u32>,
}

impl Owners {
    pub(super) fn new(size: usize) -> Self {
        Owners { size: size as u64, shift: size.is_power_of_two().then(|| size.trailing_zeros()) }
    }

    /// The owner of a row, and the row's place.
    #[inline(always)]
    pub(super) fn of(self, row: u64) -> (usize, u64) {
        match (self.shift, u32::try_from(row)) {
            (Some(shift), _) => ((row & (self.size - 1)) as usize, row >> shift),
            // Division is several times faster in 32 bits.
            (None, Ok(row)) => {
                let size = self.size as u32;
                ((row % size) as usize, u64::from(row / size))
            }
            (None, Err(_)) => ((row % self.size) as usize, row / self.size),
        }
    }
}
