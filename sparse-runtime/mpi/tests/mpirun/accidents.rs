//! Whatever happens to one process, the whole job ends, and not with exit code 0.

use super::Test;
use super::job::{Ended, job, run};
use std::time::Duration;

pub(crate) const TESTS: [Test; 8] = [
    ("a_killed_process_ends_the_job", a_killed_process_ends_the_job),
    ("a_process_that_exits_ends_the_job", a_process_that_exits_ends_the_job),
    ("a_panic_ends_the_job", a_panic_ends_the_job),
    ("an_error_in_training_ends_the_job", an_error_in_training_ends_the_job),
    ("an_error_before_training_ends_the_job", an_error_before_training_ends_the_job),
    ("a_checkpoint_that_fails_ends_the_job", a_checkpoint_that_fails_ends_the_job),
    ("a_stopped_process_ends_the_job_at_the_deadline", a_stopped_process_ends_the_job),
    ("a_busy_callback_is_no_failure", a_busy_callback_is_no_failure),
];

/// The time in which a job ends after an accident, with deadlines of 2 s.
const SOON: Duration = Duration::from_secs(10);

/// A job of three whose worker 1 has an accident.
fn ended(words: &str) -> Ended {
    let ended = run(&mut job(3, &format!("step=2000 pause=2000 {words}")));
    assert!(!ended.status.success(), "{words}: {}", ended.output);
    assert!(ended.time < SOON, "{words}: {:?}", ended.time);
    assert!(!ended.has_trained(), "{words}: {}", ended.output);
    ended
}

fn assert_says(ended: &Ended, text: &str) {
    assert!(ended.errors.contains(text), "{text}\n{}", ended.errors);
}

fn a_killed_process_ends_the_job() {
    ended("accident=kill who=1");
}

fn a_process_that_exits_ends_the_job() {
    let ended = ended("accident=exit who=1");
    assert_eq!(ended.status.code(), Some(1));
}

fn a_panic_ends_the_job() {
    let ended = ended("accident=panic who=1");
    assert_says(&ended, "worker 1: error: worker 1 has panicked: an accident");
}

fn an_error_in_training_ends_the_job() {
    let ended = ended("accident=error who=1");
    assert_says(&ended, "worker 1: error: worker 1 cannot exchange data: an accident (in `");
    assert_eq!(ended.status.code(), Some(1));
}

fn an_error_before_training_ends_the_job() {
    let ended = ended("returns=1");
    // Launchers differ in how long the others live, who hear of it at once.
    assert_says(&ended, "Error: a step is cut into 6 leaves");
}

fn a_checkpoint_that_fails_ends_the_job() {
    let ended = ended("checkpoint=/no/such/folder/run.safetensors");
    assert_says(&ended, "worker 0: error: ");
    assert_says(&ended, "/no/such/folder");
    assert_eq!(ended.status.code(), Some(1));
}

fn a_stopped_process_ends_the_job() {
    let ended = ended("accident=stop who=1");
    assert_says(&ended, "for worker 1, which gives no sign");
    assert_says(&ended, "(in `");
    assert_eq!(ended.status.code(), Some(75));
}

/// Longer than the deadline of a step.
fn a_busy_callback_is_no_failure() {
    let ended = run(&mut job(2, "step=500 pause=20000 busy=1000"));
    assert!(ended.status.success(), "{}", ended.errors);
}
