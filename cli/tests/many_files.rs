//! Several files and folders as one, and matrices of other programs.

use crate::command_line::{self, Files, refused};
use std::io::Write;
use std::process::Stdio;

const ROWS: &str = "1 1:1 3:0.5\n0 2:1\n1 1:2\n0 2:1 3:1\n";

/// Trains on some files; returns the bytes of the model, and what is told of the data.
fn trained(files: &Files, more: &[&str]) -> (Vec<u8>, String) {
    let model = files.path("model");
    let train = ["--model", "logistic", "--save", &model, "--epochs", "3"];
    let output = command_line::output("train", &[&train[..], more].concat());
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{more:?}: {told}");
    (files.bytes("model"), told)
}

#[test]
fn several_files_and_a_folder_are_read_as_one_file() {
    let files = Files::new("several");
    let whole = files.write("whole.svm", ROWS);
    std::fs::create_dir(files.0.join("days")).unwrap();
    // The last line of a file may lack its end.
    let first = files.write("days/1.svm", "1 1:1 3:0.5\n0 2:1");
    let second = files.write("days/2.svm", "1 1:2\n0 2:1 3:1\n");
    files.write("days/.hidden", "no sample\n");
    let days = files.path("days");
    let (expected, _) = trained(&files, &["--data", &whole]);
    for data in [&[&first[..], &second][..], &[&days]] {
        for way in [&[][..], &["--threads", "2"], &["--cache"]] {
            let more = [&["--data"], data, way].concat();
            let (found, told) = trained(&files, &more);
            assert!(found == expected, "{more:?}");
            assert!(told.contains("; 4 samples; 3 columns"), "{told}");
        }
    }
    let (_, told) = trained(&files, &["--data", &days]);
    assert!(told.starts_with(&format!("{days} (2 files): libsvm,")), "{told}");
    // The order of an epoch of a stream is that of its blocks.
    let streamed = |data: &[&str]| {
        let stream = ["--stream", "1048576", "--no-shuffle"];
        trained(&files, &[&["--data"], data, &stream].concat()).0
    };
    assert!(streamed(&[&whole]) == streamed(&[&first, &second]));

    let model = files.path("model");
    trained(&files, &["--data", &days]);
    let scores = |data: &[&str]| {
        command_line::run("predict", &[&["--model", &model, "--data"], data].concat())
    };
    assert_eq!(scores(&[&whole]), scores(&[&first, &second]));
    assert_eq!(scores(&[&whole]), scores(&[&days]));
    let evaluate = ["--model", &model[..], "--json", "--data"];
    let measured = |data: &[&str]| command_line::run("evaluate", &[&evaluate, data].concat());
    assert_eq!(measured(&[&whole]), measured(&[&days]));
}

#[test]
fn files_that_are_not_alike_and_folders_without_files_are_refused() {
    let files = Files::new("unlike");
    let rows = files.write("rows.svm", ROWS);
    let table = files.write("table.csv", "y,x\n1,2\n");
    let bad = files.write("bad.svm", "1 1:1\n0 2:x\n");
    let train = ["--model", "logistic", "--data", &rows[..]];
    let errors = refused("train", &[&train[..], &[&table]].concat());
    assert!(errors.contains("rows.svm` is libsvm, since its ending is of no other"), "{errors}");
    assert!(errors.contains("table.csv` is csv, by its ending: say one --format"), "{errors}");
    // Errors name the file and its line.
    let errors = refused("train", &[&train[..], &[&bad]].concat());
    assert!(errors.contains("bad.svm:2:5: expected a number"), "{errors}");
    let errors = refused("train", &[&train[..], &["-"]].concat());
    assert!(errors.contains("the standard input is read alone"), "{errors}");
    std::fs::create_dir(files.0.join("empty")).unwrap();
    let errors = refused("train", &["--model", "logistic", "--data", &files.path("empty")]);
    assert!(errors.contains("has no files: name files"), "{errors}");
    // No file of the data is written over.
    let errors = refused("train", &[&train[..], &[&bad, "--save", &bad]].concat());
    assert!(errors.contains("would be lost"), "{errors}");
}

/// The words that are labels, and the scales of numbers, are those of all files.
#[test]
fn tables_in_several_files_have_one_schema() {
    let files = Files::new("tables-of-days");
    let first = files.write("1.csv", "bought,age\nno,20\nno,30\n");
    let second = files.write("2.csv", "bought,age\nyes,70\nyes,80\n");
    let data = ["--data", &first, &second, "--label", "bought"];
    let (_, told) = trained(&files, &data);
    assert!(told.contains("labels no, yes; `age` less 50.0000 and"), "{told}");
    assert!(told.contains("2.csv: yes is positive, no is negative"), "{told}");
    let model = files.path("model");
    let predict = ["--model", &model[..], "--data", &first, &second, "--class", "--id", "age"];
    let lines = command_line::run("predict", &predict);
    let ids: Vec<&str> = lines.lines().map(|line| line.split('\t').next().unwrap()).collect();
    assert_eq!(ids, ["20", "30", "70", "80"]);
}

/// Of LibSVM, libFFM and Vowpal Wabbit the model's file keeps them, as of a CSV.
#[test]
fn words_are_labels_of_any_text_that_begins_with_them() {
    let files = Files::new("label-words");
    for (name, text) in [
        ("rows.svm", "spam 1:1\nham 2:1\nspam 1:2\nham 2:2\n"),
        ("rows.ffm", "spam 0:1:1\nham 0:2:1\nspam 0:1:2\nham 0:2:2\n"),
        ("rows.vw", "spam |a x\nham |a y\nspam 'tag |a x\nham |a y\n"),
    ] {
        let data = files.write(name, text);
        let (_, told) = trained(&files, &["--data", &data]);
        assert!(told.contains("; labels ham, spam\n"), "{told}");
        assert!(told.contains("spam is positive, ham is negative"), "{told}");
        let model = files.path("model");
        let predict = ["--model", &model[..], "--data", &data, "--class"];
        let more = if name == "rows.ffm" { &["--metrics"][..] } else { &[] };
        let classes = command_line::run("predict", &[&predict[..], more].concat());
        assert_eq!(classes, "spam\nham\nspam\nham\n", "{name}");
        let evaluate = ["--model", &model[..], "--data", &data, "--json"];
        assert!(command_line::run("evaluate", &evaluate).contains("\"accuracy\":1.0"), "{name}");
        let (_, told) = trained(&files, &["--data", &data, "--stream", "1048576"]);
        assert!(told.contains("spam is positive, ham is negative"), "{told}");
        assert_eq!(command_line::run("predict", &predict), "spam\nham\nspam\nham\n", "{name}");
    }
    // Features are counted in data whose labels are read.
    let table = files.write("rows.csv", "y,x\nspam,a\nham,b\n");
    for data in [&[&files.path("rows.vw")[..]][..], &[&table, "--label", "y"]] {
        trained(&files, &[&["--data"], data, &["--hash-bits", "auto"]].concat());
    }
    trained(&files, &["--data", &files.path("rows.vw")]);
    let model = files.path("model");
    let other = files.write("other.vw", "spam |a x\neggs |a y\n");
    let errors = refused("evaluate", &["--model", &model, "--data", &other]);
    assert!(errors.contains("other.vw:2:1: expected a label, found `eggs`"), "{errors}");
    let classes = files.write("classes.svm", "b 1:1\na 2:1\nc 3:1\n");
    let softmax = ["--model", "softmax", "--data", &classes, "--save", &model, "--epochs", "9"];
    command_line::run("train", &[&softmax[..], &["--class-weight", "a=2"]].concat());
    let predict = ["--model", &model[..], "--data", &classes, "--class"];
    assert_eq!(command_line::run("predict", &predict), "b\na\nc\n");
    // What has no letters, or separators of other formats, is no word.
    for text in ["? 1:1\n1 2:1\n", "a,b\nc,d\n"] {
        let data = files.write("no-words.svm", text);
        let errors = refused("train", &["--model", "softmax", "--data", &data]);
        assert!(errors.contains("no-words.svm:1:1: expected a label"), "{errors}");
    }
}

/// `ROWS` as MatrixMarket, with labels in text.
#[test]
fn matrices_are_read_with_labels_beside_them() {
    let files = Files::new("matrices");
    let whole = files.write("whole.svm", ROWS);
    let entries = "1 1 1\n1 3 0.5\n2 2 1\n3 1 2\n4 2 1\n4 3 1\n";
    let text = format!("%%MatrixMarket matrix coordinate real general\n4 3 6\n{entries}");
    let (matrix, labels) = (files.write("x.mtx", &text), files.write("y.txt", "1\n0\n1\n0\n"));
    let (_, _) = trained(&files, &["--data", &whole]);
    let model = files.path("model");
    let expected = command_line::run("predict", &["--model", &model, "--data", &whole]);
    let (_, told) = trained(&files, &["--data", &matrix, "--labels", &labels]);
    let summary =
        "x.mtx: matrix-market, by its ending (guessed); 4 samples; 3 columns; labels 0, 1";
    assert!(told.contains(summary), "{told}");
    let scores = command_line::run("predict", &["--model", &model, "--data", &matrix]);
    assert_eq!(scores, expected);
    let evaluate = ["--model", &model[..], "--data", &matrix];
    let labelled = [&evaluate[..], &["--labels", &labels]].concat();
    assert!(command_line::run("evaluate", &labelled).contains("samples    4\n"));
    let errors = refused("evaluate", &evaluate);
    assert!(errors.contains("name a file of labels by --labels"), "{errors}");

    // Under another name it is known by its first line.
    let unnamed = files.write("x", &text);
    let test = ["--test", &unnamed[..], "--test-labels", &labels];
    let data = ["--data", &unnamed, "--labels", &labels];
    let (_, told) = trained(&files, &[&data[..], &test].concat());
    assert!(told.contains("/x: matrix-market, by its first line (guessed)"), "{told}");

    let short = files.write("short.txt", "1\n0\n");
    let train = ["--model", "logistic", "--data", &matrix[..]];
    let errors = refused("train", &[&train[..], &["--labels", &short]].concat());
    assert!(errors.contains("the matrix has 4 rows, but") && errors.contains("2 labels"));
    let errors = refused("train", &[&train[..], &["--labels", &whole]].concat());
    assert!(errors.contains("it is read as labels, a number a line, but its lines go on"));
    let errors = refused("train", &["--model", "logistic", "--data", &whole, "--labels", &short]);
    assert!(errors.contains("--labels is for matrix-market and npz"), "{errors}");

    // Several are one: their rows, one after the other.
    let header = "%%MatrixMarket matrix coordinate real general";
    let first = format!("{header}\n2 3 3\n1 1 1\n1 3 0.5\n2 2 1\n");
    let second = format!("{header}\n2 3 3\n1 1 2\n2 2 1\n2 3 1\n");
    let (first, second) = (files.write("1.mtx", &first), files.write("2.mtx", &second));
    let several = ["--data", &first[..], "--data", &second];
    trained(&files, &[&several[..], &["--labels", &labels]].concat());
    let scores = command_line::run("predict", &[&["--model", &model][..], &several].concat());
    assert_eq!(scores, expected);
    let more = [&several[..], &["--labels", &short]].concat();
    let errors = refused("train", &[&["--model", "logistic"][..], &more].concat());
    assert!(errors.contains("the matrix has 4 rows, but") && errors.contains("2 labels"));
    let narrow = files.write("narrow.mtx", &format!("{header}\n1 2 1\n1 1 1\n"));
    let more = ["--data", &first, "--data", &narrow, "--labels", &labels];
    let errors = refused("train", &[&["--model", "logistic"][..], &more].concat());
    assert!(errors.contains("the matrix has 2 columns, but that of"), "{errors}");

    // Other widths than that of the model.
    let wide =
        files.write("wide.mtx", &text.replace("4 3 6", "4 5 7").replace("4 3 1", "4 3 1\n4 5 1"));
    let errors = refused("predict", &["--model", &model, "--data", &wide]);
    assert!(errors.contains("column 5 of row 4 is unknown: the model has 3 features"), "{errors}");
    let ignore = ["--model", &model[..], "--data", &wide, "--unknown", "ignore"];
    assert_eq!(command_line::run("predict", &ignore).lines().count(), 4);
}

/// SciPy's file of a matrix of four rows and five columns, of which the second row is empty.
#[test]
fn npz_is_read_with_labels_of_numpy() {
    let files = Files::new("npz");
    let scipy = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../sparse-runtime/data/tests/data/scipy_compressed.npz"
    );
    let header = "{'descr': '<i8', 'fortran_order': False, 'shape': (4,), }";
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend([1i64, 0, 0, 1].iter().flat_map(|label| label.to_le_bytes()));
    std::fs::write(files.0.join("y.npy"), bytes).unwrap();
    let labels = files.path("y.npy");
    let (_, told) = trained(&files, &["--data", scipy, "--labels", &labels]);
    assert!(told.contains("npz: npz, by its ending (guessed); 4 samples; 5 columns; labels 0, 1"));
    let (model, svm) = (files.path("model"), "1 2:2 4:1.5\n0\n0 1:-0.25\n1 5:4\n");
    let scores = command_line::run("predict", &["--model", &model, "--data", scipy]);
    trained(&files, &["--data", &files.write("same.svm", svm)]);
    let same = files.path("same.svm");
    assert_eq!(command_line::run("predict", &["--model", &model, "--data", &same]), scores);
    let errors = refused("train", &["--model", "logistic", "--data", scipy]);
    assert!(errors.contains("it has no array `y`: name a file of labels by --labels"), "{errors}");
    let stream = ["--model", "logistic", "--data", scipy, "--stream", "1048576"];
    assert!(refused("train", &stream).contains("--stream is for text, but"), "");
}

/// A quoted field goes on in the next line, which comes later.
#[test]
fn a_pipe_joins_lines_of_a_quoted_field() {
    let files = Files::new("quoted-pipe");
    let data = files.write("train.csv", "y,x\n1,\"a\nb\"\n0,c\n");
    trained(&files, &["--data", &data, "--label", "y"]);
    let model = files.path("model");
    let expected = command_line::run("predict", &["--model", &model, "--data", &data]);
    let mut command = command_line::command("predict");
    command.args(["--model", &model, "--data", "-", "--id", "x"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    for part in ["y,x\n", "1,\"a\n", "b\"\n", "0,c\n"] {
        input.write_all(part.as_bytes()).unwrap();
        input.flush().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    drop(input);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let lines = String::from_utf8(output.stdout).unwrap();
    let scores = lines.lines().map(|line| line.split('\t').nth(1).unwrap());
    assert_eq!(scores.collect::<Vec<_>>(), expected.lines().collect::<Vec<_>>());
    assert!(lines.starts_with("a b\t"), "{lines}");

    let stream = ["--model", &model[..], "--data", &data, "--stream", "1048576"];
    let errors = refused("predict", &stream);
    assert!(errors.contains("train.csv:2:3: a quoted field does not end in its line: in a stream"));
}
