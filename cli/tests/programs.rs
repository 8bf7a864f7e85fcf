//! What `train` finds out is carried to `predict`; what cannot be kept is refused.

use crate::command_line;

/// Columns of later files are counted from where those of the training data were, whether they show
/// it or not; every model is made.
#[test]
fn the_command_line_carries_what_it_found_out() {
    let folder = std::env::temp_dir().join(format!("nnz-carried-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let train = file("train.svm", "1 0:1 2:1\n0 1:1 3:1\n1 0:1\n0 1:1\n");
    let (test, saved) = (file("test.svm", "1 2:1\n0 1:1\n"), file("model", ""));
    let arguments = ["--data", &train, "--test", &test, "--epochs", "20", "--learning-rate", "1"];
    let arguments = [&arguments[..], &["--model", "logistic", "--save", &saved, "--json"]].concat();
    let lines = command_line::run("train", &arguments);
    assert!(lines.lines().last().unwrap().contains("\"test_auc\":1.0"), "{lines}");
    let scores = command_line::run("predict", &["--model", &saved, "--data", &test]);
    let scores: Vec<f32> = scores.lines().map(|line| line.parse().unwrap()).collect();
    assert!(scores[0] > 0.6 && scores[1] < 0.1, "{scores:?}");

    let two_labels = file("two.csv", "1,0,a\n2,1,b\n");
    let (tabs, ratings) = (file("clicks.tsv", &criteo_line()), file("ratings", "a,x,1\nb,y,2\n"));
    let schema = ["--format", "csv", "--schema", "stars:label,good:label,word:categorical"];
    for (model, data, more) in [
        ("linear", &train, &[][..]),
        ("softmax", &train, &[]),
        ("poisson", &train, &[]),
        ("factorization-machine", &train, &["--factors", "2"]),
        ("wide-deep", &tabs, &["--hash-bits", "8"]),
        ("multi-task", &two_labels, &schema),
        ("matrix-factorization", &ratings, &["--format", "ratings", "--factors", "2"]),
    ] {
        let arguments = [&["--model", model, "--data", data, "--epochs", "1"], more].concat();
        let line = command_line::run("train", &arguments);
        assert!(line.contains("epoch    samples"), "{model}: {line}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

/// The scores of rows are those of the same rows without labels, in every format that can leave
/// them out.
#[test]
fn the_command_line_scores_rows_without_labels() {
    let folder = std::env::temp_dir().join(format!("nnz-unlabelled-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let (criteo, saved) = (criteo_line(), folder.join("model").display().to_string());
    let csv = ["--format", "csv", "--schema", "y:label,age:numeric,town:categorical"];
    for (model, labelled, without, more) in [
        ("logistic", "1\ta b c\n0\tb d\n", "a b c\nb d\n", &["--format", "words"][..]),
        ("logistic", "1,40,Rome\n0,7,Oslo\n", "40,Rome\n7,Oslo\n", &csv),
        ("wide-deep", &criteo, &criteo[2..], &["--format", "criteo"]),
        ("logistic", "1 0:3:1\n0 1:4:1\n", "0:3:1\n1:4:1\n", &["--format", "libffm"]),
        ("matrix-factorization", "a,x,1\nb,y,2\n", "a,x\nb,y\n", &["--format", "ratings"]),
    ] {
        let (train, bare) = (file("labelled", labelled), file("bare", without));
        let arguments = [&["--model", model, "--data", &train, "--save", &saved], more].concat();
        command_line::run("train", &arguments);
        let predict = ["--model", &saved, "--data"];
        let expected = command_line::run("predict", &[&predict[..], &[&train]].concat());
        for way in [&[][..], &["--cache"], &["--stream", "1048576"]] {
            let arguments = [&predict[..], &[&bare, "--no-labels"], way].concat();
            let scores = command_line::run("predict", &arguments);
            assert_eq!(scores, expected, "{arguments:?}");
        }
        let _ = std::fs::remove_file(format!("{bare}.cache"));
        // Who forgets to say so is told.
        command_line::refused("predict", &[&predict[..], &[&bare]].concat());
    }
    std::fs::remove_dir_all(folder).unwrap();
}

/// How many threads there are, and whether they have data of their own, changes no bit of the
/// model. Batches have entries enough to be shared.
#[test]
fn the_command_line_divides_data_among_threads() {
    let folder = std::env::temp_dir().join(format!("nnz-divided-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = |name: &str| folder.join(name).display().to_string();
    let (data, saved) = (path("data.svm"), path("model"));
    let row = |row: usize| {
        let column = |place: usize| 1 + place * 500 + (row * (place + 7)) % 500;
        let entries = (0..20).map(|place| format!(" {}:0.{}", column(place), 1 + row % 9));
        format!("{}{}\n", row % 2, entries.collect::<String>())
    };
    std::fs::write(&data, (0..18_000).map(row).collect::<String>()).unwrap();
    let common = ["--model", "logistic", "--data", &data, "--batch-size", "8192", "--save", &saved];
    let trained = |more: &[&str]| {
        command_line::run("train", &[&common, more].concat());
        std::fs::read(&saved).unwrap()
    };
    let one = trained(&[]);
    for more in [&["--threads", "2"][..], &["--threads", "2", "--divide"]] {
        assert!(trained(more) == one, "{more:?}");
    }
    for (more, message) in [
        (&["--divide"][..], "--threads"),
        (&["--divide", "--threads", "2", "--stream", "1000000"], "cannot be used with"),
    ] {
        let output = command_line::output("train", &[&common, more].concat());
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && errors.contains(message), "{more:?}: {errors}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

/// What would be lost or mean something else than it says ends a command before it reads data;
/// nothing is written.
#[test]
fn the_command_line_refuses_what_it_cannot_keep() {
    let folder = std::env::temp_dir().join(format!("nnz-refused-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let text = "1,0.5\n0,-1\n";
    let (data, other) = (file("data.csv", text), file("other.csv", text));
    let saved = folder.join("model").display().to_string();
    let [same, device] = [folder.join("./data.csv").display().to_string(), "/dev/null".to_owned()];
    let schema = ["--schema", "y:label,x:numeric"];
    let endless = ["--epochs", "18446744073709551615", "--schedule", "cosine", "--end", "inf"];
    let once = ["--epochs", "1"];
    let train = ["--model", "logistic", "--data", &data];
    let trained = [&train[..], &schema, &once, &["--save", &saved]].concat();
    command_line::run("train", &trained);
    let predict = ["--model", &saved, "--data", &data];
    let bytes = std::fs::read(&saved).unwrap();
    let cache = file("data.csv.cache", "");
    for (subcommand, arguments, more, message) in [
        ("train", &train[..], &["--save", &same][..], "would be lost: write to another file"),
        ("train", &train, &["--test", &other, "--save", &other], "would be lost"),
        ("train", &train, &["--cache", "--save", &cache], "would be lost"),
        ("predict", &predict, &["--output", &same], "would be lost"),
        ("predict", &predict, &["--cache", "--output", &cache], "would be lost"),
        ("predict", &predict, &["--output", &saved], "would be lost"),
        ("train", &train, &[], "data.csv` is read as csv, by its ending or `--format csv`: say"),
        ("predict", &predict, &["--format", "libsvm"], "the model was trained with `--format csv`"),
        ("predict", &predict, &["--schema", "x:numeric"], "was trained with `--schema y:label,x:"),
        (
            "train",
            &train,
            &["--l2", "1", "--weight-decay", "2"],
            "`weight_decay` is given twice, as `weight_decay` and as `l2`: say it once",
        ),
        ("train", &train, &["--nesterov", "0.5"], "sgd: `nesterov` is 0.5, but must be 0 or 1"),
        ("train", &train, &["--threads", "100000"], "100000 is not in 1..=1024"),
        // So many steps are no overflow: what is wrong with the schedule is told.
        (
            "train",
            &train,
            &[&schema[..], &endless].concat(),
            "`end` is inf, but must be at least 0 and finite",
        ),
    ] {
        let arguments = [arguments, more].concat();
        let output = command_line::output(subcommand, &arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && errors.contains(message), "{arguments:?}: {errors}");
    }
    assert_eq!(std::fs::read_to_string(&data).unwrap(), text);
    assert_eq!(std::fs::read(&saved).unwrap(), bytes);

    // What the model's file says need not be said again; a device may be written to.
    let noted = file("later.txt", text);
    let scores = command_line::run("predict", &["--model", &saved, "--data", &noted]);
    assert_eq!(scores.lines().count(), 2);
    if cfg!(unix) {
        command_line::run("predict", &[&predict[..], &["--output", &device]].concat());
    }

    // Decay is part of what Adam minimises, and beside what AdamW does.
    let epoch = |rule: &str| -> serde_json::Value {
        let more = ["--optimizer", rule, "--lazy-update", "touched", "--weight-decay", "1"];
        let arguments = [&train[..], &schema, &once, &more, &["--json", "--objective"]].concat();
        serde_json::from_str(&command_line::run("train", &arguments)).unwrap()
    };
    let (adam, adamw) = (epoch("adam"), epoch("adamw"));
    assert!(adam["objective"].as_f64() > adam["train_loss"].as_f64(), "{adam}");
    assert_eq!(adamw["objective"], adamw["train_loss"]);
    std::fs::remove_dir_all(folder).unwrap();
}

/// A line of Criteo's log: a label, 13 counts, 26 categories.
fn criteo_line() -> String {
    let counts = (0..13).map(|count| count.to_string());
    let categories = (0..26).map(|category| format!("c{category}"));
    let fields: Vec<String> =
        ["1".to_owned()].into_iter().chain(counts).chain(categories).collect();
    fields.join("\t") + "\n"
}
