//! The one catalogue of what the compiler can say.
//!
//! Each entry is a code, a title and the page's text: what it means and how to mend it. Messages follow one
//! style: lower case, backticks around the user's own words, no full stop, then `help:` with code to paste.

use crate::ir::Place;

macro_rules! catalogue {
    ($($(#[doc = $page:literal])* $variant:ident = $code:literal, $severity:ident, $title:literal;)*) => {
        /// What is wrong, by kind. The number's hundreds name the pass: 0 parse, 1 names, 2 shapes, 3
        /// storage, 4 gradients.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Code {
            $($(#[doc = $page])* $variant,)*
        }

        impl Code {
            /// Every code, in order.
            pub const ALL: &'static [Code] = &[$(Code::$variant),*];

            /// The code as printed: `NNZ0301`.
            pub const fn code(self) -> &'static str {
                match self {
                    $(Code::$variant => $code,)*
                }
            }

            /// A few words.
            pub const fn title(self) -> &'static str {
                match self {
                    $(Code::$variant => $title,)*
                }
            }

            /// What it means and how to mend it.
            pub const fn page(self) -> &'static str {
                match self {
                    $(Code::$variant => concat!($($page, "\n",)*),)*
                }
            }

            /// Whether it stops the build.
            pub const fn severity(self) -> Severity {
                match self {
                    $(Code::$variant => Severity::$severity,)*
                }
            }
        }
    };
}

/// Whether a diagnostic stops the build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The build fails.
    Error,
    /// The build goes on.
    Warning,
}

catalogue! {
    /// The text is not what the grammar of `graph!` expects here. The message says what was expected.
    Syntax = "NNZ0001", Error, "syntax error";
    /// A line of a model starts with a word that is no declaration. Declarations are `input`, `label`, `param`,
    /// `let`, `loss`, `output` and the options `fallback`, `dtype` and `fuse`.
    UnknownDeclaration = "NNZ0002", Error, "unknown declaration";
    /// The storage types are `dense`, `csr` and `row_sparse`.
    UnknownStorage = "NNZ0003", Error, "unknown storage type";
    /// The element types are `f32` and `f64`; for ids `u32`, `u64` and `i64`.
    UnknownElement = "NNZ0004", Error, "unknown element type";
    /// An option has a value that it does not take.
    BadOption = "NNZ0005", Error, "bad option";
    /// A parameter's initializer is not one of the library's.
    UnknownInitializer = "NNZ0006", Error, "unknown initializer";
    /// A name is used that no declaration above makes. Values are declared before they are used.
    UnknownName = "NNZ0101", Error, "unknown name";
    /// No operator has this name; the message names the nearest one.
    UnknownOperator = "NNZ0102", Error, "unknown operator";
    /// Two declarations have one name.
    DuplicateName = "NNZ0103", Error, "name declared twice";
    /// An operator takes another number of operands.
    OperandCount = "NNZ0104", Error, "wrong number of operands";
    /// An operator has no attribute of this name.
    UnknownAttribute = "NNZ0105", Error, "unknown attribute";
    /// An attribute has a value of the wrong kind.
    BadAttribute = "NNZ0106", Error, "bad attribute value";
    /// A model needs an output or a loss; without either it computes nothing.
    EmptyModel = "NNZ0107", Error, "a model without output or loss";
    /// An output must not be computed from a label: predictions are made without labels.
    OutputNeedsLabel = "NNZ0108", Error, "an output that needs a label";
    /// Two extents must be equal and are not. Named dimensions with different names are different.
    ShapeMismatch = "NNZ0201", Error, "dimensions that do not unify";
    /// An operand has a rank that the operator does not take.
    WrongRank = "NNZ0202", Error, "wrong rank";
    /// The shape written after a `let` name is not the inferred one.
    AnnotatedShape = "NNZ0203", Error, "annotated shape differs";
    /// `csr` has two dimensions, `row_sparse` at least one.
    StorageRank = "NNZ0204", Error, "a storage type of another rank";
    /// An axis is beyond the operand's rank.
    BadAxis = "NNZ0205", Error, "axis out of range";
    /// An extent written `_` could not be inferred.
    UnknownExtent = "NNZ0206", Error, "extent not inferred";
    /// An operator has no sparse kernel for these operands: the result would be dense. Nothing becomes dense
    /// unless the source says `dense(x)` or the model says `fallback = warn;`.
    WouldBeDense = "NNZ0301", Error, "a sparse value would become dense";
    /// The storage written after a `let` name is not the inferred one.
    AnnotatedStorage = "NNZ0302", Error, "annotated storage differs";
    /// The operator cannot give its result in the storage asked for.
    NotOnRequest = "NNZ0303", Error, "storage not offered";
    /// Ids (integers that name rows or classes) and numbers are different types.
    ElementMismatch = "NNZ0304", Error, "ids and numbers mixed";
    /// With `fallback = warn;` an operand was made dense here.
    FallbackInserted = "NNZ0305", Warning, "an operand is made dense";
    /// The gradient of a `row_sparse` parameter would be dense: some use reads every row of it.
    DenseGradient = "NNZ0401", Error, "a row_sparse parameter with a dense gradient";
    /// A parameter reaches the loss through an operator without a gradient.
    NoGradient = "NNZ0402", Error, "no gradient";
    /// A parameter is trained, but no loss depends on it.
    UnusedParameter = "NNZ0403", Error, "a parameter that no loss depends on";
    /// A loss must be one number.
    LossNotScalar = "NNZ0404", Error, "a loss that is not one number";
    /// Parameters are `dense` or `row_sparse`.
    CsrParameter = "NNZ0405", Error, "a csr parameter";
    /// The compiler broke one of its own rules. Please report it with the model.
    Internal = "NNZ0900", Error, "compiler bug";
}

/// Something to tell the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The catalogue's entry.
    pub code: Code,
    /// What and where, in the user's words.
    pub message: String,
    /// A way out, with code to paste.
    pub help: Option<String>,
    /// Where to point.
    pub place: Place,
}

impl Diagnostic {
    /// A diagnostic without help.
    pub fn new(code: Code, place: Place, message: impl Into<String>) -> Self {
        Diagnostic { code, message: message.into(), help: None, place }
    }

    /// The same with a way out.
    #[must_use]
    pub fn help(self, help: impl Into<String>) -> Self {
        Diagnostic { help: Some(help.into()), ..self }
    }

    /// As printed: `[NNZ0301] message` and the help on a line of its own.
    pub fn text(&self) -> String {
        let Diagnostic { code, message, help, .. } = self;
        match help {
            None => format!("[{}] {message}", code.code()),
            Some(help) => format!("[{}] {message}\nhelp: {help}", code.code()),
        }
    }
}

/// The candidate nearest to a misspelt word, if one is near.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .into_iter()
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(distance, candidate)| {
            *distance <= 1 + candidate.len().max(word.len()) / 4 && *distance < candidate.len()
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Edits between two words; a swap of neighbours is one edit (optimal string alignment).
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut table = vec![vec![0usize; b.len() + 1]; a.len() + 1];
    for (i, row) in table.iter_mut().enumerate() {
        row[0] = i;
    }
    table[0] = (0..=b.len()).collect();
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            let change = table[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = change.min(table[i - 1][j] + 1).min(table[i][j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(table[i - 2][j - 2] + 1);
            }
            table[i][j] = best;
        }
    }
    table[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_ascending() {
        assert!(Code::ALL.windows(2).all(|pair| pair[0].code() < pair[1].code()));
        assert!(Code::ALL.iter().all(|code| !code.page().is_empty() && !code.title().is_empty()));
    }

    #[test]
    fn nearest_names() {
        let names = ["dot", "log", "log1p", "tanh", "softmax_cross_entropy"];
        assert_eq!(nearest("dto", names), Some("dot"));
        assert_eq!(nearest("softmax_crossentropy", names), Some("softmax_cross_entropy"));
        assert_eq!(nearest("convolution", names), None);
    }
}
