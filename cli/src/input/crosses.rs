//! Crosses of columns and of namespaces, as the command line says them.

use super::Reading;
use nnz::data::{DataError, Delimited, Hashing, VowpalWabbit};

/// `ab` as of `-q`: one letter for each side.
pub(super) fn initials(text: &str) -> Result<String, String> {
    match text.as_bytes() {
        [_, _] => Ok(text.to_owned()),
        _ => Err("it is the first letters of two namespaces, such as `ab`".to_owned()),
    }
}

impl Reading {
    /// A table with the crosses of --cross, and with fields for a model that reads them.
    pub(super) fn crossed(&self, mut format: Delimited) -> Result<Delimited, DataError> {
        for cross in &self.cross {
            format = format.cross(&cross.split(',').map(str::trim).collect::<Vec<_>>())?;
        }
        if self.reads_fields { format.fields() } else { Ok(format) }
    }

    /// Text of Vowpal Wabbit with the crosses of --cross and -q, and with fields for a model that
    /// reads them.
    pub(super) fn vowpal_wabbit(&self, hashing: Hashing) -> Result<VowpalWabbit, DataError> {
        let mut format = VowpalWabbit::new(hashing);
        for cross in &self.cross {
            let Some((first, second)) = cross.split_once(',').filter(|(_, b)| !b.contains(','))
            else {
                let message = format!("--cross {cross}: it is two namespaces, `--cross a,b`");
                return Err(DataError::Schema { message });
            };
            format = format.cross(first.trim(), second.trim());
        }
        for pair in &self.quadratic {
            if let [first, second] = pair.as_bytes() {
                format = format.cross_initials(*first, *second);
            }
        }
        if self.reads_fields { format.fields(self.field_names.iter()) } else { Ok(format) }
    }
}
