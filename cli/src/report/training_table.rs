//! The table that training prints: two lines of titles, and rows of fixed columns within 80.

use std::fmt::Write as _;

/// The columns of the table: those of losses and metrics differ from run to run.
#[derive(Clone, Debug)]
pub(crate) struct TrainingTable {
    /// The two lines of each title.
    measured: Vec<[&'static str; 2]>,
}

/// A row of the table.
#[derive(Clone, Debug, Default)]
pub(crate) struct TableRow {
    /// From one.
    pub(crate) epoch: u64,
    /// Whether it is the best so far on the test data.
    pub(crate) is_best: bool,
    /// The samples of the epoch.
    pub(crate) samples: u64,
    /// The losses and metrics, in the order of the titles; those that are not known are left out.
    pub(crate) measured: Vec<Option<f64>>,
    /// Of the epoch.
    pub(crate) samples_per_s: f64,
    /// Since training began.
    pub(crate) seconds: f64,
}

impl TrainingTable {
    pub(crate) fn new(measured: Vec<[&'static str; 2]>) -> Self {
        TrainingTable { measured }
    }

    /// The two lines of titles.
    pub(crate) fn titles(&self) -> String {
        let line = |number: usize| {
            let fixed = [["", "", "samples", ""], ["epoch", "samples", "a second", "seconds"]];
            let [epoch, samples, rate, seconds] = fixed[number];
            let mut text = format!("{epoch:>5} {samples:>10}");
            for title in &self.measured {
                push(&mut text, width(title), title[number]);
            }
            push(&mut text, 10, rate);
            push(&mut text, 8, seconds);
            text.trim_end().to_owned()
        };
        format!("{}\n{}", line(0), line(1))
    }

    /// The line of a row.
    pub(crate) fn line(&self, row: &TableRow) -> String {
        let mark = if row.is_best { '*' } else { ' ' };
        let mut text = format!("{:>5}{mark}{:>10}", row.epoch, row.samples);
        for (position, title) in self.measured.iter().enumerate() {
            let value = row.measured.get(position).copied().flatten();
            push(&mut text, width(title), &value.map_or_else(String::new, number));
        }
        push(&mut text, 10, &rate(row.samples_per_s));
        let digits = if row.seconds < 1000.0 { 2 } else { 0 };
        push(&mut text, 8, &format!("{:.digits$}", row.seconds));
        text
    }
}

/// The width of a column: a number of eight characters and a blank, more where the title is longer.
fn width(title: &[&str; 2]) -> usize {
    title.iter().map(|line| line.len() + 1).fold(9, usize::max)
}

/// Appends a field, right-aligned, after at least one blank.
fn push(text: &mut String, width: usize, field: &str) {
    // A string takes whatever is written to it.
    let _ = write!(text, " {field:>width$}", width = width - 1);
}

/// A loss or a metric in eight characters.
fn number(value: f64) -> String {
    let digits = (0..=6).rev().find(|digits| format!("{value:.digits$}").len() <= 8);
    match digits {
        Some(digits) if value == 0.0 || value.abs() >= 1e-4 => format!("{value:.digits$}"),
        _ => format!("{value:.1e}"),
    }
}

/// A number of samples a second: `3.20 M`.
pub(crate) fn rate(samples_per_s: f64) -> String {
    match samples_per_s {
        rate if !rate.is_finite() => String::new(),
        rate if rate >= 1e6 => format!("{:.2} M", rate / 1e6),
        rate if rate >= 1e4 => format!("{:.0} k", rate / 1e3),
        rate => format!("{rate:.0}"),
    }
}
