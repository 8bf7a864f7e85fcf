// The second-order term of a factorization machine of dense rows, and its gradients, in f64. Every
// element is an entry. Words: REAL.

// A warp has a row, each lane every 32nd column of the table. Of `sums` and `out` either may be
// left out.
extern "C" __global__ void dense_interaction(const REAL *__restrict__ x, const REAL *__restrict__ table, f64 *__restrict__ sums,
                                             REAL *__restrict__ out, u64 n_rows, u64 n_cols, u64 width) {
    u64 row = thread_id() / 32;
    if (row >= n_rows) return;
    f64 total = 0;
    for (u64 column = threadIdx.x % 32; column < width; column += 32) {
        f64 sum = 0, squares = 0;
        for (u64 at = 0; at < n_cols; at++) {
            f64 term = (f64)x[row * n_cols + at] * table[at * width + column];
            sum += term;
            squares += term * term;
        }
        if (sums) sums[row * width + column] = sum;
        total += sum * sum - squares;
    }
    total = group_sum(total, 32, group_mask(32));
    if (out && threadIdx.x % 32 == 0) out[row] = (REAL)(0.5 * total);
}

// A thread for each element of the table: Σ grad · x · (sums - x v) over the rows, in their order.
extern "C" __global__ void dense_interaction_gradient(const REAL *__restrict__ x, u64 n_rows, u64 n_cols, const REAL *__restrict__ table,
                                                      const f64 *__restrict__ sums, const REAL *__restrict__ grad,
                                                      REAL *__restrict__ out, u64 width, u64 n) {
    u64 at = thread_id();
    if (at >= n) return;
    u64 entry = at / width, column = at % width;
    f64 factor = table[at], sum = 0;
    for (u64 row = 0; row < n_rows; row++) {
        f64 value = x[row * n_cols + entry];
        sum += grad[row] * value * (sums[row * width + column] - value * factor);
    }
    out[at] = (REAL)sum;
}

// `lanes` threads have an element of x, each every lanes-th column of the table:
// grad · Σ v · (sums - x v).
extern "C" __global__ void dense_interaction_slope(const REAL *__restrict__ x, u64 n_cols, const REAL *__restrict__ table,
                                                   const f64 *__restrict__ sums, const REAL *__restrict__ grad,
                                                   REAL *__restrict__ out, u64 n, u64 width, u64 lanes) {
    u64 at = thread_id() / lanes;
    if (at >= n) return;
    u64 row = at / n_cols, lane = threadIdx.x % lanes;
    f64 value = x[at], sum = 0;
    for (u64 column = lane; column < width; column += lanes) {
        f64 factor = table[at % n_cols * width + column];
        sum += factor * (sums[row * width + column] - value * factor);
    }
    sum = group_sum(sum, (u32)lanes, group_mask((u32)lanes));
    if (lane == 0) out[at] = (REAL)(grad[row] * sum);
}
