// A step of an update rule whose gradient is a sum over rows of the batch that name rows of the
// parameter, and is not made: the sums of `dot.cuh` go into the recurrence of `update.cuh`. Words:
// theirs; SIDES, how many right sides there are.

// Where a row of right sides begins.
__device__ inline const REAL *row_of(const sides &right, u64 row, u64 row_step) {
    const void *side = right.of[0];
    u64 before = 0;
#pragma unroll
    for (int next = 1; next < SIDES; next++) {
        if (row < right.ends[next - 1]) continue;
        side = right.of[next];
        before = right.ends[next - 1];
    }
    return (const REAL *)side + (row - before) * row_step;
}

// A group has a row of weights that is named, of the numbers `named`: a tile of LANES * STEPS of
// its weights. `runs`, `entries` and `rows` are as of a product, or of ids, of which each is an
// entry and a row; `shares` as of `add_run`. How many rows are named the host does not know: there
// are groups for as many as can be.
extern "C" __global__ void update_of_sums(const u32 *__restrict__ runs, const u32 *__restrict__ entries, const u32 *__restrict__ rows,
                                          const u64 *__restrict__ named, const u32 *__restrict__ n_runs,
                                          const VALUE *__restrict__ values, const f64 *__restrict__ shares, sides right, rule_step step,
                                          REAL *__restrict__ weights, REAL *__restrict__ states, u64 row_size) {
    u64 run = thread_id() / LANES;
    if (run >= *n_runs) return;
    u64 first = (u64)blockIdx.y * (LANES * STEPS) + threadIdx.x % LANES;
    f64 sums[STEPS] = {};
    add_run(sums, runs[run], runs[run + 1], entries, rows, values, shares, right, row_size, 1, first, row_size);
    u64 target = named[run] * row_size;
#pragma unroll
    for (u32 of_lane = 0; of_lane < STEPS; of_lane++) {
        u64 column = first + of_lane * LANES;
        if (column < row_size) update_weight(weights, states, target + column, (REAL)sums[of_lane], step);
    }
}
