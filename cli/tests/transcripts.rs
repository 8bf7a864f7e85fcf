//! The transcripts in docs/transcripts: from a file to evaluated predictions.

/// `TRYCMD=overwrite cargo test -p nnz-cli transcripts` writes what has changed.
#[test]
fn transcripts_are_what_the_program_prints() {
    let cases = trycmd::TestCases::new();
    cases.register_bin("nnz", std::path::PathBuf::from(env!("CARGO_BIN_EXE_nnz")));
    cases.case("../docs/transcripts/*.md");
    cases.run();
}
