//! Vectors of elements, as wide as the processor that runs them has, chosen at run time.
//!
//! A loop is written once, over [`Lanes`], and compiled for AVX-512, for AVX2, and for what every processor of the target
//! has. Which of them runs does not show in the result: a lane does what scalar code would, multiplication and addition
//! round one after the other, and the order of sums is that of the loop.

use sparse_core::element::Float;
use sparse_core::storage::ElementType;
use std::any::TypeId;

/// Elements side by side, in the accumulator.
pub(crate) trait Lanes<T>: Copy {
    /// How many.
    const COUNT: usize;

    /// The number of vectors that sums may take of the processor's registers.
    const REGISTERS: usize;

    /// Zeros.
    ///
    /// # Safety
    ///
    /// As for all that follow: the processor has the instructions of this type, which [`widest`] sees to.
    unsafe fn zero() -> Self;

    /// An element in every lane.
    ///
    /// # Safety
    ///
    /// See [`zero`](Lanes::zero).
    unsafe fn splat(element: T) -> Self;

    /// Elements from memory.
    ///
    /// # Safety
    ///
    /// There are [`COUNT`](Lanes::COUNT) elements to be read.
    unsafe fn load(from: *const T) -> Self;

    /// Elements to memory, rounded to their type.
    ///
    /// # Safety
    ///
    /// There are [`COUNT`](Lanes::COUNT) elements to be written.
    unsafe fn store(self, to: *mut T);

    /// self + other.
    ///
    /// # Safety
    ///
    /// See [`zero`](Lanes::zero).
    unsafe fn add(self, other: Self) -> Self;

    /// self · other.
    ///
    /// # Safety
    ///
    /// See [`zero`](Lanes::zero).
    unsafe fn multiply(self, other: Self) -> Self;
}

/// `N` lanes that the compiler makes what it can of.
#[derive(Clone, Copy)]
pub(crate) struct Plain<A, const N: usize>([A; N]);

impl<T: Float, const N: usize> Lanes<T> for Plain<T::Accumulator, N> {
    const COUNT: usize = N;
    const REGISTERS: usize = 2;

    #[inline(always)]
    unsafe fn zero() -> Self {
        Plain([T::zero().widen(); N])
    }

    #[inline(always)]
    unsafe fn splat(element: T) -> Self {
        Plain([element.widen(); N])
    }

    #[inline(always)]
    unsafe fn load(from: *const T) -> Self {
        // SAFETY: the caller says that there are `N` elements; an array has the alignment of its elements.
        Plain(unsafe { *from.cast::<[T; N]>() }.map(T::widen))
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut T) {
        // SAFETY: as in `load`.
        unsafe { *to.cast::<[T; N]>() = self.0.map(T::narrow) };
    }

    #[inline(always)]
    unsafe fn add(mut self, other: Self) -> Self {
        for (x, y) in self.0.iter_mut().zip(other.0) {
            *x += y;
        }
        self
    }

    #[inline(always)]
    unsafe fn multiply(mut self, other: Self) -> Self {
        for (x, y) in self.0.iter_mut().zip(other.0) {
            *x *= y;
        }
        self
    }
}

/// A loop over vectors, to be run by [`widest`] or [`narrow`].
pub(crate) trait Loop<T> {
    /// The loop; to be inlined, so that it is compiled for the instructions of `L`.
    ///
    /// # Safety
    ///
    /// The processor has the instructions of `L`.
    unsafe fn run<L: Lanes<T>>(self);
}

/// Runs a loop with the widest vectors that there are.
#[inline]
pub(crate) fn widest<T: Float, B: Loop<T>>(body: B) {
    #[cfg(target_arch = "x86_64")]
    if let Some(level) = x86::Level::found() {
        // SAFETY: the level was found, and each type of vector goes with its type of elements.
        unsafe {
            match (level, T::TYPE) {
                (x86::Level::Avx512, ElementType::F32) => {
                    return x86::avx512::<T, x86::F32x16, B>(body);
                }
                (x86::Level::Avx512, ElementType::F64) => {
                    return x86::avx512::<T, x86::F64x8, B>(body);
                }
                (x86::Level::Avx2, ElementType::F32) => return x86::avx2::<T, x86::F32x8, B>(body),
                (x86::Level::Avx2, ElementType::F64) => return x86::avx2::<T, x86::F64x4, B>(body),
                _ => {}
            }
        }
    }
    // SAFETY: plain lanes need no instructions of their own.
    unsafe { body.run::<Plain<T::Accumulator, 4>>() }
}

/// Runs a loop with vectors of 32 bytes at most: of a short row they leave less over.
#[inline]
pub(crate) fn narrow<T: Float, B: Loop<T>>(body: B) {
    #[cfg(target_arch = "x86_64")]
    if x86::Level::found().is_some() {
        // SAFETY: every level has AVX2, and each type of vector goes with its type of elements.
        unsafe {
            match T::TYPE {
                ElementType::F32 => return x86::avx2::<T, x86::F32x8, B>(body),
                ElementType::F64 => return x86::avx2::<T, x86::F64x4, B>(body),
                _ => {}
            }
        }
    }
    // SAFETY: plain lanes need no instructions of their own.
    unsafe { body.run::<Plain<T::Accumulator, 4>>() }
}

/// Runs a loop that the compiler turns into vectors by itself, compiled for AVX2 where the processor has it. `body` is to be
/// inlined (`#[inline(always)]`), and so is what it calls. No third copy for AVX-512: each is compiled
/// anew for every model and rule.
#[inline(always)]
pub(crate) fn wide<O>(body: impl FnOnce() -> O) -> O {
    #[cfg(target_arch = "x86_64")]
    if x86::Level::found().is_some() {
        // SAFETY: found; every level has AVX2.
        return unsafe { x86::with_avx2(body) };
    }
    body()
}

/// Σ a b, in eight sums so that an addition does not wait for the one before it, and these in halves. The compiler does not make
/// vectors of the last additions by itself. To be called in a loop that [`wide`] runs.
#[inline(always)]
pub(crate) fn inner<T: Float<Accumulator = T>>(a: &[T], b: &[T]) -> T {
    const LANES: usize = 8;
    let (a_chunks, a_rest) = a.as_chunks::<LANES>();
    let (b_chunks, b_rest) = b.as_chunks::<LANES>();
    #[cfg(target_arch = "x86_64")]
    if a_rest.is_empty()
        && x86::Level::found().is_some()
        && let (Some(a), Some(b)) = (same_type(a_chunks), same_type(b_chunks))
    {
        // SAFETY: found; every level has AVX2.
        let sum = [unsafe { x86::inner(a, b) }];
        if let Some([sum]) = same_type(&sum) {
            return *sum;
        }
    }
    let mut sums = [T::zero(); LANES];
    for (a, b) in a_chunks.iter().zip(b_chunks) {
        for lane in 0..LANES {
            sums[lane] += a[lane] * b[lane];
        }
    }
    for (lane, (a, b)) in a_rest.iter().zip(b_rest).enumerate() {
        sums[lane] += *a * *b;
    }
    for half in [4, 2, 1] {
        let (low, high) = sums.split_at_mut(half);
        low.iter_mut().zip(high).for_each(|(low, high)| *low += *high);
    }
    sums[0]
}

/// The same slice, where the two types are one.
#[inline(always)]
pub(crate) fn same_type<T: 'static, U: 'static>(slice: &[T]) -> Option<&[U]> {
    // SAFETY: the types are equal.
    (TypeId::of::<T>() == TypeId::of::<U>())
        .then(|| unsafe { std::slice::from_raw_parts(slice.as_ptr().cast(), slice.len()) })
}

/// [`same_type`], to be written.
#[inline(always)]
pub(crate) fn same_type_mut<T: 'static, U: 'static>(slice: &mut [T]) -> Option<&mut [U]> {
    // SAFETY: the types are equal.
    (TypeId::of::<T>() == TypeId::of::<U>())
        .then(|| unsafe { std::slice::from_raw_parts_mut(slice.as_mut_ptr().cast(), slice.len()) })
}

#[cfg(target_arch = "x86_64")]
pub(crate) mod x86 {
    //! The vectors of x86.

    use super::{Lanes, Loop};
    use sparse_core::element::Float;
    use std::arch::x86_64::*;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU8, Ordering};

    /// What the processor has.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub(crate) enum Level {
        /// Sixteen registers of 32 bytes.
        Avx2,
        /// Thirty-two registers of 64 bytes, and masks.
        Avx512,
    }

    impl Level {
        /// The best level, if any; found once.
        #[inline]
        pub(crate) fn found() -> Option<Level> {
            let level = Level::of_the_processor();
            #[cfg(test)]
            let level = level.min(super::tests::HIGHEST.get());
            level
        }

        #[inline]
        fn of_the_processor() -> Option<Level> {
            /// What [`KNOWN`] is before anybody has looked.
            const UNKNOWN: u8 = u8::MAX;
            static KNOWN: AtomicU8 = AtomicU8::new(UNKNOWN);
            match KNOWN.load(Ordering::Relaxed) {
                0 => None,
                1 => Some(Level::Avx2),
                2 => Some(Level::Avx512),
                _ => {
                    let level = Level::find();
                    KNOWN.store(level.map_or(0, |level| 1 + level as u8), Ordering::Relaxed);
                    level
                }
            }
        }

        #[cold]
        fn find() -> Option<Level> {
            if !is_x86_feature_detected!("avx2")
                || !is_x86_feature_detected!("bmi1")
                || !is_x86_feature_detected!("bmi2")
                || !is_x86_feature_detected!("popcnt")
            {
                return None;
            }
            let wide = is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl");
            Some(if wide { Level::Avx512 } else { Level::Avx2 })
        }
    }

    /// Whether elements that lie apart are better loaded by one instruction than one by one: measured so on Intel's
    /// processors with AVX-512, and the other way round on AMD's.
    pub(crate) fn gathers_well() -> bool {
        static INTEL: OnceLock<bool> = OnceLock::new();
        let of_intel = || {
            let vendor = __cpuid(0);
            [vendor.ebx, vendor.edx, vendor.ecx]
                == [*b"Genu", *b"ineI", *b"ntel"].map(u32::from_le_bytes)
        };
        Level::found() == Some(Level::Avx512) && *INTEL.get_or_init(of_intel)
    }

    /// Runs what inlines here, compiled for AVX2.
    ///
    /// # Safety
    ///
    /// [`Level::found`] gave some level.
    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    pub(crate) unsafe fn with_avx2<O>(body: impl FnOnce() -> O) -> O {
        body()
    }

    /// [`inner`](super::inner) of eights.
    ///
    /// # Safety
    ///
    /// [`Level::found`] gave some level.
    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    #[inline]
    pub(crate) unsafe fn inner(a: &[[f32; 8]], b: &[[f32; 8]]) -> f32 {
        let mut sums = _mm256_setzero_ps();
        for (a, b) in a.iter().zip(b) {
            // SAFETY: eight elements each.
            let (a, b) = unsafe { (_mm256_loadu_ps(a.as_ptr()), _mm256_loadu_ps(b.as_ptr())) };
            sums = _mm256_add_ps(sums, _mm256_mul_ps(a, b));
        }
        let four = _mm_add_ps(_mm256_castps256_ps128(sums), _mm256_extractf128_ps::<1>(sums));
        let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
        _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
    }

    /// Runs a loop compiled for AVX-512.
    ///
    /// # Safety
    ///
    /// [`Level::found`] gave it, and the elements are those of `L`.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,popcnt")]
    pub(crate) unsafe fn avx512<T: Float, L: Lanes<T>, B: Loop<T>>(body: B) {
        // SAFETY: as the caller says.
        unsafe { body.run::<L>() }
    }

    /// Runs a loop compiled for AVX2.
    ///
    /// # Safety
    ///
    /// [`Level::found`] gave it or a better one, and the elements are those of `L`.
    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    pub(crate) unsafe fn avx2<T: Float, L: Lanes<T>, B: Loop<T>>(body: B) {
        // SAFETY: as the caller says.
        unsafe { body.run::<L>() }
    }

    macro_rules! vectors {
        ($($(#[$doc:meta])* $name:ident($register:ident of $element:ident, $count:literal, $registers:literal):
            $zero:ident $splat:ident $load:ident $store:ident $add:ident $multiply:ident;)*) => {$(
            $(#[$doc])*
            #[derive(Clone, Copy)]
            pub(crate) struct $name($register);

            impl<T: Float> Lanes<T> for $name {
                const COUNT: usize = $count;
                const REGISTERS: usize = $registers;

                #[inline(always)]
                unsafe fn zero() -> Self {
                    // SAFETY: `widest` chose this type for a processor that has its instructions, here and below.
                    $name(unsafe { $zero() })
                }

                #[inline(always)]
                unsafe fn splat(element: T) -> Self {
                    // SAFETY: `widest` chose this type for elements of this type.
                    $name(unsafe { $splat(std::mem::transmute_copy::<T, $element>(&element)) })
                }

                #[inline(always)]
                unsafe fn load(from: *const T) -> Self {
                    // SAFETY: the caller says that the elements are there.
                    $name(unsafe { $load(from.cast()) })
                }

                #[inline(always)]
                unsafe fn store(self, to: *mut T) {
                    // SAFETY: the caller says that there is room.
                    unsafe { $store(to.cast(), self.0) };
                }

                #[inline(always)]
                unsafe fn add(self, other: Self) -> Self {
                    // SAFETY: see `zero`.
                    $name(unsafe { $add(self.0, other.0) })
                }

                #[inline(always)]
                unsafe fn multiply(self, other: Self) -> Self {
                    // SAFETY: see `zero`.
                    $name(unsafe { $multiply(self.0, other.0) })
                }
            }
        )*};
    }

    vectors! {
        /// A register of AVX-512.
        F32x16(__m512 of f32, 16, 16): _mm512_setzero_ps _mm512_set1_ps _mm512_loadu_ps _mm512_storeu_ps
            _mm512_add_ps _mm512_mul_ps;
        /// A register of AVX-512.
        F64x8(__m512d of f64, 8, 16): _mm512_setzero_pd _mm512_set1_pd _mm512_loadu_pd _mm512_storeu_pd
            _mm512_add_pd _mm512_mul_pd;
        /// A register of AVX2.
        F32x8(__m256 of f32, 8, 8): _mm256_setzero_ps _mm256_set1_ps _mm256_loadu_ps _mm256_storeu_ps
            _mm256_add_ps _mm256_mul_ps;
        /// A register of AVX2.
        F64x4(__m256d of f64, 4, 8): _mm256_setzero_pd _mm256_set1_pd _mm256_loadu_pd _mm256_storeu_pd
            _mm256_add_pd _mm256_mul_pd;
    }
}

#[cfg(test)]
#[cfg(target_arch = "x86_64")]
mod tests {
    //! The loops of kernels give the same bits with any instructions, as far as this processor has them.

    use super::inner;
    use super::x86::Level;
    use crate::formats::{Csr, Dense, RowSparse};
    use crate::kernels::dot::cpu;
    use crate::kernels::{Context, Parallel};
    use sparse_core::element::Float;
    use std::cell::{Cell, RefCell};

    thread_local! {
        /// The best level that loops on this thread may use.
        pub(super) static HIGHEST: Cell<Option<Level>> = const { Cell::new(Some(Level::Avx512)) };
    }

    const ROWS: usize = 40;
    const COLUMNS: usize = 90;

    /// Numbers whose sums round differently in another order.
    fn numbers<T: Float>(n_rows: usize, n_cols: usize) -> Dense<T> {
        let number = |i: usize| T::of(((i * 7919 % 1009) as f64 - 500.0) / 300.0);
        Dense::new([n_rows, n_cols], (0..n_rows * n_cols).map(number).collect()).unwrap()
    }

    /// Rows of 0 to 40 entries.
    fn matrix<T: Float>() -> Csr<T> {
        let rows = (0..ROWS).map(|row| {
            let entry = |k| (k * 2 + row % 3, T::of(((row * 41 + k) % 13) as f64 / 7.0));
            (0..row * 7 % 41).map(entry).collect::<Vec<_>>()
        });
        Csr::from_rows(COLUMNS, rows).unwrap()
    }

    fn bits<T: Float>(values: &[T]) -> Vec<u64> {
        values.iter().map(|value| value.as_f64().to_bits()).collect()
    }

    #[test]
    fn inner_products() {
        for len in [0, 1, 7, 8, 16, 20, 24, 33] {
            let (a, b) = (numbers::<f32>(1, len), numbers::<f32>(2, len));
            let (a, b) = (a.values(), &b.values()[len..]);
            any_level_gives_the_same(&format!("{len} elements"), || inner(a, b).to_bits());
            let exact: f64 = a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
            assert!((f64::from(inner(a, b)) - exact).abs() < 1e-4, "{len} elements");
        }
    }

    /// What `run` gives without instructions for vectors, and with more and more of them.
    fn any_level_gives_the_same<R: PartialEq + std::fmt::Debug>(what: &str, run: impl Fn() -> R) {
        let at = |level| {
            HIGHEST.set(level);
            run()
        };
        let plain = at(None);
        for level in [Level::Avx2, Level::Avx512] {
            assert_eq!(at(Some(level)), plain, "{what}: {level:?}");
        }
    }

    fn products<T: Float>() {
        let x = matrix::<T>();
        let parallel = Parallel::Sequential;
        let context = RefCell::new(Context { parallel, ..Context::default() });
        for width in [1, 2, 3, 4, 7, 8, 15, 16, 17, 31, 32, 33, 64, 75, 150] {
            let (right, left) = (numbers::<T>(COLUMNS, width), numbers::<T>(ROWS, width));
            any_level_gives_the_same(&format!("csr · dense of {width}"), || {
                let mut out = Dense::default();
                let context = &mut context.borrow_mut();
                cpu::csr_dense(&mut out, x.view(), right.view(), false, context);
                bits(out.values())
            });
            let dense = x.to_dense().unwrap();
            any_level_gives_the_same(&format!("dense · dense of {width}"), || {
                let mut out = Dense::default();
                let context = &mut context.borrow_mut();
                cpu::dense_dense(&mut out, dense.view(), right.view(), false, false, context);
                bits(out.values())
            });
            any_level_gives_the_same(&format!("csrᵀ · dense of {width}"), || {
                let (mut table, mut rows) = (Dense::default(), RowSparse::default());
                let context = &mut context.borrow_mut();
                let into_table = cpu::csr_transposed_dense_into_dense;
                into_table(&mut table, x.view(), left.view(), false, context);
                cpu::csr_transposed_dense(&mut rows, x.view(), left.view(), false, context);
                (bits(table.values()), bits(rows.values()))
            });
        }
    }

    #[test]
    fn products_of_f32() {
        products::<f32>();
    }

    #[test]
    fn products_of_f64() {
        products::<f64>();
    }

    #[test]
    fn the_csr_form_of_a_dense_matrix() {
        let dense = matrix::<f32>().to_dense().unwrap();
        any_level_gives_the_same("dense → csr", || {
            let csr = dense.to_csr().unwrap();
            (csr.indptr().to_vec(), bits(csr.values()))
        });
    }
}
