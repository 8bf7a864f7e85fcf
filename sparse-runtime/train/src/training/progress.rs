//! Progress of a run on the terminal.

use super::report::EpochReport;
#[cfg(feature = "progress")]
use indicatif::{ProgressBar, ProgressStyle};
use nnz_data::BytesRead;
#[cfg(feature = "progress")]
use std::io::IsTerminal;
use std::io::{self, Write};
#[cfg(feature = "progress")]
use std::time::{Duration, Instant};

/// What a run prints, always to the error stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Progress {
    /// A bar if the error stream is a terminal, otherwise lines.
    #[default]
    Auto,
    /// A bar within the epoch and a line after it. Needs the feature `progress`; lines without it.
    Bar,
    /// A bar within the epoch if the error stream is a terminal, otherwise nothing: for programs
    /// that print lines of their own.
    Within,
    /// A line an epoch.
    Lines,
    /// Nothing.
    Silent,
}

/// The largest number of batches between two updates of the bar: a step may be much shorter than an
/// update.
#[cfg(feature = "progress")]
const STRIDE: u64 = 1024;

/// The target time between two updates; slow batches come with fewer batches between them.
#[cfg(feature = "progress")]
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

/// Progress at work.
pub(super) struct Reporter {
    lines: bool,
    #[cfg(feature = "progress")]
    bar: Option<ProgressBar>,
    /// Batches since the last update, or `u64::MAX` without a bar.
    #[cfg(feature = "progress")]
    waiting: u64,
    /// Batches between two updates.
    #[cfg(feature = "progress")]
    stride: u64,
    #[cfg(feature = "progress")]
    looked: Instant,
    /// The bytes read of the files, for an epoch with an unknown number of batches.
    #[cfg(feature = "progress")]
    read: Option<BytesRead>,
}

impl Reporter {
    pub(super) fn new(progress: Progress) -> Self {
        #[cfg(feature = "progress")]
        let is_bar = match progress {
            Progress::Auto | Progress::Within => io::stderr().is_terminal(),
            Progress::Bar => true,
            Progress::Lines | Progress::Silent => false,
        };
        Reporter {
            lines: !matches!(progress, Progress::Silent | Progress::Within),
            #[cfg(feature = "progress")]
            bar: is_bar.then(|| ProgressBar::new(0)),
            #[cfg(feature = "progress")]
            waiting: if is_bar { 0 } else { u64::MAX },
            #[cfg(feature = "progress")]
            stride: 1,
            #[cfg(feature = "progress")]
            looked: Instant::now(),
            #[cfg(feature = "progress")]
            read: None,
        }
    }

    /// Called before an epoch: of `n_batches`, if known, otherwise of files with known sizes.
    pub(super) fn start_epoch(
        &mut self,
        epoch: u64,
        epochs: u64,
        n_batches: Option<u64>,
        read: Option<BytesRead>,
    ) {
        #[cfg(feature = "progress")]
        if let Some(bar) = &self.bar {
            bar.reset();
            self.read = read.filter(|_| n_batches.is_none());
            let total = n_batches.or(self.read.as_ref().map(BytesRead::total));
            bar.set_style(style(match (n_batches, total) {
                (Some(_), _) => BATCHES,
                (None, Some(_)) => BYTES,
                (None, None) => UNKNOWN,
            }));
            match total {
                Some(total) => bar.set_length(total),
                None => bar.unset_length(),
            }
            bar.set_message(format!("epoch {}/{epochs}", epoch + 1));
        }
        #[cfg(not(feature = "progress"))]
        let _ = (epoch, epochs, n_batches, read);
    }

    /// Called after some batches.
    #[inline(always)]
    pub(super) fn advance(&mut self, n_batches: u64) {
        #[cfg(feature = "progress")]
        if self.waiting != u64::MAX {
            self.waiting += n_batches;
            if self.waiting >= self.stride {
                self.move_bar();
            }
        }
        #[cfg(not(feature = "progress"))]
        let _ = n_batches;
    }

    #[cfg(feature = "progress")]
    #[cold]
    fn move_bar(&mut self) {
        if let Some(bar) = &self.bar {
            match &self.read {
                Some(read) => bar.set_position(read.bytes()),
                None => bar.inc(self.waiting),
            }
        }
        self.waiting = 0;
        let now = Instant::now();
        self.stride = if now - self.looked < BETWEEN_LOOKS {
            (2 * self.stride).min(STRIDE)
        } else {
            (self.stride / 2).max(1)
        };
        self.looked = now;
    }

    /// Called after an epoch.
    pub(super) fn end_epoch(&mut self, report: &EpochReport) {
        #[cfg(feature = "progress")]
        if let Some(bar) = &self.bar {
            self.waiting = 0;
            if self.lines {
                bar.suspend(|| print(report));
            } else {
                // The next line is the program's.
                bar.finish_and_clear();
            }
            return;
        }
        if !self.lines {
            return;
        }
        print(report);
    }
}

#[cfg(feature = "progress")]
impl Drop for Reporter {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// The styles of bars: for a known number of batches, for files, and for neither.
#[cfg(feature = "progress")]
const BATCHES: &str = "{msg} {wide_bar} {pos}/{len} batches, {eta} left";
#[cfg(feature = "progress")]
const BYTES: &str = "{msg} {wide_bar} {binary_bytes}/{binary_total_bytes}, {eta} left";
#[cfg(feature = "progress")]
const UNKNOWN: &str = "{msg} {spinner} {pos} batches";

/// A test checks templates; a bar of the default style is no reason to stop training.
#[cfg(feature = "progress")]
fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

/// A closed stream is ignored.
fn print(report: &EpochReport) {
    let _ = writeln!(io::stderr(), "{report}");
}

#[cfg(all(test, feature = "progress"))]
mod tests {
    use super::*;
    use nnz_data::libsvm::{IndexBase, Reader};
    use nnz_data::stream::Stream;
    use nnz_data::{BatchOptions, Batches, DataSource};

    #[test]
    fn templates_are_valid() {
        for template in [BATCHES, BYTES, UNKNOWN] {
            ProgressStyle::with_template(template).unwrap();
        }
    }

    /// An epoch of unknown length shows the bytes of its files, a later one its batches.
    #[test]
    fn a_stream_is_told_in_bytes_until_its_batches_are_known() {
        let path = std::env::temp_dir().join(format!("nnz-progress-{}.svm", std::process::id()));
        let text = "1 1:1\n".repeat(3000);
        std::fs::write(&path, &text).unwrap();
        let format = Reader::new().index_base(IndexBase::One).n_features(1);
        let data = Stream::new(format).file(&path).buffer(1 << 20).open().unwrap();
        let mut batches = data.batches(&[], &BatchOptions::default()).unwrap();
        let mut reporter = Reporter::new(Progress::Bar);
        for (epoch, length) in [(0, text.len() as u64), (1, 3000)] {
            batches.start_epoch(epoch).unwrap();
            reporter.start_epoch(epoch, 2, Batches::n_batches(&batches), batches.bytes_read());
            while batches.next_batch().unwrap().is_some() {
                reporter.advance(1);
            }
            reporter.move_bar();
            let bar = reporter.bar.as_ref().unwrap();
            assert_eq!((bar.length(), bar.position()), (Some(length), length));
        }
        std::fs::remove_file(path).unwrap();
    }
}
