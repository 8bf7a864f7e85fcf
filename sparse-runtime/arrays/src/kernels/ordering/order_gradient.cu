// Elements put back where they came from along an axis. Words: REAL; ID, of the positions.

// Where each element goes in the result; `size` for those whose id stands for no position. Along
// the axis and after it there are `block` of them.
extern "C" __global__ void places_of_elements(const ID *__restrict__ ids, u64 block, u64 extent, u64 inner, u64 size,
                                              u64 *__restrict__ places, u64 n) {
    u64 at = thread_id();
    if (at >= n) return;
    u64 place = place_of(ids[at], extent, 0, 0);
    places[at] = place < extent ? (at / block * extent + place) * inner + at % inner : size;
}

// For each place that an element goes to, a run of `entries`, their sum in their order.
extern "C" __global__ void put_back(const u64 *__restrict__ places, const u32 *__restrict__ runs, const u32 *__restrict__ entries,
                                    const REAL *__restrict__ grad, REAL *__restrict__ out, u64 n) {
    u64 at = thread_id();
    if (at >= n) return;
    REAL sum = 0;
    for (u32 entry = runs[at]; entry < runs[at + 1]; entry++) sum += grad[entries[entry]];
    out[places[at]] = sum;
}
