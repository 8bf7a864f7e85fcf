// The cross entropy of the softmax of rows of scores, the mean over the rows, and its gradient. Words: REAL; CLASS, the type of class ids;
// ID, of the columns of targets that are a csr.
//
// A warp has a row. What it is compared with is a class for each row, or else dense targets, or else those of a csr.

#define THREADS 256

struct softmax {
    REAL largest, total;
};

// The largest score, and the sum of exp(score - largest): every lane has both.
__device__ inline softmax of_row(const REAL *scores, u64 k) {
    REAL largest = -1.0 / 0.0, total = 0;
    for (u64 at = threadIdx.x % 32; at < k; at += 32) largest = max(largest, scores[at]);
    largest = group_max(largest, 32, group_mask(32));
    for (u64 at = threadIdx.x % 32; at < k; at += 32) total += exp(scores[at] - largest);
    return {largest, group_sum(total, 32, group_mask(32))};
}

__device__ inline REAL target(const CLASS *classes, const REAL *targets, const u64 *starts, const u64 *ends, const ID *columns,
                              const REAL *stored, u64 row, u64 k, u64 at) {
    if (classes) return (u64)classes[row] == at ? REAL(1) : REAL(0);
    return targets ? targets[row * k + at] : stored_at(starts, ends, columns, stored, row, at);
}

// The sums of losses over runs of `part` rows, one a block.
extern "C" __global__ void cross_entropy_parts(const REAL *__restrict__ scores, const CLASS *__restrict__ classes,
                                               const REAL *__restrict__ targets, const u64 *__restrict__ starts,
                                               const u64 *__restrict__ ends, const ID *__restrict__ columns,
                                               const REAL *__restrict__ stored, const REAL *__restrict__ weights,
                                               f64 *__restrict__ partial, u64 n_rows, u64 k, u64 part) {
    __shared__ f64 sums[THREADS / 32];
    u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    f64 sum = 0;
    u64 end = min(n_rows, (blockIdx.x + 1) * part);
    for (u64 row = blockIdx.x * part + warp; row < end; row += THREADS / 32) {
        softmax of = of_row(scores + row * k, k);
        REAL logarithm = log(of.total), loss = 0;
        for (u64 at = lane; at < k; at += 32) {
            REAL wanted = target(classes, targets, starts, ends, columns, stored, row, k, at);
            if (wanted != 0) loss += wanted * (logarithm - (scores[row * k + at] - of.largest));
        }
        loss = group_sum(loss, 32, group_mask(32));
        sum += weights ? (f64)loss * weights[row] : (f64)loss;
    }
    if (lane == 0) sums[warp] = sum;
    __syncthreads();
    if (threadIdx.x > 0) return;
    f64 total = 0;
    for (u32 of = 0; of < THREADS / 32; of++) total += sums[of];
    partial[blockIdx.x] = total;
}

// The derivatives of the mean by the scores; `share` is 1 / rows.
extern "C" __global__ void cross_entropy_gradient(const REAL *__restrict__ scores, const CLASS *__restrict__ classes,
                                                  const REAL *__restrict__ targets, const u64 *__restrict__ starts,
                                                  const u64 *__restrict__ ends, const ID *__restrict__ columns,
                                                  const REAL *__restrict__ stored, const REAL *__restrict__ weights,
                                                  REAL *__restrict__ out, u64 n_rows, u64 k, f64 share) {
    u64 row = thread_id() / 32;
    if (row >= n_rows) return;
    u32 lane = threadIdx.x % 32;
    softmax of = of_row(scores + row * k, k);
    REAL mass = 1;
    if (!classes) {
        mass = 0;
        for (u64 at = lane; at < k; at += 32) mass += target(classes, targets, starts, ends, columns, stored, row, k, at);
        mass = group_sum(mass, 32, group_mask(32));
    }
    REAL of_mean = weights ? (REAL)share * weights[row] : (REAL)share;
    for (u64 at = lane; at < k; at += 32) {
        REAL wanted = target(classes, targets, starts, ends, columns, stored, row, k, at);
        out[row * k + at] = (mass * (exp(scores[row * k + at] - of.largest) / of.total) - wanted) * of_mean;
    }
}
