// Elements repeated to the places that a csr stores. Words: REAL; ID, of its columns.

// Each times `share`: a warp has a row.
extern "C" __global__ void repeat_at_pattern(const u64 *__restrict__ starts, const u64 *__restrict__ ends,
                                             const ID *__restrict__ columns, const REAL *__restrict__ x, u64 row_step,
                                             u64 column_step, f64 share, REAL *__restrict__ out, u64 n_rows) {
    u64 row = thread_id() / 32;
    if (row >= n_rows) return;
    for (u64 entry = starts[row] + threadIdx.x % 32; entry < ends[row]; entry += 32)
        out[entry] = x[row * row_step + columns[entry] * column_step] * (REAL)share;
}
