//! Ratings text: `user item value` a line.

use super::number::number;
use super::read_error::Fault;
use super::text::{
    Chunk, ColumnKind, ColumnLayout, IdMap, Lines, RowFormat, RowParser, check_text,
    sealed::Sealed, whole_format,
};
use super::{Excerpt, Problem, WEIGHT};
use nnz_step::model::InputRole;
use sparse_core::element::Float;

/// Ratings as text: a user, an item and a value a line. Further fields are ignored (usually a
/// time).
///
/// The data has the inputs `user` and `item`, ids of `dense<u32>[n]`, and the label `rating`,
/// `dense[n]`. Ids are any text. They are numbered densely in the order of their first occurrence,
/// and [`Dataset::id_map`](super::Dataset::id_map) keeps the id of each number. Read test data with
/// the maps of the training data.
///
/// ```
/// use nnz::data::{Ratings, TextReader};
///
/// let text = b"196::242::3.5\n186::302::3\n";
/// let train = TextReader::new(Ratings::new()).read_bytes("train", text)?;
/// let (users, items) = (train.id_map("user").unwrap(), train.id_map("item").unwrap());
/// let known = Ratings::new().users(users.clone()).items(items.clone());
/// let test = TextReader::new(known).read_bytes("test", b"186::242::5\n")?;
/// assert_eq!(test.n_rows(), 1);
/// # Ok::<(), nnz::Error>(())
/// ```
///
/// The first line is a header if its third field is a word, in quotes or not, as in
/// `userId,movieId,rating,timestamp`. A word for a missing number or one that is not finite, such
/// as `nan` or `N/A`, is none: that line is a rating without its value, and refused.
#[derive(Clone, Debug, Default)]
pub struct Ratings {
    separator: Separator,
    users: Option<IdMap>,
    items: Option<IdMap>,
    numbers_unknown: bool,
    without_labels: bool,
    weight: Option<usize>,
}

/// The separator of the fields of a rating.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Separator {
    /// The first of these that occurs in the first line of the file: `::`, tab, comma, blanks.
    #[default]
    Detect,
    /// `,`.
    Comma,
    /// A tab.
    Tab,
    /// One or more blanks.
    Blanks,
    /// `::`.
    Colons,
}

impl Ratings {
    /// Ratings whose ids are not known yet.
    pub fn new() -> Self {
        Ratings::default()
    }

    /// Sets the separator of the fields.
    #[must_use]
    pub fn separator(self, separator: Separator) -> Self {
        Ratings { separator, ..self }
    }

    /// The known users: any other is an error that names the line.
    #[must_use]
    pub fn users(self, users: IdMap) -> Self {
        Ratings { users: Some(users), ..self }
    }

    /// The known items: any other is an error that names the line.
    #[must_use]
    pub fn items(self, items: IdMap) -> Self {
        Ratings { items: Some(items), ..self }
    }

    /// An id that is not among the [known](Self::users) ones gets the number behind the last of
    /// them, and is no error: a model with one table row more, of zeros, scores it by what it
    /// knows.
    ///
    /// ```
    /// use nnz::data::{ColumnValues, IdMap, Ratings, TextReader};
    ///
    /// let known = |ids: [&'static str; 2]| IdMap::from_iter(ids);
    /// let format = Ratings::new().users(known(["anna", "bert"])).items(known(["x", "y"]));
    /// let text = b"carla,y,4\nbert,z,3\n";
    /// let data = TextReader::new(format.number_unknown()).read_bytes("later", text)?;
    /// let Some(ColumnValues::Ids(users)) = data.column("user").map(|c| c.values()) else {
    ///     panic!("no users");
    /// };
    /// assert_eq!((users.view().number(0), users.view().number(1)), (2, 1));
    /// # Ok::<(), nnz::Error>(())
    /// ```
    #[must_use]
    pub fn number_unknown(self) -> Self {
        Ratings { numbers_unknown: true, ..self }
    }

    /// The field at this position, counted from zero and behind the rating, is the weight of the
    /// sample: a finite number of at least 0. It becomes the label [`WEIGHT`](super::WEIGHT).
    ///
    /// ```
    /// use nnz::data::{ColumnValues, Ratings, TextReader};
    ///
    /// let format = Ratings::new().weight(3);
    /// let data = TextReader::new(format).read_bytes("inline", b"anna,tea,4,2\nbert,tea,1,0.5\n")?;
    /// let Some(ColumnValues::Dense(weights)) = data.column("weight").map(|c| c.values()) else {
    ///     panic!("no weights");
    /// };
    /// assert_eq!(weights.values(), [2.0, 0.5]);
    /// # Ok::<(), nnz::Error>(())
    /// ```
    #[must_use]
    pub fn weight(self, position: usize) -> Self {
        Ratings { weight: Some(position), ..self }
    }

    /// A line has a user and an item, and further fields are ignored: enough to predict. The first
    /// line is a header if its third field is a word.
    #[must_use]
    pub fn without_labels(self) -> Self {
        Ratings { without_labels: true, ..self }
    }
}

impl Separator {
    fn detect(line: &[u8]) -> Self {
        let has = |byte| memchr::memchr(byte, line).is_some();
        match () {
            () if memchr::memmem::find(line, b"::").is_some() => Separator::Colons,
            () if has(b'\t') => Separator::Tab,
            () if has(b',') => Separator::Comma,
            () => Separator::Blanks,
        }
    }

    /// The first field of a text: its start and end, and the start of the next one.
    fn split(self, text: &[u8]) -> (usize, usize, usize) {
        let find = |byte| memchr::memchr(byte, text);
        let (end, width) = match self {
            Separator::Comma => (find(b','), 1),
            Separator::Tab => (find(b'\t'), 1),
            Separator::Colons => (memchr::memmem::find(text, b"::"), 2),
            Separator::Blanks | Separator::Detect => {
                let blank = |byte: &u8| matches!(byte, b' ' | b'\t');
                let start = text.iter().position(|byte| !blank(byte)).unwrap_or(text.len());
                let end =
                    text[start..].iter().position(blank).map_or(text.len(), |end| start + end);
                return (start, end, end);
            }
        };
        (0, end.unwrap_or(text.len()), end.map_or(text.len(), |end| end + width))
    }
}

impl Sealed for Ratings {}

whole_format!(Ratings);

/// The positions of the columns.
const USER: usize = 0;
const ITEM: usize = 1;
const RATING: usize = 2;
const WEIGHT_COLUMN: usize = 3;

impl<T: Float> RowFormat<T> for Ratings {
    type Parser = Parser;

    fn columns(&self) -> Vec<ColumnLayout> {
        let column = |name: &str, role, kind| ColumnLayout { name: Some(name.into()), role, kind };
        let mut columns = vec![
            column("user", InputRole::Input, ColumnKind::Ids(1)),
            column("item", InputRole::Input, ColumnKind::Ids(1)),
        ];
        if !self.without_labels {
            columns.push(column("rating", InputRole::Label, ColumnKind::Dense(1)));
            if self.weight.is_some() {
                columns.push(column(WEIGHT, InputRole::Label, ColumnKind::Dense(1)));
            }
        }
        columns
    }

    fn parser(&self, head: &[u8]) -> Parser {
        let separator = match self.separator {
            Separator::Detect => {
                let lines = Lines::new(head).map(|(_, line)| line);
                Separator::detect(
                    lines.into_iter().find(|line| !line.is_empty()).unwrap_or_default(),
                )
            }
            known => known,
        };
        let ids = |name, known: &Option<IdMap>| Ids {
            name,
            is_known: known.is_some(),
            numbers_unknown: known.is_some() && self.numbers_unknown,
            map: known.clone().unwrap_or_default(),
        };
        let ids = [ids("user", &self.users), ids("item", &self.items)];
        let weight = self.weight.filter(|_| !self.without_labels);
        Parser { separator, ids, without_labels: self.without_labels, weight }
    }

    fn independent_rows(&self) -> Result<(), &'static str> {
        match (&self.users, &self.items) {
            (Some(_), Some(_)) => Ok(()),
            _ => Err(
                "ids are numbered in the order of the file: give the ids that there are, `Ratings::users` and `Ratings::items`",
            ),
        }
    }
}

/// Lines of ratings into columns.
#[derive(Debug)]
pub struct Parser {
    separator: Separator,
    ids: [Ids; 2],
    without_labels: bool,
    /// The position of the field that is the weight of a sample.
    weight: Option<usize>,
}

#[derive(Debug)]
struct Ids {
    name: &'static str,
    is_known: bool,
    numbers_unknown: bool,
    map: IdMap,
}

impl Ids {
    /// The id in a field, if it is valid.
    fn check<'a>(&self, text: &'a [u8]) -> Result<&'a str, Problem> {
        let (column, found) = (|| self.name.to_owned(), || Excerpt::line(text));
        if text.is_empty() {
            return Err(Problem::Field { column: column(), expected: "an id", found: found() });
        }
        let id = str::from_utf8(text).map_err(|_| Problem::NotUtf8 { found: found() })?;
        if self.is_known && !self.numbers_unknown && self.map.number(id).is_none() {
            let n_known = self.map.len();
            return Err(Problem::UnknownId { column: column(), found: found(), n_known });
        }
        Ok(id)
    }

    /// The number of an id, if there is one left.
    fn number(&mut self, id: &str) -> Option<u32> {
        match self.map.number(id) {
            None if self.numbers_unknown => u32::try_from(self.map.len()).ok(),
            _ => self.map.insert(id),
        }
    }
}

impl Parser {
    /// The first three fields of a line, each with its offset.
    fn fields<'a>(&self, line: &'a [u8]) -> [(usize, &'a [u8]); 3] {
        let mut at = 0;
        [(); 3].map(|()| {
            let (start, end, next) = self.separator.split(&line[at..]);
            let field = &line[at + start..at + end];
            let blanks = field.len() - field.trim_ascii_start().len();
            let found = (at + start + blanks, field.trim_ascii());
            at += next;
            found
        })
    }

    /// The field at a position, with its offset; empty behind the last.
    fn field<'a>(&self, line: &'a [u8], position: usize) -> (usize, &'a [u8]) {
        let mut at = 0;
        for _ in 0..position {
            at += self.separator.split(&line[at..]).2;
        }
        let (start, end, _) = self.separator.split(&line[at..]);
        (at + start, line[at + start..at + end].trim_ascii())
    }

    /// The weight of a sample, where a field is one.
    fn weight<T: Float>(&self, line: &[u8]) -> Result<Option<T>, Fault> {
        let Some(position) = self.weight else { return Ok(None) };
        let (offset, text) = self.field(line, position);
        match number::<T>(text) {
            Ok((weight, [])) if weight >= T::zero() => Ok(Some(weight)),
            _ => {
                let (column, found) = (WEIGHT.to_owned(), Excerpt::line(text));
                let expected = "a weight of at least 0";
                Err(Fault { offset, problem: Problem::Field { column, expected, found } })
            }
        }
    }

    /// Refuses titles which show that the first three columns are not user, item and rating: a
    /// column without a title, such as the index of a data frame, or such a title at another
    /// position.
    fn check_titles(&self, line: &[u8]) -> Result<(), Fault> {
        let mut titles = Vec::new();
        let mut at = 0;
        while at < line.len() {
            let (start, end, next) = self.separator.split(&line[at..]);
            titles.push((at + start, unquoted(line[at + start..at + end].trim_ascii())));
            at += next;
        }
        let names = |title: &[u8], word: &str| {
            memchr::memmem::find(&title.to_ascii_lowercase(), word.as_bytes()).is_some()
        };
        let n_read = if self.without_labels { RATING } else { RATING + 1 };
        let nameless = titles.iter().take(n_read).position(|(_, title)| title.is_empty());
        let misplaced = ["user", "item", "rating"].iter().take(n_read).enumerate();
        let misplaced = misplaced.filter_map(|(place, word)| {
            let is_there = titles.get(place).is_some_and(|(_, title)| names(title, word));
            let elsewhere = titles.iter().position(|(_, title)| names(title, word));
            elsewhere.filter(|_| !is_there)
        });
        match nameless.into_iter().chain(misplaced).next() {
            None => Ok(()),
            Some(at) => {
                let (offset, title) = titles[at];
                let (n_titles, position) = (titles.len(), at + 1);
                let found = Excerpt::line(title);
                Err(Fault { offset, problem: Problem::RatingTitles { n_titles, position, found } })
            }
        }
    }

    fn row<T: Float>(&mut self, line: &[u8], rows: &mut Chunk<T>) -> Result<(), Fault> {
        let [user, item, (offset, text)] = self.fields(line);
        // All is checked before an id is numbered: a line that is refused must not number any.
        let value = match number::<T>(text) {
            _ if self.without_labels => None,
            Ok((value, [])) => Some(value),
            Err(super::number::NotANumber::NotFinite) => {
                let problem = Problem::LabelNotFinite { found: Excerpt::line(text) };
                return Err(Fault { offset, problem });
            }
            Err(super::number::NotANumber::BeyondRange) => {
                let found = Excerpt::line(text);
                let problem = Problem::LabelBeyondRange { found, element: T::TYPE };
                return Err(Fault { offset, problem });
            }
            _ => {
                let (column, found) = ("rating".to_owned(), Excerpt::line(text));
                let problem = Problem::Field { column, expected: "a number", found };
                return Err(Fault { offset, problem });
            }
        };
        let weight = self.weight::<T>(line)?;
        let [users, items] = &self.ids;
        let user_id = users.check(user.1).map_err(|problem| Fault { offset: user.0, problem })?;
        let item_id = items.check(item.1).map_err(|problem| Fault { offset: item.0, problem })?;
        for (position, id) in [(USER, user_id), (ITEM, item_id)] {
            let ids = &mut self.ids[position];
            let number = ids.number(id).ok_or_else(|| {
                let offset = [user.0, item.0][position];
                Fault { offset, problem: Problem::TooManyIds { column: ids.name.to_owned() } }
            })?;
            rows.ids(position).push(number);
        }
        if let Some(value) = value {
            rows.dense(RATING).push(value);
        }
        if let Some(weight) = weight {
            rows.dense(WEIGHT_COLUMN).push(weight);
        }
        rows.finish_row();
        Ok(())
    }
}

/// Whether a third field is the title of a column, and not a rating or a word for a missing one.
fn is_title(field: &[u8]) -> bool {
    const NO_NUMBER: [&str; 7] = ["nan", "inf", "infinity", "na", "n/a", "null", "none"];
    let field = unquoted(field);
    let is_no_number = NO_NUMBER.iter().any(|word| field.eq_ignore_ascii_case(word.as_bytes()));
    field.first().is_some_and(u8::is_ascii_alphabetic) && !is_no_number
}

/// A field without the quotes around it.
fn unquoted(field: &[u8]) -> &[u8] {
    field.strip_prefix(b"\"").and_then(|field| field.strip_suffix(b"\"")).unwrap_or(field)
}

impl<T: Float> RowParser<T> for Parser {
    fn header(&mut self, text: &[u8]) -> Result<usize, Fault> {
        let mut lines = Lines::new(text);
        let Some((_, line)) = lines.next() else { return Ok(0) };
        check_text(line, 0)?;
        let [.., (_, value)] = self.fields(line);
        if !is_title(value) {
            return Ok(0);
        }
        self.check_titles(line)?;
        Ok(lines.next().map_or(text.len(), |(start, _)| start))
    }

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

    fn id_maps(self) -> Vec<(&'static str, IdMap)> {
        self.ids.into_iter().map(|ids| (ids.name, ids.map)).collect()
    }
}

#[cfg(test)]
mod tests;
