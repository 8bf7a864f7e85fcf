//! Adding multiples of rows to rows of sums, some columns at a time: so many as registers hold, and
//! so that the compiler knows how many.

use nnz_device::prefetch::prefetch_known_at;
use nnz_device::simd::{Lanes, Plain};
use sparse_core::element::Float;

/// Work on some columns, then on those behind them.
pub(super) trait InPanels<A> {
    /// How many columns there are.
    fn width(&self) -> usize;

    /// The same work for `N` vectors of columns, from one on; `ALL` that there are, if so, so that
    /// the compiler knows how far apart rows are.
    ///
    /// # Safety
    ///
    /// The processor has the instructions of `L`, and there are so many columns.
    unsafe fn panel<L: Lanes<A>, const N: usize, const ALL: bool>(&self, column: usize);
}

/// All columns. (To take an entry once, with all of its columns, is slower: where their number is
/// not known when this is compiled, some instructions are for finding out, and with it fewer
/// registers are left. A vector of which some lanes are masked waits for what has just been written
/// to the row behind.)
///
/// # Safety
///
/// The processor has the instructions of `L`.
#[inline(always)]
pub(super) unsafe fn in_panels<T, L, W>(work: &W)
where
    T: Float,
    L: Lanes<T::Accumulator>,
    W: InPanels<T::Accumulator>,
{
    let (width, mut column) = (work.width(), 0);
    if width == L::COUNT {
        // SAFETY: as the caller says, here and below.
        return unsafe { work.panel::<L, 1, true>(0) };
    }
    macro_rules! panels {
        ($lanes:ty, $n:literal) => {
            while column + $n * <$lanes as Lanes<T::Accumulator>>::COUNT <= width {
                // SAFETY: these columns are there.
                unsafe { work.panel::<$lanes, $n, false>(column) };
                column += $n * <$lanes as Lanes<T::Accumulator>>::COUNT;
            }
        };
    }
    panels!(L, 4);
    panels!(L, 2);
    panels!(L, 1);
    // What is left is fewer columns than a vector's.
    macro_rules! rest {
        ($n:literal) => {
            if const { $n < L::COUNT } {
                panels!(Plain<T::Accumulator, $n>, 1);
            }
        };
    }
    rest!(8);
    rest!(4);
    rest!(2);
    rest!(1);
}

/// The elements of a row in a panel.
#[derive(Clone, Copy)]
pub(super) struct Elements<L, const N: usize>([L; N]);

impl<L: Copy, const N: usize> Elements<L, N> {
    /// Those from an address on.
    ///
    /// # Safety
    ///
    /// The processor has the instructions of `L`, and so many elements are there.
    #[inline(always)]
    pub(super) unsafe fn load<A>(from: *const A) -> Self
    where
        L: Lanes<A>,
    {
        // SAFETY: as the caller says.
        unsafe {
            let mut elements = [L::zero(); N];
            for (n, vector) in elements.iter_mut().enumerate() {
                *vector = L::load(from.add(n * L::COUNT));
            }
            Elements(elements)
        }
    }

    /// Adds value · elements to sums. With `NEVER_MINUS_ZERO` a term that is -0 counts as 0.
    ///
    /// # Safety
    ///
    /// As for [`load`](Elements::load), of sums.
    #[inline(always)]
    pub(super) unsafe fn add_to<A, const NEVER_MINUS_ZERO: bool>(self, sums: *mut A, value: A)
    where
        L: Lanes<A>,
    {
        // SAFETY: as the caller says.
        unsafe {
            let value = L::splat(value);
            for (n, factor) in self.0.into_iter().enumerate() {
                let mut term = value.multiply(factor);
                if NEVER_MINUS_ZERO {
                    term = term.add(L::zero());
                }
                let sums = sums.add(n * L::COUNT);
                L::load(sums).add(term).store(sums);
            }
        }
    }

    /// Asks for so many elements from an address on, which may be any, and may begin a line of the
    /// cache.
    #[inline(always)]
    pub(super) fn ask<A>(from: *const A, begins_line: bool)
    where
        L: Lanes<A>,
    {
        prefetch_known_at(from, N * L::COUNT, begins_line);
    }
}
