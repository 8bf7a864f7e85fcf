// Elements repeated to a larger shape. Words: REAL; RANK, of the walk, 1 to 6.

// Which element is repeated at a position.
__device__ inline u64 repeated_at(const walk &steps, u64 at) {
    u64 from = 0;
#pragma unroll
    for (int axis = RANK - 1; axis >= 0; axis--) {
        from += (axis > 0 ? at % steps.extents[axis] : at) * steps.first[axis];
        if (axis > 0) at /= steps.extents[axis];
    }
    return from;
}

// Each times `share`.
extern "C" __global__ void repeat(const REAL *__restrict__ x, walk steps, f64 share, REAL *__restrict__ out, u64 n) {
    u64 at = thread_id();
    if (at < n) out[at] = x[repeated_at(steps, at)] * (REAL)share;
}

// The same of an array that stores some rows of `row_size` elements; the others are 0.
extern "C" __global__ void repeat_stored(const u64 *__restrict__ rows, u64 n_stored, const REAL *__restrict__ x, u64 row_size, walk steps,
                                         f64 share, REAL *__restrict__ out, u64 n) {
    u64 at = thread_id();
    if (at >= n) return;
    u64 from = repeated_at(steps, at), place = stored_row(rows, n_stored, from / row_size);
    out[at] = place < n_stored ? x[place * row_size + from % row_size] * (REAL)share : REAL(0);
}

extern "C" __global__ void fill(f64 number, REAL *__restrict__ out, u64 n) {
    u64 at = thread_id();
    if (at < n) out[at] = (REAL)number;
}
