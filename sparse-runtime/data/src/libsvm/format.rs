//! LibSVM text as a format with a sample a line, for streams.

use super::super::read_error::Fault;
use super::super::text::{
    Chunk, ColumnKind, ColumnLayout, RowFormat, RowParser, Survey, sealed::Sealed,
};
use super::parse::Rules;
use super::parsed_samples::ParsedSamples;
use super::{IndexBase, Reader};
use nnz_step::model::InputRole;
use sparse_core::element::Float;

impl<T: Float> Sealed for Reader<T> {}

/// The positions of the columns.
const FEATURES: usize = 0;
const LABEL: usize = 1;

/// For any element type: that of the reader applies to reads into memory.
impl<T: Float, U: Float> RowFormat<U> for Reader<T> {
    type Parser = Parser<U>;

    fn columns(&self) -> Vec<ColumnLayout> {
        let column = |role, kind| ColumnLayout { name: None, role, kind };
        let mut columns = vec![column(InputRole::Input, ColumnKind::Csr(self.n_features))];
        if !self.tolerance.any_label {
            columns.push(column(InputRole::Label, ColumnKind::Dense(1)));
        }
        columns
    }

    /// If the base is unknown, columns are as written.
    fn parser(&self, _: &[u8]) -> Parser<U> {
        let n_features = self.n_features.map(|n_features| n_features as u64);
        Parser {
            rules: Rules { base: self.index_base, n_features, tolerance: self.tolerance },
            rows: ParsedSamples::new(self.index_base),
        }
    }

    fn survey_format(&self) -> Option<Self> {
        let is_known = self.index_base != IndexBase::Detect && self.n_features.is_some();
        let survey = self.clone();
        Some(match self.index_base {
            _ if is_known => return None,
            // Whatever the base, no larger index is an entry of a row.
            IndexBase::Detect => {
                let beyond = self.n_features.map(|n_features| n_features.saturating_add(1));
                survey.index_base(IndexBase::Zero).n_features(beyond)
            }
            IndexBase::Zero | IndexBase::One => survey,
        })
    }

    fn settle(self, survey: &Survey) -> Self {
        let index_base = match self.index_base {
            IndexBase::Detect if survey.has_zero => IndexBase::Zero,
            IndexBase::Detect => IndexBase::One,
            known => known,
        };
        // Indices that were counted from zero without a known base.
        let first =
            usize::from(self.index_base == IndexBase::Detect && index_base == IndexBase::One);
        let found =
            survey.largest.map_or(0, |largest| (largest as usize + 1).saturating_sub(first));
        let n_features = self.n_features.or(Some(found));
        self.index_base(index_base).n_features(n_features)
    }

    fn known_base(&self) -> Option<IndexBase> {
        (self.index_base != IndexBase::Detect).then_some(self.index_base)
    }

    fn independent_rows(&self) -> Result<(), &'static str> {
        match self.part {
            None => Ok(()),
            Some(_) => Err("a stream reads whole files: leave `.part(…)` out"),
        }
    }
}

/// Lines into columns, by the parser of reads into memory.
#[derive(Debug)]
pub struct Parser<T: Float> {
    rules: Rules,
    rows: ParsedSamples<T>,
}

impl<T: Float> RowParser<T> for Parser<T> {
    fn parse(&mut self, text: &[u8], chunk: &mut Chunk<T>) -> Result<(), Fault> {
        let rows = &mut self.rows;
        let n_rows = chunk.n_rows;
        let csr = chunk.csr(FEATURES);
        std::mem::swap(&mut rows.indptr, &mut csr.indptr);
        std::mem::swap(&mut rows.columns, &mut csr.ids);
        std::mem::swap(&mut rows.values, &mut csr.values);
        let has_labels = !self.rules.tolerance.any_label;
        if has_labels {
            std::mem::swap(&mut rows.labels, chunk.dense(LABEL));
        }
        let result = rows.parse(text, self.rules);
        if has_labels {
            std::mem::swap(&mut rows.labels, chunk.dense(LABEL));
        } else {
            rows.labels.clear();
        }
        let csr = chunk.csr(FEATURES);
        std::mem::swap(&mut rows.indptr, &mut csr.indptr);
        std::mem::swap(&mut rows.columns, &mut csr.ids);
        std::mem::swap(&mut rows.values, &mut csr.values);
        chunk.n_rows = n_rows.max(csr.indptr.len() - 1);
        result
    }
}
