// Rows of a csr that have other entries than those of an operand: first how many each has, then the
// entries, ascending. Words: REAL; SOURCE, what a row is made of; FIRST_ID, SECOND_ID and OUT_ID,
// of columns; FORMULA, of the table, and FIRST and SECOND, its variables.
//
// A thread makes a row.

__device__ inline REAL f(REAL FIRST, REAL SECOND, const numbers &attributes) { return FORMULA; }

template <class Id> struct matrix {
    const u64 *starts, *ends;
    const Id *columns;
    const REAL *values;
};

struct operands {
    matrix<FIRST_ID> first;
    matrix<SECOND_ID> second;
    // Of a dense or row_sparse one, the rows that it stores, or nothing where it stores all, and
    // which row is wanted for each of the result.
    const u64 *rows;
    u64 n_stored;
    const REAL *values;
    const u64 *wanted;
    spans positions;
    // The extents of the first operand, or of the array.
    u64 n_rows, n_cols;
    numbers attributes;
};

// What either stores, without results equal to 0.
struct Union {
    template <class Visit> static __device__ void row(const operands &of, u64 row, Visit &visit) {
        u64 left = of.first.starts[row], right = of.second.starts[row];
        u64 left_end = of.first.ends[row], right_end = of.second.ends[row];
        while (left < left_end || right < right_end) {
            u64 none = ~0ull;
            u64 x = left < left_end ? (u64)of.first.columns[left] : none;
            u64 y = right < right_end ? (u64)of.second.columns[right] : none;
            REAL value = f(x <= y ? of.first.values[left] : REAL(0), y <= x ? of.second.values[right] : REAL(0), of.attributes);
            left += x <= y;
            right += y <= x;
            if (value != 0) visit(x <= y ? x : y, value);
        }
    }
};

// What both store.
struct Intersection {
    template <class Visit> static __device__ void row(const operands &of, u64 row, Visit &visit) {
        u64 right = of.second.starts[row], end = of.second.ends[row];
        for (u64 left = of.first.starts[row]; left < of.first.ends[row]; left++) {
            u64 column = of.first.columns[left];
            while (right < end && of.second.columns[right] < column) right++;
            if (right < end && of.second.columns[right] == column)
                visit(column, f(of.first.values[left], of.second.values[right], of.attributes));
        }
    }
};

// What the first stores; the second is 0 where it stores nothing.
struct Left {
    template <class Visit> static __device__ void row(const operands &of, u64 row, Visit &visit) {
        for (u64 left = of.first.starts[row]; left < of.first.ends[row]; left++) {
            u64 column = of.first.columns[left];
            REAL other = stored_at(of.second.starts, of.second.ends, of.second.columns, of.second.values, row, column);
            visit(column, f(of.first.values[left], other, of.attributes));
        }
    }
};

// The rows repeated, one column repeated where there is one.
struct Repeated {
    template <class Visit> static __device__ void row(const operands &of, u64 row, Visit &visit) {
        u64 from = row % of.n_rows, count = of.positions.count[1];
        for (u64 entry = of.first.starts[from]; entry < of.first.ends[from]; entry++) {
            if (of.n_cols == count) visit(of.first.columns[entry], of.first.values[entry]);
            else
                for (u64 column = 0; column < count; column++) visit(column, of.first.values[entry]);
        }
    }
};

// Some positions of the rows and columns.
struct Part {
    template <class Visit> static __device__ void row(const operands &of, u64 row, Visit &visit) {
        u64 from = span_at(of.positions, 0, row), start = of.first.starts[from], count = of.first.ends[from] - start;
        bool descends = of.positions.step[1] < 0;
        for (u64 number = 0; number < count; number++) {
            u64 entry = start + (descends ? count - 1 - number : number);
            u64 column = span_find(of.positions, 1, of.first.columns[entry]);
            if (column < of.positions.count[1]) visit(column, of.first.values[entry]);
        }
    }
};

// The other way: what is stored at some positions.
struct Placed {
    template <class Visit> static __device__ void row(const operands &of, u64 row, Visit &visit) {
        u64 from = span_find(of.positions, 0, row);
        if (from == of.positions.count[0]) return;
        u64 start = of.first.starts[from], count = of.first.ends[from] - start;
        bool descends = of.positions.step[1] < 0;
        for (u64 number = 0; number < count; number++) {
            u64 entry = start + (descends ? count - 1 - number : number);
            visit(span_at(of.positions, 1, of.first.columns[entry]), of.first.values[entry]);
        }
    }
};

// The rows of the first, then those of the second.
struct OverEachOther {
    template <class Visit> static __device__ void row(const operands &of, u64 row, Visit &visit) {
        if (row < of.n_rows) {
            for (u64 entry = of.first.starts[row]; entry < of.first.ends[row]; entry++)
                visit(of.first.columns[entry], of.first.values[entry]);
            return;
        }
        row -= of.n_rows;
        for (u64 entry = of.second.starts[row]; entry < of.second.ends[row]; entry++)
            visit(of.second.columns[entry], of.second.values[entry]);
    }
};

// The columns of the first, then those of the second.
struct SideBySide {
    template <class Visit> static __device__ void row(const operands &of, u64 row, Visit &visit) {
        for (u64 entry = of.first.starts[row]; entry < of.first.ends[row]; entry++)
            visit(of.first.columns[entry], of.first.values[entry]);
        for (u64 entry = of.second.starts[row]; entry < of.second.ends[row]; entry++)
            visit(of.n_cols + of.second.columns[entry], of.second.values[entry]);
    }
};

// For each row the one that is wanted; nothing where there is no such row.
struct Wanted {
    template <class Visit> static __device__ void row(const operands &of, u64 row, Visit &visit) {
        u64 from = of.wanted[row];
        if (from >= of.n_rows) return;
        for (u64 entry = of.first.starts[from]; entry < of.first.ends[from]; entry++)
            visit(of.first.columns[entry], of.first.values[entry]);
    }
};

// The rows of a list, ascending; the others are empty.
struct Listed {
    template <class Visit> static __device__ void row(const operands &of, u64 row, Visit &visit) {
        if (stored_row(of.rows, of.n_stored, row) >= of.n_stored) return;
        for (u64 entry = of.first.starts[row]; entry < of.first.ends[row]; entry++)
            visit(of.first.columns[entry], of.first.values[entry]);
    }
};

// What is not 0 in the rows that are stored.
struct NotZero {
    template <class Visit> static __device__ void row(const operands &of, u64 row, Visit &visit) {
        u64 stored = stored_row(of.rows, of.n_stored, row);
        if (stored >= of.n_stored) return;
        for (u64 column = 0; column < of.n_cols; column++) {
            REAL value = of.values[stored * of.n_cols + column];
            if (value != 0) visit(column, value);
        }
    }
};

// A one where it is wanted; an empty row where that is no column.
struct One {
    template <class Visit> static __device__ void row(const operands &of, u64 row, Visit &visit) {
        if (of.wanted[row] < of.n_cols) visit(of.wanted[row], REAL(1));
    }
};

struct Count {
    u32 n;
    __device__ void operator()(u64, REAL) { n++; }
};

struct Write {
    OUT_ID *columns;
    REAL *values;
    u64 at;
    __device__ void operator()(u64 column, REAL value) {
        columns[at] = (OUT_ID)column;
        values[at++] = value;
    }
};

extern "C" __global__ void count_entries(const u64 *first_starts, const u64 *first_ends, const FIRST_ID *first_columns,
                                         const REAL *first_values, const u64 *second_starts, const u64 *second_ends,
                                         const SECOND_ID *second_columns, const REAL *second_values, const u64 *rows,
                                         u64 n_stored, const REAL *values, const u64 *wanted, spans positions, u64 n_rows,
                                         u64 n_cols, numbers attributes, u32 *__restrict__ counts, u64 n) {
    u64 row = thread_id();
    if (row > n) return;
    operands of = {{first_starts, first_ends, first_columns, first_values},
                   {second_starts, second_ends, second_columns, second_values},
                   rows, n_stored, values, wanted, positions, n_rows, n_cols, attributes};
    Count count = {0};
    if (row < n) SOURCE::row(of, row, count);
    counts[row] = count.n;
}

// Where the rows start, and how many entries there are: the counts, and a 0 after them, summed up.
// After the number comes a 1 where it was too large to be summed up.
extern "C" __global__ void row_pointers(const u32 *__restrict__ sums, u64 *__restrict__ indptr, u32 *__restrict__ total, u64 n) {
    u64 row = thread_id();
    if (row > n) return;
    indptr[row] = sums[row];
    if (row == n) total[0] = sums[n];
    if (row < n && sums[row + 1] < sums[row]) total[1] = 1;
}

extern "C" __global__ void write_entries(const u64 *first_starts, const u64 *first_ends, const FIRST_ID *first_columns,
                                         const REAL *first_values, const u64 *second_starts, const u64 *second_ends,
                                         const SECOND_ID *second_columns, const REAL *second_values, const u64 *rows,
                                         u64 n_stored, const REAL *values, const u64 *wanted, spans positions, u64 n_rows,
                                         u64 n_cols, numbers attributes, const u64 *__restrict__ indptr,
                                         OUT_ID *__restrict__ out_columns, REAL *__restrict__ out_values, u64 n) {
    u64 row = thread_id();
    if (row >= n) return;
    operands of = {{first_starts, first_ends, first_columns, first_values},
                   {second_starts, second_ends, second_columns, second_values},
                   rows, n_stored, values, wanted, positions, n_rows, n_cols, attributes};
    Write write = {out_columns, out_values, indptr[row]};
    SOURCE::row(of, row, write);
}
