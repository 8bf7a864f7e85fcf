//! Two programs in turn: each is a process that trains an epoch when it is told to, and answers
//! with the seconds.

#[allow(dead_code)] // Those of several threads are measured by the wall, and none is here.
#[path = "../../ratios/src/clock.rs"]
mod clock;

use crate::models::Data;
use crate::rows::{Epoch, rows};
use clock::Clock;
use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

const ROUNDS: usize = 11;

/// For each line, the name of a row, one epoch: answers with its samples a second. Another name
/// makes another model.
pub fn serve() -> Result<(), Box<dyn Error>> {
    let rows = rows(Box::leak(Box::new(Data::new()?)));
    let mut current: Option<(String, Epoch, usize)> = None;
    println!("{}", rows.iter().map(|row| row.name.as_str()).collect::<Vec<_>>().join("\t"));
    for line in std::io::stdin().lock().lines() {
        let name = line?;
        if current.as_ref().is_none_or(|(of, ..)| *of != name) {
            // The model before goes first: two tables need not have room.
            drop(current.take());
            let row = rows.iter().find(|row| row.name == name);
            let row = row.ok_or_else(|| format!("no row is called `{name}`"))?;
            let mut epoch = row.make()?;
            // Touches the memory, and ends the choice between one thread and several.
            epoch()?;
            current = Some((name, epoch, row.samples));
        }
        let Some((_, epoch, samples)) = &mut current else { continue };
        let mut result = Ok(());
        let seconds = Clock::Thread.time(|| result = epoch());
        result?;
        println!("{}", *samples as f64 / seconds);
    }
    Ok(())
}

/// A program that serves.
struct Server {
    child: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
    names: Vec<String>,
}

impl Server {
    fn new(program: &Path) -> Result<Self, Box<dyn Error>> {
        let mut child = Command::new(program)
            .arg("--serve")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{}: {error}", program.display()))?;
        let orders = child.stdin.take().ok_or("the pipe is there")?;
        let answers = child.stdout.take().ok_or("the pipe is there")?;
        let mut server =
            Server { child, orders, answers: BufReader::new(answers), names: Vec::new() };
        server.names = server.answer()?.split('\t').map(str::to_owned).collect();
        Ok(server)
    }

    fn answer(&mut self) -> Result<String, Box<dyn Error>> {
        let mut line = String::new();
        if self.answers.read_line(&mut line)? == 0 {
            return Err("a program ended before it answered".into());
        }
        Ok(line.trim_end().to_owned())
    }

    /// The samples a second of an epoch.
    fn rate(&mut self, row: &str) -> Result<f64, Box<dyn Error>> {
        writeln!(self.orders, "{row}")?;
        Ok(self.answer()?.parse()?)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Measures this program, against another if there is one.
pub fn measure(other: Option<&String>, words: &[String]) -> Result<(), Box<dyn Error>> {
    let rounds = words.iter().find_map(|word| word.parse::<usize>().ok()).unwrap_or(ROUNDS);
    let filters: Vec<&String> =
        words.iter().filter(|word| word.parse::<usize>().is_err()).collect();
    let mut programs = vec![Server::new(&std::env::current_exe()?)?];
    if let Some(other) = other {
        programs.push(Server::new(Path::new(other))?);
    }
    match other {
        Some(_) => println!("| row | M samples/s | other | ratio |\n|---|---|---|---|"),
        None => println!("| row | M samples/s |\n|---|---|"),
    }
    let names = programs[0].names.clone();
    for name in names.iter().filter(|name| filters.iter().all(|part| name.contains(*part))) {
        let mut rates = vec![Vec::new(); programs.len()];
        // Pairs of rounds: one in the order of the programs, one in the reverse.
        for round in 0..rounds.max(1).next_multiple_of(2) {
            let mut order: Vec<usize> = (0..programs.len()).collect();
            if round % 2 == 1 {
                order.reverse();
            }
            for place in order {
                rates[place].push(programs[place].rate(name)?);
            }
        }
        let million = |place: usize| show(median(rates[place].clone()) / 1e6);
        if programs.len() == 1 {
            println!("| {name} | {} |", million(0));
            continue;
        }
        // Of the time of both rounds of a pair.
        let seconds = |place: usize| {
            rates[place].chunks(2).map(|two| two.iter().map(|rate| rate.recip()).sum::<f64>())
        };
        let ratio = median(seconds(1).zip(seconds(0)).map(|(its, ours)| its / ours).collect());
        println!("| {name} | {} | {} | {ratio:.2} |", million(0), million(1));
    }
    Ok(())
}

/// Three digits.
fn show(rate: f64) -> String {
    match rate {
        100.0.. => format!("{rate:.0}"),
        10.0.. => format!("{rate:.1}"),
        _ => format!("{rate:.2}"),
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 { values[middle] } else { (values[middle - 1] + values[middle]) / 2.0 }
}
