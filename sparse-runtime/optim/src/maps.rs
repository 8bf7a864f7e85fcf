//! What a run of steps without gradient does to a weight and its state, as maps that compose.

use super::mean_run::MeanRun;
use sparse_core::element::Float;
use std::fmt::Debug;

/// A change of a weight and its state by steps without gradient. Two in a row are one of the same
/// kind, which is what makes an idle row cheap: k steps are one map.
///
/// A map holds what all weights of a parameter have in common; what it does to one weight says
/// [`Step::apply_idle`](super::Step::apply_idle).
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a map of idle steps",
    note = "it says what a run of steps without gradient does to a weight: `()` where that is \
            nothing or has no closed form, else a map that composes with its like, such as \
            `MatrixMap`"
)]
pub trait IdleMap: Copy + PartialEq + Debug + Send + Sync + 'static {
    /// The map that changes nothing.
    const IDENTITY: Self;

    /// True where of some maps only the last counts that is not the identity, and applying it once
    /// more changes nothing: then nobody needs to know since when a weight has been idle.
    const FORGETS: bool = false;

    /// `self` after `first`.
    fn after(&self, first: &Self) -> Self;

    /// Appends the numbers that the map is made of, of every map of a type as many: what a
    /// checkpoint keeps.
    fn write(&self, numbers: &mut Vec<f64>);

    /// The names of these numbers, in formulas; none where no formula asks for them.
    const NUMBERS: &'static [&'static str] = &[];

    /// The map made of the numbers that [`write`](Self::write) appended; `None` where they make
    /// none.
    fn read(numbers: &[f64]) -> Option<Self>;

    /// True where [`scalar`](Self::scalar) may be something.
    const HAS_SCALARS: bool = false;

    /// True where nearly all maps of the type have a [`scalar`](Self::scalar): loops over rows then
    /// ask for scalars first, and keep in registers what that takes.
    const MOSTLY_SCALARS: bool = false;

    /// `[scale, shift]` where these two are all there is to a map, and compose as those of an
    /// affine one: first `[a, b]` and then `[c, d]` is `[c · a, c · b + d]`, as long as all are
    /// powers of one map. So is what takes a weight `w` to `scale · w + shift · c`, with `c` a
    /// number of the weight's own, and what moves it by `shift · v` and its velocity `v` to
    /// `scale · v`. Of long tables of two numbers a loop over rows finds most of what it needs in a
    /// cache.
    #[inline]
    fn scalar(&self) -> Option<[f64; 2]> {
        None
    }

    /// The map of which [`scalar`](Self::scalar) is this.
    #[inline(always)]
    fn of_scalar([_, _]: [f64; 2]) -> Self {
        Self::IDENTITY
    }

    /// True where [`run`](Self::run) may be one that rows are settled by.
    const HAS_RUNS: bool = false;

    /// The map in the few numbers that most rows are settled by. `one` is the map of the first of
    /// its steps.
    fn run<A: Float>(&self, one: &Self) -> MeanRun<A> {
        let _ = one;
        MeanRun::never()
    }

    /// Whether steps after these, with the same map each, move no weight any further: then the
    /// [runs](Self::run) of more of them differ in what they make of the state alone.
    fn is_spent(&self) -> bool {
        false
    }

    /// What the map multiplies a mean with, of a map that has [runs](Self::run).
    #[inline(always)]
    fn mean(&self) -> f64 {
        1.0
    }

    /// What the map multiplies the root of a mean square with, of a map that has [runs](Self::run).
    #[inline(always)]
    fn root(&self) -> f64 {
        1.0
    }

    /// Two powers of one map as one: the higher digit's and the lower's.
    #[inline]
    fn of_digits(high: &Self, low: &Self) -> Self {
        high.after(low)
    }

    /// False where the map may change a weight that has never had a gradient, or its state. False
    /// is always right; true makes the cost of bringing a whole table up to date grow with the rows
    /// that had one.
    fn spares_fresh(&self) -> bool {
        *self == Self::IDENTITY
    }

    /// `self` applied `count` times, in O(log count) products.
    fn power(&self, mut count: u64) -> Self {
        if count == 1 {
            return *self;
        }
        let mut result = Self::IDENTITY;
        let mut square = *self;
        while count > 0 {
            if count & 1 == 1 {
                result = square.after(&result);
            }
            square = square.after(&square);
            count >>= 1;
        }
        result
    }
}

/// The map of a rule that has none: its idle steps change nothing, or are
/// [`Idle::Open`](super::Idle::Open).
impl IdleMap for () {
    const IDENTITY: Self = ();

    fn after(&self, (): &Self) -> Self {}

    fn write(&self, _: &mut Vec<f64>) {}

    fn read(numbers: &[f64]) -> Option<Self> {
        numbers.is_empty().then_some(())
    }
}

/// A linear map on (weight, first value of the state), by columns: the first is what a weight of 1
/// becomes, the second what a value of 1 becomes. So a vector holds a column, and both numbers of
/// the result are had at once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MatrixMap(pub [[f64; 2]; 2]);

impl MatrixMap {
    /// The map whose first row gives the new weight, and whose second the new value.
    pub fn of_rows([ww, wv]: [f64; 2], [vw, vv]: [f64; 2]) -> Self {
        MatrixMap([[ww, vw], [wv, vv]])
    }

    /// What a weight is multiplied with, where that is all that the map does.
    #[inline]
    pub(super) fn scale(&self) -> Option<f64> {
        let [[scale, of_weight], of_value] = self.0;
        ((of_weight, of_value) == (0.0, [0.0, 1.0])).then_some(scale)
    }

    /// The map that multiplies a weight, and does nothing else.
    #[inline(always)]
    pub(super) fn of_scale(scale: f64) -> Self {
        MatrixMap([[scale, 0.0], [0.0, 1.0]])
    }

    /// What a value is multiplied with, and how much of it a weight gains that has no other change.
    #[inline]
    pub(super) fn glide(&self) -> Option<[f64; 2]> {
        let [of_weight, [shift, scale]] = self.0;
        (of_weight == [1.0, 0.0]).then_some([scale, shift])
    }

    /// The map of which [`glide`](Self::glide) is this.
    #[inline(always)]
    pub(super) fn of_glide([scale, shift]: [f64; 2]) -> Self {
        MatrixMap([[1.0, 0.0], [shift, scale]])
    }

    /// What becomes of a weight and a value.
    #[inline(always)]
    pub fn apply(&self, [w, v]: [f64; 2]) -> [f64; 2] {
        let [of_weight, of_value] = self.0;
        [of_weight[0] * w + of_value[0] * v, of_weight[1] * w + of_value[1] * v]
    }
}

impl IdleMap for MatrixMap {
    const IDENTITY: MatrixMap = MatrixMap([[1.0, 0.0], [0.0, 1.0]]);
    const NUMBERS: &'static [&'static str] = &["ww", "vw", "wv", "vv"];

    fn after(&self, first: &MatrixMap) -> MatrixMap {
        MatrixMap(first.0.map(|column| self.apply(column)))
    }

    fn write(&self, numbers: &mut Vec<f64>) {
        numbers.extend(self.0.as_flattened());
    }

    fn read(numbers: &[f64]) -> Option<Self> {
        let &[a, b, c, d] = numbers else { return None };
        Some(MatrixMap([[a, b], [c, d]]))
    }

    /// Of a state that is still 0.
    fn spares_fresh(&self) -> bool {
        self.0[0] == [1.0, 0.0]
    }
}

/// An affine map on (weight, first value of the state) under steps that all have the same gradient:
/// [`MatrixMap`], and how far a gradient of 1 moves each of the two, as far as the rule is linear
/// in what it makes of the gradient first (rescaled and clipped).
///
/// k steps of `x ← M · x + d · g` are `x ← Mᵏ · x + (Mᵏ⁻¹ + … + M + 1) · d · g`: the power and the
/// geometric sum are composed together, for any `g`, so that one map serves all weights of a
/// parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DriftMap {
    /// What becomes of the weight and the state.
    pub matrix: MatrixMap,
    /// What a gradient of 1 adds to each.
    pub drift: [f64; 2],
}

impl IdleMap for DriftMap {
    const IDENTITY: DriftMap = DriftMap { matrix: MatrixMap::IDENTITY, drift: [0.0; 2] };
    const NUMBERS: &'static [&'static str] = &["ww", "vw", "wv", "vv", "wq", "vq"];

    #[inline]
    fn after(&self, first: &DriftMap) -> DriftMap {
        let [weight, state] = self.matrix.apply(first.drift);
        DriftMap {
            matrix: self.matrix.after(&first.matrix),
            drift: [weight + self.drift[0], state + self.drift[1]],
        }
    }

    fn write(&self, numbers: &mut Vec<f64>) {
        self.matrix.write(numbers);
        numbers.extend(self.drift);
    }

    fn read(numbers: &[f64]) -> Option<Self> {
        let (matrix, drift) = numbers.split_last_chunk()?;
        Some(DriftMap { matrix: MatrixMap::read(matrix)?, drift: *drift })
    }

    const HAS_SCALARS: bool = true;
    const MOSTLY_SCALARS: bool = true;

    #[inline]
    fn scalar(&self) -> Option<[f64; 2]> {
        let [of_weight, of_state] = self.drift;
        self.matrix.scale().filter(|_| of_state == 0.0).map(|scale| [scale, of_weight])
    }

    #[inline(always)]
    fn of_scalar([scale, shift]: [f64; 2]) -> Self {
        DriftMap { matrix: MatrixMap::of_scale(scale), drift: [shift, 0.0] }
    }

    /// A weight that never had a gradient has none in the mean either.
    fn spares_fresh(&self) -> bool {
        self.matrix.spares_fresh()
    }
}

/// `w ← sign(scale · w) · max(0, |scale · w| - threshold · c)`, with `c ≥ 0` a number of the
/// weight's own that idle steps leave alone: decay, then the proximal step of an L1 penalty.
///
/// Closed under composition, since `max(0, a · max(0, x) - b) = max(0, a · x - b)` for `a, b ≥ 0`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShrinkMap {
    /// What the weight is multiplied with.
    pub scale: f64,
    /// What its magnitude then loses, in units of `c`, ≥ 0.
    pub threshold: f64,
}

impl IdleMap for ShrinkMap {
    const IDENTITY: ShrinkMap = ShrinkMap { scale: 1.0, threshold: 0.0 };
    const NUMBERS: &'static [&'static str] = &["of_weight", "of_threshold"];

    fn after(&self, first: &ShrinkMap) -> ShrinkMap {
        ShrinkMap {
            scale: self.scale * first.scale,
            threshold: self.scale.abs() * first.threshold + self.threshold,
        }
    }

    fn write(&self, numbers: &mut Vec<f64>) {
        numbers.extend([self.scale, self.threshold]);
    }

    fn read(numbers: &[f64]) -> Option<Self> {
        let &[scale, threshold] = numbers else { return None };
        Some(ShrinkMap { scale, threshold })
    }
}

/// What the weight and the values of its state are multiplied with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScaleMap {
    /// Of the weight.
    pub weight: f64,
    /// Of each value of the state.
    pub state: f64,
}

impl ScaleMap {
    /// The map of a weight and its state.
    #[inline(always)]
    pub fn apply<T: Float>(&self, weight: &mut T, state: &mut [T]) {
        *weight = T::of(self.weight * weight.as_f64());
        state.iter_mut().for_each(|value| *value = T::of(self.state * value.as_f64()));
    }
}

impl IdleMap for ScaleMap {
    const IDENTITY: ScaleMap = ScaleMap { weight: 1.0, state: 1.0 };
    const NUMBERS: &'static [&'static str] = &["of_weight", "of_state"];

    fn after(&self, first: &ScaleMap) -> ScaleMap {
        ScaleMap { weight: self.weight * first.weight, state: self.state * first.state }
    }

    fn write(&self, numbers: &mut Vec<f64>) {
        numbers.extend([self.weight, self.state]);
    }

    fn read(numbers: &[f64]) -> Option<Self> {
        let &[weight, state] = numbers else { return None };
        Some(ScaleMap { weight, state })
    }

    fn spares_fresh(&self) -> bool {
        self.weight == 1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_power_is_the_product_one_by_one() {
        let map = MatrixMap::of_rows([0.9, 0.3], [-0.1, 0.8]);
        let mut slow = MatrixMap::IDENTITY;
        for count in 0..40 {
            let fast = map.power(count);
            for (a, b) in fast.0.iter().flatten().zip(slow.0.iter().flatten()) {
                assert!((a - b).abs() < 1e-14, "{count}");
            }
            slow = map.after(&slow);
        }
    }

    #[test]
    fn shrinking_composes() {
        let shrink = |w: f64, map: ShrinkMap| {
            let w = map.scale * w;
            w.signum() * (w.abs() - map.threshold).max(0.0)
        };
        let maps = [(0.9, 0.1), (1.0, 0.0), (-0.5, 0.2), (0.99, 0.05), (1.2, 0.3)]
            .map(|(scale, threshold)| ShrinkMap { scale, threshold });
        for w in [0.0, 0.05, -0.3, 1.0, -4.0] {
            let (mut slow, mut all) = (w, ShrinkMap::IDENTITY);
            for map in maps.iter().cycle().take(12) {
                slow = shrink(slow, *map);
                all = map.after(&all);
                assert!((slow - shrink(w, all)).abs() < 1e-14, "{w}");
            }
        }
    }
}
