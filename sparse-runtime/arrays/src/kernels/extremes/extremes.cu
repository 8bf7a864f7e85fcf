// The positions of the largest or smallest elements. Words: REAL; COLUMN, of a csr.
//
// Of equal elements the first wins, and the first NaN of all, so that there is one winner, in
// whatever order elements are compared.

#define NOWHERE (~0ull)

struct best {
    f64 value;
    u64 position;
};

__device__ inline void join(best &found, f64 value, u64 position, u64 largest) {
    if (position == NOWHERE) return;
    bool is_nan = value != value, was_nan = found.value != found.value, wins;
    if (found.position == NOWHERE)
        wins = true;
    else if (is_nan || was_nan)
        wins = is_nan && (!was_nan || position < found.position);
    else if (value == found.value)
        wins = position < found.position;
    else
        wins = largest ? value > found.value : value < found.value;
    if (!wins) return;
    found.value = value;
    found.position = position;
}

__device__ inline void join_warp(best &found, u64 largest) {
    for (u32 distance = 16; distance > 0; distance /= 2) {
        f64 value = __shfl_xor_sync(0xffffffffu, found.value, distance, 32);
        u64 position = __shfl_xor_sync(0xffffffffu, found.position, distance, 32);
        join(found, value, position, largest);
    }
}

// The first number that is not among ascending ones.
template <class Id> __device__ inline u64 first_missing(const Id *ids, u64 n) {
    u64 low = 0, high = n;
    while (low < high) {
        u64 middle = low + (high - low) / 2;
        if (ids[middle] == middle)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// Of the `extent` elements along an axis, `inner` apart, for each place before and after it: the
// winner of each `part` of them, by 1 or 32 `lanes`. With `rows` they are of these rows of a larger
// array, `row_size` of each.
extern "C" __global__ void best_of_parts(const REAL *__restrict__ x, u64 extent, u64 inner, const u64 *__restrict__ rows, u64 row_size,
                                         u64 largest, u64 lanes, u64 part, f64 *__restrict__ values, u64 *__restrict__ positions,
                                         u64 n_results) {
    u64 result = thread_id() / lanes, lane = thread_id() % lanes;
    if (result >= n_results) return;
    best found = {0, NOWHERE};
    u64 start = result / inner * extent * inner + result % inner, end = min(extent, (blockIdx.y + 1) * part);
    for (u64 at = blockIdx.y * part + lane; at < end; at += lanes) join(found, x[start + at * inner], at, largest);
    if (lanes == 32) join_warp(found, largest);
    if (lane > 0) return;
    if (rows && found.position != NOWHERE)
        found.position = rows[found.position / row_size] * row_size + found.position % row_size;
    values[blockIdx.y * n_results + result] = found.value;
    positions[blockIdx.y * n_results + result] = found.position;
}

// The winner of the rows of a csr that each of `n_warps` warps goes over. Positions are columns, or
// of the `whole` matrix.
extern "C" __global__ void best_of_rows(const u64 *__restrict__ starts, const u64 *__restrict__ ends,
                                        const COLUMN *__restrict__ columns, const REAL *__restrict__ x, u64 n_rows, u64 n_cols,
                                        u64 whole, u64 largest, f64 *__restrict__ values, u64 *__restrict__ positions, u64 n_warps) {
    u64 warp = thread_id() / 32, lane = threadIdx.x % 32;
    if (warp >= n_warps) return;
    best found = {0, NOWHERE};
    for (u64 row = warp; row < n_rows; row += n_warps) {
        u64 start = starts[row], end = ends[row], first = whole ? row * n_cols : 0;
        for (u64 entry = start + lane; entry < end; entry += 32) join(found, x[entry], first + columns[entry], largest);
        // The first zero that is not stored.
        u64 missing = first_missing(columns + start, end - start);
        if (missing < n_cols) join(found, 0, first + missing, largest);
    }
    join_warp(found, largest);
    if (lane > 0) return;
    values[warp] = found.value;
    positions[warp] = found.position;
}

// The row that wins in each column that occurs in a csr; in others it is the first.
extern "C" __global__ void best_of_columns(const u64 *__restrict__ columns, const u32 *__restrict__ runs,
                                           const u32 *__restrict__ entries, const u32 *__restrict__ rows, const REAL *__restrict__ x,
                                           u64 n_rows, u64 largest, u64 *__restrict__ out, u64 n_runs) {
    u64 run = thread_id();
    if (run >= n_runs) return;
    best found = {0, NOWHERE};
    u64 missing = 0;
    for (u32 at = runs[run]; at < runs[run + 1]; at++) {
        u64 row = rows[entries[at]];
        missing += row == missing;
        join(found, x[entries[at]], row, largest);
    }
    if (missing < n_rows) join(found, 0, missing, largest);
    out[columns[run]] = found.position;
}

// The winner of the parts of each result: a warp for each. Where fewer than `n_rows` rows are
// `stored`, of `row_size` elements, the first zero of another takes part. With `targets` results
// are those of these rows of a larger result, `of_row` each. The winner of nothing is at 0.
extern "C" __global__ void best_of_all(const f64 *__restrict__ values, const u64 *__restrict__ positions, u64 parts, u64 largest,
                                       const u64 *__restrict__ stored, u64 n_stored, u64 n_rows, u64 row_size,
                                       const u64 *__restrict__ targets, u64 of_row, u64 *__restrict__ out, u64 n_results) {
    u64 result = thread_id() / 32, lane = threadIdx.x % 32;
    if (result >= n_results) return;
    best found = {0, NOWHERE};
    for (u64 part = lane; part < parts; part += 32)
        join(found, values[part * n_results + result], positions[part * n_results + result], largest);
    if (n_stored < n_rows && row_size > 0) join(found, 0, first_missing(stored, n_stored) * row_size, largest);
    join_warp(found, largest);
    if (lane > 0) return;
    u64 to = targets ? targets[result / of_row] * of_row + result % of_row : result;
    out[to] = found.position == NOWHERE ? 0 : found.position;
}
