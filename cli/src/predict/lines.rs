//! The line of a sample: its numbers or its label, an id before them, as TSV, CSV or JSON; or the
//! numbers of all samples as an array of NumPy.

use crate::models::output_change::Change;
use clap::ValueEnum;
use std::path::Path;

/// How predictions are written.
#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// Numbers separated by tabs, without a header.
    Tsv,
    /// Comma separated, with a header.
    Csv,
    /// One JSON object a line.
    Json,
    /// An array of NumPy, a row a sample.
    Npy,
    /// A Parquet file, a column for each number, and one for ids.
    #[cfg(feature = "parquet")]
    Parquet,
}

impl OutputFormat {
    /// By the ending of a name.
    pub(super) fn of(path: &Path) -> Self {
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("csv") => OutputFormat::Csv,
            Some("json" | "jsonl") => OutputFormat::Json,
            Some("npy") => OutputFormat::Npy,
            #[cfg(feature = "parquet")]
            Some("parquet") => OutputFormat::Parquet,
            _ => OutputFormat::Tsv,
        }
    }

    /// Whether it is a file that is written when all samples are known, and no text.
    pub(super) fn is_whole(self) -> bool {
        match self {
            OutputFormat::Tsv | OutputFormat::Csv | OutputFormat::Json => false,
            OutputFormat::Npy => true,
            #[cfg(feature = "parquet")]
            OutputFormat::Parquet => true,
        }
    }
}

/// Makes the line of each sample.
pub(super) struct SampleLines {
    pub(super) format: OutputFormat,
    pub(super) change: Option<Change>,
    /// The titles of the numbers.
    pub(super) titles: Vec<String>,
    /// The title of the ids.
    pub(super) id_title: Option<String>,
    /// The ids of the samples to come, if they have some.
    pub(super) ids: Vec<String>,
    /// The samples so far.
    n_samples: usize,
    /// The numbers of an array, and how many a sample has.
    values: Vec<f64>,
    width: usize,
    /// The classes and the ids of a table.
    #[cfg(feature = "parquet")]
    texts: [Vec<String>; 2],
}

impl SampleLines {
    pub(super) fn new(
        format: OutputFormat,
        change: Option<Change>,
        titles: Vec<String>,
        id_title: Option<String>,
    ) -> Self {
        SampleLines {
            format,
            change,
            titles,
            id_title,
            ids: Vec::new(),
            n_samples: 0,
            values: Vec::new(),
            width: 0,
            #[cfg(feature = "parquet")]
            texts: Default::default(),
        }
    }

    /// The ids of the samples that come next.
    pub(super) fn set_ids(&mut self, ids: Vec<String>) {
        (self.ids, self.n_samples) = (ids, 0);
    }

    /// Changes the line of the next sample, of numbers separated by tabs. A header stands before
    /// the first one.
    pub(super) fn apply(&mut self, line: &mut String) {
        if let Some(change) = &self.change {
            change.apply(line);
        }
        let is_first = self.width == 0;
        let id = self.ids.get(self.n_samples);
        let fields: Vec<&str> = line.split('\t').collect();
        self.width = fields.len();
        self.n_samples += 1;
        let id = self.id_title.as_deref().map(|title| (title, id.map_or("", String::as_str)));
        match self.format {
            OutputFormat::Tsv => {
                if let Some((_, id)) = id {
                    *line = format!("{}\t{line}", id.replace(['\t', '\n', '\r'], " "));
                }
            }
            OutputFormat::Csv => {
                let row = id.map(|(_, id)| id).into_iter().chain(fields.iter().copied());
                let row = row.map(quoted).collect::<Vec<_>>().join(",");
                let titles = id.map(|(title, _)| title.to_owned()).into_iter();
                let titles = titles.chain(titles_of(&self.titles, fields.len()));
                let titles = titles.map(|title| quoted(&title)).collect::<Vec<_>>().join(",");
                *line = if is_first { format!("{titles}\n{row}") } else { row };
            }
            OutputFormat::Json => {
                let mut parts: Vec<String> = Vec::new();
                parts.extend(id.map(|(title, id)| member(title, id, false)));
                let titles = titles_of(&self.titles, fields.len());
                parts.extend(titles.zip(&fields).map(|(title, field)| member(&title, field, true)));
                *line = format!("{{{}}}", parts.join(","));
            }
            OutputFormat::Npy => {
                self.values.extend(fields.iter().map(|field| field.parse().unwrap_or(f64::NAN)));
            }
            #[cfg(feature = "parquet")]
            OutputFormat::Parquet => {
                if let Some((_, id)) = id {
                    self.texts[1].push(id.to_owned());
                }
                match (&self.change, &fields[..]) {
                    (Some(Change::Label(_)), [class]) => self.texts[0].push((*class).to_owned()),
                    _ => self.values.extend(fields.iter().map(|f| f.parse().unwrap_or(f64::NAN))),
                }
            }
        }
    }

    /// The file of all samples, of a format that is no text.
    pub(super) fn whole_file(&self) -> Result<Vec<u8>, String> {
        match self.format {
            #[cfg(feature = "parquet")]
            OutputFormat::Parquet => self.parquet(),
            _ => Ok(self.npy()),
        }
    }

    /// The ids, and the classes or numbers, as columns of a Parquet file.
    #[cfg(feature = "parquet")]
    fn parquet(&self) -> Result<Vec<u8>, String> {
        use nnz::data::WrittenColumn;
        let [classes, ids] = &self.texts;
        let mut columns = Vec::new();
        if let Some(title) = &self.id_title {
            columns.push((title.clone(), WrittenColumn::Texts(ids.clone())));
        }
        if classes.is_empty() {
            for (at, title) in titles_of(&self.titles, self.width).enumerate() {
                let of_title = self.values.iter().skip(at).step_by(self.width.max(1));
                let numbers = of_title.map(|value| *value as f32).collect();
                columns.push((title, WrittenColumn::Numbers(numbers)));
            }
        } else {
            let title = titles_of(&self.titles, 1).next().unwrap_or_default();
            columns.push((title, WrittenColumn::Texts(classes.clone())));
        }
        let mut bytes = Vec::new();
        nnz::data::write_parquet(&mut bytes, columns).map_err(|error| error.to_string())?;
        Ok(bytes)
    }

    /// The array of all numbers as a file of NumPy (NEP 1, version 1.0).
    fn npy(&self) -> Vec<u8> {
        let (rows, width) = (self.values.len() / self.width.max(1), self.width);
        let shape = if width == 1 { format!("({rows},)") } else { format!("({rows}, {width})") };
        let mut header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}");
        // Magic, version, length and header fill a multiple of 64 bytes, the last one a line end.
        const BEFORE: usize = 10;
        while !(BEFORE + header.len() + 1).is_multiple_of(64) {
            header.push(' ');
        }
        header.push('\n');
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes.extend(self.values.iter().flat_map(|value| (*value as f32).to_le_bytes()));
        bytes
    }
}

/// The titles of so many numbers: their positions where there are others.
fn titles_of(titles: &[String], width: usize) -> impl Iterator<Item = String> {
    let known = (titles.len() == width).then(|| titles.to_vec());
    known.unwrap_or_else(|| (1..=width).map(|position| position.to_string()).collect()).into_iter()
}

/// A field of CSV (RFC 4180).
fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

/// A member of a JSON object: a number as it is written, if it may be one.
fn member(title: &str, value: &str, may_be_number: bool) -> String {
    // Text is nothing that JSON cannot write.
    let text = |text: &str| serde_json::to_string(text).unwrap_or_default();
    let is_number = may_be_number && value.parse::<f64>().is_ok_and(f64::is_finite);
    let value = if is_number { value.to_owned() } else { text(value) };
    format!("{}:{value}", text(title))
}
