//! Rows of cells into columns: fields of lines of text, or cells of tables.

use super::super::number::number;
use super::super::read_error::Fault;
use super::super::text::{Chunk, Lines, RowParser, check_text};
use super::super::{Excerpt, Hashing, Problem};
use super::cells::{Cell, Fields, RowCells};
use super::{Delimited, Kind, Numbers};
use crate::feature_names::{FeatureNames, shown};
use crate::hashed_entries::{HashedEntry, push_entries};
use crate::hashing::{cross, xxh64};
use sparse_core::element::Float;
use sparse_core::storage::ElementType;
use std::collections::HashMap;
use std::fmt::Write;

/// What is done with each field.
#[derive(Debug)]
pub struct Parser {
    separator: u8,
    quotes: bool,
    header: bool,
    hashing: Hashing,
    fields: Vec<Field>,
    /// The entries of a row of `x`, in the order of the fields.
    entries: Vec<HashedEntry>,
    /// The position of the column of the numbers of fields, where there is one.
    field_numbers: Option<usize>,
    /// The number of the first cross among the fields.
    first_cross: usize,
    /// The bucket of a number, as it is hashed.
    bucket: String,
    /// The words that stand for missing numbers.
    missing: Vec<String>,
    /// The words that are labels.
    label_names: HashMap<Vec<u8>, usize>,
    /// The positions of the fields of each cross.
    crosses: Vec<Vec<usize>>,
    /// The hash and the value of each field of a row, 0 where a number is missing; empty without
    /// crosses.
    crossed: Vec<(u64, f64)>,
    /// The hashes of a cross.
    hashes: Vec<u64>,
}

#[derive(Debug)]
struct Field {
    name: String,
    kind: Kind,
    /// The seed of its tokens.
    seed: u64,
    /// Its number among the fields of the entries of `x`.
    number: usize,
    /// The column of `x` where its number stands.
    column: u64,
    /// What is subtracted from its number, and by what the rest is divided.
    scale: Option<(f64, f64)>,
    /// The position of the column that it makes by itself or with others: labels, weights, numbers,
    /// ids.
    target: Option<usize>,
}

impl Parser {
    pub(crate) fn new(format: &Delimited) -> Self {
        let numbers = format.numbers_apart.then_some(1);
        let ids = format.ids.then(|| 1 + usize::from(format.numbers_apart));
        let mut next = 1 + usize::from(format.numbers_apart) + usize::from(format.ids);
        let mut first_cross = 0;
        let field = |(name, kind): &(String, Kind)| {
            let number = first_cross;
            first_cross += usize::from(format.is_in_x(*kind));
            let target = match kind {
                Kind::Label | Kind::Weight => {
                    next += 1;
                    Some(next - 1)
                }
                kind if kind.is_number() => numbers,
                kind if kind.is_category() => ids,
                _ => None,
            };
            let seed = format.hashing.seed_of(name);
            let column = format.hashing.low(xxh64(b"", seed));
            let scale = format.scales.iter().find(|scale| scale.column == *name);
            let scale = scale.filter(|_| *kind == Kind::Numeric(Numbers::Value));
            let scale = scale.map(|scale| (scale.mean, scale.deviation));
            Field { name: name.clone(), kind: *kind, seed, number, column, scale, target }
        };
        let fields = format.columns.iter().map(field).collect();
        Parser {
            separator: format.separator,
            quotes: format.quotes,
            header: format.header,
            hashing: format.hashing,
            fields,
            entries: Vec::new(),
            // It is behind all others.
            field_numbers: format.has_fields.then_some(next),
            first_cross,
            bucket: String::new(),
            missing: format.missing.clone(),
            label_names: (format.label_names.iter().enumerate())
                .map(|(position, name)| (name.clone().into_bytes(), position))
                .collect(),
            crosses: format.crosses.iter().map(|names| positions(format, names)).collect(),
            crossed: Vec::new(),
            hashes: Vec::new(),
        }
    }

    /// Appends a sample.
    pub(crate) fn row<T: Float>(
        &mut self,
        cells: &mut impl RowCells,
        rows: &mut Chunk<T>,
    ) -> Result<(), Fault> {
        let n_fields = self.fields.len();
        let Parser {
            hashing,
            entries,
            bucket,
            fields: schema,
            crosses,
            crossed,
            hashes,
            label_names,
            missing,
            field_numbers,
            first_cross,
            ..
        } = self;
        entries.clear();
        crossed.clear();
        for field in schema.iter() {
            if cells.is_done() {
                return Err(cells.count_fault(n_fields));
            }
            let (offset, cell) = cells.next_cell()?;
            let fault = |expected| Fault {
                offset,
                problem: Problem::Field {
                    column: field.name.clone(),
                    expected,
                    found: Excerpt::line(&cell.text()),
                },
            };
            match field.kind {
                Kind::List => {
                    let text = cell.text();
                    let parts = text.split(|byte| *byte == b'|').map(<[u8]>::trim_ascii);
                    for part in parts.filter(|part| !part.is_empty()) {
                        let column = hashing.low(xxh64(part, field.seed));
                        entries.push(HashedEntry::new(column, field.number, 1.0));
                    }
                    if !crosses.is_empty() {
                        crossed.push((0, 0.0));
                    }
                }
                Kind::Ignore if crosses.is_empty() => {}
                Kind::Ignore => crossed.push((0, 0.0)),
                Kind::Categorical => {
                    let hash = xxh64(&cell.text(), field.seed);
                    let column = hashing.low(hash);
                    if !crosses.is_empty() {
                        crossed.push((hash, 1.0));
                    }
                    entries.push(HashedEntry::new(column, field.number, 1.0));
                    if let Some(target) = field.target {
                        rows.ids(target).push(column as u32);
                    }
                }
                Kind::Numeric(Numbers::Buckets) => {
                    let number = optional_of(&cell, missing).map_err(fault)?;
                    name_bucket(number, bucket);
                    let hash = xxh64(bucket.as_bytes(), field.seed);
                    let column = hashing.low(hash);
                    if !crosses.is_empty() {
                        crossed.push((hash, 1.0));
                    }
                    entries.push(HashedEntry::new(column, field.number, 1.0));
                    if let Some(target) = field.target {
                        rows.ids(target).push(column as u32);
                    }
                }
                Kind::Numeric(numbers) => {
                    let value = optional_of(&cell, missing).map_err(fault)?;
                    let value = match (value, numbers) {
                        (Some(v), Numbers::Log) => v.signum() * v.abs().ln_1p(),
                        (Some(v), _) => field.scale.map_or(v, |(mean, by)| (v - mean) / by),
                        (None, _) => 0.0,
                    };
                    let narrow = T::of(value);
                    if !narrow.is_finite() {
                        return Err(fault("a number within the range of the element type"));
                    }
                    if !crosses.is_empty() {
                        crossed.push((xxh64(b"", field.seed), value));
                    }
                    match field.target {
                        Some(target) => rows.dense(target).push(narrow),
                        None if value != 0.0 => {
                            entries.push(HashedEntry::new(field.column, field.number, value));
                        }
                        None => {}
                    }
                }
                Kind::Label if !label_names.is_empty() => {
                    let position = label_names.get(cell.text().trim_ascii());
                    let Some(position) = position else {
                        return Err(fault("one of the words that are labels"));
                    };
                    if !crosses.is_empty() {
                        crossed.push((0, 0.0));
                    }
                    if let Some(target) = field.target {
                        rows.dense(target).push(T::of(*position as f64));
                    }
                }
                Kind::Label | Kind::Weight => {
                    let value = match exact::<T>(&cell) {
                        Ok(Some(value)) => value,
                        Ok(None) => return Err(fault("a number")),
                        Err(expected) => return Err(fault(expected)),
                    };
                    if field.kind == Kind::Weight && value < T::zero() {
                        return Err(fault("a weight of at least 0"));
                    }
                    if !crosses.is_empty() {
                        crossed.push((0, 0.0));
                    }
                    // Both have a column of their own.
                    if let Some(target) = field.target {
                        rows.dense(target).push(value);
                    }
                }
            }
        }
        if !cells.is_done() {
            return Err(cells.count_fault(n_fields));
        }
        for (parts, number) in crosses.iter().zip(*first_cross..) {
            let value: f64 = parts.iter().map(|part| crossed[*part].1).product();
            if value != 0.0 {
                hashes.clear();
                hashes.extend(parts.iter().map(|part| crossed[*part].0));
                let column = hashing.low(cross(hashes, hashing.seed_alone()));
                entries.push(HashedEntry::new(column, number, value));
            }
        }
        push_entries(entries, 0, *field_numbers, rows)?;
        rows.finish_row();
        Ok(())
    }

    /// Refuses a line with a byte that text does not have; what stands in quotes may have a
    /// carriage return.
    #[inline]
    fn check_line(&self, line: &[u8], offset: usize) -> Result<(), Fault> {
        let checked = check_text(line, offset);
        match &checked {
            Err(Fault { problem: Problem::CarriageReturn, .. })
                if self.quotes && line.contains(&b'"') && !line.contains(&0) =>
            {
                Ok(())
            }
            _ => checked,
        }
    }

    /// Whether a line is the names of the columns, which are not all numbers: a row of `1,2` may
    /// have the names that columns have by their positions.
    fn is_header(&self, line: &[u8]) -> bool {
        let mut fields = Fields::new(line, self.separator, self.quotes);
        let has_name = |field: &Field| match fields.next() {
            Some(Ok((_, found))) => found.trim_ascii() == field.name.as_bytes(),
            _ => false,
        };
        let is_number = |field: &Field| optional::<f64>(field.name.as_bytes()).is_ok();
        !self.fields.iter().all(is_number) && self.fields.iter().all(has_name) && fields.is_done()
    }

    /// Adds the numbers of a row to the sums of the columns that are taken as they are; a row that
    /// cannot be read adds nothing.
    pub(super) fn measure(
        &self,
        cells: &mut impl RowCells,
        numbers: &mut Vec<Option<f64>>,
    ) -> bool {
        numbers.clear();
        for field in &self.fields {
            if cells.is_done() {
                return false;
            }
            let Ok((_, cell)) = cells.next_cell() else { return false };
            if field.kind == Kind::Numeric(Numbers::Value) {
                let Ok(value) = optional_of(&cell, &self.missing) else { return false };
                numbers.push(value);
            }
        }
        cells.is_done()
    }

    /// Names the features of a row, as far as it can be read.
    pub(super) fn name_features(&mut self, cells: &mut dyn RowCells, names: &mut FeatureNames) {
        let mut parts: Vec<(u64, String)> = Vec::with_capacity(self.fields.len());
        for field in &self.fields {
            if cells.is_done() {
                break;
            }
            let Ok((_, cell)) = cells.next_cell() else { return };
            let name = &field.name;
            let (hash, named) = match field.kind {
                Kind::Categorical => {
                    let text = cell.text();
                    (xxh64(&text, field.seed), format!("{name}={}", shown(&text)))
                }
                Kind::Numeric(Numbers::Buckets) => {
                    let Ok(number) = optional_of(&cell, &self.missing) else { return };
                    name_bucket(number, &mut self.bucket);
                    let bucket = &self.bucket;
                    (xxh64(bucket.as_bytes(), field.seed), format!("{name}={bucket}"))
                }
                Kind::Numeric(_) => (xxh64(b"", field.seed), name.clone()),
                Kind::List => {
                    let text = cell.text();
                    let values = text.split(|byte| *byte == b'|').map(<[u8]>::trim_ascii);
                    for value in values.filter(|value| !value.is_empty()) {
                        let column = self.hashing.low(xxh64(value, field.seed));
                        names.add(column, || format!("{name}={}", shown(value)));
                    }
                    (0, String::new())
                }
                Kind::Label | Kind::Weight | Kind::Ignore => (0, String::new()),
            };
            if !named.is_empty() {
                names.add(self.hashing.low(hash), || named.clone());
            }
            parts.push((hash, named));
        }
        for positions in &self.crosses {
            let of = positions.iter().filter_map(|position| parts.get(*position));
            let (hashes, named): (Vec<u64>, Vec<&str>) =
                of.map(|(hash, named)| (*hash, &named[..])).unzip();
            let column = self.hashing.low(cross(&hashes, self.hashing.seed_alone()));
            names.add(column, || named.join("*"));
        }
    }

    /// The fields of a line, as this format has them.
    pub(super) fn cells<'a>(&self, line: &'a [u8]) -> Fields<'a> {
        Fields::new(line, self.separator, self.quotes)
    }
}

impl<T: Float> RowParser<T> for Parser {
    fn header(&mut self, text: &[u8]) -> Result<usize, Fault> {
        let mut lines = Lines::new(text);
        let (_, line) = lines.next().unwrap_or_default();
        if !self.header {
            let problem = Problem::UndeclaredHeader;
            return if self.is_header(line) { Err(Fault { offset: 0, problem }) } else { Ok(0) };
        }
        self.check_line(line, 0)?;
        let mut fields = Fields::new(line, self.separator, self.quotes);
        for field in &self.fields {
            let Some(found) = fields.next() else {
                return Err(fields.count_fault(self.fields.len()));
            };
            let (offset, found) = found?;
            if found.trim_ascii() != field.name.as_bytes() {
                let problem =
                    Problem::Header { expected: field.name.clone(), found: Excerpt::line(&found) };
                return Err(Fault { offset, problem });
            }
        }
        if !fields.is_done() {
            return Err(fields.count_fault(self.fields.len()));
        }
        Ok(lines.next().map_or(text.len(), |(second, _)| second))
    }

    fn parse(&mut self, text: &[u8], rows: &mut Chunk<T>) -> Result<(), Fault> {
        for (start, line) in Lines::new(text) {
            if line.is_empty() {
                continue;
            }
            self.check_line(line, start)?;
            let mut cells = self.cells(line);
            self.row(&mut cells, rows)
                .map_err(|fault| Fault { offset: start + fault.offset, ..fault })?;
        }
        Ok(())
    }
}

/// The positions of columns, which [`Delimited::cross`] has found to be there.
fn positions(format: &Delimited, names: &[String]) -> Vec<usize> {
    let position = |name: &String| format.columns.iter().position(|(known, _)| known == name);
    names.iter().filter_map(position).collect()
}

/// Writes the name of the [bucket](Numbers::Buckets) of a number: the same however the number was
/// spelled.
#[inline]
fn name_bucket(value: Option<f64>, name: &mut String) {
    name.clear();
    // A string takes whatever is written to it. Whole numbers are written as such, which is faster.
    let _ = match value {
        None => name.write_str("NA"),
        Some(v) if v > 2.0 => write!(name, "b{}", v.ln().powi(2).floor() as u64),
        Some(v) if v.fract() == 0.0 && v > -1e15 => write!(name, "{}", v as i64),
        Some(v) => write!(name, "{v}"),
    };
}

/// The text of a number; nothing where it is a word that stands for a missing one.
#[inline]
fn known<'t>(text: &'t [u8], missing: &[String]) -> &'t [u8] {
    if missing.is_empty() || !is_missing(text, missing) { text } else { b"" }
}

/// Whether a text is a word that stands for a missing number.
pub(super) fn is_missing(text: &[u8], missing: &[String]) -> bool {
    missing.iter().any(|word| word.as_bytes() == text.trim_ascii())
}

/// The number of a cell, or nothing where it is missing; or what was expected.
#[inline]
fn optional_of(cell: &Cell<'_>, missing: &[String]) -> Result<Option<f64>, &'static str> {
    match cell {
        Cell::Number(value) => Ok(Some(*value)),
        Cell::Text(text) => optional(known(text, missing)),
    }
}

/// The number of a cell as an element type, rounded once: from its text, as that of a line is.
#[inline]
fn exact<T: Float>(cell: &Cell<'_>) -> Result<Option<T>, &'static str> {
    match cell {
        Cell::Number(value) if T::of(*value).as_f64() == *value => Ok(Some(T::of(*value))),
        cell => optional(&cell.text()),
    }
}

/// A number, or nothing where the field is blank; or what was expected.
#[inline]
fn optional<T: Float>(text: &[u8]) -> Result<Option<T>, &'static str> {
    let text = text.trim_ascii();
    if text.is_empty() {
        return Ok(None);
    }
    match number::<T>(text) {
        Ok((value, [])) => Ok(Some(value)),
        Err(crate::number::NotANumber::NotFinite) => Err("a finite number"),
        Err(crate::number::NotANumber::BeyondRange) => Err(match T::TYPE {
            ElementType::F32 => "a number within the range of f32",
            _ => "a number within the range of the element type",
        }),
        _ => Err("a number"),
    }
}
