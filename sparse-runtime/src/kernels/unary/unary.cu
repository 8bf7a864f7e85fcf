// A function of each element. Words: REAL; FORMULA, of the table; FIRST, its variable.

extern "C" __global__ void unary(const REAL *__restrict__ values, numbers attributes, REAL *__restrict__ out, u64 n) {
    u64 at = thread_id();
    if (at >= n) return;
    REAL FIRST = values[at];
    out[at] = FORMULA;
}
