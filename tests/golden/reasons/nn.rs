//! Layers and losses.

use super::Kind::*;
use super::Reason;

pub(super) const REASONS: &[Reason] = &[
    Reason {
        patterns: &["FullyConnected.ddr*", "FullyConnected.drr*"],
        kinds: &[Refused],
        why: "a bias is added to every row, so that a row_sparse one is made dense, which the source must ask for",
    },
    Reason {
        patterns: &["FullyConnected.cr*", "FullyConnected.dr*"],
        kinds: &[Rule, GradientRule],
        why: "a kernel multiplies the rows that a weight stores",
    },
    Reason {
        patterns: &["FullyConnected.dr*"],
        kinds: &[Accepted],
        why: "rows that a weight does not store are zero here as everywhere",
    },
    Reason {
        patterns: &["FullyConnected.cd*"],
        kinds: &[Rule, GradientRule],
        why: "a kernel multiplies a csr as it is, forward and backward",
    },
    Reason {
        patterns: &[
            "LinearRegressionOutput.dr*",
            "LogisticRegressionOutput.dr*",
            "MAERegressionOutput.dr*",
        ],
        kinds: &[Rule],
        why: "the prediction does not read the label, so that nothing of it is converted",
    },
    Reason {
        patterns: &["MAERegressionOutput.dc*"],
        kinds: &[Rule, GradientRule],
        why: "every loss reads csr labels as they are",
    },
    Reason {
        patterns: &[
            "LinearRegressionOutput.c*",
            "LinearRegressionOutput.r*",
            "MAERegressionOutput.c*",
            "MAERegressionOutput.r*",
        ],
        kinds: &[Rule, Sparser],
        why: "a prediction that is what was given keeps its storage",
    },
    Reason {
        patterns: &["L2Normalization.*"],
        kinds: &[Rule, GradientRule, Sparser],
        why: "a quotient stores what its dividend stores",
    },
    Reason {
        patterns: &["Embedding.*"],
        kinds: &[GradientSparser],
        why: "the gradient of a table stores the rows of the ids, also where the reference is not asked for that",
    },
    Reason {
        patterns: &["Embedding.dc*", "Embedding.cc*", "Embedding.rc*"],
        kinds: &[Converted],
        why: "a table is dense or row_sparse, and a csr is converted where the model allows it",
    },
    Reason {
        patterns: &["Embedding.c*", "Embedding.r*", "SVMOutput.*"],
        kinds: &[Accepted],
        why: "ids and classes are dense integers, so that no storage of theirs is refused",
    },
    Reason {
        patterns: &["SoftmaxOutput.dc*", "SoftmaxOutput.dr*", "SVMOutput.dr*"],
        kinds: &[Rule, GradientRule],
        why: "the prediction does not read the label; targets are read as csr and classes as integers",
    },
    Reason {
        patterns: &["SVMOutput.c*", "SVMOutput.r*"],
        kinds: &[Rule, Sparser],
        why: "a prediction that is what was given keeps its storage",
    },
    Reason { patterns: &["Cast.*"], kinds: &[Sparser], why: "a cast keeps the storage" },
    Reason {
        patterns: &["graphs/factorization_machine*"],
        kinds: &[Sparser, Storage],
        why: "the square of a csr is csr and that of a product dense; the recording has the two exchanged",
    },
];
