//! Text of Vowpal Wabbit: `label importance 'tag |namespace feature:value …`, one sample a line.

mod parse;
#[cfg(test)]
mod tests;

use super::feature_names::{FeatureNames, each_line, shown};
use super::hashed_entries::MAX_FIELDS;
use super::text::{ColumnKind, ColumnLayout, RowFormat, sealed::Sealed, whole_format};
use super::weights::WEIGHT;
use super::{DataError, Hashing, ReadError};
use nnz_step::model::InputRole;
use parse::Parser;
use sparse_core::element::Float;
use std::collections::BTreeSet;
use std::path::Path;

/// The text of [Vowpal Wabbit](https://github.com/VowpalWabbit/vowpal_wabbit/wiki/Input-format): a
/// label, an importance (1 if absent) and a tag, then namespaces that begin with `|`, each with a
/// name, a factor for its values (1 if absent) and features with values (1 if absent).
///
/// ```text
/// 1 2.0 'first |user age:0.3 from_Rome |page:0.5 sport news
/// -1 |user age:0.7
/// ```
///
/// The data has the input `x`, `csr[n, 2^bits]`, and the labels `y`, the label, and `weight`, the
/// importance; both `dense[n]`. The column of a feature is that which [`Hashing::column`] gives for
/// the name of its namespace (empty for `| `) and its own; values of features that meet in a column
/// are added. The hash is not that of `vw`: the weights of its models are of no use here. Tags are
/// not read, and neither are labels of several classes or costs.
///
/// A [cross](Self::cross) of two namespaces adds a feature for each pair of their features.
///
/// ```
/// use nnz::data::{Hashing, TextReader, VowpalWabbit};
///
/// let format = VowpalWabbit::new(Hashing::new(18)?).cross("user", "page");
/// let text = b"1 2.0 'first |user age:0.3 from_Rome |page sport news\n-1 |user age:0.7\n";
/// let data = TextReader::new(format).read_bytes("inline", text)?;
/// let x = data.features().unwrap();
/// // Two features of a user, two of a page, and four pairs.
/// assert_eq!((data.n_rows(), x.iter_rows().next().unwrap().count()), (2, 8));
/// # Ok::<(), nnz::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VowpalWabbit {
    hashing: Hashing,
    crosses: Vec<(Namespaces, Namespaces)>,
    without_labels: bool,
    without_importance: bool,
    /// The names of the namespaces that are fields.
    fields: Option<Vec<String>>,
}

/// The namespaces on one side of a cross.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Namespaces {
    Named(Vec<u8>),
    /// Those whose name begins with a byte, a blank for the namespace without a name.
    BeginWith(u8),
}

impl Namespaces {
    pub(super) fn has(&self, name: &[u8]) -> bool {
        match self {
            Namespaces::Named(known) => known == name,
            Namespaces::BeginWith(b':') => true,
            Namespaces::BeginWith(first) => name.first().unwrap_or(&b' ') == first,
        }
    }
}

impl VowpalWabbit {
    /// Features are hashed into columns.
    pub fn new(hashing: Hashing) -> Self {
        VowpalWabbit {
            hashing,
            crosses: Vec::new(),
            without_labels: false,
            without_importance: false,
            fields: None,
        }
    }

    /// Adds a feature for each pair of a feature of one namespace and one of another, whose value
    /// is the product; its column is that of [`Hashing::cross_column`]. Of a namespace with itself
    /// each pair of two different features counts once.
    #[must_use]
    pub fn cross(mut self, first: &str, second: &str) -> Self {
        let named = |name: &str| Namespaces::Named(name.as_bytes().to_vec());
        self.crosses.push((named(first), named(second)));
        self
    }

    /// [`cross`](Self::cross) of all namespaces that begin with one byte with those that begin with
    /// another, as `-q ab` of `vw`; `:` is any namespace, a blank the one without a name.
    #[must_use]
    pub fn cross_initials(mut self, first: u8, second: u8) -> Self {
        self.crosses.push((Namespaces::BeginWith(first), Namespaces::BeginWith(second)));
        self
    }

    /// Adds the input `field`, a csr of the pattern of `x` with the number of the field of each
    /// entry, for field-aware models: these namespaces are the fields 0, 1, …, crosses are fields
    /// behind them, and a namespace without a number is an error. Features that meet in a column
    /// of `x` have the field of the first. [`namespaces`](Self::namespaces) finds those of files.
    ///
    /// # Errors
    ///
    /// [`DataError::Schema`] for more than 256 fields.
    pub fn fields<N: Into<String>>(
        mut self,
        namespaces: impl IntoIterator<Item = N>,
    ) -> Result<Self, DataError> {
        self.fields = Some(namespaces.into_iter().map(Into::into).collect());
        match self.n_fields() {
            n_fields if n_fields > MAX_FIELDS => Err(DataError::Schema {
                message: format!(
                    "the text has {n_fields} fields, its namespaces and crosses, but a field-aware model has at most {MAX_FIELDS}"
                ),
            }),
            _ => Ok(self),
        }
    }

    /// The number of [fields](Self::fields): of namespaces that are declared as such, and of
    /// crosses.
    pub fn n_fields(&self) -> usize {
        self.fields.as_ref().map_or(0, Vec::len) + self.crosses.len()
    }

    /// The names of the namespaces that occur in files, in byte order, by a pass over them; the
    /// empty one of `| ` too. Lines that cannot be read name nothing.
    ///
    /// ```
    /// use nnz::data::{Hashing, VowpalWabbit};
    ///
    /// let path = std::env::temp_dir().join("namespaces.vw");
    /// std::fs::write(&path, "1 |user anna |page news\n-1 |page sport\n")?;
    /// let format = VowpalWabbit::new(Hashing::new(18)?);
    /// let namespaces = format.namespaces([&path])?;
    /// assert_eq!(namespaces, ["page", "user"]);
    /// assert_eq!(format.fields(namespaces)?.n_fields(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ReadError::Io`], and those of compressed files.
    pub fn namespaces<P: AsRef<Path>>(
        &self,
        paths: impl IntoIterator<Item = P>,
    ) -> Result<Vec<String>, ReadError> {
        let mut found = BTreeSet::new();
        let mut parser = RowFormat::<f64>::parser(self, &[]);
        for path in paths {
            let take = |line: &[u8]| {
                for name in parser.names_of_namespaces(line) {
                    if !found.contains(name) {
                        found.insert(name.to_vec());
                    }
                }
                true
            };
            each_line(path.as_ref(), None, |_| Ok(0), take)?;
        }
        Ok(found.iter().map(|name| shown(name)).collect())
    }

    /// Refuses samples whose importance is not 1, for models that weigh all alike; there is no
    /// column `weight` then.
    #[must_use]
    pub fn without_importance(self) -> Self {
        VowpalWabbit { without_importance: true, ..self }
    }

    /// What stands before the first `|` is not looked at: enough to predict.
    #[must_use]
    pub fn without_labels(self) -> Self {
        VowpalWabbit { without_labels: true, ..self }
    }
}

impl VowpalWabbit {
    /// The names of the features that fill some columns of `x`, by a pass over a file:
    /// `namespace^feature`, of a cross two of them with `*` between them. Lines that cannot be read
    /// name nothing.
    ///
    /// # Errors
    ///
    /// [`ReadError::Io`], and those of compressed files.
    pub fn feature_names(
        &self,
        path: impl AsRef<Path>,
        columns: impl IntoIterator<Item = u64>,
    ) -> Result<FeatureNames, ReadError> {
        let mut names = FeatureNames::of(columns);
        let mut parser = RowFormat::<f64>::parser(self, &[]);
        each_line(
            path.as_ref(),
            None,
            |_| Ok(0),
            |line| {
                parser.name_features(line, &mut names);
                true
            },
        )?;
        Ok(names)
    }
}

impl Sealed for VowpalWabbit {}

whole_format!(VowpalWabbit);

impl<T: Float> RowFormat<T> for VowpalWabbit {
    type Parser = Parser;

    fn columns(&self) -> Vec<ColumnLayout> {
        let column = |name: &str, role, kind| ColumnLayout { name: Some(name.into()), role, kind };
        let x = ColumnKind::Csr(Some(self.hashing.n_columns()));
        let mut columns = vec![column("x", InputRole::Input, x)];
        if !self.without_labels {
            columns.push(column("y", InputRole::Label, ColumnKind::Dense(1)));
            if !self.without_importance {
                columns.push(column(WEIGHT, InputRole::Label, ColumnKind::Dense(1)));
            }
        }
        if self.fields.is_some() {
            columns.push(column("field", InputRole::Input, x));
        }
        columns
    }

    fn parser(&self, _: &[u8]) -> Parser {
        Parser::new(self, RowFormat::<T>::columns(self).len() - usize::from(self.fields.is_some()))
    }
}
