// A csr by its columns. Words: REAL; ID, of the columns of the result, which were rows.

// Where the entries of each column start: those of the first that occurs and is not before it.
extern "C" __global__ void pointers_of_columns(const u64 *__restrict__ columns, const u32 *__restrict__ runs, u64 n_runs,
                                               u64 n_entries, u64 *__restrict__ indptr, u64 n_columns) {
    u64 column = thread_id();
    if (column > n_columns) return;
    u64 low = 0, high = n_runs;
    while (low < high) {
        u64 middle = low + (high - low) / 2;
        if (columns[middle] < column)
            low = middle + 1;
        else
            high = middle;
    }
    indptr[column] = low < n_runs ? (u64)runs[low] : n_entries;
}

// The entries in the order of their columns.
extern "C" __global__ void entries_by_column(const u32 *__restrict__ entries, const u32 *__restrict__ rows,
                                             const REAL *__restrict__ values, ID *__restrict__ out_columns,
                                             REAL *__restrict__ out_values, u64 n) {
    u64 at = thread_id();
    if (at >= n) return;
    out_columns[at] = (ID)rows[entries[at]];
    out_values[at] = values[entries[at]];
}
