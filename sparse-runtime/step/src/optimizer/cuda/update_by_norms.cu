// The end of a step that depends on norms of a whole parameter. Words: REAL; STATES, how many a
// weight carries; DIRECTION, statements that make `direction` of a weight `w` and `state`; RATE,
// statements that make `rate` of `weight_norm` and `direction_norm`.

__device__ inline REAL direction_of(REAL w, const REAL *states, u64 at, const rule_step &step) {
    REAL state[STATES], direction;
#pragma unroll
    for (int place = 0; place < STATES; place++) state[place] = states[at * STATES + place];
    DIRECTION
    return direction;
}

// The squares of the weights and of their directions, summed by groups of 32 lanes: two numbers a
// group, in `sums`.
extern "C" __global__ void squares(rule_step step, const REAL *__restrict__ weights, const REAL *__restrict__ states, f64 *__restrict__ sums, u64 n) {
    u64 group = thread_id() / 32, threads = (u64)gridDim.x * blockDim.x;
    f64 of_weights = 0, of_directions = 0;
    for (u64 at = thread_id(); at < n; at += threads) {
        REAL w = weights[at];
        f64 direction = direction_of(w, states, at, step);
        of_weights += (f64)w * w;
        of_directions += direction * direction;
    }
    of_weights = group_sum(of_weights, 32, group_mask(32));
    of_directions = group_sum(of_directions, 32, group_mask(32));
    if (threadIdx.x % 32) return;
    sums[2 * group] = of_weights;
    sums[2 * group + 1] = of_directions;
}

// The rate, of the sums of all groups, in a fixed order: behind them. By 32 threads.
extern "C" __global__ void rate_by_norms(rule_step step, f64 *__restrict__ sums, u64 groups) {
    f64 of_weights = 0, of_directions = 0;
    for (u64 group = thread_id(); group < groups; group += 32) {
        of_weights += sums[2 * group];
        of_directions += sums[2 * group + 1];
    }
    f64 weight_norm = sqrt(group_sum(of_weights, 32, group_mask(32)));
    f64 direction_norm = sqrt(group_sum(of_directions, 32, group_mask(32)));
    f64 rate;
    RATE
    if (thread_id() == 0) sums[2 * groups] = rate;
}

// Moves each weight along its direction.
extern "C" __global__ void move_by_norms(rule_step step, const REAL *__restrict__ states, const f64 *__restrict__ sums, REAL *__restrict__ weights, u64 groups, u64 n) {
    u64 at = thread_id();
    if (at >= n) return;
    REAL w = weights[at];
    weights[at] = w - (REAL)sums[2 * groups] * direction_of(w, states, at, step);
}
