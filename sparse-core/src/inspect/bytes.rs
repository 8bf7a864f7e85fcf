//! Memory of a value in bytes, as a formula and as a number.

use super::{Extent, PlanTable, Sizes, Stored};
use crate::storage::Storage;
use std::fmt;

/// Bytes of a csr array for each row (and one more): where it ends.
const ROW_POINTER: u128 = 8;
/// Bytes of the id of a stored row.
const ROW_ID: u128 = 8;

/// A sum of products of sizes, known ones multiplied out: `8·nnz(x) + 8·n + 8`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bytes {
    terms: Vec<(u128, Vec<String>)>,
}

/// A factor of a product.
pub(super) enum Size {
    Known(u128),
    Symbol(String),
}

impl Bytes {
    /// The number, where every size is known.
    pub fn number(&self) -> Option<u128> {
        match self.terms.as_slice() {
            [] => Some(0),
            [(number, symbols)] if symbols.is_empty() => Some(*number),
            _ => None,
        }
    }

    /// Adds `factor · sizes`.
    pub(super) fn add(&mut self, factor: u128, sizes: impl IntoIterator<Item = Size>) {
        let (mut factor, mut symbols) = (factor, Vec::new());
        for size in sizes {
            match size {
                Size::Known(number) => factor = factor.saturating_mul(number),
                Size::Symbol(symbol) => symbols.push(symbol),
            }
        }
        if factor == 0 {
            return;
        }
        match self.terms.iter_mut().find(|(_, known)| *known == symbols) {
            Some((total, _)) => *total = total.saturating_add(factor),
            // What is known comes last.
            None if symbols.is_empty() => self.terms.push((factor, symbols)),
            None => {
                let place = self.terms.iter().take_while(|(_, known)| !known.is_empty()).count();
                self.terms.insert(place, (factor, symbols));
            }
        }
    }

    pub(super) fn add_all(&mut self, other: &Bytes) {
        for (factor, symbols) in &other.terms {
            self.add(*factor, symbols.iter().cloned().map(Size::Symbol));
        }
    }
}

/// `8·nnz(x) + 8·n + 8`, `(4·k + 8)·columns(x)`, and numbers in groups of three: `1_048_576`.
impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Terms with the same last factor are one term.
        let mut groups: Vec<(&str, Vec<String>)> = Vec::new();
        for (factor, symbols) in &self.terms {
            let (last, others) = match symbols.split_last() {
                Some((last, others)) => (last.as_str(), others),
                None => ("", &[][..]),
            };
            let words: Vec<String> =
                std::iter::once(grouped(*factor)).chain(others.iter().cloned()).collect();
            let word = words.join("·");
            match groups.iter_mut().find(|(known, _)| *known == last) {
                Some((_, words)) => words.push(word),
                None => groups.push((last, vec![word])),
            }
        }
        let sum = groups.iter().map(|(last, words)| match (words.as_slice(), *last) {
            (words, "") => words.join(" + "),
            ([word], last) => format!("{word}·{last}"),
            (words, last) => format!("({})·{last}", words.join(" + ")),
        });
        let sum: Vec<String> = sum.collect();
        f.write_str(if sum.is_empty() { "0" } else { "" })?;
        f.write_str(&sum.join(" + "))
    }
}

/// `1_048_576`.
pub(super) fn grouped(number: u128) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push('_');
        }
        text.push(digit);
    }
    text
}

/// The bytes of a value, by its storage type. A parameter is a table of all its rows, whatever its
/// storage type.
pub(super) fn bytes(plan: &PlanTable<'_>, position: u32, sizes: &Sizes) -> Bytes {
    let mut bytes = Bytes::default();
    let Some(value) = plan.values.get(position as usize) else {
        return bytes;
    };
    let element = u128::from(value.element.bytes());
    let extents = || value.shape.iter().map(|extent| sizes.extent(*extent));
    let stored = || sizes.stored(plan, value.storage, value.stored);
    match (value.storage, value.stored) {
        (_, Stored::All) | (Storage::Dense, _) => bytes.add(element, extents()),
        (Storage::Csr, _) => {
            bytes.add(element + column_id(value.shape, sizes), [stored()]);
            bytes.add(ROW_POINTER, extents().take(1));
            bytes.add(ROW_POINTER, []);
        }
        (Storage::RowSparse, how) => {
            let rows = || match how {
                Stored::AllRows => extents().take(1).collect(),
                _ => vec![stored()],
            };
            bytes.add(element, extents().skip(1).chain(rows()));
            bytes.add(ROW_ID, rows());
        }
    }
    bytes
}

/// Bytes of a column id: ids of a wide array are stored in 8.
fn column_id(shape: &[Extent<'_>], sizes: &Sizes) -> u128 {
    match shape.last().map(|columns| sizes.extent(*columns)) {
        Some(Size::Known(columns)) if columns > 1 << 32 => 8,
        _ => 4,
    }
}

impl Sizes {
    /// How many entries or rows are stored.
    fn stored(&self, plan: &PlanTable<'_>, storage: Storage, stored: Stored<'_>) -> Size {
        let (word, inputs) = match stored {
            Stored::All | Stored::AllRows => ("all", Vec::new()),
            Stored::As(source) => {
                let name = plan.label(source);
                if let Some(number) = self.stored_in(&name) {
                    return Size::Known(number as u128);
                }
                (if storage == Storage::Csr { "nnz" } else { "rows" }, vec![name])
            }
            Stored::Distinct(inputs) => {
                let names: Vec<String> = inputs.iter().map(|input| plan.label(*input)).collect();
                if let Some(number) = self.distinct_ids(&names) {
                    return Size::Known(number as u128);
                }
                (if plan.are_csr(inputs) { "columns" } else { "ids" }, names)
            }
        };
        Size::Symbol(format!("{word}({})", inputs.join(", ")))
    }
}
