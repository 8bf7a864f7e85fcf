//! The page of names that operators have in other libraries.

use sparse_core::document::{Page, generated_from, table};
use sparse_core::foreign_names::{FOREIGN_NAMES, Instead};

/// `docs/foreign_names.md`.
pub(super) fn page() -> Page {
    let mut text = generated_from("`sparse-core/src/foreign_names.rs`");
    text.push_str(
        "# Names from other libraries\n\n\
         What to write for an operator of PyTorch, TensorFlow, JAX, NumPy or MXNet. `x` and `z` are matrices of one shape, `y` is one \
         that fits a product, `left` and `right` are stacks of matrices, `score` and `label` belong to a loss, `logits` and `class` to \
         one of classes, `ids` and `table` to look-ups, `bags` is a csr, `kept` an input that is 0 or 1/(1 - rate). The compiler says the \
         same where such a name is called.\n\n",
    );
    let rows = FOREIGN_NAMES.iter().map(|(name, instead)| {
        let here = match instead {
            Instead::Write(text) => format!("`{text}`"),
            Instead::Nothing(sentence) => (*sentence).to_owned(),
        };
        vec![format!("`{name}`"), here]
    });
    text.push_str(&table(&["there", "here"], &rows.collect::<Vec<_>>()));
    Page { path: "docs/foreign_names.md".into(), text }
}
