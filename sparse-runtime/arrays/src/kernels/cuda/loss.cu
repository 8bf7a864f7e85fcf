// Losses that are a sum over the scores of a row, of the functions of `loss.cuh`, the mean over the
// rows, in f64.
//
// The elements are cut into `parts` runs, one a block, whose sums are added in their order: the
// order depends on sizes alone.

#define THREADS 256

// The sums of the parts, each row's elements times its weight, where there are weights.
extern "C" __global__ void loss_parts(const REAL *__restrict__ scores, const REAL *__restrict__ labels,
                                      const u64 *__restrict__ starts, const u64 *__restrict__ ends,
                                      const LABEL_ID *__restrict__ columns, const REAL *__restrict__ stored,
                                      const REAL *__restrict__ weights, numbers attributes, f64 *__restrict__ partial, u64 n,
                                      u64 row_size, u64 part) {
    __shared__ f64 sums[THREADS];
    f64 sum = 0;
    u64 end = min(n, (blockIdx.x + 1) * part);
    for (u64 at = blockIdx.x * part + threadIdx.x; at < end; at += THREADS) {
        REAL label = labels ? labels[at] : stored_at(starts, ends, columns, stored, at / row_size, at % row_size);
        f64 value = loss(scores[at], label, attributes);
        sum += weights ? value * weights[at / row_size] : value;
    }
    sums[threadIdx.x] = sum;
    for (u32 half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    }
    if (threadIdx.x == 0) partial[blockIdx.x] = sums[0];
}

// The derivatives of the mean by the scores; `share` is 1 / rows.
extern "C" __global__ void loss_gradient(const REAL *__restrict__ scores, const REAL *__restrict__ labels,
                                         const u64 *__restrict__ starts, const u64 *__restrict__ ends,
                                         const LABEL_ID *__restrict__ columns, const REAL *__restrict__ stored,
                                         const REAL *__restrict__ weights, numbers attributes, REAL *__restrict__ out, u64 n,
                                         u64 row_size, f64 share) {
    u64 at = thread_id();
    if (at >= n) return;
    REAL label = labels ? labels[at] : stored_at(starts, ends, columns, stored, at / row_size, at % row_size);
    REAL of_row = weights ? (REAL)share * weights[at / row_size] : (REAL)share;
    out[at] = slope(scores[at], label, attributes) * of_row;
}
