//! Dense arrays of integer ids, of any of the id types.

use super::{Dense, DenseView, Shape};
use crate::device::{Cpu, Device};
use sparse_core::element::Id;
use sparse_core::storage::ElementType;

/// Ids: rows of a table, classes, positions, counts.
#[derive(Clone, Debug, PartialEq)]
pub enum Ids {
    /// 32-bit unsigned.
    U32(Dense<u32>),
    /// 64-bit unsigned.
    U64(Dense<u64>),
    /// 64-bit signed, as other frameworks write them.
    I64(Dense<i64>),
}

/// Borrowed [`Ids`].
#[derive(Clone, Copy)]
pub enum IdsView<'a, D: Device = Cpu> {
    /// 32-bit unsigned.
    U32(DenseView<'a, u32, D>),
    /// 64-bit unsigned.
    U64(DenseView<'a, u64, D>),
    /// 64-bit signed.
    I64(DenseView<'a, i64, D>),
}

impl Ids {
    /// The ids, borrowed.
    pub fn view(&self) -> IdsView<'_> {
        match self {
            Ids::U32(ids) => IdsView::U32(ids.view()),
            Ids::U64(ids) => IdsView::U64(ids.view()),
            Ids::I64(ids) => IdsView::I64(ids.view()),
        }
    }

    /// The extents.
    pub fn shape(&self) -> &Shape {
        match self {
            Ids::U32(ids) => ids.shape(),
            Ids::U64(ids) => ids.shape(),
            Ids::I64(ids) => ids.shape(),
        }
    }

    /// The type of an id.
    pub fn element(&self) -> ElementType {
        match self {
            Ids::U32(_) => ElementType::U32,
            Ids::U64(_) => ElementType::U64,
            Ids::I64(_) => ElementType::I64,
        }
    }
}

impl<'a> IdsView<'a> {
    /// The extents.
    #[inline]
    pub fn shape(&self) -> &Shape {
        match self {
            IdsView::U32(ids) => ids.shape(),
            IdsView::U64(ids) => ids.shape(),
            IdsView::I64(ids) => ids.shape(),
        }
    }

    /// The number of ids.
    #[inline]
    pub fn len(&self) -> usize {
        match self {
            IdsView::U32(ids) => ids.values().len(),
            IdsView::U64(ids) => ids.values().len(),
            IdsView::I64(ids) => ids.values().len(),
        }
    }

    /// True without ids.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The id at a position, row major, as an index; `None` where it is negative.
    ///
    /// # Panics
    ///
    /// If the position is not below [`len`](IdsView::len).
    #[inline]
    #[track_caller]
    pub fn get(&self, position: usize) -> Option<usize> {
        match self {
            IdsView::U32(ids) => ids.values()[position].index(),
            IdsView::U64(ids) => ids.values()[position].index(),
            IdsView::I64(ids) => ids.values()[position].index(),
        }
    }

    /// The ids as indices, row major; a negative one is an index beyond every array.
    #[inline]
    pub fn iter(self) -> impl ExactSizeIterator<Item = usize> + Clone + 'a {
        (0..self.len()).map(move |position| self.get(position).unwrap_or(usize::MAX))
    }

    /// The position and value, in words, of the first id that is negative or not below `bound`.
    pub fn first_beyond(&self, bound: usize) -> Option<(usize, String)> {
        let position = self.iter().position(|id| id >= bound)?;
        let id = match self {
            IdsView::U32(ids) => ids.values()[position].to_string(),
            IdsView::U64(ids) => ids.values()[position].to_string(),
            IdsView::I64(ids) => ids.values()[position].to_string(),
        };
        Some((position, id))
    }
}

impl std::fmt::Debug for IdsView<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            IdsView::U32(ids) => ids.fmt(f),
            IdsView::U64(ids) => ids.fmt(f),
            IdsView::I64(ids) => ids.fmt(f),
        }
    }
}

macro_rules! conversions {
    ($($id:ident $variant:ident),*) => {
        $(impl From<Dense<$id>> for Ids {
            fn from(ids: Dense<$id>) -> Self {
                Ids::$variant(ids)
            }
        }

        impl<'a, D: Device> From<DenseView<'a, $id, D>> for IdsView<'a, D> {
            #[inline]
            fn from(ids: DenseView<'a, $id, D>) -> Self {
                IdsView::$variant(ids)
            }
        }

        impl<'a> From<&'a Dense<$id>> for IdsView<'a> {
            fn from(ids: &'a Dense<$id>) -> Self {
                ids.view().into()
            }
        })*
    };
}

conversions!(u32 U32, u64 U64, i64 I64);

impl<'a> From<&'a Ids> for IdsView<'a> {
    fn from(ids: &'a Ids) -> Self {
        ids.view()
    }
}
