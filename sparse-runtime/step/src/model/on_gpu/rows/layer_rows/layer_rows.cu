// A batch whose rows go through dense layers: up to the derivatives of its loss by what the rows
// read, and the gradients of dense parameters. What becomes of a row is made from a model's plan:
// statements that call the functions below. The loss is that of the text before this one.
//
// Words: those of the loss; LANES, a power of two up to 32, the lanes of a group; THREADS of a
// block; WEIGHTS, how many the dense parameters are; WIDTH, how many numbers a row of the batch
// keeps; FUNCTIONS of elements; LOAD, statements that read the dense parameters; ROW, those of a
// row; SUMS, ADD and WRITE, those that declare sums, add some rows to them, and write them; N_SUMS,
// how many they are; TARGET, where the sum of the number `at` goes. Of the csr number i, COLUMN_i
// and VALUE_i are the types of its columns and of what it stores, ID_i those of ids.

#define GROUPS (THREADS / LANES)

// The arrays that the statements know by number, and numbers.
struct arrays {
    u64 at[40];
};

template <class T> __device__ inline T *array(const arrays &of, int number) { return (T *)of.at[number]; }

// All lanes of a group see what each of them wrote.
__device__ inline void together() { __syncwarp(group_mask(LANES)); }

// The functions below are called by all lanes of a group: each has every LANES-th number of a row,
// and reads no other ones unless it says so.

// A row of the batch.
template <int COLUMNS> __device__ inline void copy_row(const REAL *from, REAL *to) {
    for (u32 column = threadIdx.x % LANES; column < COLUMNS; column += LANES) to[column] = from[column];
}

// The sum of the rows of a table that a row of a csr names: with WEIGHTED each times what is
// stored, with MEAN divided by their number or by the sum of what is stored. ACROSS lanes have the
// columns, as many others each have some of the entries.
template <int COLUMNS, int ACROSS, int WEIGHTED, int MEAN, class Id, class Value>
__device__ inline void read_named(const u64 *starts, const u64 *ends, const Id *columns, const Value *values, const REAL *table, u64 row,
                                  REAL *to) {
    u64 start = starts[row], end = ends[row];
    u32 lane = threadIdx.x % LANES, slot = lane / ACROSS, mask = group_mask(LANES);
    REAL share = 1;
    if (MEAN) {
        f64 total = 0;
        for (u64 entry = start + lane; entry < end; entry += LANES) total += WEIGHTED ? (f64)number(values, entry) : 1;
        total = group_sum(total, LANES, mask);
        share = (REAL)(total == 0 ? total : 1 / total);
    }
#pragma unroll
    for (u32 first = 0; first < COLUMNS; first += ACROSS) {
        u32 column = first + lane % ACROSS;
        REAL sum = 0;
        if (column < COLUMNS) {
#pragma unroll 4
            for (u64 entry = start + slot; entry < end; entry += LANES / ACROSS) {
                REAL factor = WEIGHTED ? share * (REAL)number(values, entry) : share;
                sum += factor * table[(u64)columns[entry] * COLUMNS + column];
            }
        }
#pragma unroll
        for (u32 distance = ACROSS; distance < LANES; distance *= 2) sum += __shfl_xor_sync(mask, sum, distance, LANES);
        if (slot == 0 && column < COLUMNS) to[column] = sum;
    }
}

// The row of a table that an id names; not numbers where it names none.
template <int COLUMNS, class Id>
__device__ inline void take_row(const Id *ids, u64 extent, u64 clip, u64 wrap, const REAL *table, u64 row, REAL *to) {
    u64 place = place_of(ids[row], extent, clip, wrap);
    for (u32 column = threadIdx.x % LANES; column < COLUMNS; column += LANES)
        to[column] = place < extent ? table[place * COLUMNS + column] : sqrt((REAL)-1);
}

// The product of a row and a matrix, which is read by its steps, plus a bias where there is one. It
// reads all of the row.
template <int INNER, int COLUMNS, int ROW_STEP, int COLUMN_STEP>
__device__ inline void product(const REAL *x, const REAL *matrix, const REAL *bias, REAL *to) {
    for (u32 column = threadIdx.x % LANES; column < COLUMNS; column += LANES) {
        REAL sum = 0;
        for (u32 inner = 0; inner < INNER; inner++) sum += x[inner] * matrix[inner * ROW_STEP + column * COLUMN_STEP];
        to[column] = bias ? sum + bias[column] : sum;
    }
}

// The same of one column, whose sum the lanes share.
template <int INNER, int ROW_STEP> __device__ inline void inner_product(const REAL *x, const REAL *matrix, const REAL *bias, REAL *to) {
    REAL sum = 0;
    for (u32 inner = threadIdx.x % LANES; inner < INNER; inner += LANES) sum += x[inner] * matrix[inner * ROW_STEP];
    sum = group_sum(sum, LANES, group_mask(LANES));
    if (threadIdx.x % LANES == 0) to[0] = bias ? sum + bias[0] : sum;
}

// The sum of a row over `count`.
template <int COLUMNS> __device__ inline void total(const REAL *x, REAL count, REAL *to) {
    REAL sum = 0;
    for (u32 column = threadIdx.x % LANES; column < COLUMNS; column += LANES) sum += x[column];
    sum = group_sum(sum, LANES, group_mask(LANES));
    if (threadIdx.x % LANES == 0) to[0] = sum / count;
}

// A number in every place, times `factor`. It reads the number of another lane.
template <int COLUMNS> __device__ inline void repeat(const REAL *x, REAL factor, REAL *to) {
    for (u32 column = threadIdx.x % LANES; column < COLUMNS; column += LANES) to[column] = x[0] * factor;
}

template <int COLUMNS> __device__ inline void softmax_row(const REAL *x, REAL *to) {
    u32 lane = threadIdx.x % LANES, mask = group_mask(LANES);
    REAL largest = -1.0 / 0.0, total = 0;
    for (u32 column = lane; column < COLUMNS; column += LANES) largest = max(largest, x[column]);
    largest = group_max(largest, LANES, mask);
    for (u32 column = lane; column < COLUMNS; column += LANES) total += exp(x[column] - largest);
    total = group_sum(total, LANES, mask);
    for (u32 column = lane; column < COLUMNS; column += LANES) to[column] = exp(x[column] - largest) / total;
}

// The derivatives of the mean of the losses by the scores of a row; returns the lane's part of the
// row's loss.
template <int COLUMNS>
__device__ inline f64 lose(const REAL *scores, const row_labels &labels, const numbers &attributes, u64 row, f64 share, REAL *to) {
    summary of = of_row(scores, COLUMNS, LANES);
    f64 loss = loss_of_row(of, scores, labels, attributes, row, COLUMNS, LANES);
    slopes_of_row(of, scores, labels, attributes, row, COLUMNS, LANES, share, to);
    return labels.weights ? loss * labels.weights[row] : loss;
}

// A row that others read, where anybody does.
template <int COLUMNS> __device__ inline void keep(const REAL *row_of, REAL *to, u64 row) {
    if (to) copy_row<COLUMNS>(row_of, to + row * COLUMNS);
}

// The functions below are called by all threads of a block. A thread has every THREADS-th of some
// sums, which it keeps in registers.

// A matrix whose rows are `STEP` apart.
template <int ROWS, int COLUMNS, int STEP> __device__ inline void load(const REAL *from, REAL *to) {
    for (u32 at = threadIdx.x; at < ROWS * COLUMNS; at += THREADS) to[at / COLUMNS * STEP + at % COLUMNS] = from[at];
}

// Sums are in f64. So many rows of the batch are added in REAL before: an element is off by 4 units
// in the last place at most.
#define FEW 8

// Adds the products of all elements of two rows, of `count` rows of the batch.
template <int INNER, int COLUMNS, int EACH>
__device__ inline void add_outer(f64 (&sums)[EACH], const REAL *left, const REAL *right, u32 count) {
    for (u32 first = 0; first < count; first += FEW) {
        u32 end = min(count, first + FEW);
#pragma unroll
        for (u32 each = 0; each < EACH; each++) {
            u32 at = threadIdx.x + each * THREADS;
            if (at >= INNER * COLUMNS) continue;
            REAL few = 0;
            for (u32 row = first; row < end; row++) few += left[row * WIDTH + at / COLUMNS] * right[row * WIDTH + at % COLUMNS];
            sums[each] += few;
        }
    }
}

template <int COLUMNS, int EACH> __device__ inline void add_row(f64 (&sums)[EACH], const REAL *of_row, u32 count) {
    for (u32 first = 0; first < count; first += FEW) {
        u32 end = min(count, first + FEW);
#pragma unroll
        for (u32 each = 0; each < EACH; each++) {
            u32 at = threadIdx.x + each * THREADS;
            if (at >= COLUMNS) continue;
            REAL few = 0;
            for (u32 row = first; row < end; row++) few += of_row[row * WIDTH + at];
            sums[each] += few;
        }
    }
}

// Adds all elements of the rows to one sum.
template <int COLUMNS, int EACH> __device__ inline void add_total(f64 (&sums)[EACH], const REAL *of_row, u32 count) {
    if (threadIdx.x > 0) return;
    for (u32 row = 0; row < count; row++, of_row += WIDTH)
        for (u32 at = 0; at < COLUMNS; at++) sums[0] += of_row[at];
}

template <int SIZE, int EACH> __device__ inline void write(const f64 (&sums)[EACH], f64 *to) {
#pragma unroll
    for (u32 each = 0; each < EACH; each++) {
        u32 at = threadIdx.x + each * THREADS;
        if (at < SIZE) to[at] = sums[each];
    }
}

FUNCTIONS

// A block has a run of `part` rows, as many of them at a time as it has groups, whose numbers are
// in shared memory; so are the dense parameters. Of each block the sum of the losses goes to
// `partial`, and behind it its sums. `share` is 1 / rows.
extern "C" __global__ void layer_rows(arrays of, const CLASS *__restrict__ classes, const REAL *__restrict__ dense_labels,
                                      const u64 *__restrict__ label_starts, const u64 *__restrict__ label_ends,
                                      const LABEL_ID *__restrict__ label_columns, const REAL *__restrict__ label_values,
                                      const REAL *__restrict__ row_weights, numbers attributes, f64 *__restrict__ partial, u64 n_rows,
                                      u64 part, f64 share) {
    __shared__ REAL weights[WEIGHTS];
    __shared__ REAL rows[GROUPS * WIDTH];
    __shared__ f64 losses[GROUPS];
    (void)weights;
    u32 lane = threadIdx.x % LANES, group = threadIdx.x / LANES;
    REAL *own = rows + group * WIDTH;
    row_labels labels = {classes, dense_labels, label_starts, label_ends, label_columns, label_values, row_weights};
    f64 loss = 0;
    SUMS
    LOAD
    __syncthreads();
    u64 end = min(n_rows, (blockIdx.x + 1) * part);
    for (u64 first = blockIdx.x * part; first < end; first += GROUPS) {
        u64 row = first + group;
        if (row < end) { ROW }
        __syncthreads();
        u32 count = (u32)min((u64)GROUPS, end - first);
        (void)count;
        ADD
        __syncthreads();
    }
    f64 *to = partial + blockIdx.x * (u64)(N_SUMS + 1);
    WRITE
    loss = group_sum(loss, LANES, group_mask(LANES));
    if (lane == 0) losses[group] = loss;
    for (u32 half = GROUPS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) losses[threadIdx.x] += losses[threadIdx.x + half];
    }
    if (threadIdx.x == 0) to[0] = losses[0];
}

// The sums of all blocks, which are added in an order that depends on their number alone; of the
// losses the mean over `n` rows. The threads of a block have 32 of the sums, of which each warp
// adds up some blocks.
extern "C" __global__ void layer_sums(const f64 *__restrict__ partial, u64 parts, f64 n, arrays of, REAL *__restrict__ mean) {
    __shared__ f64 sums[THREADS];
    u32 number = blockIdx.x * 32 + threadIdx.x % 32;
    f64 sum = 0;
    if (number <= N_SUMS)
        for (u64 of_block = threadIdx.x / 32; of_block < parts; of_block += THREADS / 32) sum += partial[of_block * (N_SUMS + 1) + number];
    sums[threadIdx.x] = sum;
    for (u32 half = THREADS / 2; half >= 32; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    }
    if (threadIdx.x >= 32 || number > N_SUMS) return;
    if (number == 0) {
        *mean = (REAL)(sums[threadIdx.x] / n);
        return;
    }
    u32 at = number - 1;
    *(TARGET) = (REAL)sums[threadIdx.x];
}
