// Sums of products of a csr's entries with rows of a right side, which whole products and fused
// steps are made of. Words: REAL; VALUE, what the csr stores; ID, of its columns; LANES, a power of
// two up to 32, the lanes of a group; STEPS, how many columns each lane has.
//
// A right side is read by its steps in memory from row to row and from column to column; with
// `rows` it stores the rows of these numbers. Each sum is in the order of the entries. All lanes of
// a group call these together.

// Adds a row of csr · dense to the columns `first`, `first + LANES`, … of the calling lane. The
// lanes read LANES entries side by side, then all of them go over these.
__device__ inline void add_row(REAL (&sums)[STEPS], u64 start, u64 end, const ID *columns, const VALUE *values, const u64 *rows,
                               u64 n_stored, const REAL *right, u64 row_step, u64 column_step, u64 first, u64 n_cols) {
    u32 lane = threadIdx.x % LANES, mask = group_mask(LANES);
    for (; start < end; start += LANES) {
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
}

// The product of a row of a csr and one column, each lane going over every LANES-th entry. Every
// lane has it.
__device__ inline REAL sum_of_row(u64 start, u64 end, const ID *columns, const VALUE *values, const u64 *rows, u64 n_stored,
                                  const REAL *right) {
    REAL sum = 0;
    for (u64 entry = start + threadIdx.x % LANES; entry < end; entry += LANES) {
        u64 place = stored_row(rows, n_stored, columns[entry]);
        if (place < n_stored) sum += (REAL)number(values, entry) * right[place];
    }
    return group_sum(sum, LANES, group_mask(LANES));
}

// Where a row of a right side begins.
__device__ inline const REAL *row_of(const REAL *right, u64 row, u64 row_step) { return right + row * row_step; }

// Adds a row of csrᵀ · dense, a run of a column's entries in the order of the csr's rows, to the
// columns of the calling lane. `entries` has the numbers of the entries, and `rows` the row of
// each; without, each entry is a row. With `shares` what a row's entries are multiplied by is that
// times their values. A right side is whatever there is a `row_of` for. Sums are `f64`: a run may
// have an entry of every row of a batch.
template <class Right>
__device__ inline void add_run(f64 (&sums)[STEPS], u32 start, u32 end, const u32 *entries, const u32 *rows, const VALUE *values,
                               const f64 *shares, const Right &right, u64 row_step, u64 column_step, u64 first, u64 n_cols) {
    u32 lane = threadIdx.x % LANES, mask = group_mask(LANES);
    for (; start < end; start += LANES) {
        u32 mine = start + lane;
        u32 row = 0;
        REAL value = 0;
        if (mine < end) {
            u32 entry = entries[mine];
            row = rows ? rows[entry] : entry;
            value = (REAL)number(values, entry);
            if (shares) value *= (REAL)shares[row];
        }
        u32 count = min((u32)LANES, end - start);
        for (u32 entry = 0; entry < count; entry++) {
            const REAL *from = row_of(right, __shfl_sync(mask, row, entry, LANES), row_step);
            REAL factor = __shfl_sync(mask, value, entry, LANES);
#pragma unroll
            for (u32 step = 0; step < STEPS; step++) {
                u64 column = first + step * LANES;
                if (column < n_cols) sums[step] += (f64)factor * from[column * column_step];
            }
        }
    }
}
