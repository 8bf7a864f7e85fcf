//! Lines of fields into columns.

use super::super::number::number;
use super::super::read_error::Fault;
use super::super::text::{Chunk, Lines, RowParser, check_text};
use super::super::{Excerpt, Hashing, Problem};
use super::{Delimited, Kind, Numbers};
use crate::hashing::xxh64;
use sparse_core::element::Float;
use sparse_core::storage::ElementType;
use std::borrow::Cow;
use std::fmt::Write;

/// What is done with each field.
#[derive(Debug)]
pub struct Parser {
    separator: u8,
    quotes: bool,
    header: bool,
    hashing: Hashing,
    fields: Vec<Field>,
    /// The entries of a row of `x`, by column and value, in the order of the fields.
    entries: Vec<(u64, f64)>,
    /// The bucket of a number, as it is hashed.
    bucket: String,
}

#[derive(Debug)]
struct Field {
    name: String,
    kind: Kind,
    /// The seed of its tokens.
    seed: u64,
    /// The column of `x` where its number stands.
    column: u64,
    /// What is subtracted from its number, and by what the rest is divided.
    scale: Option<(f64, f64)>,
    /// The position of the column that it makes by itself or with others: labels, weights, numbers,
    /// ids.
    target: Option<usize>,
}

impl Parser {
    pub(super) fn new(format: &Delimited) -> Self {
        let numbers = format.numbers_apart.then_some(1);
        let ids = format.ids.then(|| 1 + usize::from(format.numbers_apart));
        let mut next = 1 + usize::from(format.numbers_apart) + usize::from(format.ids);
        let field = |(name, kind): &(String, Kind)| {
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
            Field { name: name.clone(), kind: *kind, seed, column, scale, target }
        };
        Parser {
            separator: format.separator,
            quotes: format.quotes,
            header: format.header,
            hashing: format.hashing,
            fields: format.columns.iter().map(field).collect(),
            entries: Vec::new(),
            bucket: String::new(),
        }
    }

    fn row<T: Float>(&mut self, line: &[u8], rows: &mut Chunk<T>) -> Result<(), Fault> {
        let mut fields = Fields::new(line, self.separator, self.quotes);
        let Parser { hashing, entries, bucket, fields: schema, .. } = self;
        entries.clear();
        for field in schema.iter() {
            let (offset, text) = match fields.next() {
                Some(found) => found?,
                None => return Err(self.count_fault(line)),
            };
            let fault = |expected| Fault {
                offset,
                problem: Problem::Field {
                    column: field.name.clone(),
                    expected,
                    found: Excerpt::line(&text),
                },
            };
            match field.kind {
                Kind::Ignore => {}
                Kind::Categorical => {
                    let column = hashing.low(xxh64(&text, field.seed));
                    entries.push((column, 1.0));
                    if let Some(target) = field.target {
                        rows.ids(target).push(column as u32);
                    }
                }
                Kind::Numeric(Numbers::Buckets) => {
                    name_bucket(optional(&text).map_err(fault)?, bucket);
                    let column = hashing.low(xxh64(bucket.as_bytes(), field.seed));
                    entries.push((column, 1.0));
                    if let Some(target) = field.target {
                        rows.ids(target).push(column as u32);
                    }
                }
                Kind::Numeric(numbers) => {
                    let value = optional::<f64>(&text).map_err(fault)?;
                    let value = match (value, numbers) {
                        (Some(v), Numbers::Log) => v.signum() * v.abs().ln_1p(),
                        (Some(v), _) => field.scale.map_or(v, |(mean, by)| (v - mean) / by),
                        (None, _) => 0.0,
                    };
                    let narrow = T::of(value);
                    if !narrow.is_finite() {
                        return Err(fault("a number within the range of the element type"));
                    }
                    match field.target {
                        Some(target) => rows.dense(target).push(narrow),
                        None if value != 0.0 => entries.push((field.column, value)),
                        None => {}
                    }
                }
                Kind::Label | Kind::Weight => {
                    let value = match optional::<T>(&text) {
                        Ok(Some(value)) => value,
                        Ok(None) => return Err(fault("a number")),
                        Err(expected) => return Err(fault(expected)),
                    };
                    if field.kind == Kind::Weight && value < T::zero() {
                        return Err(fault("a weight of at least 0"));
                    }
                    // Both have a column of their own.
                    if let Some(target) = field.target {
                        rows.dense(target).push(value);
                    }
                }
            }
        }
        if fields.next.is_some() {
            return Err(self.count_fault(line));
        }
        // Stable: values of one column are added in the order of the fields.
        entries.sort_by_key(|&(column, _)| column);
        let x = rows.csr(0);
        let mut entries = entries.iter().copied().peekable();
        while let Some((column, mut value)) = entries.next() {
            while let Some((_, more)) = entries.next_if(|&(next, _)| next == column) {
                value += more;
            }
            let sum = T::of(value);
            if !sum.is_finite() {
                return Err(Fault { offset: 0, problem: Problem::SumNotFinite { index: column } });
            }
            x.push(column, sum);
        }
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
        !self.fields.iter().all(is_number)
            && self.fields.iter().all(has_name)
            && fields.next.is_none()
    }

    /// Adds the numbers of a row to the sums of the columns that are taken as they are; a row that
    /// cannot be read adds nothing.
    pub(super) fn measure(&self, line: &[u8], numbers: &mut Vec<Option<f64>>) -> bool {
        let mut fields = Fields::new(line, self.separator, self.quotes);
        numbers.clear();
        for field in &self.fields {
            let Some(Ok((_, text))) = fields.next() else { return false };
            if field.kind == Kind::Numeric(Numbers::Value) {
                let Ok(value) = optional::<f64>(&text) else { return false };
                numbers.push(value);
            }
        }
        fields.next.is_none()
    }

    #[cold]
    fn count_fault(&self, line: &[u8]) -> Fault {
        let fields = Fields { line, next: Some(0), separator: self.separator, quotes: self.quotes };
        let (found, expected) = (fields.count(), self.fields.len());
        Fault { offset: 0, problem: Problem::FieldCount { found, expected } }
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
            let Some(found) = fields.next() else { return Err(self.count_fault(line)) };
            let (offset, found) = found?;
            if found.trim_ascii() != field.name.as_bytes() {
                let problem =
                    Problem::Header { expected: field.name.clone(), found: Excerpt::line(&found) };
                return Err(Fault { offset, problem });
            }
        }
        if fields.next.is_some() {
            return Err(self.count_fault(line));
        }
        Ok(lines.next().map_or(text.len(), |(second, _)| second))
    }

    fn parse(&mut self, text: &[u8], rows: &mut Chunk<T>) -> Result<(), Fault> {
        for (start, line) in Lines::new(text) {
            if line.is_empty() {
                continue;
            }
            self.check_line(line, start)?;
            self.row(line, rows)
                .map_err(|fault| Fault { offset: start + fault.offset, ..fault })?;
        }
        Ok(())
    }
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

/// The fields of a line, each with its offset.
pub(super) struct Fields<'a> {
    line: &'a [u8],
    /// Where the next one begins, if there is one.
    next: Option<usize>,
    separator: u8,
    quotes: bool,
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(usize, Cow<'a, [u8]>), Fault>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let start = self.next?;
        let rest = &self.line[start..];
        if self.quotes && rest.first() == Some(&b'"') {
            return Some(self.quoted(start));
        }
        let end = rest.iter().position(|&byte| byte == self.separator);
        self.next = end.map(|end| start + end + 1);
        Some(Ok((start, Cow::Borrowed(&rest[..end.unwrap_or(rest.len())]))))
    }
}

impl<'a> Fields<'a> {
    pub(super) fn new(line: &'a [u8], separator: u8, quotes: bool) -> Self {
        Fields { line, next: Some(0), separator, quotes }
    }

    #[cold]
    fn quoted(&mut self, start: usize) -> Result<(usize, Cow<'a, [u8]>), Fault> {
        let mut text = Vec::new();
        let mut at = start + 1;
        self.next = None;
        loop {
            let rest = &self.line[at..];
            let Some(end) = memchr::memchr(b'"', rest) else {
                return Err(Fault { offset: start, problem: Problem::Quote });
            };
            text.extend_from_slice(&rest[..end]);
            at += end + 1;
            match self.line.get(at) {
                Some(b'"') => {
                    text.push(b'"');
                    at += 1;
                }
                None => break,
                Some(&byte) if byte == self.separator => {
                    self.next = Some(at + 1);
                    break;
                }
                Some(_) => return Err(Fault { offset: at, problem: Problem::Quote }),
            }
        }
        Ok((start, Cow::Owned(text)))
    }
}
