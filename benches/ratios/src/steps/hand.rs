//! The loops that an expert writes for logistic regression: state beside the weight, rows asked for
//! ahead, everything of a row in one pass.

use super::together::update_all;
use crate::workload::Error;
use nnz::core::element::Stored;
use nnz::data::ColumnValues;
use nnz::formats::{ColumnIdsView, Unit};
use nnz::prelude::{Csr, Dataset};
use std::marker::PhantomData;
use std::sync::OnceLock;

/// What the loops read.
#[derive(Clone, Copy)]
pub struct Log<'a, V = f32> {
    pub indptr: &'a [u64],
    pub columns: &'a [u32],
    pub values: &'a [V],
    pub labels: &'a [f32],
    pub width: usize,
}

/// A value as a factor: of a pattern, whose values are 1 and take no memory, nothing is multiplied.
pub trait Value: Stored {
    fn times(self, factor: f32) -> f32;
}

impl Value for f32 {
    #[inline(always)]
    fn times(self, factor: f32) -> f32 {
        self * factor
    }
}

impl Value for Unit {
    #[inline(always)]
    fn times(self, factor: f32) -> f32 {
        factor
    }
}

impl<'a> Log<'a> {
    pub fn of(data: &'a Dataset) -> Option<Self> {
        Log::new(data.features()?, data)
    }
}

impl<'a> Log<'a, Unit> {
    pub fn of_units(data: &'a Dataset) -> Option<Self> {
        let ColumnValues::Unit(x) = data.columns().first()?.values() else { return None };
        Log::new(x, data)
    }
}

impl<'a, V: Value> Log<'a, V> {
    fn new(x: &'a Csr<V>, data: &'a Dataset) -> Option<Self> {
        match (x.columns(), data.labels()?) {
            (ColumnIdsView::U32(columns), ColumnValues::Dense(labels)) => Some(Log {
                indptr: x.indptr(),
                columns,
                values: x.values(),
                labels: labels.values(),
                width: x.n_cols(),
            }),
            _ => None,
        }
    }

    pub fn n_rows(&self) -> usize {
        self.labels.len()
    }

    /// Asks for entries of later rows.
    #[inline(always)]
    pub fn ask(&self, row: usize) {
        ask(self.indptr, self.columns, self.values, row);
    }

    /// Asks for all entries of a row that lies anywhere.
    #[inline(always)]
    pub fn ask_for(&self, row: usize) {
        let (columns, values) = self.row(row);
        for entry in (0..columns.len()).step_by(16).chain([columns.len().saturating_sub(1)]) {
            prefetch(columns, entry);
            prefetch(values, entry);
        }
    }

    #[inline(always)]
    pub fn row(&self, row: usize) -> (&'a [u32], &'a [V]) {
        let range = self.indptr[row] as usize..self.indptr[row + 1] as usize;
        (&self.columns[range.clone()], &self.values[range])
    }
}

/// Rows of data between asking for one that lies anywhere and reading it.
pub const DATA_AHEAD: usize = 16;

/// Asks for entries of later rows of data: the processor foresees those of rows that lie one after
/// the other, but not past the end of a page. Of patterns, which are one array, it foresees enough:
/// asked for them, these loops are slower.
#[inline(always)]
pub fn ask<V>(indptr: &[u64], columns: &[u32], values: &[V], row: usize) {
    /// A page.
    const ENTRIES: usize = 1024;
    if size_of::<V>() == 0 {
        return;
    }
    let later = |bound: u64| (bound as usize).wrapping_add(ENTRIES);
    for entry in (later(indptr[row])..later(indptr[row + 1])).step_by(16) {
        prefetch(columns, entry);
        prefetch(values, entry);
    }
}

/// Rows of data between asking for rows of a table and reading them, where these are numbers with
/// their states.
pub const AHEAD: usize = 4;

/// The same where they are vectors.
pub const VECTORS_AHEAD: usize = 3;

/// Whether a table is further from the core than it sees ahead by itself: otherwise asking for what
/// is in it costs more than it saves. On Intel's processors what half of the core's own cache holds
/// is near, on AMD's, whose next cache is close by, less than four times all of it.
pub fn is_far<V>(table: &[V]) -> bool {
    static FAR: OnceLock<usize> = OnceLock::new();
    size_of_val(table) >= *FAR.get_or_init(far)
}

#[cfg(target_arch = "x86_64")]
fn far() -> usize {
    use std::arch::x86_64::__cpuid;
    // Newer compilers than the oldest supported one ask for no `unsafe`.
    #[allow(unused_unsafe)]
    // SAFETY: each processor of x86_64 has the instruction.
    let (maker, caches) = unsafe { (__cpuid(0).ebx, __cpuid(0x8000_0006).ecx) };
    let own = ((caches >> 16) as usize) << 10;
    if maker == u32::from_le_bytes(*b"Genu") { own / 2 } else { own * 4 }
}

#[cfg(not(target_arch = "x86_64"))]
fn far() -> usize {
    1 << 19
}

/// Bytes of a large page.
const LARGE_PAGE: usize = 2 << 20;

/// Zeros on large pages, where the system has them.
pub struct Lines<V = f32> {
    memory: memmap2::MmapMut,
    start: usize,
    len: usize,
    of: PhantomData<V>,
}

/// Of which all bits zero are a value.
pub trait Number: Copy {}

impl Number for f32 {}
impl Number for u32 {}

impl<V: Number> Lines<V> {
    pub fn zeros(len: usize) -> Result<Self, Error> {
        let memory = memmap2::MmapMut::map_anon(len * size_of::<V>() + LARGE_PAGE)?;
        #[cfg(target_os = "linux")]
        memory.advise(memmap2::Advice::HugePage)?;
        let start = memory.as_ptr().addr().next_multiple_of(LARGE_PAGE) - memory.as_ptr().addr();
        Ok(Lines { memory, start, len, of: PhantomData })
    }

    pub fn get(&self) -> &[V] {
        let bytes = &self.memory[self.start..][..self.len * size_of::<V>()];
        // SAFETY: `len` numbers, aligned to a page.
        unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), self.len) }
    }

    pub fn get_mut(&mut self) -> &mut [V] {
        let bytes = &mut self.memory[self.start..][..self.len * size_of::<V>()];
        // SAFETY: as in `get`.
        unsafe { std::slice::from_raw_parts_mut(bytes.as_mut_ptr().cast(), self.len) }
    }
}

#[inline(always)]
pub fn prefetch<V>(table: &[V], index: usize) {
    prefetch_at(table.as_ptr().wrapping_add(index));
}

#[inline(always)]
pub fn prefetch_at<V>(address: *const V) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE is part of x86_64; a prefetch reads nothing and faults on no address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// Runs what inlines into it, compiled for AVX-512 where the processor has it.
#[inline]
pub fn on_this_processor<O>(body: impl FnOnce() -> O) -> O {
    /// # Safety
    ///
    /// The processor has these instructions.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    unsafe fn on_avx512<O>(body: impl FnOnce() -> O) -> O {
        body()
    }
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
    {
        // SAFETY: asked.
        return unsafe { on_avx512(body) };
    }
    body()
}

/// The losses that an epoch saw before it learnt from the rows, as trainers report them: ln(1 +
/// e^-|s|) of many rows is the logarithm of a product, taken now and then.
pub struct Losses {
    product: f64,
    sum: f64,
}

impl Losses {
    pub fn new() -> Self {
        Losses { product: 1.0, sum: 0.0 }
    }

    /// Takes in the logistic loss of a row; gives its derivative.
    #[inline(always)]
    pub fn gradient(&mut self, score: f32, label: f32) -> f32 {
        let small = (-score.abs()).exp();
        let rest = 1.0 / (1.0 + small);
        self.product *= f64::from(1.0 + small);
        self.sum += f64::from(score.max(0.0) - label * score);
        if self.product > 1e200 {
            self.sum += self.product.ln();
            self.product = 1.0;
        }
        (if score >= 0.0 { rest } else { small * rest }) - label
    }

    pub fn total(&self) -> f64 {
        self.sum + self.product.ln()
    }
}

/// A rule at work on a block: the weight first, its state behind it.
pub trait Rule<const BLOCK: usize>: Copy {
    fn update(&mut self, block: &mut [f32; BLOCK], grad: f32);
    /// Before the updates of a batch.
    #[inline(always)]
    fn start(&mut self) {}
}

#[derive(Clone, Copy)]
pub struct Sgd(pub f32);

impl Rule<1> for Sgd {
    #[inline(always)]
    fn update(&mut self, [w]: &mut [f32; 1], grad: f32) {
        *w -= self.0 * grad;
    }
}

#[derive(Clone, Copy)]
pub struct AdaGrad(pub f32);

impl Rule<2> for AdaGrad {
    #[inline(always)]
    fn update(&mut self, [w, sum]: &mut [f32; 2], grad: f32) {
        *sum += grad * grad;
        *w -= self.0 * grad / (*sum + 1e-7).sqrt();
    }
}

/// The fourth number fills the block up to a power of two.
#[derive(Clone, Copy)]
pub struct Ftrl {
    pub inverse_rate: f32,
    pub beta: f32,
    pub l1: f32,
}

impl Rule<4> for Ftrl {
    #[inline(always)]
    fn update(&mut self, [w, z, n, _]: &mut [f32; 4], grad: f32) {
        let after = *n + grad * grad;
        let root = after.sqrt();
        *z += grad - (root - n.sqrt()) * self.inverse_rate * *w;
        *n = after;
        let divisor = (self.beta + root) * self.inverse_rate;
        *w = if z.abs() <= self.l1 { 0.0 } else { (self.l1.copysign(*z) - *z) / divisor };
    }
}

#[derive(Clone, Copy)]
pub struct Adam {
    pub rate: f32,
    corrected: f32,
    powers: [f64; 2],
}

impl Adam {
    pub fn new(rate: f32) -> Self {
        Adam { rate, corrected: 0.0, powers: [1.0; 2] }
    }
}

impl Rule<4> for Adam {
    #[inline(always)]
    fn start(&mut self) {
        self.powers[0] *= 0.9;
        self.powers[1] *= 0.999;
        let correction = (1.0 - self.powers[1]).sqrt() / (1.0 - self.powers[0]);
        self.corrected = self.rate * correction as f32;
    }

    #[inline(always)]
    fn update(&mut self, [w, m, v, _]: &mut [f32; 4], grad: f32) {
        *m = 0.9 * *m + 0.1 * grad;
        *v = 0.999 * *v + 0.001 * grad * grad;
        *w -= self.corrected * *m / (v.sqrt() + 1e-8);
    }
}

/// The block of a column; blocks are `STRIDE` numbers apart.
///
/// # Safety
///
/// `column` is below the width for which the table was made.
#[inline(always)]
pub unsafe fn block<const BLOCK: usize, const STRIDE: usize>(
    table: &mut [f32],
    column: u32,
) -> &mut [f32; BLOCK] {
    const { assert!(BLOCK <= STRIDE) };
    // SAFETY: a table has `STRIDE` elements for each column.
    unsafe { &mut *table.as_mut_ptr().add(column as usize * STRIDE).cast() }
}

/// The block of a column as slots: all bits are a number.
///
/// # Safety
///
/// `column` is below the width for which the table was made, with `STRIDE` elements for each.
#[inline(always)]
unsafe fn block_of_slot<const STRIDE: usize>(table: &mut [f32], column: u32) -> &mut [u32; STRIDE] {
    // SAFETY: promised by the caller.
    unsafe { &mut *table.as_mut_ptr().add(column as usize * STRIDE).cast() }
}

/// The product of a row with the weights: four sums, so that an addition need not wait for the one
/// before it.
#[inline(always)]
pub fn product<const STRIDE: usize, V: Value>(columns: &[u32], values: &[V], table: &[f32]) -> f32 {
    let mut sums = [0.0f32; 4];
    let (column_chunks, columns) = columns.as_chunks::<4>();
    let (value_chunks, values) = values.as_chunks::<4>();
    for (columns, values) in column_chunks.iter().zip(value_chunks) {
        for lane in 0..4 {
            // SAFETY: `Csr` holds columns below its width, for which the table was made.
            let weight = unsafe { table.get_unchecked(columns[lane] as usize * STRIDE) };
            sums[lane] += values[lane].times(*weight);
        }
    }
    for ((column, value), sum) in columns.iter().zip(values).zip(&mut sums) {
        // SAFETY: as above.
        *sum += value.times(unsafe { *table.get_unchecked(*column as usize * STRIDE) });
    }
    (sums[0] + sums[1]) + (sums[2] + sums[3])
}

/// An epoch of batches of one row.
#[inline(never)]
pub fn online<const BLOCK: usize, R: Rule<BLOCK>, V: Value>(
    x: Log<'_, V>,
    table: &mut [f32],
    rule: &mut R,
) -> f64 {
    one_by_one(x, table, rule, |step| step, |step| x.ask(step))
}

/// The same of rows in another order.
#[inline(never)]
pub fn in_order<const BLOCK: usize, R: Rule<BLOCK>, V: Value>(
    x: Log<'_, V>,
    table: &mut [f32],
    rule: &mut R,
    order: &[u32],
) -> f64 {
    let ask = |step: usize| {
        // First where a row lies, then the row.
        if let Some(&later) = order.get(step + 2 * DATA_AHEAD) {
            prefetch(x.indptr, later as usize);
            prefetch(x.labels, later as usize);
        }
        if let Some(&later) = order.get(step + DATA_AHEAD) {
            x.ask_for(later as usize);
        }
    };
    one_by_one(x, table, rule, |step| order[step] as usize, ask)
}

#[inline(always)]
fn one_by_one<const BLOCK: usize, R: Rule<BLOCK>, V: Value>(
    x: Log<'_, V>,
    table: &mut [f32],
    rule: &mut R,
    row_of: impl Fn(usize) -> usize,
    ask_for_data: impl Fn(usize),
) -> f64 {
    let mut losses = Losses::new();
    let is_far = is_far(table);
    for step in 0..x.n_rows() {
        ask_for_data(step);
        if is_far && step + AHEAD < x.n_rows() {
            for &column in x.row(row_of(step + AHEAD)).0 {
                prefetch(table, column as usize * BLOCK);
            }
        }
        let row = row_of(step);
        let (columns, values) = x.row(row);
        let grad = losses.gradient(product::<BLOCK, V>(columns, values, table), x.labels[row]);
        rule.start();
        update_all::<BLOCK, BLOCK, R>(
            rule,
            table,
            columns.len().min(values.len()),
            #[inline(always)]
            |entry| (columns[entry], values[entry].times(grad)),
        );
    }
    losses.total()
}

/// Numbers from the block of one column to that of the next in tables of larger batches of rules
/// with state: the last one is the slot of the column's sum, in a line of the cache that is read
/// for the weight.
pub const WITH_SLOT: usize = 4;

/// The same of a rule without state.
const WITH_ONE: usize = 2;

/// The numbers from weight to weight in a table for batches of `size` rows.
pub fn stride_of<const BLOCK: usize>(size: usize) -> usize {
    match (size, BLOCK) {
        (1, _) => BLOCK,
        (_, 1) => WITH_ONE,
        _ => WITH_SLOT,
    }
}

/// Columns of a batch between asking for the block of one and updating it.
const UPDATES_AHEAD: usize = 32;

/// Rows whose scores come before their sums.
const TOGETHER: usize = 16;

/// What an epoch of larger batches keeps from batch to batch.
pub struct Batches {
    size: usize,
    grads: Vec<f32>,
    /// A slot is `first` + the place in `touched`; less than `first` of a column that the batch has
    /// not touched.
    first: u32,
    touched: Vec<(u32, f64)>,
}

impl Batches {
    pub fn new(size: usize) -> Self {
        Batches { size, grads: Vec::new(), first: 1, touched: Vec::new() }
    }

    /// SGD, whose steps would be rounded away one by one where a batch is large. The table has
    /// [`WITH_ONE`] numbers for each column.
    #[inline(never)]
    pub fn sgd<V: Value>(&mut self, x: Log<'_, V>, table: &mut [f32], rate: f32) -> f64 {
        self.any::<1, WITH_ONE, Sgd, V>(x, table, &mut Sgd(rate))
    }

    /// Any rule: the gradient of a column is summed before its one update, while the lines that the
    /// scores have read are at hand. The table has `STRIDE` numbers for each column. Sums are
    /// `f64`, as those of the library.
    #[inline(never)]
    pub fn any<const BLOCK: usize, const STRIDE: usize, R: Rule<BLOCK>, V: Value>(
        &mut self,
        x: Log<'_, V>,
        table: &mut [f32],
        rule: &mut R,
    ) -> f64 {
        let (mut losses, is_far) = (Losses::new(), is_far(table));
        for first in (0..x.n_rows()).step_by(self.size) {
            let rows = first..x.n_rows().min(first + self.size);
            self.touched.clear();
            for start in rows.clone().step_by(TOGETHER) {
                let block = start..rows.end.min(start + TOGETHER);
                self.score::<STRIDE, V>(x, table, block.clone(), rows.len(), &mut losses);
                for (row, grad) in block.zip(&self.grads) {
                    let (columns, values) = x.row(row);
                    self.touched.reserve(columns.len() + 1);
                    let (touched, mut len) = (self.touched.as_mut_ptr(), self.touched.len());
                    for (&column, value) in columns.iter().zip(values) {
                        // Whether a column is new is chance, so that nothing branches on it: there
                        // is always a new place, and who has one already leaves it for the next.
                        // SAFETY: as in `product`; there is room for one place more than columns.
                        unsafe {
                            let slot = &mut block_of_slot::<STRIDE>(table, column)[STRIDE - 1];
                            let place = (slot.wrapping_sub(self.first) as usize).min(len);
                            *touched.add(len) = (column, 0.0);
                            (*touched.add(place)).1 += f64::from(value.times(*grad));
                            *slot = self.first + place as u32;
                            len += usize::from(place == len);
                        }
                    }
                    // SAFETY: so many were written.
                    unsafe { self.touched.set_len(len) };
                }
            }
            self.first += self.touched.len() as u32;
            rule.start();
            let start = table.as_ptr();
            update_all::<BLOCK, STRIDE, R>(
                rule,
                table,
                self.touched.len(),
                #[inline(always)]
                |place| {
                    // One each time: many at once wait for each other.
                    if let (true, Some((ahead, _))) =
                        (is_far, self.touched.get(place + UPDATES_AHEAD))
                    {
                        prefetch_at(start.wrapping_add(*ahead as usize * STRIDE));
                    }
                    let (column, sum) = self.touched[place];
                    (column, sum as f32)
                },
            );
        }
        losses.total()
    }

    /// The gradients of some rows of a batch of `n_rows`.
    #[inline(always)]
    fn score<const STRIDE: usize, V: Value>(
        &mut self,
        x: Log<'_, V>,
        table: &[f32],
        rows: std::ops::Range<usize>,
        n_rows: usize,
        losses: &mut Losses,
    ) {
        let share = 1.0 / n_rows as f32;
        let is_far = is_far(table);
        self.grads.clear();
        for row in rows {
            x.ask(row);
            if is_far && row + AHEAD < x.n_rows() {
                for &column in x.row(row + AHEAD).0 {
                    prefetch(table, column as usize * STRIDE);
                }
            }
            let (columns, values) = x.row(row);
            let grad = losses.gradient(product::<STRIDE, V>(columns, values, table), x.labels[row]);
            self.grads.push(share * grad);
        }
    }
}
