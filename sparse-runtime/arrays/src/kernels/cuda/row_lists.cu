// Which rows a row_sparse result stores, and its values. Words: REAL; RANK, of the walk through a
// row; ID, of columns; FORMULA, of the table, and FIRST and SECOND, its variables.
//
// A list of rows is made of candidates: `bound`, which is no row, stands for those that are not
// stored.

__device__ inline REAL f(REAL FIRST, REAL SECOND, const numbers &attributes) { return FORMULA; }

// Rows of an array, or without `rows` the first n.
extern "C" __global__ void list_rows(const u64 *__restrict__ rows, u64 shift, u64 *__restrict__ list, u64 n) {
    u64 at = thread_id();
    if (at < n) list[at] = (rows ? rows[at] : at) + shift;
}

// Those that another array, or list, stores too.
extern "C" __global__ void list_common_rows(const u64 *__restrict__ rows, const u64 *__restrict__ others, u64 n_others, u64 bound,
                                            u64 *__restrict__ list, u64 n) {
    u64 at = thread_id();
    if (at >= n) return;
    u64 row = rows ? rows[at] : at;
    list[at] = row < bound && stored_row(others, n_others, row) < n_others ? row : bound;
}

// Which of some positions they are.
extern "C" __global__ void list_rows_of_part(const u64 *__restrict__ rows, spans positions, u64 *__restrict__ list, u64 n) {
    u64 at = thread_id();
    // What is none of them is their number, which is the bound.
    if (at < n) list[at] = span_find(positions, 0, rows ? rows[at] : at);
}

// The positions that they are.
extern "C" __global__ void list_rows_of_whole(const u64 *__restrict__ rows, spans positions, u64 *__restrict__ list, u64 n) {
    u64 at = thread_id();
    if (at < n) list[at] = span_at(positions, 0, rows ? rows[at] : at);
}

// Rows that have an element other than 0: a warp for each.
extern "C" __global__ void list_rows_not_zero(const REAL *__restrict__ values, u64 row_size, u64 *__restrict__ list, u64 n) {
    u64 row = thread_id() / 32;
    if (row >= n) return;
    u32 found = 0;
    for (u64 at = threadIdx.x % 32; at < row_size; at += 32) found |= values[row * row_size + at] != 0;
    found = group_max(found, 32, group_mask(32));
    if (threadIdx.x % 32 == 0) list[row] = found ? row : n;
}

// Rows that have an entry.
extern "C" __global__ void list_rows_not_empty(const u64 *__restrict__ starts, const u64 *__restrict__ ends,
                                               u64 *__restrict__ list, u64 n) {
    u64 row = thread_id();
    if (row < n) list[row] = starts[row] < ends[row] ? row : n;
}

// f of two arrays of one shape, whose rows are 0 where they are not stored.
extern "C" __global__ void combine_rows(const u64 *__restrict__ list, const u64 *__restrict__ first_rows, u64 n_first,
                                        const REAL *__restrict__ first, const u64 *__restrict__ second_rows, u64 n_second,
                                        const REAL *__restrict__ second, u64 row_size, numbers attributes,
                                        REAL *__restrict__ out, u64 n) {
    u64 at = thread_id();
    if (at >= n) return;
    u64 row = list[at / row_size], column = at % row_size;
    u64 left = stored_row(first_rows, n_first, row), right = stored_row(second_rows, n_second, row);
    REAL x = left < n_first ? first[left * row_size + column] : REAL(0);
    REAL y = right < n_second ? second[right * row_size + column] : REAL(0);
    out[at] = f(x, y, attributes);
}

// f of the rows of a row_sparse array and a csr.
extern "C" __global__ void combine_rows_with_csr(const u64 *__restrict__ list, const u64 *__restrict__ rows, u64 n_stored,
                                                 const REAL *__restrict__ values, const u64 *__restrict__ starts,
                                                 const u64 *__restrict__ ends, const ID *__restrict__ columns,
                                                 const REAL *__restrict__ entries, u64 row_size, numbers attributes,
                                                 REAL *__restrict__ out, u64 n) {
    u64 at = thread_id();
    if (at >= n) return;
    u64 row = list[at / row_size], column = at % row_size, stored = stored_row(rows, n_stored, row);
    REAL x = stored < n_stored ? values[stored * row_size + column] : REAL(0);
    out[at] = f(x, stored_at(starts, ends, columns, entries, row, column), attributes);
}

// A part of each row of an array: that at a position for each row listed, or where it is not stored
// zeros.
extern "C" __global__ void gather_rows(const u64 *__restrict__ list, spans positions, const u64 *__restrict__ rows, u64 n_stored,
                                       const REAL *__restrict__ values, u64 from_size, strided along, u64 row_size,
                                       REAL *__restrict__ out, u64 n) {
    u64 at = thread_id();
    if (at >= n) return;
    u64 stored = stored_row(rows, n_stored, span_at(positions, 0, list[at / row_size]));
    out[at] = stored < n_stored ? values[stored * from_size + place_in(along, RANK, at % row_size)] : REAL(0);
}

// The other way: rows of an array as a part of those listed which are at its positions, where it
// stores them.
extern "C" __global__ void place_rows(const u64 *__restrict__ list, spans positions, const u64 *__restrict__ rows, u64 n_stored,
                                      const REAL *__restrict__ values, u64 from_size, strided along, u64 row_size,
                                      REAL *__restrict__ out, u64 n) {
    u64 at = thread_id();
    if (at >= n) return;
    u64 number = at / from_size, column = at % from_size, row = span_find(positions, 0, list[number]);
    if (row == positions.count[0]) return;
    u64 stored = stored_row(rows, n_stored, row);
    if (stored < n_stored) out[number * row_size + place_in(along, RANK, column)] = values[stored * from_size + column];
}

// The entries of a csr's rows that are listed, into zeros: a warp for each.
extern "C" __global__ void scatter_listed_rows(const u64 *__restrict__ list, const u64 *__restrict__ starts,
                                               const u64 *__restrict__ ends, const ID *__restrict__ columns,
                                               const REAL *__restrict__ values, u64 row_size, REAL *__restrict__ out, u64 n) {
    u64 number = thread_id() / 32;
    if (number >= n) return;
    u64 row = list[number];
    for (u64 entry = starts[row] + threadIdx.x % 32; entry < ends[row]; entry += 32)
        out[number * row_size + columns[entry]] = values[entry];
}
