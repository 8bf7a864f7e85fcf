//! SIMD vectors, as wide as the running processor has them, chosen at run time.
//!
//! A loop is written once, over [`Lanes`], and compiled for AVX-512, for AVX2, and for the target's
//! baseline. The choice does not show in the result: a lane does what scalar code would,
//! multiplication and addition round one after the other, and the order of sums is that of the
//! loop.

mod width;
#[cfg(target_arch = "x86_64")]
pub mod x86;

use sparse_core::element::{Factor, Float, Stored};
use sparse_core::storage::ElementType;
use std::any::TypeId;
use std::fmt;
#[cfg(target_arch = "x86_64")]
use std::sync::{Mutex, PoisonError};
pub use width::{Fixed, Runtime, Width};

/// A vector of elements, in the accumulator.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a vector of `{T}`",
    note = "vectors are chosen by `widest` and `narrow`, which run a `Loop`"
)]
pub trait Lanes<T>: Copy {
    /// The number of elements.
    const COUNT: usize;

    /// The number of vectors that sums may take of the processor's registers.
    const REGISTERS: usize;

    /// Zeros.
    ///
    /// # Safety
    ///
    /// As for all methods that follow: the processor has the instructions of this type, which
    /// [`widest`] ensures.
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

/// `N` lanes that the compiler may vectorise.
#[derive(Clone, Copy, Debug)]
pub struct Plain<A, const N: usize>([A; N]);

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
        // SAFETY: the caller says that there are `N` elements; an array has the alignment of its
        // elements.
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

/// A loop over vectors, for [`widest`] or [`narrow`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a loop over vectors of `{T}`",
    note = "`widest` and `narrow` run a struct of operands that implements `Loop`"
)]
pub trait Loop<T> {
    /// Whether it is compiled for each kind of vectors. If not, it runs on plain lanes.
    const IN_VECTORS: bool = true;

    /// The loop; to be inlined, so that it is compiled for the instructions of `L`.
    ///
    /// # Safety
    ///
    /// The processor has the instructions of `L`.
    unsafe fn run<L: Lanes<T>>(self);
}

/// Whether an element is of this type. Use it in a `const` block, so that a branch for another type
/// is not compiled at all.
pub const fn is_f32<T: Stored>() -> bool {
    matches!(T::TYPE, ElementType::F32)
}

/// As [`is_f32`].
pub const fn is_f64<T: Stored>() -> bool {
    matches!(T::TYPE, ElementType::F64)
}

/// Like [`is_f32`]: whether elements are, and the values that they are multiplied with are, or are
/// all 1.
pub const fn are_f32<T: Float, V: Factor<T>>() -> bool {
    is_f32::<T>() && (is_f32::<V>() || V::IS_UNIT)
}

/// Like [`is_f32`]. Ids of other types occur with more than 2³² columns, where a loop waits for
/// memory: vector code would be compiled for nothing.
pub const fn is_u32<I: Stored>() -> bool {
    matches!(I::TYPE, ElementType::U32)
}

/// Like [`is_f32`]: whether sums of elements are of their type.
pub const fn is_accumulator<T: Float>() -> bool {
    T::TYPE as u8 == <T::Accumulator as Stored>::TYPE as u8
}

/// Runs a loop with the widest vectors.
#[inline]
pub fn widest<T: Float, B: Loop<T>>(body: B) {
    #[cfg(target_arch = "x86_64")]
    if let Some(level) = x86::Level::found() {
        // SAFETY: the level was found, and each type of vector goes with its type of elements.
        unsafe {
            if const { B::IN_VECTORS && is_f32::<T>() } {
                return match level {
                    x86::Level::Avx512 => x86::avx512::<T, x86::F32x16, B>(body),
                    x86::Level::Avx2 => x86::avx2::<T, x86::F32x8, B>(body),
                };
            }
            if const { B::IN_VECTORS && is_f64::<T>() } {
                return match level {
                    x86::Level::Avx512 => x86::avx512::<T, x86::F64x8, B>(body),
                    x86::Level::Avx2 => x86::avx2::<T, x86::F64x4, B>(body),
                };
            }
        }
    }
    // SAFETY: plain lanes need no instructions of their own.
    unsafe { body.run::<Plain<T::Accumulator, 4>>() }
}

/// Runs a loop with vectors of at most 32 bytes: they leave less of a short row over.
#[inline]
pub fn narrow<T: Float, B: Loop<T>>(body: B) {
    #[cfg(target_arch = "x86_64")]
    if x86::Level::found().is_some() {
        // SAFETY: every level has AVX2, and each type of vector goes with its type of elements.
        unsafe {
            if const { B::IN_VECTORS && is_f32::<T>() } {
                return x86::avx2::<T, x86::F32x8, B>(body);
            }
            if const { B::IN_VECTORS && is_f64::<T>() } {
                return x86::avx2::<T, x86::F64x4, B>(body);
            }
        }
    }
    // SAFETY: plain lanes need no instructions of their own.
    unsafe { body.run::<Plain<T::Accumulator, 4>>() }
}

/// Runs a loop that the compiler vectorises by itself, compiled for AVX2 if the processor has it.
/// Mark `body` `#[inline(always)]`, and everything that it calls. There is no third copy for
/// AVX-512, except by [`in_sixteens`]: each is compiled anew for every model and rule.
#[inline(always)]
pub fn wide<O>(body: impl FnOnce() -> O) -> O {
    #[cfg(target_arch = "x86_64")]
    if x86::Level::found().is_some() {
        // SAFETY: found; every level has AVX2.
        return unsafe { x86::with_avx2(body) };
    }
    body()
}

/// Like [`wide`], compiled for AVX-512 where rows are sixteens and the processor is faster with
/// them.
#[inline(always)]
pub fn in_sixteens<W: Width, O>(body: impl FnOnce() -> O) -> O {
    #[cfg(target_arch = "x86_64")]
    if W::IN_SIXTEENS && x86::divides_in_sixteens() {
        // SAFETY: found.
        return unsafe { x86::with_avx512(body) };
    }
    wide(body)
}

/// Σ a b, in eight sums so that an addition does not depend on the previous one, and these in
/// halves. The compiler does not vectorise the last additions by itself. Call it in a loop that
/// [`wide`] runs.
#[inline(always)]
pub fn inner<T: Float<Accumulator = T>>(a: &[T], b: &[T]) -> T {
    sum_of_terms::<true, T>(a, b)
}

/// Σ a, in the order of [`inner`].
#[inline(always)]
pub fn sum<T: Float>(a: &[T]) -> T {
    const LANES: usize = 8;
    let (chunks, rest) = a.as_chunks::<LANES>();
    let mut sums = [T::zero(); LANES];
    for chunk in chunks {
        for (sum, a) in sums.iter_mut().zip(chunk) {
            *sum += *a;
        }
    }
    for (sum, a) in sums.iter_mut().zip(rest) {
        *sum += *a;
    }
    sum_of_halves(sums)
}

/// Σ a² - b, in the order of [`inner`].
#[inline(always)]
pub fn squares_less<T: Float<Accumulator = T>>(a: &[T], b: &[T]) -> T {
    sum_of_terms::<false, T>(a, b)
}

/// [`inner`] or [`squares_less`].
#[inline(always)]
fn sum_of_terms<const INNER: bool, T: Float<Accumulator = T>>(a: &[T], b: &[T]) -> T {
    const LANES: usize = 8;
    let (a_chunks, a_rest) = a.as_chunks::<LANES>();
    let (b_chunks, b_rest) = b.as_chunks::<LANES>();
    #[cfg(target_arch = "x86_64")]
    if const { is_f32::<T>() }
        && a_rest.is_empty()
        && x86::Level::found().is_some()
        && let (Some(a), Some(b)) = (same_type(a_chunks), same_type(b_chunks))
    {
        // SAFETY: found; every level has AVX2.
        let sum = [unsafe { x86::sum_of_terms::<INNER>(a, b) }];
        if let Some([sum]) = same_type(&sum) {
            return *sum;
        }
    }
    let term = |a: T, b: T| if INNER { a * b } else { a * a - b };
    let mut sums = [T::zero(); LANES];
    for (a, b) in a_chunks.iter().zip(b_chunks) {
        for lane in 0..LANES {
            sums[lane] += term(a[lane], b[lane]);
        }
    }
    for (lane, (a, b)) in a_rest.iter().zip(b_rest).enumerate() {
        sums[lane] += term(*a, *b);
    }
    sum_of_halves(sums)
}

/// Runs `body` with the instructions of each kind that this processor has, the fewest first, and
/// checks that it gives the same each time: for tests. The kind is that of the whole process
/// meanwhile, so that one call waits for another.
///
/// # Panics
///
/// If one kind gives something else; the message begins with `what`.
///
/// ```
/// nnz_device::simd::every_level_gives_the_same("a sum", || [0.1f32, 0.2].iter().sum::<f32>());
/// ```
pub fn every_level_gives_the_same<R: PartialEq + fmt::Debug>(what: &str, body: impl Fn() -> R) {
    #[cfg(target_arch = "x86_64")]
    {
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        // Nothing is kept in it.
        let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let mut plain = None;
        x86::at_each_level(&mut |level| {
            let found = body();
            let plain = plain.get_or_insert_with(&body);
            assert_eq!(&found, plain, "{what}: {level}");
        });
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (what, body());
}

/// Sums of rows by intrinsics, eight elements at a time. Without them the compiler vectorises a
/// loop, or takes vectors apart again, depending on the code around it.
#[derive(Clone, Copy, Debug)]
pub struct Eights(());

impl Eights {
    /// If the processor, the type and the size of the rows allow it. Call it once for a loop that
    /// [`wide`] runs.
    #[inline(always)]
    pub fn of<T: Float>(row_size: usize) -> Option<Self> {
        #[cfg(target_arch = "x86_64")]
        if const { is_f32::<T>() } && row_size.is_multiple_of(8) && x86::Level::found().is_some() {
            return Some(Eights(()));
        }
        let _ = row_size;
        None
    }

    /// `sums += factor · row`, and `squares += (factor · row)²`.
    ///
    /// # Safety
    ///
    /// All three have the size that this was made for.
    #[inline(always)]
    pub unsafe fn add_with_squares<T: Float>(
        self,
        factor: T,
        row: &[T],
        sums: &mut [T],
        squares: &mut [T],
    ) {
        #[cfg(target_arch = "x86_64")]
        if const { is_f32::<T>() }
            && let (Some([factor]), Some(row)) = (same_type::<T, f32>(&[factor]), same_type(row))
            && let (Some(sums), Some(squares)) = (same_type_mut(sums), same_type_mut(squares))
        {
            // SAFETY: found when this was made; the sizes are those that the caller promises.
            unsafe { x86::add_with_squares(*factor, row, sums, squares) };
        }
    }
}

/// The sum of eight sums, in halves.
#[inline(always)]
fn sum_of_halves<T: Float>([a, b, c, d, e, f, g, h]: [T; 8]) -> T {
    ((a + e) + (c + g)) + ((b + f) + (d + h))
}

/// The same slice, if the two types are one.
#[inline(always)]
pub fn same_type<T: 'static, U: 'static>(slice: &[T]) -> Option<&[U]> {
    // SAFETY: the types are equal.
    (TypeId::of::<T>() == TypeId::of::<U>())
        .then(|| unsafe { std::slice::from_raw_parts(slice.as_ptr().cast(), slice.len()) })
}

/// [`same_type`], for writing.
#[inline(always)]
pub fn same_type_mut<T: 'static, U: 'static>(slice: &mut [T]) -> Option<&mut [U]> {
    // SAFETY: the types are equal.
    (TypeId::of::<T>() == TypeId::of::<U>())
        .then(|| unsafe { std::slice::from_raw_parts_mut(slice.as_mut_ptr().cast(), slice.len()) })
}

#[cfg(test)]
#[cfg(target_arch = "x86_64")]
mod tests;
