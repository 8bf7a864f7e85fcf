//! Element-wise operators, reductions, products and conversions.

use super::Kind::*;
use super::Reason;

pub(super) const REASONS: &[Reason] = &[
    Reason {
        patterns: &["dot.dc.*", "dot.cd.*"],
        kinds: &[Rule, GradientRule, Sparser, GradientSparser],
        why: "a kernel reads the csr operand as it is, transposed or not, where the reference multiplies dense copies",
    },
    Reason {
        patterns: &["dot.dd.*.csr.*", "dot.rd.*.csr.*"],
        kinds: &[GradientSparser],
        why: "the gradient that arrives at a product made csr is csr, and so is what is computed from it by rows or columns",
    },
    Reason {
        patterns: &["dot.dc.NT.auto.*"],
        kinds: &[Storage],
        why: "the product of a dense matrix with a transposed csr is dense; the reference converts it to csr, which saves nothing",
    },
    Reason {
        patterns: &["dot.cc.*"],
        kinds: &[GradientStorage],
        why: "where a product falls back, the conversions are part of the graph, and the gradient of a product of dense is dense",
    },
    Reason {
        patterns: &["broadcast_add.*", "broadcast_sub.*", "grad_add.*"],
        kinds: &[Rule, GradientRule, Sparser],
        why: "a kernel adds the sparse operand as it is, and a sum of two of one storage and shape keeps it",
    },
    Reason {
        patterns: &["elemwise_mul.*", "broadcast_mul.*", "broadcast_div.*"],
        kinds: &[Rule, GradientRule, Sparser, GradientSparser],
        why: "a product or quotient stores what its sparse operand stores, and so does its gradient where the rest is 0",
    },
    Reason {
        patterns: &["elemwise_div.cd.*", "elemwise_div.rd.*"],
        kinds: &[Rule, GradientRule, Sparser, GradientSparser, ZeroForNan],
        why: "the quotient of a sparse dividend stores what that stores, as `broadcast_div` does: what is not stored is 0, not 0/0",
    },
    Reason {
        patterns: &["elemwise_div.rr.*"],
        kinds: &[Refused],
        why: "the quotient of two row_sparse arrays is dense (0/0), which the source must ask for; the reference makes it unasked",
    },
    Reason {
        patterns: &["plus_scalar.c.*", "plus_scalar.r.*", "minus_scalar.c.*", "minus_scalar.r.*"],
        kinds: &[Refused],
        why: "a number added to a sparse array makes it dense, which the source must ask for; the reference does it unasked",
    },
    Reason {
        patterns: &[
            "arcsin.*",
            "arcsinh.*",
            "arctan.*",
            "arctanh.*",
            "cbrt.*",
            "expm1.*",
            "log1p.*",
            "sin.*",
            "sinh.*",
            "sqrt.*",
            "tan.*",
            "tanh.*",
        ],
        kinds: &[GradientRule, GradientSparser],
        why: "the gradient of a function of a sparse array stores what the arriving gradient stores, and 0 is not stored",
    },
    Reason {
        patterns: &["Activation.relu.*", "Activation.tanh.*"],
        kinds: &[Rule, GradientRule, Sparser, GradientSparser],
        why: "a function that is 0 at 0 keeps the storage of its operand under any name",
    },
    Reason {
        patterns: &["sum.c.*", "sum.r.*", "mean.c.*", "mean.r.*"],
        kinds: &[Rule, GradientRule, Sparser],
        why: "a kernel sums what is stored, over any axis; a reduction over no axis keeps the storage",
    },
    Reason {
        patterns: &["assign.d>*"],
        kinds: &[Rule],
        why: "a conversion reads the dense array as it is",
    },
    Reason {
        patterns: &["transpose.c*"],
        kinds: &[Rule, GradientRule, Sparser],
        why: "the transpose of a csr is a csr",
    },
];
