// Products of dense matrices. Words: REAL; LISTED, 1 where columns of the left side, rows of the
// right one or columns of the result are those of lists, where there are lists.
//
// A matrix is read by its steps in memory from row to row and from column to column. A block has a
// tile of TILE rows and columns of the result, and of what is summed a run of `part`: a part of a
// sum each, where there are several, which are added in their order.

#define TILE 16

// Products that are added in REAL, before their sum is in f64: it is off by 4 units in the last
// place at most.
#define FEW 8

__device__ inline u64 listed(const u64 *list, u64 at) { return LISTED && list ? list[at] : at; }

extern "C" __global__ void dense_dense(const REAL *__restrict__ left, u64 left_row, u64 left_column,
                                       const REAL *__restrict__ right, u64 right_row, u64 right_column,
                                       const u64 *__restrict__ of_left_listed, const u64 *__restrict__ of_right_listed,
                                       const u64 *__restrict__ columns, u64 width, f64 *__restrict__ partial, REAL *__restrict__ out, u64 n_rows, u64 n_summed, u64 n_cols,
                                       u64 part) {
    // A column more, so that a column of the tile is in different banks.
    __shared__ REAL of_left[TILE][TILE + 1], of_right[TILE][TILE + 1];
    u32 x = threadIdx.x % TILE, y = threadIdx.x / TILE;
    u64 tiles = (n_cols + TILE - 1) / TILE;
    u64 row = blockIdx.x / tiles * TILE + y, column = blockIdx.x % tiles * TILE + x;
    u64 end = min(n_summed, (blockIdx.y + 1) * part);
    f64 sum = 0;
    for (u64 start = blockIdx.y * part; start < end; start += TILE) {
        of_left[y][x] = row < n_rows && start + x < end ? left[row * left_row + listed(of_left_listed, start + x) * left_column] : REAL(0);
        of_right[y][x] = column < n_cols && start + y < end ? right[listed(of_right_listed, start + y) * right_row + column * right_column] : REAL(0);
        __syncthreads();
#pragma unroll
        for (u32 first = 0; first < TILE; first += FEW) {
            REAL few = 0;
#pragma unroll
            for (u32 at = first; at < first + FEW; at++)
                if (start + at < end) few += of_left[y][at] * of_right[at][x];
            sum += few;
        }
        __syncthreads();
    }
    if (row >= n_rows || column >= n_cols) return;
    if (partial)
        partial[(blockIdx.y * n_rows + row) * n_cols + column] = sum;
    else
        out[row * width + listed(columns, column)] = (REAL)sum;
}

extern "C" __global__ void add_parts(const f64 *__restrict__ partial, u64 parts, u64 n_cols,
                                     const u64 *__restrict__ columns, u64 width, REAL *__restrict__ out, u64 n) {
    u64 at = thread_id();
    if (at >= n) return;
    f64 sum = 0;
    for (u64 part = 0; part < parts; part++) sum += partial[part * n + at];
    out[at / n_cols * width + listed(columns, at % n_cols)] = (REAL)sum;
}
