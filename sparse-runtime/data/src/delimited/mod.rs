//! Tables as text, comma or tab separated, with categorical columns hashed.

pub(crate) mod cells;
#[cfg(feature = "parquet")]
mod columnar;
mod infer;
mod joined_lines;
mod parse;
mod scale;
#[cfg(test)]
mod tests;
mod texts;

use super::hashed_entries::MAX_FIELDS;
use super::text::{ColumnKind, ColumnLayout, RowFormat, sealed::Sealed, whole_format};
use super::{DataError, Hashing, WEIGHT};
#[cfg(feature = "parquet")]
use crate::columnar::BatchParser;
#[cfg(feature = "parquet")]
use arrow_schema::Schema;
pub use joined_lines::OpenQuotes;
pub(crate) use joined_lines::{JoinedLines, LINE_END};
use nnz_step::model::InputRole;
pub(crate) use parse::Parser;
pub use scale::NumberScale;
use sparse_core::element::Float;

/// Delimited text, a sample a line, with a schema: the kind of each column, in the order of the
/// file.
///
/// The data has the inputs and labels
///
/// | name | content | type |
/// |---|---|---|
/// | `x` | all categorical and numeric columns, side by side in one hashed space | `csr[n, 2^bits]` |
/// | `numbers` | with [`numbers_apart`](Delimited::numbers_apart): the numeric columns, which are then not in `x` | `dense[n, k]` |
/// | `ids` | with [`ids`](Delimited::ids): the hashed ids of the categorical columns, for embeddings | `dense<u32>[n, k]` |
/// | `field` | with [`fields`](Delimited::fields): the number of the field of each entry of `x` | `csr[n, 2^bits]` |
/// | the column's own | each column declared [`label`](Delimited::label) or [`weight`](Delimited::weight) | `dense[n]` |
///
/// A categorical value is 1 at the column of `x` that [`Hashing::column`] gives for its text; the
/// empty text is a value. A number is stored at the column that the empty text of its column would
/// have. An empty numeric field has no entry, and a 0 among `numbers`. Values that collide in a
/// column of `x` are added.
///
/// ```
/// use nnz::data::{Delimited, Hashing, TextReader};
///
/// let format = Delimited::csv(Hashing::new(16)?)
///     .header(true)
///     .label("sold")
///     .categorical("colour")
///     .count("views")
///     .ignore("remark");
/// let text = b"sold,colour,views,remark\n1,red,120,\"in Paris, 2019\"\n0,,3,\n";
/// let data = TextReader::new(format).read_bytes("inline", text)?;
/// let x = data.features().unwrap();
/// assert_eq!((x.n_rows(), x.n_cols(), x.nnz()), (2, 1 << 16, 4));
/// # Ok::<(), nnz::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Delimited {
    separator: u8,
    quotes: bool,
    header: bool,
    hashing: Hashing,
    columns: Vec<(String, Kind)>,
    numbers_apart: bool,
    ids: bool,
    weighs_samples: bool,
    has_fields: bool,
    scales: Vec<NumberScale>,
    /// The names of the columns of each cross.
    crosses: Vec<Vec<String>>,
    /// The words that stand for missing numbers.
    missing: Vec<String>,
    /// The words that are labels; none where labels are numbers.
    label_names: Vec<String>,
}

/// The encoding of a numeric column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Numbers {
    /// The number itself.
    #[default]
    Value,
    /// `sign(v) · ln(1 + |v|)`: for counts that spread over orders of magnitude.
    Log,
    /// As a category: `NA` for an empty field, the number itself up to 2, in its shortest spelling
    /// (`2` for `2.0` and `+02`), above that `b` and `⌊ln(v)²⌋`. libFFM's Criteo scripts encode
    /// counts so.
    Buckets,
}

/// The kind of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Label,
    Weight,
    Numeric(Numbers),
    Categorical,
    List,
    Ignore,
}

/// The kinds by their names in a schema.
const KINDS: [(&str, Kind); 8] = [
    ("label", Kind::Label),
    ("weight", Kind::Weight),
    ("numeric", Kind::Numeric(Numbers::Value)),
    ("count", Kind::Numeric(Numbers::Log)),
    ("buckets", Kind::Numeric(Numbers::Buckets)),
    ("categorical", Kind::Categorical),
    ("list", Kind::List),
    ("ignore", Kind::Ignore),
];

impl Kind {
    /// Its name in a schema.
    fn name(self) -> &'static str {
        let (name, _) = KINDS.iter().find(|(_, kind)| *kind == self).unwrap_or(&KINDS[0]);
        name
    }

    /// Whether it is hashed by the text of a sample.
    fn is_category(self) -> bool {
        matches!(self, Kind::Categorical | Kind::Numeric(Numbers::Buckets))
    }

    /// Whether it is a number in a sample.
    fn is_number(self) -> bool {
        matches!(self, Kind::Numeric(Numbers::Value | Numbers::Log))
    }
}

impl Delimited {
    /// Comma-separated text with fields in `"` where needed. Declare columns in the order of the
    /// file.
    pub fn csv(hashing: Hashing) -> Self {
        Delimited {
            separator: b',',
            quotes: true,
            header: false,
            hashing,
            columns: Vec::new(),
            numbers_apart: false,
            ids: false,
            weighs_samples: false,
            has_fields: false,
            scales: Vec::new(),
            crosses: Vec::new(),
            missing: Vec::new(),
            label_names: Vec::new(),
        }
    }

    /// Tab-separated text, without quotes.
    pub fn tsv(hashing: Hashing) -> Self {
        Delimited { separator: b'\t', quotes: false, ..Delimited::csv(hashing) }
    }

    /// The log of Criteo's display advertising challenge: the label `click`, the counts `I1` to
    /// `I13` in [buckets](Numbers::Buckets), and the categories `C1` to `C26`; tab separated,
    /// without header.
    pub fn criteo(hashing: Hashing) -> Self {
        Delimited::criteo_with(hashing, Numbers::Buckets)
    }

    /// Like [`criteo`](Delimited::criteo), with another encoding of the counts.
    pub fn criteo_with(hashing: Hashing, counts: Numbers) -> Self {
        let mut format = Delimited::tsv(hashing).label("click");
        for i in 1..=13 {
            format = format.number(&format!("I{i}"), counts);
        }
        for i in 1..=26 {
            format = format.categorical(&format!("C{i}"));
        }
        format
    }

    /// Sets the separator: one byte, no line end.
    #[must_use]
    pub fn separator(self, separator: u8) -> Self {
        Delimited { separator, ..self }
    }

    /// Whether fields may be quoted by `"`, a quote inside doubled. A quoted field may have line
    /// ends in it, but not in a [stream](super::stream::Stream).
    #[must_use]
    pub fn quotes(self, quotes: bool) -> Self {
        Delimited { quotes, ..self }
    }

    /// Whether the first line of each file has the names of the columns, which must equal those of
    /// the schema.
    #[must_use]
    pub fn header(self, header: bool) -> Self {
        Delimited { header, ..self }
    }

    /// The next column is a label, a finite number.
    #[must_use]
    pub fn label(self, name: &str) -> Self {
        self.column(name, Kind::Label)
    }

    /// The next column is the weight of the sample, a finite number of at least 0; it is an input
    /// with the column's name.
    #[must_use]
    pub fn weight(self, name: &str) -> Self {
        self.column(name, Kind::Weight)
    }

    /// The column that is a [`weight`](Self::weight) becomes the label [`WEIGHT`](super::WEIGHT),
    /// whatever its name: losses and metrics of models with a `label weight` weigh samples by it.
    #[must_use]
    pub fn weighs_samples(self) -> Self {
        Delimited { weighs_samples: true, ..self }
    }

    /// The next column is a number, used as it is.
    #[must_use]
    pub fn numeric(self, name: &str) -> Self {
        self.number(name, Numbers::Value)
    }

    /// The next column is a count, encoded by its logarithm ([`Numbers::Log`]).
    #[must_use]
    pub fn count(self, name: &str) -> Self {
        self.number(name, Numbers::Log)
    }

    /// The next column is a number with this encoding.
    #[must_use]
    pub fn number(self, name: &str, numbers: Numbers) -> Self {
        self.column(name, Kind::Numeric(numbers))
    }

    /// The next column is text, which is hashed.
    #[must_use]
    pub fn categorical(self, name: &str) -> Self {
        self.column(name, Kind::Categorical)
    }

    /// The next column holds any number of categories with `|` between them, `red|green`: an entry
    /// for each, none for an empty field. A category that repeats counts so often.
    #[must_use]
    pub fn list(self, name: &str) -> Self {
        self.column(name, Kind::List)
    }

    /// Numeric fields that are one of these words are missing, as empty fields are: `NA`, `nan`.
    #[must_use]
    pub fn missing<W: Into<String>>(mut self, words: impl IntoIterator<Item = W>) -> Self {
        self.missing.extend(words.into_iter().map(Into::into));
        self
    }

    /// The next column is skipped.
    #[must_use]
    pub fn ignore(self, name: &str) -> Self {
        self.column(name, Kind::Ignore)
    }

    /// Numeric columns become the dense input `numbers`, and are not in `x`.
    #[must_use]
    pub fn numbers_apart(self) -> Self {
        Delimited { numbers_apart: true, ..self }
    }

    /// Categorical columns, in order, become the input `ids` as well.
    #[must_use]
    pub fn ids(self) -> Self {
        Delimited { ids: true, ..self }
    }

    /// Declares columns by a schema: their kinds in order, separated by commas, each with an
    /// optional name in front: `click:label, price:count, shop:categorical, ignore`. The kinds are
    /// `label`, `weight`, `numeric`, `count`, `buckets`, `categorical`, `list` and `ignore`. A
    /// column without a name is called by its position, `3`.
    ///
    /// # Errors
    ///
    /// [`DataError::Schema`] for an unknown kind.
    pub fn with_schema(mut self, schema: &str) -> Result<Self, DataError> {
        for column in schema.split(',') {
            let (name, kind) = match column.trim().split_once(':') {
                Some((name, kind)) => (name.trim().to_owned(), kind.trim()),
                None => ((self.columns.len() + 1).to_string(), column.trim()),
            };
            let Some((_, kind)) = KINDS.iter().find(|(known, _)| *known == kind) else {
                return Err(DataError::Schema {
                    message: format!(
                        "`{kind}` is no kind of column: label, weight, numeric, count, buckets, categorical, list or ignore"
                    ),
                });
            };
            self = self.column(&name, *kind);
        }
        Ok(self)
    }

    /// Adds an entry to `x` for the fields of several columns together, of a pair `site × device`
    /// for example: its column is that of [`Hashing::cross_column`], its value the product of
    /// their values, 1 for categories. A number stands there with the empty text, as it does by
    /// itself; where one is missing the cross has no entry.
    ///
    /// ```
    /// use nnz::data::{Delimited, Hashing, TextReader};
    ///
    /// let hashing = Hashing::new(16)?;
    /// let format = Delimited::csv(hashing).with_schema("y:label,site:categorical,age:numeric")?;
    /// let format = format.cross(&["site", "age"])?;
    /// let data = TextReader::new(format).read_bytes("inline", b"1,shop,30\n")?;
    /// let column = hashing.cross_column(&[("site", b"shop"), ("age", b"")]) as usize;
    /// let mut row = data.features().unwrap().iter_rows().next().unwrap();
    /// assert!(row.any(|entry| entry == (column, 30.0)));
    /// # Ok::<(), nnz::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`DataError::Schema`] for less than two columns, and for one that is not declared or that
    /// is not in `x`.
    pub fn cross(mut self, columns: &[&str]) -> Result<Self, DataError> {
        let refuse = |message| Err(DataError::Schema { message });
        if columns.len() < 2 {
            let all = columns.join(",");
            return refuse(format!("a cross of `{all}`: it is of two columns or more"));
        }
        for column in columns {
            let found = self.columns.iter().find(|(name, _)| name == column);
            match found {
                Some((_, kind)) if kind.is_category() || kind.is_number() => {}
                Some((_, kind)) => {
                    let kind = kind.name();
                    return refuse(format!(
                        "`{column}` is crossed, but it is `{kind}`: declare it `categorical`"
                    ));
                }
                None => {
                    let known: Vec<&str> = self.columns.iter().map(|(name, _)| &name[..]).collect();
                    let known = known.join(", ");
                    return refuse(format!(
                        "`{column}` is crossed, but there is no such column: there are {known}"
                    ));
                }
            }
        }
        self.crosses.push(columns.iter().map(|name| (*name).to_owned()).collect());
        Ok(self)
    }

    /// Adds the input `field`, a csr of the pattern of `x` with the number of the field of each
    /// entry, for field-aware models. The columns that are in `x` are the fields 0, 1, … in the
    /// order of the schema, and crosses are fields behind them; entries that meet in a column of
    /// `x` have the field of the first. Call it on the complete schema.
    ///
    /// ```
    /// use nnz::data::{Delimited, Hashing, TextReader};
    ///
    /// let schema = "y:label,site:categorical,age:numeric,tags:list";
    /// let format = Delimited::csv(Hashing::new(16)?).with_schema(schema)?.fields()?;
    /// assert_eq!(format.n_fields(), 3);
    /// let data = TextReader::new(format).read_bytes("inline", b"1,shop,30,a|b\n")?;
    /// let Some(nnz::data::ColumnValues::Csr(field)) = data.column("field").map(|c| c.values())
    /// else {
    ///     panic!("no fields");
    /// };
    /// let mut fields = field.values().to_vec();
    /// fields.sort_by(f32::total_cmp);
    /// assert_eq!(fields, [0.0, 1.0, 2.0, 2.0]);
    /// # Ok::<(), nnz::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`DataError::Schema`] for more than 256 fields.
    pub fn fields(self) -> Result<Self, DataError> {
        match self.n_fields() {
            n_fields if n_fields > MAX_FIELDS => Err(DataError::Schema {
                message: format!(
                    "the schema has {n_fields} fields, but a field-aware model has at most {MAX_FIELDS}: declare some columns `ignore`"
                ),
            }),
            _ => Ok(Delimited { has_fields: true, ..self }),
        }
    }

    /// The number of fields that the entries of `x` have: of columns that are in `x`, and of
    /// crosses.
    pub fn n_fields(&self) -> usize {
        self.count_of(|kind| self.is_in_x(kind)) + self.crosses.len()
    }

    /// Whether the fields of a column become entries of `x`.
    fn is_in_x(&self, kind: Kind) -> bool {
        kind.is_category() || kind == Kind::List || (kind.is_number() && !self.numbers_apart)
    }

    /// The file lacks the columns that are labels: enough to predict. Call it on the complete
    /// schema.
    #[must_use]
    pub fn without_labels(mut self) -> Self {
        self.columns.retain(|(_, kind)| !matches!(kind, Kind::Label));
        self
    }

    fn column(mut self, name: &str, kind: Kind) -> Self {
        self.columns.push((name.to_owned(), kind));
        self
    }

    /// What follows the quotes of lines as they come through a pipe, to know which lines belong to
    /// one sample.
    ///
    /// ```
    /// use nnz::data::{Delimited, Hashing};
    ///
    /// let mut quotes = Delimited::csv(Hashing::new(10)?).open_quotes();
    /// assert!(quotes.follow(b"1,\"red\n"));
    /// assert!(!quotes.follow(b"wine\"\n"));
    /// # Ok::<(), nnz::Error>(())
    /// ```
    pub fn open_quotes(&self) -> OpenQuotes {
        OpenQuotes::new(self.quoted_separator())
    }

    /// Text whose quoted fields are on one line.
    fn joined<R>(&self, reader: R) -> JoinedLines<R> {
        JoinedLines::new(reader, self.quoted_separator())
    }

    /// What separates fields that may be quoted.
    fn quoted_separator(&self) -> Option<u8> {
        self.quotes.then_some(self.separator)
    }

    /// The number of columns of a kind.
    fn count_of(&self, is: impl Fn(Kind) -> bool) -> usize {
        self.columns.iter().filter(|(_, kind)| is(*kind)).count()
    }
}

impl Sealed for Delimited {}

whole_format!(Delimited);

impl<T: Float> RowFormat<T> for Delimited {
    type Parser = Parser;

    fn columns(&self) -> Vec<ColumnLayout> {
        let layout = |name: &str, role, kind| ColumnLayout { name: Some(name.into()), role, kind };
        let x = ColumnKind::Csr(Some(self.hashing.n_columns()));
        let mut columns = vec![layout("x", InputRole::Input, x)];
        if self.numbers_apart {
            let kind = ColumnKind::Dense(self.count_of(Kind::is_number));
            columns.push(layout("numbers", InputRole::Input, kind));
        }
        if self.ids {
            let kind = ColumnKind::Ids(self.count_of(Kind::is_category));
            columns.push(layout("ids", InputRole::Input, kind));
        }
        for (name, kind) in &self.columns {
            match kind {
                Kind::Weight if self.weighs_samples => {
                    columns.push(layout(WEIGHT, InputRole::Label, ColumnKind::Dense(1)));
                }
                Kind::Weight => columns.push(layout(name, InputRole::Input, ColumnKind::Dense(1))),
                Kind::Label => columns.push(layout(name, InputRole::Label, ColumnKind::Dense(1))),
                Kind::Numeric(_) | Kind::Categorical | Kind::List | Kind::Ignore => {}
            }
        }
        if self.has_fields {
            columns.push(layout("field", InputRole::Input, x));
        }
        columns
    }

    fn parser(&self, _: &[u8]) -> Parser {
        Parser::new(self)
    }

    fn quoted_separator(&self) -> Option<u8> {
        Delimited::quoted_separator(self)
    }

    #[cfg(feature = "parquet")]
    fn columnar(&self, schema: &Schema) -> Option<Result<Box<dyn BatchParser<T>>, String>> {
        let parser = self.table_parser(schema);
        Some(parser.map(|parser| Box::new(parser) as Box<dyn BatchParser<T>>))
    }
}
