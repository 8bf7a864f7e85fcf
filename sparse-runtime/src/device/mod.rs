//! Where arrays live. The device is a type parameter of every array, view and kernel, so that mixing
//! devices is a type error; [`Cpu`] is the default everywhere.

#[cfg(feature = "cuda")]
pub mod cuda;

use crate::table::Table;
use sparse_core::element::{Element, Stored};
use std::fmt::Debug;

/// A place where arrays live and kernels run.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a device",
    note = "arrays live on `Cpu`, which need not be written"
)]
pub trait Device: Copy + Clone + Debug + Default + Send + Sync + 'static {
    /// The device's name in plans and messages.
    const NAME: &'static str;

    /// An owned, growable run of elements.
    type Buffer<T: Stored>: Clone + Debug + Default + Send + Sync;

    /// The memory of a parameter.
    type Table<T: Element>: Clone + Debug + Send + Sync;

    /// A borrowed run of elements.
    type Slice<'a, T: Stored>: Copy + Debug + Send + Sync;
}

/// The host: buffers are `Vec`s, slices are slices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cpu;

impl Device for Cpu {
    const NAME: &'static str = "cpu";
    type Buffer<T: Stored> = Vec<T>;
    type Table<T: Element> = Table<T>;
    type Slice<'a, T: Stored> = &'a [T];
}
