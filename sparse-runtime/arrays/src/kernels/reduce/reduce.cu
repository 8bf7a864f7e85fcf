// Reductions over axes, in f64. Words: ELEMENT, of the array; ID, of a csr's columns; REAL, f64;
// MAP and FINISH, formulas of the table; COMBINE, how elements are combined; OUTER and INNER, the
// numbers of axes that are kept and reduced, at least 1; GROUP, the threads that make one result:
// 1, or all THREADS of a block.
//
// What is reduced to one result is cut into `parts` runs, each of which gives a partial result;
// these are combined in their order. The order of every combination depends on sizes alone.

#define THREADS 256

struct Sum {
    static const bool sees_zeros = false;
    static __device__ f64 start() { return 0; }
    static __device__ f64 join(f64 a, f64 b) { return a + b; }
};
struct Product {
    static const bool sees_zeros = true;
    static __device__ f64 start() { return 1; }
    static __device__ f64 join(f64 a, f64 b) { return a * b; }
};
struct Largest {
    static const bool sees_zeros = true;
    static __device__ f64 start() { return -1.0 / 0.0; }
    static __device__ f64 join(f64 a, f64 b) { return b > a || b != b ? b : a; }
};
struct Smallest {
    static const bool sees_zeros = true;
    static __device__ f64 start() { return 1.0 / 0.0; }
    static __device__ f64 join(f64 a, f64 b) { return b < a || b != b ? b : a; }
};

__device__ inline f64 map(f64 x, const numbers &attributes) { return MAP; }
__device__ inline f64 finish(f64 s, f64 n, const numbers &attributes) { return FINISH; }

// The position of an element of `rank` axes.
__device__ inline u64 position(const axes &along, int rank, u64 index) {
    u64 position = 0;
    for (int axis = rank - 1; axis >= 0; axis--) {
        position += (axis > 0 ? index % along.extents[axis] : index) * along.steps[axis];
        if (axis > 0) index /= along.extents[axis];
    }
    return position;
}

extern "C" __global__ void reduce_parts(const ELEMENT *__restrict__ values, axes kept, axes reduced, numbers attributes,
                                        f64 *__restrict__ partial, u64 n_results, u64 n_reduced, u64 part) {
    u64 result = thread_id() / GROUP;
    f64 sum = COMBINE::start();
    if (result < n_results) {
        u64 base = position(kept, OUTER, result);
        u64 end = min(n_reduced, (blockIdx.y + 1) * part);
        for (u64 index = blockIdx.y * part + threadIdx.x % GROUP; index < end; index += GROUP) {
            f64 x = values[base + position(reduced, INNER, index)];
            sum = COMBINE::join(sum, map(x, attributes));
        }
    }
#if GROUP > 1
    __shared__ f64 sums[THREADS];
    sums[threadIdx.x] = sum;
    for (u32 half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) sums[threadIdx.x] = COMBINE::join(sums[threadIdx.x], sums[threadIdx.x + half]);
    }
    sum = sums[0];
#endif
    if (result < n_results && threadIdx.x % GROUP == 0) partial[blockIdx.y * n_results + result] = sum;
}

// What was combined, and where some elements were not stored a zero.
__device__ inline ELEMENT finished(f64 sum, u64 zeros, u64 n_reduced, const numbers &attributes) {
    if (COMBINE::sees_zeros && zeros) sum = COMBINE::join(sum, map(0, attributes));
    return (ELEMENT)finish(sum, (f64)n_reduced, attributes);
}

// With `rows` the results are those of these rows of the whole, `of_row` each.
extern "C" __global__ void combine_parts(const f64 *__restrict__ partial, u64 parts, numbers attributes, u64 zeros,
                                         const u64 *__restrict__ rows, u64 of_row, ELEMENT *__restrict__ out, u64 n_results,
                                         u64 n_reduced) {
    u64 result = thread_id();
    if (result >= n_results) return;
    f64 sum = COMBINE::start();
    for (u64 part = 0; part < parts; part++) sum = COMBINE::join(sum, partial[part * n_results + result]);
    u64 to = rows ? rows[result / of_row] * of_row + result % of_row : result;
    out[to] = finished(sum, zeros, n_reduced, attributes);
}

// What a result is that nothing is stored of.
extern "C" __global__ void fill_reduced(numbers attributes, u64 zeros, ELEMENT *__restrict__ out, u64 n, u64 n_reduced) {
    u64 at = thread_id();
    if (at < n) out[at] = finished(COMBINE::start(), zeros, n_reduced, attributes);
}

// The rows of a csr: a warp for each, whose lanes combine every 32nd entry and then each other's
// results.
extern "C" __global__ void reduce_rows(const u64 *__restrict__ starts, const u64 *__restrict__ ends, const ELEMENT *__restrict__ values,
                                       numbers attributes, ELEMENT *__restrict__ out, u64 n_rows, u64 n_cols) {
    u64 row = thread_id() / 32;
    if (row >= n_rows) return;
    u64 start = starts[row], end = ends[row];
    f64 sum = COMBINE::start();
    for (u64 entry = start + threadIdx.x % 32; entry < end; entry += 32) sum = COMBINE::join(sum, map(values[entry], attributes));
    for (u32 distance = 16; distance > 0; distance /= 2)
        sum = COMBINE::join(sum, __shfl_xor_sync(0xffffffffu, sum, distance, 32));
    if (threadIdx.x % 32 == 0) out[row] = finished(sum, end - start < n_cols, n_cols, attributes);
}

// The columns that occur in a csr: a thread for each, in the order of the rows.
extern "C" __global__ void reduce_columns(const u64 *__restrict__ columns, const u32 *__restrict__ runs,
                                          const u32 *__restrict__ entries, const ELEMENT *__restrict__ values,
                                          numbers attributes, ELEMENT *__restrict__ out, u64 n_runs, u64 n_rows) {
    u64 run = thread_id();
    if (run >= n_runs) return;
    f64 sum = COMBINE::start();
    for (u32 at = runs[run]; at < runs[run + 1]; at++) sum = COMBINE::join(sum, map(values[entries[at]], attributes));
    out[columns[run]] = finished(sum, runs[run + 1] - runs[run] < n_rows, n_rows, attributes);
}

// Each entry of a csr by itself.
extern "C" __global__ void reduce_entries(const u64 *__restrict__ starts, const u64 *__restrict__ ends, const ID *__restrict__ columns,
                                          const ELEMENT *__restrict__ values, numbers attributes, ELEMENT *__restrict__ out,
                                          u64 n_rows, u64 n_cols) {
    u64 row = thread_id() / 32;
    if (row >= n_rows) return;
    for (u64 entry = starts[row] + threadIdx.x % 32; entry < ends[row]; entry += 32)
        out[row * n_cols + columns[entry]] = finished(map(values[entry], attributes), 0, 1, attributes);
}
