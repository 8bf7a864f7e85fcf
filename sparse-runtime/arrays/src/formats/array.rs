//! The trait of arrays of every storage type.

use super::{Csr, Dense, RowSparse};
use crate::device::Device;
use sparse_core::element::Element;
use sparse_core::storage::Storage;

/// An array type: [`Dense`], [`Csr`] or [`RowSparse`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an array",
    note = "arrays own what they hold: of a view, `to_owned` makes one"
)]
pub trait Array {
    /// The type of its elements.
    type Element: Element;
    /// Its storage type.
    const STORAGE: Storage;
}

macro_rules! arrays {
    ($($array:ident),*) => {
        $(impl<T: Element, D: Device> Array for $array<T, D> {
            type Element = T;
            const STORAGE: Storage = Storage::$array;
        })*
    };
}

arrays!(Dense, Csr, RowSparse);
