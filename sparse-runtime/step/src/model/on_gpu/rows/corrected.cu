// Derivatives of a batch by its scores, corrected by those that are kept of samples. Words: REAL.

// `k` derivatives a row, which have the row's share of the mean: `share`, times its weight where
// rows have one. What is kept has not.
extern "C" __global__ void correct_rows(const REAL *__restrict__ row_weights, const u64 *__restrict__ samples, REAL *__restrict__ kept,
                                        u64 usage, REAL *__restrict__ derivatives, u64 k, u64 n, f64 share) {
    u64 at = thread_id();
    if (at >= n) return;
    u64 row = at / k;
    REAL own = row_weights ? (REAL)share * row_weights[row] : (REAL)share;
    // A row that has no share learns nothing of its sample, and nothing is learnt of it.
    if (own != 0) derivatives[at] = corrected(derivatives[at] / own, samples, kept, usage, row, k, at % k) * own;
}
