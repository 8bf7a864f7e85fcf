//! The bar below the table of training, on a terminal alone.

use super::training_table::rate;
use console::Term;
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// The time between two drawings.
const BETWEEN_DRAWINGS: Duration = Duration::from_millis(100);

/// A line on the error stream that is drawn again and again, if that is a terminal.
#[derive(Debug)]
pub(crate) struct Bar {
    drawn: Option<Instant>,
    is_terminal: bool,
}

/// How far an epoch is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Advance {
    /// From one.
    pub(crate) epoch: u64,
    pub(crate) epochs: u64,
    pub(crate) samples: u64,
    /// Of the epoch, if they are known.
    pub(crate) all_samples: Option<u64>,
    /// Since the epoch began.
    pub(crate) seconds: f64,
}

impl Bar {
    pub(crate) fn new() -> Self {
        Bar { drawn: None, is_terminal: io::stderr().is_terminal() && !super::is_quiet() }
    }

    /// Whether there is one.
    pub(crate) fn is_shown(&self) -> bool {
        self.is_terminal
    }

    /// Draws the bar, unless it was drawn just before.
    pub(crate) fn draw(&mut self, advance: &Advance) {
        let is_new = self.drawn.is_none_or(|drawn| drawn.elapsed() >= BETWEEN_DRAWINGS);
        // Of the first steps of an epoch there is no saying how long the others take.
        let is_early = advance.seconds < BETWEEN_DRAWINGS.as_secs_f64();
        if self.is_terminal && is_new && !is_early {
            self.drawn = Some(Instant::now());
            let _ = write!(io::stderr(), "\r\x1b[K{}", advance.line(columns()));
        }
    }

    /// Takes the bar away, before a line is printed.
    pub(crate) fn clear(&mut self) {
        if self.drawn.take().is_some() {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.clear();
    }
}

impl Advance {
    /// The bar in a line of at most so many columns, of which the last one stays empty.
    fn line(&self, columns: usize) -> String {
        let Advance { epoch, epochs, samples, .. } = self;
        let pace = *samples as f64 / self.seconds;
        let head = format!("epoch {epoch}/{epochs}");
        let Some(all) = self.all_samples.filter(|all| *all > 0) else {
            return cut(format!("{head}  {samples} samples  {} samples/s", rate(pace)), columns);
        };
        let share = (*samples as f64 / all as f64).min(1.0);
        let left = (1.0 - share) * all as f64 / pace;
        let tail = format!("{:>3.0} %  {} samples/s  {left:.0} s left", 100.0 * share, rate(pace));
        let width = columns.saturating_sub(head.len() + tail.len() + 6).min(60);
        let full = (share * width as f64) as usize;
        let bar = format!("{}{}", "#".repeat(full), "-".repeat(width - full));
        cut(format!("{head} [{bar}] {tail}"), columns)
    }
}

fn cut(mut line: String, columns: usize) -> String {
    line.truncate(columns.saturating_sub(1));
    line
}

/// The columns of the terminal.
fn columns() -> usize {
    const USUAL: usize = 80;
    Term::stderr().size_checked().map_or(USUAL, |(_, columns)| usize::from(columns))
}
