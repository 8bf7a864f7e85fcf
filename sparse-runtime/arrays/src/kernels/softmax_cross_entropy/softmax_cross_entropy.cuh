// The cross entropy of the softmax of a row of scores, which a group of lanes has. Words: those of
// `labels.cuh`.

struct summary {
    REAL largest, total;
};

// The largest score, and the sum of exp(score - largest): every lane has both.
__device__ inline summary of_row(const REAL *scores, u64 k, u32 lanes) {
    REAL largest = -1.0 / 0.0, total = 0;
    for (u64 at = threadIdx.x % lanes; at < k; at += lanes) largest = max(largest, scores[at]);
    largest = group_max(largest, lanes, group_mask(lanes));
    for (u64 at = threadIdx.x % lanes; at < k; at += lanes) total += exp(scores[at] - largest);
    return {largest, group_sum(total, lanes, group_mask(lanes))};
}

// The loss of a row, which the first lane of its group has; the others have 0.
__device__ inline f64 loss_of_row(const summary &of, const REAL *scores, const row_labels &labels, const numbers &, u64 row, u64 k, u32 lanes) {
    REAL logarithm = log(of.total), loss = 0;
    for (u64 at = threadIdx.x % lanes; at < k; at += lanes) {
        REAL wanted = label_at(labels, row, k, at);
        if (wanted != 0) loss += wanted * (logarithm - (scores[at] - of.largest));
    }
    loss = group_sum(loss, lanes, group_mask(lanes));
    return threadIdx.x % lanes == 0 ? (f64)loss : 0;
}

// Writes the derivatives of the mean by the lane's scores.
__device__ inline void slopes_of_row(const summary &of, const REAL *scores, const row_labels &labels, const numbers &, u64 row, u64 k, u32 lanes,
                                     f64 share, REAL *out) {
    REAL mass = 1;
    if (!labels.classes) {
        mass = 0;
        for (u64 at = threadIdx.x % lanes; at < k; at += lanes) mass += label_at(labels, row, k, at);
        mass = group_sum(mass, lanes, group_mask(lanes));
    }
    for (u64 at = threadIdx.x % lanes; at < k; at += lanes) {
        REAL wanted = label_at(labels, row, k, at);
        out[at] = (mass * (exp(scores[at] - of.largest) / of.total) - wanted) * share_of_row(labels, row, share);
    }
}
