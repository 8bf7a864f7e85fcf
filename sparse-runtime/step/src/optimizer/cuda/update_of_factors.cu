// A step of an update rule whose gradient is that of the interactions of a factorization machine,
// which is not made: a slope of `pairwise_interaction.cuh` goes into the recurrence of
// `update.cuh`.

// A thread has a weight of a row that is a column which occurs, of the numbers `columns`. `runs`,
// `entries` and `rows` are as of a product; `sums` are those of the term. How many columns occur
// the host does not know: there are threads for as many as can.
extern "C" __global__ void update_of_factors(const u32 *__restrict__ runs, const u32 *__restrict__ entries,
                                             const u32 *__restrict__ rows, const u64 *__restrict__ columns, const u32 *__restrict__ n_runs,
                                             const VALUE *__restrict__ values, const REAL *__restrict__ grad,
                                             const f64 *__restrict__ sums, rule_step step, REAL *__restrict__ weights,
                                             REAL *__restrict__ states, u64 row_size) {
    u64 at = thread_id(), run = at / row_size, column = at % row_size;
    if (run >= *n_runs) return;
    u64 to = columns[run] * row_size + column;
    REAL slope = interaction_slope(runs[run], runs[run + 1], entries, rows, values, sums, grad, weights[to], row_size, column);
    update_weight(weights, states, to, slope, step);
}
