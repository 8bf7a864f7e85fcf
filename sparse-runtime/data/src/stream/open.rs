//! Opening a stream: its files, its memory, and a first pass where one is needed.

use super::super::blocks::{io_error, open as open_file};
use super::super::file_stamp::FileStamp;
use super::super::text::{
    Chunk, ChunkColumn, ColumnKind, ColumnLayout, OnError, ReadOptions, ReadProgress, RowFormat,
    SkippedRow, Survey,
};
use super::super::{Classes, LabelStatistics, ReadError, ReadReport};
use super::blocks::units;
#[cfg(feature = "parquet")]
use super::columnar::SourceColumns;
use super::epoch_cache::EpochCache;
use super::feed::{Feed, Purpose};
use super::labels::{SeenLabels, add_rows, of_no_rows};
use super::{AnyFormat, Known, MIN_BUFFER, Sizes, Source, SourceFile};
use nnz_arrays::in_library;
use nnz_arrays::kernels::Parallel;
use nnz_step::model::InputRole;
use sparse_core::element::Float;
use std::fmt;
use std::io::Read;
use std::marker::PhantomData;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// Data that streams from text files of any size and number, in bounded memory.
///
/// | | default |
/// |---|---|
/// | [`buffer`](Stream::buffer) | 256 MiB for all blocks and samples together |
/// | [`parallel`](Stream::parallel) | one thread parses, another reads, a third lays samples out |
/// | [`on_error`](Stream::on_error) | [`OnError::Fail`] |
/// | [`cache_in`](Stream::cache_in) | every epoch parses anew |
///
/// ```
/// use nnz::data::libsvm::{IndexBase, Reader};
/// use nnz::data::stream::Stream;
/// use nnz::data::{Batches, BatchOptions, DataSource};
/// # let path = std::env::temp_dir().join(format!("nnz-stream-doc-{}.svm", std::process::id()));
/// # std::fs::write(&path, "1 1:0.5\n-1 2:1\n1 1:2\n")?;
///
/// let format = Reader::new().index_base(IndexBase::One).n_features(2);
/// let data = Stream::new(format).file(&path).buffer(1 << 20).open()?;
/// // A trainer takes it like a `Dataset`: `trainer.fit(&mut model, &data)?`.
/// let mut batches = data.batches(&[], &BatchOptions::default())?;
/// batches.start_epoch(0)?;
/// let mut n_batches = 0;
/// while batches.next_batch()?.is_some() {
///     n_batches += 1;
/// }
/// assert_eq!((n_batches, data.n_rows()), (3, Some(3)));
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # The order of an epoch
///
/// A shuffled order is random in two steps: blocks of text come in a random order, and the samples
/// of a pool of blocks are shuffled once more. A sample meets the samples of its pool, about a
/// quarter of the buffer, which are other blocks in every epoch. The order is a function of the
/// seed, the epoch, the files and the size of the buffer, not of the number of threads. A
/// compressed file is one unit of the order: use several, or decompress it. So is each row group of
/// a columnar file.
#[derive(Clone, Debug)]
pub struct Stream<F, T: Float = f32> {
    format: F,
    files: Vec<PathBuf>,
    buffer: usize,
    options: ReadOptions,
    classes: Wanted,
    cache: Option<PathBuf>,
    element: PhantomData<T>,
}

/// Whether labels become the ids of classes.
#[derive(Clone, Debug)]
enum Wanted {
    Numbers,
    Classes(Classes),
    FoundClasses,
}

impl<F: RowFormat<f32>> Stream<F> {
    /// A stream of `f32` without files.
    pub fn new(format: F) -> Self {
        Stream {
            format,
            files: Vec::new(),
            buffer: 256 << 20,
            options: ReadOptions::default(),
            classes: Wanted::Numbers,
            cache: None,
            element: PhantomData,
        }
    }
}

impl<T: Float, F> Stream<F, T> {
    /// Reads numbers as another element type.
    #[must_use]
    pub fn element<U: Float>(self) -> Stream<F, U> {
        let Stream { format, files, buffer, options, classes, cache, .. } = self;
        Stream { format, files, buffer, options, classes, cache, element: PhantomData }
    }

    /// Adds a file.
    #[must_use]
    pub fn file(mut self, path: impl Into<PathBuf>) -> Self {
        self.files.push(path.into());
        self
    }

    /// Adds files.
    #[must_use]
    pub fn files<P: Into<PathBuf>>(mut self, paths: impl IntoIterator<Item = P>) -> Self {
        self.files.extend(paths.into_iter().map(Into::into));
        self
    }

    /// The bytes for text and samples, all together, at least 1 MiB. A line may take an eighth of
    /// them, and so may a record batch of an Arrow file. Thread stacks and decompressors need more,
    /// and so does a batch that is larger than a pool; of a Parquet file a page of each column that
    /// is read, usually of up to 1 MiB.
    #[must_use]
    pub fn buffer(mut self, bytes: usize) -> Self {
        self.buffer = bytes;
        self
    }

    /// The number of threads that may parse, at most
    /// [`MAX_THREADS`](nnz_arrays::kernels::MAX_THREADS), and fewer if the buffer has no memory for
    /// their blocks. The result does not depend on it.
    #[must_use]
    pub fn parallel(mut self, parallel: Parallel) -> Self {
        self.options.parallel = parallel;
        self
    }

    /// The handling of unreadable samples, in each epoch.
    #[must_use]
    pub fn on_error(mut self, on_error: OnError) -> Self {
        self.options.on_error = on_error;
        self
    }

    /// The labels at the beginning of lines are these words, in byte order: each is read as its
    /// position among them, from zero. Any other is an error. For LibSVM, libFFM and Vowpal Wabbit;
    /// [`label_words`](crate::label_words) finds them.
    #[must_use]
    pub fn label_names(mut self, names: impl IntoIterator<Item = String>) -> Self {
        self.options.label_names = names.into_iter().collect();
        self
    }

    /// Keeps the samples that the first epoch parses in a file in this folder. Later epochs read it
    /// in place of the text: decompressing, parsing and hashing are done once. Samples and their
    /// order are the same.
    ///
    /// The file takes as much as the samples in memory: for a csr in `f32` eight bytes an entry and
    /// eight a sample. It has no name, or a name that is removed with the data, and does not
    /// outlive the process. Changes of the text files during parsing are an error, as without such
    /// a file; later changes are not seen.
    #[must_use]
    pub fn cache_in(mut self, folder: impl Into<PathBuf>) -> Self {
        self.cache = Some(folder.into());
        self
    }

    /// Calls `tell` with the progress of an epoch, in bytes of all files.
    #[must_use]
    pub fn progress(mut self, tell: impl Fn(&ReadProgress<'_>) + Send + Sync + 'static) -> Self {
        self.options.progress = Some(Arc::new(tell));
        self
    }

    /// Turns labels into the ids of these classes; another label is an error that names the line.
    #[must_use]
    pub fn classes(mut self, classes: Classes) -> Self {
        self.classes = Wanted::Classes(classes);
        self
    }

    /// Turns labels into the ids of the classes that occur. All files are read once before the
    /// first epoch for that.
    #[must_use]
    pub fn find_classes(mut self) -> Self {
        self.classes = Wanted::FoundClasses;
        self
    }
}

impl<T: Float, F: RowFormat<T> + Clone> Stream<F, T> {
    /// Opens the files. All of them are read once if the width of the data is unknown: declare
    /// index base and number of features to avoid that.
    ///
    /// # Errors
    ///
    /// [`ReadError::Io`], also for a folder in which no file can be created;
    /// [`ReadError::Threads`]; [`ReadError::Stream`] without files, for a pipe or a device, which
    /// cannot be read again, for a buffer of less than 1 MiB, for a format whose samples depend on
    /// earlier ones, and for classes without a label. If files are read, their faults.
    pub fn open(self) -> Result<StreamedDataset<T>, ReadError> {
        let refuse = |reason: &str| Err(ReadError::Stream { reason: reason.to_owned() });
        if self.files.is_empty() {
            return refuse("it has no files: name one with `.file(path)`");
        }
        if self.buffer < MIN_BUFFER {
            return refuse("its buffer is too small: give it 1 MiB at least");
        }
        self.options.parallel.check("Stream::parallel")?;
        if let Err(reason) = self.format.independent_rows() {
            return refuse(reason);
        }
        let mut format = self.format.clone();
        let mut classes = match &self.classes {
            Wanted::Classes(classes) => Some(classes.clone()),
            Wanted::Numbers | Wanted::FoundClasses => None,
        };
        let finds_classes = matches!(self.classes, Wanted::FoundClasses);
        let files = self.files.iter().map(|path| source_file(path.clone(), &self.format));
        let files = files.collect::<Result<Vec<_>, _>>()?;
        let (mut n_rows, mut rows, mut labels) = (None, None, None);
        let survey_format = format.survey_format();
        if survey_format.is_some() || finds_classes {
            let is_known = survey_format.is_none();
            let source =
                self.source(survey_format.unwrap_or_else(|| format.clone()), None, files.clone())?;
            let (survey, of_units, seen) = survey(&Arc::new(source), finds_classes)?;
            // A row that is only found to be wrong once base and width are known would be counted
            // and then skipped.
            let counts = is_known || self.options.on_error == OnError::Fail;
            n_rows = counts.then_some(survey.n_rows);
            rows = counts.then_some(of_units);
            // Those of numbers are none of class ids.
            let are_numbers = matches!(self.classes, Wanted::Numbers);
            labels = (counts && are_numbers).then_some(seen);
            format = format.settle(&survey);
            if finds_classes {
                classes = Some(Classes::of(survey.labels));
            }
        }
        let mut source = self.source(format, classes, files)?;
        let kept = self.cache.as_ref().map(|folder| EpochCache::new(folder, source.units.len()));
        source.epoch_cache = kept.transpose()?;
        if source.classes.is_some() && source.layout == source.parsed_layout {
            return refuse(
                "there is no label of one number a row that could be turned into class ids",
            );
        }
        if let Ok(known) = source.known.get_mut() {
            known.n_rows = n_rows;
            if let Some(rows) = rows {
                known.rows = rows.into_iter().map(Some).collect();
            }
            if let Some(labels) = labels {
                known.labels = labels;
            }
        }
        Ok(StreamedDataset { source: Arc::new(source) })
    }

    fn source(
        &self,
        format: F,
        classes: Option<Classes>,
        files: Vec<SourceFile>,
    ) -> Result<Source<T>, ReadError> {
        let sizes = Sizes::of_buffer(self.buffer);
        let units = units(&files, sizes.block);
        let parsed_layout = format.columns();
        let mut layout = parsed_layout.clone();
        let is_label = |column: &&mut ColumnLayout| {
            column.role == InputRole::Label && column.kind == ColumnKind::Dense(1)
        };
        if let (Some(_), Some(label)) = (&classes, layout.iter_mut().find(is_label)) {
            label.kind = ColumnKind::Ids(1);
        }
        let (none, unknown) = (vec![None; units.len()], vec![None; units.len()]);
        let (written, labels) =
            (vec![[false; 2]; layout.len()], SeenLabels::new(&layout, units.len()));
        let known = Known { units: none, rows: unknown, written, labels, ..Known::default() };
        Ok(Source {
            format: Arc::new(format) as Arc<dyn AnyFormat<T>>,
            files,
            units,
            sizes,
            options: self.options.clone(),
            classes,
            parsed_layout,
            layout,
            known: Mutex::new(known),
            bytes: Arc::default(),
            epoch_cache: None,
        })
    }
}

fn source_file<T: Float, F: RowFormat<T>>(
    path: PathBuf,
    format: &F,
) -> Result<SourceFile, ReadError> {
    /// Enough for the first line of most files.
    const HEAD: u64 = 1 << 16;
    let name = path.display().to_string();
    let io = |source| io_error(&name, source);
    let there = std::fs::metadata(&path).map_err(io)?;
    // Reading a pipe for the second time would wait for ever, or find nothing.
    if !there.is_file() && !there.is_dir() {
        let reason = format!(
            "`{name}` is a pipe or a device, and every epoch reads anew: give it files, or read it into memory"
        );
        return Err(ReadError::Stream { reason });
    }
    let (len, stamp) = (there.len(), FileStamp::of(&there));
    let mut head = Vec::new();
    #[cfg(feature = "parquet")]
    if let Some(columns) = SourceColumns::of(&path, format)? {
        return Ok(SourceFile { path, len, head, name, stamp, columns: Some(columns) });
    }
    let _ = format;
    open_file(&path)?.take(HEAD).read_to_end(&mut head).map_err(io)?;
    Ok(SourceFile {
        path,
        len,
        head,
        name,
        stamp,
        #[cfg(feature = "parquet")]
        columns: None,
    })
}

/// Reads everything once: returns the findings, the samples of each unit, and the labels.
fn survey<T: Float>(
    source: &Arc<Source<T>>,
    labels: bool,
) -> Result<(Survey, Vec<u64>, SeenLabels), ReadError> {
    in_library!(<T> survey_units::<T> => (
        source: &Arc<Source<T>>,
        labels: bool,
    ) -> Result<(Survey, Vec<u64>, SeenLabels), ReadError>)
}

fn survey_units<T: Float>(
    source: &Arc<Source<T>>,
    labels: bool,
) -> Result<(Survey, Vec<u64>, SeenLabels), ReadError> {
    let mut seen = SeenLabels::new(&source.layout, source.units.len());
    let mut of_unit = of_no_rows(&source.layout);
    let mut survey = Survey::default();
    let mut rows = vec![0; source.units.len()];
    let mut found = std::collections::BTreeSet::new();
    let mut skips = super::super::text::Skips::new(source.on_error());
    let mut feed =
        Feed::start(source, (0..source.units.len()).collect(), Vec::new(), Purpose::Samples)?;
    while let Some(block) = feed.next().map_err(|error| source.cause_of(error))? {
        for (place, problem) in block.faults {
            skips.add(place, problem)?;
        }
        survey.n_rows += block.rows.n_rows as u64;
        rows[block.unit] += block.rows.n_rows as u64;
        survey.widen(&block.rows);
        add_rows(&mut of_unit, &source.layout, &block.rows);
        if block.is_last {
            seen.add_unit(block.unit, &of_unit);
            of_unit = of_no_rows(&source.layout);
        }
        if labels {
            let columns = source.parsed_layout.iter().zip(&block.rows.columns);
            let mut labels = columns.filter(|(layout, _)| layout.role == InputRole::Label);
            if let Some((_, ChunkColumn::Dense { values, width: 1 })) = labels.next() {
                // Ordered as their bits are: which order that is does not matter here.
                found.extend(values.iter().map(|value| value.as_f64().to_bits()));
            }
        }
    }
    if survey.n_rows == 0 {
        let names: Vec<&str> = source.files.iter().map(|file| &file.name[..]).collect();
        return Err(ReadError::Empty { file: names.join(", ") });
    }
    survey.labels = found.into_iter().map(f64::from_bits).collect();
    Ok((survey, rows, seen))
}

/// Streamed data; see [`Stream`]. It is a [`DataSource`](crate::DataSource): code that trains
/// on a [`Dataset`](crate::Dataset) trains on it too.
#[derive(Clone)]
pub struct StreamedDataset<T: Float = f32> {
    pub(super) source: Arc<Source<T>>,
}

impl<T: Float> StreamedDataset<T> {
    /// The number of samples, once all of them have been read.
    pub fn n_rows(&self) -> Option<usize> {
        self.source.known().n_rows.and_then(|n_rows| usize::try_from(n_rows).ok())
    }

    /// The number of features: the width of the first csr input, or 0 without one.
    pub fn n_features(&self) -> usize {
        let width = |column: &ColumnLayout| match column.kind {
            ColumnKind::Csr(width) if column.role == InputRole::Input => width,
            _ => None,
        };
        self.source.layout.iter().find_map(width).unwrap_or_default()
    }

    /// The classes that the ids of the label stand for.
    pub fn classes(&self) -> Option<&Classes> {
        self.source.classes.as_ref()
    }

    /// Statistics of the labels, for each column of them that is not sparse, in order, without
    /// weights. Known once all samples have been read: at the opening if that takes a pass,
    /// otherwise after the first epoch.
    pub fn label_statistics(&self) -> Option<Vec<LabelStatistics>> {
        self.source.known().labels.all().map(<[_]>::to_vec)
    }

    /// The report of the current or last epoch: the index base, the samples skipped.
    pub fn report(&self) -> ReadReport {
        let names: Vec<&str> = self.source.files.iter().map(|file| &file.name[..]).collect();
        let skipped = self.source.known().skipped.clone();
        let first_skipped: Vec<SkippedRow> = skipped.first;
        ReadReport {
            index_base: self.source.format.known_base(),
            n_skipped: skipped.count,
            first_skipped,
            ..ReadReport::of_file(names.join(", "))
        }
    }
}

/// The content, one line a column.
impl<T: Float> fmt::Display for StreamedDataset<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.n_rows() {
            Some(n_rows) => write!(f, "{n_rows} rows streamed from {}", self.report())?,
            None => write!(f, "rows streamed from {}", self.report())?,
        }
        match Chunk::<T>::new(&self.source.layout).into_dataset(&self.source.layout) {
            Ok(empty) => empty.columns().iter().try_for_each(|column| write!(f, "\n  {column}")),
            Err(_) => Ok(()),
        }
    }
}

impl<T: Float> fmt::Debug for StreamedDataset<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
