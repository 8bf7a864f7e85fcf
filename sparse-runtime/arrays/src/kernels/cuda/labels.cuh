// What the scores of a batch are compared with. Words: REAL; CLASS, the type of class ids;
// LABEL_ID, of the columns of labels that are a csr.

// A class for each row, or else dense labels, or else those of a csr; and weights of the rows,
// where there are any.
struct row_labels {
    const CLASS *classes;
    const REAL *dense;
    const u64 *starts, *ends;
    const LABEL_ID *columns;
    const REAL *stored;
    const REAL *weights;
};

// The label of a score of a row that has `k`.
__device__ inline REAL label_at(const row_labels &of, u64 row, u64 k, u64 at) {
    if (of.classes) return (u64)of.classes[row] == at ? REAL(1) : REAL(0);
    return of.dense ? of.dense[row * k + at] : stored_at(of.starts, of.ends, of.columns, of.stored, row, at);
}

// What the derivatives of a row are multiplied by; `share` is 1 / rows.
__device__ inline REAL share_of_row(const row_labels &of, u64 row, f64 share) {
    return of.weights ? (REAL)share * of.weights[row] : (REAL)share;
}
