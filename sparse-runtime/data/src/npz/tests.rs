use super::*;
use nnz_arrays::formats::ColumnIdsView;
use proptest::prelude::*;
use std::io::{Cursor, Write};
use std::path::PathBuf;
use zip::write::{SimpleFileOptions, ZipWriter};

/// A file that SciPy 1.17 wrote, by `save_npz` of
/// `csr_matrix((data, indices, indptr), shape=(4, 5))`, of the same as a `csr_array` with
/// `compressed=False`, and of a `csc_matrix`.
fn scipy(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

/// The matrix in both of them.
fn expected<T: Float>() -> Csr<T> {
    let values = [2.0, 1.5, -0.25, 4.0].map(T::of).to_vec();
    Csr::new(5, vec![0, 2, 2, 3, 4], vec![1u32, 3, 0, 4], values).unwrap()
}

#[test]
fn files_of_scipy() {
    // float64 values and int32 indices, compressed.
    let path = scipy("scipy_compressed.npz");
    let file = NpzCsr::open(&path).unwrap();
    assert_eq!((file.n_rows(), file.n_cols(), file.nnz()), (4, 5, 4));
    assert_eq!(file.into_csr::<f32>().unwrap(), expected());
    assert_eq!(read::<f64>(&path).unwrap(), expected());
    // float32 values and int64 indices, stored.
    let csr: Csr<f32> = read(scipy("scipy_stored_f4_i8.npz")).unwrap();
    assert_eq!(csr, expected());
    assert!(matches!(csr.columns(), ColumnIdsView::U32(_)));
}

#[test]
fn another_format_is_refused_with_the_way_out() {
    let error = read::<f32>(scipy("scipy_csc.npz")).unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("the matrix is `csc`: convert it by `.tocsr()` before `save_npz`"),
        "{error}"
    );
}

/// An npy file.
fn npy(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.bytes());
    bytes.extend(data);
    bytes
}

fn le<const N: usize, E>(numbers: &[E], bytes: impl Fn(&E) -> [u8; N]) -> Vec<u8> {
    numbers.iter().flat_map(bytes).collect()
}

/// The arrays of a 2 × 3 matrix that holds 7 at (1, 2).
fn arrays() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("indices", npy("<i4", "(1,)", &2i32.to_le_bytes())),
        ("indptr", npy("<i4", "(3,)", &le(&[0, 0, 1], |i: &i32| i.to_le_bytes()))),
        ("format", npy("|S3", "()", b"csr")),
        ("shape", npy("<i8", "(2,)", &le(&[2, 3], |i: &i64| i.to_le_bytes()))),
        ("data", npy("<f4", "(1,)", &7f32.to_le_bytes())),
    ]
}

/// The file of these arrays.
fn zipped(arrays: &[(&str, Vec<u8>)]) -> Cursor<Vec<u8>> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in arrays {
        zip.start_file(format!("{name}.npy"), SimpleFileOptions::default()).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap()
}

/// Reads the file of these arrays.
fn read_arrays(arrays: &[(&str, Vec<u8>)]) -> Result<Csr<f32>, ReadError> {
    NpzCsr::read_from("file", zipped(arrays))?.into_csr()
}

/// What reading says once one array is another.
#[track_caller]
fn with(name: &str, array: Vec<u8>) -> Result<Csr<f32>, String> {
    let mut arrays = arrays();
    let (_, bytes) = arrays.iter_mut().find(|(other, _)| *other == name).unwrap();
    *bytes = array;
    read_arrays(&arrays).map_err(|error| {
        let message = error.to_string();
        message.strip_prefix("`file`: ").unwrap().to_owned()
    })
}

#[test]
fn arrays_beyond_the_memory_are_errors_with_their_bytes() {
    let mut arrays = arrays();
    let n_rows = 1i64 << 44;
    arrays[3].1 = npy("<i8", "(2,)", &le(&[n_rows, 3], |i: &i64| i.to_le_bytes()));
    arrays[1].1 = npy("<i8", &format!("({},)", n_rows + 1), &[0; 16]);
    match read_arrays(&arrays) {
        Err(ReadError::ArraysTooLarge { file, what, bytes }) => {
            assert_eq!((&file[..], bytes), ("file", 24 * ((1 << 44) + 1)));
            assert_eq!(what, format!("the {} elements of array `indptr`", n_rows + 1));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn other_element_types() {
    let seven = read_arrays(&arrays()).unwrap();
    assert_eq!(seven, Csr::from_coo(2, 3, [(1, 2, 7.0)]).unwrap());
    for (descr, bytes) in [
        ("<f8", 7f64.to_le_bytes().to_vec()),
        (">f4", 7f32.to_be_bytes().to_vec()),
        ("|i1", vec![7]),
        ("|u1", vec![7]),
        ("<i2", vec![7, 0]),
        (">u2", vec![0, 7]),
        ("<i4", 7i32.to_le_bytes().to_vec()),
        ("<u4", 7u32.to_le_bytes().to_vec()),
        ("<i8", 7i64.to_le_bytes().to_vec()),
        ("<u8", 7u64.to_le_bytes().to_vec()),
    ] {
        assert_eq!(with("data", npy(descr, "(1,)", &bytes)).as_ref(), Ok(&seven), "{descr}");
    }
    let one = with("data", npy("|b1", "(1,)", &[1])).unwrap();
    assert_eq!(one.values(), [1.0]);
    for (descr, bytes) in [("<u4", vec![2, 0, 0, 0]), (">u8", vec![0, 0, 0, 0, 0, 0, 0, 2])] {
        assert_eq!(with("indices", npy(descr, "(1,)", &bytes)).as_ref(), Ok(&seven), "{descr}");
    }
    let csr: Vec<u8> = "csr".chars().flat_map(|c| u32::from(c).to_le_bytes()).collect();
    assert_eq!(with("format", npy("<U3", "()", &csr)).as_ref(), Ok(&seven));
}

#[test]
fn integers_as_ids() {
    let read = |descr, bytes: &[u8], shape| {
        read_ids_from("file", zipped(&[("y", npy(descr, shape, bytes))]), "y")
    };
    // 2⁶³ + 1 is no f64, and -1 stays what it is until something asks for a class.
    let large = (1u64 << 63) + 1;
    for (descr, bytes, expected) in [
        ("<i8", le(&[-1i64, 1 << 40], |id| id.to_le_bytes()), Ids::I64(vec![-1, 1 << 40].into())),
        ("<u8", le(&[large, 3], |id| id.to_le_bytes()), Ids::U64(vec![large, 3].into())),
        (">u4", le(&[7u32, u32::MAX], |id| id.to_be_bytes()), Ids::U32(vec![7, u32::MAX].into())),
        ("<i4", le(&[7i32, -2], |id| id.to_le_bytes()), Ids::I64(vec![7, -2].into())),
        ("|u1", vec![3, 255], Ids::U32(vec![3, 255].into())),
        ("|i1", vec![3, 255], Ids::I64(vec![3, -1].into())),
    ] {
        assert_eq!(read(descr, &bytes, "(2,)").unwrap(), expected, "{descr}");
    }
    let message = |result: Result<Ids, ReadError>| result.unwrap_err().to_string();
    assert_eq!(
        message(read("<f4", &[0; 4], "(1,)")),
        "`file`: array `y`: elements of type `f4` are not ids"
    );
    assert!(message(read("<i8", &[0; 16], "(2, 1)")).starts_with("`file`: array `y`: "));
    assert_eq!(
        message(read_ids_from("file", zipped(&[]), "y")),
        "`file`: there is no array `y`: name one of those that were given to `numpy.savez`"
    );
}

#[test]
fn what_is_wrong_is_named() {
    let refused = |name, array| with(name, array).unwrap_err();
    for (name, _) in arrays() {
        let mut arrays = arrays();
        arrays.retain(|(other, _)| *other != name);
        let error = read_arrays(&arrays).unwrap_err().to_string();
        assert!(error.contains(&format!("there is no array `{name}`")), "{error}");
    }
    assert_eq!(
        refused("data", npy("<c8", "(1,)", &[0; 8])),
        "array `data`: elements of type `c8` are not numbers"
    );
    assert_eq!(
        refused("indices", npy("<f4", "(1,)", &[0; 4])),
        "array `indices`: elements of type `f4` are not indices"
    );
    assert_eq!(
        refused("indices", npy("<i4", "(1,)", &(-1i32).to_le_bytes())),
        "array `indices`: entry 0 is -1, below 0"
    );
    assert_eq!(
        refused("format", npy("<f4", "()", &[0; 4])),
        "array `format`: elements of type `<f4` are not text"
    );
    assert_eq!(
        refused("shape", npy("<i8", "(1,)", &[0; 8])),
        "the shape has 1 extents: only matrices have rows of features"
    );
    assert_eq!(
        refused("shape", npy("<i8", "(2,)", &le(&[3, 3], |i: &i64| i.to_le_bytes()))),
        "`indptr` has 3 entries, but a matrix of 3 rows has one more than rows"
    );
    assert!(
        refused("shape", npy("<i8", "(2,)", &le(&[2, 2], |i: &i64| i.to_le_bytes())))
            .starts_with("column 2 in row 1 (entry 0) is out of range")
    );
    for bad in [f32::NAN, f32::INFINITY] {
        assert!(
            refused("data", npy("<f4", "(1,)", &bad.to_le_bytes()))
                .starts_with("the value of entry 0, in row 1, is not a finite `f32`")
        );
    }
    assert!(
        refused("data", npy("<f8", "(1,)", &1e300f64.to_le_bytes())).contains("not a finite `f32`")
    );
    for damaged in [
        b"no npy".to_vec(),
        npy("<f4", "(1,)", &[0; 3]),
        npy("<f4", "(1,)", &[0; 5]),
        npy("<f4", "(9999999999999999,9999999999999999)", &[0; 4]),
        npy("<f4", "(-1,)", &[0; 4]),
        npy("<f4", "1", &[0; 4]),
        npy("<f4", "(1,)", &[0; 4])[..30].to_vec(),
    ] {
        let error = refused("data", damaged);
        assert!(
            error.starts_with("array `data`: this is not an npy array, or is damaged"),
            "{error}"
        );
    }
    assert_eq!(
        refused("data", npy("<f4", "(1, 1)", &[0; 4])),
        "array `data`: it has 2 dimensions, not one"
    );
    assert_eq!(
        refused("data", npy("|f4", "(1,)", &[0; 4])),
        "array `data`: elements of type `|f4` have no byte order"
    );
    assert_eq!(
        refused("data", npy("|b1", "(1,)", &[2])),
        "array `data`: entry 0 is not of the type `|b1`"
    );
    assert_eq!(
        refused("format", npy("\u{1b}[2J", "()", &[0; 4])),
        r"array `format`: this is not an npy array, or is damaged: its 1 elements of type `\u{1b}[2J` do not take 4 bytes"
    );
}

/// Of a member that unpacks to much more than the arrays before it allow, nothing is read but its
/// header.
#[test]
fn arrays_are_no_longer_than_those_before_them_allow() {
    let mib = vec![0; 64 << 20];
    for (name, descr, allowed) in [("shape", "<i8", 6), ("indptr", "<i4", 3)] {
        let error = with(name, npy(descr, "(8000000,)", &mib[..32])).unwrap_err();
        assert_eq!(
            error,
            format!(
                "array `{name}`: it has 8000000 elements, but the arrays before it allow {allowed}"
            )
        );
    }
    let error = with("data", npy("<f4", "(1,)", &mib)).unwrap_err();
    assert!(error.contains("its 1 elements of type `<f4` do not take 65"), "{error}");
}

#[test]
fn unsorted_and_repeated_columns_are_refused_with_the_way_out() {
    for columns in [[2, 1], [1, 1]] {
        let mut arrays = arrays();
        arrays[0].1 = npy("<i4", "(2,)", &le(&columns, |i: &i32| i.to_le_bytes()));
        arrays[1].1 = npy("<i4", "(3,)", &le(&[0, 0, 2], |i: &i32| i.to_le_bytes()));
        arrays[4].1 = npy("<f4", "(2,)", &[0; 8]);
        let error = read_arrays(&arrays).unwrap_err();
        let way_out = "or call `.sum_duplicates()` on the matrix before `save_npz`";
        assert!(matches!(error, ReadError::Content { .. }));
        assert!(error.to_string().ends_with(way_out), "{error}");
    }
}

#[test]
fn damaged_files_never_panic() {
    let error = read::<f32>("no/such/file.npz").unwrap_err();
    assert!(matches!(error, ReadError::Io { .. }));
    let read_bytes = |bytes: Vec<u8>| -> Result<Csr<f32>, ReadError> {
        NpzCsr::read_from("file", Cursor::new(bytes))?.into_csr()
    };
    for name in ["scipy_compressed.npz", "scipy_stored_f4_i8.npz"] {
        let whole = std::fs::read(scipy(name)).unwrap();
        assert_eq!(read_bytes(whole.clone()).unwrap(), expected());
        for end in 0..whole.len() {
            assert!(read_bytes(whole[..end].to_vec()).is_err(), "{name} cut at {end}");
        }
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x55;
            // Some bytes, such as times, do not matter.
            if let Ok(csr) = read_bytes(damaged) {
                assert_eq!(csr, expected(), "{name} with byte {at} changed");
            }
        }
    }
}

/// The file of a matrix, with indices of 32 or 64 bits.
fn file_of(matrix: &Csr<f64>, wide: bool) -> Vec<u8> {
    let ids = |ids: &mut dyn Iterator<Item = u64>| {
        let ids: Vec<i64> = ids.map(|id| id as i64).collect();
        let shape = format!("({},)", ids.len());
        if wide {
            npy("<i8", &shape, &le(&ids, |id| id.to_le_bytes()))
        } else {
            npy("<i4", &shape, &le(&ids, |id| (*id as i32).to_le_bytes()))
        }
    };
    let values = npy(
        "<f8",
        &format!("({},)", matrix.nnz()),
        &le(matrix.values(), |value: &f64| value.to_le_bytes()),
    );
    let shape = [matrix.n_rows() as i64, matrix.n_cols() as i64];
    let mut columns = matrix.iter_rows().flatten().map(|(column, _)| column as u64);
    let arrays = [
        ("indices", ids(&mut columns)),
        ("indptr", ids(&mut matrix.indptr().iter().copied())),
        ("format", npy("|S3", "()", b"csr")),
        ("shape", npy("<i8", "(2,)", &le(&shape, |i: &i64| i.to_le_bytes()))),
        ("data", values),
    ];
    zipped(&arrays).into_inner()
}

fn matrices() -> impl Strategy<Value = Csr<f64>> {
    let value = any::<f64>().prop_filter("finite", |value| value.is_finite());
    (0..6usize, 0..6usize).prop_flat_map(move |(n_rows, n_cols)| {
        let row = prop::collection::btree_map(0..n_cols.max(1), value.clone(), 0..=n_cols);
        prop::collection::vec(row, n_rows)
            .prop_map(move |rows| Csr::from_rows(n_cols, rows).unwrap())
    })
}

proptest! {
    #[test]
    fn any_matrix_is_read_as_it_is(matrix in matrices(), wide in any::<bool>()) {
        let read = NpzCsr::read_from("file", Cursor::new(file_of(&matrix, wide))).unwrap();
        let read: Csr<f64> = read.into_csr().unwrap();
        prop_assert_eq!((read.indptr(), read.columns()), (matrix.indptr(), matrix.columns()));
        let bits = |csr: &Csr<f64>| csr.values().iter().map(|v| v.to_bits()).collect::<Vec<_>>();
        prop_assert_eq!(bits(&read), bits(&matrix));
    }

    /// Damage is refused, or leaves a valid matrix; no damage ends the process.
    #[test]
    fn damaged_bytes_are_read_or_refused(
        matrix in matrices(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut bytes = file_of(&matrix, false);
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        if let Ok(read) = NpzCsr::read_from("file", Cursor::new(bytes))
            && let Ok(csr) = read.into_csr::<f32>()
        {
            prop_assert!(Csr::from_parts(csr.into_parts()).is_ok());
        }
    }
}

#[test]
fn d19_data_and_indices_with_room_to_spare_are_read() {
    let mut spare = arrays();
    spare[0].1 = npy("<i4", "(3,)", &le(&[2, 0, 0], |i: &i32| i.to_le_bytes()));
    spare[4].1 = npy("<f4", "(2,)", &le(&[7.0, f32::NAN], |x: &f32| x.to_le_bytes()));
    assert_eq!(read_arrays(&spare).unwrap(), read_arrays(&arrays()).unwrap());
    // Too few are refused still.
    let error = with("data", npy("<f4", "(0,)", &[])).unwrap_err();
    assert!(!error.is_empty());
}

#[test]
fn labels_are_arrays_of_numbers_of_any_type() {
    let path = std::env::temp_dir().join(format!("nnz-labels-{}.npz", std::process::id()));
    let types: [(&str, Vec<u8>); 4] = [
        ("<f8", le(&[1.0, -1.0], |label: &f64| label.to_le_bytes())),
        (">i4", [1i32, -1].iter().flat_map(|label| label.to_be_bytes()).collect()),
        ("|i1", vec![1, 255]),
        ("<f4", le(&[1.0, -1.0], |label: &f32| label.to_le_bytes())),
    ];
    for (descr, bytes) in types {
        let array = npy(descr, "(2,)", &bytes);
        std::fs::write(&path, &array).unwrap();
        assert_eq!(read_npy::<f32>(&path).unwrap(), [1.0, -1.0], "{descr}");
        std::fs::write(&path, zipped(&[("y", array)]).into_inner()).unwrap();
        assert_eq!(read_numbers::<f64>(&path, "y").unwrap(), Some(vec![1.0, -1.0]), "{descr}");
        assert_eq!(read_numbers::<f64>(&path, "z").unwrap(), None);
    }
    for (descr, shape, bytes) in [("<f4", "(2, 1)", &[0u8; 8][..]), ("|S1", "(2,)", b"ab")] {
        std::fs::write(&path, npy(descr, shape, bytes)).unwrap();
        let error = read_npy::<f32>(&path).unwrap_err();
        assert!(matches!(error, ReadError::Content { .. }), "{error}");
    }
    std::fs::write(&path, b"1\n0\n").unwrap();
    let error = read_npy::<f32>(&path).unwrap_err().to_string();
    assert!(error.contains("this is not an npy array"), "{error}");
    std::fs::remove_file(&path).unwrap();
}
