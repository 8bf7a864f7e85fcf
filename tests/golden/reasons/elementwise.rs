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
        patterns: &["dot.dr.*", "dot.rd.*", "dot.rr.*", "dot.cr.NT.*", "dot.rc.*"],
        kinds: &[Rule, GradientRule, Sparser, GradientSparser],
        why: "a kernel multiplies the rows that are stored as they are, where the reference multiplies dense copies",
    },
    Reason {
        patterns: &["dot.dd.*.csr.*", "dot.rd.*.csr.*", "dot.dd.*.row_sparse*"],
        kinds: &[GradientSparser],
        why: "the gradient that arrives at a product made sparse is as sparse, and so is what is computed from it by rows or columns",
    },
    Reason {
        patterns: &["dot.dc.NT.auto.*"],
        kinds: &[Storage],
        why: "the product of a dense matrix with a transposed csr is dense; the reference converts it to csr, which saves nothing",
    },
    Reason {
        patterns: &[
            "add_n.*",
            "broadcast_*",
            "clip.*",
            "elemwise_mul.*",
            "grad_add.*",
            "greater*",
            "hypot*",
            "lesser*",
            "logical_*",
            "maximum*",
            "minimum*",
            "mod*",
            "not_equal*",
            "power_scalar.*",
            "quadratic.*",
            "smooth_l1.*",
        ],
        kinds: &[Rule, GradientRule, Sparser, GradientSparser],
        why: "a kernel reads a sparse operand as it is, and a result or gradient that is 0 where nothing is stored stays sparse",
    },
    Reason {
        patterns: &["*_div.cd.*", "*_div.rd.*", "scatter_elemwise_div.*"],
        kinds: &[Rule, GradientRule, Sparser, GradientSparser],
        why: "the quotient of a sparse dividend stores what that stores, as the reference's `broadcast_div` does",
    },
    Reason {
        patterns: &["elemwise_div.rr.*", "power.rr.*"],
        kinds: &[Refused],
        why: "0/0 and the power of 0 to 0 make the result dense, which the source must ask for; the reference does it unasked",
    },
    Reason {
        patterns: &["plus_scalar.c.*", "plus_scalar.r.*", "minus_scalar.c.*", "minus_scalar.r.*"],
        kinds: &[Refused],
        why: "a number added to a sparse array makes it dense, which the source must ask for; the reference does it unasked",
    },
    Reason {
        patterns: &[
            "Activation.*",
            "arc*.*",
            "cbrt.*",
            "degrees.*",
            "erf*",
            "expm1.*",
            "log1p.*",
            "make_loss.*",
            "radians.*",
            "sin*.*",
            "softsign.*",
            "sqrt.*",
            "tan*.*",
        ],
        kinds: &[Rule, GradientRule, Sparser, GradientSparser],
        why: "a function that is 0 at 0 keeps the storage of its operand, and its gradient that of the gradient that arrives",
    },
    Reason {
        patterns: &[
            "sign.*",
            "r*",
            "ceil.*",
            "floor.*",
            "trunc.*",
            "fix.*",
            "BlockGrad.*",
            "graphs/stop_gradient*",
        ],
        kinds: &[GradientStorage],
        why: "a gradient that is 0 everywhere is not computed: it is the zeros of the parameter's storage, which is dense in these cases",
    },
    Reason {
        patterns: &["sum.*", "mean.*", "norm.*", "max.*", "min.*", "nansum.*"],
        kinds: &[Rule, GradientRule, Sparser, GradientSparser],
        why: "a kernel reduces what is stored, over any axes, and a gradient that is a multiple of the operand stores what that stores",
    },
    Reason {
        patterns: &["square_sum.r.*"],
        kinds: &[Sparser],
        why: "rows that are not stored stay so in a sum over the other axes, with or without the axis kept",
    },
    Reason {
        patterns: &["assign.d>*"],
        kinds: &[Rule],
        why: "a conversion reads the dense array as it is",
    },
];
