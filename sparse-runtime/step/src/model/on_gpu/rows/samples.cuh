// Derivatives that are kept for every sample, which rules correct gradients by: what
// `optimizer::Samples` does on the host, with the same numbers of what is done, and its bit of a
// sample that an earlier row of the batch is already. That one is left alone: its derivatives are
// the same.

#define KEEP 1
#define SUBTRACT 2
#define AGAIN (1ull << 63)

// What a derivative of a row becomes, one of `k`.
__device__ inline REAL corrected(REAL now, const u64 *samples, REAL *kept, u64 usage, u64 row, u64 k, u64 at) {
    bool again = samples[row] & AGAIN;
    REAL &old = kept[(samples[row] & ~AGAIN) * k + at];
    REAL given = usage == KEEP ? now : again ? REAL(0) : now - old;
    if (usage != SUBTRACT && !again) old = now;
    return given;
}

// Corrects the calling lane's derivatives of a row, of which it has every `lanes`-th, then
// multiplies them by the row's share of the mean.
__device__ inline void correct_row(REAL *derivatives, const u64 *samples, REAL *kept, u64 usage, u64 row, u64 k, u32 lanes, REAL share) {
    for (u64 at = threadIdx.x % lanes; at < k; at += lanes) {
        derivatives[at] = corrected(derivatives[at], samples, kept, usage, row, k, at) * share;
    }
}
