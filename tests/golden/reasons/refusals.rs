//! What the reference refuses and this library computes: values are those of dense operands.

use super::Kind::*;
use super::Reason;

pub(super) const REASONS: &[Reason] = &[
    Reason {
        patterns: &[
            "assign.*",
            "broadcast_*",
            "cast_storage.*",
            "dot.cr.TN.default.*",
            "getnnz.*",
            "square_sum.*",
        ],
        kinds: &[Accepted],
        why: "a kernel reads what is stored, in every storage and also broadcast; the reference has one for some combinations",
    },
    Reason {
        patterns: &["*dot.*.rank1_rhs"],
        kinds: &[Accepted],
        why: "the product with a vector is a vector, whatever the storage of the matrix",
    },
    Reason {
        patterns: &["clip.*"],
        kinds: &[Converted],
        why: "limits on one side of 0 make the result dense, which a fallback allows; the reference refuses it",
    },
    Reason {
        patterns: &["svrg.csr_data.*"],
        kinds: &[Accepted],
        why: "gradients of rows are corrected like any other, and the mean is applied to a row when it is read",
    },
    Reason {
        patterns: &["slice.*"],
        kinds: &[Accepted],
        why: "a part without elements is an array without elements",
    },
    Reason {
        patterns: &["sgd.*.rows_missing.*"],
        kinds: &[Accepted],
        why: "a parameter is a table of all its rows: those that are not given are zero",
    },
    Reason {
        patterns: &["adagrad.*.wd0.1.*"],
        kinds: &[Accepted],
        why: "weight decay reaches rows without a gradient too, in closed form; the reference has no lazy form of it",
    },
];
