// Sums of rows of a table, a bag of them for each row of a csr. Words: REAL; VALUE, what the csr
// stores; ID, of its columns.

// Of bags whose mean is taken: one over the number of entries, or over the sum of their values; 0
// where that is 0.
extern "C" __global__ void shares(const u64 *__restrict__ starts, const u64 *__restrict__ ends,
                                  const VALUE *__restrict__ values, u64 weighted, f64 *__restrict__ out, u64 n_bags) {
    u64 bag = thread_id();
    if (bag >= n_bags) return;
    f64 total = 0;
    for (u64 entry = starts[bag]; entry < ends[bag]; entry++) total += weighted ? (f64)number(values, entry) : 1;
    out[bag] = total == 0 ? total : 1 / total;
}

// `lanes` threads have a bag, each every lanes-th column of the table. Without `shares` they are 1.
extern "C" __global__ void embedding_bag(const u64 *__restrict__ starts, const u64 *__restrict__ ends,
                                         const ID *__restrict__ columns, const VALUE *__restrict__ values,
                                         const u64 *__restrict__ rows, u64 n_stored, const REAL *__restrict__ table,
                                         const f64 *__restrict__ shares, u64 weighted, REAL *__restrict__ out, u64 n_bags,
                                         u64 width, u64 lanes) {
    u64 bag = thread_id() / lanes;
    if (bag >= n_bags) return;
    REAL share = shares ? (REAL)shares[bag] : REAL(1);
    for (u64 column = threadIdx.x % lanes; column < width; column += lanes) {
        REAL sum = 0;
        for (u64 entry = starts[bag]; entry < ends[bag]; entry++) {
            u64 row = stored_row(rows, n_stored, columns[entry]);
            if (row >= n_stored) continue;
            sum += (weighted ? share * (REAL)number(values, entry) : share) * table[row * width + column];
        }
        out[bag * width + column] = sum;
    }
}
