use super::tests::parse;
use super::{IndexBase, Reader, read, write};
use crate::{Dataset, ReadError};
use nnz_arrays::formats::Csr;
use nnz_arrays::kernels::Parallel;
use std::path::PathBuf;

/// A folder of this test's own.
fn folder(test: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("nnz-libsvm-{test}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn a_missing_file_is_an_error() {
    let error = read("no/such/file.svm", IndexBase::One).unwrap_err();
    assert!(matches!(error, ReadError::Io { .. }));
    assert!(error.to_string().starts_with("`no/such/file.svm`: "), "{error}");
}

#[test]
fn parts_of_a_file() {
    let folder = folder("parts");
    let path = folder.join("data.svm");
    let lines: Vec<String> = (1..=20).map(|i| format!("{i} {i}:{}\n", i * i)).collect();
    std::fs::write(&path, lines.concat()).unwrap();
    let reader = Reader::new().index_base(IndexBase::One).n_features(20);
    let whole = reader.read_path(&path).unwrap();
    let whole: Vec<_> = whole.features().unwrap().iter_rows().flatten().collect();
    for count in [1, 2, 3, 7] {
        let mut found = Vec::new();
        for index in 0..count {
            let part = reader.clone().part(index, count).read_path(&path).unwrap();
            assert_eq!(part.n_features(), 20);
            found.extend(part.features().unwrap().iter_rows().flatten());
        }
        assert_eq!(found, whole);
    }

    // A fault is placed in the file, not in the part.
    std::fs::write(&path, lines.concat() + "21 x\n").unwrap();
    let error = reader.clone().part(2, 3).read_path(&path).unwrap_err().to_string();
    assert!(error.contains("data.svm:21:4: expected `index:value`, found `x`"), "{error}");
    assert!(reader.clone().part(0, 3).read_path(&path).is_ok());

    let refused = |reader: &Reader, index, count| {
        let error = reader.clone().part(index, count).read_bytes("text", b"1 1:1\n").unwrap_err();
        error.to_string()
    };
    let unnumbered = "of `text`: parts are numbered from 0 and below their number";
    assert_eq!(refused(&reader, 3, 3), format!("part 3 of 3 {unnumbered}"));
    assert_eq!(refused(&reader, 0, 0), format!("part 0 of 0 {unnumbered}"));
    assert!(refused(&Reader::new().n_features(20), 0, 2).contains("declare `index_base`"));
    let unknown = Reader::new().index_base(IndexBase::One);
    assert!(refused(&unknown, 0, 2).contains("declare `index_base` and `n_features`"));
    assert!(refused(&reader, 1, 2).contains("it has no rows"));
    let error = reader.clone().part(0, 2).read("text", &b"1 1:1\n"[..]).unwrap_err();
    assert!(error.to_string().contains("a stream cannot be cut"), "{error}");
    let error = reader.part(0, 2).read_path("data.svm.gz").unwrap_err();
    assert!(error.to_string().contains("decompress it first"), "{error}");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[cfg(feature = "gzip")]
mod gzip {
    use super::super::tests::rows;
    use super::*;
    use std::io::Write;

    fn compress(text: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn members_truncation_and_damage() {
        let folder = folder("gzip");
        let path = folder.join("data.svm.gz");
        let read_bytes = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            read(&path, IndexBase::One)
        };
        let mut two_members = compress(b"1 1:1\n-1 2:");
        two_members.extend(compress(b"0.5\n"));
        let data = read_bytes(&two_members).unwrap();
        assert_eq!(rows(&data), [vec![(0, 1.0)], vec![(1, 0.5)]]);

        let whole = compress("1 1:0.5 2:0.25\n".repeat(100).as_bytes());
        for end in 1..whole.len() {
            let error = read_bytes(&whole[..end]).unwrap_err();
            assert!(matches!(error, ReadError::TruncatedGzip { .. }), "{end}: {error}");
        }
        let error = read_bytes(b"1 1:1 2:1 3:1\n").unwrap_err();
        assert!(matches!(error, ReadError::CorruptGzip { .. }), "{error}");
        let mut damaged = whole.clone();
        let n = damaged.len();
        damaged[n - 5] ^= 1;
        let error = read_bytes(&damaged).unwrap_err();
        assert!(matches!(error, ReadError::CorruptGzip { .. }), "{error}");
        // No member at all decompresses to nothing.
        assert!(read_bytes(b"").is_err());
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn written_and_read_back() {
        let folder = folder("gzip-write");
        let path = folder.join("data.svm.gz");
        let data = parse("1 1:0.5\n-1 3:1\n", IndexBase::One).unwrap();
        write(&path, &data).unwrap();
        assert_eq!(std::fs::read(&path).unwrap()[..2], [0x1f, 0x8b]);
        assert_eq!(rows(&read(&path, IndexBase::One).unwrap()), rows(&data));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}

#[cfg(not(feature = "gzip"))]
#[test]
fn without_the_feature_gzip_files_are_refused_by_name() {
    let folder = folder("no-gzip");
    let path = folder.join("data.svm.gz");
    std::fs::write(&path, b"anything").unwrap();
    let error = read(&path, IndexBase::One).unwrap_err();
    assert!(matches!(error, ReadError::FeatureDisabled { feature: "gzip", .. }), "{error}");
    let data = parse("1 1:1\n", IndexBase::One).unwrap();
    let error = write(&path, &data).unwrap_err();
    assert!(matches!(error, ReadError::FeatureDisabled { feature: "gzip", .. }), "{error}");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn class_ids_are_written_as_their_labels() {
    let folder = folder("classes");
    let path = folder.join("data.svm");
    let data = parse("7 1:1\n-2 2:1\n7 1:1e-20 2:1e30\n", IndexBase::One).unwrap();
    let (data, _) = data.into_classes().unwrap();
    write(&path, &data).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text, "7 1:1\n-2 2:1\n7 1:1e-20 2:1e30\n");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn what_cannot_be_written() {
    let path = std::env::temp_dir().join("nnz-never-written.svm");
    let unlabelled = Dataset::<f32>::features_only(Csr::zeros(2, 2)).unwrap();
    let error = write(&path, &unlabelled).unwrap_err();
    assert!(
        error.to_string().contains("there is no label of one number a row to write"),
        "{error}"
    );
    assert!(!path.exists());
    let data = parse("1 1:1\n", IndexBase::One).unwrap();
    let compressed = path.with_extension("svm.zst");
    let error = write(&compressed, &data).unwrap_err();
    assert!(error.to_string().ends_with("compressed as `.gz`, not as `.zst`"), "{error}");
    assert!(!compressed.exists());
    let features = Csr::from_rows(1 << 63, [vec![], vec![((1 << 63) - 1, 0.5f32)]]).unwrap();
    let error = write(&path, &Dataset::new(features, vec![1.0, 0.0]).unwrap()).unwrap_err();
    assert!(error.to_string().contains("row 1 has 0.5 in column 9223372036854775807: "), "{error}");
    assert!(!path.exists());
    let error = write("no/such/folder/file.svm", &data).unwrap_err();
    assert!(matches!(error, ReadError::Io { .. }), "{error}");
}

/// Base and width are those of all files: the first one has neither index 0 nor the largest.
#[test]
fn several_files_are_read_as_one() {
    let folder = folder("several");
    let texts = ["1 1:1 2:1\n0 2:1", "", "1 0:1 7:2\n"];
    let path = |number: usize| folder.join(format!("{number}.svm"));
    for (number, text) in texts.iter().enumerate() {
        std::fs::write(path(number), text).unwrap();
    }
    let paths: Vec<PathBuf> = (0..texts.len()).map(path).collect();
    for parallel in [Parallel::Sequential, Parallel::Threads(2)] {
        let reader = Reader::new().parallel(parallel);
        let found = reader.read_paths(&paths).unwrap();
        let expected = parse("1 1:1 2:1\n0 2:1\n1 0:1 7:2\n", IndexBase::Detect).unwrap();
        assert_eq!(found.features(), expected.features());
        assert_eq!((found.n_rows(), found.n_features()), (3, 8));
        assert_eq!(found.report().unwrap().index_base, Some(IndexBase::Zero));
    }
    std::fs::write(path(2), "1 1:1\n\n0 x\n").unwrap();
    let error = Reader::new().read_paths(&paths).unwrap_err().to_string();
    assert!(error.contains("2.svm:3:3: expected `index:value`"), "{error}");
    let part = Reader::new().index_base(IndexBase::One).n_features(9).part(0, 2);
    let error = part.read_paths(&paths).unwrap_err().to_string();
    assert!(error.contains("several files are not cut as one"), "{error}");
    std::fs::remove_dir_all(folder).unwrap();
}
