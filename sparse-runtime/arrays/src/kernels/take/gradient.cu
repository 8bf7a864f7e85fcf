// The gradient of a look-up. Words: REAL.

// For each position that ids name, a run of `entries`, the sum of what arrived at these ids, in
// their order. With `targets` the sum is put at the position, else at the rank of the run.
extern "C" __global__ void take_gradient(const u32 *__restrict__ runs, const u32 *__restrict__ entries,
                                         const u64 *__restrict__ targets, const REAL *__restrict__ grad, u64 n_ids,
                                         u64 extent, u64 outer, u64 inner, REAL *__restrict__ out, u64 n) {
    u64 at = thread_id();
    if (at >= n) return;
    u64 run = at / (outer * inner), before = at / inner % outer, after = at % inner;
    f64 sum = 0;
    for (u32 entry = runs[run]; entry < runs[run + 1]; entry++)
        sum += grad[(before * n_ids + entries[entry]) * inner + after];
    u64 to = targets ? targets[run] : run;
    out[(before * extent + to) * inner + after] = (REAL)sum;
}
