// A function of two elements. Words: REAL; FORMULA, of the table; FIRST and SECOND, its variables;
// RANK, of the walk, 1 to 6.

__device__ inline REAL f(REAL FIRST, REAL SECOND, const numbers &attributes) { return FORMULA; }

// For the elements of arrays that broadcast to the result.
extern "C" __global__ void binary(const REAL *__restrict__ first, const REAL *__restrict__ second, walk steps,
                                  numbers attributes, REAL *__restrict__ out, u64 n) {
    u64 at = thread_id();
    if (at >= n) return;
    u64 rest = at, in_first = 0, in_second = 0;
#pragma unroll
    for (int axis = RANK - 1; axis >= 0; axis--) {
        u64 index = axis > 0 ? rest % steps.extents[axis] : rest;
        if (axis > 0) rest /= steps.extents[axis];
        in_first += index * steps.first[axis];
        in_second += index * steps.second[axis];
    }
    out[at] = f(first[in_first], second[in_second], attributes);
}

// For an array on the left and a number.
extern "C" __global__ void array_and_number(const REAL *__restrict__ first, f64 second, numbers attributes,
                                            REAL *__restrict__ out, u64 n) {
    u64 at = thread_id();
    if (at < n) out[at] = f(first[at], (REAL)second, attributes);
}

// For a number and an array on the right.
extern "C" __global__ void number_and_array(f64 first, const REAL *__restrict__ second, numbers attributes,
                                            REAL *__restrict__ out, u64 n) {
    u64 at = thread_id();
    if (at < n) out[at] = f((REAL)first, second[at], attributes);
}
