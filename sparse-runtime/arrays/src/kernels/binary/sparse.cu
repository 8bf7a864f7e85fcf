// A function of two elements, one of a sparse array and one of a dense array, both of which may be
// repeated. Words: REAL; FORMULA, of the table; FIRST and SECOND, its variables; SPARSE, which of
// them is the sparse array's, 1 or 2; RANK, of the walk; ID, of columns.

__device__ inline REAL f(REAL FIRST, REAL SECOND, const numbers &attributes) { return FORMULA; }

__device__ inline REAL joined(REAL sparse, REAL dense, const numbers &attributes) {
    return SPARSE == 1 ? f(sparse, dense, attributes) : f(dense, sparse, attributes);
}

// Where the element of a number is in the sparse array, were all of it stored, and in the dense
// one.
__device__ inline void find_both(const walk &steps, u64 number, u64 &in_sparse, u64 &in_dense) {
    in_sparse = in_dense = 0;
#pragma unroll
    for (int axis = RANK - 1; axis >= 0; axis--) {
        u64 index = axis > 0 ? number % steps.extents[axis] : number;
        if (axis > 0) number /= steps.extents[axis];
        in_sparse += index * steps.first[axis];
        in_dense += index * steps.second[axis];
    }
}

// All elements, of a csr and a dense array.
extern "C" __global__ void csr_into_dense(const u64 *__restrict__ starts, const u64 *__restrict__ ends,
                                          const ID *__restrict__ columns, const REAL *__restrict__ values, u64 n_cols,
                                          const REAL *__restrict__ dense, walk steps, numbers attributes,
                                          REAL *__restrict__ out, u64 n) {
    u64 at = thread_id();
    if (at >= n) return;
    u64 in_sparse, in_dense;
    find_both(steps, at, in_sparse, in_dense);
    REAL stored = stored_at(starts, ends, columns, values, in_sparse / n_cols, in_sparse % n_cols);
    out[at] = joined(stored, dense[in_dense], attributes);
}

// Elements of a row_sparse array and a dense one: all, or, with a list, those of its rows.
extern "C" __global__ void rows_with_dense(const u64 *__restrict__ list, u64 size_of_listed, const u64 *__restrict__ rows,
                                           u64 n_stored, const REAL *__restrict__ values, u64 row_size,
                                           const REAL *__restrict__ dense, walk steps, numbers attributes,
                                           REAL *__restrict__ out, u64 n) {
    u64 at = thread_id();
    if (at >= n) return;
    u64 in_sparse, in_dense;
    find_both(steps, list ? list[at / size_of_listed] * size_of_listed + at % size_of_listed : at, in_sparse, in_dense);
    u64 stored = stored_row(rows, n_stored, in_sparse / row_size);
    REAL value = stored < n_stored ? values[stored * row_size + in_sparse % row_size] : REAL(0);
    out[at] = joined(value, dense[in_dense], attributes);
}

// The entries of a csr and a dense array, with steps from row to row and from column to column: a
// warp for each row.
extern "C" __global__ void entries_with_dense(const u64 *__restrict__ starts, const u64 *__restrict__ ends,
                                              const ID *__restrict__ columns, const REAL *__restrict__ dense, u64 row_step,
                                              u64 column_step, numbers attributes, REAL *__restrict__ values, u64 n_rows) {
    u64 row = thread_id() / 32;
    if (row >= n_rows) return;
    for (u64 entry = starts[row] + threadIdx.x % 32; entry < ends[row]; entry += 32)
        values[entry] = joined(values[entry], dense[row * row_step + columns[entry] * column_step], attributes);
}
