//! The declarations of a model as data: inputs, labels, parameters, outputs, and the plan.

use super::RowSet;
use nnz_arrays::formats::Shape;
use sparse_core::element::Float;
use sparse_core::inspect::PlanTable;
use sparse_core::storage::{ElementType, Storage};

/// The compiler's plan as data: a table by `Display`, Graphviz by [`to_dot`](PlanTable::to_dot), a
/// picture by [`to_svg`](PlanTable::to_svg).
pub type Plan = PlanTable<'static>;

/// An extent of a declaration.
pub type Extent = sparse_core::inspect::Extent<'static>;

/// Whether a declaration is needed to predict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputRole {
    /// `input`: needed for everything.
    Input,
    /// `label`: needed for the loss only.
    Label,
}

/// A declared input or label.
#[derive(Clone, Copy, Debug)]
pub struct InputInfo {
    /// Its name.
    pub name: &'static str,
    /// Input or label.
    pub role: InputRole,
    /// Its storage type.
    pub storage: Storage,
    /// Its element type.
    pub element: ElementType,
    /// Its declared shape.
    pub shape: &'static [Extent],
    /// The values that the losses which read the label accept.
    pub label: LabelKind,
}

impl InputInfo {
    /// Its shape without rows: that of an unread label.
    pub fn without_rows(&self) -> Shape {
        let extents = self.shape.iter().enumerate();
        let extents: Vec<usize> = extents
            .map(|(axis, extent)| match extent {
                Extent::Constant(extent) if axis > 0 => *extent,
                _ => 0,
            })
            .collect();
        Shape::try_new(&extents).unwrap_or_default()
    }
}

/// The meaning of a label's values, given by the loss that reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LabelKind {
    /// Any finite number.
    Real,
    /// -1 or 0 for the negative class, 1 for the positive one, or a probability in [0, 1].
    Binary,
    /// A number that is not negative, such as a count.
    Count,
    /// An integer class id below the number of classes.
    Class,
}

impl LabelKind {
    /// Whether a label that is a number is valid.
    #[inline]
    pub fn fits<T: Float>(self, label: T) -> bool {
        match self {
            LabelKind::Binary => label == -T::one() || (label >= T::zero() && label <= T::one()),
            LabelKind::Count => label >= T::zero(),
            LabelKind::Real | LabelKind::Class => true,
        }
    }

    /// The valid labels, in words.
    pub fn expectation(self) -> &'static str {
        match self {
            LabelKind::Binary => {
                "a label of a binary loss, -1 or 0, and 1, or a probability in [0, 1]"
            }
            LabelKind::Count => "a count or a probability, which are not negative",
            LabelKind::Real => "any finite number",
            LabelKind::Class => "the id of a class",
        }
    }
}

/// A declared parameter.
#[derive(Clone, Copy, Debug)]
pub struct ParameterInfo {
    /// Its name.
    pub name: &'static str,
    /// Its storage type.
    pub storage: Storage,
    /// The storage type of its gradient, or `None` for a frozen one.
    pub gradient: Option<Storage>,
    /// Its declared shape.
    pub shape: &'static [Extent],
    /// The table rows that a step reads of it.
    /// [`Model::rows_read`](super::Model::rows_read) has those of a batch.
    pub reads: RowSet,
    /// The table rows that its gradient stores; none for a frozen one.
    /// [`Model::rows_written`](super::Model::rows_written) has those of a batch.
    pub writes: RowSet,
    /// Whether weight decay and L1 shrink it: true for a factor of a product, a table of a lookup
    /// or a bag, and anything multiplied with a csr; false for a parameter that is only added, or
    /// multiplied by broadcasting. `param(decay)` and `param(no_decay)` overrule its uses.
    pub decays: bool,
    /// Whether it is a state, which is carried from batch to batch.
    pub is_state: bool,
}

/// A declared output.
#[derive(Clone, Copy, Debug)]
pub struct OutputInfo {
    /// Its name.
    pub name: &'static str,
    /// Its inferred storage type.
    pub storage: Storage,
    /// Its element type: the model's, or `u64` for ids.
    pub element: ElementType,
}
