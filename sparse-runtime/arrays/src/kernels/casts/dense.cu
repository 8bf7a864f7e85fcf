// Sparse arrays as dense ones, into zeros. Words: REAL; VALUE, what a csr stores; ID, of its
// columns.

// Row `rows[i]` of a table becomes row `i` of `values`.
extern "C" __global__ void scatter_rows(const u64 *__restrict__ rows, const REAL *__restrict__ values, REAL *__restrict__ table,
                                        u64 row_size, u64 n) {
    u64 at = thread_id();
    if (at < n) table[rows[at / row_size] * row_size + at % row_size] = values[at];
}

// The entries of a csr, a warp for each row.
extern "C" __global__ void scatter_entries(const u64 *__restrict__ starts, const u64 *__restrict__ ends,
                                           const ID *__restrict__ columns, const VALUE *__restrict__ values,
                                           REAL *__restrict__ table, u64 n_rows, u64 n_cols) {
    u64 row = thread_id() / 32;
    if (row >= n_rows) return;
    for (u64 entry = starts[row] + threadIdx.x % 32; entry < ends[row]; entry += 32)
        table[row * n_cols + columns[entry]] = (REAL)number(values, entry);
}

// What a csr stores as numbers.
extern "C" __global__ void numbers_of(const VALUE *__restrict__ values, REAL *__restrict__ out, u64 n) {
    u64 at = thread_id();
    if (at < n) out[at] = (REAL)number(values, at);
}
