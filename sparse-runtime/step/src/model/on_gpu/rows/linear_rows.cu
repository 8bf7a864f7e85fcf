// A batch of a generalised linear model up to the derivatives of its loss by the scores: of each
// row of a csr the product with weights, plus the interactions of a factorization machine, plus a
// bias, the loss of these scores, and its derivatives. The sums are those of `dot.cuh` and
// `pairwise_interaction.cuh`, the loss is that of the text before this one. Words: theirs; SINGLE,
// 1 where a row has one score, whose sum its lanes share, else 0, where each lane has scores of its
// own; FACTORS, 1 where there are interactions, of a single score.

#define THREADS 256
#define GROUPS (THREADS / LANES)

// A block has a run of `part` rows, a group one row at a time. `bias` is read by its step from
// score to score; without `scores` these are not written, nor the sums of the interactions without
// `factor_sums`. `share` is 1 / rows. Where derivatives of samples are `kept`, `usage` is not 0.
extern "C" __global__ void linear_rows(const u64 *__restrict__ starts, const u64 *__restrict__ ends, const ID *__restrict__ columns,
                                       const VALUE *__restrict__ values, const REAL *__restrict__ weights, u64 n_weights,
                                       const REAL *__restrict__ factors, u64 width, f64 *__restrict__ factor_sums,
                                       const REAL *__restrict__ bias, u64 bias_step, const CLASS *__restrict__ classes,
                                       const REAL *__restrict__ labels, const u64 *__restrict__ label_starts,
                                       const u64 *__restrict__ label_ends, const LABEL_ID *__restrict__ label_columns,
                                       const REAL *__restrict__ label_values, const REAL *__restrict__ row_weights,
                                       numbers attributes, f64 *__restrict__ partial, REAL *__restrict__ scores,
                                       REAL *__restrict__ gradient, const u64 *__restrict__ samples,
                                       REAL *__restrict__ kept, u64 usage, u64 n_rows, u64 k, u64 part, f64 share) {
    __shared__ REAL of_groups[GROUPS][LANES * STEPS];
    __shared__ f64 sums[GROUPS];
    u32 lane = threadIdx.x % LANES, group = threadIdx.x / LANES;
    row_labels of_batch = {classes, labels, label_starts, label_ends, label_columns, label_values, row_weights};
    // A lane reads no other scores than it writes.
    REAL *own = of_groups[group];
    f64 sum = 0;
    u64 end = min(n_rows, (blockIdx.x + 1) * part);
    for (u64 row = blockIdx.x * part + group; row < end; row += GROUPS) {
        REAL products[STEPS] = {};
#if SINGLE
        products[0] = sum_of_row(starts[row], ends[row], columns, values, nullptr, n_weights, weights);
#else
        add_row(products, starts[row], ends[row], columns, values, nullptr, n_weights, weights, k, 1, lane, k);
#endif
#if FACTORS
        f64 *of_row_sums = factor_sums ? factor_sums + row * width : nullptr;
        f64 twice = interaction_of_row(starts[row], ends[row], columns, values, nullptr, n_weights, factors, width, LANES, of_row_sums);
        products[0] += (REAL)(0.5 * group_sum(twice, LANES, group_mask(LANES)));
#endif
#pragma unroll
        for (u32 step = 0; step < STEPS; step++) {
            u64 column = lane + step * LANES;
            if (column >= k) continue;
            REAL score = bias ? products[step] + bias[column * bias_step] : products[step];
            own[column] = score;
            if (scores) scores[row * k + column] = score;
        }
        summary of = of_row(own, k, LANES);
        f64 loss = loss_of_row(of, own, of_batch, attributes, row, k, LANES);
        sum += row_weights ? loss * row_weights[row] : loss;
        // Of the loss by itself where they are corrected.
        row_labels of_slopes = of_batch;
        if (usage) of_slopes.weights = nullptr;
        slopes_of_row(of, own, of_slopes, attributes, row, k, LANES, usage ? 1 : share, gradient + row * k);
        if (usage) correct_row(gradient + row * k, samples, kept, usage, row, k, LANES, share_of_row(of_batch, row, share));
    }
    sum = group_sum(sum, LANES, group_mask(LANES));
    if (lane == 0) sums[group] = sum;
    for (u32 half = GROUPS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    }
    if (threadIdx.x == 0) partial[blockIdx.x] = sums[0];
}
