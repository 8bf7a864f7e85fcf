// The cross entropy of the softmax of rows of scores, of the functions of
// `softmax_cross_entropy.cuh`: the mean over the rows, and its gradient. A warp has a row.

#define THREADS 256

// The sums of losses over runs of `part` rows, one a block.
extern "C" __global__ void cross_entropy_parts(const REAL *__restrict__ scores, const CLASS *__restrict__ classes,
                                               const REAL *__restrict__ targets, const u64 *__restrict__ starts,
                                               const u64 *__restrict__ ends, const LABEL_ID *__restrict__ columns,
                                               const REAL *__restrict__ stored, const REAL *__restrict__ weights,
                                               f64 *__restrict__ partial, u64 n_rows, u64 k, u64 part) {
    __shared__ f64 sums[THREADS / 32];
    u32 warp = threadIdx.x / 32;
    row_labels labels = {classes, targets, starts, ends, columns, stored, weights};
    f64 sum = 0;
    u64 end = min(n_rows, (blockIdx.x + 1) * part);
    for (u64 row = blockIdx.x * part + warp; row < end; row += THREADS / 32) {
        const REAL *of = scores + row * k;
        f64 loss = loss_of_row(of_row(of, k, 32), of, labels, numbers(), row, k, 32);
        sum += weights ? loss * weights[row] : loss;
    }
    if (threadIdx.x % 32 == 0) sums[warp] = sum;
    __syncthreads();
    if (threadIdx.x > 0) return;
    f64 total = 0;
    for (u32 of = 0; of < THREADS / 32; of++) total += sums[of];
    partial[blockIdx.x] = total;
}

// The derivatives of the mean by the scores; `share` is 1 / rows.
extern "C" __global__ void cross_entropy_gradient(const REAL *__restrict__ scores, const CLASS *__restrict__ classes,
                                                  const REAL *__restrict__ targets, const u64 *__restrict__ starts,
                                                  const u64 *__restrict__ ends, const LABEL_ID *__restrict__ columns,
                                                  const REAL *__restrict__ stored, const REAL *__restrict__ weights,
                                                  REAL *__restrict__ out, u64 n_rows, u64 k, f64 share) {
    u64 row = thread_id() / 32;
    if (row >= n_rows) return;
    row_labels labels = {classes, targets, starts, ends, columns, stored, weights};
    const REAL *of = scores + row * k;
    slopes_of_row(of_row(of, k, 32), of, labels, numbers(), row, k, 32, share, out + row * k);
}
