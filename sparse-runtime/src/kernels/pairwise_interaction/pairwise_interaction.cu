// The second-order term of a factorization machine, and its gradient. Words: REAL; VALUE, what the csr stores; ID, of its columns.

// A warp has a row, each lane every 32nd column of the table: Σ x v over the entries, for each column in `sums`, and in `out` half of the sum
// of their squares less the squares of all terms. Either may be left out.
extern "C" __global__ void interaction(const u64 *__restrict__ starts, const u64 *__restrict__ ends,
                                       const ID *__restrict__ columns, const VALUE *__restrict__ values,
                                       const u64 *__restrict__ rows, u64 n_stored, const REAL *__restrict__ table,
                                       f64 *__restrict__ sums, REAL *__restrict__ out, u64 n_rows, u64 width) {
    u64 row = thread_id() / 32;
    if (row >= n_rows) return;
    u32 lane = threadIdx.x % 32;
    f64 total = 0;
    for (u64 column = lane; column < width; column += 32) {
        f64 sum = 0, squares = 0;
        for (u64 entry = starts[row]; entry < ends[row]; entry++) {
            u64 place = stored_row(rows, n_stored, columns[entry]);
            if (place >= n_stored) continue;
            f64 term = (f64)number(values, entry) * table[place * width + column];
            sum += term;
            squares += term * term;
        }
        if (sums) sums[row * width + column] = sum;
        total += sum * sum - squares;
    }
    total = group_sum(total, 32, group_mask(32));
    if (out && lane == 0) out[row] = (REAL)(0.5 * total);
}

// For each column of the csr that occurs, a run of `entries`, Σ grad · x · (sums - x v) over the rows that have it, in their order. With
// `targets` the row of the result is the column, else its rank.
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
    f64 sum = 0;
    for (u32 next = runs[run]; next < runs[run + 1]; next++) {
        u32 entry = entries[next], row = entry_rows[entry];
        f64 value = number(values, entry);
        sum += grad[row] * value * (sums[row * width + column] - value * factor);
    }
    out[(targets ? targets[run] : run) * width + column] = (REAL)sum;
}
