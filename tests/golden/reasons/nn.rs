//! Layers and losses.

use super::Kind::*;
use super::Reason;

pub(super) const REASONS: &[Reason] = &[
    Reason {
        patterns: &["FullyConnected.dr*", "FullyConnected.ddr*"],
        kinds: &[Refused],
        why: "a layer reads every row of its weight and bias, so that row_sparse ones are made dense, which the source must ask for",
    },
    Reason {
        patterns: &["FullyConnected.dr*"],
        kinds: &[Converted],
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
        patterns: &[
            "LogisticRegressionOutput.*.one_output",
            "LogisticRegressionOutput.*.label_rank1",
            "LogisticRegressionOutput.*.rank1",
            "LogisticRegressionOutput.*.3d",
            "LogisticRegressionOutput.cd",
            "graphs/linear.*.LogisticRegressionOutput",
        ],
        kinds: &[GradientValues],
        why: "the labels of a logistic loss are probabilities, and -1 the negative class: other negative numbers count as 0",
    },
    Reason {
        patterns: &["MAERegressionOutput.*"],
        kinds: &[GradientValues],
        why: "where prediction and label are equal the slope of the absolute error is 0; the reference takes that of one side",
    },
    Reason {
        patterns: &["L2Normalization.*"],
        kinds: &[Rule, GradientRule, Sparser],
        why: "a quotient stores what its dividend stores",
    },
    Reason {
        patterns: &["graphs/factorization_machine*"],
        kinds: &[Sparser, Storage],
        why: "the square of a csr is csr and that of a product dense; the recording has the two exchanged",
    },
];
