//! Flags that a format has no use for.

use super::format::check_built;
use super::schema::weight_of_ratings;
use super::{Base, DataFiles, Format, Reading, Repeated, Unsorted};
use std::path::Path;

impl Reading {
    /// Refuses files without fields for a model that reads them.
    fn check_fields(&self, format: Format, files: &DataFiles) -> Result<(), String> {
        let has_fields =
            matches!(format, Format::Libffm | Format::Csv | Format::Criteo | Format::Vw);
        if self.reads_fields && !has_fields {
            return Err(format!(
                "field-aware-machine reads fields: those of libffm, `label field:index:value …`, columns of csv and criteo, namespaces of vw; but `{files}` is read as {}, {}: say another --format, or choose another --model",
                format.name(),
                self.reason(files.first())
            ));
        }
        Ok(())
    }

    /// Refuses weights that a format cannot find.
    fn check_weight(&self, format: Format) -> Result<(), String> {
        match (&self.weight, format) {
            (Some(weight), Format::Ratings) if weight_of_ratings(weight).is_none() => Err(format!(
                "--weight {weight}: of ratings it is the number of a column behind user, item and rating, from 4 on"
            )),
            (Some(weight), Format::Csv) if self.label.is_none() => Err(format!(
                "--weight {weight} is the name of a column of a file whose --label is named: say --label NAME, or a --schema with `{weight}:weight`"
            )),
            _ => Ok(()),
        }
    }

    /// Refuses what would be said in vain of a file of this format, and a number of features of one
    /// whose columns follow from the hash.
    pub(crate) fn check(&self, files: &DataFiles, n_features: Option<usize>) -> Result<(), String> {
        let path = files.first();
        let format = self.format_of(path);
        check_built(path)?;
        self.check_formats(files)?;
        self.check_fields(format, files)?;
        self.check_weight(format)?;
        let (hashed, words, csv) =
            (self.is_hashed(path), format == Format::Words, format == Format::Csv);
        let vw = format == Format::Vw;
        let sparse = format.is_sparse_columns();
        let libsvm = format == Format::Libsvm || sparse;
        let matrix = format.is_matrix();
        let indexed = libsvm || format == Format::Libffm || matrix;
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
                self.unknown.is_some(),
                indexed || format == Format::Ratings,
                "libsvm, libffm, matrices and ratings",
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
            (
                "--labels",
                self.labels.is_some(),
                matrix,
                "matrix-market and npz",
                "its labels are in it",
            ),
            ("--stream", self.stream.is_some(), !matrix, "text", "a matrix is read as a whole"),
            ("--ngrams", self.ngrams.is_some(), words, "words", "it has no text"),
            ("--schema", self.schema.is_some(), csv, "csv", "it has columns of its own"),
            (
                "--label",
                self.label.is_some(),
                csv || sparse,
                "csv",
                "its labels are where its format says",
            ),
            (
                "--weight",
                self.weight.is_some(),
                csv || sparse || format == Format::Ratings,
                "csv and ratings",
                "its format says where weights are",
            ),
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
                "libsvm, libffm and matrices, without --hash-bits,",
                if hashed { from_hash } else { "its ids are counted as they come" },
            ),
        ] {
            if is_given && !has_meaning {
                return Err(format!(
                    "{flag} is for {of}, but `{files}` is read as {}, {}: {why}; leave {flag} out, or say another --format",
                    format.name(),
                    self.reason(path),
                ));
            }
        }
        Ok(())
    }
    /// Why a file is read as its format.
    pub(crate) fn reason(&self, path: &Path) -> &'static str {
        match self.format {
            Some(_) if self.is_format_noted => "as the model's file says",
            Some(_) => "by --format",
            None => Format::reason(path),
        }
    }

    /// Refuses files of several formats, unless --format says which it is.
    pub(crate) fn check_formats(&self, files: &DataFiles) -> Result<(), String> {
        if self.format.is_some() {
            return Ok(());
        }
        let first = Format::of(files.first());
        match files.paths().iter().find(|path| Format::of(path) != first) {
            Some(other) => Err(format!(
                "`{}` is {}, {}, but `{}` is {}, {}: say one --format of both, or name files of one",
                files.first().display(),
                first.name(),
                Format::reason(files.first()),
                other.display(),
                Format::of(other).name(),
                Format::reason(other),
            )),
            None => Ok(()),
        }
    }
}
