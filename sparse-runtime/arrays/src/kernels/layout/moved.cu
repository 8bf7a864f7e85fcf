// Elements of dense arrays in another order, repeated, and among others. Words: REAL; RANK and
// OTHER, numbers of axes.

// Each element from where it lies.
extern "C" __global__ void gather_elements(const REAL *__restrict__ values, strided along, REAL *__restrict__ out, u64 n) {
    u64 at = thread_id();
    if (at < n) out[at] = values[place_in(along, RANK, at)];
}

// Each element to where it belongs, which no two share.
extern "C" __global__ void place_elements(const REAL *__restrict__ values, strided along, REAL *__restrict__ out, u64 n) {
    u64 at = thread_id();
    if (at < n) out[place_in(along, RANK, at)] = values[at];
}

// The sum of the repetitions of each element, in their order and in f64: of a bias they are the
// rows of the batch. RANK axes were kept, OTHER are repetitions.
extern "C" __global__ void sum_repetitions(const REAL *__restrict__ values, strided kept, strided repeated, u64 repetitions,
                                           REAL *__restrict__ out, u64 n) {
    u64 at = thread_id();
    if (at >= n) return;
    u64 first = place_in(kept, RANK, at);
    f64 sum = 0;
    for (u64 number = 0; number < repetitions; number++) sum += values[first + place_in(repeated, OTHER, number)];
    out[at] = (REAL)sum;
}
