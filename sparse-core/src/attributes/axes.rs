//! Axes of arrays, by number or all of them.

use super::List;

/// Axes of an array, negative ones from the end; or all of them, which is the default.
///
/// ```
/// # mod nnz { pub use sparse_core as core; }
/// use nnz::core::ir::Axes;
/// let last: Axes = (-1).into();
/// assert_eq!((last.places(2), Axes::all().places(2)), (Some(vec![1]), Some(vec![0, 1])));
/// assert_eq!(Axes::from([0, 1, 5]).places(2), None);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Axes(pub Option<List>);

impl Axes {
    /// All axes.
    pub const fn all() -> Self {
        Axes(None)
    }

    /// Which axes of an array of a rank these are, ascending, once each; `None` where one is beyond
    /// the rank.
    pub fn places(&self, rank: usize) -> Option<Vec<usize>> {
        let Some(list) = &self.0 else { return Some((0..rank).collect()) };
        let mut places =
            (list.values()).map(|axis| place_of(axis, rank)).collect::<Option<Vec<_>>>()?;
        places.sort_unstable();
        places.dedup();
        Some(places)
    }

    /// Whether an axis, given by its place, is one of these in an array of a rank.
    pub fn contain(&self, place: usize, rank: usize) -> bool {
        match &self.0 {
            None => place < rank,
            Some(list) => list.values().any(|axis| place_of(axis, rank) == Some(place)),
        }
    }
}

impl From<i64> for Axes {
    fn from(axis: i64) -> Self {
        Axes(Some([axis].into()))
    }
}

impl From<Option<i64>> for Axes {
    fn from(axis: Option<i64>) -> Self {
        axis.map_or(Axes::all(), Axes::from)
    }
}

impl<const N: usize> From<[i64; N]> for Axes {
    fn from(axes: [i64; N]) -> Self {
        Axes(Some(axes.into()))
    }
}

/// The position of an axis, counted from the end where it is negative.
pub fn place_of(axis: i64, rank: usize) -> Option<usize> {
    let place = if axis < 0 { axis + rank as i64 } else { axis };
    usize::try_from(place).ok().filter(|place| *place < rank)
}
