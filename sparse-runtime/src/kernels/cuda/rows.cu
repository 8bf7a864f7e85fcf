// Rows of a table, read and written by number. Words: REAL.

// Row `rows[i]` of a table becomes row `i` of `values`.
extern "C" __global__ void scatter_rows(const u64 *__restrict__ rows, const REAL *__restrict__ values, REAL *__restrict__ table,
                                        u64 row_size, u64 n) {
    u64 at = thread_id();
    if (at < n) table[rows[at / row_size] * row_size + at % row_size] = values[at];
}
