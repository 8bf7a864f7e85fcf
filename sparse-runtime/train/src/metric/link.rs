//! Links from scores to predictions, in `f64`.

use nnz_step::model::Link;

/// Turns scores into predictions: `row_size` of them are a sample.
pub(super) fn apply(link: Link, scores: &mut [f64], row_size: usize) {
    match link {
        Link::Sigmoid => scores.iter_mut().for_each(|score| *score = sigmoid(*score)),
        Link::Exp => scores.iter_mut().for_each(|score| *score = score.exp()),
        Link::Softmax => {
            for row in scores.chunks_exact_mut(row_size.max(1)) {
                let normaliser = log_sum_exp(row);
                row.iter_mut().for_each(|score| *score = (*score - normaliser).exp());
            }
        }
    }
}

/// 1 / (1 + exp(-s)), exact to the last bits on either side.
fn sigmoid(score: f64) -> f64 {
    let e = (-score.abs()).exp();
    if score < 0.0 { e / (1.0 + e) } else { 1.0 / (1.0 + e) }
}

/// ln(1 + exp(s)), without overflow.
pub(super) fn softplus(score: f64) -> f64 {
    score.max(0.0) + (-score.abs()).exp().ln_1p()
}

/// ln Σ exp(s) of a sample, without overflow.
pub(super) fn log_sum_exp(scores: &[f64]) -> f64 {
    let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    largest + scores.iter().map(|score| (score - largest).exp()).sum::<f64>().ln()
}
