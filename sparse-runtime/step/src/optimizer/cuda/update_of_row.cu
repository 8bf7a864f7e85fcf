// A step of an update rule whose states are those of a row of weights. Words: REAL; STATES, how
// many a row carries; TERM, statements that make `term` of a gradient `g`; ROW, statements that
// change `state` by `mean`, of the terms; RECURRENCE, statements that change `w` by `g`; LANES, a
// power of two up to 32, the lanes that have a row.

__device__ inline REAL scaled(REAL g, f64 factor) { return factor == 1 ? g : (REAL)(g * factor); }

__device__ inline REAL term_of(REAL w, REAL g, REAL *state, const rule_step &step) {
    REAL term;
    TERM
    return term;
}

// For each row of a gradient that stores some, or, without `rows`, all of them. Without a gradient
// it is 0; else it is multiplied by `factor`.
extern "C" __global__ void update_of_row(const u64 *__restrict__ rows, const REAL *__restrict__ gradient, f64 factor, rule_step step,
                                         REAL *__restrict__ weights, REAL *__restrict__ states, u64 row_size, u64 n_rows) {
    u64 row = thread_id() / LANES;
    if (row >= n_rows) return;
    u64 to = rows ? rows[row] : row;
    u32 lane = threadIdx.x % LANES;
    REAL state[STATES], sum = 0;
    for (int place = 0; place < STATES; place++) state[place] = states[to * STATES + place];
    for (u64 column = lane; column < row_size; column += LANES) {
        REAL g = gradient ? scaled(gradient[row * row_size + column], factor) : REAL(0);
        sum += term_of(weights[to * row_size + column], g, state, step);
    }
    {
        REAL mean = group_sum(sum, LANES, group_mask(LANES)) / (REAL)row_size;
        ROW
    }
    for (u64 column = lane; column < row_size; column += LANES) {
        REAL w = weights[to * row_size + column], g = gradient ? scaled(gradient[row * row_size + column], factor) : REAL(0);
        { RECURRENCE }
        weights[to * row_size + column] = w;
    }
    if (lane == 0)
        for (int place = 0; place < STATES; place++) states[to * STATES + place] = state[place];
}
