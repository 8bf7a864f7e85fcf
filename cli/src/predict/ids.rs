//! The ids of samples: the texts of a column of a table, or the tags of Vowpal Wabbit's text.

use crate::Failure;
use crate::input::{DataFiles, Format, Reading};
use std::fs;
use std::path::Path;

/// The ids of the samples of some files, in order.
pub(super) fn of_files(
    reading: &Reading,
    files: &DataFiles,
    column: &str,
    no_labels: bool,
) -> Result<Vec<String>, Failure> {
    let mut ids = Vec::new();
    for path in files.paths() {
        ids.extend(match reading.format_of(path) {
            Format::Csv => reading.table(path, no_labels)?.texts(path, column)?,
            Format::Vw if column == TAG => tags(&fs::read(path)?),
            format => return Err(no_ids(format, column)),
        });
    }
    Ok(ids)
}

/// The ids of the samples of some lines of a pipe.
pub(super) fn of_lines(
    reading: &Reading,
    text: &[u8],
    column: &str,
    no_labels: bool,
) -> Result<Vec<String>, Failure> {
    let path = Path::new("-");
    match reading.format_of(path) {
        Format::Csv => {
            let header = text.split_inclusive(|byte| *byte == b'\n').next().unwrap_or_default();
            let rows = if reading.has_header() { &text[header.len()..] } else { text };
            Ok(reading.table(path, no_labels)?.texts_of_lines(rows, column)?)
        }
        Format::Vw if column == TAG => Ok(tags(text)),
        format => Err(no_ids(format, column)),
    }
}

/// The column of tags.
const TAG: &str = "tag";

fn no_ids(format: Format, column: &str) -> Failure {
    format!(
        "--id {column}: {} has no such column: ids are columns of csv by their names, and the `tag` of vw",
        format.name()
    )
    .into()
}

/// The tag of each line: what begins with `'`, or touches the first `|`.
fn tags(text: &[u8]) -> Vec<String> {
    let lines = text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let tag = |line: &[u8]| {
        let head = line.split(|byte| *byte == b'|').next().unwrap_or_default();
        let last = head.rsplit(u8::is_ascii_whitespace).next().unwrap_or_default();
        let mut words = head.split(u8::is_ascii_whitespace);
        let tag = words.find(|word| word.starts_with(b"'")).unwrap_or(last);
        let tag = tag.strip_prefix(b"'").unwrap_or(tag);
        String::from_utf8_lossy(tag).into_owned()
    };
    lines.filter(|line| !line.is_empty()).map(tag).collect()
}
