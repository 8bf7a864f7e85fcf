// A function of each element. Words: REAL; FORMULA, of the table; FIRST, its variable.

__device__ inline REAL f(REAL FIRST, const numbers &attributes) { return FORMULA; }

extern "C" __global__ void unary(const REAL *__restrict__ values, numbers attributes, REAL *__restrict__ out, u64 n) {
    u64 at = thread_id();
    if (at < n) out[at] = f(values[at], attributes);
}
