// The mean that partial sums are of. Words: REAL.

extern "C" __global__ void mean_of_parts(const f64 *__restrict__ partial, u64 parts, f64 n, REAL *__restrict__ out) {
    if (thread_id() > 0) return;
    f64 sum = 0;
    for (u64 part = 0; part < parts; part++) sum += partial[part];
    *out = (REAL)(sum / n);
}
