use super::*;
use crate::{ColumnValues, Dataset, OnError, ReadError, TextReader};
use nnz_arrays::formats::Ids;

fn small() -> Delimited {
    Delimited::csv(Hashing::new(20).unwrap())
        .label("y")
        .numeric("age")
        .categorical("city")
        .weight("w")
}

fn read(format: Delimited, text: &str) -> Result<Dataset, ReadError> {
    TextReader::new(format).read_bytes("file", text.as_bytes())
}

#[track_caller]
fn refused(format: Delimited, text: &str) -> String {
    read(format, text).unwrap_err().to_string()
}

fn numbers(data: &Dataset, name: &str) -> Vec<f32> {
    match data.column(name).unwrap().values() {
        ColumnValues::Dense(values) => values.values().to_vec(),
        _ => panic!("`{name}` is dense"),
    }
}

fn row(data: &Dataset, i: usize) -> Vec<(usize, f32)> {
    data.features().unwrap().iter_rows().nth(i).unwrap().collect()
}

fn sorted(mut entries: Vec<(u64, f32)>) -> Vec<(usize, f32)> {
    entries.sort_by_key(|entry| entry.0);
    entries.into_iter().map(|(column, value)| (column as usize, value)).collect()
}

#[test]
fn files_without_labels_are_read_by_the_same_schema() {
    let data = read(small().without_labels(), "40,Rome,1\n7,Oslo,2\n").unwrap();
    let labelled = read(small(), "1,40,Rome,1\n0,7,Oslo,2\n").unwrap();
    assert_eq!(data.features(), labelled.features());
    assert_eq!(numbers(&data, "w"), [1.0, 2.0]);
    assert!(data.labels().is_none());
    let header = small().header(true).without_labels();
    assert!(read(header.clone(), "age,city,w\n40,Rome,1\n").is_ok());
    assert!(refused(header, "y,age,city,w\n1,40,Rome,1\n").contains("file:1:1"));
}

#[test]
fn numbers_that_mean_nothing_are_refused() {
    assert_eq!(
        refused(small(), "1,34,Bern,-0.5"),
        "file:1:11: expected a weight of at least 0 in the column `w`, found `-0.5`"
    );
    let two_columns = Delimited::csv(Hashing::new(1).unwrap()).label("y").numeric("a");
    assert_eq!(
        refused(two_columns.numeric("b").numeric("c"), "1,1,1,1\n1,3e38,3e38,3e38"),
        "file:2:1: the values of index 0 add up to no finite number"
    );
}

#[test]
fn columns_become_inputs_and_labels() {
    let data = read(small(), "1,34,Bern,0.5\r\n\n-1,,\"Oslo, \"\"N\"\"\",2\n0,0,,1").unwrap();
    let hashing = Hashing::new(20).unwrap();
    let (age, city) =
        (hashing.column("age", b""), |name: &str| hashing.column("city", name.as_bytes()));
    assert_eq!(row(&data, 0), sorted(vec![(age, 34.0), (city("Bern"), 1.0)]));
    assert_eq!(row(&data, 1), sorted(vec![(city("Oslo, \"N\""), 1.0)]));
    // A number that is 0 stores nothing; an empty category is one.
    assert_eq!(row(&data, 2), sorted(vec![(city(""), 1.0)]));
    assert_eq!(numbers(&data, "y"), [1.0, -1.0, 0.0]);
    assert_eq!(numbers(&data, "w"), [0.5, 2.0, 1.0]);
    assert_eq!(data.column("w").unwrap().role(), InputRole::Input);
}

#[test]
fn parts_of_wide_and_deep() {
    let format = Delimited::tsv(Hashing::new(8).unwrap())
        .label("y")
        .count("n")
        .categorical("a")
        .ignore("z")
        .number("k", Numbers::Buckets)
        .numbers_apart()
        .ids();
    let data = read(format, "0\t-3\tu\t?\t100\n1\t\tv\t\t\n0\t0\tu\t\t-1\n").unwrap();
    let n = numbers(&data, "numbers");
    assert_eq!(n, [-(4f64.ln()) as f32, 0.0, 0.0]);
    let hashing = Hashing::new(8).unwrap();
    let column = |name: &str, token: &str| hashing.column(name, token.as_bytes()) as u32;
    let expected = [
        [column("a", "u"), column("k", "b21")],
        [column("a", "v"), column("k", "NA")],
        [column("a", "u"), column("k", "-1")],
    ];
    match data.column("ids").unwrap().values() {
        ColumnValues::Ids(Ids::U32(ids)) => assert_eq!(ids.values(), expected.concat()),
        _ => panic!("ids are u32"),
    }
    assert_eq!(data.features().unwrap().nnz(), 6);
}

#[test]
fn a_bucket_is_that_of_the_number_however_it_is_spelled() {
    let format = Delimited::tsv(Hashing::new(30).unwrap()).number("k", Numbers::Buckets);
    let data = |text: &str| read(format.clone().label("y"), text).unwrap();
    for (name, spellings) in [
        ("2", &["2", "2.0", "+2", " 02", "20e-1"][..]),
        ("0", &["0", "-0", "0.0", "-0e9"]),
        ("-1", &["-1", "-01.", "-10e-1"]),
        ("0.5", &["0.5", ".5", "5e-1"]),
        ("b0", &["2.5", "2.50"]),
        ("b21", &["100", "1e2"]),
    ] {
        let column = Hashing::new(30).unwrap().column("k", name.as_bytes()) as usize;
        for spelling in spellings {
            assert_eq!(row(&data(&format!("{spelling}\t1\n")), 0), [(column, 1.0)], "{spelling}");
        }
    }
}

#[test]
fn collisions_are_added() {
    let format = Delimited::csv(Hashing::new(1).unwrap());
    let format = (0..5).fold(format.label("y"), |format, i| format.categorical(&i.to_string()));
    let data = read(format, "1,a,b,c,d,e\n").unwrap();
    assert_eq!(row(&data, 0).iter().map(|entry| entry.1).sum::<f32>(), 5.0);
}

#[test]
fn what_is_wrong_is_named() {
    let cases = [
        ("1,2,x\n", "file:1:1: the row has 3 fields, but the schema has 4 columns"),
        ("1,2,x,1,9\n", "file:1:1: the row has 5 fields, but the schema has 4 columns"),
        ("1,2,x,1\n\nq,2,x,1\n", "file:3:1: expected a number in the column `y`, found `q`"),
        (",2,x,1\n", "file:1:1: expected a number in the column `y`, found nothing"),
        ("1,inf,x,1\n", "file:1:3: expected a finite number in the column `age`, found `inf`"),
        (
            "1,1e300,x,1\n",
            "file:1:3: expected a number within the range of the element type in the column `age`, found `1e300`",
        ),
        ("1,2,\"x,1\n", "file:1:5: a quoted field must end"),
        ("1,2,\"x\"y,1\n", "file:1:8: a quoted field must end"),
        ("1,2,x\0,1\n", "file:1:6: a NUL byte"),
        ("", "`file` has no rows"),
    ];
    for (text, message) in cases {
        let found = refused(small(), text);
        assert!(found.starts_with(message), "{found}");
    }
    let header = small().header(true);
    assert_eq!(read(header.clone(), "y,age,city,w\n1,2,x,1\n").unwrap().n_rows(), 1);
    assert_eq!(
        refused(header.clone(), "y,city,age,w\n1,2,x,1\n"),
        "file:1:3: the header has `city` where the schema has the column `age`"
    );
    assert!(refused(header.clone(), "y,age\n").contains("has 2 fields, but"));
    assert_eq!(refused(header, "y,age,city,w\n"), "`file` has no rows");
}

#[test]
fn rows_are_skipped_up_to_a_limit() {
    let text = "1,2,x,1\nq,2,x,1\n0,2\n1,2,y,1\n";
    let reader = |limit| TextReader::new(small()).on_error(OnError::Skip(limit));
    let data = reader(2).read_bytes("file", text.as_bytes()).unwrap();
    assert_eq!(numbers(&data, "y"), [1.0, 1.0]);
    let report = data.report().unwrap();
    assert_eq!((report.n_skipped, report.first_skipped.len()), (2, 2));
    assert_eq!(report.to_string(), "file, 2 rows skipped");
    assert_eq!(
        report.first_skipped[1].to_string(),
        "file:3:1: the row has 2 fields, but the schema has 4 columns"
    );
    let error = reader(1).read_bytes("file", text.as_bytes()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "file:3:1: the row has 2 fields, but the schema has 4 columns (the 1 rows that may be skipped were skipped before)"
    );
}

#[test]
fn schemas_as_text() {
    let hashing = Hashing::new(4).unwrap();
    let format =
        Delimited::csv(hashing).with_schema("y:label, numeric,ignore , city:categorical").unwrap();
    let same = Delimited::csv(hashing).label("y").numeric("2").ignore("3").categorical("city");
    assert_eq!(format, same);
    let error = Delimited::csv(hashing).with_schema("y:labels").unwrap_err();
    assert!(error.to_string().starts_with("`labels` is no kind of column"), "{error}");
}

#[test]
fn d4_a_header_that_was_not_declared_is_no_row() {
    let towns = Delimited::csv(Hashing::new(8).unwrap()).label("y").categorical("town");
    let message = "file:1:1: the first line is a header, the names of the columns, and no row";
    assert!(refused(towns.clone(), "y,town\n1,Rome\n").starts_with(message));
    let bare = towns.clone().without_labels();
    assert!(refused(bare.clone(), "town\nRome\n").starts_with(message));
    assert_eq!(read(bare.header(true), "town\nRome\n").unwrap().n_rows(), 1);
    // Columns without names are called by their positions, which may be a row.
    let numbers = Delimited::csv(Hashing::new(8).unwrap()).with_schema("label,numeric").unwrap();
    assert_eq!(read(numbers, "1,2\n0,3\n").unwrap().n_rows(), 2);
}

#[test]
fn d7_rows_that_end_in_carriage_returns_are_refused() {
    let message = "a carriage return (CR) within a line";
    assert!(refused(small(), "1,40,Rome,1\r0,7,Oslo,2\r").contains(message));
    let header = small().header(true);
    assert!(refused(header, "y,age,city,w\r1,40,Rome,1\r").contains(message));
    // In quotes it is part of a text.
    assert!(read(small(), "1,40,\"Rome\rOstia\",1\r\n").is_ok());
}

#[test]
fn d8_a_byte_order_mark_before_a_line_is_not_part_of_a_category() {
    let towns = Delimited::csv(Hashing::new(20).unwrap()).categorical("town").label("y");
    let marked = read(towns.clone(), "Rome,1\n\u{feff}Rome,0\n").unwrap();
    let plain = read(towns, "Rome,1\nRome,0\n").unwrap();
    assert_eq!(marked.features(), plain.features());
}

#[test]
fn d17_numeric_columns_are_scaled_by_what_was_measured() {
    let path = std::env::temp_dir().join(format!("nnz-d17-{}.csv", std::process::id()));
    let text = "y,age,city,w\n1,20,Rome,1\n0,,Oslo,2\n0,40,Rome,1\nbad,1\n1,60,Oslo,1\n";
    std::fs::write(&path, text).unwrap();
    let format = small().header(true);
    let scales = format.measure(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let deviation = (800f64 / 3.0).sqrt();
    assert_eq!(scales, [NumberScale { column: "age".into(), mean: 40.0, deviation }]);
    let reader = TextReader::new(format.clone().scaled(scales).unwrap().numbers_apart());
    let reader = reader.on_error(OnError::Skip(1));
    let data = reader.read_bytes("file", text.as_bytes()).unwrap();
    // The mean where there is none.
    let expected = [-20.0, 0.0, 0.0, 20.0].map(|number: f64| (number / deviation) as f32);
    assert_eq!(numbers(&data, "numbers"), expected);
    let scale = |column: &str, mean, deviation| {
        let column = column.to_owned();
        format.clone().scaled([NumberScale { column, mean, deviation }])
    };
    for refused in [scale("city", 0.0, 1.0), scale("age", f64::NAN, 1.0), scale("age", 0.0, 0.0)] {
        assert!(matches!(refused, Err(DataError::Schema { .. })));
    }
}

#[test]
fn crosses_are_entries_of_several_fields_together() {
    let hashing = Hashing::new(20).unwrap();
    let format = Delimited::csv(hashing)
        .with_schema("y:label,site:categorical,device:categorical,note:ignore,age:numeric")
        .unwrap();
    let crossed = format.clone().cross(&["device", "site"]).unwrap();
    let crossed = crossed.cross(&["site", "device", "age"]).unwrap();
    let text = "1,a,b,x,3\n0,a,,x,\n";
    let data = read(crossed.clone(), text).unwrap();
    let (site, device, age) = (("site", &b"a"[..]), ("device", &b"b"[..]), ("age", &b""[..]));
    let none = ("device", &b""[..]);
    let own = |(name, token)| hashing.column(name, token);
    let pair = |parts: &[(&str, &[u8])]| hashing.cross_column(parts);
    let first = [
        (own(site), 1.0),
        (own(device), 1.0),
        (own(age), 3.0),
        (pair(&[device, site]), 1.0),
        (pair(&[site, device, age]), 3.0),
    ];
    assert_eq!(row(&data, 0), sorted(first.to_vec()));
    let second = [(own(site), 1.0), (own(none), 1.0), (pair(&[none, site]), 1.0)];
    assert_eq!(row(&data, 1), sorted(second.to_vec()));
    // Without labels the same columns are crossed.
    let bare = read(crossed.without_labels(), "a,b,x,3\na,,x,\n").unwrap();
    assert_eq!(bare.features(), data.features());
    for (columns, message) in [
        (&["site"][..], "a cross of `site`: it is of two columns or more"),
        (&["site", "shop"], "`shop` is crossed, but there is no such column: there are y, site"),
        (&["site", "note"], "`note` is crossed, but it is `ignore`: declare it `categorical`"),
    ] {
        let error = format.clone().cross(columns).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
}

#[test]
fn a_list_has_an_entry_for_each_category() {
    let hashing = Hashing::new(20).unwrap();
    let format = Delimited::csv(hashing).label("y").list("tags");
    let data = read(format, "1,red|green| red \n0,\n").unwrap();
    let tag = |token: &[u8]| hashing.column("tags", token);
    assert_eq!(row(&data, 0), sorted(vec![(tag(b"red"), 2.0), (tag(b"green"), 1.0)]));
    assert_eq!(row(&data, 1), []);
}

#[test]
fn words_stand_for_missing_numbers() {
    let hashing = Hashing::new(20).unwrap();
    let format = Delimited::csv(hashing).label("y").numeric("n").number("m", Numbers::Buckets);
    let text = "1,NA,?\n";
    assert!(refused(format.clone(), text).starts_with("file:1:3: expected a number"));
    let data = read(format.clone().missing(["NA", "?"]), text).unwrap();
    assert_eq!(data.features(), read(format, "1,,\n").unwrap().features());
}

/// Fields with line ends are read as they are by any number of threads, and lines are counted with
/// those in quotes.
#[test]
fn quoted_fields_may_have_line_ends() {
    use nnz_arrays::kernels::Parallel;
    let hashing = Hashing::new(20).unwrap();
    let format = Delimited::csv(hashing).header(true);
    let format = format.with_schema("y:label,note:categorical,n:numeric").unwrap();
    let note = |i: usize| match i % 4 {
        0 => format!("a\n{}", i % 97),
        1 => "\n\n".to_owned(),
        2 => format!("say \"{}\"\r\n,", i % 89),
        _ => format!("plain {}", i % 83),
    };
    let line = |i: usize| format!("{},\"{}\",{}\n", i % 2, note(i).replace('"', "\"\""), i % 5);
    let text = "y,note,n\n".to_owned() + &(0..90_000).map(line).collect::<String>();
    let one = read(format.clone(), &text).unwrap();
    assert_eq!(one.n_rows(), 90_000);
    for i in [0, 1, 2, 3, 89_997] {
        let mut expected = vec![(hashing.column("note", note(i).as_bytes()), 1.0)];
        if i % 5 != 0 {
            expected.push((hashing.column("n", b""), (i % 5) as f32));
        }
        assert_eq!(row(&one, i), sorted(expected), "{i}");
    }
    for threads in [2, 3, 7] {
        let reader = TextReader::new(format.clone()).parallel(Parallel::Threads(threads));
        let more: Dataset = reader.read_bytes("file", text.as_bytes()).unwrap();
        assert_eq!(more.features(), one.features());
        assert_eq!(numbers(&more, "y"), numbers(&one, "y"));
    }
    let bad = format!("y,note,n\n{}1,x,bad\n", (0..4).map(line).collect::<String>());
    let error = refused(format, &bad);
    assert!(error.starts_with("file:10:5: expected a number in the column `n`"), "{error}");
}

/// The entries of `field` for each sample.
fn fields_of(data: &Dataset) -> Vec<Vec<(usize, f32)>> {
    match data.column("field").unwrap().values() {
        ColumnValues::Csr(field) => {
            assert_eq!(field.indptr(), data.features().unwrap().indptr());
            field.view().iter_rows().map(Iterator::collect).collect()
        }
        _ => panic!("fields are numbers of entries"),
    }
}

#[test]
fn columns_in_x_and_crosses_are_fields() {
    let hashing = Hashing::new(20).unwrap();
    let schema = "y:label,a:categorical,skipped:ignore,n:numeric,t:list,w:weight";
    let format = Delimited::csv(hashing).with_schema(schema).unwrap();
    let format = format.cross(&["a", "n"]).unwrap().fields().unwrap();
    assert_eq!(format.n_fields(), 4);
    let reader = TextReader::new(format.clone());
    let data = reader.read_bytes("file", b"1,red,z,3,p|q,1\n0,,z,,,2\n").unwrap();
    let column = |name: &str, text: &str| hashing.column(name, text.as_bytes()) as usize;
    let cross = hashing.cross_column(&[("a", b"red"), ("n", b"")]) as usize;
    let mut first = vec![
        (column("a", "red"), 0.0),
        (column("n", ""), 1.0),
        (column("t", "p"), 2.0),
        (column("t", "q"), 2.0),
        (cross, 3.0),
    ];
    first.sort_by_key(|entry| entry.0);
    assert_eq!(fields_of(&data), [first, vec![(column("a", ""), 0.0)]]);
    // Without labels the numbers are the same.
    let without = TextReader::new(format.without_labels());
    let scored = without.read_bytes("file", b"red,z,3,p|q,1\n,z,,,2\n").unwrap();
    assert_eq!(fields_of(&scored), fields_of(&data));

    let many = vec!["categorical"; 257].join(",");
    let error = Delimited::csv(hashing).with_schema(&many).unwrap().fields().unwrap_err();
    assert!(error.to_string().contains("257 fields, but a field-aware model has at most 256"));
}
