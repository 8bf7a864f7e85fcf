// Reductions of a dense array over axes, in f64. Words: ELEMENT, of the array; REAL, f64; MAP and FINISH, formulas of the table;
// COMBINE, how elements are combined; OUTER and INNER, the numbers of axes that are kept and reduced, at least 1; GROUP, the
// threads that make one result: 1, or all THREADS of a block.
//
// What is reduced to one result is cut into `parts` runs, each of which gives a partial result; these are combined in their order.
// The order of every combination depends on sizes alone.

#define THREADS 256

struct Sum {
    static __device__ f64 start() { return 0; }
    static __device__ f64 join(f64 a, f64 b) { return a + b; }
};
struct Product {
    static __device__ f64 start() { return 1; }
    static __device__ f64 join(f64 a, f64 b) { return a * b; }
};
struct Largest {
    static __device__ f64 start() { return -1.0 / 0.0; }
    static __device__ f64 join(f64 a, f64 b) { return b > a || b != b ? b : a; }
};
struct Smallest {
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

extern "C" __global__ void combine_parts(const f64 *__restrict__ partial, u64 parts, numbers attributes,
                                         ELEMENT *__restrict__ out, u64 n_results, u64 n_reduced) {
    u64 result = thread_id();
    if (result >= n_results) return;
    f64 sum = COMBINE::start();
    for (u64 part = 0; part < parts; part++) sum = COMBINE::join(sum, partial[part * n_results + result]);
    out[result] = (ELEMENT)finish(sum, (f64)n_reduced, attributes);
}
