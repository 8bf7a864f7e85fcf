// A loss that is a sum over the scores of a row. Words: those of `labels.cuh`; LOSS and SLOPE,
// formulas of the table in the score `s` and its label `t`.

__device__ inline REAL loss(REAL s, REAL t, const numbers &attributes) { return LOSS; }
__device__ inline REAL slope(REAL s, REAL t, const numbers &attributes) { return SLOPE; }

// What losses of a row need to know of all of its scores: nothing.
struct summary {};

__device__ inline summary of_row(const REAL *, u64, u32) { return {}; }

// The calling lane's part of the loss of a row, of which it has every `lanes`-th score.
__device__ inline f64 loss_of_row(const summary &, const REAL *scores, const row_labels &labels, const numbers &attributes, u64 row, u64 k,
                                  u32 lanes) {
    f64 sum = 0;
    for (u64 at = threadIdx.x % lanes; at < k; at += lanes) sum += (f64)loss(scores[at], label_at(labels, row, k, at), attributes);
    return sum;
}

// Writes the derivatives of the mean by the lane's scores.
__device__ inline void slopes_of_row(const summary &, const REAL *scores, const row_labels &labels, const numbers &attributes, u64 row, u64 k,
                                     u32 lanes, f64 share, REAL *out) {
    for (u64 at = threadIdx.x % lanes; at < k; at += lanes)
        out[at] = slope(scores[at], label_at(labels, row, k, at), attributes) * share_of_row(labels, row, share);
}
