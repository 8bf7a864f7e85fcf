//! Jobs that the tests start, each with a limit of time.

use super::worker;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The time after which a job is killed, and its test fails.
const LIMIT: Duration = Duration::from_secs(60);

/// The first line of what the launcher says of itself, if there is one.
pub(crate) fn launcher() -> Option<String> {
    let output = Command::new(mpirun()).arg("--version").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    output.status.success().then(|| text.lines().next().unwrap_or("").to_owned())
}

fn mpirun() -> String {
    std::env::var("NNZ_MPIRUN").unwrap_or_else(|_| "mpirun".to_owned())
}

/// A job that has ended by itself.
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) output: String,
    pub(crate) errors: String,
    pub(crate) time: Duration,
}

impl Ended {
    /// Whether worker 0 has printed the bits of a model. Launchers may print besides.
    pub(crate) fn has_trained(&self) -> bool {
        worker::CASES.iter().any(|case| self.output.contains(case))
    }
}

/// A job of some workers, under the launcher.
pub(crate) fn job(n_workers: usize, words: &str) -> Command {
    let mut command = Command::new(mpirun());
    if launcher().is_some_and(|name| name.contains("Open MPI") || name.contains("OpenRTE")) {
        command.args(["--oversubscribe", "--bind-to", "none"]);
    }
    command.args(["-n", &n_workers.to_string()]).arg(program()).arg(worker::WORD);
    command.args(words.split_whitespace());
    // More workers than processors, in containers whose user is root.
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    command.env("OMPI_MCA_mpi_yield_when_idle", "1");
    command.env("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe");
    command
}

/// A worker without a launcher.
pub(crate) fn alone(words: &str) -> Command {
    let mut command = Command::new(program());
    command.arg(worker::WORD).args(words.split_whitespace());
    command
}

fn program() -> PathBuf {
    std::env::current_exe().expect("this program has a path")
}

/// Waits for the end of a job. Kills it and panics where it takes too long.
pub(crate) fn run(command: &mut Command) -> Ended {
    let scratch = Scratch::new();
    let [output, errors] = ["output", "errors"].map(|name| scratch.path(name));
    let began = Instant::now();
    command
        .stdout(File::create(&output).expect("a file"))
        .stderr(File::create(&errors).expect("a file"));
    let mut child = command.spawn().expect("the launcher starts");
    let status = wait(&mut child, began);
    let [output, errors] = [output, errors]
        .map(|path| String::from_utf8_lossy(&fs::read(path).expect("a file")).into_owned());
    let Some(status) = status else {
        panic!("{command:?} has not ended within {LIMIT:?}:\n{output}{errors}");
    };
    Ended { status, output, errors, time: began.elapsed() }
}

fn wait(child: &mut Child, began: Instant) -> Option<ExitStatus> {
    loop {
        if let Some(status) = child.try_wait().expect("a process of this one") {
            return Some(status);
        }
        if began.elapsed() > LIMIT {
            child.kill().expect("a process of this one");
            child.wait().expect("a process of this one");
            return None;
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// What worker 0 of a job prints, if all went well.
pub(crate) fn printed(command: &mut Command) -> String {
    let ended = run(command);
    assert!(ended.status.success(), "{command:?}: {}\n{}", ended.status, ended.errors);
    ended.output
}

/// A folder of its own, removed in the end.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("nnz-mpirun-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).expect("a folder");
        Scratch(path)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
