//! Two versions of the library in one process, in turns: `benches/against` builds and runs it.
//!
//! Arguments are parts of names that a row must have, and the number of pairs. `--self` holds both
//! sides to be equal, for when they are.

#[allow(dead_code)] // All here is work of one thread.
#[path = "../ratios/src/clock.rs"]
mod clock;

use clock::Clock;
use old_side::{Row, Work};
use std::error::Error;
use std::ops::RangeInclusive;
use std::process::ExitCode;

/// Pairs of turns of which the median is taken.
const PAIRS: usize = 9;

/// Rates of the new library over those of the old one.
const BOUNDS: RangeInclusive<f64> = 0.97..=f64::INFINITY;

/// The same where both are of the same source.
const SELF_BOUNDS: RangeInclusive<f64> = 0.98..=1.02;

fn main() -> ExitCode {
    match compare(&std::env::args().skip(1).collect::<Vec<_>>()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Prints a table; says whether each row is within its bounds.
fn compare(words: &[String]) -> Result<bool, Box<dyn Error>> {
    let bounds = if words.iter().any(|word| word == "--self") { SELF_BOUNDS } else { BOUNDS };
    let pairs = words.iter().find_map(|word| word.parse().ok()).unwrap_or(PAIRS).max(PAIRS);
    let parts: Vec<&String> =
        words.iter().filter(|word| *word != "--self" && word.parse::<usize>().is_err()).collect();
    println!("| row | old, ms | new, ms | ratio of rates | again |\n|---|---|---|---|---|");
    let (mut ratios, mut failed) = (Vec::new(), Vec::new());
    for (old, new) in old_side::rows()?.into_iter().zip(new_side::rows()?) {
        let name = new.0.clone();
        if !parts.iter().all(|part| name.contains(*part)) {
            continue;
        }
        let first = measure(&old, &new, pairs)?;
        let again = if bounds.contains(&first.ratio) {
            None
        } else {
            Some(measure(&old, &new, 3 * pairs)?)
        };
        let last = again.as_ref().unwrap_or(&first);
        if !bounds.contains(&last.ratio) {
            failed.push(name.clone());
        }
        let [old_ms, new_ms] = last.seconds.map(|seconds| 1e3 * seconds);
        let again = again.as_ref().map_or(String::new(), |again| format!("{:.3}", again.ratio));
        println!("| {name} | {old_ms:.2} | {new_ms:.2} | {:.3} | {again} |", first.ratio);
        ratios.push(last.ratio);
    }
    let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
    println!("\n{} rows, their mean is {mean:.3}", ratios.len());
    for name in &failed {
        println!("out of {bounds:?} twice: {name}");
    }
    Ok(failed.is_empty())
}

/// What a row came to.
struct Measured {
    /// The median, over the pairs, of the old library's time over the new one's.
    ratio: f64,
    /// Medians of a turn, of the old library and of the new one.
    seconds: [f64; 2],
}

/// A pair is two turns of each side. The side that begins and ends it changes from pair to pair.
fn measure(old: &Row, new: &Row, pairs: usize) -> Result<Measured, Box<dyn Error>> {
    let mut sides: [Work; 2] = [(old.1)()?, (new.1)()?];
    // Touches the memory.
    for work in &mut sides {
        work()?;
    }
    let mut seconds = [Vec::new(), Vec::new()];
    for pair in 0..pairs {
        let mut times = [0.0; 2];
        for turn in 0..4 {
            let side = (turn + 1) / 2 % 2 ^ pair % 2;
            let mut result = Ok(());
            times[side] += Clock::Thread.time(|| result = sides[side]());
            result?;
        }
        for (list, time) in seconds.iter_mut().zip(times) {
            list.push(time / 2.0);
        }
    }
    let ratio = seconds[0].iter().zip(&seconds[1]).map(|(old, new)| old / new).collect();
    Ok(Measured { ratio: median(ratio), seconds: seconds.map(median) })
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 { values[middle] } else { (values[middle - 1] + values[middle]) / 2.0 }
}
