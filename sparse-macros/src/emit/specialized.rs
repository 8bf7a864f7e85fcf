//! Models that name update rules for which their loop is compiled in the user's crate.

use crate::ast::Model;
use crate::report::Report;
use sparse_core::alternatives::Variants;
use sparse_core::diagnostics::Code;
use sparse_core::passes::{Fusion, Linear, Terms};
use sparse_core::shapes::Dim;

/// Refuses `specialize` in a model whose step has no such loop: it would say nothing.
pub(crate) fn check_specialized(
    model: &Model,
    compiled: &Variants,
    resolved: bool,
    report: &mut Report,
) {
    let Some((name, _)) = model.specialized() else { return };
    let mut variants = compiled.variants.iter();
    if resolved && !variants.any(|variant| has_own_loop(&variant.model.fusion)) {
        let message = format!(
            "the training step of `{}` is not a loop over the entries of a csr and a table of \
             one column, for which `specialize` names update rules",
            model.name
        );
        let help = Some("leave `specialize` out: it would change nothing".to_owned());
        report.error(Code::BadOption, name.span(), message, help);
    }
}

/// Whether the step is a product of a csr with a table of one column: of this the library has the
/// loop.
fn has_own_loop(fusion: &Fusion) -> bool {
    match fusion {
        Fusion::RowLoop(parts) => {
            let is_product =
                matches!(&parts.terms, Terms::Linear(Linear { interaction: None, .. }));
            is_product && parts.columns == Dim::Size(1)
        }
        Fusion::Scattered { .. } | Fusion::None { .. } => false,
    }
}
