// Elements in order along an axis, by their positions. Words: REAL.
//
// A line is the `extent` elements along the axis, `inner` apart, for each place before and after
// it. Blocks sort tiles of lines, then runs are merged two by two. Equal elements are in the order
// of their positions, so that there is one order, whatever the GPU does first. Of each run the
// first `k` matter.

#define THREADS 256
#define TILE 1024

__device__ inline u64 start_of(u64 line, u64 extent, u64 inner) { return line / inner * extent * inner + line % inner; }

// Whether an element comes before another, whatever their positions. NaN is larger than any number.
__device__ inline bool is_before(REAL first, REAL second, u64 largest) {
    if (first != first || second != second) return largest ? second == second : first == first;
    return largest ? first > second : first < second;
}

// The same of two that have positions in a tile, of which `width` is none and comes last.
__device__ inline bool is_before(REAL first, u32 at, REAL second, u32 other, u32 width, u64 largest) {
    if (at == width || other == width) return at != width;
    if (is_before(first, second, largest)) return true;
    return !is_before(second, first, largest) && at < other;
}

// Sorts tiles of `width` places, a power of two up to TILE, of which a block has as many as fit.
// Bitonic.
extern "C" __global__ void sort_tiles(const REAL *__restrict__ x, u64 extent, u64 inner, u64 n_lines, u64 width, u64 largest, u64 k,
                                      u64 *__restrict__ places) {
    __shared__ REAL values[TILE];
    __shared__ u32 positions[TILE];
    u32 size = (u32)width;
    u64 tiles = (extent + width - 1) / width, first_tile = (u64)blockIdx.x * (TILE / size);
    for (u32 slot = threadIdx.x; slot < TILE; slot += THREADS) {
        u64 tile = first_tile + slot / size, line = tile / tiles, at = tile % tiles * width + slot % size;
        bool is_there = line < n_lines && at < extent;
        values[slot] = is_there ? x[start_of(line, extent, inner) + at * inner] : REAL(0);
        positions[slot] = is_there ? slot % size : size;
    }
    __syncthreads();
    for (u32 run = 2; run <= size; run *= 2) {
        for (u32 distance = run / 2; distance > 0; distance /= 2) {
            for (u32 pair = threadIdx.x; pair < TILE / 2; pair += THREADS) {
                u32 low = pair / distance * distance * 2 + pair % distance, high = low + distance;
                // Every other run is sorted the other way, but for the last ones, which are the
                // tiles.
                bool turned = (low & run & (size - 1)) != 0;
                u32 first = turned ? low : high, second = turned ? high : low;
                if (!is_before(values[first], positions[first], values[second], positions[second], size, largest)) continue;
                REAL value = values[low];
                u32 position = positions[low];
                values[low] = values[high];
                positions[low] = positions[high];
                values[high] = value;
                positions[high] = position;
            }
            __syncthreads();
        }
    }
    for (u32 slot = threadIdx.x; slot < TILE; slot += THREADS) {
        u64 tile = first_tile + slot / size, line = tile / tiles, from = tile % tiles * width;
        u32 rank = slot % size, position = positions[slot];
        if (rank < k && position < size) places[line * extent + from + rank] = from + position;
    }
}

// Two runs of `run` places that follow one another become one: each element goes to its rank in its
// own, and further by those of the other that come before it.
extern "C" __global__ void merge_runs(const REAL *__restrict__ x, u64 extent, u64 inner, u64 run, u64 largest, u64 k,
                                      const u64 *__restrict__ from, u64 *__restrict__ to, u64 n) {
    u64 at = thread_id();
    if (at >= n) return;
    u64 line = at / extent, place = at % extent, rank = place % run, first = place - rank;
    if (rank >= k) return;
    bool is_second = first / run % 2 == 1;
    u64 other = is_second ? first - run : first + run;
    const REAL *values = x + start_of(line, extent, inner);
    const u64 *places = from + line * extent;
    u64 position = places[place], low = 0;
    if (other < extent) {
        REAL own = values[position * inner];
        u64 high = min(min(run, extent - other), k);
        while (low < high) {
            u64 middle = low + (high - low) / 2;
            REAL value = values[places[other + middle] * inner];
            // Positions in the second run are larger.
            if (is_second ? !is_before(own, value, largest) : is_before(value, own, largest))
                low = middle + 1;
            else
                high = middle;
        }
    }
    if (rank + low < k) to[line * extent + (is_second ? other : first) + rank + low] = position;
}

// The elements at the first `k` positions of each line.
extern "C" __global__ void write_ranked(const REAL *__restrict__ x, const u64 *__restrict__ places, u64 extent, u64 inner, u64 k,
                                        REAL *__restrict__ out, u64 n) {
    u64 at = thread_id();
    if (at >= n) return;
    u64 rank = at / inner % k, line = at / inner / k * inner + at % inner;
    out[at] = x[start_of(line, extent, inner) + places[line * extent + rank] * inner];
}

// These positions.
extern "C" __global__ void write_positions(const u64 *__restrict__ places, u64 extent, u64 inner, u64 k, u64 *__restrict__ out,
                                           u64 n) {
    u64 at = thread_id();
    if (at >= n) return;
    u64 rank = at / inner % k, line = at / inner / k * inner + at % inner;
    out[at] = places[line * extent + rank];
}
