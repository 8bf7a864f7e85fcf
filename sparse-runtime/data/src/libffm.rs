//! LibFFM text: `label field:index:value …`, one sample a line.

use super::hashed_entries::MAX_FIELDS;
use super::number::{MAX_DIGITS, NotANumber, digits, number};
use super::read_error::Fault;
use super::text::{
    Chunk, ColumnKind, ColumnLayout, Lines, RowFormat, RowParser, Survey, check_text, ends_here,
    sealed::Sealed, skip_blanks, whole_format,
};
use super::{Excerpt, Hashing, Problem};
use nnz_step::model::InputRole;
use sparse_core::element::Float;

/// The text of libFFM, for field-aware models: `label field:index:value …`, fields and indices
/// counted from zero, entries in any order.
///
/// The data has the inputs `x`, `csr[n, d]`, and `field`, a csr of the same pattern with the number
/// of the field of each value of `x`; and the label `y`, `dense[n]`. The number of features is the
/// largest index plus one, unless it is [declared](LibFfm::n_features).
///
/// ```
/// use nnz::data::{LibFfm, TextReader};
///
/// let data = TextReader::new(LibFfm::new()).read_bytes("inline", b"1 0:3:0.5 2:7:1\n0 1:4:1\n")?;
/// assert_eq!((data.n_rows(), data.n_features(), data.columns().len()), (2, 8, 3));
/// # Ok::<(), nnz::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LibFfm {
    n_features: Option<usize>,
    hashing: Option<Hashing>,
    ignore_unknown: bool,
    add_repeated: bool,
    without_labels: bool,
}

const MAX_FIELD: u64 = MAX_FIELDS as u64 - 1;

impl LibFfm {
    /// The number of features is found. Values of an index that occurs twice in a field of a sample
    /// are added; an index in two fields of a sample is an error.
    pub fn new() -> Self {
        LibFfm::default()
    }

    /// Declares the number of features: an index beyond it is an error.
    #[must_use]
    pub fn n_features(self, n_features: impl Into<Option<usize>>) -> Self {
        LibFfm { n_features: n_features.into(), ..self }
    }

    /// Leaves out entries whose index is beyond the [declared](Self::n_features) number of
    /// features, as those that a model has not seen.
    #[must_use]
    pub fn ignore_unknown(self) -> Self {
        LibFfm { ignore_unknown: true, ..self }
    }

    /// Folds indices into the columns of a hash, for indices of up to 19 digits that are hashes
    /// themselves. Values that meet in a column are added.
    #[must_use]
    pub fn hashed(self, hashing: Hashing) -> Self {
        let n_features = Some(hashing.n_columns());
        LibFfm { hashing: Some(hashing), add_repeated: true, n_features, ..self }
    }

    /// Adds the values of an index in several fields of a sample, for models that do not read
    /// fields; the field is that of the first.
    #[must_use]
    pub fn add_repeated(self) -> Self {
        LibFfm { add_repeated: true, ..self }
    }

    /// Samples are entries alone: enough to predict. A line that begins with a label is an error
    /// then.
    #[must_use]
    pub fn without_labels(self) -> Self {
        LibFfm { without_labels: true, ..self }
    }
}

impl Sealed for LibFfm {}

whole_format!(LibFfm);

/// The positions of the columns.
const X: usize = 0;
const FIELD: usize = 1;
const LABEL: usize = 2;

impl<T: Float> RowFormat<T> for LibFfm {
    type Parser = Parser;

    fn columns(&self) -> Vec<ColumnLayout> {
        let column = |name: &str, role, kind| ColumnLayout { name: Some(name.into()), role, kind };
        let csr = ColumnKind::Csr(self.n_features);
        let mut columns =
            vec![column("x", InputRole::Input, csr), column("field", InputRole::Input, csr)];
        if !self.without_labels {
            columns.push(column("y", InputRole::Label, ColumnKind::Dense(1)));
        }
        columns
    }

    fn parser(&self, _: &[u8]) -> Parser {
        Parser { format: *self, entries: Vec::new() }
    }

    fn survey_format(&self) -> Option<Self> {
        self.n_features.is_none().then_some(*self)
    }

    fn settle(self, survey: &Survey) -> Self {
        let found = survey.largest.map_or(0, |largest| largest as usize + 1);
        LibFfm { n_features: self.n_features.or(Some(found)), ..self }
    }
}

/// Lines into columns.
#[derive(Debug)]
pub struct Parser {
    format: LibFfm,
    entries: Vec<Entry>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    index: u64,
    field: u64,
    value: f64,
    /// Its position in the line.
    offset: usize,
}

impl Parser {
    fn row<T: Float>(&mut self, line: &[u8], rows: &mut Chunk<T>) -> Result<(), Fault> {
        let at = |rest: &[u8]| line.len() - rest.len();
        let start = skip_blanks(line);
        let (label, mut rest) = match number::<T>(start) {
            _ if self.format.without_labels => (None, start),
            Ok((label, rest)) if ends_here(rest) => (Some(label), rest),
            other => {
                let found = Excerpt::word(start);
                let problem = match other {
                    Err(NotANumber::NotFinite) => Problem::LabelNotFinite { found },
                    Err(NotANumber::BeyondRange) => {
                        Problem::LabelBeyondRange { found, element: T::TYPE }
                    }
                    _ => Problem::ExpectedLabel { found },
                };
                return Err(Fault { offset: at(start), problem });
            }
        };
        self.entries.clear();
        loop {
            rest = skip_blanks(rest);
            if rest.is_empty() || rest[0] == b'#' {
                break;
            }
            let offset = at(rest);
            let fault = |problem| Fault { offset, problem };
            let expected = || {
                fault(Problem::Expected {
                    expected: "`field:index:value`",
                    found: Excerpt::word(rest),
                })
            };
            let (field, n_digits, after) = digits(rest);
            let ([b':', after @ ..], 1..) = (after, n_digits) else { return Err(expected()) };
            if field > MAX_FIELD || n_digits > MAX_DIGITS {
                return Err(fault(Problem::Expected {
                    expected: "a field from 0 to 255",
                    found: Excerpt::word(rest),
                }));
            }
            let (index, n_digits, value) = digits(after);
            let ([b':', value @ ..], 1..) = (value, n_digits) else { return Err(expected()) };
            if n_digits > MAX_DIGITS || index >= 1 << 63 {
                return Err(fault(Problem::IndexTooLarge { found: Excerpt::word(after) }));
            }
            let index = match self.format.hashing {
                Some(hashing) => hashing.column("", &index.to_le_bytes()),
                None => index,
            };
            let is_unknown = |n_features| index >= n_features as u64;
            let is_left_out =
                self.format.ignore_unknown && self.format.n_features.is_some_and(is_unknown);
            if let Some(n_features) = self.format.n_features
                && is_unknown(n_features)
                && !is_left_out
            {
                let n_features = n_features as u64;
                return Err(fault(Problem::BeyondDeclared { index, n_features, base: 0 }));
            }
            match number::<T>(value) {
                Ok((number, next)) if ends_here(next) => {
                    if !is_left_out {
                        self.entries.push(Entry { index, field, value: number.as_f64(), offset });
                    }
                    rest = next;
                }
                other => {
                    let found = Excerpt::word(value);
                    let problem = match other {
                        _ if ends_here(value) => Problem::MissingValue { index },
                        Err(NotANumber::NotFinite) => Problem::ValueNotFinite { index, found },
                        Err(NotANumber::BeyondRange) => {
                            Problem::ValueBeyondRange { index, found, element: T::TYPE }
                        }
                        _ => Problem::ExpectedValue { index, found },
                    };
                    return Err(Fault { offset: at(value), problem });
                }
            }
        }
        // Stable: repeated indices are added in the order of the line.
        self.entries.sort_by_key(|entry| entry.index);
        let is_in_two =
            |pair: &&[Entry]| pair[0].index == pair[1].index && pair[0].field != pair[1].field;
        let in_two = self.entries.windows(2).find(is_in_two);
        if let (Some([first, second]), false) = (in_two, self.format.add_repeated) {
            let Entry { index, field, offset, .. } = *second;
            let problem = Problem::IndexInTwoFields { index, first: first.field, second: field };
            return Err(Fault { offset, problem });
        }
        let mut entries = self.entries.iter().peekable();
        while let Some(first) = entries.next() {
            let mut value = first.value;
            let mut last = first;
            while let Some(more) = entries.next_if(|next| next.index == first.index) {
                value += more.value;
                last = more;
            }
            let sum = T::of(value);
            if !sum.is_finite() {
                let problem = Problem::SumNotFinite { index: first.index };
                return Err(Fault { offset: last.offset, problem });
            }
            rows.csr(X).push(first.index, sum);
            rows.csr(FIELD).push(first.index, T::of(first.field as f64));
        }
        if let Some(label) = label {
            rows.dense(LABEL).push(label);
        }
        rows.finish_row();
        Ok(())
    }
}

impl<T: Float> RowParser<T> for Parser {
    fn parse(&mut self, text: &[u8], rows: &mut Chunk<T>) -> Result<(), Fault> {
        for (start, line) in Lines::new(text) {
            if skip_blanks(line).first().is_none_or(|&byte| byte == b'#') {
                continue;
            }
            check_text(line, start)?;
            self.row(line, rows)
                .map_err(|fault| Fault { offset: start + fault.offset, ..fault })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ColumnValues, Dataset, ReadError, TextReader};

    #[test]
    fn rows_without_labels_are_entries_alone() {
        let data = read(LibFfm::new().without_labels(), "0:3:0.5 2:7:1\n 1:4:1\n").unwrap();
        let labelled = read(LibFfm::new(), "1 0:3:0.5 2:7:1\n0 1:4:1\n").unwrap();
        assert_eq!((data.n_rows(), data.columns().len()), (2, 2));
        assert_eq!(data.features(), labelled.features());
        let error = read(LibFfm::new().without_labels(), "1 0:3:0.5\n").unwrap_err();
        assert!(error.to_string().contains("`field:index:value`"), "{error}");
    }

    fn read(format: LibFfm, text: &str) -> Result<Dataset, ReadError> {
        TextReader::new(format).read_bytes("file", text.as_bytes())
    }

    /// The entries of a csr column.
    fn rows(data: &Dataset, name: &str) -> Vec<Vec<(usize, f32)>> {
        match data.column(name).unwrap().values() {
            ColumnValues::Csr(csr) => csr.iter_rows().map(Iterator::collect).collect(),
            _ => panic!("`{name}` is csr"),
        }
    }

    #[test]
    fn a_sum_beyond_the_element_type_is_refused() {
        let error = read(LibFfm::new().add_repeated(), "1 0:1:3e38 0:1:3e38").unwrap_err();
        let message = "file:1:12: the values of index 1 add up to no finite number";
        assert_eq!(error.to_string(), message);
    }

    #[test]
    fn entries_are_sorted_and_fields_kept() {
        let data =
            read(LibFfm::new(), "1 2:7:1.5 0:3:-1 \r\n\n# nothing\n0\n0 1:4:2 # x\n").unwrap();
        assert_eq!(rows(&data, "x"), [vec![(3, -1.0), (7, 1.5)], vec![], vec![(4, 2.0)]]);
        assert_eq!(rows(&data, "field"), [vec![(3, 0.0), (7, 2.0)], vec![], vec![(4, 1.0)]]);
        assert_eq!(data.n_features(), 8);
        assert_eq!(read(LibFfm::new().n_features(20), "1 2:7:1\n").unwrap().n_features(), 20);
    }

    #[test]
    fn repeated_indices_are_refused_or_added() {
        let text = "1 0:5:1 1:5:0.5 2:6:1\n";
        let error = read(LibFfm::new(), text).unwrap_err();
        let message = "file:1:9: index 5 is in the fields 0 and 1 of the row: fields have indices of their own, unless values are added (`LibFfm::add_repeated`)";
        assert_eq!(error.to_string(), message);
        let data = read(LibFfm::new().add_repeated(), text).unwrap();
        assert_eq!(rows(&data, "x"), [[(5, 1.5), (6, 1.0)]]);
        assert_eq!(rows(&data, "field"), [[(5, 0.0), (6, 2.0)]]);
    }

    #[test]
    fn d2_values_of_an_index_that_occurs_twice_in_a_field_are_added() {
        let text = "1 0:0:1 5:2738:0.5 5:2738:0.25\n";
        assert_eq!(rows(&read(LibFfm::new(), text).unwrap(), "x"), [[(0, 1.0), (2738, 0.75)]]);
        let error = read(LibFfm::new(), "1 0:0:1 5:2738:0.3651 13:2738:0.3651\n").unwrap_err();
        let message = "file:1:23: index 2738 is in the fields 5 and 13 of the row";
        assert!(error.to_string().starts_with(message), "{error}");
    }

    #[test]
    fn d10_unknown_features_are_left_out_on_request() {
        let text = "1 0:1:0.5 1:8:1\n0 1:9:1\n";
        let format = LibFfm::new().n_features(8);
        let error = read(format, text).unwrap_err().to_string();
        assert!(error.contains("index 8 is beyond the 8 features"), "{error}");
        let data = read(format.ignore_unknown(), text).unwrap();
        assert_eq!((rows(&data, "x"), data.n_features()), (vec![vec![(1, 0.5)], vec![]], 8));
    }

    #[test]
    fn d14_indices_of_64_bits_are_folded_by_a_hash() {
        let hashing = Hashing::new(10).unwrap();
        let text = "1 0:72048431380967004:1 1:9223372036854775806:2\n";
        let data = read(LibFfm::new().hashed(hashing), text).unwrap();
        let mut expected = [(72048431380967004u64, 1.0f32), (9223372036854775806, 2.0)]
            .map(|(index, value)| (hashing.column("", &index.to_le_bytes()) as usize, value));
        expected.sort_by_key(|(column, _)| *column);
        assert_eq!((rows(&data, "x"), data.n_features()), (vec![expected.to_vec()], 1024));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, message) in [
            ("x 0:1:1\n", "file:1:1: expected a label, found `x`"),
            ("nan 0:1:1\n", "file:1:1: label `nan` is not a finite number"),
            ("1 0:1:1\n0 1:1\n", "file:2:3: expected `field:index:value`, found `1:1`"),
            ("1 a:1:1\n", "file:1:3: expected `field:index:value`, found `a:1:1`"),
            ("1 256:1:1\n", "file:1:3: expected a field from 0 to 255, found `256:1:1`"),
            ("1 0:9223372036854775808:1\n", "file:1:3: index `9223372036854775808:1` is too large"),
            ("1 0:1:\n", "file:1:7: the entry of index 1 has no value"),
            ("1 0:1:z\n", "file:1:7: expected a number as the value of index 1, found `z`"),
            ("1 0:1:1e39\n", "file:1:7: the value `1e39` of index 1 is beyond the range of f32"),
            ("1e39 0:1:1\n", "file:1:1: label `1e39` is beyond the range of f32"),
            ("1 0:1:inf\n", "file:1:7: the value `inf` of index 1 is not a finite number"),
            ("1 0:1:1\0\n", "file:1:8: a NUL byte"),
            ("", "`file` has no rows"),
        ] {
            let error = read(LibFfm::new(), text).unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
        let error = read(LibFfm::new().n_features(3), "1 0:3:1\n").unwrap_err().to_string();
        assert!(
            error.starts_with("file:1:3: index 3 is beyond the 3 features declared"),
            "{error}"
        );
    }
}
