//! An epoch over a file that is read anew, in a buffer of a quarter of its size, against the same
//! file read whole before the epoch, and the memory that either takes.

use crate::data::Data;
use crate::workload::{Error, Named, Workload};
use nnz::data::libsvm::{self, IndexBase, Reader};
use nnz::data::stream::{Stream, StreamedDataset};
use nnz::data::{ColumnValues, DataSource, Dataset, Delimited, Hashing};
use nnz::prelude::*;
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;
use std::rc::Rc;

graph! {
    /// The probability of a click.
    model Clicks {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        let score = dot(x, w);
        loss logistic(score, y);
    }
}

/// How many times as large as the buffer the file is.
const TIMES: usize = 4;

/// A file of text, removed in the end.
struct Text(PathBuf);

impl Drop for Text {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

pub fn workloads(data: &Data) -> Vec<Named<'_>> {
    vec![anew(data), parsed_once(data)]
}

/// An epoch that parses.
fn anew(data: &Data) -> Named<'_> {
    Named::new("stream clicks", move || {
        let name = format!("nnz-ratios-{}.svm", std::process::id());
        let text = Rc::new(Text(std::env::temp_dir().join(name)));
        libsvm::write(&text.0, data.log(20)?)?;
        let bytes = fs::metadata(&text.0)?.len() as usize;
        let whole = Rc::clone(&text);
        let (streamed, read) = (
            move || -> Result<f64, Error> {
                let stream = Stream::new(reader()).file(&text.0).buffer(bytes / TIMES);
                epoch(&stream.open()?)
            },
            move || -> Result<f64, Error> { epoch::<Dataset>(&reader().read_path(&whole.0)?) },
        );
        let mebibytes = |bytes: usize| bytes >> 20;
        let note = format!(
            " ({} MiB; at the peak {} MiB more, in memory {} MiB; the buffer is {} MiB)",
            mebibytes(bytes),
            mebibytes(added_memory(&streamed)?),
            mebibytes(added_memory(&read)?),
            mebibytes(bytes / TIMES),
        );
        let contestant = |epoch: &dyn Fn() -> Result<f64, Error>| epoch().unwrap_or(f64::NAN);
        Ok(Workload::per_second("MB/s", bytes as f64 / 1e6)
            .wall()
            .note(note)
            // Rows come in another order.
            .tolerance(0.05)
            .contestant("nnz", 0.0, move |loss| *loss = contestant(&streamed), |loss| *loss)
            .contestant("in memory", 0.0, move |loss| *loss = contestant(&read), |loss| *loss))
    })
}

/// An epoch after the first, of a table whose columns are hashed, by a stream that keeps what it
/// has parsed.
fn parsed_once(data: &Data) -> Named<'_> {
    Named::new("stream csv of clicks, a later epoch", move || {
        let (text, bytes, format) = table(data)?;
        let stream = || Stream::new(format.clone()).file(&text.0).buffer(bytes / TIMES);
        let parsed = stream().open()?;
        let kept = stream().cache_in(std::env::temp_dir()).open()?;
        epoch(&kept)?;
        let of =
            |data: StreamedDataset| move |loss: &mut f64| *loss = epoch(&data).unwrap_or(f64::NAN);
        Ok(Workload::per_second("MB/s", bytes as f64 / 1e6)
            .wall()
            .contestant("nnz", 0.0, of(kept), |loss| *loss)
            // The text is there as long as this is.
            .contestant("parsed anew", 0.0, of(parsed), move |loss| (*loss, &text).0))
    })
}

/// The log of clicks as a table: the label and a column for each entry of a row.
fn table(data: &Data) -> Result<(Text, usize, Delimited), Error> {
    let log = data.log(20)?;
    let (Some(features), Some(ColumnValues::Dense(labels))) = (log.features(), log.labels()) else {
        return Err("the log has features and labels".into());
    };
    let mut text = String::new();
    for (row, label) in features.iter_rows().zip(labels.values()) {
        write!(text, "{label}")?;
        for (column, _) in row {
            write!(text, ",{column:x}")?;
        }
        text.push('\n');
    }
    let file = Text(std::env::temp_dir().join(format!("nnz-ratios-{}.csv", std::process::id())));
    fs::write(&file.0, &text)?;
    let mut format = Delimited::csv(Hashing::new(20)?).label("y");
    for column in 0..39 {
        format = format.categorical(&format!("c{column}"));
    }
    Ok((file, text.len(), format))
}

fn reader() -> Reader {
    Reader::new().index_base(IndexBase::One).n_features(1 << 20)
}

/// The loss of an epoch.
fn epoch<S: DataSource<f32>>(data: &S) -> Result<f64, Error> {
    let mut model = Clicks::new(dims! { d: 1 << 20 }, Seed(0))?;
    let mut trainer = Trainer::new(AdaGrad::default()).epochs(1).progress(Progress::Silent);
    let report = trainer.fit(&mut model, data)?;
    Ok(report.last().ok_or("there was an epoch")?.loss)
}

/// The bytes by which the memory of this process grows at the most while something is done; 0 where
/// the system does not tell.
fn added_memory(work: &dyn Fn() -> Result<f64, Error>) -> Result<usize, Error> {
    // From here on the peak is counted.
    if fs::write("/proc/self/clear_refs", "5").is_err() {
        return work().map(|_| 0);
    }
    let before = memory("VmRSS:")?;
    work()?;
    Ok(memory("VmHWM:")?.saturating_sub(before))
}

/// What the system says of this process, in bytes.
fn memory(field: &str) -> Result<usize, Error> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let kibibytes = line.and_then(|line| line.split_whitespace().next()).ok_or("no such field")?;
    Ok(kibibytes.parse::<usize>()? << 10)
}
