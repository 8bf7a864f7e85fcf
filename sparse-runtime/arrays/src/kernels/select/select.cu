// One of two arrays by a condition. Words: REAL; ID, of a csr's columns.

// By a dense condition, or a row_sparse one: rows of `row_size` elements.
extern "C" __global__ void select_elements(const u64 *__restrict__ rows, u64 n_stored, const REAL *__restrict__ condition, u64 row_size,
                                  const REAL *__restrict__ x, const REAL *__restrict__ y, REAL *__restrict__ out, u64 n) {
    u64 at = thread_id();
    if (at >= n) return;
    u64 stored = stored_row(rows, n_stored, at / row_size);
    bool holds = stored < n_stored && condition[stored * row_size + at % row_size] != 0;
    out[at] = holds ? x[at] : y[at];
}

// By a csr one, whose entries write over the second array: a warp for each row.
extern "C" __global__ void select_entries(const u64 *__restrict__ starts, const u64 *__restrict__ ends,
                                          const ID *__restrict__ columns, const REAL *__restrict__ condition,
                                          const REAL *__restrict__ x, REAL *__restrict__ out, u64 n_rows, u64 n_cols) {
    u64 row = thread_id() / 32;
    if (row >= n_rows) return;
    for (u64 entry = starts[row] + threadIdx.x % 32; entry < ends[row]; entry += 32) {
        u64 at = row * n_cols + columns[entry];
        if (condition[entry] != 0) out[at] = x[at];
    }
}
