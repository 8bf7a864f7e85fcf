//! What is printed: lines on the standard output and on the error stream, and text of files with
//! its escapes escaped.

pub(crate) mod bar;
mod epoch_line;
pub(crate) mod evaluation;
pub(crate) mod summary;
pub(crate) mod training_table;

use crate::Failure;
use crate::input::DataFiles;
pub(crate) use epoch_line::{EpochLine, ProgressPoint};
use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// Whether notes and progress are left out.
static QUIET: AtomicBool = AtomicBool::new(false);

/// Leaves notes and progress out from now on.
pub(crate) fn set_quiet(quiet: bool) {
    QUIET.store(quiet, Ordering::Relaxed);
}

/// Whether notes and progress are left out.
pub(crate) fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// A line on the error stream that is no warning and no error.
pub(crate) fn note(line: impl Display) {
    if !is_quiet() {
        tell(line);
    }
}

/// A line on the error stream. One that is closed is no reason to stop.
pub(crate) fn tell(line: impl Display) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Reads a file; says so on the error stream if it takes long. A terminal shows it only as long as
/// it takes.
pub(crate) fn reading<T>(files: &DataFiles, read: impl FnOnce() -> T) -> T {
    const LONG: Duration = Duration::from_millis(800);
    if is_quiet() {
        return read();
    }
    let (done, waiting) = mpsc::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            if waiting.recv_timeout(LONG) == Err(RecvTimeoutError::Timeout) {
                let is_terminal = io::stderr().is_terminal();
                let end = if is_terminal { "" } else { "\n" };
                let _ = write!(io::stderr(), "reading {files} …{end}");
                // Nothing is sent: it ends when the other side is dropped.
                let _ = waiting.recv();
                if is_terminal {
                    let _ = write!(io::stderr(), "\r\x1b[K");
                }
            }
        });
        let read = read();
        drop(done);
        read
    })
}

/// The error of a standard output that cannot be written, but for that of a reader who had enough.
pub(crate) fn written(result: io::Result<()>) -> Result<(), Failure> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(format!("the standard output cannot be written: {error}").into()),
        Ok(()) => Ok(()),
    }
}

/// Text of a file without what would change how a terminal shows what follows it: control
/// characters and directions of writing are escaped.
pub(crate) fn escaped(text: &str) -> String {
    let is_shown = |c: char| {
        let is_direction = matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        !c.is_control() && !is_direction
    };
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_shown(c) {
            shown.push(c);
        } else {
            shown.extend(c.escape_default());
        }
    }
    shown
}
