//! The outputs of a model as text.

use super::TrainError;
use super::any_batches::AnyBatches;
use super::evaluation_batches::{EvaluationSink, evaluate};
use super::score::{labels_to_predict, whole};
use crate::error::Result;
use nnz_arrays::in_library;
use nnz_data::{Batch, DataSource};
use nnz_device::atomic_write::replace_file;
use nnz_step::model::{AnyModel, Model};
use sparse_core::element::Float;
use std::io::{self, Write};
use std::path::Path;

/// Writes the dense outputs of a model for every sample: a line a sample, in order, with the
/// numbers of all outputs, in the order of declaration, separated by tabs. Labels are not needed.
/// Numbers have the shortest digits that distinguish them.
///
/// `batch_size` samples are computed at a time. For streamed data, memory is that of a batch.
///
/// # Errors
///
/// [`TrainError::Write`]; [`TrainError::Output`] if no output is dense with a row for each sample
/// of a batch; and any error of data and model.
pub fn write_predictions<M, S>(
    model: &mut M,
    data: &S,
    batch_size: usize,
    writer: &mut dyn Write,
) -> Result<()>
where
    M: Model,
    S: DataSource<M::Element>,
{
    write_all(model, data, batch_size, writer)?
        .map_err(|error| TrainError::Write { problem: error.to_string() }.into())
}

/// [`write_predictions`] to a file, which is replaced atomically.
///
/// # Errors
///
/// As [`write_predictions`]; the file is unchanged then.
pub fn save_predictions<M, S>(
    model: &mut M,
    data: &S,
    batch_size: usize,
    path: impl AsRef<Path>,
) -> Result<()>
where
    M: Model,
    S: DataSource<M::Element>,
{
    save(path.as_ref(), |writer| write_all(model, data, batch_size, writer))
}

/// Replaces a file atomically by the written text.
fn save(path: &Path, write: impl FnOnce(&mut dyn Write) -> Result<io::Result<()>>) -> Result<()> {
    let mut failed = None;
    let written = replace_file(path, |writer| match write(writer) {
        Ok(written) => written,
        Err(error) => {
            failed = Some(error);
            Err(io::ErrorKind::Other.into())
        }
    });
    if let Some(error) = failed {
        return Err(error);
    }
    written.map_err(|error| {
        TrainError::Write { problem: format!("{}: {error}", path.display()) }.into()
    })
}

/// [`write_predictions`] with a change of each line before it is written: clipped to a range, or
/// turned into a name. `change` gets a line without its end.
///
/// # Errors
///
/// As [`write_predictions`].
pub fn write_changed_predictions<M, S>(
    model: &mut M,
    data: &S,
    batch_size: usize,
    writer: &mut dyn Write,
    change: &mut dyn FnMut(&mut String),
) -> Result<()>
where
    M: Model,
    S: DataSource<M::Element>,
{
    write_predictions(model, data, batch_size, &mut Changed::new(writer, change))
}

/// [`save_predictions`] with a change of each line, as in [`write_changed_predictions`].
///
/// # Errors
///
/// As [`save_predictions`].
pub fn save_changed_predictions<M, S>(
    model: &mut M,
    data: &S,
    batch_size: usize,
    path: impl AsRef<Path>,
    change: &mut dyn FnMut(&mut String),
) -> Result<()>
where
    M: Model,
    S: DataSource<M::Element>,
{
    save(path.as_ref(), |writer| {
        write_all(model, data, batch_size, &mut Changed::new(writer, change))
    })
}

/// A writer that changes each line.
struct Changed<'w> {
    writer: &'w mut dyn Write,
    change: &'w mut dyn FnMut(&mut String),
    /// The beginning of a line.
    line: Vec<u8>,
}

impl<'w> Changed<'w> {
    fn new(writer: &'w mut dyn Write, change: &'w mut dyn FnMut(&mut String)) -> Self {
        Changed { writer, change, line: Vec::new() }
    }
}

impl Write for Changed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(end) = memchr::memchr(b'\n', bytes) else {
            self.line.extend_from_slice(bytes);
            return Ok(bytes.len());
        };
        self.line.extend_from_slice(&bytes[..end]);
        let line = std::mem::take(&mut self.line);
        let mut line = String::from_utf8(line).map_err(io::Error::other)?;
        (self.change)(&mut line);
        line.push('\n');
        self.writer.write_all(line.as_bytes())?;
        Ok(end + 1)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

/// The outer error is that of data and model, the inner one that of the writer.
fn write_all<M, S>(
    model: &mut M,
    data: &S,
    batch_size: usize,
    writer: &mut dyn Write,
) -> Result<io::Result<()>>
where
    M: Model,
    S: DataSource<M::Element>,
{
    let mut batches = data.batches(M::INPUTS, &whole(batch_size, labels_to_predict::<M, S>()))?;
    write_each(model, (&mut batches, S::IN_SEQUENCE), writer)
}

fn write_each<T: Float>(
    model: &mut dyn AnyModel<T>,
    batches: (&mut dyn AnyBatches<T>, bool),
    writer: &mut dyn Write,
) -> Result<io::Result<()>> {
    in_library!(<T> write_batches::<T> => (
        model: &mut dyn AnyModel<T>,
        batches: (&mut dyn AnyBatches<T>, bool),
        writer: &mut dyn Write,
    ) -> Result<io::Result<()>>)
}

fn write_batches<T: Float>(
    model: &mut dyn AnyModel<T>,
    batches: (&mut dyn AnyBatches<T>, bool),
    writer: &mut dyn Write,
) -> Result<io::Result<()>> {
    batches.0.start_epoch(0)?;
    let mut written = Written { writer, text: String::new(), failed: None };
    let evaluated = evaluate(model, batches, false, &mut written);
    if let Some(failed) = written.failed {
        return Ok(Err(failed));
    }
    evaluated?;
    Ok(written.writer.flush())
}

/// Batches on their way to a writer.
struct Written<'w> {
    writer: &'w mut dyn Write,
    text: String,
    /// The writer's error.
    failed: Option<io::Error>,
}

impl<T: Float> EvaluationSink<T> for Written<'_> {
    /// The samples of a batch, and how many of them are padding.
    type PendingBatch = [usize; 2];

    fn receive_batch(&mut self, batch: &dyn Batch<'_, T>) -> Result<[usize; 2]> {
        Ok([batch.n_rows(), batch.n_padding()])
    }

    fn receive_outputs(
        &mut self,
        model: &dyn AnyModel<T>,
        [n_rows, n_padding]: [usize; 2],
        _: f64,
    ) -> Result<()> {
        let text = &mut self.text;
        let outputs: Vec<_> = (0..model.facts().outputs.len())
            .filter_map(|index| model.dense_output(index))
            .filter(|output| output.shape().rank() > 0 && output.shape().n_rows() == n_rows)
            .map(|output| (output.shape().row_size(), output.values()))
            .collect();
        if outputs.is_empty() {
            let problem = "none is dense and has a row for each row of a batch".to_owned();
            let model = model.facts().name;
            return Err(TrainError::Output { model, purpose: "predictions", problem }.into());
        }
        text.clear();
        for row in 0..n_rows - n_padding.min(n_rows) {
            let numbers =
                outputs.iter().flat_map(|(size, values)| &values[row * size..(row + 1) * size]);
            for (column, number) in numbers.enumerate() {
                if column > 0 {
                    text.push('\t');
                }
                text.push_str(&number.to_string());
            }
            text.push('\n');
        }
        self.writer.write_all(text.as_bytes()).map_err(|error| {
            let problem = error.to_string();
            self.failed = Some(error);
            TrainError::Write { problem }.into()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::predict;
    use super::super::tests::data;
    use super::super::tests::linear::Linear;
    use super::*;

    const D: usize = 20;

    #[test]
    fn a_line_for_each_row() {
        let data = data::<f64>(5);
        let mut model = Linear::<f64>::new(D);
        model.w.values_mut().copy_from_slice(&std::array::from_fn::<f64, D, _>(|i| 0.1 * i as f64));
        let mut text = Vec::new();
        write_predictions(&mut model, &data, 2, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        let found: Vec<f64> = text.lines().map(|line| line.parse().unwrap()).collect();
        assert_eq!(found, predict(&mut model, &data, 3).unwrap().values());
    }

    #[test]
    fn what_fails_leaves_the_file_as_it_was() {
        let path = std::env::temp_dir().join(format!("nnz-predictions-{}", std::process::id()));
        std::fs::write(&path, "old").unwrap();
        let mut model = Linear::<f64>::new(D);
        assert!(save_predictions(&mut model, &data::<f64>(5), 0, &path).is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "old");
        save_predictions(&mut model, &data::<f64>(5), 2, &path).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "0\n0\n0\n0\n0\n");
        std::fs::remove_file(&path).unwrap();
        let nowhere = path.join("scores");
        let error = save_predictions(&mut model, &data::<f64>(5), 2, &nowhere).unwrap_err();
        assert!(error.to_string().contains(&nowhere.display().to_string()), "{error}");
    }
}
