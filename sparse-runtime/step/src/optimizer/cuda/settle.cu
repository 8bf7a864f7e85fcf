// Rows that wait for steps without a gradient, brought up to date. Words: REAL; STATES, how many a
// weight carries, or 0 where the rule uses none; NAMED, how many names its formulas have for them;
// NUMBERS, of how many a map of steps consists; IDLE, statements that change `w` by the numbers
// `map`, and `state`; ID, of ids; LANES, a power of two up to 32, the lanes that have a row;
// LEVELS, and FAN, as follows.
//
// `last` has for each row up to which step it is settled: 0 for one that no step has touched, which
// is settled up to the step that counting begins with, else 1 more than the steps since. `now` is
// that of a row which is up to date, so that steps 0 to now - 2 were made since.
//
// The maps of these are products: level 0 has one for each step, of it and those after it to the
// end of its block of FAN steps, or of all; the level above the same of the products of whole
// blocks, and so on. `tails` have for each level above the first what is left after its last block.
// Level 0 has room for `room` maps, and each of the LEVELS - 1 others for a FANth of those of the
// level below.

__device__ inline void idle_steps(f64 &w, f64 *state, const f64 *map, const rule_step &step) { IDLE }

// All steps from number `from` on, of `n`: by one map for each level, and what is left.
__device__ inline void missed_steps(f64 &w, f64 *state, const f64 *maps, u64 room, const map_tails &tails, u64 from, u64 n,
                                    const rule_step &step) {
    u64 at = from, start = 0;
#pragma unroll
    for (u32 level = 0; level < LEVELS; level++) {
        if (at < n) idle_steps(w, state, maps + (start + at) * NUMBERS, step);
        u64 next = at / FAN + 1;
        if (at >= n || next * FAN > n) {
            if (level > 0) idle_steps(w, state, tails.at + (level - 1) * NUMBERS, step);
            return;
        }
        at = next;
        n /= FAN;
        start += room;
        room /= FAN;
    }
}

// Brings a row up to date that was settled before, as `last` has it.
__device__ inline void settle_row(u64 row, u32 before, u64 now, const f64 *maps, u64 room, const map_tails &tails,
                                  const rule_step &step, REAL *weights, REAL *states, u64 row_size) {
    u64 from = before > 1 ? before - 1 : 0, n = now - 1;
    if (from >= n) return;
    for (u64 column = threadIdx.x % LANES; column < row_size; column += LANES) {
        u64 at = row * row_size + column;
        f64 w = weights[at], state[NAMED] = {};
#pragma unroll
        for (int place = 0; place < STATES; place++) state[place] = states[at * STATES + place];
        missed_steps(w, state, maps, room, tails, from, n, step);
        weights[at] = (REAL)w;
#pragma unroll
        for (int place = 0; place < STATES; place++) states[at * STATES + place] = (REAL)state[place];
    }
}

// The rows that `ids` name, as often as they do, or all where there are none; as many as `n_ids`
// says where it is given. Ids beyond the table name no row. Each row is settled by the group that
// comes first, and noted to be settled up to `mark`, which is `now` or, of one that is updated
// then, 1 more.
extern "C" __global__ void settle_rows(const ID *__restrict__ ids, const u32 *__restrict__ n_ids, u32 *__restrict__ last, u64 now,
                                       u64 mark, const f64 *__restrict__ maps, u64 room, map_tails tails, rule_step step,
                                       REAL *__restrict__ weights, REAL *__restrict__ states, u64 row_size, u64 n_rows, u64 n) {
    u64 at = thread_id() / LANES;
    if (at >= n || (n_ids && at >= *n_ids)) return;
    u64 row = ids ? (u64)ids[at] : at;
    if (row >= n_rows) return;
    u32 before = 0;
    if (threadIdx.x % LANES == 0) before = atomicMax(last + row, (u32)mark);
    before = __shfl_sync(group_mask(LANES), before, 0, LANES);
    settle_row(row, before, now, maps, room, tails, step, weights, states, row_size);
}

// All rows, after which counting begins with the present step.
extern "C" __global__ void settle_table(u32 *__restrict__ last, u64 now, const f64 *__restrict__ maps, u64 room, map_tails tails,
                                        rule_step step, REAL *__restrict__ weights, REAL *__restrict__ states, u64 row_size, u64 n_rows) {
    u64 row = thread_id() / LANES;
    if (row >= n_rows) return;
    u32 before = 0;
    if (threadIdx.x % LANES == 0) {
        before = last[row];
        last[row] = before > 0;
    }
    before = __shfl_sync(group_mask(LANES), before, 0, LANES);
    settle_row(row, before, now, maps, room, tails, step, weights, states, row_size);
}
