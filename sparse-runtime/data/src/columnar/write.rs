//! Columns as a Parquet file: predictions for programs of data frames.

use arrow_array::{ArrayRef, Float32Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use std::io;
use std::sync::Arc;

/// A column of a Parquet file that is written, without missing cells.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum WrittenColumn {
    /// Numbers, as FLOAT.
    Numbers(Vec<f32>),
    /// Texts, as STRING.
    Texts(Vec<String>),
}

/// Writes columns of equal length, each with its name, as a Parquet file compressed by snappy.
/// O(cells).
///
/// ```
/// use nnz::data::{WrittenColumn, write_parquet};
///
/// let scores = WrittenColumn::Numbers(vec![0.25, 0.75]);
/// let mut file = Vec::new();
/// write_parquet(&mut file, [("score".to_owned(), scores)])?;
/// assert!(file.starts_with(b"PAR1"));
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
///
/// [`io::Error`] of the writer, for columns of several lengths, and for a name that two columns
/// have.
pub fn write_parquet(
    writer: impl io::Write + Send,
    columns: impl IntoIterator<Item = (String, WrittenColumn)>,
) -> io::Result<()> {
    let (mut fields, mut arrays): (Vec<Field>, Vec<ArrayRef>) = (Vec::new(), Vec::new());
    for (name, column) in columns {
        if fields.iter().any(|field| *field.name() == name) {
            let message =
                format!("two columns of the Parquet file are called `{name}`: rename one");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let (data_type, array): (_, ArrayRef) = match column {
            WrittenColumn::Numbers(numbers) => {
                (DataType::Float32, Arc::new(Float32Array::from(numbers)))
            }
            WrittenColumn::Texts(texts) => (DataType::Utf8, Arc::new(StringArray::from(texts))),
        };
        fields.push(Field::new(name, data_type, false));
        arrays.push(array);
    }
    let schema = Arc::new(Schema::new(fields));
    let batch = RecordBatch::try_new(Arc::clone(&schema), arrays).map_err(io::Error::other)?;
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let mut writer = ArrowWriter::try_new(writer, schema, Some(properties))?;
    writer.write(&batch)?;
    writer.close()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Dataset, Delimited, Hashing, TextReader};

    #[test]
    fn written_columns_are_read_again_bit_for_bit() {
        let numbers = vec![0.1f32, -0.0, 1e-40, f32::MAX];
        let texts = ["a", "", "b,c", "a"].map(str::to_owned).to_vec();
        let mut bytes = Vec::new();
        let columns = [
            ("y".to_owned(), WrittenColumn::Numbers(numbers.clone())),
            ("id".to_owned(), WrittenColumn::Texts(texts.clone())),
        ];
        write_parquet(&mut bytes, columns.clone()).unwrap();
        let path = std::env::temp_dir().join(format!("nnz-written-{}.pq", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        let format = Delimited::csv(Hashing::new(8).unwrap()).with_schema("y:label,id:ignore");
        let format = format.unwrap();
        let data: Dataset = TextReader::new(format.clone()).read_path(&path).unwrap();
        assert_eq!(format.texts(&path, "id").unwrap(), texts);
        std::fs::remove_file(path).unwrap();
        let Some(crate::ColumnValues::Dense(labels)) = data.labels() else { panic!("no labels") };
        let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(labels.values()), bits(&numbers));
        let twice = columns.into_iter().map(|(_, column)| ("y".to_owned(), column));
        let error = write_parquet(Vec::new(), twice).unwrap_err().to_string();
        assert!(error.contains("are called `y`"), "{error}");
    }
}
