// How many elements are stored. Words: COLUMN, of a csr.

extern "C" __global__ void fill_count(u64 count, u64 *__restrict__ out, u64 n) {
    u64 at = thread_id();
    if (at < n) out[at] = count;
}

extern "C" __global__ void count_rows(const u64 *__restrict__ starts, const u64 *__restrict__ ends, u64 *__restrict__ out, u64 n_rows) {
    u64 row = thread_id();
    if (row < n_rows) out[row] = ends[row] - starts[row];
}

// Whole numbers have one sum, in whatever order they are added.
extern "C" __global__ void count_columns(const COLUMN *__restrict__ columns, u64 *__restrict__ out, u64 n) {
    u64 at = thread_id();
    if (at < n) atomicAdd(out + columns[at], (u64)1);
}

// Of the rows of some numbers, or without any of the first ones, of which `of_row` results are.
extern "C" __global__ void fill_counts_of_rows(const u64 *__restrict__ rows, u64 of_row, u64 count, u64 *__restrict__ out, u64 n) {
    u64 at = thread_id();
    if (at < n) out[(rows ? rows[at / of_row] : at / of_row) * of_row + at % of_row] = count;
}
