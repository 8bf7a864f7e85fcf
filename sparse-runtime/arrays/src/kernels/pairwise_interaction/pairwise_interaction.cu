// The second-order term of a factorization machine, and its gradient, of the functions of
// `pairwise_interaction.cuh`.

// A warp has a row, each lane every 32nd column of the table. Of `sums` and `out` either may be
// left out.
extern "C" __global__ void interaction(const u64 *__restrict__ starts, const u64 *__restrict__ ends,
                                       const ID *__restrict__ columns, const VALUE *__restrict__ values,
                                       const u64 *__restrict__ rows, u64 n_stored, const REAL *__restrict__ table,
                                       f64 *__restrict__ sums, REAL *__restrict__ out, u64 n_rows, u64 width) {
    u64 row = thread_id() / 32;
    if (row >= n_rows) return;
    f64 *of_row = sums ? sums + row * width : nullptr;
    f64 total = interaction_of_row(starts[row], ends[row], columns, values, rows, n_stored, table, width, 32, of_row);
    total = group_sum(total, 32, group_mask(32));
    if (out && threadIdx.x % 32 == 0) out[row] = (REAL)(0.5 * total);
}

// For each column of the csr that occurs, a run of `entries`, a row of the gradient. With `targets`
// the row of the result is the column, else its rank.
extern "C" __global__ void interaction_gradient(const u32 *__restrict__ runs, const u32 *__restrict__ entries,
                                                const u32 *__restrict__ entry_rows, const u64 *__restrict__ columns,
                                                const u64 *__restrict__ targets, const VALUE *__restrict__ values,
                                                const u64 *__restrict__ rows, u64 n_stored, const REAL *__restrict__ table,
                                                const f64 *__restrict__ sums, const REAL *__restrict__ grad,
                                                REAL *__restrict__ out, u64 width, u64 n) {
    u64 at = thread_id();
    if (at >= n) return;
    u64 run = at / width, column = at % width;
    u64 place = stored_row(rows, n_stored, columns[run]);
    f64 factor = place < n_stored ? table[place * width + column] : REAL(0);
    out[(targets ? targets[run] : run) * width + column] =
        interaction_slope(runs[run], runs[run + 1], entries, entry_rows, values, sums, grad, factor, width, column);
}

// The gradient with respect to what the csr stores, grad · Σ v · (sums - x v) for each entry. A
// warp has a row, and `lanes` threads of it an entry, each every lanes-th column of the table.
extern "C" __global__ void interaction_slopes(const u64 *__restrict__ starts, const u64 *__restrict__ ends, const ID *__restrict__ columns,
                                              const VALUE *__restrict__ values, const u64 *__restrict__ rows, u64 n_stored,
                                              const REAL *__restrict__ table, const f64 *__restrict__ sums,
                                              const REAL *__restrict__ grad, REAL *__restrict__ out, u64 n_rows, u64 width, u64 lanes) {
    u64 row = thread_id() / 32;
    if (row >= n_rows) return;
    u64 lane = threadIdx.x % lanes;
    for (u64 entry = starts[row] + threadIdx.x % 32 / lanes; entry < ends[row]; entry += 32 / lanes) {
        u64 place = stored_row(rows, n_stored, columns[entry]);
        f64 value = number(values, entry), sum = 0;
        for (u64 column = lane; place < n_stored && column < width; column += lanes) {
            f64 factor = table[place * width + column];
            sum += factor * (sums[row * width + column] - value * factor);
        }
        sum = group_sum(sum, (u32)lanes, group_mask((u32)lanes));
        if (lane == 0) out[entry] = (REAL)(grad[row] * sum);
    }
}
