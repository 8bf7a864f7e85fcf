// One element along an axis for each id. Words: REAL; ID, of the positions; COLUMN, of a csr.
//
// For each element before and after the axis, of which there are `inner`, there is an id; one that
// stands for no position gives NaN.

// Of a row_sparse array, or a dense one, which stores all rows: `row_size` elements each.
extern "C" __global__ void pick(const u64 *__restrict__ rows, u64 n_stored, const REAL *__restrict__ values, u64 row_size,
                                const ID *__restrict__ ids, u64 extent, u64 inner, u64 clip, u64 wrap,
                                REAL *__restrict__ out, u64 n) {
    u64 at = thread_id();
    if (at >= n) return;
    u64 place = place_of(ids[at], extent, clip, wrap);
    if (place == extent) {
        out[at] = sqrt((REAL)-1);
        return;
    }
    u64 whole = (at / inner * extent + place) * inner + at % inner;
    u64 stored = stored_row(rows, n_stored, whole / row_size);
    out[at] = stored < n_stored ? values[stored * row_size + whole % row_size] : REAL(0);
}

// Of a csr.
extern "C" __global__ void pick_entry(const u64 *__restrict__ starts, const u64 *__restrict__ ends,
                                      const COLUMN *__restrict__ columns, const REAL *__restrict__ values, u64 n_cols,
                                      const ID *__restrict__ ids, u64 extent, u64 inner, u64 clip, u64 wrap,
                                      REAL *__restrict__ out, u64 n) {
    u64 at = thread_id();
    if (at >= n) return;
    u64 place = place_of(ids[at], extent, clip, wrap);
    if (place == extent) {
        out[at] = sqrt((REAL)-1);
        return;
    }
    u64 whole = (at / inner * extent + place) * inner + at % inner;
    out[at] = stored_at(starts, ends, columns, values, whole / n_cols, whole % n_cols);
}

// The other way: each element, or without any a one, to where it was picked.
extern "C" __global__ void place_picked(const REAL *__restrict__ values, const ID *__restrict__ ids, u64 extent, u64 inner,
                                        u64 clip, u64 wrap, REAL *__restrict__ out, u64 n) {
    u64 at = thread_id();
    if (at >= n) return;
    u64 place = place_of(ids[at], extent, clip, wrap);
    if (place < extent) out[(at / inner * extent + place) * inner + at % inner] = values ? values[at] : REAL(1);
}
