//! Spans of positions along an axis, of which slices are made.

/// Every `step`-th position from `start` on, `len` of them.
///
/// ```
/// # mod nnz { pub use sparse_core as core; }
/// use nnz::core::shapes::Span;
/// let backwards = Span::new(Some(-1), None, Some(-2), 5);
/// assert_eq!((0..backwards.len).map(|i| backwards.at(i)).collect::<Vec<_>>(), [4, 2, 0]);
/// assert_eq!((backwards.find(2), backwards.find(3)), (Some(1), None));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first position.
    pub start: usize,
    /// From one position to the next; negative where they descend.
    pub step: i64,
    /// How many there are.
    pub len: usize,
}

impl Span {
    /// The positions of a slice as Python writes it, `begin:end:step`: negative bounds count from
    /// the end, what is left open goes to the end, and bounds beyond the extent are cut. A step of
    /// 0 gives nothing.
    pub const fn new(
        begin: Option<i64>,
        end: Option<i64>,
        step: Option<i64>,
        extent: usize,
    ) -> Self {
        let step = match step {
            Some(step) => step,
            None => 1,
        };
        let size = extent as i128;
        // Where descending positions end is before the first one.
        let (least, most) = if step < 0 { (-1, size - 1) } else { (0, size) };
        let (first, last) = if step < 0 { (most, least) } else { (least, most) };
        let start = place(begin, size, [least, most], first);
        let end = place(end, size, [least, most], last);
        let distance = if step < 0 { start - end } else { end - start };
        if step == 0 || distance <= 0 {
            return Span { start: 0, step: 1, len: 0 };
        }
        let len = (distance - 1) / step.unsigned_abs() as i128 + 1;
        Span { start: start as usize, step, len: len as usize }
    }

    /// Every position.
    pub fn all(extent: usize) -> Self {
        Span { start: 0, step: 1, len: extent }
    }

    /// The first `len` positions, or the last.
    pub fn at_end(len: usize, extent: usize, last: bool) -> Self {
        let len = len.min(extent);
        Span { start: if last { extent - len } else { 0 }, step: 1, len }
    }

    /// Whether these are all positions of an axis, in order.
    pub fn is_all(&self, extent: usize) -> bool {
        *self == Span::all(extent)
    }

    /// A position.
    #[inline]
    pub fn at(&self, index: usize) -> usize {
        (self.start as i64).wrapping_add(self.step.wrapping_mul(index as i64)) as usize
    }

    /// Which of the positions this is.
    #[inline]
    pub fn find(&self, position: usize) -> Option<usize> {
        // One step is the usual one, and needs no division.
        let index = match self.step {
            1 => position.checked_sub(self.start)?,
            step => {
                let distance = (position as i64).wrapping_sub(self.start as i64);
                if distance.checked_rem(step)? != 0 {
                    return None;
                }
                usize::try_from(distance / step).ok()?
            }
        };
        (index < self.len).then_some(index)
    }

    /// The smallest position, and one past the largest.
    pub fn bounds(&self) -> (usize, usize) {
        match self.len.checked_sub(1) {
            None => (0, 0),
            Some(last) => {
                let last = self.at(last);
                (self.start.min(last), self.start.max(last) + 1)
            }
        }
    }
}

/// Where a bound is, within limits. Written without closures, which constants cannot call.
const fn place(bound: Option<i64>, size: i128, [least, most]: [i128; 2], open: i128) -> i128 {
    let place = match bound {
        None => return open,
        Some(bound) if bound < 0 => bound as i128 + size,
        Some(bound) => bound as i128,
    };
    if place < least {
        least
    } else if place > most {
        most
    } else {
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The positions by counting, as Python's documentation of slices says.
    fn by_counting(begin: Option<i64>, end: Option<i64>, step: i64, extent: i64) -> Vec<usize> {
        let place = |bound: i64| if bound < 0 { bound + extent } else { bound };
        let begin = begin.map_or(if step > 0 { 0 } else { extent - 1 }, place);
        let end = end.map_or(if step > 0 { extent } else { -1 }, place);
        let inside = |at: &i64| if step > 0 { *at < end } else { *at > end };
        // Starts beyond the array count as its ends.
        let begin = if step > 0 { begin.max(0) } else { begin.min(extent - 1) };
        std::iter::successors(Some(begin), |at| Some(at + step))
            .take_while(|at| (0..extent).contains(at) && inside(at))
            .map(|at| at as usize)
            .collect()
    }

    #[test]
    fn slices_are_those_of_python() {
        let bounds: Vec<Option<i64>> = (-7..8).map(Some).chain([None]).collect();
        for extent in 0..6 {
            for (&begin, &end) in bounds.iter().flat_map(|b| bounds.iter().map(move |e| (b, e))) {
                for step in [-3, -2, -1, 1, 2, 3] {
                    let span = Span::new(begin, end, Some(step), extent);
                    let found: Vec<usize> = (0..span.len).map(|index| span.at(index)).collect();
                    let expected = by_counting(begin, end, step, extent as i64);
                    assert_eq!(found, expected, "{begin:?}:{end:?}:{step} of {extent}");
                    for position in 0..extent {
                        let index = expected.iter().position(|known| *known == position);
                        assert_eq!(span.find(position), index);
                    }
                    let (least, most) = span.bounds();
                    assert!(expected.iter().all(|at| (least..most).contains(at)));
                    assert_eq!(expected.is_empty(), least == most);
                }
            }
        }
        assert_eq!(Span::new(None, None, Some(0), 3).len, 0);
        assert_eq!(Span::new(Some(0), Some(i64::MAX), None, usize::MAX).len, i64::MAX as usize);
        let wide = Span::all(usize::MAX);
        assert_eq!((wide.find(1 << 63), wide.at(1 << 63)), (Some(1 << 63), 1 << 63));
    }
}
