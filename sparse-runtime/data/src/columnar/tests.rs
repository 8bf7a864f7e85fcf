//! Files of several writers against the text of the same tables; see `tests/data/columnar/make.py`.

use crate::libsvm::{IndexBase, Reader};
use crate::{
    Dataset, Delimited, Hashing, NumberScale, OnError, ReadError, SparseColumns, TextReader,
};
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{ArrayRef, Float64Array, Int64Array, ListArray, RecordBatch, StringArray};
use nnz_arrays::kernels::Parallel;
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const TABLES: [&str; 9] = [
    "table_pyarrow.parquet",
    "table_gzip.parquet",
    "table_zstd.parquet",
    "table_polars_zstd.parquet",
    "table_pyarrow.feather",
    "table_pandas.parquet",
    "table_polars.parquet",
    "table_polars.arrow",
    "table_duckdb.parquet",
];

const ROWS: [&str; 5] = [
    "rows_pyarrow.parquet",
    "rows_pyarrow.feather",
    "rows_polars.parquet",
    "rows_duckdb.parquet",
    "rows_spark.parquet",
];

const SCHEMA: &str = "sold:label,age:numeric,views:count,colour:categorical,shop:categorical,day:categorical,tags:list,member:categorical";

pub(super) fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/columnar").join(name)
}

fn table() -> Delimited {
    let format = Delimited::csv(Hashing::new(12).unwrap()).header(true);
    let format = format.with_schema(SCHEMA).unwrap().ids();
    format.cross(&["age", "colour"]).unwrap().cross(&["shop", "member"]).unwrap()
}

fn read(format: &Delimited, name: &str) -> Dataset {
    TextReader::new(format.clone()).read_path(path(name)).unwrap()
}

/// Columns, with numbers as they are written: `-0` is not `0`.
pub(super) fn shown(data: &Dataset) -> String {
    format!("{:?}", data.columns().iter().map(|column| column.values()).collect::<Vec<_>>())
}

/// Writes a file of some columns, in row groups of two rows.
fn write(test: &str, columns: Vec<(&str, ArrayRef)>) -> PathBuf {
    let path = std::env::temp_dir().join(format!("nnz-columnar-{}-{test}.pq", std::process::id()));
    let batch = RecordBatch::try_from_iter_with_nullable(
        columns.into_iter().map(|(name, column)| (name, column, true)),
    )
    .unwrap();
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(2)).build();
    let file = std::fs::File::create(&path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    path
}

/// The error of reading a file, which is removed.
fn error_of(path: &Path, schema: &str) -> String {
    let format = Delimited::csv(Hashing::new(8).unwrap()).with_schema(schema).unwrap();
    let error = TextReader::new(format).read_path(path).map(|_: Dataset| ()).unwrap_err();
    std::fs::remove_file(path).unwrap();
    error.to_string().replace(&path.display().to_string(), "file")
}

#[test]
fn tables_of_every_writer_are_the_dataset_of_the_csv() {
    let csv = read(&table(), "table.csv");
    assert_eq!(csv.n_rows(), 6);
    for name in TABLES {
        let data = read(&table(), name);
        assert_eq!(shown(&data), shown(&csv), "{name}");
        let parallel = TextReader::new(table()).parallel(Parallel::Threads(3));
        assert_eq!(shown(&parallel.read_path(path(name)).unwrap()), shown(&csv), "{name}");
    }
    let both = TextReader::new(table());
    let twice = both.read_paths([path("table.csv"), path(TABLES[0])]).unwrap();
    assert_eq!(twice.n_rows(), 12);
}

#[test]
fn passes_over_tables_find_what_they_find_in_the_csv() {
    let format = table();
    let scales: Vec<NumberScale> = format.measure(path("table.csv")).unwrap();
    let scaled = format.clone().scaled(scales.clone()).unwrap();
    let csv = read(&scaled, "table.csv");
    let colours = format.texts(path("table.csv"), "colour").unwrap();
    let words = Delimited::csv(Hashing::new(8).unwrap()).header(true);
    let words = words.with_schema(&SCHEMA.replace("label", "ignore")).unwrap();
    let column = Hashing::new(12).unwrap().column("shop", b"Lido");
    for name in TABLES {
        assert_eq!(format.measure(path(name)).unwrap(), scales, "{name}");
        assert_eq!(shown(&read(&scaled, name)), shown(&csv), "{name}");
        assert_eq!(format.texts(path(name), "colour").unwrap(), colours, "{name}");
        let sold = words.texts(path(name), "sold").unwrap();
        assert_eq!(sold, ["1", "0", "1", "0", "1", "0"], "{name}");
        assert_eq!(format.feature_names(path(name), [column]).unwrap().get(column), ["shop=Lido"]);
        assert_eq!(format.label_texts(path(name)).unwrap(), None);
    }
}

#[test]
fn truth_values_and_texts_are_labels_by_their_words() {
    let format = Delimited::csv(Hashing::new(8).unwrap()).header(true);
    for label in ["member:", "colour:"] {
        let schema = SCHEMA.replace("sold:label", "sold:numeric");
        let schema = schema.replace(&format!("{label}categorical"), &format!("{label}label"));
        let format = format.clone().with_schema(&schema).unwrap();
        let words = format.label_texts(path("table.csv")).unwrap();
        for name in TABLES {
            assert_eq!(format.label_texts(path(name)).unwrap(), words, "{name}");
        }
    }
}

#[test]
fn kinds_follow_from_types() {
    let schema = "sold:label,age:numeric,views:numeric,colour:categorical,shop:categorical,day:categorical,tags:list,member:categorical";
    for name in TABLES {
        let format = Delimited::csv(Hashing::new(8).unwrap());
        let format = format.infer(path(name), "sold", 10).unwrap();
        assert_eq!(format.schema(), schema, "{name}");
    }
    let format = Delimited::csv(Hashing::new(8).unwrap());
    let format = format.infer(path("decimal_duckdb.parquet"), "y", 10).unwrap();
    assert_eq!(format.schema(), "price:numeric,y:label");
    let data: Dataset =
        TextReader::new(format.clone()).read_path(path("decimal_duckdb.parquet")).unwrap();
    let csv = TextReader::new(format).read_bytes("csv", b"price,y\n-0.05,0\n1.50,1\n").unwrap();
    assert_eq!(shown(&data), shown(&csv));
}

#[test]
fn sparse_rows_of_every_writer_are_the_dataset_of_the_libsvm_text() {
    let text = Reader::new().index_base(IndexBase::Zero).read_path(path("rows.svm")).unwrap();
    for name in ROWS {
        let reader = TextReader::new(SparseColumns::new());
        let data: Dataset = reader.clone().read_path(path(name)).unwrap();
        assert_eq!(shown(&data), shown(&text), "{name}");
        let parallel = reader.parallel(Parallel::Threads(2)).read_path(path(name)).unwrap();
        assert_eq!(shown(&parallel), shown(&text), "{name}");
        assert!(SparseColumns::are_in(path(name)).unwrap(), "{name}");
        let narrow = SparseColumns::new().n_features(3);
        let error = TextReader::new(narrow.clone()).read_path(path(name)).unwrap_err().to_string();
        assert!(error.contains("index 3 is beyond the 3 features declared"), "{error}");
        assert!(error.contains("row group 0)"), "{error}");
        let ignoring = TextReader::new(narrow.ignore_unknown()).read_path(path(name)).unwrap();
        assert_eq!(ignoring.n_features(), 3);
    }
    assert!(!SparseColumns::are_in(path("table_polars.parquet")).unwrap());
    assert!(!SparseColumns::are_in(path("rows.svm")).unwrap());
}

#[test]
fn other_codecs_are_named_with_what_to_do() {
    let brotli = path("table_brotli.parquet");
    let error = TextReader::new(table()).read_path(brotli).unwrap_err().to_string();
    let message = "the column `sold` of type Int64 is compressed by brotli in row group 0";
    assert!(error.contains(message), "{error}");
    assert!(error.contains("write_parquet(compression=\"snappy\")"), "{error}");
}

#[test]
fn faults_name_row_column_type_and_row_group() {
    let y: ArrayRef = Arc::new(Int64Array::from(vec![1, 0, 1]));
    let age: ArrayRef = Arc::new(StringArray::from(vec!["3", "4", "old"]));
    let columns = vec![("y", Arc::clone(&y)), ("age", age)];
    let error = error_of(&write("text", columns.clone()), "y:label,age:numeric");
    assert_eq!(
        error,
        "file:3:2: expected a number in the column `age`, found `old` (`age` is Utf8; row group 1)"
    );
    let error = error_of(&write("missing", columns), "y:label,height:numeric");
    assert_eq!(error, "`file`: there is no column `height`: there are y, age");
    let nan: ArrayRef = Arc::new(Float64Array::from(vec![1.0, f64::NAN, 2.0]));
    let error = error_of(&write("nan", vec![("y", y.clone()), ("n", nan)]), "y:label,n:numeric");
    assert_eq!(
        error,
        "file:2:2: expected a finite number in the column `n`, found `NaN` (`n` is Float64; row group 0)"
    );
    let null: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), Some(1), None]));
    let error = error_of(&write("null", vec![("y", null)]), "y:label");
    assert_eq!(
        error,
        "file:3:1: expected a number in the column `y`, found nothing (`y` is Int64; row group 1)"
    );
    let list: ArrayRef =
        Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>([Some([Some(1)]), None, None]));
    let error = error_of(&write("list", vec![("y", y), ("l", list)]), "y:label,l:categorical");
    assert!(error.starts_with("`file`: the column `l` has the type List("), "{error}");
    assert!(error.contains("declare it `list`"), "{error}");
}

#[test]
fn rows_with_faults_are_skipped_up_to_a_number() {
    let y: ArrayRef = Arc::new(Int64Array::from(vec![1, 0, 1, 0, 1]));
    let age: ArrayRef = Arc::new(StringArray::from(vec!["3", "old", "5", "new", "7"]));
    let path = write("skipped", vec![("y", y), ("age", age)]);
    let format = Delimited::csv(Hashing::new(8).unwrap());
    let format = format.with_schema("y:label,age:numeric").unwrap();
    for threads in [1, 3] {
        let reader = TextReader::new(format.clone()).parallel(Parallel::Threads(threads));
        let data: Dataset = reader.clone().on_error(OnError::Skip(2)).read_path(&path).unwrap();
        assert_eq!(data.n_rows(), 3);
        let skipped = &data.report().unwrap().first_skipped;
        assert_eq!(skipped.iter().map(|skipped| skipped.place.line).collect::<Vec<_>>(), [2, 4]);
        let error = reader.on_error(OnError::Skip(1)).read_path(&path).unwrap_err();
        let ReadError::TooManySkipped { place, limit: 1, .. } = error else { panic!("{error}") };
        assert_eq!(place.line, 4);
    }
    std::fs::remove_file(path).unwrap();
}

#[test]
fn lists_that_are_no_sparse_rows_are_refused() {
    let lists = |rows: Vec<Vec<i64>>| -> ArrayRef {
        let rows = rows.into_iter().map(|row| Some(row.into_iter().map(Some).collect::<Vec<_>>()));
        Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(rows))
    };
    let floats = |rows: Vec<Vec<f64>>| -> ArrayRef {
        let rows = rows.into_iter().map(|row| Some(row.into_iter().map(Some).collect::<Vec<_>>()));
        Arc::new(ListArray::from_iter_primitive::<Float64Type, _, _>(rows))
    };
    let y: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    let error = |format: SparseColumns, indices: Vec<i64>, values: Vec<f64>| {
        let columns =
            [("label", y.clone()), ("i", lists(vec![indices])), ("v", floats(vec![values]))];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let data: Result<Dataset, _> = Dataset::from_record_batches(&format, [batch]);
        data.map(|data| shown(&data)).map_err(|error| error.to_string())
    };
    let format = SparseColumns::new;
    for (format, indices, values, message) in [
        (format(), vec![1, 0], vec![1.0, 1.0], "index 0 follows 1"),
        (format(), vec![1, 1], vec![1.0, 1.0], "index 1 occurs twice"),
        (format().sort_unsorted(), vec![1, 1], vec![1.0, 1.0], "index 1 occurs twice"),
        (format(), vec![-1], vec![1.0], "expected an index from 0 to 2^63, found `-1`"),
        (format(), vec![1, 2], vec![1.0], "expected as many values as indices, found `2 and 1`"),
        (format(), vec![1], vec![f64::INFINITY], "the value `inf` of index 1 is not a finite"),
        (format(), vec![1], vec![1e300], "is beyond the range of f32"),
        (format().index_base(IndexBase::One), vec![0], vec![1.0], "index 0 in a file read with"),
    ] {
        let error = error(format, indices, values).unwrap_err();
        assert!(error.contains(message), "{error}");
        assert!(error.contains("is List(") && error.contains("row group 0)"), "{error}");
    }
    let sorted = error(format().add_repeated(), vec![3, 1, 3], vec![1.0, 2.0, 4.0]).unwrap();
    assert_eq!(sorted, error(format(), vec![1, 3], vec![2.0, 5.0]).unwrap());
    let from_one = error(format().index_base(IndexBase::One), vec![2, 4], vec![2.0, 5.0]).unwrap();
    assert_eq!(sorted, from_one);
}

#[test]
fn record_batches_are_the_dataset_of_their_csv() {
    let sold: ArrayRef = Arc::new(Int64Array::from(vec![1, 0]));
    let colour: ArrayRef = Arc::new(StringArray::from(vec![Some("red"), None]));
    let batch = RecordBatch::try_from_iter([("colour", colour), ("sold", sold)]).unwrap();
    let format = Delimited::csv(Hashing::new(8).unwrap()).label("sold").categorical("colour");
    let data: Dataset =
        Dataset::from_record_batches(&format, [batch.clone(), batch.clone()]).unwrap();
    let csv = TextReader::new(format.clone()).read_bytes("csv", b"1,red\n0,\n1,red\n0,\n").unwrap();
    assert_eq!(shown(&data), shown(&csv));
    let none: Result<Dataset, _> = Dataset::from_record_batches(&format, []);
    assert!(matches!(none, Err(ReadError::Empty { .. })));
    let libsvm: Result<Dataset, _> = Dataset::from_record_batches(&Reader::new(), [batch]);
    let error = libsvm.map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("read columns by `Delimited` or `SparseColumns`"), "{error}");
}

#[test]
fn damaged_files_are_refused_with_their_name() {
    let whole = std::fs::read(path("table_pyarrow.parquet")).unwrap();
    let file = std::env::temp_dir().join(format!("nnz-columnar-{}-damaged.pq", std::process::id()));
    for cut in [8, whole.len() / 2, whole.len() - 1] {
        std::fs::write(&file, &whole[..cut]).unwrap();
        let error = TextReader::new(table()).read_path(&file).unwrap_err().to_string();
        assert!(error.contains("damaged.pq"), "{error}");
    }
    let whole = std::fs::read(path("table_pyarrow.feather")).unwrap();
    std::fs::write(&file, &whole[..whole.len() / 2]).unwrap();
    let error = TextReader::new(table()).read_path(&file).unwrap_err().to_string();
    assert!(error.contains("damaged.pq"), "{error}");
    std::fs::remove_file(file).unwrap();
}
