//! Flags that a format has no use for.

use super::{Base, Format, Reading, Repeated, Unknown, Unsorted};
use std::path::Path;

impl Reading {
    /// Refuses what would be said in vain of a file of this format, and a number of features of one
    /// whose columns follow from the hash.
    pub(crate) fn check(&self, path: &Path, n_features: Option<usize>) -> Result<(), String> {
        let format = self.format_of(path);
        let (hashed, words, csv) =
            (self.is_hashed(path), format == Format::Words, format == Format::Csv);
        let vw = format == Format::Vw;
        let libsvm = format == Format::Libsvm;
        let indexed = matches!(format, Format::Libsvm | Format::Libffm);
        let (of_hashed, as_they_are) =
            ("formats that are hashed", "its ids are counted as they come");
        let sorts = "its entries may be in any order";
        let from_hash = "its columns are as many as --hash-bits says";
        for (flag, is_given, has_meaning, of, why) in [
            ("--hash-bits", self.hash_bits.is_some(), hashed, of_hashed, as_they_are),
            (
                "--hash-seed",
                self.hash_seed.is_some(),
                hashed,
                of_hashed,
                "its columns are taken as they are numbered, unless --hash-bits folds them",
            ),
            ("--unsorted", self.unsorted != Unsorted::Refuse, libsvm, "libsvm", sorts),
            ("--repeated", self.repeated != Repeated::Refuse, libsvm, "libsvm", sorts),
            (
                "--unknown",
                self.unknown != Unknown::Refuse,
                indexed,
                "libsvm and libffm",
                "its columns are those that the model has",
            ),
            (
                "--cross",
                !self.cross.is_empty(),
                csv || vw || format == Format::Criteo,
                "csv, criteo and vw",
                "its features have no columns",
            ),
            ("-q", !self.quadratic.is_empty(), vw, "vw", "it has no namespaces"),
            ("--ngrams", self.ngrams.is_some(), words, "words", "it has no text"),
            ("--schema", self.schema.is_some(), csv, "csv", "it has columns of its own"),
            ("--label", self.label.is_some(), csv, "csv", "its labels are where its format says"),
            ("--weight", self.weight.is_some(), csv, "csv", "its format says where weights are"),
            ("--schema-out", self.schema_out.is_some(), csv, "csv", "it has no schema"),
            ("--separator", self.separator.is_some(), csv, "csv", "its format says what separates"),
            ("--na", !self.na.is_empty(), csv, "csv", "it has no missing numbers"),
            ("--header", self.header, csv, "csv", "it has no line of names"),
            ("--no-header", self.no_header, csv, "csv", "it has no line of names"),
            ("--scaling", self.scaling.is_some(), csv, "csv", "its numbers are taken as they are"),
            ("--no-scaling", self.no_scaling, csv, "csv", "its numbers are taken as they are"),
            (
                "--index-base",
                self.index_base != Base::Detect,
                libsvm,
                "libsvm",
                "it says so itself",
            ),
            (
                "--features",
                n_features.is_some(),
                indexed && self.hash_bits.is_none(),
                "libsvm and libffm without --hash-bits",
                if hashed { from_hash } else { "its ids are counted as they come" },
            ),
        ] {
            if is_given && !has_meaning {
                return Err(format!(
                    "{flag} is for {of}, but `{}` is read as {}, by {}: {why}; leave {flag} out, or say another --format",
                    path.display(),
                    format.name(),
                    if self.format.is_some() { "its --format" } else { "its ending" },
                ));
            }
        }
        Ok(())
    }
}
