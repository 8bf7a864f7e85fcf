//! Lines into samples.

use super::VowpalWabbit;
use crate::feature_names::{FeatureNames, shown};
use crate::hashed_entries::{HashedEntry, push_entries};
use crate::hashing::{cross, xxh64};
use crate::number::{NotANumber, number};
use crate::read_error::Fault;
use crate::text::{Chunk, Lines, RowParser, check_text};
use crate::{Excerpt, Problem};
use sparse_core::element::Float;
use std::collections::HashMap;
use std::ops::Range;

/// The positions of the columns.
const X: usize = 0;
const LABEL: usize = 1;
const IMPORTANCE: usize = 2;

/// Lines into samples.
#[derive(Debug)]
pub struct Parser {
    format: VowpalWabbit,
    /// The namespaces of a line: their names, and their features.
    namespaces: Vec<(Vec<u8>, Range<usize>)>,
    features: Vec<Feature>,
    /// The entries of a sample.
    entries: Vec<HashedEntry>,
    /// The position of the column of the numbers of fields, where there is one.
    field_numbers: Option<usize>,
    /// The numbers of namespaces as fields.
    fields: HashMap<Vec<u8>, usize>,
}

#[derive(Clone, Debug)]
struct Feature {
    hash: u64,
    value: f64,
    /// Its name in the line.
    token: Range<usize>,
}

impl Parser {
    pub(super) fn new(format: &VowpalWabbit, n_columns: usize) -> Self {
        let names = format.fields.iter().flatten();
        let fields = names.enumerate().map(|(number, name)| (name.clone().into_bytes(), number));
        let fields = fields.collect();
        Parser {
            format: format.clone(),
            namespaces: Vec::new(),
            features: Vec::new(),
            entries: Vec::new(),
            // It is behind all others.
            field_numbers: format.fields.as_ref().map(|_| n_columns),
            fields,
        }
    }

    fn row<T: Float>(&mut self, line: &[u8], rows: &mut Chunk<T>) -> Result<(), Fault> {
        let Some(bar) = memchr::memchr(b'|', line) else {
            let found = Excerpt::line(line);
            let expected = "`|` and the features of a namespace";
            return Err(Fault { offset: 0, problem: Problem::Expected { expected, found } });
        };
        if !self.format.without_labels {
            let (label, importance) = label::<T>(line, bar)?;
            rows.dense(LABEL).push(label);
            if !self.format.without_importance {
                rows.dense(IMPORTANCE).push(importance);
            } else if importance != T::one() {
                let expected = "an importance of 1, since all samples weigh alike";
                let problem = Problem::Expected { expected, found: Excerpt::line(&line[..bar]) };
                return Err(Fault { offset: 0, problem });
            }
        }
        self.namespaces.clear();
        self.features.clear();
        let mut at = bar;
        while at < line.len() {
            at = self.namespace::<T>(line, at + 1)?;
        }
        self.push_entries(rows)
    }

    /// Reads a namespace from behind its `|`; returns where the next one is, or the end.
    fn namespace<T: Float>(&mut self, line: &[u8], start: usize) -> Result<usize, Fault> {
        let (name, mut at) = word(line, start);
        let mut factor = 1.0;
        if line.get(at) == Some(&b':') {
            (factor, at) = value::<T>(line, at + 1)?;
        }
        let seed = xxh64(name, self.format.hashing.seed_alone());
        let first = self.features.len();
        loop {
            while matches!(line.get(at), Some(b' ' | b'\t')) {
                at += 1;
            }
            match line.get(at) {
                None | Some(b'|') => break,
                Some(_) => {}
            }
            let begin = at;
            let (feature, end) = word(line, begin);
            at = end;
            let mut number = 1.0;
            if line.get(at) == Some(&b':') {
                if feature.is_empty() {
                    let found = Excerpt::word(&line[begin..]);
                    let expected = "the name of a feature before `:`";
                    let problem = Problem::Expected { expected, found };
                    return Err(Fault { offset: begin, problem });
                }
                (number, at) = value::<T>(line, at + 1)?;
            }
            let token = begin..end;
            let hash = xxh64(feature, seed);
            self.features.push(Feature { hash, value: number * factor, token });
        }
        self.namespaces.push((name.to_vec(), first..self.features.len()));
        Ok(at)
    }

    /// The names of the namespaces of a line, as far as it can be read.
    pub(super) fn names_of_namespaces(&mut self, line: &[u8]) -> impl Iterator<Item = &[u8]> {
        self.namespaces.clear();
        self.features.clear();
        let mut at = memchr::memchr(b'|', line).unwrap_or(line.len());
        while at < line.len() {
            at = self.namespace::<f64>(line, at + 1).unwrap_or(line.len());
        }
        self.namespaces.iter().map(|(name, _)| &name[..])
    }

    /// Calls a function with each pair of features that is crossed: its column, the number of the
    /// cross, and the positions of both.
    #[inline]
    fn each_pair(&self, mut take: impl FnMut(u64, usize, [usize; 2])) {
        let Parser { format, namespaces, features, .. } = self;
        let hashing = format.hashing;
        for (number_of_cross, (first, second)) in format.crosses.iter().enumerate() {
            for (number, (name, those)) in namespaces.iter().enumerate() {
                for (other_number, (other_name, others)) in namespaces.iter().enumerate() {
                    let is_pair = first.has(name) && second.has(other_name);
                    // Where both sides have both namespaces, each pair of them counts once.
                    let is_counted = first.has(other_name) && second.has(name);
                    if !is_pair || (is_counted && other_number < number) {
                        continue;
                    }
                    for one in those.clone() {
                        let from = if number == other_number { one + 1 } else { others.start };
                        for other in from..others.end {
                            let mut hashes = [features[one].hash, features[other].hash];
                            if is_counted {
                                hashes.sort_unstable();
                            }
                            let column = hashing.low(cross(&hashes, hashing.seed_alone()));
                            take(column, number_of_cross, [one, other]);
                        }
                    }
                }
            }
        }
    }

    /// Names the features of a line, as far as it can be read.
    pub(super) fn name_features(&mut self, line: &[u8], names: &mut FeatureNames) {
        let Some(mut at) = memchr::memchr(b'|', line) else { return };
        self.namespaces.clear();
        self.features.clear();
        while at < line.len() {
            match self.namespace::<f64>(line, at + 1) {
                Ok(next) => at = next,
                Err(_) => return,
            }
        }
        let named = |position: usize| {
            let (space, _) = self.namespaces.iter().find(|(_, of)| of.contains(&position))?;
            let token = &line[self.features[position].token.clone()];
            Some(format!("{}^{}", shown(space), shown(token)))
        };
        let named = |position| named(position).unwrap_or_default();
        for (position, feature) in self.features.iter().enumerate() {
            names.add(self.format.hashing.low(feature.hash), || named(position));
        }
        self.each_pair(|column, _, [one, other]| {
            names.add(column, || format!("{}*{}", named(one), named(other)));
        });
    }

    /// The features of a sample and their crosses, by column.
    fn push_entries<T: Float>(&mut self, rows: &mut Chunk<T>) -> Result<(), Fault> {
        let hashing = self.format.hashing;
        let mut entries = std::mem::take(&mut self.entries);
        for (name, those) in &self.namespaces {
            let field = match self.fields.get(&name[..]) {
                Some(field) => *field,
                None if self.field_numbers.is_none() => 0,
                None => {
                    let expected = "a namespace that is a field of the model";
                    let found = Excerpt::word(name);
                    return Err(Fault {
                        offset: 0,
                        problem: Problem::Expected { expected, found },
                    });
                }
            };
            entries.extend(
                self.features[those.clone()].iter().map(|feature| {
                    HashedEntry::new(hashing.low(feature.hash), field, feature.value)
                }),
            );
        }
        self.each_pair(|column, cross, [one, other]| {
            let value = self.features[one].value * self.features[other].value;
            entries.push(HashedEntry::new(column, self.fields.len() + cross, value));
        });
        push_entries(&mut entries, X, self.field_numbers, rows)?;
        self.entries = entries;
        rows.finish_row();
        Ok(())
    }
}

/// The label and the importance of a line, before its first `|`.
fn label<T: Float>(line: &[u8], bar: usize) -> Result<(T, T), Fault> {
    let head = &line[..bar];
    let offset = |word: &[u8]| word.as_ptr() as usize - line.as_ptr() as usize;
    let is_tag = |word: &&[u8]| word.starts_with(b"'") || offset(word) + word.len() == bar;
    let words = head.split(|byte| matches!(byte, b' ' | b'\t')).filter(|word| !word.is_empty());
    let (mut numbers, mut n_numbers) = ([T::one(); 2], 0);
    for word in words.filter(|word| !is_tag(word)) {
        let fault = |problem| Fault { offset: offset(word), problem };
        let found = Excerpt::word(word);
        let Some(place) = numbers.get_mut(n_numbers) else {
            let expected = "a tag `'…` or `|` after the label and the importance";
            return Err(fault(Problem::Expected { expected, found }));
        };
        *place = match number::<T>(word) {
            Ok((number, [])) => number,
            Err(NotANumber::NotFinite) => return Err(fault(Problem::LabelNotFinite { found })),
            Err(NotANumber::BeyondRange) => {
                return Err(fault(Problem::LabelBeyondRange { found, element: T::TYPE }));
            }
            _ if n_numbers == 0 => return Err(fault(Problem::ExpectedLabel { found })),
            _ => {
                let expected = "a number, the importance, or a tag `'…`";
                return Err(fault(Problem::Expected { expected, found }));
            }
        };
        if n_numbers == 1 && *place < T::zero() {
            let expected = "an importance of at least 0";
            return Err(fault(Problem::Expected { expected, found }));
        }
        n_numbers += 1;
    }
    match n_numbers {
        0 => {
            let expected = "a label and a blank before the first `|`";
            let found = Excerpt::line(line);
            Err(Fault { offset: 0, problem: Problem::Expected { expected, found } })
        }
        _ => Ok((numbers[0], numbers[1])),
    }
}

/// What stands before the next blank, `:` or `|`, and its end.
#[inline]
fn word(line: &[u8], start: usize) -> (&[u8], usize) {
    let rest = &line[start..];
    let end = rest.iter().position(|byte| matches!(byte, b' ' | b'\t' | b':' | b'|'));
    let end = end.unwrap_or(rest.len());
    (&rest[..end], start + end)
}

/// The number behind a `:`, and its end.
#[inline]
fn value<T: Float>(line: &[u8], start: usize) -> Result<(f64, usize), Fault> {
    let rest = &line[start..];
    let fault = |expected| {
        let problem = Problem::Expected { expected, found: Excerpt::word(rest) };
        Fault { offset: start, problem }
    };
    match number::<T>(rest) {
        Ok((number, after)) if matches!(after, [] | [b' ' | b'\t' | b'|', ..]) => {
            Ok((number.as_f64(), line.len() - after.len()))
        }
        Err(NotANumber::NotFinite) => Err(fault("a finite number after `:`")),
        Err(NotANumber::BeyondRange) => {
            Err(fault("a number within the range of the element type after `:`"))
        }
        _ => Err(fault("a number after `:`")),
    }
}

impl<T: Float> RowParser<T> for Parser {
    fn parse(&mut self, text: &[u8], rows: &mut Chunk<T>) -> Result<(), Fault> {
        for (start, line) in Lines::new(text) {
            if line.trim_ascii().is_empty() {
                continue;
            }
            check_text(line, start)?;
            self.row(line, rows)
                .map_err(|fault| Fault { offset: start + fault.offset, ..fault })?;
        }
        Ok(())
    }
}
