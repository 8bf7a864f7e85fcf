use super::super::{OnError, Ratings, TextReader, libsvm};
use super::*;
use nnz_arrays::formats::{Csr, Dense};
use std::cell::Cell;
use std::path::PathBuf;

/// A folder of this test's own.
fn folder(test: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("nnz-cache-{test}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn data() -> Dataset<f64> {
    let narrow = Csr::from_rows(70_000, (0..9000).map(|i| [(i, 0.1), (i + 60_000, -1.5)])).unwrap();
    let wide = Csr::from_rows(1 << 40, (0..9000).map(|i| [(i << 20, f64::MIN_POSITIVE)])).unwrap();
    let columns: Vec<u32> = (0..9000).map(|i| i % 10).collect();
    let pattern = Csr::pattern(10, (0..=9000).collect(), columns).unwrap();
    Dataset::builder()
        .input("narrow", narrow)
        .input("wide", wide)
        .input("pattern", pattern)
        .input("table", Dense::new([9000, 3], (0..27_000).map(f64::from).collect()).unwrap())
        .input("ids", Dense::new([9000, 2], (0..18_000u64).collect()).unwrap())
        .input("signed", (0..9000i64).map(|i| i - 5).collect::<Vec<_>>())
        .label("y", (0..9000).map(|i| f64::from(i % 3)).collect::<Vec<_>>())
        .build()
        .unwrap()
}

/// Whatever memory there is, an error says what is missing, and the process goes on.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[test]
fn a_file_that_does_not_fit_in_memory_is_an_error_with_its_bytes() {
    use nnz_test_support::limited_memory::{is_own, with_bytes};
    if !is_own("cache::tests::a_file_that_does_not_fit_in_memory_is_an_error_with_its_bytes") {
        return;
    }
    const MIB: u64 = 1 << 20;
    let folder = folder("memory");
    let path = folder.join("data");
    let rows = (0..120_000).map(|i| [(i % 97, 0.5), (100, 1.0)]);
    let x = Csr::from_rows(101, rows).unwrap();
    let ids = Dense::new([120_000, 2], (0..240_000u64).collect()).unwrap();
    let data = Dataset::<f64>::builder().input("x", x).input("ids", ids).build().unwrap();
    data.save(&path).unwrap();
    let load = |more| with_bytes(more, || Dataset::<f64>::load(&path).map(|data| data.n_rows()));
    let mut n_refused = 0;
    for mib in 3..14 {
        match load(mib * MIB) {
            Ok(n_rows) => assert_eq!(n_rows, 120_000),
            Err(error @ ReadError::ArraysTooLarge { bytes, .. }) => {
                n_refused += 1;
                assert!(bytes > 0, "{error}");
                let error = error.to_string();
                assert!(error.contains(" bytes, for which there is no memory: "), "{error}");
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert!(n_refused > 2, "{n_refused}");
    assert_eq!(load(40 * MIB).unwrap(), 120_000);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn what_is_saved_is_loaded() {
    let folder = folder("saved");
    let path = folder.join("data");
    let (data, classes) = data().into_classes().unwrap();
    data.save(&path).unwrap();
    let again = Dataset::<f64>::load(&path).unwrap();
    assert_eq!(again.classes(), Some(&classes));
    for (found, expected) in again.columns().iter().zip(data.columns()) {
        assert_eq!((found.name(), found.role()), (expected.name(), expected.role()));
        match (found.values(), expected.values()) {
            (ColumnValues::Csr(found), ColumnValues::Csr(expected)) => assert_eq!(found, expected),
            (ColumnValues::Unit(found), ColumnValues::Unit(expected)) => {
                assert_eq!(found, expected);
            }
            (ColumnValues::Dense(found), ColumnValues::Dense(expected)) => {
                assert_eq!(found, expected);
            }
            (ColumnValues::Ids(found), ColumnValues::Ids(expected)) => assert_eq!(found, expected),
            _ => panic!("another kind of array"),
        }
    }
    assert_eq!(again.columns().len(), data.columns().len());
    let error = Dataset::<f32>::load(&path).unwrap_err().to_string();
    assert!(error.ends_with("it has elements `f64`, not `f32`"), "{error}");

    let (reader, text) = (libsvm::Reader::new().on_error(OnError::Skip(1)), b"1 0:1\nx\n");
    let skipped: Dataset = reader.read_bytes("text", text).unwrap();
    skipped.save(&path).unwrap();
    let (again, report) = (Dataset::<f32>::load(&path).unwrap(), skipped.report().unwrap());
    let found = again.report().unwrap();
    assert_eq!((found.index_base, found.detected), (Some(IndexBase::Zero), true));
    assert_eq!((found.n_skipped, report.n_skipped), (1, 1));

    let ratings = TextReader::new(Ratings::new()).read_bytes("ratings", b"u,i,5\nv,i,3\n").unwrap();
    ratings.save(&path).unwrap();
    let again = Dataset::<f32>::load(&path).unwrap();
    assert_eq!(again.id_map("user"), ratings.id_map("user"));
    assert_eq!(again.id_map("item").map(IdMap::len), Some(1));
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn any_damage_is_an_error() {
    let folder = folder("damaged");
    let path = folder.join("data");
    let small =
        Dataset::new(Csr::from_rows(5, [[(1, 1.0f32)], [(4, 2.0)]]).unwrap(), vec![0.0, 1.0]);
    small.unwrap().save(&path).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let load = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        Dataset::<f32>::load(&path)
    };
    assert!(load(&bytes).is_ok());
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x10;
        assert!(matches!(load(&damaged), Err(ReadError::Content { .. })), "byte {at}");
        assert!(matches!(load(&bytes[..at]), Err(ReadError::Content { .. })), "cut at {at}");
    }
    assert!(load(&[&bytes[..], b"x"].concat()).is_err());
    let error = load(b"1 1:0.5\n1 1:0.5\n").unwrap_err().to_string();
    assert!(error.ends_with("it is not a file that `Dataset::save` wrote"), "{error}");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_file_of_another_kind_is_not_replaced() {
    let folder = folder("another-kind");
    let (text, path) = (folder.join("rows.svm"), folder.join("rows.svm.cache"));
    std::fs::write(&text, "1 1:0.5\n").unwrap();
    let cached = || {
        let read = || libsvm::read(&text, super::IndexBase::One);
        Dataset::<f32>::cached(&path, [&text], "", read)
    };
    for kept in [&b"a model, say"[..], b"x"] {
        std::fs::write(&path, kept).unwrap();
        let error = cached().unwrap_err().to_string();
        assert!(error.contains("rows.svm.cache") && error.contains("would be lost"), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), kept);
    }
    // A cache that was cut short, or not begun.
    for damaged in [&b"nnzcache\x01"[..], b"nnz", b""] {
        std::fs::write(&path, damaged).unwrap();
        assert_eq!(cached().unwrap().n_rows(), 1);
        assert!(Dataset::<f32>::load(&path).is_ok());
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_cache_is_made_again_when_its_sources_change() {
    let folder = folder("again");
    let (path, source) = (folder.join("cache"), folder.join("source"));
    let (calls, way) = (Cell::new(0), Cell::new("from one"));
    let cached = || {
        Dataset::cached(&path, [&source], way.get(), || {
            calls.set(calls.get() + 1);
            crate::libsvm::read(&source, crate::libsvm::IndexBase::One)
        })
    };
    assert!(matches!(cached(), Err(ReadError::Io { .. })));
    std::fs::write(&source, "1 1:1\n").unwrap();
    for _ in 0..3 {
        assert_eq!(cached().unwrap().n_rows(), 1);
    }
    assert_eq!(calls.get(), 1);
    std::fs::write(&source, "1 1:1\n2 1:1\n").unwrap();
    for _ in 0..2 {
        assert_eq!(cached().unwrap().n_rows(), 2);
    }
    assert_eq!(calls.get(), 2);
    // So is one that was read in another way.
    way.set("from zero");
    assert_eq!(cached().unwrap().n_rows(), 2);
    assert_eq!(calls.get(), 3);
    // Damage costs time, not the run.
    std::fs::write(&path, "nnzcache, but what is this").unwrap();
    assert_eq!(cached().unwrap().n_rows(), 2);
    assert_eq!(calls.get(), 4);
    // What cannot be read leaves the file as it is.
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&source, "1 x\n").unwrap();
    assert!(matches!(cached(), Err(ReadError::Syntax { .. })));
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_cache_whose_source_changes_while_it_is_read_is_an_error() {
    let folder = folder("changes");
    let (path, source) = (folder.join("cache"), folder.join("source"));
    std::fs::write(&source, "1 1:1\n").unwrap();
    let read = |change: bool| {
        Dataset::<f32>::cached(&path, [&source], "", || {
            let data = libsvm::read(&source, IndexBase::One);
            if change {
                std::fs::write(&source, "1 1:1\n2 1:1\n").unwrap();
            }
            data
        })
    };
    let error = read(true).unwrap_err().to_string();
    let expected = format!(
        "`{}` has changed while it was read: it had 6 bytes and has 12: ",
        source.display()
    );
    assert!(error.starts_with(&expected), "{error}");
    assert!(!path.exists());
    assert_eq!(read(false).unwrap().n_rows(), 2);
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Another file of the same name, length and time of change.
#[cfg(unix)]
#[test]
fn a_cache_is_made_again_when_its_source_is_another_file() {
    let folder = folder("inode");
    let (path, source) = (folder.join("cache"), folder.join("source"));
    let cached = || {
        let read = || libsvm::read(&source, IndexBase::One);
        Dataset::<f32>::cached(&path, [&source], "", read)
    };
    std::fs::write(&source, "1 1:1\n").unwrap();
    cached().unwrap();
    let other = folder.join("other");
    std::fs::write(&other, "1 1:2\n").unwrap();
    let time = source.metadata().unwrap().modified().unwrap();
    File::options().write(true).open(&other).unwrap().set_modified(time).unwrap();
    std::fs::rename(&other, &source).unwrap();
    let values = cached().unwrap();
    assert_eq!(values.features().unwrap().values(), [2.0]);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_cache_that_cannot_be_written_is_no_error() {
    let folder = folder("unwritable");
    let source = folder.join("source");
    std::fs::write(&source, "1 1:1\n").unwrap();
    let read = || libsvm::read(&source, IndexBase::One);
    let data = Dataset::cached(folder.join("none/cache"), [&source], "", read).unwrap();
    assert_eq!(data.n_rows(), 1);
    let report = data.report().unwrap().to_string();
    assert!(report.contains("source, indices from one, not cached: `"), "{report}");
    std::fs::remove_dir_all(&folder).unwrap();
}
