//! Losses: the mean over the rows of a batch of a function of a row of scores and its label.

use super::write::{DEFAULTS, gradient, no_gradient, number_or, rule};
use super::{Condition, ElementLoss, IdsBelow, Kind, LossLabel, Operator, Rule};

/// Class ids are positions in a row of scores.
const fn ids_below(label: LossLabel) -> Option<IdsBelow> {
    match label {
        LossLabel::Class => Some(IdsBelow { ids: "label", of: "score", axis: -1 }),
        _ => None,
    }
}

/// The formulas of a loss that has them.
const fn element_loss(formulas: &[&'static str]) -> Option<ElementLoss> {
    match formulas {
        [loss, slope] => Some(ElementLoss { loss, slope }),
        _ => None,
    }
}

/// A label for each score, and perhaps a weight for each row.
const ELEMENTS: &[Rule] = &[
    rule("dense dense -> dense").on_gpu(),
    rule("dense csr -> dense").on_gpu(),
    rule("dense dense dense -> dense").on_gpu(),
    rule("dense csr dense -> dense").on_gpu(),
];

/// A label for each row.
const CLASS: Condition = Condition {
    text: "where the label has one id for each row",
    suffix: "",
    holds: |given| given.ranks.get(1).map(|rank| rank + 1) == given.ranks.first().copied(),
};

/// A label for each score.
const TARGETS: Condition = Condition {
    text: "where the label has a number for each score",
    suffix: "",
    holds: |given| given.ranks.get(1) == given.ranks.first(),
};

/// A class for each row or a number for each score, and perhaps a weight for each row.
const CLASSES: &[Rule] = &[
    rule("dense ids -> dense").on_gpu().only(&CLASS),
    rule("dense dense -> dense").on_gpu().only(&TARGETS),
    rule("dense csr -> dense").on_gpu().only(&TARGETS),
    rule("dense ids dense -> dense").on_gpu().only(&CLASS),
    rule("dense dense dense -> dense").on_gpu().only(&TARGETS),
    rule("dense csr dense -> dense").on_gpu().only(&TARGETS),
];

/// The two rows of a loss, the loss and its gradient: their constants, the name, an attribute with
/// how the gradient is given it and what must hold of it, what the label means, the shapes of the
/// operands, the storage rules, of a sum over scores the formulas of a score's loss and its
/// derivative, and one sentence.
macro_rules! losses {
    ($($LOSS:ident $GRADIENT:ident $name:literal $([$attribute:expr, $passed:literal, $valid:literal])?
        $label:ident [$shape:literal $(| $other:literal)*] $rules:ident $(($loss:literal, $slope:literal))?,
        $summary:literal;)*) => {
        pub(super) const ALL: &[&Operator] = &[$(&$LOSS, &$GRADIENT),*];
        $(
            const $LOSS: Operator = Operator {
                name: $name,
                summary: concat!($summary, " With `weight`, each row's part is multiplied by its weight."),
                operands: &["score", "label", "weight"],
                optional: 1,
                ids_below: ids_below(LossLabel::$label),
                attributes: &[$($attribute)?],
                shape: concat!($shape, " -> []" $(, " | ", $other, " -> []")* $(, " where ", $valid)?),
                storage: $rules,
                gradient: &[
                    gradient(
                        "score",
                        concat!("grad * ", $name, "_gradient(score, label, weight" $(, ", ", $passed)?, ")"),
                    ),
                    no_gradient("label", "labels are data"),
                    no_gradient("weight", "the weights of rows are data"),
                ],
                kind: Kind::Loss {
                    gradient: concat!($name, "_gradient"),
                    label: LossLabel::$label,
                    element: element_loss(&[$($loss, $slope)?]),
                },
                ..DEFAULTS
            };
            const $GRADIENT: Operator = Operator {
                name: concat!($name, "_gradient"),
                summary: concat!("The gradient of `", $name, "` with respect to the scores."),
                operands: &["score", "label", "weight"],
                optional: 1,
                ids_below: ids_below(LossLabel::$label),
                attributes: &[$($attribute)?],
                shape: concat!($shape, " -> score" $(, " | ", $other, " -> score")* $(, " where ", $valid)?),
                storage: $rules,
                gradient: &[
                    no_gradient("score", "second derivatives of losses are not offered"),
                    no_gradient("label", "labels are data"),
                    no_gradient("weight", "the weights of rows are data"),
                ],
                kind: Kind::LossGradient($name),
                internal: true,
                ..DEFAULTS
            };
        )*
    };
}

losses! {
    SQUARED_ERROR SQUARED_ERROR_GRADIENT "squared_error" Real ["same same rows"] ELEMENTS
        ("0.5 * (s - t) * (s - t)", "s - t"),
        "Half the squared error, summed over the columns of a row, the mean over the rows: \
         (1/2n) Σ (score - label)².";
    ABSOLUTE_ERROR ABSOLUTE_ERROR_GRADIENT "absolute_error" Real ["same same rows"] ELEMENTS
        ("abs(s - t)", "sign(s - t)"),
        "The absolute error, summed over the columns of a row, the mean over the rows: (1/n) Σ |score - label|. Where they are \
         equal the gradient is 0.";
    HUBER HUBER_GRADIENT "huber" [number_or("delta", 1.0), "delta = delta", "delta > 0"] Real ["same same rows"] ELEMENTS
        ("max(min(s - t, delta), -delta) * (s - t - 0.5 * max(min(s - t, delta), -delta))",
         "max(min(s - t, delta), -delta)"),
        "Huber's loss of the error e = score - label, summed over the columns of a row, the mean over the rows: ½e² where \
         |e| ≤ delta, and delta · (|e| - delta/2) beyond.";
    LOGISTIC LOGISTIC_GRADIENT "logistic" Binary ["same same rows"] ELEMENTS
        ("softplus(s) - max(t, 0) * s", "sigmoid(s) - max(t, 0)"),
        "The logistic loss (binary cross entropy of a score), the mean over the rows: log(1 + exp(s)) - t·s \
         with t the label in [0, 1]; a label of -1 counts as 0.";
    HINGE HINGE_GRADIENT "hinge" Binary ["same same rows"] ELEMENTS
        ("max(1 - select(t >= 0.5, 1, -1) * s, 0)",
         "select(1 - select(t >= 0.5, 1, -1) * s <= 0, 0, -select(t >= 0.5, 1, -1))"),
        "The hinge loss of a support vector machine, summed over the columns of a row, the mean over the rows: max(0, 1 - t·s), with t = 1 \
         for a label of 1/2 or above and t = -1 for any other. At the margin the gradient is 0.";
    SQUARED_HINGE SQUARED_HINGE_GRADIENT "squared_hinge" Binary ["same same rows"] ELEMENTS
        ("max(1 - select(t >= 0.5, 1, -1) * s, 0) * max(1 - select(t >= 0.5, 1, -1) * s, 0)",
         "-2 * select(t >= 0.5, 1, -1) * max(1 - select(t >= 0.5, 1, -1) * s, 0)"),
        "The squared hinge loss, summed over the columns of a row, the mean over the rows: max(0, 1 - t·s)², with t = 1 \
         for a label of 1/2 or above and t = -1 for any other.";
    POISSON POISSON_GRADIENT "poisson" Count ["same same rows"] ELEMENTS
        ("exp(s) - t * s", "exp(s) - t"),
        "The negative log likelihood of a count t under a Poisson distribution of mean exp(s), without the part that is the same for all scores, \
         summed over the columns of a row, the mean over the rows: exp(s) - t·s.";
    SOFTMAX_CROSS_ENTROPY SOFTMAX_CROSS_ENTROPY_GRADIENT "softmax_cross_entropy" Class
        ["[n, k] [n] rows" | "[n, k] [n, k] rows"] CLASSES,
        "The cross entropy of the softmax of a row of scores with a class id, the mean over the rows: \
         log Σ exp(s) - s[class]; or with a row of targets q, such as probabilities or counts: Σ q · (log Σ exp(s) - s). \
         Weights of classes are `weight = take(class_weight, label)`.";
}
