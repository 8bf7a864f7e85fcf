use super::*;
use nnz_arrays::formats::Ids;

#[test]
fn columns_have_the_same_rows() {
    let error = Dataset::new(Csr::<f32>::zeros(3, 2), vec![1.0, 2.0]).unwrap_err();
    let message =
        "the label (column 1) has 2 rows, but the input (column 0) has 3: every row needs both";
    assert_eq!(error.to_string(), message);
}

#[test]
fn labels_are_finite() {
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let error = Dataset::new(Csr::zeros(3, 2), vec![1.0, 2.0, bad]).unwrap_err();
        assert!(matches!(error, DataError::LabelNotFinite { row: 2, .. }), "{error}");
    }
    // The row, not the element.
    let labels = Dense::new([2, 3], vec![0.0, 0.0, 0.0, 0.0, f64::NAN, 0.0]).unwrap();
    let data = Dataset::<f64>::builder().input("x", Csr::<f64>::zeros(2, 2));
    let error = data.label("y", labels).build().unwrap_err();
    assert_eq!(error.to_string(), "row 1 of the label `y` is NaN: labels must be finite numbers");
}

#[test]
fn n11_numbers_that_are_not_finite_are_refused_with_sample_column_and_value() {
    let mut rows = vec![vec![(1, 1.0f32)]; 9];
    rows[7] = vec![(0, 2.0), (3, f32::NAN), (4, 1.0)];
    let x = Csr::from_rows(5, rows).unwrap();
    let message = |error: DataError| error.to_string();
    let error = message(Dataset::new(x.clone(), vec![0.0; 9]).unwrap_err());
    let expected =
        "row 7 of the input (column 0) holds NaN in column 3 (rows and columns numbered from 0): ";
    assert!(error.starts_with(expected), "{error}");
    assert_eq!(message(Dataset::features_only(x.clone()).unwrap_err()), error);
    let builder = Dataset::<f32>::builder().input("x", x);
    assert!(message(builder.build().unwrap_err()).contains("row 7 of the input `x` holds NaN"));
    let mut z = Dense::zeros([400, 3]);
    z.values_mut()[3 * 301 + 2] = f32::INFINITY;
    let error = message(Dataset::<f32>::builder().input("z", z).build().unwrap_err());
    assert!(error.contains("row 301 of the input `z` holds inf in column 2"), "{error}");
    let zeros = Csr::<f32>::zeros(2, 5);
    let error = message(Dataset::new(zeros, vec![0.0, f32::INFINITY]).unwrap_err());
    assert!(error.contains("row 1 of the label (column 1) is inf"), "{error}");
}

#[test]
fn labels_from_a_second_file() {
    let data = Dataset::new(Csr::<f32>::zeros(2, 4), vec![1.0, 2.0]).unwrap();
    let tags = Csr::from_rows(3, [vec![(2, 1.0)], vec![]]).unwrap();
    let labels = Dataset::new(tags.clone(), vec![0.0, 0.0]).unwrap();
    let data = data.with_labels_from(labels).unwrap();
    assert!(matches!(data.labels(), Some(ColumnValues::Csr(found)) if found == &tags));
    assert_eq!((data.columns().len(), data.n_features()), (2, 4));
    let short = Dataset::features_only(Csr::zeros(1, 3)).unwrap();
    let error = data.clone().with_labels_from(short).unwrap_err();
    assert!(matches!(error, DataError::RowCount { found: 1, expected: 2, .. }), "{error}");
    let bad = Csr::from_rows(3, [vec![], vec![(0, 1.0), (2, f32::NAN)]]).unwrap();
    let error = Dataset::features_only(bad).unwrap_err();
    assert!(matches!(error, DataError::InputNotFinite { row: 1, position: 2, .. }), "{error}");
    let dense = Dataset::<f32>::builder().input("x", vec![0.0f32, 1.0]).build().unwrap();
    assert_eq!(data.with_labels_from(dense).unwrap_err(), DataError::NoInput);
}

#[test]
fn names_are_unique_and_there_is_an_input() {
    let builder = Dataset::<f32>::builder();
    let error = builder.clone().build().unwrap_err();
    assert_eq!(error, DataError::NoInput);
    let error = builder.clone().label("y", vec![1.0f32]).build().unwrap_err();
    assert_eq!(error, DataError::NoInput);
    let error =
        builder.input("x", Csr::<f32>::zeros(1, 1)).label("x", vec![1.0f32]).build().unwrap_err();
    assert_eq!(error.to_string(), "two columns are called `x`");
}

#[test]
fn accessors() {
    let data = Dataset::<f32>::builder()
        .input("dense", Dense::new([2, 7], vec![0.0f32; 14]).unwrap())
        .input("sparse", Csr::<f32>::zeros(2, 5))
        .label("y", vec![3u32, 4])
        .build()
        .unwrap();
    assert_eq!((data.n_rows(), data.n_features()), (2, 5));
    assert_eq!(data.features(), Some(&Csr::zeros(2, 5)));
    assert!(matches!(data.labels(), Some(ColumnValues::Ids(_))));
    assert_eq!(data.column("y").map(Column::role), Some(InputRole::Label));
    assert!(data.column("z").is_none());
    let dense = Dataset::<f32>::builder()
        .input("dense", Dense::new([2, 7], vec![0.0f32; 14]).unwrap())
        .build()
        .unwrap();
    assert_eq!((dense.n_features(), dense.features()), (7, None));
    assert!(dense.labels().is_none());
}

#[test]
fn display_shows_every_column() {
    let x = Csr::from_rows(4, [vec![(1, 2.0f32)], vec![(0, 1.0), (3, 1.0)]]).unwrap();
    let data = Dataset::new(x, vec![3.0, -1.0]).unwrap();
    assert_eq!(
        data.to_string(),
        "2 rows\n  input: csr f32 [2, 4], 3 non-zeros (1.5 a row)\n  label: dense f32 [2], -1 to 3"
    );
    let (data, _) = data.into_classes().unwrap();
    assert!(data.to_string().ends_with("\n  label: dense u32 [2] of 2 classes {-1, 3}"), "{data}");
    let empty = Dataset::new(Csr::<f32>::zeros(0, 0), vec![]).unwrap();
    assert!(empty.to_string().starts_with("0 rows\n"), "{empty}");
}

#[test]
fn classes_are_the_sorted_distinct_labels() {
    let data = |labels: &[f32]| Dataset::new(Csr::zeros(labels.len(), 1), labels.to_vec()).unwrap();
    let (train, classes) = data(&[3.0, -1.0, 0.0, 3.0, -0.0]).into_classes().unwrap();
    assert_eq!((classes.labels(), classes.len()), (&[-1.0, 0.0, 3.0][..], 3));
    assert_eq!(
        (classes.id(3.0), classes.label(2), classes.id(-0.0)),
        (Some(2), Some(3.0), Some(1))
    );
    let ids = |data: &Dataset| match data.labels() {
        Some(ColumnValues::Ids(Ids::U32(ids))) => ids.values().to_vec(),
        _ => panic!("the labels are ids"),
    };
    assert_eq!(ids(&train), [2, 0, 1, 2, 1]);
    assert_eq!(train.classes(), Some(&classes));

    let test = data(&[0.0, 3.0]).with_classes(&classes).unwrap();
    assert_eq!(ids(&test), [1, 2]);
    let error = data(&[0.0, 1.5]).with_classes(&classes).unwrap_err();
    assert_eq!(
        error.to_string(),
        "row 1 has the label 1.5, which is not among the 3 classes {-1, 0, 3}"
    );
    for nothing in [Dataset::<f32>::features_only(Csr::zeros(1, 1)).unwrap(), train] {
        let error = nothing.into_classes().unwrap_err();
        assert_eq!(error, DataError::NothingToClassify);
    }
    // Weights are labels as well, but no classes.
    let weighted = Dataset::builder().input("x", Csr::<f32>::zeros(1, 1));
    let weighted = weighted.label("weight", Dense::new([1], vec![0.5]).unwrap());
    let weighted = weighted.label("y", Dense::new([1], vec![3.0]).unwrap()).build().unwrap();
    assert_eq!(weighted.into_classes().unwrap().1.labels(), [3.0]);
    let many: Vec<f32> = (0..30).map(|i| i as f32).collect();
    let (_, classes) = data(&many).into_classes().unwrap();
    assert_eq!(classes.to_string(), "{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, …}");
}

/// A model of `f64` says to cast the data.
#[test]
fn numbers_of_another_type() {
    let x = Csr::from_rows(3, [vec![(0, 0.1f32)], vec![], vec![(2, -2.0)]]).unwrap();
    let data = Dataset::<f32>::builder()
        .input("x", x)
        .input("ids", Dense::new([3], vec![7u64, 0, u64::MAX]).unwrap())
        .label("y", vec![1.0f32, 0.5, -3.0])
        .build()
        .unwrap();
    let wide = data.cast::<f64>().unwrap();
    assert_eq!(wide.features().unwrap().values(), [f64::from(0.1f32), -2.0]);
    assert_eq!(wide.column("ids").unwrap().role(), InputRole::Input);
    let back = wide.cast::<f32>().unwrap();
    assert_eq!(back.features(), data.features());
    assert_eq!(back.to_string(), data.to_string());
    let (classes, _) = data.into_classes().unwrap();
    assert_eq!(classes.cast::<f64>().unwrap().classes().unwrap().len(), 3);
    let large = Dataset::new(Csr::<f64>::zeros(1, 1), vec![1e300]).unwrap();
    let error = large.cast::<f32>().unwrap_err();
    assert!(matches!(error, DataError::LabelNotFinite { .. }), "{error}");
}

/// Numbers of inputs that the type cannot hold are not made infinite.
#[test]
fn casts_keep_numbers_finite() {
    let wide = |value: f64| {
        let x = Csr::from_rows(2, [vec![(0, 1.0)], vec![(1, value)]]).unwrap();
        Dataset::new(x, vec![1.0, 0.0]).unwrap()
    };
    assert!(wide(1e30).cast::<f32>().is_ok());
    let error = wide(1e300).cast::<f32>().unwrap_err();
    assert_eq!(
        error.to_string(),
        "row 1 of the input (column 0) holds a number that is infinite as `f32`: scale the column, or keep a wider type"
    );
}

#[test]
fn what_is_divided_is_once_more_there_and_not_in_what_is_made_of_it() {
    let x = Csr::from_rows(50, (0..7).map(|row| vec![(row, 1.0f32), (row + 40, 1.0)])).unwrap();
    let data = Dataset::builder().input("x", x).input("z", vec![1.0f32; 7]);
    let data = data.label("y", vec![0.0f32; 7]).build().unwrap();
    let told = |data: &Dataset| data.to_string().matches("divided for 3 threads").count();
    let divided = data.clone().divided_for(3).unwrap();
    assert_eq!((told(&data), told(&divided), told(&divided.clone())), (0, 1, 1));
    assert_eq!(divided.features(), data.features());
    assert_eq!(told(&data.into_units().unwrap().divided_for(3).unwrap()), 1);
    assert_eq!(told(&divided.into_units().unwrap()), 0);
}
