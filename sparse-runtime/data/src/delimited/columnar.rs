//! The columns of a schema in columnar files.

use super::parse::Parser;
use super::{Delimited, Kind, Numbers};
use crate::ReadError;
use crate::columnar::{CellType, ColumnarFile, Reads, TableColumns, TableParser, cell_type};
use arrow_schema::{DataType, Schema};

impl Delimited {
    /// Each column with what of it is read to make samples.
    pub(crate) fn samples(&self) -> impl Iterator<Item = (String, Reads)> {
        let reads = |kind: Kind| match kind {
            Kind::Label if !self.label_names.is_empty() => Reads::Texts,
            Kind::Numeric(_) if !self.missing.is_empty() => Reads::Texts,
            Kind::Label | Kind::Weight | Kind::Numeric(_) => Reads::Numbers,
            Kind::Categorical => Reads::Texts,
            Kind::List => Reads::Lists,
            Kind::Ignore => Reads::Nothing,
        };
        self.columns.iter().map(move |(name, kind)| (name.clone(), reads(*kind)))
    }

    /// Each column, of which what is not needed is not read.
    pub(super) fn needed(
        &self,
        is_needed: impl Fn(usize, Kind) -> bool,
    ) -> impl Iterator<Item = (String, Reads)> {
        let kinds = self.columns.iter().map(|(_, kind)| *kind).enumerate();
        self.samples().zip(kinds).map(move |((name, reads), (position, kind))| {
            let reads = match reads {
                _ if !is_needed(position, kind) => Reads::Nothing,
                // As texts: of labels that may be words, and of ids, which are `ignore`.
                _ if matches!(kind, Kind::Label | Kind::Ignore) => Reads::Texts,
                reads => reads,
            };
            (name, reads)
        })
    }

    /// A parser of the tables of a schema of Arrow.
    pub(super) fn table_parser(&self, schema: &Schema) -> Result<TableParser, String> {
        let columns = TableColumns::find(self.samples(), schema)?;
        Ok(TableParser::new(Parser::new(self), columns))
    }

    /// The kinds of the columns of a file by their types.
    pub(super) fn infer_columnar(
        mut self,
        file: &ColumnarFile,
        label: &str,
    ) -> Result<Self, ReadError> {
        let fields = file.schema().fields();
        let names: Vec<String> =
            fields.iter().map(|field| field.name().trim().to_owned()).collect();
        super::infer::check(file.name(), &names, label)?;
        for (name, field) in names.iter().zip(fields.iter()) {
            let kind = match (cell_type(field.data_type()), field.data_type()) {
                _ if name == label => Kind::Label,
                (_, DataType::Boolean) => Kind::Categorical,
                (CellType::Number, _) => Kind::Numeric(Numbers::Value),
                (CellType::Text, _) => Kind::Categorical,
                (CellType::List, _) => Kind::List,
                (CellType::Nothing | CellType::Other, _) => Kind::Ignore,
            };
            self = self.column(name, kind);
        }
        Ok(self.header(true))
    }
}
