//! Real LibSVM files: every reader result against statistics that were computed elsewhere.
//!
//! The files are read from the folder that `NNZ_DATA` names (default `../shared/data` beside the
//! workspace); without it the test says that it was skipped, or fails where `NNZ_REQUIRE_DATA=1`.

use sparse_runtime::data::ColumnValues;
use sparse_runtime::data::libsvm::{IndexBase, Reader};
use std::io::Write;
use std::path::PathBuf;

/// What `reference.json` says of a file.
struct Expected {
    file: &'static str,
    set: &'static str,
    stats: &'static str,
    n_positive: Option<&'static str>,
}

const fn file(
    file: &'static str,
    set: &'static str,
    stats: &'static str,
    n_positive: Option<&'static str>,
) -> Expected {
    Expected { file, set, stats, n_positive }
}

const FILES: &[Expected] = &[
    file("heart_scale", "heart_scale", "stats", Some("pos")),
    file("abalone_scale", "abalone_scale", "stats", None),
    file("dna.scale", "dna", "stats", None),
    file("dna.scale.t", "dna", "test_stats", None),
    file("a9a.gz", "a9a", "stats", Some("pos")),
    file("a9a.t.gz", "a9a", "test_stats", Some("test_pos")),
    file("w8a.gz", "w8a", "stats", Some("pos")),
    file("rcv1_small.train.gz", "rcv1_small", "stats", Some("pos")),
    file("rcv1_small.test.gz", "rcv1_small", "test_stats", Some("test_pos")),
    file("imdb_rating.train.gz", "imdb_rating", "stats", None),
    file("news20_bydate.train.gz", "news20_bydate", "stats", None),
    file("news20_bydate.test.gz", "news20_bydate", "test_stats", None),
    file("ipinyou_small.train.gz", "ipinyou_small", "stats", Some("pos")),
    file("ipinyou_small.test.gz", "ipinyou_small", "test_stats", Some("test_pos")),
];

/// The folder, or `None` where there is none and none is required.
fn folder() -> Option<PathBuf> {
    let beside = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/data");
    let folder = std::env::var_os("NNZ_DATA").map_or(beside, PathBuf::from);
    if folder.join("reference.json").exists() {
        return Some(folder);
    }
    let required = std::env::var("NNZ_REQUIRE_DATA").is_ok_and(|value| value == "1");
    assert!(!required, "there is no data in {}", folder.display());
    let skipped = format!("skipped: no data in {} (set NNZ_DATA)\n", folder.display());
    // Past the capture of the test runner: a skip must be seen.
    let _ = std::io::stderr().write_all(skipped.as_bytes());
    None
}

#[test]
fn real_files_have_their_known_statistics() {
    let Some(folder) = folder() else {
        return;
    };
    let reference = std::fs::read_to_string(folder.join("reference.json")).expect("a reference");
    let reference: serde_json::Value = serde_json::from_str(&reference).expect("json");
    for Expected { file, set, stats, n_positive } in FILES {
        let known = &reference[set][stats];
        let number = |name: &str| known[name].as_f64().unwrap_or_else(|| panic!("{set}: {name}"));
        let data = Reader::new()
            .element::<f64>()
            .index_base(IndexBase::Detect)
            .n_features(number("cols") as usize)
            .read_path(folder.join(file))
            .unwrap_or_else(|error| panic!("{error}"));
        let report = data.report().expect("a report");
        assert_eq!(report.index_base, Some(IndexBase::One), "{file}");
        let features = data.features().expect("features");
        assert_eq!(data.n_rows() as f64, number("rows"), "{file}: rows");
        assert_eq!(features.nnz() as f64, number("nnz"), "{file}: nnz");

        let lengths = || features.iter_rows().map(|row| row.len());
        assert_eq!(lengths().min().map(|n| n as f64), Some(number("nnz_row_min")), "{file}");
        assert_eq!(lengths().max().map(|n| n as f64), Some(number("nnz_row_max")), "{file}");
        let mut active = vec![false; features.n_cols()];
        features.columns().iter().for_each(|column| active[column] = true);
        let n_active = active.iter().filter(|&&active| active).count();
        assert_eq!(n_active as f64, number("active_cols"), "{file}: active columns");
        let values = || features.values().iter().copied();
        assert_eq!(values().reduce(f64::min), Some(number("vmin")), "{file}: smallest");
        assert_eq!(values().reduce(f64::max), Some(number("vmax")), "{file}: largest");
        let norms =
            features.iter_rows().map(|row| row.map(|(_, value)| value * value).sum::<f64>());
        let largest = norms.fold(0.0, f64::max);
        let known_norm = number("max_row_norm2");
        assert!((largest - known_norm).abs() <= 1e-12 * known_norm, "{file}: {largest}");

        if let Some(n_positive) = n_positive {
            let Some(ColumnValues::Dense(labels)) = data.labels() else {
                panic!("{file}: the labels are numbers");
            };
            let found = labels.values().iter().filter(|&&label| label > 0.0).count();
            assert_eq!(Some(found as u64), reference[set][n_positive].as_u64(), "{file}: positive");
        }
    }
}
