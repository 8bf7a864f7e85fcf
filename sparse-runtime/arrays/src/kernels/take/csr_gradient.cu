// The gradient of a look-up of a csr's rows. Words: REAL; ID, of the columns of what arrived;
// OUT_ID, of those of the result.
//
// The entries of what arrived are in the order of the rows that they go to, `places` by their own,
// then of their columns, then of the ids: those of a run of one row and column are summed up. Those
// that go nowhere are the last, from where the runs end.

// 1 for the first of each run of entries that go to one element, 0 for the others, and for what is
// after the last.
extern "C" __global__ void mark_elements(const u32 *__restrict__ entries, const u32 *__restrict__ rows, const u64 *__restrict__ places,
                                         const ID *__restrict__ columns, const u32 *__restrict__ runs, u64 n_runs,
                                         u32 *__restrict__ marks, u64 n) {
    u64 at = thread_id();
    if (at > n) return;
    if (at >= runs[n_runs]) {
        marks[at] = 0;
        return;
    }
    u32 entry = entries[at], before = entries[at > 0 ? at - 1 : 0];
    marks[at] = at == 0 || places[rows[entry]] != places[rows[before]] || columns[entry] != columns[before];
}

// Where the rows of the result start, and how many entries it has: `ranks` are the marks summed up,
// `taken` the rows that something goes to, of which `runs` has the entries.
extern "C" __global__ void element_pointers(const u64 *__restrict__ taken, const u32 *__restrict__ runs, u64 n_runs,
                                            const u32 *__restrict__ ranks, u64 *__restrict__ indptr, u32 *__restrict__ total, u64 n) {
    u64 row = thread_id();
    if (row > n) return;
    u64 low = 0, high = n_runs;
    while (low < high) {
        u64 middle = low + (high - low) / 2;
        if (taken[middle] < row)
            low = middle + 1;
        else
            high = middle;
    }
    indptr[row] = ranks[runs[low]];
    if (row == n) *total = ranks[runs[n_runs]];
}

// The sum of each run, in the order of the ids.
extern "C" __global__ void sum_elements(const u32 *__restrict__ entries, const ID *__restrict__ columns, const REAL *__restrict__ values,
                                        const u32 *__restrict__ ranks, const u32 *__restrict__ runs, u64 n_runs,
                                        OUT_ID *__restrict__ out_columns, REAL *__restrict__ out, u64 n) {
    u64 at = thread_id(), end = runs[n_runs];
    if (at >= n || at >= end || ranks[at + 1] == ranks[at]) return;
    f64 sum = values[entries[at]];
    for (u64 next = at + 1; next < end && ranks[next + 1] == ranks[next]; next++) sum += values[entries[next]];
    out_columns[ranks[at]] = (OUT_ID)columns[entries[at]];
    out[ranks[at]] = (REAL)sum;
}
