//! The names of hashed features: which tokens of a file fill a column.

use super::ReadError;
use super::blocks::{BLOCK_BYTES, Blocks, open};
use super::delimited::JoinedLines;
use super::read_error::Fault;
use super::text::{BYTE_ORDER_MARK, Lines, count_joined_lines, place_in_joined};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The names of the features that fill some columns, each with its first names in the order of a
/// file, at most [`FeatureNames::MOST`] of them.
///
/// [`Delimited::feature_names`](super::Delimited::feature_names) and its like on
/// [`VowpalWabbit`](super::VowpalWabbit) and [`Words`](super::Words) make it. A column with several
/// names is shared by several features: they collide.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FeatureNames {
    names: BTreeMap<u64, Vec<String>>,
}

impl FeatureNames {
    /// The most names that are kept of a column.
    pub const MOST: usize = 3;

    /// Without names, of these columns.
    pub(crate) fn of(columns: impl IntoIterator<Item = u64>) -> Self {
        FeatureNames { names: columns.into_iter().map(|column| (column, Vec::new())).collect() }
    }

    /// The names of a column, none where no feature of the file fills it.
    pub fn get(&self, column: u64) -> &[String] {
        self.names.get(&column).map_or(&[], Vec::as_slice)
    }

    /// Adds a name, if the column is one of those that are looked for.
    #[inline]
    pub(crate) fn add(&mut self, column: u64, name: impl FnOnce() -> String) {
        if let Some(known) = self.names.get_mut(&column)
            && known.len() < Self::MOST
        {
            let name = name();
            if !known.contains(&name) {
                known.push(name);
            }
        }
    }

    /// The columns that are looked for.
    pub fn columns(&self) -> BTreeSet<u64> {
        self.names.keys().copied().collect()
    }
}

/// A token as text, in place of bytes that are none.
pub(crate) fn shown(token: &[u8]) -> String {
    String::from_utf8_lossy(token).into_owned()
}

/// Calls a function with each line of a file that is not empty, behind what `header` says is the
/// header, until it returns false. Lines of quoted fields are joined, if there may be some.
pub(crate) fn each_line(
    path: &Path,
    quoted_separator: Option<u8>,
    header: impl FnOnce(&[u8]) -> Result<usize, Fault>,
    mut take: impl FnMut(&[u8]) -> bool,
) -> Result<(), ReadError> {
    let name = path.display().to_string();
    let mut blocks =
        Blocks::with_size(JoinedLines::new(open(path)?, quoted_separator), BLOCK_BYTES);
    let (mut lines, mut header) = (0, Some(header));
    while let Some(block) = blocks.next().map_err(|error| error.after(&name, lines))? {
        let mut text = block;
        if let Some(header) = header.take() {
            text = block.strip_prefix(BYTE_ORDER_MARK).unwrap_or(block);
            let length = header(text).map_err(|fault| ReadError::Syntax {
                place: place_in_joined(&name, 0, text, fault.offset),
                problem: fault.problem,
            })?;
            text = &text[length..];
        }
        lines += count_joined_lines(block);
        for (_, line) in Lines::new(text).filter(|(_, line)| !line.is_empty()) {
            if !take(line) {
                return Ok(());
            }
        }
    }
    Ok(())
}
