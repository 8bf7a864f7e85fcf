//! Parquet and Arrow files beside the text of the same tables, and predictions as Parquet.

use crate::command_line::{self, Files, refused};
use nnz::data::{ColumnValues, Dataset, Delimited, Hashing, TextReader};

const SCHEMA: &str = "sold:label,age:numeric,views:count,colour:categorical,shop:categorical,day:categorical,tags:list,member:categorical";

/// A file of the library's tests.
fn path(name: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../sparse-runtime/data/tests/data/columnar");
    format!("{folder}/{name}")
}

/// Trains, and returns the model's file and what was told.
fn trained(files: &Files, name: &str, arguments: &[&str]) -> (String, String) {
    let model = files.path(name);
    let train = ["--model", "logistic", "--epochs", "3", "--save", &model[..]];
    let output = command_line::output("train", &[&train[..], arguments].concat());
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{told}");
    (model, told)
}

fn predicted(model: &str, data: &str) -> String {
    command_line::run("predict", &["--model", model, "--data", data])
}

#[test]
fn tables_train_and_score_as_their_csv() {
    let files = Files::new("columnar-tables");
    let csv = path("table.csv");
    let of_csv = ["--data", &csv, "--schema", SCHEMA, "--header", "--hash-bits", "10"];
    let (of_csv, _) = trained(&files, "csv", &of_csv);
    let scores = predicted(&of_csv, &csv);
    for name in ["table_pandas.parquet", "table_polars.arrow", "table_pyarrow.feather"] {
        let data = path(name);
        assert_eq!(predicted(&of_csv, &data), scores, "{name}");
        for more in [&[][..], &["--stream", "1048576"]] {
            let arguments = ["--data", &data, "--schema", SCHEMA, "--hash-bits", "10"];
            let (model, _) = trained(&files, "columnar", &[&arguments[..], more].concat());
            // A stream has another order, but both read the same.
            if more.is_empty() {
                let predict = ["--model", &model, "--data", &csv, "--header"];
                assert_eq!(command_line::run("predict", &predict), scores, "{name}");
            }
        }
    }
    let data = path("table_duckdb.parquet");
    let (_, told) = trained(&files, "inferred", &["--data", &data, "--label", "sold"]);
    let schema = "schema sold:label,age:numeric,views:numeric,colour:categorical,shop:categorical,day:categorical,tags:list,member:categorical\n";
    assert!(told.contains(schema), "{told}");
}

#[test]
fn sparse_rows_train_and_score_as_their_libsvm_text() {
    let files = Files::new("columnar-rows");
    let text = path("rows.svm");
    let (model, _) = trained(&files, "text", &["--data", &text]);
    let scores = predicted(&model, &text);
    for name in ["rows_polars.parquet", "rows_spark.parquet", "rows_pyarrow.feather"] {
        let data = path(name);
        let (model, _) = trained(&files, "columnar", &["--data", &data]);
        assert_eq!(predicted(&model, &data), scores, "{name}");
        let (_, told) = trained(&files, "stream", &["--data", &data, "--stream", "1048576"]);
        assert!(told.contains("sparse-columns"), "{told}");
    }
    let errors = refused(
        "train",
        &["--model", "logistic", "--data", &path("rows_spark.parquet"), "--features", "4"],
    );
    assert!(errors.contains("index 4 is unknown: --features says 4"), "{errors}");
}

#[test]
fn predictions_are_columns_of_parquet() {
    let files = Files::new("columnar-predictions");
    let data = path("table_polars.parquet");
    let (model, _) = trained(&files, "model", &["--data", &data, "--label", "sold"]);
    let output = files.path("scores.parquet");
    let predict = ["--model", &model[..], "--data", &data, "--output", &output, "--id", "day"];
    command_line::run("predict", &predict);
    let format = Delimited::csv(Hashing::new(8).unwrap());
    let format = format.infer(&output, "score", 10);
    let format = format
        .or_else(|_| Delimited::csv(Hashing::new(8).unwrap()).infer(&output, "probability", 10));
    let format = format.unwrap();
    let days = format.texts(&output, "day").unwrap();
    assert_eq!(days[..2], ["2020-02-29", "1969-12-31"]);
    let found: Dataset = TextReader::new(format).read_path(&output).unwrap();
    let Some(ColumnValues::Dense(scores)) = found.labels() else { panic!("no scores") };
    let text = predicted(&model, &data);
    let text: Vec<f32> = text.lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(scores.values(), text);

    command_line::run("predict", &[&predict[..6], &["--class"]].concat());
    let format = Delimited::csv(Hashing::new(8).unwrap()).with_schema("class:ignore").unwrap();
    let classes = format.texts(&output, "class").unwrap();
    let text = command_line::run("predict", &[&predict[..4], &["--class"]].concat());
    assert_eq!(classes, text.lines().collect::<Vec<_>>());
}
