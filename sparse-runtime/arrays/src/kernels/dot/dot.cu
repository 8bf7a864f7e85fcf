// Products of a csr, of the sums of `dot.cuh`, whose words these are.
//
// A result is written by its steps in memory, and, with `out_columns`, at the columns of these
// numbers.

// csr · dense, for several columns: a group makes a row of a tile of LANES * STEPS columns.
extern "C" __global__ void csr_dense(const u64 *__restrict__ starts, const u64 *__restrict__ ends,
                                     const ID *__restrict__ columns, const VALUE *__restrict__ values,
                                     const u64 *__restrict__ rows, u64 n_stored, const REAL *__restrict__ right,
                                     u64 row_step, u64 column_step, const u64 *__restrict__ out_columns, u64 out_row,
                                     u64 out_column, REAL *__restrict__ out, u64 n_rows, u64 n_cols) {
    u64 row = thread_id() / LANES;
    if (row >= n_rows) return;
    u64 first = (u64)blockIdx.y * (LANES * STEPS) + threadIdx.x % LANES;
    REAL sums[STEPS] = {};
    add_row(sums, starts[row], ends[row], columns, values, rows, n_stored, right, row_step, column_step, first, n_cols);
#pragma unroll
    for (u32 step = 0; step < STEPS; step++) {
        u64 column = first + step * LANES;
        if (column < n_cols) out[row * out_row + (out_columns ? out_columns[column] : column) * out_column] = sums[step];
    }
}

// csr · one column: a group makes an element.
extern "C" __global__ void csr_column(const u64 *__restrict__ starts, const u64 *__restrict__ ends,
                                      const ID *__restrict__ columns, const VALUE *__restrict__ values,
                                      const u64 *__restrict__ rows, u64 n_stored, const REAL *__restrict__ right,
                                      REAL *__restrict__ out, u64 n_rows) {
    u64 row = thread_id() / LANES;
    if (row >= n_rows) return;
    REAL sum = sum_of_row(starts[row], ends[row], columns, values, rows, n_stored, right);
    if (threadIdx.x % LANES == 0) out[row] = sum;
}

// csrᵀ · dense: a group makes the row of the result that is a column which occurs. `runs` says
// where the entries of each such column are in `entries`, and `rows` in which row each entry is;
// `shares` are as of `add_run`. With `targets` the row of the result is the one of this number,
// else that of the column's rank.
extern "C" __global__ void csr_transposed_dense(const u32 *__restrict__ runs, const u32 *__restrict__ entries,
                                                const u32 *__restrict__ rows, const u64 *__restrict__ targets,
                                                const VALUE *__restrict__ values, const f64 *__restrict__ shares,
                                                const REAL *__restrict__ right, u64 row_step, u64 column_step, u64 out_row,
                                                u64 out_column, REAL *__restrict__ out, u64 n_runs, u64 n_cols) {
    u64 run = thread_id() / LANES;
    if (run >= n_runs) return;
    u64 first = (u64)blockIdx.y * (LANES * STEPS) + threadIdx.x % LANES;
    f64 sums[STEPS] = {};
    add_run(sums, runs[run], runs[run + 1], entries, rows, values, shares, right, row_step, column_step, first, n_cols);
    u64 target = targets ? targets[run] : run;
#pragma unroll
    for (u32 step = 0; step < STEPS; step++) {
        u64 column = first + step * LANES;
        if (column < n_cols) out[target * out_row + column * out_column] = (REAL)sums[step];
    }
}

// The product of two matrices at the entries of a csr: each is the product of a row of the left
// side and one of the right, which is zero where it is not stored. A warp has a row.
extern "C" __global__ void at_pattern(const u64 *__restrict__ starts, const u64 *__restrict__ ends,
                                      const ID *__restrict__ columns, const REAL *__restrict__ left, u64 left_row,
                                      u64 left_column, const u64 *__restrict__ rows, u64 n_stored,
                                      const REAL *__restrict__ right, u64 row_step, u64 column_step,
                                      REAL *__restrict__ out, u64 n_rows, u64 n_summed) {
    u64 row = thread_id() / 32;
    if (row >= n_rows) return;
    u32 lane = threadIdx.x % 32;
    for (u64 entry = starts[row]; entry < ends[row]; entry++) {
        u64 place = stored_row(rows, n_stored, columns[entry]);
        REAL sum = 0;
        for (u64 at = lane; at < n_summed && place < n_stored; at += 32)
            sum += left[row * left_row + at * left_column] * right[place * row_step + at * column_step];
        sum = group_sum(sum, 32, group_mask(32));
        if (lane == 0) out[entry] = sum;
    }
}

// The same at the rows that an array stores: each element is the product of a row of the left side
// and one of the right. `rows` has their numbers, nothing where all are stored.
extern "C" __global__ void at_rows(const u64 *__restrict__ rows, const REAL *__restrict__ left, u64 left_row, u64 left_column,
                                   const REAL *__restrict__ right, u64 row_step, u64 column_step, u64 n_summed,
                                   u64 n_columns, REAL *__restrict__ out, u64 n) {
    u64 at = thread_id();
    if (at >= n) return;
    u64 row = rows ? rows[at / n_columns] : at / n_columns, column = at % n_columns;
    REAL sum = 0;
    for (u64 summed = 0; summed < n_summed; summed++)
        sum += left[row * left_row + summed * left_column] * right[column * row_step + summed * column_step];
    out[at] = sum;
}

// The product at the entries of a csr by the rows of the right side that are stored, over which is
// summed: `rows` has their numbers.
extern "C" __global__ void at_pattern_by_stored_rows(const u64 *__restrict__ starts, const u64 *__restrict__ ends,
                                                     const ID *__restrict__ columns, const REAL *__restrict__ left,
                                                     u64 left_row, u64 left_column, const u64 *__restrict__ rows,
                                                     u64 n_stored, const REAL *__restrict__ right, u64 row_step,
                                                     u64 column_step, REAL *__restrict__ out, u64 n_rows) {
    u64 row = thread_id() / 32;
    if (row >= n_rows) return;
    u32 lane = threadIdx.x % 32;
    for (u64 entry = starts[row]; entry < ends[row]; entry++) {
        REAL sum = 0;
        for (u64 at = lane; at < n_stored; at += 32) {
            u64 summed = rows ? rows[at] : at;
            sum += left[row * left_row + summed * left_column] * right[at * row_step + columns[entry] * column_step];
        }
        sum = group_sum(sum, 32, group_mask(32));
        if (lane == 0) out[entry] = sum;
    }
}

// Rows that all store the same columns: where they start, and the columns.
extern "C" __global__ void repeat_columns(const u64 *__restrict__ list, u64 n_listed, u64 *__restrict__ indptr,
                                          ID *__restrict__ out, u64 n_rows) {
    u64 at = thread_id();
    if (at <= n_rows) indptr[at] = at * n_listed;
    if (at < n_rows * n_listed) out[at] = (ID)list[at % n_listed];
}

// Where rows of a list are among those that an array stores, which has them.
extern "C" __global__ void places_of_rows(const u64 *__restrict__ list, const u64 *__restrict__ rows, u64 n_stored,
                                          u64 *__restrict__ places, u64 n) {
    u64 at = thread_id();
    if (at < n) places[at] = stored_row(rows, n_stored, list[at]);
}

// A row added to each.
extern "C" __global__ void add_to_rows(const REAL *__restrict__ bias, REAL *__restrict__ out, u64 n_cols, u64 n) {
    u64 at = thread_id();
    if (at < n) out[at] += bias[at % n_cols];
}
