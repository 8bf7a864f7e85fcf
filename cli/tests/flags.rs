//! Flags, their aliases, and what they are answered with; the subcommands about the program itself.

use crate::command_line::{self, Files, refused};

#[test]
fn d23_flags_of_other_programs_work_or_lead_to_the_flag() {
    let files = Files::new("d23");
    let data = files.write("words.txt", "1\tgood film\n0\tbad film\n");
    let model = files.path("model");
    let flags = ["--passes", "2", "--lr", "0.1", "-b", "10", "--quiet", "--optimizer", "adam"];
    let train = ["--model", "logistic", "--data", &data, "--save", &model];
    let output = command_line::output("train", &[&train[..], &flags].concat());
    assert!(output.status.success());
    assert_eq!((output.stdout.len(), output.stderr.len()), (0, 0));
    assert!(command_line::run("inspect", &[&model]).contains("hash_bits: 10\n"));
    assert!(command_line::run("--version", &[]).starts_with("nnz "));
    assert!(command_line::run("train", &["--version"]).contains(env!("CARGO_PKG_VERSION")));
    for (flag, lead) in [
        ("--final_regressor=f", "--save FILE"),
        ("--loss_function", "--model linear, logistic"),
        ("--learning_rate", "write --learning-rate"),
        ("--hash_bits", "write --hash-bits"),
        ("--testonly", "`nnz predict`"),
        ("-d", "--data FILE"),
    ] {
        let errors = refused("train", &[&train[..], &[flag]].concat());
        assert!(errors.contains(lead), "{flag}: {errors}");
    }
    let help = command_line::run("train", &["--help"]);
    let of_adam = help.split("--beta1 <").nth(1).unwrap_or_default();
    assert!(of_adam.lines().take(3).any(|line| line.contains("[default 0.9")), "{help}");
}

#[test]
fn plans_are_printed_of_names_and_of_files() {
    let files = Files::new("plan");
    let data = files.write("rows.svm", "1 1:1\n0 7:1\n");
    let model = files.path("model");
    command_line::run("train", &["--model", "logistic", "--data", &data, "--save", &model]);
    assert!(command_line::run("plan", &["logistic"]).contains("LogisticRegression"));
    assert!(command_line::run("plan", &[&model]).contains('7'));
    assert!(command_line::run("plan", &["fm", "--format", "dot"]).starts_with("digraph"));
    assert!(command_line::run("plan", &[&model, "--format", "svg"]).starts_with("<svg"));
    assert!(refused("plan", &["logistics"]).contains("neither a file nor a model: the models are"));
}

#[test]
fn shells_and_man_get_the_whole_command_line() {
    for shell in ["bash", "zsh", "fish"] {
        let script = command_line::run("completions", &[shell]);
        assert!(script.contains("hash-bits") && script.contains("evaluate"), "{shell}");
    }
    let page = command_line::run("man", &[]);
    assert!(page.contains(".TH nnz 1") && page.contains("evaluate"), "{page}");
    let page = command_line::run("man", &["train"]);
    assert!(page.contains("learning\\-rate"), "{page}");
    assert!(refused("man", &["trian"]).contains("no subcommand"));
}

/// Modules of the program have no tests in them, which would not run: a second build of every model
/// by every rule takes longer than all others.
#[test]
fn every_test_of_the_program_runs_it() {
    fn check(folder: &std::path::Path) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                check(&path);
            } else {
                let text = std::fs::read_to_string(&path).unwrap();
                assert!(!text.contains("cfg(test)"), "{}: move it to cli/tests", path.display());
            }
        }
    }
    check(&std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
}
