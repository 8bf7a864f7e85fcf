//! A workload: the same work, done by several contestants in turn.

use crate::clock::Clock;
use crate::data::Random;

pub type Error = Box<dyn std::error::Error>;

/// The head of the table that [`Named::measure`] gives the rows of. The ratio is the second
/// contestant's time over ours, and so is the number in brackets behind each of the others: above 1
/// ours is faster.
pub const HEADER: &str = "\
| workload | unit | ours | against | its rate | ratio | others |
|---|---|---|---|---|---|---|";

/// A workload by name, which is made only if it is chosen.
pub struct Named<'a> {
    pub name: String,
    make: Box<dyn FnOnce() -> Result<Workload<'a>, Error> + 'a>,
}

impl<'a> Named<'a> {
    pub fn new(
        name: impl Into<String>,
        make: impl FnOnce() -> Result<Workload<'a>, Error> + 'a,
    ) -> Self {
        Named { name: name.into(), make: Box::new(make) }
    }

    /// Runs it for some rounds; gives its row of the table.
    pub fn measure(self, rounds: usize) -> Result<String, Error> {
        let mut workload = (self.make)()?;
        workload.check()?;
        let measured = workload.measure(rounds);
        Ok(format!("| {}{} {measured}", self.name, workload.note))
    }
}

/// What is done, how much of it, and by whom.
pub struct Workload<'a> {
    unit: &'static str,
    work: f64,
    clock: Clock,
    tolerance: f64,
    /// How often each runs before it is measured.
    warm_up: usize,
    /// What results are, where they are shown.
    result: Option<&'static str>,
    /// What was found out when it was made, behind its name.
    note: String,
    contestants: Vec<Contestant<'a>>,
}

struct Contestant<'a> {
    name: &'static str,
    work: Box<dyn Work + 'a>,
}

/// What a contestant keeps from round to round, does in each, and has at the end.
trait Work {
    fn run(&mut self);
    fn result(&self) -> f64;
}

struct Closures<S, R, F> {
    state: S,
    run: R,
    result: F,
}

impl<S, R: FnMut(&mut S), F: Fn(&S) -> f64> Work for Closures<S, R, F> {
    fn run(&mut self) {
        (self.run)(&mut self.state);
    }

    fn result(&self) -> f64 {
        (self.result)(&self.state)
    }
}

impl<'a> Workload<'a> {
    /// `work` of `unit · s` a run: `per_second("M samples/s", 0.2)` if it handles 200,000 samples.
    pub fn per_second(unit: &'static str, work: f64) -> Self {
        let (clock, tolerance) = (Clock::Thread, 1e-4);
        let (result, note, contestants) = (None, String::new(), Vec::new());
        Workload { unit, work, clock, tolerance, warm_up: 1, result, note, contestants }
    }

    /// Takes the time of the wall: several threads work.
    pub fn wall(mut self) -> Self {
        self.clock = Clock::Wall;
        self
    }

    /// Shows the last result of each contestant in brackets behind its rate, by this name: where
    /// they may not be the same.
    pub fn showing(mut self, result: &'static str) -> Self {
        self.result = Some(result);
        self
    }

    /// Says something behind the name of the workload, which was not known before it was made.
    pub fn note(mut self, note: String) -> Self {
        self.note = note;
        self
    }

    /// How far results may differ, relative to the first contestant's; 10⁻⁴ if not said.
    #[allow(dead_code)] // Sums in another order are closer than that; trained models may not be.
    pub fn tolerance(mut self, tolerance: f64) -> Self {
        self.tolerance = tolerance;
        self
    }

    /// Has each run so often before it is measured, where it settles by and by; once if not said.
    pub fn warm_up(mut self, runs: usize) -> Self {
        self.warm_up = runs;
        self
    }

    /// One more contestant: the first is ours, the second what it is measured against, any others
    /// are shown beside. `run` does the work once; `result` is some number that all must agree on,
    /// whose cost is not measured ([`fingerprint`], or a loss).
    pub fn contestant<S: 'a>(
        mut self,
        name: &'static str,
        state: S,
        run: impl FnMut(&mut S) + 'a,
        result: impl Fn(&S) -> f64 + 'a,
    ) -> Self {
        self.contestants.push(Contestant { name, work: Box::new(Closures { state, run, result }) });
        self
    }

    /// Runs each, which also warms up, and compares what they have.
    fn check(&mut self) -> Result<(), Error> {
        let mut first = None;
        for contestant in &mut self.contestants {
            (0..self.warm_up).for_each(|_| contestant.work.run());
            let result = contestant.work.result();
            let expected = *first.get_or_insert(result);
            // Not `>`, which NaN would pass.
            if !((result - expected).abs() <= self.tolerance * expected.abs()) {
                return Err(format!("`{}` has {result}, not {expected}", contestant.name).into());
            }
        }
        Ok(())
    }

    /// Rounds are even in number: one in some order, the next one in the reverse.
    fn measure(&mut self, rounds: usize) -> String {
        let mut seconds = vec![Vec::new(); self.contestants.len()];
        let (mut random, mut order) = (Random(1), Vec::from_iter(0..seconds.len()));
        for round in 0..rounds.max(1).next_multiple_of(2) {
            // In another order each time: a contestant finds in the caches what the one before it
            // left there. Of those that read the same arrays the one that comes first pays for the
            // others, so that each is as often before another as behind it.
            if round % 2 == 1 {
                order.reverse();
            } else {
                for place in (1..order.len()).rev() {
                    order.swap(place, (random.bits() % (place as u64 + 1)) as usize);
                }
            }
            for &contestant in &order {
                let work = &mut self.contestants[contestant].work;
                seconds[contestant].push(self.clock.time(|| work.run()));
            }
        }
        let rate = |place: usize| {
            let rate = show(self.work / median(seconds[place].clone()));
            match self.result {
                Some(name) => {
                    format!("{rate} ({name} {:.4})", self.contestants[place].work.result())
                }
                None => rate,
            }
        };
        let ratio = |place: usize| {
            let both = |of: usize| seconds[of].chunks(2).map(|two| two.iter().sum::<f64>());
            format!(
                "{:.2}",
                median(both(place).zip(both(0)).map(|(its, ours)| its / ours).collect())
            )
        };
        let others: Vec<String> = (2..seconds.len())
            .map(|place| {
                format!("{} {} ({})", self.contestants[place].name, rate(place), ratio(place))
            })
            .collect();
        format!(
            "| {} | {} | {} | {} | {} | {} |",
            self.unit,
            rate(0),
            self.contestants[1].name,
            rate(1),
            ratio(1),
            others.join(" · ")
        )
    }
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

/// A sum that tells arrays apart, and the order of their elements.
pub fn fingerprint(values: impl IntoIterator<Item = f32>) -> f64 {
    values
        .into_iter()
        .enumerate()
        .map(|(i, value)| f64::from(value) * (1.0 + (i % 61) as f64))
        .sum()
}
