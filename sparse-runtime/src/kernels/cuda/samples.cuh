// Derivatives that are kept for every sample, which rules correct gradients by: what `optimizer::Samples` does on the host, with the same numbers
// of what is done, and its bit of a sample that an earlier row of the batch is already. That one is left alone: its derivatives are the same.

#define KEEP 1
#define SUBTRACT 2
#define AGAIN (1ull << 63)

// Corrects the calling lane's derivatives of a row, of which it has every `lanes`-th, then multiplies them by the row's share of the mean.
__device__ inline void correct_row(REAL *derivatives, const u64 *samples, REAL *kept, u64 usage, u64 row, u64 k, u32 lanes, REAL share) {
    u64 sample = samples[row] & ~AGAIN;
    bool again = samples[row] & AGAIN;
    for (u64 at = threadIdx.x % lanes; at < k; at += lanes) {
        REAL now = derivatives[at], &old = kept[sample * k + at];
        REAL given = usage == KEEP ? now : again ? REAL(0) : now - old;
        if (usage != SUBTRACT && !again) old = now;
        derivatives[at] = given * share;
    }
}
