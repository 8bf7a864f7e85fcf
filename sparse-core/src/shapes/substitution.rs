//! What is found out about extents while shapes are inferred.

use super::{Dim, Dims};
use std::collections::BTreeMap;

/// What inferred extents turned out to be.
#[derive(Clone, Debug, Default)]
pub struct Substitution {
    bound: Vec<Option<Dim>>,
    /// Constants of Rust, whose values the compiler does not see, and what each was assumed to be.
    constants: BTreeMap<String, Option<Dim>>,
    /// Those that are sums of two extents, a number or a constant each, by their names, `A + 3`.
    sums: BTreeMap<String, [Dim; 2]>,
    assumed: Vec<(Dim, Dim)>,
}

impl Substitution {
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

    /// Declares a name to be a constant of Rust: it may equal a number or another constant, which whoever sees its value must
    /// check.
    pub fn declare_constant(&mut self, name: &str) {
        self.constants.insert(name.to_owned(), None);
    }

    /// Whether a name is a constant of Rust.
    pub fn is_constant(&self, name: &str) -> bool {
        self.constants.contains_key(name)
    }

    /// The sum of two extents, as far as that is known before a batch comes: that of numbers is a number, that of constants and numbers a
    /// constant. `None` of any other extent, and where the number is too large.
    pub fn sum(&mut self, a: &Dim, b: &Dim) -> Option<Dim> {
        let (a, b) = (self.resolve(a), self.resolve(b));
        if let (Dim::Size(a), Dim::Size(b)) = (&a, &b) {
            return a.checked_add(*b).map(Dim::Size);
        }
        if ![&a, &b].into_iter().all(|dim| self.is_known(dim)) {
            return None;
        }
        let name = format!("{a} + {b}");
        if !self.is_constant(&name) {
            self.declare_constant(&name);
            self.sums.insert(name.clone(), [a, b]);
        }
        Some(Dim::Named(name))
    }

    /// What a constant is the [sum](Self::sum) of; `None` of one that was declared.
    pub fn terms_of(&self, constant: &str) -> Option<&[Dim; 2]> {
        self.sums.get(constant)
    }

    /// The constants that are [sums](Self::sum).
    pub fn sums(&self) -> impl Iterator<Item = &str> {
        self.sums.keys().map(String::as_str)
    }

    /// Whether a part of an axis is known to be no longer than all of it: of numbers, and of an extent that is a [sum](Self::sum), or was assumed
    /// to be one.
    pub fn is_part(&self, part: &Dim, whole: &Dim) -> bool {
        self.is_part_by(self.sums.len(), part, whole)
    }

    /// The same, seen by as many sums at most: of extents that are 0, sums may be assumed to be each other's terms.
    fn is_part_by(&self, n_sums: usize, part: &Dim, whole: &Dim) -> bool {
        let (part, whole) = (self.resolve(part), self.resolve(whole));
        if let (Dim::Size(part), Dim::Size(whole)) = (&part, &whole) {
            return part <= whole;
        }
        let is_whole = |name: &str| self.resolve(&Dim::Named(name.to_owned())) == whole;
        let mut sums = self.sums.iter().filter(|(name, _)| n_sums > 0 && is_whole(name));
        part == whole
            || sums
                .any(|(_, terms)| terms.iter().any(|term| self.is_part_by(n_sums - 1, &part, term)))
    }

    /// Whether an extent is known before a batch comes and a model is made: a number, or a constant.
    pub(crate) fn is_known(&self, dim: &Dim) -> bool {
        match dim {
            Dim::Size(_) => true,
            Dim::Named(name) => self.is_constant(name),
            Dim::Unknown(_) => false,
        }
    }

    /// What was assumed of constants since this was last asked: pairs that must be equal.
    pub fn take_assumed(&mut self) -> Vec<(Dim, Dim)> {
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
        self.assumed.push((Dim::Named(name.clone()), other.clone()));
        self.constants.insert(name, Some(other));
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
        let assumed = [(named("K"), named("L")), (named("L"), Dim::Size(3))];
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
        assert_eq!(unify.sum(&Dim::Size(2), &Dim::Size(3)), Some(Dim::Size(5)));
        assert_eq!(unify.sum(&Dim::Size(2), &Dim::Size(u64::MAX)), None);
        assert_eq!(unify.sum(&named("n"), &Dim::Size(3)), None);
        assert_eq!(unify.sum(&named("K"), &named("n")), None);
        let sum = unify.sum(&named("K"), &Dim::Size(3)).unwrap();
        assert_eq!(sum, named("K + 3"));
        let longer = unify.sum(&named("L"), &sum).unwrap();
        assert_eq!(longer, named("L + K + 3"));
        assert_eq!(unify.sums().collect::<Vec<_>>(), ["K + 3", "L + K + 3"]);
        assert_eq!(unify.terms_of("K + 3"), Some(&[named("K"), Dim::Size(3)]));
        assert_eq!(unify.terms_of("K"), None);
        assert_eq!(size_formula(&[named("n"), sum.clone(), Dim::Size(4)]), "n × (K + 3) × 4");

        // Also where the sum has another name, or a number for one.
        for whole in [named("M"), Dim::Size(9)] {
            assert!(unify.unify(&longer, &whole));
            assert_eq!(unify.resolve(&longer), whole);
            for part in [&longer, &sum, &named("K"), &named("L"), &Dim::Size(2)] {
                assert!(unify.is_part(part, &whole), "{part} of {whole}");
            }
            assert!(!unify.is_part(&named("n"), &whole));
        }
        assert!(!unify.is_part(&Dim::Size(10), &longer) && !unify.is_part(&named("L"), &sum));
    }

    /// Constants that would all be equal if what is added were 0: nothing more follows from it, and nothing goes on for ever.
    #[test]
    fn sums_that_are_each_others_terms() {
        let named = |name: &str| Dim::Named(name.into());
        let mut unify = Substitution::default();
        for name in ["K", "L", "Z"] {
            unify.declare_constant(name);
        }
        let sum = |unify: &mut Substitution, name| unify.sum(&named(name), &named("Z")).unwrap();
        let (of_k, of_l) = (sum(&mut unify, "K"), sum(&mut unify, "L"));
        assert!(unify.unify(&named("L"), &of_k) && unify.unify(&named("K"), &of_l));
        assert!(unify.is_part(&named("Z"), &of_k) && unify.is_part(&named("L"), &of_l));
        assert!(!unify.is_part(&Dim::Size(1), &of_l));
    }
}
