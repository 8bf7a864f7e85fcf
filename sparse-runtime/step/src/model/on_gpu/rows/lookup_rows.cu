// A batch whose rows name rows of tables by ids, up to the derivatives of its loss: of each row of
// the batch the inner products of two rows, plus rows of one element, a bias and a number, the loss
// of this score, its derivative, and those by the rows of the products. The loss is that of the
// text before this one. Words: those of `loss.cuh`; LANES, a power of two up to 32, the lanes of a
// group; INNERS and ELEMENTS, how many products and rows of one element there are.

#define THREADS 256
#define GROUPS (THREADS / LANES)

// The row of a table that a row of the batch names; nothing where the id is none.
__device__ inline const REAL *named_row(const lookups &of, int table, u64 row, u64 size) {
    bool is_wide = of.wide >> table & 1;
    u64 id = is_wide ? ((const u64 *)of.ids[table])[row] : ((const u32 *)of.ids[table])[row];
    return id < of.extents[table] ? (const REAL *)of.tables[table] + id * size : nullptr;
}

// An element of it; not a number where there is none.
__device__ inline REAL element(const REAL *row, u64 column) { return row ? row[column] : sqrt((REAL)-1); }

// A block has a run of `part` rows, a group one row at a time, of which each lane has every
// LANES-th element of the rows of products, `width` in all; what comes of their sum every lane
// computes. Without `scores` these are not written. `share` is 1 / rows.
extern "C" __global__ void lookup_rows(lookups of, u64 width, const REAL *__restrict__ bias, f64 constant,
                                       const REAL *__restrict__ labels, const REAL *__restrict__ row_weights, numbers attributes,
                                       f64 *__restrict__ partial, REAL *__restrict__ scores, REAL *__restrict__ gradient, u64 n_rows,
                                       u64 part, f64 share) {
    __shared__ f64 sums[GROUPS];
    u32 lane = threadIdx.x % LANES, group = threadIdx.x / LANES;
    row_labels of_batch = {nullptr, labels, nullptr, nullptr, nullptr, nullptr, row_weights};
    f64 sum = 0;
    u64 end = min(n_rows, (blockIdx.x + 1) * part);
    for (u64 row = blockIdx.x * part + group; row < end; row += GROUPS) {
        REAL score = (REAL)constant;
        if (bias) score += *bias;
#pragma unroll
        for (int at = 0; at < INNERS; at++) {
            const REAL *left = named_row(of, 2 * at, row, width), *right = named_row(of, 2 * at + 1, row, width);
            REAL product = 0;
            for (u64 column = lane; column < width; column += LANES) product += element(left, column) * element(right, column);
            score += group_sum(product, LANES, group_mask(LANES)) * (REAL)of.shares[at];
        }
#pragma unroll
        for (int at = 0; at < ELEMENTS; at++) score += element(named_row(of, 2 * INNERS + at, row, 1), 0);
        summary of_score = of_row(&score, 1, 1);
        f64 loss = loss_of_row(of_score, &score, of_batch, attributes, row, 1, 1);
        sum += row_weights ? loss * row_weights[row] : loss;
        REAL slope;
        slopes_of_row(of_score, &score, of_batch, attributes, row, 1, 1, share, &slope);
        if (lane == 0) {
            if (scores) scores[row] = score;
            gradient[row] = slope;
        }
#pragma unroll
        for (int at = 0; at < INNERS; at++) {
            const REAL *left = named_row(of, 2 * at, row, width), *right = named_row(of, 2 * at + 1, row, width);
            REAL *by_left = (REAL *)of.derivatives[2 * at] + row * width, *by_right = (REAL *)of.derivatives[2 * at + 1] + row * width;
            REAL of_product = slope * (REAL)of.shares[at];
            for (u64 column = lane; column < width; column += LANES) {
                REAL of_left = element(left, column), of_right = element(right, column);
                by_left[column] = of_product * of_right;
                by_right[column] = of_product * of_left;
            }
        }
    }
    if (lane == 0) sums[group] = sum;
    for (u32 half = GROUPS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    }
    if (threadIdx.x == 0) partial[blockIdx.x] = sums[0];
}
