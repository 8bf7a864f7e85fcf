use super::*;
use crate::synthetic::random_csr;
use proptest::prelude::*;

fn parse(text: &str) -> Result<Csr<f32>, String> {
    read_from("file", text.as_bytes()).map_err(|error| error.to_string())
}

fn csr(n_rows: usize, n_cols: usize, entries: &[(usize, usize, f32)]) -> Csr<f32> {
    Csr::from_coo(n_rows, n_cols, entries.iter().copied()).unwrap()
}

#[test]
fn fields_and_symmetries() {
    let text = "%%MatrixMarket matrix coordinate real general\n% a comment\n%\n\n3 4 3\n3 1 -2.5e-1\n\n 1   4 1\n1 2 7\n\n";
    assert_eq!(parse(text), Ok(csr(3, 4, &[(2, 0, -0.25), (0, 3, 1.0), (0, 1, 7.0)])));
    let text = "%%MatrixMarket MATRIX Coordinate Integer Symmetric\r\n2 2 2\r\n1 1 3\r\n2 1 -4\r\n";
    assert_eq!(parse(text), Ok(csr(2, 2, &[(0, 0, 3.0), (1, 0, -4.0), (0, 1, -4.0)])));
    let text = "%%MatrixMarket matrix coordinate pattern general\n2 2 1\n2 2";
    assert_eq!(parse(text), Ok(csr(2, 2, &[(1, 1, 1.0)])));
    let text = "%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n2 1 5\n";
    assert_eq!(parse(text), Ok(csr(2, 2, &[(1, 0, 5.0), (0, 1, -5.0)])));
    let text =
        "\u{feff}%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 2\n2 2 0\n2 1 5\n";
    assert_eq!(parse(text), Ok(csr(2, 2, &[(1, 0, 5.0), (0, 1, -5.0), (1, 1, 0.0)])));
    let text = "%%MatrixMarket matrix coordinate real general\n1 1 2\n1 1 5\n1 1 2\n";
    assert_eq!(parse(text), Ok(csr(1, 1, &[(0, 0, 7.0)])));
    let text = "%%MatrixMarket matrix coordinate real general\n2 0 0\n";
    assert_eq!(parse(text), Ok(csr(2, 0, &[])));
}

#[test]
fn what_is_wrong_is_named() {
    const GENERAL: &str = "%%MatrixMarket matrix coordinate real general\n";
    let error = parse(&format!("{GENERAL}2 2 2\n2 1 3e38\n2 1 3e38\n")).unwrap_err();
    assert!(
        error.ends_with("its entries of row 2 and column 1 add up to no finite number"),
        "{error}"
    );
    let refused = |text: &str| parse(text).unwrap_err();
    let error =
        refused("%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 2\n2 1 5\n2 2 3\n");
    assert!(error.starts_with("file:4:1: row 2, column 2 (counted from one) is not 0"), "{error}");
    for (header, expected) in [
        ("", "`%%MatrixMarket matrix`, a layout, a field and a symmetry, found nothing"),
        ("\n", "`%%MatrixMarket matrix`, a layout, a field and a symmetry, found nothing"),
        ("3 3 1\n", "`%%MatrixMarket matrix`, a layout, a field and a symmetry, found `3 3 1`"),
        ("%%MatrixMarket matrix coordinate real\n", "`%%MatrixMarket matrix`, a layout,"),
        ("%%MatrixMarket matrix list real general\n", "`coordinate` or `array`, found `list`"),
        (
            "%%MatrixMarket matrix coordinate complex general\n",
            "`real`, `double`, `integer`, `unsigned-integer` or, of coordinates, `pattern`, found `complex`",
        ),
        ("%%MatrixMarket matrix array pattern general\n", "`real`, `double`, `integer`,"),
        (
            "%%MatrixMarket matrix coordinate pattern skew-symmetric\n",
            "`general`, `symmetric`, `hermitian` or, of numbers, `skew-symmetric`, found `skew-symmetric`",
        ),
    ] {
        let error = refused(header);
        assert!(error.starts_with(&format!("file:1:1: expected {expected}")), "{error}");
    }
    let sized = |size: &str| refused(&format!("{GENERAL}% comment\n{size}"));
    assert_eq!(
        sized("3 x 1\n"),
        "file:3:1: expected the numbers of rows, columns and entries, found `3 x 1`"
    );
    assert_eq!(
        sized(""),
        "file:2:1: expected the numbers of rows, columns and entries, found nothing"
    );
    for huge in ["3 3 9999999999999999999", "18446744073709551615 3 1", "3 3 999999999999999999"] {
        let error = sized(huge);
        assert!(error.contains(" bytes, for which there is no memory: leave out rows"), "{error}");
    }
    let error = refused("%%MatrixMarket matrix coordinate real symmetric\n3 2 1\n1 1 1\n");
    assert!(error.starts_with("file:2:1: expected as many rows as columns"), "{error}");
    let error = refused(&format!("{GENERAL}3 3 3\n1 1 1\n2 2 x\n3 3 3\n"));
    assert_eq!(
        error,
        "file:4:1: expected `row column value`, both counted from one, and 3 such lines in all"
    );
    for (entries, line) in
        [("1 1 1\n0 2 1\n", 4), ("1 1 1\n2 2\n", 4), ("1 1 1\n", 3), ("1 1 1 1\n2 2 2\n", 3)]
    {
        let error = refused(&format!("{GENERAL}3 3 2\n{entries}"));
        assert!(
            error.starts_with(&format!("file:{line}:1: expected `row column value`")),
            "{error}"
        );
    }
    let error = refused(&format!("{GENERAL}3 4 1\n4 1 1\n"));
    let outside = "lies outside of the matrix of 3 rows and 4 columns";
    assert_eq!(
        error,
        format!("file:3:1: the entry at row 4, column 1 (counted from one) {outside}")
    );
    assert!(refused(&format!("{GENERAL}3 4 1\n1 5 1\n")).ends_with(outside));
    for bad in ["nan", "inf", "1e39"] {
        let error = refused(&format!("{GENERAL}3 4 1\n1 2 {bad}\n"));
        assert_eq!(
            error,
            "file:3:1: the value at row 1, column 2 (counted from one) is not finite, or beyond the range of the element type"
        );
    }
    let error = refused(&format!("{GENERAL}3 3 1\n1 1 1\n\n2 2 2\n"));
    assert_eq!(
        error,
        "file:5:1: expected the end of the file after the declared number of entries, found `2 2 2`"
    );
    let error = read_from::<f32>(
        "file",
        &b"%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 \xff\n"[..],
    );
    assert!(matches!(error, Err(ReadError::Syntax { .. })), "{error:?}");
    assert!(matches!(read::<f32>("no/such/file.mtx"), Err(ReadError::Io { .. })));
    assert!(matches!(write("no/such/folder/file.mtx", &csr(1, 1, &[])), Err(ReadError::Io { .. })));
}

/// Whatever memory there is, an error says what is missing, and the process goes on.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[test]
fn sizes_beyond_the_memory_are_errors_with_their_bytes() {
    use nnz_test_support::limited_memory::{is_own, with_bytes};
    if !is_own("matrix_market::tests::sizes_beyond_the_memory_are_errors_with_their_bytes") {
        return;
    }
    const MIB: u64 = 1 << 20;
    let header = "%%MatrixMarket matrix coordinate real general\n";
    let empty_rows = format!("{header}3000000 3 2\n1 1 5\n3000000 3 7\n");
    let entries: String = (1..=50_000).rev().map(|i| format!("{i} {} 0.5\n", 1 + i % 7)).collect();
    let entries = format!("{header}50000 7 50000\n{entries}");
    let read = |text: &str, more| {
        with_bytes(more, || read_from::<f32>("rows.mtx", text.as_bytes()).map(|x| x.nnz()))
    };
    let mut sizes = 1..12;
    let mut n_refused = 0;
    let all = sizes.all(|mib| {
        [(&empty_rows, 2, "3000000 rows with 2 entries"), (&entries, 50_000, "50000 rows")]
            .into_iter()
            .all(|(text, nnz, what)| match read(text, mib * MIB) {
                Ok(found) => found == nnz,
                Err(error @ ReadError::ArraysTooLarge { bytes, .. }) => {
                    n_refused += 1;
                    bytes > 0 && error.to_string().contains(&format!("`rows.mtx`: {what}"))
                }
                Err(_) => false,
            })
    });
    assert!(all && n_refused > 10, "{n_refused}");
    assert_eq!(read(&empty_rows, 60 * MIB).unwrap(), 2);
    assert_eq!(read(&entries, 100 * MIB).unwrap(), 50_000);
}

#[test]
fn a_symmetric_file_gives_one_triangle() {
    for symmetry in ["symmetric", "skew-symmetric"] {
        let header = format!("%%MatrixMarket matrix coordinate real {symmetry}\n3 3 3\n");
        let upper = parse(&format!("{header}1 2 5\n1 3 6\n2 2 0\n")).unwrap();
        assert_eq!(upper.nnz(), 5);
        let error = parse(&format!("{header}1 1 0\n2 1 5\n1 2 5\n")).unwrap_err();
        let expected = "file:5:1: row 1, column 2 is on the other side of the diagonal";
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn lines_that_are_no_entries_are_skipped_and_counted() {
    let text = "%%MatrixMarket matrix coordinate real general\n3 3 5\n1 1 1\n9 1 1\n\n2 2 x\n3 3 3\n1 2 nan\n";
    let read = |limit| read_from_with::<f32>("file", text.as_bytes(), OnError::Skip(limit));
    let (matrix, report) = read(3).unwrap();
    assert_eq!(matrix, csr(3, 3, &[(0, 0, 1.0), (2, 2, 3.0)]));
    let lines: Vec<u64> = report.first_skipped.iter().map(|row| row.place.line).collect();
    assert_eq!((report.n_skipped, lines), (3, vec![4, 6, 8]));
    let error = read(2).unwrap_err();
    assert!(matches!(error, ReadError::TooManySkipped { limit: 2, .. }), "{error}");
    // Lines that are missing are not skipped, nor those that are too many.
    for bad in ["3 3 2\n1 1 1\n", "3 3 1\n1 1 1\n2 2 2\n"] {
        let text = format!("%%MatrixMarket matrix coordinate real general\n{bad}");
        let error = read_from_with::<f32>("file", text.as_bytes(), OnError::Skip(9));
        assert!(matches!(error, Err(ReadError::Syntax { .. })), "{error:?}");
    }
}

#[test]
fn what_is_written_is_read() {
    let path = std::env::temp_dir().join(format!("nnz-{}.mtx", std::process::id()));
    let mut matrix = random_csr::<f64>(20, 30, 0.1, 1).unwrap();
    matrix.values_mut()[0] = 1e-300;
    write(&path, &matrix).unwrap();
    let again = read::<f64>(&path);
    std::fs::remove_file(&path).unwrap();
    assert_eq!(again.unwrap(), matrix);
}

/// Any finite values, and any pattern, rows and columns of nothing included.
#[test]
fn a_file_is_written_as_its_name_says() {
    let folder = std::env::temp_dir().join(format!("nnz-matrix-market-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let matrix = csr(2, 3, &[(0, 1, 0.5), (1, 2, -3.0)]);
    for name in ["x.mtx", "x.mtx.gz"] {
        let path = folder.join(name);
        if cfg!(feature = "gzip") || !name.ends_with(".gz") {
            write(&path, &matrix).unwrap();
            assert_eq!(read::<f32>(&path).unwrap(), matrix);
            assert_eq!(std::fs::read(&path).unwrap()[0] == 0x1f, name.ends_with(".gz"));
        } else {
            assert!(matches!(write(&path, &matrix), Err(ReadError::FeatureDisabled { .. })));
        }
    }
    let zst = folder.join("x.mtx.zst");
    assert!(matches!(write(&zst, &matrix), Err(ReadError::Content { .. })) && !zst.exists());
    // What would not be read back.
    let path = folder.join("x.mtx");
    let before = std::fs::read(&path).unwrap();
    for value in [f32::INFINITY, f32::NAN] {
        let matrix = csr(2, 3, &[(1, 2, value)]);
        assert!(matches!(write(&path, &matrix), Err(ReadError::Data { .. })));
    }
    assert_eq!(std::fs::read(&path).unwrap(), before);
    std::fs::remove_dir_all(&folder).unwrap();
}

fn matrices() -> impl Strategy<Value = Csr<f64>> {
    let value = any::<f64>().prop_filter("finite", |value| value.is_finite());
    (0..6usize, 1..6usize).prop_flat_map(move |(n_rows, n_cols)| {
        let row = prop::collection::btree_map(0..n_cols, value.clone(), 0..=n_cols);
        prop::collection::vec(row, n_rows)
            .prop_map(move |rows| Csr::from_rows(n_cols, rows).unwrap())
    })
}

proptest! {
    #[test]
    fn any_matrix_is_read_as_it_was_written(matrix in matrices()) {
        let mut text = Vec::new();
        write_to("file", &mut text, &matrix).unwrap();
        let again: Csr<f64> = read_from("file", &text[..]).unwrap();
        prop_assert_eq!((again.indptr(), again.columns()), (matrix.indptr(), matrix.columns()));
        let bits = |csr: &Csr<f64>| csr.values().iter().map(|v| v.to_bits()).collect::<Vec<_>>();
        prop_assert_eq!(bits(&again), bits(&matrix));
    }

    #[test]
    fn a_file_cut_short_is_refused(matrix in matrices(), cut in any::<prop::sample::Index>()) {
        let mut text = Vec::new();
        write_to("file", &mut text, &matrix).unwrap();
        let cut = cut.index(text.len());
        if let Ok(read) = read_from::<f64>("file", &text[..cut]) {
            // Nothing but digits of the last number, or the last end of a line, can be missing.
            prop_assert_eq!(read.columns().len(), matrix.nnz());
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        let header = b"%%MatrixMarket matrix coordinate real general\n";
        prop_assert!(read_from::<f32>("file", &bytes[..]).is_err());
        let _ = read_from::<f32>("file", &[&header[..], &b"3 3 2\n"[..], &bytes].concat()[..]);
    }
}

/// The values are those of `scipy.io.mmread`, of an array as a sparse matrix.
#[test]
fn d18_headers_and_comments_are_read_as_scipy_reads_them() {
    for field in ["real", "double", "integer", "unsigned-integer"] {
        let text = format!(
            "%%MatrixMarket matrix coordinate {field} general\n  % comment\n2 2 1\n2 1 1.0\n"
        );
        assert_eq!(parse(&text), Ok(csr(2, 2, &[(1, 0, 1.0)])), "{field}");
    }
    let text = "%%MatrixMarket matrix coordinate integer hermitian\n2 2 2\n1 1 3\n2 1 5\n";
    assert_eq!(parse(text), Ok(csr(2, 2, &[(0, 0, 3.0), (1, 0, 5.0), (0, 1, 5.0)])));
    let text = "%%MatrixMarket matrix array real general\n2 3\n1\n2\n0\n4\n\n5\n6\n";
    let expected = csr(2, 3, &[(0, 0, 1.0), (1, 0, 2.0), (1, 1, 4.0), (0, 2, 5.0), (1, 2, 6.0)]);
    assert_eq!(parse(text), Ok(expected));
    let text = "%%MatrixMarket matrix array integer symmetric\n2 2\n1\n2\n3\n";
    let expected = csr(2, 2, &[(0, 0, 1.0), (1, 0, 2.0), (0, 1, 2.0), (1, 1, 3.0)]);
    assert_eq!(parse(text), Ok(expected));
    let text = "%%MatrixMarket matrix array real skew-symmetric\n2 2\n7\n";
    assert_eq!(parse(text), Ok(csr(2, 2, &[(1, 0, 7.0), (0, 1, -7.0)])));
    for (text, message) in [
        (
            "array real general\n2 2 4\n",
            "file:2:1: expected the numbers of rows and columns of an array",
        ),
        (
            "array real general\n2 1\n1\n",
            "file:3:1: expected a number of the array, one a line, found nothing",
        ),
        (
            "array real general\n1 1\n1 2\n",
            "file:3:1: expected a number of the array, one a line, found `1 2`",
        ),
        ("array real general\n1 1\n1\n2\n", "file:4:1: expected the end of the file"),
        ("coordinate integer general\n1 1 1\n1 1 1.5\n", "file:3:1: expected `row column value`"),
    ] {
        let error = parse(&format!("%%MatrixMarket matrix {text}")).unwrap_err();
        assert!(error.starts_with(message), "{error}");
    }
}
