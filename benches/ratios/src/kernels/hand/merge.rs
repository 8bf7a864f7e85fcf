//! csr + csr, without sums equal to 0.

use crate::data::Arrays;

/// A csr matrix, written over and over.
#[derive(Default)]
pub struct Matrix {
    pub indptr: Vec<u64>,
    pub columns: Vec<u32>,
    pub values: Vec<f32>,
}

impl Matrix {
    /// Empty, with room for so many entries.
    pub fn reset(&mut self, entries: usize) {
        self.indptr.clear();
        self.indptr.push(0);
        self.columns.clear();
        self.values.clear();
        self.columns.reserve(entries);
        self.values.reserve(entries);
    }

    /// Says that so many entries were written.
    ///
    /// # Safety
    ///
    /// They were, and there was room.
    pub unsafe fn written(&mut self, entries: usize) {
        // SAFETY: as the caller says.
        unsafe {
            self.columns.set_len(entries);
            self.values.set_len(entries);
        }
    }
}

/// Three branches an entry: which of them is taken is what the processor guesses, and that costs
/// less than waiting.
pub fn add(out: &mut Matrix, x: Arrays<'_>, y: Arrays<'_>) {
    // A sum of 0 is written, too, and then written over.
    out.reset(x.nnz() + y.nnz() + 1);
    let (columns, values) = (out.columns.as_mut_ptr(), out.values.as_mut_ptr());
    let mut n = 0;
    macro_rules! push {
        ($column:expr, $value:expr) => {{
            let value: f32 = $value;
            *columns.add(n) = $column;
            *values.add(n) = value;
            n += usize::from(value != 0.0);
        }};
    }
    for row in 0..x.n_rows() {
        let (mut i, i_end) = (x.indptr[row] as usize, x.indptr[row + 1] as usize);
        let (mut j, j_end) = (y.indptr[row] as usize, y.indptr[row + 1] as usize);
        for (matrix, entries) in [(x, i..i_end), (y, j..j_end)] {
            for entry in entries.step_by(16) {
                super::ask(matrix, entry + 64);
            }
        }
        // SAFETY: no more entries are written than both rows have, for which there is room; entries
        // are below their ends.
        unsafe {
            if i < i_end && j < j_end {
                let (mut a, mut b) = (*x.columns.get_unchecked(i), *y.columns.get_unchecked(j));
                loop {
                    if a < b {
                        push!(a, *x.values.get_unchecked(i));
                        i += 1;
                        if i == i_end {
                            break;
                        }
                        a = *x.columns.get_unchecked(i);
                    } else if b < a {
                        push!(b, *y.values.get_unchecked(j));
                        j += 1;
                        if j == j_end {
                            break;
                        }
                        b = *y.columns.get_unchecked(j);
                    } else {
                        push!(a, x.values.get_unchecked(i) + y.values.get_unchecked(j));
                        i += 1;
                        j += 1;
                        if i == i_end || j == j_end {
                            break;
                        }
                        a = *x.columns.get_unchecked(i);
                        b = *y.columns.get_unchecked(j);
                    }
                }
            }
            for i in i..i_end {
                push!(*x.columns.get_unchecked(i), *x.values.get_unchecked(i));
            }
            for j in j..j_end {
                push!(*y.columns.get_unchecked(j), *y.values.get_unchecked(j));
            }
        }
        out.indptr.push(n as u64);
    }
    // SAFETY: `n` entries were written.
    unsafe { out.written(n) };
}
