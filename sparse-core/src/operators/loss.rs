//! Losses: the mean over the rows of a batch of a function of a row of scores and its label.

use super::{IdsBelow, Kind, LossLabel, Operator, ROW, gradient, no_gradient, rule};

/// Class ids are positions in a row of scores.
const fn ids_below(label: LossLabel) -> Option<IdsBelow> {
    match label {
        LossLabel::Class => Some(IdsBelow { ids: "label", of: "score", axis: -1 }),
        _ => None,
    }
}

/// The two rows of a loss: the loss and its gradient.
macro_rules! losses {
    ($($LOSS:ident $GRADIENT:ident $name:literal $label:ident $shape:literal $rules:expr,
        $summary:literal;)*) => {
        pub(super) const ALL: &[&Operator] = &[$(&$LOSS, &$GRADIENT),*];
        $(
            const $LOSS: Operator = Operator {
                name: $name,
                summary: $summary,
                operands: &["score", "label"],
                ids_below: ids_below(LossLabel::$label),
                shape: concat!($shape, " -> []"),
                storage: $rules,
                gradient: &[
                    gradient("score", concat!("grad * ", $name, "_gradient(score, label)")),
                    no_gradient("label", "labels are data"),
                ],
                kind: Kind::Loss {
                    gradient: concat!($name, "_gradient"),
                    label: LossLabel::$label,
                },
                ..ROW
            };
            const $GRADIENT: Operator = Operator {
                name: concat!($name, "_gradient"),
                summary: concat!("The gradient of `", $name, "` with respect to the scores."),
                operands: &["score", "label"],
                ids_below: ids_below(LossLabel::$label),
                shape: concat!($shape, " -> score"),
                storage: $rules,
                gradient: &[
                    no_gradient("score", "second derivatives of losses are not offered"),
                    no_gradient("label", "labels are data"),
                ],
                kind: Kind::LossGradient($name),
                internal: true,
                ..ROW
            };
        )*
    };
}

losses! {
    SQUARED_ERROR SQUARED_ERROR_GRADIENT "squared_error" Real "same same"
        &[rule("dense dense -> dense")],
        "Half the squared error, summed over the columns of a row, the mean over the rows: \
         (1/2n) Σ (score - label)².";
    LOGISTIC LOGISTIC_GRADIENT "logistic" Binary "same same"
        &[rule("dense dense -> dense")],
        "The logistic loss (binary cross entropy of a score), the mean over the rows: log(1 + exp(s)) - t·s \
         with t the label in [0, 1]; a label of -1 counts as 0.";
    SOFTMAX_CROSS_ENTROPY SOFTMAX_CROSS_ENTROPY_GRADIENT "softmax_cross_entropy" Class "[n, k] [n]"
        &[rule("dense ids -> dense")],
        "The cross entropy of the softmax of a row of scores with a class id, the mean over the rows: \
         log Σ exp(s) - s[class].";
}
