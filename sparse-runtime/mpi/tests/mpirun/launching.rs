//! Workers that do not belong together do not train together.

use super::Test;
use super::job::{alone, job, run};

pub(crate) const TESTS: [Test; 4] = [
    ("workers_of_other_settings_end_with_the_setting", workers_of_other_settings_end),
    ("a_worker_of_more_epochs_ends_the_job", a_worker_of_more_epochs_ends_the_job),
    ("another_number_of_workers_than_required_is_refused", another_number_is_refused),
    ("the_launcher_of_another_library_is_refused", another_launcher_is_refused),
];

fn workers_of_other_settings_end() {
    let ended = run(&mut job(4, "odd-rate=3"));
    assert_eq!(ended.status.code(), Some(1), "{}", ended.errors);
    let expected = "worker 3 has `learning_rate` = 0.15, worker 0 has 0.05";
    assert!(ended.errors.contains(expected), "{}", ended.errors);
}

fn a_worker_of_more_epochs_ends_the_job() {
    let ended = run(&mut job(2, "odd-epochs=1"));
    assert_eq!(ended.status.code(), Some(1), "{}", ended.errors);
    let expected = "worker 1 has `epochs` = 4, worker 0 has 3";
    assert!(ended.errors.contains(expected), "{}", ended.errors);
}

fn another_number_is_refused() {
    for mut command in [job(2, ""), alone("")] {
        let ended = run(command.env("NNZ_WORKERS", "3"));
        assert!(!ended.status.success() && !ended.has_trained(), "{}", ended.output);
        let expected = "`NNZ_WORKERS` says that the group has 3 workers, but it has ";
        assert!(ended.errors.contains(expected), "{}", ended.errors);
    }
    let ended = run(alone("").env("NNZ_WORKERS", "two"));
    assert!(ended.errors.contains("`NNZ_WORKERS` is `two`"), "{}", ended.errors);
}

/// As MPICH's launcher starts a program of Open MPI, and the other way round: processes that each
/// are alone.
fn another_launcher_is_refused() {
    let theirs = |name: &str| super::job::launcher().is_some_and(|found| found.contains(name));
    let by = if theirs("Open MPI") { "PMI_SIZE" } else { "OMPI_COMM_WORLD_SIZE" };
    let ended = run(alone("").env(by, "4"));
    assert!(!ended.status.success() && !ended.has_trained(), "{}", ended.output);
    let expected = format!("`{by}` says that the group has 4 workers, but it has 1");
    assert!(ended.errors.contains(&expected), "{}", ended.errors);
}
