// The second-order term of a row of a factorization machine, and a row of its gradient, which
// kernels and fused steps are made of. Words: REAL; VALUE, what the csr stores; ID, of its columns.

// The calling lane's part of twice the term of a row, of which it has every `lanes`-th column of
// the table: the square of Σ x v over the entries less the squares of all terms. With `sums` it
// writes Σ x v for its columns.
__device__ inline f64 interaction_of_row(u64 start, u64 end, const ID *columns, const VALUE *values, const u64 *rows, u64 n_stored,
                                         const REAL *table, u64 width, u32 lanes, f64 *sums) {
    f64 total = 0;
    for (u64 column = threadIdx.x % lanes; column < width; column += lanes) {
        f64 sum = 0, squares = 0;
        for (u64 entry = start; entry < end; entry++) {
            u64 place = stored_row(rows, n_stored, columns[entry]);
            if (place >= n_stored) continue;
            f64 term = (f64)number(values, entry) * table[place * width + column];
            sum += term;
            squares += term * term;
        }
        if (sums) sums[column] = sum;
        total += sum * sum - squares;
    }
    return total;
}

// An element of the gradient, `factor` being that of the table: Σ grad · x · (sums - x v) over a
// run of a column's entries, in their order.
__device__ inline REAL interaction_slope(u32 start, u32 end, const u32 *entries, const u32 *entry_rows, const VALUE *values, const f64 *sums,
                                         const REAL *grad, f64 factor, u64 width, u64 column) {
    f64 sum = 0;
    for (u32 next = start; next < end; next++) {
        u32 entry = entries[next], row = entry_rows[entry];
        f64 value = number(values, entry);
        sum += grad[row] * value * (sums[row * width + column] - value * factor);
    }
    return (REAL)sum;
}
