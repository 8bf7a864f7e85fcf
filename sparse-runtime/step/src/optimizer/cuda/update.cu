// A step of an update rule, of the recurrence of `update.cuh`.

__device__ inline REAL scaled(REAL g, f64 factor) { return factor == 1 ? g : (REAL)(g * factor); }

// For each element of a gradient that stores some rows, or, without `rows`, all of them. Without a
// gradient it is 0; else it is multiplied by `factor`.
extern "C" __global__ void update(const u64 *__restrict__ rows, const REAL *__restrict__ gradient, f64 factor, rule_step step,
                                  REAL *__restrict__ weights, REAL *__restrict__ states, u64 row_size, u64 n) {
    u64 at = thread_id();
    if (at >= n) return;
    u64 to = rows ? rows[at / row_size] * row_size + at % row_size : at;
    update_weight(weights, states, to, gradient ? scaled(gradient[at], factor) : REAL(0), step);
}
