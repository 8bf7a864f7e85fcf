//! What is compiled where there is no GPU, to see that it compiles.

use super::{Chain, ChainStep, Element, Gradient, LayerRows, Matrix, Named, RowSpan, Sum};
use crate::model::on_gpu::rows::linear_rows::RowLoss;
use nnz_arrays::device::cuda::Unit;
use nnz_arrays::kernels::cuda::ScalarFunction;
use sparse_core::ir::Attributes;
use sparse_core::operators::find;
use sparse_core::storage::ElementType;

/// Visits the unit of a loss: of wide & deep, with each kind of step.
pub(crate) fn with_unit(loss: RowLoss, real: ElementType, visit: &mut dyn FnMut(&Unit<'_>)) {
    let relu = find("relu").and_then(|of| ScalarFunction::new(of, &Attributes::default()));
    let add = find("add").and_then(|of| ScalarFunction::new(of, &Attributes::default()));
    let (Some(relu), Some(add)) = (relu, add) else { return };
    let row = |at, columns| RowSpan { at, columns };
    let named = |named, table, to| ChainStep::Named { named, table, to };
    let bags = Named::Columns { csr: 0, mean: true, weighted: true };
    let product = Named::Columns { csr: 1, mean: false, weighted: true };
    let ids = Named::Ids { ids: 0, clip: false, wrap: true };
    let steps = vec![
        ChainStep::Load { input: 0, to: row(0, 3) },
        named(bags, 0, row(3, 8)),
        named(product, 1, row(11, 1)),
        named(ids, 0, row(12, 8)),
        ChainStep::Copy { of: row(3, 8), first: 0, to: row(20, 8) },
        ChainStep::Copy { of: row(12, 8), first: 0, to: row(28, 8) },
        ChainStep::Product {
            x: row(20, 16),
            matrix: 0,
            transposed: false,
            bias: Some(1),
            to: row(36, 33),
        },
        ChainStep::ElementWise {
            function: relu,
            operands: vec![Element::Row(row(36, 33))],
            to: row(69, 33),
        },
        ChainStep::Product {
            x: row(69, 33),
            matrix: 1,
            transposed: false,
            bias: None,
            to: row(102, 1),
        },
        ChainStep::Total { of: row(0, 3), count: 3, to: row(103, 1) },
        ChainStep::ElementWise {
            function: add,
            operands: vec![Element::Row(row(102, 1)), Element::Row(row(103, 1))],
            to: row(104, 1),
        },
        ChainStep::Loss { scores: row(104, 1), to: row(105, 1) },
        ChainStep::Repeat { of: row(105, 1), factor: 0.5, to: row(106, 33) },
        ChainStep::Product {
            x: row(106, 33),
            matrix: 0,
            transposed: true,
            bias: None,
            to: row(139, 16),
        },
        ChainStep::Softmax { of: row(139, 16), to: row(155, 16) },
    ];
    let chain = Chain {
        matrices: vec![Matrix { rows: 16, columns: 33 }, Matrix { rows: 1, columns: 33 }],
        tables: vec![8, 1],
        n_csrs: 2,
        n_ids: 1,
        inputs: vec![3],
        steps,
        kept: vec![row(139, 8), row(104, 1)],
        gradients: vec![
            Gradient { size: 16 * 33, sums: vec![Sum::Outer(row(20, 16), row(106, 33))] },
            Gradient { size: 33, sums: vec![Sum::Row(row(106, 33)), Sum::Row(row(69, 33))] },
            Gradient { size: 1, sums: vec![Sum::Total(row(106, 33))] },
        ],
        width: 171,
    };
    let Some(kernel) = LayerRows::new(chain, loss, real) else { return };
    let csrs = [["u32", real.name()], ["u64", ElementType::Unit.name()]];
    let words = kernel.words(real.name(), ["i64", "u32"], csrs.into_iter(), ["u32"].into_iter());
    visit(&kernel.unit(&words));
}

/// Visits that of the loss that is no formula, and of 64 bits.
pub(crate) fn for_each_unit(visit: &mut dyn FnMut(&Unit<'_>)) {
    with_unit(RowLoss::CrossEntropy, ElementType::F32, visit);
    with_unit(RowLoss::CrossEntropy, ElementType::F64, visit);
}
