// A step of an update rule whose states are those of each weight. Words: REAL; STATES, how many a
// weight carries, or 0 where the rule uses none; NAMED, how many names its recurrence has for them;
// RECURRENCE, statements that change `w` by `g`, and `state`.

// Changes the weight of a number, and its states, by its gradient.
__device__ inline void update_weight(REAL *weights, REAL *states, u64 to, REAL g, const rule_step &step) {
    REAL w = weights[to];
    REAL state[NAMED] = {};
#pragma unroll
    for (int place = 0; place < STATES; place++) state[place] = states[to * STATES + place];
    { RECURRENCE }
    weights[to] = w;
#pragma unroll
    for (int place = 0; place < STATES; place++) states[to * STATES + place] = state[place];
}
