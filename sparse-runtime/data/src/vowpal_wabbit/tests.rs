use super::*;
use crate::{ColumnValues, Dataset, TextReader};

fn hashing() -> Hashing {
    Hashing::new(24).unwrap()
}

fn read(format: VowpalWabbit, text: &str) -> Result<Dataset, ReadError> {
    TextReader::new(format).read_bytes("file", text.as_bytes())
}

fn rows(data: &Dataset) -> Vec<Vec<(usize, f32)>> {
    data.features().unwrap().iter_rows().map(Iterator::collect).collect()
}

fn numbers(data: &Dataset, name: &str) -> Vec<f32> {
    match data.column(name).unwrap().values() {
        ColumnValues::Dense(dense) => dense.values().to_vec(),
        _ => panic!("`{name}` is dense"),
    }
}

/// A sample of these features: namespace, name and value.
fn row(features: &[(&str, &str, f32)]) -> Vec<(usize, f32)> {
    let entry = |&(space, name, value): &(&str, &str, f32)| {
        (hashing().column(space, name.as_bytes()) as usize, value)
    };
    let mut row: Vec<_> = features.iter().map(entry).collect();
    row.sort_by_key(|entry| entry.0);
    row
}

#[test]
fn labels_importances_tags_and_namespaces_are_read() {
    let text =
        "1 2.5 'first |a x y:0.5 |b:2 x:3 z\r\n\n-1 tag|a x:-1e-1\n0 | x |a\n0.5\t|a x|b y\n";
    let data = read(VowpalWabbit::new(hashing()), text).unwrap();
    assert_eq!(numbers(&data, "y"), [1.0, -1.0, 0.0, 0.5]);
    assert_eq!(numbers(&data, WEIGHT), [2.5, 1.0, 1.0, 1.0]);
    let first = row(&[("a", "x", 1.0), ("a", "y", 0.5), ("b", "x", 6.0), ("b", "z", 2.0)]);
    let others = [row(&[("a", "x", -0.1)]), row(&[("", "x", 1.0)])];
    let last = row(&[("a", "x", 1.0), ("b", "y", 1.0)]);
    assert_eq!(rows(&data), [&[first][..], &others, &[last]].concat());
    assert_eq!(data.n_features(), 1 << 24);
}

#[test]
fn samples_to_score_have_no_label() {
    let text = "|a x\n'tag |a x\n1 2 3 4 |a x\n";
    let data = read(VowpalWabbit::new(hashing()).without_labels(), text).unwrap();
    assert_eq!((data.n_rows(), data.columns().len()), (3, 1));
    let error = read(VowpalWabbit::new(hashing()), text).unwrap_err().to_string();
    assert!(error.starts_with("file:1:1: expected a label and a blank before"), "{error}");
}

#[test]
fn importances_are_refused_where_samples_weigh_alike() {
    let format = VowpalWabbit::new(hashing()).without_importance();
    assert_eq!(read(format.clone(), "1 |a x\n1 1 |a x\n").unwrap().columns().len(), 2);
    let error = read(format, "1 |a x\n1 2 |a x\n").unwrap_err().to_string();
    assert!(error.starts_with("file:2:1: expected an importance of 1, since"), "{error}");
}

#[test]
fn repeated_features_are_added() {
    let data = read(VowpalWabbit::new(hashing()), "1 |a x y x:2 |a x:4\n").unwrap();
    assert_eq!(rows(&data), [row(&[("a", "x", 7.0), ("a", "y", 1.0)])]);
    let error = read(VowpalWabbit::new(hashing()), "1 |a x:3e38 x:3e38\n").unwrap_err();
    assert!(error.to_string().contains("add up to no finite number"), "{error}");
}

#[test]
fn crosses_have_a_feature_for_each_pair() {
    let pair = |parts: [(&str, &str); 2]| {
        hashing().cross_column(&parts.map(|(space, name)| (space, name.as_bytes()))) as usize
    };
    let text = "1 |user x:2 y |page z:3 |user w\n";
    let plain =
        row(&[("user", "x", 2.0), ("user", "y", 1.0), ("page", "z", 3.0), ("user", "w", 1.0)]);
    let with = |pairs: &[([(&str, &str); 2], f32)]| {
        let pairs = pairs.iter().map(|(parts, value)| (pair(*parts), *value));
        let mut all: Vec<(usize, f32)> = plain.iter().copied().chain(pairs).collect();
        all.sort_by_key(|entry| entry.0);
        all
    };
    let expected = with(&[
        ([("user", "x"), ("page", "z")], 6.0),
        ([("user", "y"), ("page", "z")], 3.0),
        ([("user", "w"), ("page", "z")], 3.0),
    ]);
    let format = VowpalWabbit::new(hashing());
    let named = format.clone().cross("user", "page");
    assert_eq!(rows(&read(named, text).unwrap()), std::slice::from_ref(&expected));
    let initials = format.clone().cross_initials(b'u', b'p');
    assert_eq!(rows(&read(initials, text).unwrap()), [expected]);
    // Of a namespace with itself each pair counts once, in whatever order its features are.
    let own = format.clone().cross("user", "user");
    let data = read(own.clone(), text).unwrap();
    assert_eq!(data.features().unwrap().nnz(), 4 + 3);
    let other = read(own, "1 |user w y |page z:3 |user x:2\n").unwrap();
    assert_eq!(rows(&other), rows(&data));
    let any = format.cross_initials(b':', b':');
    assert_eq!(read(any, text).unwrap().features().unwrap().nnz(), 4 + 6);
}

#[test]
fn what_is_wrong_is_named() {
    for (text, message) in [
        ("1 |a x\n1 a x\n", "file:2:1: expected `|` and the features of a namespace"),
        ("one |a x\n", "file:1:1: expected a label, found `one`"),
        ("nan |a x\n", "file:1:1: label `nan` is not a finite number"),
        ("1 -2 |a x\n", "file:1:3: expected an importance of at least 0, found `-2`"),
        ("1 2 3 |a x\n", "file:1:5: expected a tag `'…` or `|` after the label"),
        ("1 two |a x\n", "file:1:3: expected a number, the importance, or a tag `'…`"),
        ("1|a x\n", "file:1:1: expected a label and a blank before the first `|`"),
        ("1 |a x:y\n", "file:1:8: expected a number after `:`, found `y`"),
        ("1 |a x:\n", "file:1:8: expected a number after `:`"),
        ("1 |a x:inf\n", "file:1:8: expected a finite number after `:`"),
        ("1 |a :1\n", "file:1:6: expected the name of a feature before `:`"),
        ("1 |a:x y\n", "file:1:6: expected a number after `:`"),
        ("1 |a x\0\n", "file:1:7: a NUL byte"),
        ("\n", "`file` has no rows"),
    ] {
        let error = read(VowpalWabbit::new(hashing()), text).unwrap_err().to_string();
        assert!(error.starts_with(message), "{text:?}: {error}");
    }
}

#[test]
fn columns_are_named_by_namespaces_and_features() {
    let path = std::env::temp_dir().join(format!("nnz-names-{}.vw", std::process::id()));
    std::fs::write(&path, "1 |user x:2 y |page z |b\n\n1 |user x |bad :3\n").unwrap();
    let format = VowpalWabbit::new(hashing()).cross("user", "page");
    let single = hashing().column("user", b"x");
    let pair = hashing().cross_column(&[("user", b"y"), ("page", b"z")]);
    let names = format.feature_names(&path, [single, pair]).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(names.get(single), ["user^x"]);
    assert_eq!(names.get(pair), ["user^y*page^z"]);
}

#[test]
fn namespaces_and_crosses_are_fields() {
    let format = VowpalWabbit::new(hashing()).cross("a", "b").fields(["a", "b", ""]).unwrap();
    assert_eq!(format.n_fields(), 4);
    let data = read(format.clone(), "1 |b x:2 |a y | z\n").unwrap();
    let ColumnValues::Csr(field) = data.column("field").unwrap().values() else {
        panic!("fields are numbers of entries")
    };
    let cross = hashing().cross_column(&[("a", b"y"), ("b", b"x")]) as usize;
    let mut expected = row(&[("a", "y", 0.0), ("b", "x", 1.0), ("", "z", 2.0)]);
    expected.push((cross, 3.0));
    expected.sort_by_key(|entry| entry.0);
    let found: Vec<(usize, f32)> = field.view().iter_rows().next().unwrap().collect();
    assert_eq!(found, expected);
    let error = read(format, "1 |c x\n").unwrap_err().to_string();
    assert!(error.contains("a namespace that is a field of the model, found `c`"), "{error}");
}
