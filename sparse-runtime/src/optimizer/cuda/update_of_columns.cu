// A step of an update rule whose gradient is csrᵀ · dense, which is not made: the sums of `dot.cuh` go into the recurrence of `update.cuh`.

// A group has a row of weights that is a column which occurs, of the numbers `columns`: a tile of LANES * STEPS of its weights. `runs`,
// `entries` and `rows` are as of a product. How many columns occur the host does not know: there are groups for as many as can.
extern "C" __global__ void update_of_columns(const u32 *__restrict__ runs, const u32 *__restrict__ entries,
                                             const u32 *__restrict__ rows, const u64 *__restrict__ columns, const u32 *__restrict__ n_runs,
                                             const VALUE *__restrict__ values, const REAL *__restrict__ right, rule_step step,
                                             REAL *__restrict__ weights, REAL *__restrict__ states, u64 row_size) {
    u64 run = thread_id() / LANES;
    if (run >= *n_runs) return;
    u64 first = (u64)blockIdx.y * (LANES * STEPS) + threadIdx.x % LANES;
    REAL sums[STEPS] = {};
    add_run(sums, runs[run], runs[run + 1], entries, rows, values, right, row_size, 1, first, row_size);
    u64 target = columns[run] * row_size;
#pragma unroll
    for (u32 of_lane = 0; of_lane < STEPS; of_lane++) {
        u64 column = first + of_lane * LANES;
        if (column < row_size) update_weight(weights, states, target + column, sums[of_lane], step);
    }
}
