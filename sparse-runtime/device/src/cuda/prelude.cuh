// What the kernels rely on: types, scalar functions of the operator table, and collective
// operations of a group of lanes.
//
// Texts of kernels include nothing. Each is compiled with its words (macros) in front of this file;
// tests compile the same texts for the CPU, with a header that defines `NNZ_EMULATION`.

typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;
typedef float f32;
typedef double f64;

// What a csr<unit> stores: the number 1, in no memory.
struct unit {};

__device__ inline f32 number(const f32 *values, u64 position) { return values[position]; }
__device__ inline f64 number(const f64 *values, u64 position) { return values[position]; }
__device__ inline f32 number(const unit *, u64) { return 1; }

// The numbers that are attributes of an operator, in the order of its row.
struct numbers {
    f64 at[4];
};

// The numbers of a step of an update rule, in the order of its recurrence.
struct rule_step {
    f64 at[12];
};

// The maps that are left behind the last blocks of levels, one after the other.
struct map_tails {
    f64 at[24];
};

// How the elements of a result lie in two arrays that broadcast to it: extents, and steps in each,
// of up to 6 axes.
struct walk {
    u64 extents[6], first[6], second[6];
};

// Some axes of an array: extents, and steps in its memory.
struct axes {
    u64 extents[6], steps[6];
};

// How elements lie in an array: where the first is, extents, and steps in its memory, of up to 12
// axes.
struct strided {
    i64 start;
    u64 extents[12];
    i64 steps[12];
};

// Where the element of a number is, of `rank` axes.
__device__ inline u64 place_in(const strided &along, int rank, u64 number) {
    i64 place = along.start;
    for (int axis = rank - 1; axis >= 0; axis--) {
        place += (i64)(axis > 0 ? number % along.extents[axis] : number) * along.steps[axis];
        if (axis > 0) number /= along.extents[axis];
    }
    return (u64)place;
}

// Up to 4 arrays, whose rows are counted on from one to the next: where they begin, and before
// which row each but the last ends.
struct sides {
    const void *of[4];
    u64 ends[3];
};

// Up to 8 tables of which each row of a batch names a row: the tables, the ids of their rows, how
// many rows each has, and a bit for each whose ids have 64 bits. Those of inner products come
// first, two a product, with where the derivatives by their rows go; `shares` has what each product
// is multiplied by.
struct lookups {
    const void *tables[8], *ids[8];
    u64 extents[8], wide;
    void *derivatives[8];
    f64 shares[4];
};

// Positions along two axes: the first, from one to the next, and how many.
struct spans {
    i64 start[2], step[2];
    u64 count[2];
};

// A position of them, and which of them a position is; their number where it is none.
__device__ inline u64 span_at(const spans &of, int axis, u64 index) {
    return (u64)(of.start[axis] + of.step[axis] * (i64)index);
}
__device__ inline u64 span_find(const spans &of, int axis, u64 position) {
    i64 distance = (i64)position - of.start[axis], index = distance / of.step[axis];
    bool is_one = distance == index * of.step[axis] && index >= 0;
    return is_one && (u64)index < of.count[axis] ? (u64)index : of.count[axis];
}

// The global thread along x.
__device__ inline u64 thread_id() { return (u64)blockIdx.x * blockDim.x + threadIdx.x; }

// The lanes of the calling thread's group of `size` lanes of a warp, a power of two.
__device__ inline u32 group_mask(u32 size) {
    u32 lane = threadIdx.x % 32;
    return (u32)(((1ull << size) - 1) << (lane & ~(size - 1)));
}

// The sum over a group, in an order that depends on nothing but its size. Every lane has it.
template <class T> __device__ inline T group_sum(T value, u32 size, u32 mask) {
    for (u32 distance = size / 2; distance > 0; distance /= 2)
        value += __shfl_xor_sync(mask, value, distance, size);
    return value;
}

template <class T> __device__ inline T group_max(T value, u32 size, u32 mask) {
    for (u32 distance = size / 2; distance > 0; distance /= 2)
        value = max(value, __shfl_xor_sync(mask, value, distance, size));
    return value;
}

// Where an id is among ascending ones, from `first` to `end`; `end` where it is not.
template <class Id> __device__ inline u64 find(const Id *ids, u64 first, u64 end, u64 wanted) {
    u64 low = first, high = end;
    while (low < high) {
        u64 middle = low + (high - low) / 2;
        if ((u64)ids[middle] < wanted)
            low = middle + 1;
        else
            high = middle;
    }
    return low < end && (u64)ids[low] == wanted ? low : end;
}

// An element of a csr.
template <class Id, class T>
__device__ inline T stored_at(const u64 *starts, const u64 *ends, const Id *columns, const T *values, u64 row, u64 column) {
    u64 place = find(columns, starts[row], ends[row], column);
    return place < ends[row] ? values[place] : T(0);
}

// Where a row of a row_sparse array is among the `n_stored` ones, of the numbers `rows`; without
// `rows` all are stored. `n_stored` where it is not.
__device__ inline u64 stored_row(const u64 *rows, u64 n_stored, u64 row) {
    return rows ? find(rows, 0, n_stored, row) : row;
}

// The position along an axis that an id stands for; `extent` where there is none. With `clip` ids
// beyond the ends are the ends, with `wrap` they count on from the other end.
__device__ inline u64 place_of(u64 id, u64 extent, u64 clip, u64 wrap) {
    if (extent > 0 && wrap) return id % extent;
    if (extent > 0 && clip) return min(id, extent - 1);
    return min(id, extent);
}
__device__ inline u64 place_of(u32 id, u64 extent, u64 clip, u64 wrap) { return place_of((u64)id, extent, clip, wrap); }
__device__ inline u64 place_of(i64 id, u64 extent, u64 clip, u64 wrap) {
    if (id >= 0) return place_of((u64)id, extent, clip, wrap);
    if (extent > 0 && wrap) {
        i64 rest = id % (i64)extent;
        return rest == 0 ? 0 : extent - (u64)-rest;
    }
    return extent > 0 && clip ? 0 : extent;
}

// The functions that formulas of the operator table call, by the names that the table has for them.

template <class T> __device__ inline T formula_abs(T x) { return fabs(x); }
template <class T> __device__ inline T formula_sign(T x) { return x > 0 ? T(1) : x < 0 ? T(-1) : T(0); }
template <class T> __device__ inline T formula_at_least(T x, T bound) { return x < bound ? bound : x; }
template <class T> __device__ inline T formula_at_most(T x, T bound) { return x > bound ? bound : x; }
template <class T> __device__ inline T formula_select(T x, T first, T second) { return x != 0 ? first : second; }
template <class T> __device__ inline T formula_powf(T x, T y) { return pow(x, y); }
template <class T> __device__ inline T formula_hypot(T x, T y) { return hypot(x, y); }
template <class T> __device__ inline T formula_modulo(T x, T y) { return y == 0 ? T(0) : x - floor(x / y) * y; }
template <class T> __device__ inline T formula_round(T x) { return round(x); }
template <class T> __device__ inline T formula_rint(T x) { return rint(x); }
template <class T> __device__ inline T formula_ceil(T x) { return ceil(x); }
template <class T> __device__ inline T formula_floor(T x) { return floor(x); }
template <class T> __device__ inline T formula_trunc(T x) { return trunc(x); }
template <class T> __device__ inline T formula_log2(T x) { return log2(x); }
template <class T> __device__ inline T formula_log10(T x) { return log10(x); }
template <class T> __device__ inline T formula_acos(T x) { return acos(x); }
template <class T> __device__ inline T formula_acosh(T x) { return acosh(x); }
template <class T> __device__ inline T formula_sqrt(T x) { return sqrt(x); }
template <class T> __device__ inline T formula_cbrt(T x) { return cbrt(x); }
template <class T> __device__ inline T formula_exp(T x) { return exp(x); }
template <class T> __device__ inline T formula_exp_m1(T x) { return expm1(x); }
template <class T> __device__ inline T formula_ln(T x) { return log(x); }
template <class T> __device__ inline T formula_ln_1p(T x) { return log1p(x); }
template <class T> __device__ inline T formula_sin(T x) { return sin(x); }
template <class T> __device__ inline T formula_cos(T x) { return cos(x); }
template <class T> __device__ inline T formula_tan(T x) { return tan(x); }
template <class T> __device__ inline T formula_asin(T x) { return asin(x); }
template <class T> __device__ inline T formula_atan(T x) { return atan(x); }
template <class T> __device__ inline T formula_sinh(T x) { return sinh(x); }
template <class T> __device__ inline T formula_cosh(T x) { return cosh(x); }
template <class T> __device__ inline T formula_tanh(T x) { return tanh(x); }
template <class T> __device__ inline T formula_asinh(T x) { return asinh(x); }
template <class T> __device__ inline T formula_atanh(T x) { return atanh(x); }

// exp of what is never positive, so that nothing overflows.
template <class T> __device__ inline T formula_sigmoid(T x) {
    T e = exp(-fabs(x));
    return (x >= 0 ? T(1) : e) / (T(1) + e);
}
template <class T> __device__ inline T formula_softplus(T x) {
    return formula_at_least(x, T(0)) + log1p(exp(-fabs(x)));
}

// In f64, as on the CPU.
template <class T> __device__ inline T formula_error_function(T x) { return T(erf((f64)x)); }
template <class T> __device__ inline T formula_gamma_function(T x) {
    f64 y = x;
    // Not a number at the negative integers.
    return T(y < 0 && y == floor(y) ? sqrt(y) : tgamma(y));
}
template <class T> __device__ inline T formula_log_gamma(T x) { return T(lgamma((f64)x)); }

// A start by Winitzki's formula, then Halley's method, as `special::erfinv` of the operator table.
template <class T> __device__ inline T formula_inverse_error_function(T x_given) {
    f64 x = x_given;
    f64 size = fabs(x);
    // Infinite at the ends, not a number beyond.
    if (!(size < 1)) return T(size == 1 ? x / (1 - size) : sqrt(1 - size));
    if (size == 0) return x_given;
    f64 pi = 3.14159265358979323846;
    f64 tail = 1 - size, a = 0.147;
    f64 logarithm = log(tail * (1 + size));
    f64 half = 2 / (pi * a) + logarithm / 2;
    f64 y = sqrt(sqrt(half * half - logarithm / a) - half);
    for (int i = 0; i < 4; i++) {
        f64 step = -(tail - erfc(y)) / (2 / sqrt(pi) * exp(-y * y));
        y -= -step / (1 + y * step);
    }
    return T(x < 0 ? -y : y);
}

// Reflection, recurrence up to 10, the asymptotic series, as `special::digamma` of the operator
// table.
template <class T> __device__ inline T formula_digamma(T x_given) {
    f64 x = x_given, sum = 0;
    // Not a number.
    if (x <= 0 && x == floor(x)) return T(sqrt(x - 1));
    if (x < 0) {
        f64 pi = 3.14159265358979323846;
        sum = -pi / tan(pi * x);
        x = 1 - x;
    }
    for (; x < 10; x += 1) sum -= 1 / x;
    f64 r = 1 / (x * x);
    f64 series = r * (1.0 / 12 - r * (1.0 / 120 - r * (1.0 / 252 - r * (1.0 / 240 - r * (1.0 / 132 - r * (691.0 / 32760))))));
    return T(sum + log(x) - 0.5 / x - series);
}
