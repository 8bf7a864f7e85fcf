//! Unification of extents while shapes are inferred.

use super::{Derived, Dim, Dims};
use crate::formula::Formula;
use std::collections::{BTreeMap, BTreeSet};

/// What must hold of a constant of Rust.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// To be the other extent.
    Equal,
    /// To be no less than it.
    AtLeast,
}

/// Something that must hold of constants of Rust: whoever sees their values checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assumed {
    /// A constant, or a number where the other is one.
    pub extent: Dim,
    /// What it must be in relation to the other.
    pub relation: Relation,
    /// A number or a constant.
    pub other: Dim,
}

/// What inferred extents turned out to be.
#[derive(Clone, Debug, Default)]
pub struct Substitution {
    bound: Vec<Option<Dim>>,
    /// Constants of Rust, whose values the compiler does not see, and what each was assumed to be.
    constants: BTreeMap<String, Option<Dim>>,
    /// Those that follow from other extents, numbers or constants, by their names, `A + 3`.
    derived: BTreeMap<String, Derived>,
    assumed: Vec<Assumed>,
    /// Constants of Rust that are numbers, and no extents.
    numbers: BTreeSet<String>,
    /// What must hold of these, and why, in words.
    conditions: Vec<(Formula, String)>,
    /// What to undo, the last first, while there is a [mark](Self::mark).
    changes: Vec<Change>,
    marked: bool,
}

/// What was before something was found out. What was appended to `bound` needs none.
#[derive(Clone, Debug)]
enum Change {
    Bound(usize),
    Constant(String, Option<Option<Dim>>),
    Derived(String),
}

/// What was known when an attempt began.
#[derive(Clone, Debug)]
pub(crate) struct Mark {
    n_bound: usize,
    assumed: Vec<Assumed>,
    n_conditions: usize,
}

impl Substitution {
    /// Begins an attempt, which ends with [`keep`](Self::keep) or [`undo`](Self::undo). Costs what
    /// the attempt finds out, and not what is known: one in another is none.
    pub(crate) fn mark(&mut self) -> Mark {
        debug_assert!(!self.marked);
        (self.marked, self.changes) = (true, Vec::new());
        Mark {
            n_bound: self.bound.len(),
            assumed: self.assumed.clone(),
            n_conditions: self.conditions.len(),
        }
    }

    /// Keeps what an attempt has found out.
    pub(crate) fn keep(&mut self, _: Mark) {
        (self.marked, self.changes) = (false, Vec::new());
    }

    /// Forgets what an attempt has found out.
    pub(crate) fn undo(&mut self, mark: Mark) {
        self.marked = false;
        for change in std::mem::take(&mut self.changes).into_iter().rev() {
            match change {
                Change::Bound(id) => self.bound[id] = None,
                Change::Constant(name, Some(before)) => {
                    self.constants.insert(name, before);
                }
                Change::Constant(name, None) => {
                    self.constants.remove(&name);
                }
                Change::Derived(name) => {
                    self.derived.remove(&name);
                }
            }
        }
        self.bound.truncate(mark.n_bound);
        self.assumed = mark.assumed;
        self.conditions.truncate(mark.n_conditions);
    }

    fn note(&mut self, change: impl FnOnce() -> Change) {
        if self.marked {
            self.changes.push(change());
        }
    }

    fn set_constant(&mut self, name: &str, value: Option<Dim>) {
        let before = self.constants.insert(name.to_owned(), value);
        self.note(|| Change::Constant(name.to_owned(), before));
    }

    /// A new extent to be inferred.
    pub fn fresh(&mut self) -> Dim {
        self.bound.push(None);
        Dim::Unknown((self.bound.len() - 1) as u32)
    }

    /// The extent as far as it is known.
    pub fn resolve(&self, dim: &Dim) -> Dim {
        match dim {
            Dim::Unknown(id) => match self.bound.get(*id as usize).and_then(Option::as_ref) {
                Some(bound) => self.resolve(bound),
                None => dim.clone(),
            },
            Dim::Named(name) => match self.constants.get(name) {
                Some(Some(assumed)) => self.resolve(assumed),
                _ => dim.clone(),
            },
            Dim::Size(_) => dim.clone(),
        }
    }

    /// Declares a name to be a constant of Rust: it may equal a number or another constant, which
    /// whoever sees its value must check.
    pub fn declare_constant(&mut self, name: &str) {
        self.set_constant(name, None);
    }

    /// Declares a constant of Rust whose value the source says: an extent like any other number.
    pub fn declare_known_constant(&mut self, name: &str, value: u64) {
        self.set_constant(name, Some(Dim::Size(value)));
    }

    /// Declares a name to be a constant of Rust that is a number, and no extent.
    pub fn declare_number(&mut self, name: &str) {
        self.numbers.insert(name.to_owned());
    }

    /// Whether a name is a constant of Rust, an extent or any other number.
    pub fn is_constant_number(&self, name: &str) -> bool {
        self.is_constant(name) || self.numbers.contains(name)
    }

    /// Notes what must hold of constants that are numbers, with the words that follow *needs*.
    pub(crate) fn assume_condition(&mut self, condition: Formula, text: String) {
        self.conditions.push((condition, text));
    }

    /// What must hold of constants that are numbers, since this was last asked.
    pub fn take_conditions(&mut self) -> Vec<(Formula, String)> {
        std::mem::take(&mut self.conditions)
    }

    /// Whether a name is a constant of Rust.
    pub fn is_constant(&self, name: &str) -> bool {
        self.constants.contains_key(name)
    }

    /// An extent that follows from others, as far as that is known before a batch comes: from
    /// numbers a number, from constants and numbers a constant. `None` of any other extent, and
    /// where the number is too large.
    pub fn derive(&mut self, derived: Derived) -> Option<Dim> {
        let derived = derived.map_terms(|term| self.resolve(term));
        if let Some(size) = derived.size() {
            return size.map(Dim::Size);
        }
        if !derived.terms().iter().all(|dim| self.is_known(dim)) {
            return None;
        }
        let name = derived.name();
        if !self.is_constant(&name) {
            self.declare_constant(&name);
            self.derived.insert(name.clone(), derived);
            self.note(|| Change::Derived(name.clone()));
        }
        Some(Dim::Named(name))
    }

    /// What a constant [follows](Self::derive) from; `None` of one that was declared.
    pub fn derivation(&self, constant: &str) -> Option<&Derived> {
        self.derived.get(constant)
    }

    /// The constants that [follow](Self::derive) from others.
    pub fn derived(&self) -> impl Iterator<Item = &str> {
        self.derived.keys().map(String::as_str)
    }

    /// Whether a part of an axis is known to be no longer than all of it: of numbers, of an extent
    /// that is a sum, or was assumed to be one, and of an extent that is a part.
    pub fn is_part(&self, part: &Dim, whole: &Dim) -> bool {
        self.is_part_by(self.derived.len(), part, whole)
    }

    /// The same, seen by as many derivations at most: of extents that are 0, sums may be assumed to
    /// be each other's terms.
    fn is_part_by(&self, most: usize, part: &Dim, whole: &Dim) -> bool {
        let (part, whole) = (self.resolve(part), self.resolve(whole));
        if let (Dim::Size(part), Dim::Size(whole)) = (&part, &whole) {
            return part <= whole;
        }
        let is = |name: &str, dim: &Dim| self.resolve(&Dim::Named(name.to_owned())) == *dim;
        let mut derived = self.derived.iter().filter(|_| most > 0);
        part == whole
            || derived.any(|(name, derived)| match derived {
                Derived::Sum(terms) if is(name, &whole) => {
                    terms.iter().any(|term| self.is_part_by(most - 1, &part, term))
                }
                Derived::Part { of, .. } if is(name, &part) => {
                    self.is_part_by(most - 1, of, &whole)
                }
                _ => false,
            })
    }

    /// Whether a part of an axis may be no longer than all of it, where both are known before a
    /// batch comes: what depends on constants is [assumed](Self::take_assumed).
    pub fn may_be_part(&mut self, part: &Dim, whole: &Dim) -> bool {
        let (part, whole) = (self.resolve(part), self.resolve(whole));
        if self.is_part(&part, &whole) {
            return true;
        }
        let are_numbers = matches!((&part, &whole), (Dim::Size(_), Dim::Size(_)));
        let may = !are_numbers && self.is_known(&part) && self.is_known(&whole);
        if may {
            let relation = Relation::AtLeast;
            self.assumed.push(Assumed { extent: whole, relation, other: part });
        }
        may
    }

    /// Whether an extent that is known before a batch comes may be as large as a number: what
    /// depends on constants is [assumed](Self::take_assumed).
    pub(crate) fn may_be_at_least(&mut self, extent: &Dim, least: u64) -> bool {
        self.may_be_part(&Dim::Size(least), extent)
    }

    /// Whether an extent is known before a batch comes and a model is made: a number, or a
    /// constant.
    pub(crate) fn is_known(&self, dim: &Dim) -> bool {
        match dim {
            Dim::Size(_) => true,
            Dim::Named(name) => self.is_constant(name),
            Dim::Unknown(_) => false,
        }
    }

    /// What was assumed of constants since this was last asked.
    pub fn take_assumed(&mut self) -> Vec<Assumed> {
        std::mem::take(&mut self.assumed)
    }

    /// The shape as far as it is known.
    pub fn resolve_all(&self, dims: &[Dim]) -> Dims {
        dims.iter().map(|dim| self.resolve(dim)).collect()
    }

    /// Makes two extents one. False where they are known and different.
    pub fn unify(&mut self, a: &Dim, b: &Dim) -> bool {
        match (self.resolve(a), self.resolve(b)) {
            (a, b) if a == b => true,
            (Dim::Unknown(id), other) | (other, Dim::Unknown(id)) => {
                let id = id as usize;
                if self.bound.len() <= id {
                    self.bound.resize(id + 1, None);
                }
                self.bound[id] = Some(other);
                self.note(|| Change::Bound(id));
                true
            }
            (Dim::Named(name), other) if self.may_be(&name, &other) => {
                self.assume(name, other);
                true
            }
            (other, Dim::Named(name)) if self.may_be(&name, &other) => {
                self.assume(name, other);
                true
            }
            _ => false,
        }
    }

    /// Whether a name is a constant that may equal an extent: a number or another constant.
    fn may_be(&self, name: &str, other: &Dim) -> bool {
        self.is_constant(name)
            && match other {
                Dim::Named(other) => self.is_constant(other),
                other => matches!(other, Dim::Size(_)),
            }
    }

    fn assume(&mut self, name: String, other: Dim) {
        let (extent, relation) = (Dim::Named(name.clone()), Relation::Equal);
        self.assumed.push(Assumed { extent, relation, other: other.clone() });
        self.set_constant(&name, Some(other));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shapes::size_formula;

    #[test]
    fn constants_may_be_numbers_and_each_other() {
        let named = |name: &str| Dim::Named(name.into());
        let mut unify = Substitution::default();
        for name in ["K", "L"] {
            unify.declare_constant(name);
        }
        assert!(!unify.unify(&named("K"), &named("k")));
        assert!(unify.unify(&named("K"), &named("K")) && unify.take_assumed().is_empty());
        assert!(unify.unify(&named("K"), &named("L")) && unify.unify(&Dim::Size(3), &named("K")));
        let equal = |extent, other| Assumed { extent, relation: Relation::Equal, other };
        let assumed = [equal(named("K"), named("L")), equal(named("L"), Dim::Size(3))];
        assert_eq!(unify.take_assumed(), assumed);
        assert_eq!(unify.resolve(&named("K")), Dim::Size(3));
        assert!(!unify.unify(&Dim::Size(4), &named("K")));
    }

    #[test]
    fn extents_that_are_known_have_sums() {
        let named = |name: &str| Dim::Named(name.into());
        let mut unify = Substitution::default();
        for name in ["K", "L", "M"] {
            unify.declare_constant(name);
        }
        let sum = |a: &Dim, b: &Dim| Derived::Sum([a.clone(), b.clone()]);
        assert_eq!(unify.derive(sum(&Dim::Size(2), &Dim::Size(3))), Some(Dim::Size(5)));
        assert_eq!(unify.derive(sum(&Dim::Size(2), &Dim::Size(u64::MAX))), None);
        assert_eq!(unify.derive(sum(&named("n"), &Dim::Size(3))), None);
        assert_eq!(unify.derive(sum(&named("K"), &named("n"))), None);
        let shorter = unify.derive(sum(&named("K"), &Dim::Size(3))).unwrap();
        assert_eq!(shorter, named("K + 3"));
        let longer = unify.derive(sum(&named("L"), &shorter)).unwrap();
        assert_eq!(longer, named("L + K + 3"));
        assert_eq!(unify.derived().collect::<Vec<_>>(), ["K + 3", "L + K + 3"]);
        assert_eq!(unify.derivation("K + 3"), Some(&sum(&named("K"), &Dim::Size(3))));
        assert_eq!(unify.derivation("K"), None);
        assert_eq!(size_formula(&[named("n"), shorter.clone(), Dim::Size(4)]), "n × (K + 3) × 4");

        // Also where the sum has another name, or a number for one.
        for whole in [named("M"), Dim::Size(9)] {
            assert!(unify.unify(&longer, &whole));
            assert_eq!(unify.resolve(&longer), whole);
            for part in [&longer, &shorter, &named("K"), &named("L"), &Dim::Size(2)] {
                assert!(unify.is_part(part, &whole), "{part} of {whole}");
            }
            assert!(!unify.is_part(&named("n"), &whole));
        }
        assert!(!unify.is_part(&Dim::Size(10), &longer) && !unify.is_part(&named("L"), &shorter));
    }

    #[test]
    fn extents_that_are_known_have_products_and_parts() {
        let named = |name: &str| Dim::Named(name.into());
        let mut unify = Substitution::default();
        unify.declare_constant("K");
        let product = |a: &Dim, b: u64| Derived::Product([a.clone(), Dim::Size(b)]);
        let part = |of: &Dim, bounds: [Option<i64>; 3]| {
            let bounds = bounds.map(|bound| bound.map(Into::into));
            Derived::Part { of: of.clone(), bounds }
        };
        let numbers = [product(&Dim::Size(3), 4), product(&Dim::Size(3), u64::MAX)];
        assert_eq!(numbers.map(|numbers| unify.derive(numbers)), [Some(Dim::Size(12)), None]);
        let last = part(&Dim::Size(5), [Some(-2), None, None]);
        assert_eq!(unify.derive(last), Some(Dim::Size(2)));
        assert_eq!(unify.derive(part(&named("n"), [Some(1), None, None])), None);

        let longer = unify.derive(Derived::Sum([named("K"), Dim::Size(3)])).unwrap();
        let times = unify.derive(product(&longer, 4)).unwrap();
        let inner = unify.derive(part(&longer, [Some(1), Some(-1), None])).unwrap();
        let every = unify.derive(part(&inner, [None, None, Some(2)])).unwrap();
        let names = ["(K + 3) * 4", "(K + 3)[1:-1]", "((K + 3)[1:-1])[::2]"];
        assert_eq!([&times, &inner, &every].map(Dim::to_string), names);
        assert!(unify.is_part(&every, &inner) && unify.is_part(&every, &longer));
        assert!(!unify.is_part(&inner, &every) && !unify.is_part(&every, &named("K")));

        assert!(unify.may_be_part(&every, &longer) && unify.take_assumed().is_empty());
        assert!(!unify.may_be_part(&Dim::Size(3), &Dim::Size(2)));
        assert!(!unify.may_be_part(&Dim::Size(3), &named("n")));
        assert!(unify.may_be_part(&Dim::Size(3), &named("K")));
        let at_least =
            Assumed { extent: named("K"), relation: Relation::AtLeast, other: Dim::Size(3) };
        assert_eq!(unify.take_assumed(), [at_least]);
        assert!(unify.unify(&named("K"), &Dim::Size(2)));
        assert!(!unify.may_be_part(&Dim::Size(3), &named("K")));
    }

    /// Constants that would all be equal if what is added were 0: nothing more follows from it, and
    /// nothing goes on for ever.
    #[test]
    fn nested_sums_have_all_their_terms() {
        let named = |name: &str| Dim::Named(name.into());
        let mut unify = Substitution::default();
        for name in ["K", "L", "Z"] {
            unify.declare_constant(name);
        }
        let sum = |unify: &mut Substitution, name| {
            unify.derive(Derived::Sum([named(name), named("Z")])).unwrap()
        };
        let (of_k, of_l) = (sum(&mut unify, "K"), sum(&mut unify, "L"));
        assert!(unify.unify(&named("L"), &of_k) && unify.unify(&named("K"), &of_l));
        assert!(unify.is_part(&named("Z"), &of_k) && unify.is_part(&named("L"), &of_l));
        assert!(!unify.is_part(&Dim::Size(1), &of_l));
    }
}
