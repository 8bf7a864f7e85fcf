//! The catalogue of the compiler's errors and warnings.
//!
//! Each entry is a code, a title and a page, a file in `pages/`: what it means, why it is so, how
//! to mend it, and [examples](Code::examples) that a test compiles. Messages follow one style:
//! lower case, backticks around the user's own words, no full stop, then `help:` with code to
//! paste.

mod nearest;

use crate::ir::Place;
pub use nearest::nearest;

macro_rules! catalogue {
    ($($variant:ident = $code:literal, $severity:ident, $title:literal;)*) => {
        /// What is wrong, by kind. The number's hundreds name the pass: 0 parse, 1 names, 2 shapes,
        /// 3 storage, 4 gradients, 5 blocks, 6 declared operators.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Code {
            $(#[doc = include_str!(concat!("pages/", $code, ".md"))] $variant,)*
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

            /// What it means, why, and how to mend it, in Markdown. Examples are blocks marked
            /// `graph`, what stands inside `graph! { … }`; one that gives the code is marked with
            /// it, `graph,NNZ0301`.
            pub const fn page(self) -> &'static str {
                match self {
                    $(Code::$variant => include_str!(concat!("pages/", $code, ".md")),)*
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

impl Code {
    /// The examples of the page, in order.
    pub fn examples(self) -> impl Iterator<Item = Example> {
        // Text and blocks take turns between the fences.
        self.page().split("```").skip(1).step_by(2).filter_map(|block| {
            let (mark, text) = block.split_once('\n')?;
            let (language, code) = mark.split_once(',').unwrap_or((mark, ""));
            (language == "graph").then_some(Example { text, is_wrong: !code.is_empty() })
        })
    }
}

/// A model on the page of a code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Example {
    /// What stands inside `graph! { … }`.
    pub text: &'static str,
    /// True where the compiler says the page's code of it, and nothing else; false where it says
    /// nothing.
    pub is_wrong: bool,
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
    Syntax = "NNZ0001", Error, "syntax error";
    UnknownDeclaration = "NNZ0002", Error, "unknown declaration";
    UnknownStorage = "NNZ0003", Error, "unknown storage type";
    UnknownElement = "NNZ0004", Error, "unknown element type";
    BadOption = "NNZ0005", Error, "bad option";
    UnknownInitializer = "NNZ0006", Error, "unknown initializer";
    MissingSemicolon = "NNZ0007", Error, "a declaration that does not end";
    MissingInitializer = "NNZ0008", Error, "a parameter without initializer";
    BadInitializer = "NNZ0009", Error, "an initializer that makes no sense";
    MissingType = "NNZ0010", Error, "a declaration without type";
    ReservedName = "NNZ0011", Error, "a name that is taken";
    UnsupportedExpression = "NNZ0012", Error, "an expression of Rust that is none of ours";
    BadExtent = "NNZ0013", Error, "an extent that is neither a name nor a number";
    UnknownModifier = "NNZ0014", Error, "unknown kind of parameter";
    UnnamedOutput = "NNZ0015", Error, "an output without name";
    BadAlternatives = "NNZ0016", Error, "alternatives where there can be none";
    RustAttribute = "NNZ0017", Error, "an attribute of Rust that has no effect";
    TooDeep = "NNZ0018", Error, "an expression that is nested too deep";
    UnknownName = "NNZ0101", Error, "unknown name";
    UnknownOperator = "NNZ0102", Error, "unknown operator";
    DuplicateName = "NNZ0103", Error, "name declared twice";
    OperandCount = "NNZ0104", Error, "wrong number of operands";
    UnknownAttribute = "NNZ0105", Error, "unknown attribute";
    BadAttribute = "NNZ0106", Error, "bad attribute value";
    EmptyModel = "NNZ0107", Error, "a model without output or loss";
    OutputNeedsLabel = "NNZ0108", Error, "an output that needs a label";
    MissingAttribute = "NNZ0109", Error, "missing attribute";
    AttributeTwice = "NNZ0110", Error, "attribute given twice";
    AttributeRange = "NNZ0111", Error, "an attribute out of range";
    UsedBefore = "NNZ0112", Error, "a value used before it is declared";
    DuplicateOutput = "NNZ0113", Error, "output declared twice";
    UnusedValue = "NNZ0114", Warning, "a value that nothing reads";
    UnusedInput = "NNZ0115", Warning, "an input that nothing reads";
    BadUpdate = "NNZ0116", Error, "a state without update, or an update without state";
    ShapeMismatch = "NNZ0201", Error, "dimensions that do not unify";
    WrongRank = "NNZ0202", Error, "wrong rank";
    AnnotatedShape = "NNZ0203", Error, "annotated shape differs";
    StorageRank = "NNZ0204", Error, "a storage type of another rank";
    BadAxis = "NNZ0205", Error, "axis out of range";
    UnknownExtent = "NNZ0206", Error, "extent not inferred";
    AttributeShape = "NNZ0207", Error, "an attribute that does not fit the shape";
    NamedExtent = "NNZ0208", Error, "an extent that must be a number or a constant";
    NoBroadcast = "NNZ0209", Error, "shapes that do not broadcast";
    TargetShape = "NNZ0210", Error, "a label of another shape than the scores";
    TooLarge = "NNZ0211", Error, "more elements than an array can have";
    ConstantDiffers = "NNZ0212", Error, "a constant of another value";
    WouldBeDense = "NNZ0301", Error, "a sparse value would become dense";
    AnnotatedStorage = "NNZ0302", Error, "annotated storage differs";
    NotOnRequest = "NNZ0303", Error, "storage not offered";
    ElementMismatch = "NNZ0304", Error, "ids and numbers mixed";
    FallbackInserted = "NNZ0305", Warning, "an operand is made dense";
    ElementOfModel = "NNZ0306", Error, "an element type that is not the model's";
    IdsNotDense = "NNZ0307", Error, "ids where numbers must be";
    ClassIds = "NNZ0308", Error, "class ids and targets mixed up";
    NothingToConvert = "NNZ0309", Warning, "a conversion that changes nothing";
    AnnotatedElement = "NNZ0310", Error, "annotated element type differs";
    ConvertedBack = "NNZ0311", Warning, "a dense value is made sparse";
    OutputOfIds = "NNZ0312", Error, "an output that is a copy of ids";
    TooManyVariants = "NNZ0313", Error, "too many combinations of storage types";
    UnitNotCsr = "NNZ0314", Error, "a pattern that is not a csr of the batch";
    NumberForArray = "NNZ0315", Error, "a number where an array must be";
    DenseGradient = "NNZ0401", Error, "a row_sparse parameter with a dense gradient";
    NoGradient = "NNZ0402", Error, "no gradient";
    UnusedParameter = "NNZ0403", Error, "a parameter that no loss depends on";
    LossNotScalar = "NNZ0404", Error, "a loss that is not one number";
    CsrParameter = "NNZ0405", Error, "a csr parameter";
    ZeroGradient = "NNZ0406", Warning, "a gradient that is always zero";
    ConstantLoss = "NNZ0407", Warning, "a loss that is a number";
    NothingTrained = "NNZ0408", Warning, "a loss and nothing to train";
    WeightsMean = "NNZ0409", Warning, "a mean loss times numbers of samples";
    BlockRecursion = "NNZ0501", Error, "a block that calls itself";
    BlockArguments = "NNZ0502", Error, "wrong arguments of a block";
    BlockBody = "NNZ0503", Error, "a block without one value";
    OperatorBody = "NNZ0601", Error, "an operator that is not whole";
    OperatorRule = "NNZ0602", Error, "a storage rule that is none";
    OperatorShape = "NNZ0603", Error, "a shape rule that is none";
    OperatorGradient = "NNZ0604", Error, "a gradient that cannot be computed";
    OperatorPath = "NNZ0605", Error, "a path that others cannot use";
    OperatorRows = "NNZ0606", Error, "table rows that nothing names";
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_ascending() {
        assert!(Code::ALL.windows(2).all(|pair| pair[0].code() < pair[1].code()));
    }

    #[test]
    fn pages_show_each_code_and_how_to_mend_it() {
        // What the compiler's own bugs look like is not known, values of constants are seen by
        // rustc alone, and 501 levels are longer than a page.
        let unseen = [Code::Internal, Code::ConstantDiffers, Code::TooDeep];
        for code in Code::ALL.iter().filter(|code| !unseen.contains(code)) {
            let wrong = code.examples().filter(|example| example.is_wrong).count();
            let right = code.examples().filter(|example| !example.is_wrong).count();
            assert!(wrong > 0 && right > 0, "{code:?} lacks an example");
            // A block that is wrong is marked with the page's own code.
            let marked = code.page().matches(&format!("```graph,{}\n", code.code())).count();
            assert_eq!(marked, wrong, "{code:?}");
        }
    }

    #[test]
    fn every_page_belongs_to_a_code() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/diagnostics/pages");
        for page in std::fs::read_dir(folder).unwrap() {
            let name = page.unwrap().file_name().into_string().unwrap();
            let known = Code::ALL.iter().any(|code| name == format!("{}.md", code.code()));
            assert!(known, "{name} is the page of no code");
        }
    }
}
