//! Any number of processes has the bits of threads, also in runs that are interrupted and resumed.

use super::Test;
use super::job::{Scratch, alone, job, printed, run};
use super::worker::{Arguments, CASES, Workers, train};
use nnz::store::OneProcess;
use std::fs;
use std::time::Duration;

pub(crate) const TESTS: [Test; 3] = [
    ("any_number_of_processes_has_the_bits_of_threads", any_number_has_the_bits_of_threads),
    ("a_process_without_a_launcher_is_a_group_of_one", a_process_is_a_group_of_one),
    ("a_killed_job_is_resumed_by_any_number", a_killed_job_is_resumed_by_any_number),
];

/// What worker 0 prints of these cases, from threads.
fn expected<'c>(cases: impl IntoIterator<Item = &'c str>) -> String {
    let bits = cases.into_iter().map(|case| {
        let workers = Workers::<OneProcess>::Threads(2);
        let bits = train(case, &Arguments::default(), workers).expect("it trains");
        format!("{case} {bits:016x}\n")
    });
    bits.collect()
}

fn any_number_has_the_bits_of_threads() {
    let expected = expected(CASES);
    let cases = CASES.join(",");
    // Whole parcels, and cut ones.
    for (n_workers, max_message) in [(1, 1 << 26), (2, 4096), (3, 64), (4, 1 << 26)] {
        let words = format!("cases={cases} max-message={max_message}");
        let found = printed(&mut job(n_workers, &words));
        assert_eq!(found, expected, "{n_workers} processes");
    }
}

fn a_process_is_a_group_of_one() {
    assert_eq!(printed(&mut alone("cases=machine-ftrl")), expected(["machine-ftrl"]));
}

fn a_killed_job_is_resumed_by_any_number() {
    for case in ["machine-ftrl", "clicks-svrg"] {
        let scratch = Scratch::new();
        let [saved, path] =
            ["saved", "run"].map(|name| scratch.path(&format!("{name}.safetensors")));
        let words =
            format!("cases={case} checkpoint={} accident=kill who=1 at=60", saved.display());
        let killed = run(&mut job(3, &words));
        assert!(!killed.status.success() && !killed.has_trained(), "{}", killed.output);
        assert!(killed.time < Duration::from_secs(10), "{:?}", killed.time);
        let expected = expected([case]);
        for n_workers in [1, 2, 4] {
            fs::copy(&saved, &path).expect("a checkpoint");
            let path = path.display();
            let words = format!("cases={case} checkpoint={path} resume={path}");
            let found = printed(&mut job(n_workers, &words));
            assert_eq!(found, expected, "{n_workers} processes");
        }
    }
}
