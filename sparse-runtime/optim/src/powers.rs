//! Tabulated powers of one map.

use super::maps::IdleMap;
use super::mean_run::MeanRun;
use sparse_core::element::Float;

/// The powers of one map, as far as they were asked for: any of them is a product of one tabulated
/// map a digit of the exponent.
#[derive(Clone, Debug)]
pub(super) struct Powers<M, A> {
    /// `digits[k][d - 1]` is the power `d · DIGIT^k`.
    digits: Vec<Vec<M>>,
    /// The lowest digits, from the power 0 on, as [runs](IdleMap::run); none of a map that has
    /// none. Behind them that of the power `DIGIT`, if it is [spent](IdleMap::is_spent).
    runs: Vec<MeanRun<A>>,
    /// The [roots](IdleMap::root) of the powers `d · DIGIT^k`, from `d = 0` on.
    roots: [Vec<f64>; 2],
    scalars: Scalars<A>,
    /// Those of the map before: two that take turns, as steps and passes over the data do that
    /// gather a mean gradient, are tabulated once.
    scalars_before: Scalars<A>,
    /// Tables for later: all that there can be need of are made with the first one, so that a step
    /// in steady state allocates nothing.
    spare: Vec<Vec<M>>,
    /// The power up to which, exclusively, the tables have them.
    tabulated: u64,
}

/// The first powers of a [scalar](IdleMap::scalar) map, from the power 0 on: all up to the highest
/// that was asked for, at least, as far as there is room for [`SCALARS`]. Nothing of any other map.
#[derive(Clone, Debug)]
struct Scalars<A> {
    powers: Vec<[A; 2]>,
    /// The power 1 and the last, as they were computed.
    first: Option<[f64; 2]>,
    last: [f64; 2],
}

impl<A> Default for Scalars<A> {
    fn default() -> Self {
        Scalars { powers: Vec::new(), first: None, last: [0.0; 2] }
    }
}

impl<A: Float> Scalars<A> {
    /// Those of another map, up to the power 1.
    fn start(&mut self, first: Option<[f64; 2]>) {
        self.first = first;
        self.powers.clear();
        if let Some(first) = first {
            self.powers.reserve(SCALARS);
            self.last = first;
            self.powers.extend([[1.0, 0.0], first].map(|power| power.map(A::of)));
        }
    }

    #[inline]
    fn reach(&mut self, count: u64) {
        while self.first.is_some() && self.powers.len() as u64 <= count.min(SCALARS as u64 - 1) {
            self.double();
        }
    }

    #[cold]
    fn double(&mut self) {
        let Some([scale, shift]) = self.first else { return };
        let len = self.powers.len();
        for _ in len..SCALARS.min(2 * len) {
            let [last_scale, last_shift] = self.last;
            self.last = [scale * last_scale, scale * last_shift + shift];
            self.powers.push(self.last.map(A::of));
        }
    }
}

/// Powers of a map as [runs](IdleMap::run): the first ones, and what becomes of a mean square by
/// any.
#[derive(Clone, Copy, Debug)]
pub struct Runs<'a, A> {
    /// The powers 0 to 1023, as far as they were reached, and that of 1024 and more but for what it
    /// makes of a mean square, if it moves weights as they all do.
    pub first: &'a [MeanRun<A>],
    /// What the powers `0, 1, …` multiply the root of the mean square with, as far as
    /// [`first`](Self::first).
    pub low: &'a [f64],
    /// The same of the powers `0, 1024, …`; none where not all of them move weights alike.
    pub high: &'a [f64],
}

impl<A: Float> Runs<'_, A> {
    /// Powers below this have a run of their own.
    pub const DIGIT: u64 = DIGIT;

    /// Powers below this are known.
    #[inline(always)]
    pub fn known(&self) -> u64 {
        match self.high.len() as u64 {
            0 => self.low.len() as u64,
            high => high * DIGIT,
        }
    }

    /// A power below [those known](Self::known), but for what those from 1024 on make of a mean
    /// that they leave something of.
    #[inline(always)]
    pub fn of(&self, count: u64) -> Option<MeanRun<A>> {
        let run = *self.first.get(count.min(DIGIT) as usize)?;
        let root = self.low.get((count % DIGIT) as usize)?
            * self.high.get((count / DIGIT) as usize).or((count < DIGIT).then_some(&1.0))?;
        Some(MeanRun { of_square: A::of(root * root), ..run })
    }
}

/// Powers are tabulated by the digits of the exponent to this base.
const DIGIT: u64 = 1024;

/// The most scalar powers that are tabulated: half a megabyte, or one in `f64`.
const SCALARS: usize = 1 << 16;

/// The tables for powers up to 2⁴⁰; higher ones allocate when they get there.
const TABLES: usize = 4;

impl<M, A> Default for Powers<M, A> {
    fn default() -> Self {
        Powers {
            digits: Vec::new(),
            runs: Vec::new(),
            roots: [Vec::new(), Vec::new()],
            scalars: Scalars::default(),
            scalars_before: Scalars::default(),
            spare: Vec::new(),
            tabulated: 0,
        }
    }
}

impl<M: IdleMap, A: Float> Powers<M, A> {
    /// Those of another map, of which the first alone is tabulated.
    pub(super) fn start(&mut self, map: M) {
        // A rate that changes at every step never needs more than the first power.
        self.spare.append(&mut self.digits);
        let mut table = self.new_table();
        table.push(map);
        self.digits.push(table);
        self.tabulated = 2;
        if M::HAS_SCALARS {
            self.start_scalars(map);
        }
        if M::HAS_RUNS {
            self.start_runs(map);
        }
    }

    /// Tabulates what is needed of powers up to `count`.
    #[inline]
    pub(super) fn reach(&mut self, count: u64) {
        while count >= self.tabulated {
            self.tabulate();
        }
        if M::HAS_SCALARS {
            self.scalars.reach(count);
        }
    }

    /// A power, not above those that were [reached](Self::reach).
    #[inline(never)]
    pub(super) fn of(&self, mut count: u64) -> M {
        let mut result = None;
        for table in &self.digits {
            let digit = (count % DIGIT) as usize;
            count /= DIGIT;
            if digit > 0 {
                let power = &table[digit - 1];
                result = Some(result.map_or(*power, |low| M::of_digits(power, &low)));
            }
        }
        debug_assert_eq!(count, 0, "a power that was not reached");
        result.unwrap_or(M::IDENTITY)
    }

    /// The first powers, from the first on.
    #[inline]
    pub(super) fn first(&self) -> Option<&[M]> {
        self.digits.first().map(Vec::as_slice)
    }

    /// The powers as [runs](IdleMap::run), as far as they were reached.
    #[inline]
    pub(super) fn runs(&self) -> Runs<'_, A> {
        let [low, high] = &self.roots;
        Runs { first: &self.runs, low, high }
    }

    /// The run of a power from 1024 on, where that is [spent](IdleMap::is_spent): that of
    /// [`of`](Self::of) the same power, for less.
    #[inline]
    pub(super) fn spent_run(&self, count: u64) -> Option<MeanRun<A>> {
        let run = self.runs().of(count)?;
        if run.of_mean.is_zero() {
            return Some(run);
        }
        let [low, high] = self.digits.first_chunk()?;
        let at = |table: &Vec<M>, digit: u64| {
            digit.checked_sub(1).map_or(Some(1.0), |digit| Some(table.get(digit as usize)?.mean()))
        };
        let of_mean = at(low, count % DIGIT)? * at(high, count / DIGIT)?;
        Some(MeanRun { of_mean: A::of(of_mean), ..run })
    }

    /// The first powers as [scalars](IdleMap::scalar), from the power 0 on, each rounded once;
    /// nothing where the map is no such one.
    #[inline]
    pub(super) fn scalars(&self) -> &[[A; 2]] {
        &self.scalars.powers
    }

    fn start_runs(&mut self, map: M) {
        let size = DIGIT as usize;
        self.runs.clear();
        self.runs.reserve(size + 1);
        self.runs.extend([M::IDENTITY, map].map(|power| power.run(&map)));
        let [low, high] = &mut self.roots;
        low.clear();
        low.reserve(size);
        low.extend([1.0, map.root()]);
        high.clear();
        high.reserve(size);
    }

    fn start_scalars(&mut self, map: M) {
        let first = map.scalar();
        if self.scalars.first != first {
            std::mem::swap(&mut self.scalars, &mut self.scalars_before);
        }
        if self.scalars.first != first {
            self.scalars.start(first);
        }
    }

    /// An empty table.
    fn new_table(&mut self) -> Vec<M> {
        if self.digits.capacity() == 0 {
            self.digits.reserve(TABLES);
            self.spare.extend((0..TABLES).map(|_| Vec::with_capacity(DIGIT as usize - 1)));
        }
        let mut table = self.spare.pop().unwrap_or_default();
        table.clear();
        table
    }

    /// Tabulates as many powers again as there are: in all O(1) a power.
    #[cold]
    fn tabulate(&mut self) {
        let full = DIGIT as usize - 1;
        // The power that each entry of the last table is one more of.
        let (unit, last) = match self.digits.last() {
            Some(table) if table.len() < full => (table[0], table[table.len() - 1]),
            Some(table) => {
                let unit = table[0].after(&table[full - 1]);
                let one = table[0];
                let table = self.new_table();
                self.digits.push(table);
                if M::HAS_RUNS && self.digits.len() == 2 && unit.is_spent() {
                    self.runs.push(unit.run(&one));
                    self.roots[1].push(1.0);
                }
                (unit, M::IDENTITY)
            }
            // Of no map all powers are tabulated.
            None => {
                self.tabulated = u64::MAX;
                return;
            }
        };
        let weight = DIGIT.saturating_pow(self.digits.len() as u32 - 1);
        let digit = self.digits.len() - 1;
        if let Some(table) = self.digits.last_mut() {
            let (mut last, count) = (last, table.len().max(1));
            while table.len() < full.min(2 * count) {
                last = unit.after(&last);
                table.push(last);
                if M::HAS_RUNS {
                    match (digit, &mut self.roots) {
                        (0, [low, _]) => {
                            self.runs.push(last.run(&unit));
                            low.push(last.root());
                        }
                        (1, [_, high]) if !high.is_empty() => high.push(last.root()),
                        _ => {}
                    }
                }
            }
            // Lower digits count up to one more unit.
            self.tabulated = weight.saturating_mul(table.len() as u64 + 1);
        }
    }
}
