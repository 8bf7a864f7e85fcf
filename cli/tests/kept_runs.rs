//! Runs of the command line that are killed, ended and gone on with, and what is kept of them.

use crate::command_line::{self, Files};
use std::process::Stdio;

/// Rows of three features of 50, whose label is whether there is one among the first 20.
fn rows() -> String {
    let row = |row: usize| {
        let mut columns = [row * 7 % 50, row * 13 % 50, row * 29 % 50];
        columns.sort_unstable();
        let mut text = u8::from(columns[0] < 20 && !row.is_multiple_of(9)).to_string();
        let mut last = None;
        for column in columns {
            if last.replace(column) != Some(column) {
                text += &format!(" {}:{}", column + 1, 1 + row % 3);
            }
        }
        text + "\n"
    };
    (0..400).map(row).collect()
}

/// The errors of a command that must fail.
fn refused(arguments: &[&str]) -> String {
    command_line::refused("train", arguments)
}

#[test]
fn a_run_that_goes_on_saves_the_model_of_one_that_was_not_ended() {
    let files = Files::new("gone-on");
    let data = files.write("rows.svm", &rows());
    let (whole, parts, run) = (files.path("whole"), files.path("parts"), files.path("run"));
    let ratings = files.write("ratings", "a,x,1\nb,y,2\na,y,3\nc,x,4\n");
    for more in [
        &["--model", "logistic", "--data", &data, "--momentum", "0.9", "--l2", "0.01"][..],
        &["--model", "logistic", "--data", &data, "--optimizer", "ftrl", "--stream", "1048576"],
        &["--model", "fm", "--data", &data, "--optimizer", "adagrad", "--batch-size", "7"],
        &["--model", "logistic", "--data", &data, "--optimizer", "svrg", "--set", "update_freq=2"],
        &["--model", "mf", "--data", &ratings, "--format", "ratings", "--schedule", "step"],
    ] {
        let epochs = |count| [more, &["--json", "--epochs", count]].concat();
        let at_once = [&epochs("5")[..], &["--save", &whole]].concat();
        let lines = command_line::run("train", &at_once);
        let keep = ["--checkpoint", &run, "--checkpoint-batches", "3"];
        command_line::run("train", &[&epochs("2")[..], &keep].concat());
        let go_on = [&epochs("5")[..], &keep, &["--resume", "--save", &parts]].concat();
        let later = command_line::run("train", &go_on);
        assert_eq!((lines.lines().count(), later.lines().count()), (5, 3), "{more:?}");
        assert!(later.starts_with("{\"epoch\":3,"), "{later}");
        assert_eq!(files.bytes("parts"), files.bytes("whole"), "{more:?}");
        // There is nothing left to do, but to save the model.
        files.forget("parts");
        assert_eq!(command_line::run("train", &go_on), "");
        assert_eq!(files.bytes("parts"), files.bytes("whole"), "{more:?}");
        files.forget("run");
    }
}

#[test]
fn a_run_that_was_killed_goes_on() {
    let files = Files::new("killed");
    let data = files.write("rows.svm", &rows());
    let (whole, parts, run) = (files.path("whole"), files.path("parts"), files.path("run"));
    let train = ["--model", "logistic", "--data", &data, "--momentum", "0.9", "--epochs", "30"];
    let at_once = [&train[..], &["--save", &whole]].concat();
    command_line::run("train", &at_once);
    let keep = ["--checkpoint", &run, "--checkpoint-batches", "11", "--save", &parts];
    let mut n_killed = 0;
    for kill in 0..20 {
        let resume: &[&str] = if kill == 0 { &[] } else { &["--resume"] };
        let mut process = command_line::command("train")
            .args([&train[..], &keep, resume].concat())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        while kill == 0 && !exists(&run) && process.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        std::thread::sleep(std::time::Duration::from_millis(kill));
        process.kill().unwrap();
        n_killed += u32::from(!process.wait().unwrap().success());
    }
    assert!(n_killed > 0, "no run was killed");
    command_line::run("train", &[&train[..], &keep, &["--resume"]].concat());
    assert_eq!(files.bytes("parts"), files.bytes("whole"));
}

fn exists(path: &str) -> bool {
    std::path::Path::new(path).exists()
}

/// What is learnt is wrong for the test data, so that the first epoch is the best.
#[test]
fn a_run_ends_when_it_gets_no_better_and_its_best_model_is_kept() {
    let files = Files::new("patience");
    let data = files.write("train.svm", "1 1:1\n0 2:1\n1 1:1 3:1\n");
    let test = files.write("test.svm", "0 1:1\n1 2:1\n");
    let (first, best, run) = (files.path("first"), files.path("best"), files.path("run"));
    let train = ["--model", "logistic", "--data", &data, "--test", &test, "--json"];
    let once = [&train[..], &["--epochs", "1", "--save", &first]].concat();
    command_line::run("train", &once);
    for watch in [&[][..], &["--watch", "auc"], &["--watch", "accuracy"]] {
        let patient = [&train[..], &["--patience", "2", "--save", &best], watch].concat();
        let output = command_line::output("train", &patient);
        let (lines, told) = (output.stdout.split(|byte| *byte == b'\n'), output.stderr);
        // The last line has an end.
        assert_eq!(lines.count() - 1, 3, "{watch:?}");
        let told = String::from_utf8(told).unwrap();
        assert!(told.contains("stopped after epoch 3: no better on the test data"), "{told}");
        assert_eq!(files.bytes("best"), files.bytes("first"), "{watch:?}");

        // In parts it is the same; a run that has ended so is over.
        files.forget("best");
        let kept = [&patient[..], &["--checkpoint", &run]].concat();
        command_line::run("train", &[&kept[..], &["--epochs", "2"]].concat());
        for n_lines in [1, 0] {
            let go_on = [&kept[..], &["--resume"]].concat();
            assert_eq!(command_line::run("train", &go_on).lines().count(), n_lines);
            assert_eq!(files.bytes("best"), files.bytes("first"), "{watch:?}");
        }
        // Other data of the same size might have a better model than the one that is kept.
        let other = files.write("other-test.svm", "0 1:1\n1 3:1\n");
        let train = ["--model", "logistic", "--data", &data, "--test", &other];
        let patient = [&train[..], &["--patience", "2", "--save", &best], watch].concat();
        let go_on = [&patient[..], &["--checkpoint", &run, "--resume"]].concat();
        let errors = refused(&go_on);
        assert!(errors.contains("`fingerprint of the test data` = "), "{errors}");
        files.forget("run");
    }
    // Such a model has all that `predict` asks for.
    let scores = command_line::run("predict", &["--model", &best, "--data", &test]);
    assert_eq!(scores.lines().count(), 2);
}

#[test]
fn runs_that_cannot_go_on_are_refused() {
    let files = Files::new("not-gone-on");
    let text = rows();
    let data = files.write("rows.svm", &text);
    // As many bytes fewer as a row has, and as many rows of another size.
    let shorter = files.write("shorter.svm", &text[..text.trim_end().rfind('\n').unwrap() + 1]);
    let other = files.write("other.svm", &text.replacen(":1", ":10", 1));
    // As many rows and bytes, with another value.
    let alike = files.write("alike.svm", &text.replacen(":1", ":2", 1));
    let (run, model, none) = (files.path("run"), files.path("model"), files.path("none"));
    let nowhere = files.path("nowhere/run");
    let train = ["--model", "logistic", "--features", "60", "--epochs", "2"];
    let with = |data, more: &[&'static str]| [&train[..], &["--data", data], more].concat();
    let kept = [&with(&data, &[])[..], &["--checkpoint", &run, "--save", &model]].concat();
    command_line::run("train", &kept);
    let bytes = files.bytes("run");
    let logistic = |features| ["--model", "logistic", "--features", features, "--data", &data];
    let resume = ["--checkpoint", &run, "--resume"];
    let from = |file| ["--checkpoint", file, "--resume"];
    let begin = ["--checkpoint", &run];
    let both = ["--checkpoint", &none, "--save", &none];
    let into_nothing = ["--checkpoint", &nowhere];
    let over_data = ["--checkpoint", &data];
    for (arguments, more, message) in [
        (with(&data, &["--optimizer", "ftrl"]), &resume[..], "the run was made with `rule` = "),
        (with(&data, &["--momentum", "0.5"]), &resume, "`momentum` = 0.0, but here it is 0.5"),
        (with(&data, &["--batch-size", "2"]), &resume, "`batch_size` = 1, but here it is 2"),
        (with(&data, &["--seed", "2"]), &resume, "`order` = "),
        (with(&data, &["--no-bias"]), &resume, "learning_rate_scale"),
        (with(&shorter, &[]), &resume, "`rows of the data` = 400, but here it is 399"),
        (with(&other, &[]), &resume, "`bytes of the data` = "),
        (with(&alike, &[]), &resume, "`fingerprint of the data` = "),
        (logistic("61").to_vec(), &resume, "parameter `w` has shape [60, 1] in the file"),
        (
            [&["--model", "poisson", "--data", &data][..], &["--features", "60"]].concat(),
            &resume,
            "which is another graph than model",
        ),
        (with(&data, &["--resume"]), &[], "--checkpoint <FILE>"),
        (with(&data, &[]), &from(&none), "to go on from: leave --resume out to begin a run"),
        (with(&data, &[]), &from(&model), "but no run of training that could be resumed"),
        (with(&data, &[]), &begin, "is there already and would be lost: go on with its run"),
        (with(&data, &[]), &both, "--checkpoint and --save are one file"),
        (with(&data, &[]), &into_nothing, "--checkpoint: there is no folder"),
        (with(&data, &[]), &over_data, "would be lost: write to another file"),
        (with(&data, &["--checkpoint-every", "0"]), &begin, "0 is not in 1.."),
        (with(&data, &["--patience", "2"]), &[], "--test <FILE>"),
        (
            with(&data, &["--patience", "2", "--watch", "rmse"]),
            &["--test", &data],
            "--watch rmse: that is not measured of this model: watch loss or accuracy or auc",
        ),
    ] {
        let arguments = [&arguments[..], more].concat();
        let errors = refused(&arguments);
        assert!(errors.contains(message), "{arguments:?}: {errors}");
    }
    assert_eq!(files.bytes("run"), bytes);
}

/// What an epoch has parsed is read by the later ones, which are the same then; nothing is left
/// beside the data.
#[test]
fn a_stream_that_is_parsed_once_is_the_same() {
    let files = Files::new("parsed-once");
    let data = files.write("rows.svm", &rows());
    let (parsed, kept) = (files.path("parsed"), files.path("kept"));
    let train = ["--model", "logistic", "--data", &data, "--epochs", "3", "--stream", "1048576"];
    command_line::run("train", &[&train[..], &["--save", &parsed]].concat());
    command_line::run("train", &[&train[..], &["--cache", "--save", &kept]].concat());
    assert_eq!(files.bytes("kept"), files.bytes("parsed"));
    let mut left: Vec<_> = std::fs::read_dir(std::path::Path::new(&data).parent().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    assert_eq!(left, ["kept", "kept.run.toml", "parsed", "parsed.run.toml", "rows.svm"]);
}

/// One row counts columns from zero, another has a column that is within the width only if they are
/// counted from one.
#[test]
fn rows_that_contradict_each_other_do_not_widen_a_model() {
    let files = Files::new("contradicted");
    let data = files.write("rows.svm", "1 0:1\n0 3:1\n1 9:1\n0 1:1\n");
    let model = files.path("model");
    let train = ["--model", "logistic", "--data", &data, "--features", "3", "--skip", "5"];
    let train = [&train[..], &["--epochs", "1", "--save", &model]].concat();
    // In memory it is an error; a stream, whose base is found out first, leaves the row out.
    let errors = refused(&train);
    assert!(errors.contains("rows.svm:2:1: "), "{errors}");
    let streamed = [&train[..], &["--stream", "1048576"]].concat();
    let output = command_line::output("train", &streamed);
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && told.contains("2 rows"), "{told}");
    let shown = command_line::run("inspect", &[&model]);
    assert!(shown.contains("w: row_sparse [3, 1] f32"), "{shown}");
}

/// Where nothing can be kept, that is said before anything is read: a run that cannot be saved is
/// lost.
#[test]
fn files_that_cannot_be_kept_are_refused_at_once() {
    let files = Files::new("unwritable");
    let data = files.write("rows.svm", "1 1:1\n0 2:1\n");
    let (folder, long) = (files.path(""), files.path(&"m".repeat(250)));
    for flag in ["--save", "--checkpoint"] {
        for (path, message) in [
            (&folder[..], "is a folder: name a file in it"),
            (folder.trim_end_matches('/'), "is a folder: name a file in it"),
            (&long, "cannot be written"),
            ("/proc/model", "cannot be written"),
        ] {
            if path.starts_with("/proc") && !cfg!(target_os = "linux") {
                continue;
            }
            let train = ["--model", "logistic", "--data", &data, flag, path];
            let output = command_line::output("train", &train);
            let errors = String::from_utf8(output.stderr).unwrap();
            assert!(!output.status.success() && errors.contains(message), "{path}: {errors}");
            assert!(errors.contains(flag), "{errors}");
            assert!(output.stdout.is_empty(), "{path}: an epoch was made");
        }
    }
    // The cache that the run is about to write.
    let cache = files.path("rows.svm.cache");
    let train = ["--model", "logistic", "--data", &data, "--cache", "--save", &cache];
    let errors = refused(&train);
    assert!(errors.contains("would be lost: write to another file"), "{errors}");
    // Nothing is left of having tried.
    assert_eq!(std::fs::read_dir(&files.0).unwrap().count(), 1);
}

/// A number that no batch, epoch or norm can have: the message has the flag's name.
#[test]
fn senseless_numbers_are_told_by_their_flags() {
    let files = Files::new("senseless");
    let data = files.write("rows.svm", "1 1:1\n0 2:1\n");
    for (flag, value, message) in [
        ("--batch-size", "0", "0 is not in 1.."),
        ("--eval-batch", "0", "0 is not in 1.."),
        ("--epochs", "-1", "invalid value '-1' for '--epochs"),
        ("--seed", "-1", "invalid value '-1' for '--seed"),
        ("--skip", "-1", "invalid value '-1' for '--skip"),
        ("--clip-norm", "-1", "`clip_norm` is -1, but must be positive"),
    ] {
        let train = ["--model", "logistic", "--data", &data, flag, value];
        let errors = refused(&train);
        assert!(errors.contains(message), "{flag} {value}: {errors}");
    }
}

/// A model's file without the ids in it, as files were once: the ids lay in two files beside it.
fn without_ids(path: &str) {
    let bytes = std::fs::read(path).unwrap();
    let start = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let mut header: serde_json::Value = serde_json::from_slice(&bytes[8..start]).unwrap();
    let header = header.as_object_mut().unwrap();
    let ids = header.iter().filter(|(name, _)| name.starts_with("ids."));
    let starts = ids.map(|(_, tensor)| tensor["data_offsets"][0].as_u64().unwrap());
    let end = start + starts.min().unwrap() as usize;
    header.retain(|name, _| !name.starts_with("ids."));
    let entry = &mut header["__metadata__"]["nnz"];
    let mut own: serde_json::Value = serde_json::from_str(entry.as_str().unwrap()).unwrap();
    // Nor had such files a checksum of the entry.
    own.as_object_mut().unwrap().retain(|name, _| name != "tensors" && name != "checksum");
    *entry = own.to_string().into();
    let header = serde_json::to_vec(header).unwrap();
    let length = (header.len() as u64).to_le_bytes();
    std::fs::write(path, [&length[..], &header, &bytes[start..end]].concat()).unwrap();
}

/// A model of ratings is one file. Those of before are three: ids in another order, or fewer or
/// more of them, would give the scores of others.
#[test]
fn a_model_of_ratings_is_one_file_and_not_used_with_the_ids_of_another() {
    let files = Files::new("other-ids");
    let data = files.write("rows", "anna,Solaris,5\nbert,Stalker,3\nanna,Stalker,4\n");
    let model = files.path("model");
    let train = ["--model", "mf", "--format", "ratings", "--data", &data, "--save", &model];
    command_line::run("train", &train);
    let predict = ["--model", &model[..], "--data", &data];
    let scores = command_line::run("predict", &predict);
    // The data, the model, and the file that repeats the run.
    assert_eq!(std::fs::read_dir(&files.0).unwrap().count(), 3);
    // Files of other ids say nothing, as the model has its own.
    files.write("model.users", "bert\nanna\n");
    assert_eq!(command_line::run("predict", &predict), scores);
    without_ids(&model);
    files.write("model.items", "Solaris\nStalker\n");
    for users in ["bert\nanna\n", "anna\n", "anna\nbert\ncarla\n", ""] {
        files.write("model.users", users);
        let output = command_line::output("predict", &predict);
        let errors = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success(), "{users:?}");
        assert!(errors.contains("hold other ids") && errors.contains("train again"), "{errors}");
    }
    files.write("model.users", "anna\nbert\n");
    assert_eq!(command_line::run("predict", &predict), scores);
}

/// `predict … | head` is no error.
#[test]
fn whoever_reads_scores_may_stop() {
    let files = Files::new("enough");
    let (data, model) = (files.write("rows.svm", &rows().repeat(40)), files.path("model"));
    let train = ["--model", "logistic", "--data", &data, "--epochs", "1", "--save", &model];
    command_line::run("train", &train);
    let mut predict = command_line::command("predict");
    let predict = predict.args(["--model", &model, "--data", &data]);
    let mut child = predict.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && errors.is_empty(), "{errors}");
}

/// What has no meaning for a format, a schedule or a model is not taken for said.
#[test]
fn flags_that_would_do_nothing_are_refused() {
    let files = Files::new("in-vain");
    let svm = files.write("rows.svm", "1 1:1\n0 2:1\n");
    let words = files.write("rows.txt", "1\ta b\n0\tc\n");
    let model = files.path("model");
    let logistic = ["--model", "logistic", "--data", &svm];
    let (svm, words) = (["--model", "fm", "--data", &svm], ["--model", "fm", "--data", &words]);
    for (arguments, more, message) in [
        (&svm, &["--hash-seed", "8"][..], "--hash-seed is for formats that are hashed, but"),
        (
            &svm,
            &["--hash-seed", "8"],
            "its columns are taken as they are numbered, unless --hash-bits",
        ),
        (&svm, &["--ngrams", "2"], "is read as libsvm, since its ending is of no other format"),
        (&svm, &["--schema", "y:label"], "--schema is for csv"),
        (&svm, &["--format", "libffm", "--header"], "is read as libffm, by --format"),
        (&words, &["--index-base", "one"], "--index-base is for libsvm"),
        (&words, &["--features", "9"], "its columns are as many as --hash-bits says"),
        (&svm, &["--factors", "0"], "0 is not in 1.."),
        (&svm, &["--decay", "0.1"], "--decay is for --schedule inverse-scaling, but"),
        (
            &svm,
            &["--schedule", "cosine", "--power", "2"],
            "--power is for --schedule inverse-scaling or polynomial, but the schedule is cosine",
        ),
        (&svm, &["--every", "2"], "leave --every out, or choose another --schedule"),
        (&svm, &["--schedule", "step", "--milestones", "2,3"], "--milestones is for"),
        (&svm, &["--factor", "0.1"], "step, multi-step or exponential, but"),
        (&svm, &["--schedule", "step", "--end", "0.1"], "--end is for"),
        (&svm, &["--schedule", "multi-step"], "say after which epochs, --milestones 3,6"),
        (&logistic, &["--factors", "4"], "--factors is for factorization-machine,"),
        (
            &logistic,
            &["--format", "csv", "--schema", "label,z:label,x:numeric"],
            "`z:label` is label 2, but logistic has 1: make it `ignore`",
        ),
    ] {
        let arguments = [&arguments[..], more].concat();
        let errors = refused(&arguments);
        assert!(errors.contains(message), "{arguments:?}: {errors}");
    }
    let saved = [&words[..], &["--hash-bits", "8", "--ngrams", "2", "--save", &model]].concat();
    command_line::run("train", &saved);
    let shown = command_line::run("inspect", &[&model]);
    assert!(shown.contains("hash_bits: 8\n") && shown.contains("ngrams: 2\n"), "{shown}");
    command_line::run("train", &[&svm[..], &["--save", &model]].concat());
    let shown = command_line::run("inspect", &[&model]);
    assert!(shown.contains("format: libsvm\n") && !shown.contains("hash"), "{shown}");
    let predict = ["--model", &model, "--data", svm[3], "--hash-bits", "8"];
    let output = command_line::output("predict", &predict);
    assert!(!output.status.success());
}
