// Elements repeated to a larger shape. Words: REAL; RANK, of the walk, 1 to 6.

// Each times `share`.
extern "C" __global__ void repeat(const REAL *__restrict__ x, walk steps, f64 share, REAL *__restrict__ out, u64 n) {
    u64 at = thread_id();
    if (at >= n) return;
    u64 rest = at, from = 0;
#pragma unroll
    for (int axis = RANK - 1; axis >= 0; axis--) {
        from += (axis > 0 ? rest % steps.extents[axis] : rest) * steps.first[axis];
        if (axis > 0) rest /= steps.extents[axis];
    }
    out[at] = x[from] * (REAL)share;
}

extern "C" __global__ void fill(f64 number, REAL *__restrict__ out, u64 n) {
    u64 at = thread_id();
    if (at < n) out[at] = (REAL)number;
}
