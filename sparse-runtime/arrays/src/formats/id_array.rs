//! Dense arrays of integer ids, of any of the id types.

use super::{Dense, DenseView, FormatError, Shape};
use crate::device::{Cpu, Device};
use nnz_device::simd;
use sparse_core::element::Id;
use sparse_core::storage::ElementType;
use std::ops::Range;

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

/// Runs the body with the array of whichever type the ids are.
#[doc(hidden)]
#[macro_export]
macro_rules! with_ids {
    ($enum:ident, $ids:expr, |$array:ident| $body:expr) => {
        match $ids {
            $enum::U32($array) => $body,
            $enum::U64($array) => $body,
            $enum::I64($array) => $body,
        }
    };
}

impl Ids {
    /// The ids, borrowed.
    pub fn view(&self) -> IdsView<'_> {
        with_ids!(Ids, self, |ids| ids.view().into())
    }

    /// The extents.
    pub fn shape(&self) -> &Shape {
        with_ids!(Ids, self, |ids| ids.shape())
    }

    /// The type of an id.
    pub fn element(&self) -> ElementType {
        self.view().element()
    }
}

impl<'a> IdsView<'a> {
    /// No ids, of a type and with a shape without elements.
    pub fn none(shape: Shape, element: ElementType) -> Result<Self, FormatError> {
        Ok(match element {
            ElementType::I64 => IdsView::I64(DenseView::new(shape, &[])?),
            ElementType::U64 => IdsView::U64(DenseView::new(shape, &[])?),
            _ => IdsView::U32(DenseView::new(shape, &[])?),
        })
    }

    /// The extents.
    #[inline]
    pub fn shape(&self) -> &Shape {
        with_ids!(IdsView, self, |ids| ids.shape())
    }

    /// The type of an id.
    pub fn element(&self) -> ElementType {
        fn element<I: Id>(_: &DenseView<'_, I>) -> ElementType {
            I::TYPE
        }
        with_ids!(IdsView, self, |ids| element(ids))
    }

    /// The number of ids.
    #[inline]
    pub fn len(&self) -> usize {
        with_ids!(IdsView, self, |ids| ids.values().len())
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
        with_ids!(IdsView, self, |ids| ids.values()[position].index())
    }

    /// The id at a position, row major, as it is, negative or not.
    ///
    /// # Panics
    ///
    /// If the position is not below [`len`](IdsView::len).
    #[inline]
    #[track_caller]
    pub fn number(&self, position: usize) -> i128 {
        with_ids!(IdsView, self, |ids| ids.values()[position].into())
    }

    /// The ids as indices, row major; a negative one is an index beyond every array.
    #[inline]
    pub fn iter(self) -> impl ExactSizeIterator<Item = usize> + Clone + 'a {
        (0..self.len()).map(move |position| self.get(position).unwrap_or(usize::MAX))
    }

    /// Some of the rows.
    ///
    /// # Errors
    ///
    /// As [`DenseView::rows`].
    pub fn rows(&self, rows: Range<usize>) -> Result<IdsView<'a>, FormatError> {
        Ok(with_ids!(IdsView, self, |ids| ids.rows(rows)?.into()))
    }

    /// The position and value of the first id that is negative or not below `bound`.
    pub fn first_beyond(&self, bound: usize) -> Option<(usize, i128)> {
        let position = with_ids!(IdsView, self, |ids| position_beyond(ids.values(), bound))?;
        Some((position, self.number(position)))
    }
}

/// The position of the first id that is negative or not below `bound`.
#[inline]
pub fn position_beyond<I: Id>(ids: &[I], bound: usize) -> Option<usize> {
    /// Ids that are compared without a choice for each, so that the compiler makes vectors of them.
    const IDS_PER_CHUNK: usize = 64;
    let is_beyond = |id: &I| id.index().is_none_or(|index| index >= bound);
    simd::wide(
        #[inline(always)]
        || {
            for (chunk, ids) in ids.chunks(IDS_PER_CHUNK).enumerate() {
                let mut beyond = false;
                for id in ids {
                    beyond |= is_beyond(id);
                }
                if beyond {
                    let position = ids.iter().position(is_beyond);
                    return position.map(|position| chunk * IDS_PER_CHUNK + position);
                }
            }
            None
        },
    )
}

/// No ids.
impl Default for IdsView<'_> {
    fn default() -> Self {
        IdsView::U32(DenseView::default())
    }
}

impl std::fmt::Debug for IdsView<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        with_ids!(IdsView, self, |ids| ids.fmt(f))
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

        /// The array, where it is of this type; else the ids as they were.
        impl<'a> TryFrom<IdsView<'a>> for DenseView<'a, $id> {
            type Error = IdsView<'a>;

            #[inline]
            fn try_from(ids: IdsView<'a>) -> Result<Self, IdsView<'a>> {
                match ids {
                    IdsView::$variant(ids) => Ok(ids),
                    other => Err(other),
                }
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
