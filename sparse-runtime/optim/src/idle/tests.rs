use super::super::maps::{DriftMap, MatrixMap};
use super::*;

type History<M> = IdleHistory<M>;

fn map(momentum: f64, decay: f64) -> MatrixMap {
    MatrixMap::of_rows([1.0 - decay, momentum], [-decay, momentum])
}

fn close(a: MatrixMap, b: MatrixMap) {
    for (x, y) in a.0.iter().flatten().zip(b.0.iter().flatten()) {
        assert!((x - y).abs() <= 1e-13 * (1.0 + y.abs()), "{a:?} {b:?}");
    }
}

/// Every interval of a history equals the product of its steps one by one.
fn check(maps: &[MatrixMap]) {
    let mut history = History::default();
    for (n, step) in maps.iter().enumerate() {
        history.push(*step);
        for from in 0..=n + 1 {
            let slow = maps[from..=n].iter().fold(MatrixMap::IDENTITY, |acc, m| m.after(&acc));
            close(history.since(from as u64), slow);
        }
    }
}

#[test]
fn one_run() {
    check(&vec![map(0.9, 0.01); 150]);
}

#[test]
fn a_long_run_by_the_digits_of_its_length() {
    let mut history = History::default();
    history.push(map(0.3, 0.2));
    for _ in 0..300_000 {
        history.push(map(0.9, 1e-5));
    }
    for gap in [0, 1, 2, 63, 64, 65, 127, 128, 4095, 4096, 4097, 262_144, 270_000] {
        close(history.since(history.steps() - gap), map(0.9, 1e-5).power(gap));
    }
    let whole = map(0.9, 1e-5).power(300_000).after(&map(0.3, 0.2));
    close(history.since(0), whole);
}

#[test]
fn many_steps_at_once_and_some_of_them_taken_back() {
    let (first, second) = (map(0.9, 0.01), map(0.5, 0.1));
    for (count, kept) in [(1, 1), (2, 1), (63, 10), (64, 64), (5000, 70), (3, 0)] {
        let mut history = History::default();
        history.push_many(first, 3);
        history.push_many(second, count);
        let end = 3 + count;
        for from in 0..=end {
            let slow = (from..end).fold(MatrixMap::IDENTITY, |acc, t| {
                if t < 3 { first.after(&acc) } else { second.after(&acc) }
            });
            close(history.since(from), slow);
            // Up to any step of the newest run.
            if from <= 4 && end > 4 {
                let until = (from..4).fold(MatrixMap::IDENTITY, |acc, t| {
                    if t < 3 { first.after(&acc) } else { second.after(&acc) }
                });
                close(history.between(from, 4), until);
            }
        }
        history.take_back(3 + kept);
        assert_eq!(history.steps(), 3 + kept);
        history.push_many(first, 2);
        let all = first.power(2).after(&second.power(kept).after(&first.power(3)));
        close(history.since(0), all);
    }
}

/// The last of some steps that set a number.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Last(Option<u64>);

impl IdleMap for Last {
    const IDENTITY: Self = Last(None);
    const FORGETS: bool = true;

    fn after(&self, first: &Self) -> Self {
        Last(self.0.or(first.0))
    }

    fn write(&self, numbers: &mut Vec<f64>) {
        numbers.push(self.0.map_or(-1.0, |last| last as f64));
    }

    fn read(numbers: &[f64]) -> Option<Self> {
        let &[last] = numbers else { return None };
        Some(Last((last >= 0.0).then_some(last as u64)))
    }
}

#[test]
fn of_maps_that_forget_the_last_counts() {
    // Steps 3, 4 and 9 do nothing.
    let step = |t: u64| Last((t < 3 || t > 4 && t != 9).then_some(t / 2));
    let mut history = History::default();
    for t in 0..12 {
        history.push(step(t));
        history.forget_before(t);
        assert!(history.n_runs() <= 2);
        let last = (0..=t).rev().find_map(|t| step(t).0);
        assert_eq!((history.since(0), history.since(t + 1)), (Last(last), Last(None)));
    }
    assert_eq!((history.newest_run(), history.since(8)), (Some(10), Last(Some(5))));
    // Steps that are yet to come.
    history.push_many(Last(Some(7)), 3);
    assert_eq!(history.between(0, 12), Last(Some(5)));
    assert_eq!(history.between(0, 13), Last(Some(7)));
    history.take_back(13);
    assert_eq!((history.steps(), history.since(0)), (13, Last(Some(7))));
    history.push_many(Last(Some(8)), 2);
    history.take_back(13);
    assert_eq!((history.steps(), history.since(0)), (13, Last(Some(7))));
}

/// As many as the newest run is long, the same as maps: also where a run goes on, is taken back, or
/// follows one of the same map.
#[test]
fn scalar_powers_are_the_powers() {
    let map = |t: u64| DriftMap::of_scalar([1.0 - 0.01 * (t / 1500) as f64, -0.1]);
    let mut history = History::default();
    let check = |history: &History<DriftMap>| {
        let start = history.newest_run().unwrap();
        let scalars = history.newest_scalars();
        assert!(scalars.len() as u64 > history.steps() - start);
        for count in [0, 1, 2, 3, 700, 1023, 1024, 1025, 1400] {
            if count > history.steps() - start {
                break;
            }
            let [scale, shift] = history.since(history.steps() - count).scalar().unwrap();
            let found = scalars[count as usize];
            assert!((found[0] - scale).abs() < 1e-13, "{count}");
            assert!((found[1] - shift).abs() <= 1e-11 * shift.abs(), "{count}");
        }
    };
    for t in 0..4000 {
        history.push(map(t));
        check(&history);
    }
    let copy = History::of_runs(history.steps(), history.runs()).unwrap();
    let len = (history.steps() - history.newest_run().unwrap()) as usize;
    assert_eq!(copy.newest_scalars()[..=len], history.newest_scalars()[..=len]);
    // What is rounded is what was computed in `f64`.
    let narrow = IdleHistory::<_, f32>::of_runs(history.steps(), history.runs()).unwrap();
    for (narrow, wide) in narrow.newest_scalars().iter().zip(history.newest_scalars()) {
        assert_eq!(*narrow, wide.map(|number| number as f32));
    }
    history.push_many(map(3999), 900);
    check(&history);
    history.take_back(4000);
    check(&history);
    history.forget();
    assert_eq!(history.newest_scalars()[..2], [[1.0, 0.0], [0.98, -0.1]]);
    // Momentum: a state moves as well, and there is more to know than two numbers.
    let moving = MatrixMap::of_rows([0.9, 0.5], [-0.1, 0.5]);
    history.push(DriftMap { matrix: moving, drift: [-0.1; 2] });
    assert!(history.newest_scalars().is_empty());
    let decayed = MatrixMap::of_scale(0.9);
    assert_eq!(DriftMap { matrix: decayed, drift: [-0.1; 2] }.scalar(), None);
}

/// To the bit, in what is asked now and later.
#[test]
fn a_history_of_the_same_runs_is_the_same_history() {
    let step = |t: u64| map(0.9, [0.0, 0.01, 0.02][(t / 40) as usize % 3]);
    for (steps, forgotten) in [(0, 0), (1, 0), (39, 7), (300, 0), (300, 70), (300, 300)] {
        let mut original = History::default();
        (0..steps).for_each(|t| original.push(step(t)));
        original.forget_before(forgotten);
        let mut copy = History::of_runs(original.steps(), original.runs()).unwrap();
        for t in steps..steps + 300 {
            for from in [forgotten, (forgotten + t) / 2, t] {
                assert_eq!(copy.since(from), original.since(from), "{steps} {from}");
                let (start, powers) = copy.newest_powers().unwrap_or_default();
                let known = powers.get(((t - from) as usize).wrapping_sub(1));
                let known = known.filter(|_| from >= start);
                assert!(known.is_none_or(|map| *map == original.since(from)));
            }
            original.push(step(t));
            copy.push(step(t));
        }
    }
    let late = |first| (map(0.9, 0.1), first);
    assert!(History::of_runs(4, &[late(5)]).is_none());
    assert!(History::of_runs(9, &[late(5), late(4)]).is_none());
    assert!(History::of_runs(9, &[(Last(None), 1); 3]).is_none());
    let last = History::of_runs(9, &[(Last(Some(2)), 3), (Last(Some(3)), 8)]).unwrap();
    assert_eq!((last.since(0), last.between(0, 8)), (Last(Some(3)), Last(Some(2))));
}

#[test]
fn forgetting_the_past_keeps_the_rest() {
    let step = |t: u64| map(0.9, 0.001 * (t / 3) as f64);
    for from in 0..=40 {
        let mut history = History::default();
        (0..40).for_each(|t| history.push(step(t)));
        let runs = history.n_runs();
        history.forget_before(from);
        assert!(history.n_runs() == runs - (from as usize / 3).min(runs) || from >= 39);
        (40..60).for_each(|t| history.push(step(t)));
        for start in from..=60 {
            let slow = (start..60).fold(MatrixMap::IDENTITY, |acc, t| step(t).after(&acc));
            close(history.since(start), slow);
        }
    }
}

#[test]
fn a_rate_that_changes_at_every_step() {
    check(&(0..150).map(|t| map(0.9, 0.1 / (1.0 + t as f64))).collect::<Vec<_>>());
}

#[test]
fn runs_of_uneven_length() {
    let maps: Vec<_> = (0..40)
        .flat_map(|run| vec![map(0.5, 0.01 * (run % 7) as f64); 1 + (run * run) % 11])
        .collect();
    check(&maps);
}

#[test]
fn forgetting_keeps_the_clock() {
    let mut history = History::default();
    for t in 0..10 {
        history.push(map(0.9, 0.01 * t as f64));
    }
    history.forget();
    assert_eq!(history.since(10), MatrixMap::IDENTITY);
    history.push(map(0.5, 0.1));
    assert_eq!(history.since(10), map(0.5, 0.1));
    assert_eq!(history.steps(), 11);
}

/// Whatever is asked of a history is answered, in every build the same.
#[test]
fn intervals_and_counts_that_were_not_recorded_are_as_far_as_they_were() {
    let (first, second) = (map(0.9, 0.01), map(0.5, 0.1));
    let mut history = History::default();
    history.push_many(first, 3);
    history.push_many(second, 4);
    close(history.between(2, 99), history.since(2));
    close(history.between(99, 2), MatrixMap::IDENTITY);
    // Before the newest run.
    close(history.between(1, 3), first.power(2));
    close(history.between(0, 1), first);
    // More than there are, and more than the newest run.
    history.take_back(99);
    assert_eq!(history.steps(), 7);
    history.take_back(2);
    assert_eq!((history.steps(), history.n_runs()), (2, 1));
    close(history.since(0), first.power(2));
    // Steps that change nothing, after some that did.
    history.skip(5);
    assert_eq!(history.steps(), 7);
    close(history.since(1), first);
    close(history.since(4), MatrixMap::IDENTITY);
}
