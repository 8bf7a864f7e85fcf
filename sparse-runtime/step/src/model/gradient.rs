//! The gradient of a parameter, of either storage type; gradients of a model that are clipped by
//! their norm, or less those of another.

use crate::error::Result;
use crate::model::Model;
use crate::model::any_model::{AnyModel, trained_gradient};
use crate::optimizer::clip;
use nnz_arrays::formats::{Dense, RowSparse, RowSparseView};
use nnz_arrays::in_library;
use sparse_core::element::Float;

/// The gradient of one parameter, by [`Model::gradient_mut`].
#[derive(Debug)]
pub enum GradientMut<'a, T: Float> {
    /// A dense one.
    Dense(&'a mut Dense<T>),
    /// A row_sparse one.
    RowSparse(&'a mut RowSparse<T>),
}

impl<'a, T: Float> From<&'a mut Dense<T>> for GradientMut<'a, T> {
    fn from(gradient: &'a mut Dense<T>) -> Self {
        GradientMut::Dense(gradient)
    }
}

impl<'a, T: Float> From<&'a mut RowSparse<T>> for GradientMut<'a, T> {
    fn from(gradient: &'a mut RowSparse<T>) -> Self {
        GradientMut::RowSparse(gradient)
    }
}

impl<T: Float> GradientMut<'_, T> {
    /// The stored rows; for a dense gradient all.
    pub fn view(&self) -> RowSparseView<'_, T> {
        match self {
            GradientMut::Dense(gradient) => {
                RowSparseView::table(*gradient.shape(), gradient.values())
            }
            GradientMut::RowSparse(gradient) => gradient.view(),
        }
    }

    /// Subtracts another gradient of the same parameter. O(stored elements); allocates only if the
    /// two store different rows.
    pub fn subtract(&mut self, other: GradientMut<'_, T>) -> Result<()> {
        match (self, other) {
            (GradientMut::Dense(gradient), GradientMut::Dense(other)) => {
                subtract_each(gradient.values_mut(), other.values());
            }
            (GradientMut::RowSparse(gradient), GradientMut::RowSparse(other))
                if gradient.indices() == other.indices() =>
            {
                subtract_each(gradient.values_mut(), other.values());
            }
            (GradientMut::RowSparse(gradient), GradientMut::RowSparse(other)) => {
                let terms = [&**gradient, &*other].map(|rows| rows.indices().iter().copied());
                let ids: std::collections::BTreeSet<u64> = terms.into_iter().flatten().collect();
                let ids = Vec::from_iter(ids);
                let row_size = gradient.shape().row_size();
                let mut values = Vec::with_capacity(ids.len() * row_size);
                for &id in &ids {
                    let row = |rows: &RowSparse<T>| -> Vec<T> {
                        rows.row(id as usize)
                            .map_or_else(|| vec![T::zero(); row_size], <[T]>::to_vec)
                    };
                    let mut new = row(gradient);
                    subtract_each(&mut new, &row(other));
                    values.extend(new);
                }
                **gradient = RowSparse::new(*gradient.shape(), ids, values)?;
            }
            // Of one parameter both have the type that the compiler derived.
            _ => {}
        }
        Ok(())
    }
}

/// Subtracts the gradients of one model from those of another.
pub(super) fn subtract<T: Float>(
    model: &mut dyn AnyModel<T>,
    other: &mut dyn AnyModel<T>,
) -> Result<()> {
    fn each<T: Float>(model: &mut dyn AnyModel<T>, other: &mut dyn AnyModel<T>) -> Result<()> {
        for index in 0..model.facts().parameters.len() {
            let gradients = (trained_gradient(model, index)?, trained_gradient(other, index)?);
            if let (Some(mut new), Some(old)) = gradients {
                new.subtract(old)?;
            }
        }
        Ok(())
    }
    in_library!(<T> each::<T> => (
        model: &mut dyn AnyModel<T>,
        other: &mut dyn AnyModel<T>,
    ) -> Result<()>)
}

/// Multiplies the gradients of all parameters of a model by one factor, so that their common norm
/// is at most `max_norm`. O(elements stored).
///
/// # Errors
///
/// [`ModelError::NoGradient`](crate::model::ModelError::NoGradient), before anything is changed.
pub fn clip<M: Model>(model: &mut M, max_norm: f64) -> Result<()> {
    clip_of(model, max_norm)
}

/// [`clip()`] of a model without its type.
///
/// # Errors
///
/// As there.
pub fn clip_of<T: Float>(model: &mut dyn AnyModel<T>, max_norm: f64) -> Result<()> {
    in_library!(<T> clip_all::<T> => (model: &mut dyn AnyModel<T>, max_norm: f64) -> Result<()>)
}

fn clip_all<T: Float>(model: &mut dyn AnyModel<T>, max_norm: f64) -> Result<()> {
    let n_parameters = model.facts().parameters.len();
    for index in 0..n_parameters {
        trained_gradient(model, index)?;
    }
    clip::scale_to(max_norm, &mut |visit: &mut dyn FnMut(&mut [T])| {
        for index in 0..n_parameters {
            match trained_gradient(model, index) {
                Ok(Some(GradientMut::Dense(gradient))) => visit(gradient.values_mut()),
                Ok(Some(GradientMut::RowSparse(gradient))) => visit(gradient.values_mut()),
                // All are there, as was found before.
                Ok(None) | Err(_) => {}
            }
        }
    });
    Ok(())
}

/// The gradient of parameter `index`, of the last [`loss_and_grads`](Model::loss_and_grads). `None`
/// for a frozen one.
///
/// # Errors
///
/// [`ModelError::NoGradient`](crate::model::ModelError::NoGradient) for a model written by hand
/// that does not give it.
pub fn trained<M: Model>(
    model: &mut M,
    index: usize,
) -> Result<Option<GradientMut<'_, M::Element>>> {
    trained_gradient(model, index)
}

fn subtract_each<T: Float>(values: &mut [T], others: &[T]) {
    values.iter_mut().zip(others).for_each(|(value, other)| *value -= *other);
}
