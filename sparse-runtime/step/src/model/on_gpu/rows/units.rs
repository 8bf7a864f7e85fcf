//! Texts of fused steps that are compiled where there is no GPU, to see that they compile.

use super::linear_rows::RowLoss;
use super::{corrected, layer_rows, linear_rows, lookup_rows};
use nnz_arrays::kernels::cuda::LossFunction;
use nnz_device::cuda::Unit;
use sparse_core::ir::{AttributeValue, Attributes, Number};
use sparse_core::operators::{AttributeKind, Kind, all};
use sparse_core::storage::ElementType;

/// Visits every text of fused steps with one of each kind of words, of each loss of the operator
/// table.
pub(crate) fn for_each_unit(visit: &mut dyn FnMut(&Unit<'_>)) {
    corrected::for_each_unit(visit);
    layer_rows::for_each_unit(visit);
    linear_rows::for_each_unit(visit);
    lookup_rows::for_each_unit(visit);
    for operator in all() {
        let mut attributes = Attributes::default();
        for attribute in operator.attributes {
            if attribute.kind == AttributeKind::Number(None) {
                attributes.set(attribute.name, AttributeValue::Number(Number(0.5)));
            }
        }
        if let (Kind::Loss { .. }, Some(function)) =
            (operator.kind, LossFunction::new(operator, &attributes))
        {
            linear_rows::with_units(RowLoss::Elements(function), visit);
            lookup_rows::with_unit(function, visit);
            layer_rows::with_unit(RowLoss::Elements(function), ElementType::F32, visit);
        }
    }
}
