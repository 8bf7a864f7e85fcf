// The columns that occur in a csr, or the ids in a list, ascending, each with its entries in their
// order: a stable sort of the entries by id, of DIGIT_BITS bits at a time from the lowest, and the
// runs of equal columns in it. Nothing depends on the order in which blocks run. Words: ID, of
// columns.
//
// A block has THREADS threads and sorts a tile of TILE entries, of which each thread has EACH that
// follow one another.

#define DIGIT_BITS 4
#define DIGITS (1 << DIGIT_BITS)
#define THREADS 256
#define EACH 8
#define TILE (THREADS * EACH)

__device__ inline u32 digit_of(ID id, u64 shift) { return (u32)(id >> shift) % DIGITS; }

// The row of each entry, and its number: a warp for each row.
extern "C" __global__ void number_entries(const u64 *__restrict__ starts, const u64 *__restrict__ ends,
                                          u32 *__restrict__ rows, u32 *__restrict__ entries, u64 n_rows) {
    u64 row = thread_id() / 32;
    if (row >= n_rows) return;
    for (u64 entry = starts[row] + threadIdx.x % 32; entry < ends[row]; entry += 32) {
        rows[entry] = (u32)row;
        entries[entry] = (u32)entry;
    }
}

// The same of the rows that an array stores, with their ranks there; the entries of others stand
// for no column, which is `bound`.
extern "C" __global__ void number_entries_of_rows(const u64 *__restrict__ starts, const u64 *__restrict__ ends,
                                                  const ID *__restrict__ columns, const u64 *__restrict__ stored,
                                                  u64 n_stored, u64 bound, u64 *__restrict__ ids, u32 *__restrict__ ranks,
                                                  u32 *__restrict__ entries, u64 n_rows) {
    u64 row = thread_id() / 32;
    if (row >= n_rows) return;
    u64 rank = stored_row(stored, n_stored, row);
    for (u64 entry = starts[row] + threadIdx.x % 32; entry < ends[row]; entry += 32) {
        ids[entry] = rank < n_stored ? (u64)columns[entry] : bound;
        ranks[entry] = (u32)rank;
        entries[entry] = (u32)entry;
    }
}

// The group of each entry's row, in the order of the entries.
extern "C" __global__ void groups_of_entries(const u32 *__restrict__ entries, const u32 *__restrict__ rows,
                                             const u64 *__restrict__ groups, u64 *__restrict__ of_entries, u64 n) {
    u64 at = thread_id();
    if (at < n) of_entries[at] = groups[rows[entries[at]]];
}

// The number of each entry, of a list of ids.
extern "C" __global__ void number_ids(u32 *__restrict__ entries, u64 n) {
    u64 at = thread_id();
    if (at < n) entries[at] = (u32)at;
}

// How often each digit occurs in each tile, digit by digit.
extern "C" __global__ void count_digits(const ID *__restrict__ ids, u64 n, u64 shift, u32 *__restrict__ counts) {
    __shared__ u32 count[DIGITS];
    if (threadIdx.x < DIGITS) count[threadIdx.x] = 0;
    __syncthreads();
    for (u32 step = 0; step < EACH; step++) {
        u64 at = (u64)blockIdx.x * TILE + step * THREADS + threadIdx.x;
        if (at < n) atomicAdd(&count[digit_of(ids[at], shift)], 1u);
    }
    __syncthreads();
    if (threadIdx.x < DIGITS) counts[(u64)threadIdx.x * gridDim.x + blockIdx.x] = count[threadIdx.x];
}

// Moves each entry to where its digit puts it: `offsets` are the counts summed up.
extern "C" __global__ void move_by_digit(const ID *__restrict__ ids, const u32 *__restrict__ entries, u64 n, u64 shift,
                                         const u32 *__restrict__ offsets, ID *__restrict__ sorted_ids,
                                         u32 *__restrict__ sorted_entries) {
    // Of each digit, how many entries of the tile are before those of each thread.
    __shared__ u32 before[DIGITS][THREADS];
    for (u32 digit = 0; digit < DIGITS; digit++) before[digit][threadIdx.x] = 0;
    u64 first = (u64)blockIdx.x * TILE + threadIdx.x * EACH;
    for (u32 step = 0; step < EACH; step++)
        if (first + step < n) before[digit_of(ids[first + step], shift)][threadIdx.x] += 1;
    __syncthreads();
    // A warp sums up every eighth digit.
    u32 lane = threadIdx.x % 32;
    for (u32 digit = threadIdx.x / 32; digit < DIGITS; digit += THREADS / 32) {
        u32 carried = offsets[(u64)digit * gridDim.x + blockIdx.x];
        for (u32 start = 0; start < THREADS; start += 32) {
            u32 own = before[digit][start + lane], sum = own;
            for (u32 distance = 1; distance < 32; distance *= 2) {
                u32 other = __shfl_up_sync(0xffffffffu, sum, distance, 32);
                if (lane >= distance) sum += other;
            }
            before[digit][start + lane] = carried + sum - own;
            carried += __shfl_sync(0xffffffffu, sum, 31, 32);
        }
    }
    __syncthreads();
    for (u32 step = 0; step < EACH; step++) {
        u64 at = first + step;
        if (at >= n) break;
        ID id = ids[at];
        u32 to = before[digit_of(id, shift)][threadIdx.x]++;
        sorted_ids[to] = id;
        sorted_entries[to] = entries[at];
    }
}

// Sums up a tile in place, each element becoming the sum of those before it, and says what the tile
// is in all.
extern "C" __global__ void sum_up(u32 *__restrict__ values, u64 n, u32 *__restrict__ totals) {
    __shared__ u32 of_warps[THREADS / 32];
    u64 first = (u64)blockIdx.x * TILE + threadIdx.x * EACH;
    u32 own[EACH], sum = 0;
    for (u32 step = 0; step < EACH; step++) {
        own[step] = first + step < n ? values[first + step] : 0;
        sum += own[step];
    }
    u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, through = sum;
    for (u32 distance = 1; distance < 32; distance *= 2) {
        u32 other = __shfl_up_sync(0xffffffffu, through, distance, 32);
        if (lane >= distance) through += other;
    }
    if (lane == 31) of_warps[warp] = through;
    __syncthreads();
    u32 before = through - sum, all = 0;
    for (u32 other = 0; other < THREADS / 32; other++) {
        if (other < warp) before += of_warps[other];
        all += of_warps[other];
    }
    for (u32 step = 0; step < EACH; step++) {
        if (first + step < n) values[first + step] = before;
        before += own[step];
    }
    if (threadIdx.x == 0) totals[blockIdx.x] = all;
}

// Adds to each tile what the tiles before it are in all.
extern "C" __global__ void add_totals(u32 *__restrict__ values, u64 n, const u32 *__restrict__ totals) {
    u32 before = totals[blockIdx.x];
    u64 first = (u64)blockIdx.x * TILE + threadIdx.x;
    for (u32 step = 0; step < EACH; step++) {
        u64 at = first + step * THREADS;
        if (at < n) values[at] += before;
    }
}

__device__ inline u32 begins_run(const ID *ids, u64 at) { return at == 0 || ids[at] != ids[at - 1]; }

// 1 for the first of each run of equal ids, 0 for the others.
extern "C" __global__ void mark_runs(const ID *__restrict__ ids, u64 n, u32 *__restrict__ marks) {
    u64 at = thread_id();
    if (at < n) marks[at] = begins_run(ids, at);
}

// The id and start of each run of ids below `bound`, and after the last where it ends. `ranks` are
// the marks summed up. Beyond the bound there is at most one run.
extern "C" __global__ void write_runs(const ID *__restrict__ ids, u64 n, u64 bound, const u32 *__restrict__ ranks,
                                      u64 *__restrict__ run_ids, u32 *__restrict__ runs, u32 *__restrict__ n_runs) {
    u64 at = thread_id();
    if (at >= n) return;
    u32 rank = ranks[at], begins = begins_run(ids, at);
    bool counts = ids[at] < bound;
    if (begins) {
        if (counts) run_ids[rank] = ids[at];
        runs[rank] = (u32)at;
        if (!counts) *n_runs = rank;
    }
    if (at == n - 1 && counts) {
        runs[rank + begins] = (u32)n;
        *n_runs = rank + begins;
    }
}
