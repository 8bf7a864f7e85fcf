//! Ratings text: `user item value` a line.

use super::number::number;
use super::read_error::Fault;
use super::text::{
    Chunk, ColumnKind, ColumnLayout, IdMap, Lines, RowFormat, RowParser, check_text,
    sealed::Sealed, whole_format,
};
use super::{Excerpt, Problem};
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
        Parser { separator, ids, without_labels: self.without_labels }
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
mod tests {
    use super::*;
    use crate::{ColumnValues, Dataset, OnError, ReadError, TextReader};
    use nnz_arrays::formats;

    fn read(format: Ratings, text: &str) -> Result<Dataset, ReadError> {
        TextReader::new(format).read_bytes("file", text.as_bytes())
    }

    /// Users, items and ratings.
    fn content(data: &Dataset) -> (Vec<u32>, Vec<u32>, Vec<f32>) {
        let ids = |name| match data.column(name).unwrap().values() {
            ColumnValues::Ids(formats::Ids::U32(ids)) => ids.values().to_vec(),
            _ => panic!("ids are u32"),
        };
        let Some(ColumnValues::Dense(ratings)) = data.labels() else {
            panic!("ratings are numbers")
        };
        (ids("user"), ids("item"), ratings.values().to_vec())
    }

    #[test]
    fn lines_without_ratings_are_enough_to_predict() {
        let map = |ids: [&'static str; 2]| IdMap::from_iter(ids);
        let known = Ratings::new().users(map(["u", "v"])).items(map(["i", "j"])).without_labels();
        for text in ["v,i\nu,j\n", "v i\nu j\n", "user,item,rating\nv,i,5\nu,j,?\n"] {
            let data = read(known.clone(), text).unwrap();
            assert_eq!((data.n_rows(), data.columns().len()), (2, 2), "{text}");
            assert!(data.labels().is_none());
        }
        let error = read(known, "v,i\nw,j\n").unwrap_err().to_string();
        assert!(error.contains("file:2:1"), "{error}");
    }

    #[test]
    fn separators_and_headers() {
        let expected = (vec![0, 1, 0], vec![0, 0, 1], vec![5.0, 3.5, -1.0]);
        for text in [
            "u,i,5\nv,i,3.5\nu,j,-1\n",
            "user,item,rating\r\nu,i,5\r\nv,i,3.5\r\nu,j,-1",
            "u\ti\t5\t0\nv\ti\t3.5\t1\n\nu\tj\t-1\n",
            "u::i::5::0\nv::i::3.5::1\nu::j::-1::2\n",
            " u  i 5 977\nv i\t3.5\nu j -1\n",
            "userId movieId rating\nu i 5\nv i 3.5\nu j -1\n",
            "\"user\",\"item\",\"rating\"\nu,i,5\nv,i,3.5\nu,j,-1\n",
        ] {
            let data = read(Ratings::new(), text).unwrap();
            assert_eq!(content(&data), expected, "{text}");
            assert_eq!(data.id_map("user").unwrap().ids().collect::<Vec<_>>(), ["u", "v"]);
            assert_eq!(data.id_map("item").unwrap().ids().collect::<Vec<_>>(), ["i", "j"]);
            // Other labels are of the same users and items.
            let tags = Dataset::features_only(formats::Csr::zeros(data.n_rows(), 3)).unwrap();
            let tagged = data.with_labels_from(tags).unwrap();
            assert_eq!(tagged.id_map("user").unwrap().len(), 2);
        }
        let text = "a b,c::d,4\n";
        let data = read(Ratings::new().separator(Separator::Comma), text).unwrap();
        assert_eq!(data.id_map("user").unwrap().id(0), Some("a b"));
        assert_eq!(data.id_map("item").unwrap().id(0), Some("c::d"));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let refused = |text: &str| read(Ratings::new(), text).unwrap_err().to_string();
        for (text, message) in [
            ("u,i,5\nu,i\n", "file:2:4: expected a number in the column `rating`, found nothing"),
            ("u,i,5\nu,,x\n", "file:2:4: expected a number in the column `rating`, found `x`"),
            ("u,i,5\nu,,5\n", "file:2:3: expected an id in the column `item`, found nothing"),
            ("u,i,nan\nu,j,1\n", "file:1:5: label `nan` is not a finite number"),
            ("u,i,Inf\nu,j,1\n", "file:1:5: label `Inf` is not a finite number"),
            ("u,i,N/A\n", "file:1:5: expected a number in the column `rating`, found `N/A`"),
            ("user,item,rating\n", "`file` has no rows"),
            ("u,i,5\nu,i,nan\n", "file:2:5: label `nan` is not a finite number"),
            ("u\0,i,5\n", "file:1:2: a NUL byte"),
            ("\n\n", "`file` has no rows"),
        ] {
            assert!(refused(text).starts_with(message), "{}", refused(text));
        }
        let error = TextReader::new(Ratings::new()).read_bytes("file", b"\xffu,i,5\n").unwrap_err();
        assert!(error.to_string().starts_with("file:1:1: expected text in UTF-8"), "{error}");
    }

    #[test]
    fn d9_titles_of_other_columns_are_refused() {
        let refused = |format: Ratings, text: &str| read(format, text).unwrap_err().to_string();
        for (text, message) in [
            (
                ",User_id,Item_id,Score\n0,303,103,0\n",
                "file:1:1: the first line has 4 titles, of which number 1 is nothing: a line begins",
            ),
            ("\"\",\"user\",\"item\"\n0,303,103\n", "file:1:1: the first line has 3 titles"),
            ("id,user,item,rating\n0,3,1,5\n", "file:1:4: the first line has 4 titles, of which"),
            ("movieId\tuserId\trating\n3\t1\t5\n", "file:1:9: the first line has 3 titles"),
        ] {
            assert!(refused(Ratings::new(), text).starts_with(message), "{text}");
            assert!(refused(Ratings::new(), text).contains("in this order"));
        }
        let map = |ids: [&'static str; 1]| IdMap::from_iter(ids);
        let known = Ratings::new().users(map(["0"])).items(map(["303"])).without_labels();
        assert!(refused(known, ",user,item\n0,303,103\n").contains("number 1 is nothing"));
        // Titles in words of their own, and more columns after the three, say nothing against it.
        for text in ["who,what,stars\na,b,1\n", "user_id,movie,score,timestamp\na,b,1,9\n"] {
            assert_eq!(read(Ratings::new(), text).unwrap().n_rows(), 1, "{text}");
        }
    }

    #[test]
    fn d8_a_byte_order_mark_before_a_line_is_not_part_of_an_id() {
        let text = "\u{feff}anna,x,1\n\u{feff}anna,y,2\nbert,x,3\n";
        let data = read(Ratings::new(), text).unwrap();
        assert_eq!(data.id_map("user").unwrap().ids().collect::<Vec<_>>(), ["anna", "bert"]);
        let error = read(Ratings::new(), "a,x,1\n\u{feff}b,y,?\n").unwrap_err().to_string();
        assert!(error.starts_with("file:2:"), "{error}");
    }

    #[test]
    fn d7_lines_that_end_in_carriage_returns_are_refused() {
        for text in ["1,10,5,100\r2,11,3,101\r", "user,item,rating\r1,10,5\r2,11,3\r"] {
            let error = read(Ratings::new(), text).unwrap_err().to_string();
            assert!(error.contains("carriage return (CR) within a line"), "{error}");
        }
        assert_eq!(read(Ratings::new(), "1,10,5,a\r\r\n2,11,3,b\r\n").unwrap().n_rows(), 2);
    }

    #[test]
    fn test_data_has_the_ids_of_the_training_data() {
        let train = read(Ratings::new(), "u,i,5\nv,j,3\n").unwrap();
        let map = |name| train.id_map(name).unwrap().clone();
        let known = Ratings::new().users(map("user")).items(map("item"));
        let test = read(known.clone(), "v,i,1\n").unwrap();
        assert_eq!(content(&test), (vec![1], vec![0], vec![1.0]));
        let error = read(known.clone(), "v,i,1\nw,i,1\n").unwrap_err();
        assert_eq!(error.to_string(), "file:2:1: the user `w` is not among the 2 that are known");
        let reader = TextReader::new(known).on_error(OnError::Skip(9));
        let test = reader.read_bytes("file", b"w,i,1\nv,k,1\nu,j,2\n").unwrap();
        assert_eq!(content(&test), (vec![0], vec![1], vec![2.0]));
        assert_eq!(test.report().unwrap().n_skipped, 2);
    }

    #[test]
    fn unknown_ids_have_the_number_behind_the_known_ones() {
        let map = |ids: [&'static str; 2]| IdMap::from_iter(ids);
        let known = Ratings::new().users(map(["u", "v"])).items(map(["i", "j"])).number_unknown();
        let data = read(known, "v,k,1\nw,i,2\nx,j,3\n").unwrap();
        assert_eq!(content(&data), (vec![1, 2, 2], vec![2, 0, 1], vec![1.0, 2.0, 3.0]));
        assert_eq!(data.id_map("user").unwrap().len(), 2);
    }

    #[test]
    fn a_skipped_line_numbers_no_ids() {
        let reader = TextReader::new(Ratings::new()).on_error(OnError::Skip(9));
        let data = reader.read_bytes("file", b"u,i,5\nv,j,?\nw,,1\nx,i,1\n").unwrap();
        assert_eq!(data.id_map("user").unwrap().ids().collect::<Vec<_>>(), ["u", "x"]);
        assert_eq!(data.id_map("item").unwrap().len(), 1);
    }
}
