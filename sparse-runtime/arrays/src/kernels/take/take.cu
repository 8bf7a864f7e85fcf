// Elements by their positions along an axis. Words: REAL; ID, of the positions.

// An element of the result for each element of an array before the axis, each id, and each of the
// `inner` elements after the axis. A row that a row_sparse array does not store is 0; an id that
// stands for no position gives NaN.
extern "C" __global__ void take(const u64 *__restrict__ rows, u64 n_stored, const REAL *__restrict__ values,
                                const ID *__restrict__ ids, u64 n_ids, u64 extent, u64 inner, u64 clip, u64 wrap,
                                REAL *__restrict__ out, u64 n) {
    u64 at = thread_id();
    if (at >= n) return;
    u64 place = place_of(ids[at / inner % n_ids], extent, clip, wrap);
    if (place == extent) {
        out[at] = sqrt((REAL)-1);
        return;
    }
    u64 row = stored_row(rows, n_stored, place), outer = at / inner / n_ids;
    out[at] = row < n_stored ? values[(outer * extent + row) * inner + at % inner] : 0;
}

// The position of each id; `extent` for those that stand for none.
extern "C" __global__ void places(const ID *__restrict__ ids, u64 n, u64 extent, u64 clip, u64 wrap,
                                  u64 *__restrict__ places) {
    u64 at = thread_id();
    if (at < n) places[at] = place_of(ids[at], extent, clip, wrap);
}
