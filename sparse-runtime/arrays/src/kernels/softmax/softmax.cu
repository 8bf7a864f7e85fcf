// Softmax along an axis, its logarithm and its gradient, and the logarithm of its denominator.
// Words: REAL.
//
// A warp has the `extent` elements along the axis, `inner` apart, for each place before and after
// it.

__device__ inline u64 start_of(u64 line, u64 extent, u64 inner) { return line / inner * extent * inner + line % inner; }

// Of `logarithm` the logarithms.
extern "C" __global__ void softmax(const REAL *__restrict__ x, u64 logarithm, REAL *__restrict__ out, u64 extent, u64 inner,
                                   u64 n_lines) {
    u64 line = thread_id() / 32;
    if (line >= n_lines) return;
    u32 lane = threadIdx.x % 32, mask = group_mask(32);
    u64 start = start_of(line, extent, inner);
    REAL largest = -1.0 / 0.0, total = 0;
    for (u64 at = lane; at < extent; at += 32) largest = max(largest, x[start + at * inner]);
    largest = group_max(largest, 32, mask);
    for (u64 at = lane; at < extent; at += 32) total += exp(x[start + at * inner] - largest);
    total = group_sum(total, 32, mask);
    for (u64 at = lane; at < extent; at += 32) {
        REAL above = x[start + at * inner] - largest;
        out[start + at * inner] = logarithm ? above - log(total) : exp(above) / total;
    }
}

// The logarithm of the sum of exponentials of each row, -inf of one without elements.
extern "C" __global__ void logsumexp(const REAL *__restrict__ x, REAL *__restrict__ out, u64 extent, u64 n_rows) {
    u64 row = thread_id() / 32;
    if (row >= n_rows) return;
    u32 lane = threadIdx.x % 32, mask = group_mask(32);
    REAL largest = -1.0 / 0.0;
    for (u64 at = lane; at < extent; at += 32) largest = max(largest, x[row * extent + at]);
    largest = group_max(largest, 32, mask);
    f64 total = 0;
    bool finite = largest - largest == 0;
    for (u64 at = lane; at < extent && finite; at += 32) total += exp((f64)(x[row * extent + at] - largest));
    total = group_sum(total, 32, mask);
    if (lane == 0) out[row] = finite ? largest + (REAL)log(total) : largest;
}

// y (g - Σ g y)
extern "C" __global__ void softmax_gradient(const REAL *__restrict__ grad, const REAL *__restrict__ y, REAL *__restrict__ out,
                                            u64 extent, u64 inner, u64 n_lines) {
    u64 line = thread_id() / 32;
    if (line >= n_lines) return;
    u32 lane = threadIdx.x % 32;
    u64 start = start_of(line, extent, inner);
    REAL total = 0;
    for (u64 at = lane; at < extent; at += 32) total += grad[start + at * inner] * y[start + at * inner];
    total = group_sum(total, 32, group_mask(32));
    for (u64 at = lane; at < extent; at += 32) out[start + at * inner] = y[start + at * inner] * (grad[start + at * inner] - total);
}
