//! What is compiled where there is no GPU, to see that it compiles.

use super::{LossFunction, ScalarFunction, csr_rows, loss, occurrences, row_lists};
use crate::device::cuda::Unit;
use crate::kernels::reduce::cuda::ReduceFunction;
use crate::kernels::{
    binary, broadcast_like, casts, count_stored, dot, embedding_bag, extremes, layout, ordering,
    pairwise_interaction, pick, reduce, select, softmax, softmax_cross_entropy, take, transpose,
    unary,
};
use sparse_core::ir::{AttributeValue, Attributes, Number};
use sparse_core::operators::{AttributeKind, Kind, all};

/// Visits every text with one of each kind of words: each element-wise function, reduction and loss
/// of the operator table, and products of several widths and types. A GPU compiles only what a
/// program uses.
///
/// ```
/// use nnz::kernels::cuda::for_each_unit;
/// let mut found = 0;
/// for_each_unit(&mut |unit| found += usize::from(unit.file.ends_with(".cu")));
/// assert!(found > 100);
/// ```
pub fn for_each_unit(visit: &mut dyn FnMut(&Unit<'_>)) {
    for of_module in [
        occurrences::for_each_unit,
        csr_rows::for_each_unit,
        row_lists::for_each_unit,
        loss::for_each_unit,
        broadcast_like::cuda::for_each_unit,
        count_stored::cuda::for_each_unit,
        casts::cuda::for_each_unit,
        dot::cuda::for_each_unit,
        embedding_bag::cuda::for_each_unit,
        extremes::cuda::for_each_unit,
        layout::cuda::for_each_unit,
        ordering::cuda::for_each_unit,
        pairwise_interaction::cuda::for_each_unit,
        pick::cuda::for_each_unit,
        select::cuda::for_each_unit,
        softmax::cuda::for_each_unit,
        softmax_cross_entropy::cuda::for_each_unit,
        take::cuda::for_each_unit,
        transpose::cuda::for_each_unit,
    ] {
        of_module(visit);
    }
    let mut known = Vec::new();
    for operator in all() {
        let mut attributes = Attributes::default();
        for attribute in operator.attributes {
            if attribute.kind == AttributeKind::Number(None) {
                attributes.set(attribute.name, AttributeValue::Number(Number(0.5)));
            }
        }
        if let Some(function) = ScalarFunction::new(operator, &attributes) {
            match operator.kind {
                Kind::Unary(_) => unary::cuda::with_unit("f32", function, visit),
                Kind::Binary(family, _) => {
                    binary::cuda::with_unit("f32", function, visit);
                    // The formula is the same as in the texts for sparse operands, of which one of
                    // each family is enough.
                    if !known.contains(&family) {
                        binary::cuda::with_sparse_unit(function, visit);
                        csr_rows::with_units(function, visit);
                        row_lists::with_unit(function, visit);
                        known.push(family);
                    }
                }
                _ => {}
            }
        }
        if let (Kind::Loss { .. }, Some(function)) =
            (operator.kind, LossFunction::new(operator, &attributes))
        {
            loss::with_unit("f32", function, visit);
        }
        if let Some(function) = ReduceFunction::new(operator, &attributes) {
            reduce::cuda::with_units("f32", function, visit);
        }
    }
}
