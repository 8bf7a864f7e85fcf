// Products of a csr. Words: REAL; VALUE, what the csr stores; ID, of its columns; LANES, a power of two up to 32, the lanes of a
// group; STEPS, how many columns each lane has.
//
// A result is written by its steps in memory likewise, and, with `out_columns`, at the columns of these numbers.
// A right side is read by its steps in memory from row to row and from column to column; with `rows` it stores the rows of these numbers. Each sum is in the order of the entries.

// csr · dense, for several columns: a group makes a row of a tile of LANES * STEPS columns. Its lanes read LANES entries side by
// side, then all of them go over these.
extern "C" __global__ void csr_dense(const u64 *__restrict__ starts, const u64 *__restrict__ ends,
                                     const ID *__restrict__ columns, const VALUE *__restrict__ values,
                                     const u64 *__restrict__ rows, u64 n_stored, const REAL *__restrict__ right,
                                     u64 row_step, u64 column_step, const u64 *__restrict__ out_columns, u64 out_row,
                                     u64 out_column, REAL *__restrict__ out, u64 n_rows, u64 n_cols) {
    u64 row = thread_id() / LANES;
    if (row >= n_rows) return;
    u32 lane = threadIdx.x % LANES, mask = group_mask(LANES);
    u64 first = (u64)blockIdx.y * (LANES * STEPS) + lane;
    REAL sums[STEPS] = {};
    u64 end = ends[row];
    for (u64 start = starts[row]; start < end; start += LANES) {
        u64 mine = start + lane;
        u64 place = mine < end ? stored_row(rows, n_stored, columns[mine]) : 0;
        REAL value = mine < end ? (REAL)number(values, mine) : 0;
        u32 count = (u32)min((u64)LANES, end - start);
        for (u32 entry = 0; entry < count; entry++) {
            u64 of_entry = __shfl_sync(mask, place, entry, LANES);
            REAL factor = __shfl_sync(mask, value, entry, LANES);
            if (of_entry >= n_stored) continue;
            u64 from = of_entry * row_step;
#pragma unroll
            for (u32 step = 0; step < STEPS; step++) {
                u64 column = first + step * LANES;
                if (column < n_cols) sums[step] += factor * right[from + column * column_step];
            }
        }
    }
#pragma unroll
    for (u32 step = 0; step < STEPS; step++) {
        u64 column = first + step * LANES;
        if (column < n_cols) out[row * out_row + (out_columns ? out_columns[column] : column) * out_column] = sums[step];
    }
}

// csr · one column: a group makes an element, each lane the sum of every LANES-th entry.
extern "C" __global__ void csr_column(const u64 *__restrict__ starts, const u64 *__restrict__ ends,
                                      const ID *__restrict__ columns, const VALUE *__restrict__ values,
                                      const u64 *__restrict__ rows, u64 n_stored, const REAL *__restrict__ right,
                                      REAL *__restrict__ out, u64 n_rows) {
    u64 row = thread_id() / LANES;
    if (row >= n_rows) return;
    u32 lane = threadIdx.x % LANES;
    REAL sum = 0;
    for (u64 entry = starts[row] + lane; entry < ends[row]; entry += LANES) {
        u64 place = stored_row(rows, n_stored, columns[entry]);
        if (place < n_stored) sum += (REAL)number(values, entry) * right[place];
    }
    sum = group_sum(sum, LANES, group_mask(LANES));
    if (lane == 0) out[row] = sum;
}

// csrᵀ · dense: a group makes the row of the result that is a column which occurs, going over its entries in the order of the
// csr's rows. `runs` says where the entries of each such column are in `entries`, and `rows` in which row each entry is. With
// `targets` the row of the result is the one of this number, else that of the column's rank.
extern "C" __global__ void csr_transposed_dense(const u32 *__restrict__ runs, const u32 *__restrict__ entries,
                                                const u32 *__restrict__ rows, const u64 *__restrict__ targets,
                                                const VALUE *__restrict__ values, const REAL *__restrict__ right,
                                                u64 row_step, u64 column_step, u64 out_row, u64 out_column,
                                                REAL *__restrict__ out, u64 n_runs, u64 n_cols) {
    u64 run = thread_id() / LANES;
    if (run >= n_runs) return;
    u32 lane = threadIdx.x % LANES, mask = group_mask(LANES);
    u64 first = (u64)blockIdx.y * (LANES * STEPS) + lane;
    REAL sums[STEPS] = {};
    u32 end = runs[run + 1];
    for (u32 start = runs[run]; start < end; start += LANES) {
        u32 mine = start + lane;
        u32 row = 0;
        REAL value = 0;
        if (mine < end) {
            u32 entry = entries[mine];
            row = rows[entry];
            value = (REAL)number(values, entry);
        }
        u32 count = min((u32)LANES, end - start);
        for (u32 entry = 0; entry < count; entry++) {
            u64 from = (u64)__shfl_sync(mask, row, entry, LANES) * row_step;
            REAL factor = __shfl_sync(mask, value, entry, LANES);
#pragma unroll
            for (u32 step = 0; step < STEPS; step++) {
                u64 column = first + step * LANES;
                if (column < n_cols) sums[step] += factor * right[from + column * column_step];
            }
        }
    }
    u64 target = targets ? targets[run] : run;
#pragma unroll
    for (u32 step = 0; step < STEPS; step++) {
        u64 column = first + step * LANES;
        if (column < n_cols) out[target * out_row + column * out_column] = sums[step];
    }
}

// The product of two matrices at the entries of a csr: each is the product of a row of the left side and one of the right, which is zero where it
// is not stored. A warp has a row.
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
