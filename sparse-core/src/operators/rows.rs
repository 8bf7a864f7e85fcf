//! Rows of tables: which rows an operator reads, and which ones its result stores.

use super::{Condition, Given, Kind, Operator, ResultRows, RowNames, RowUse, RowsRead, declared};
use crate::ir::Attributes;

impl Operator {
    /// How it reads the rows of an operand that may be row_sparse, given its attributes and the
    /// ranks of its operands: all of them where nothing else is said.
    pub fn rows_read(&self, table: usize, attributes: &Attributes, ranks: &[usize]) -> RowsRead {
        let name = self.operands[table];
        let of_table = self.reads_rows.iter().filter(|read| read.table == name);
        let mut holding = of_table.filter(|read| self.holds(read.when, attributes, ranks));
        holding.next().copied().unwrap_or(all_rows(name))
    }

    /// Which rows a row_sparse result stores, given its attributes and the ranks of its operands.
    pub fn rows_of_result(&'static self, attributes: &Attributes, ranks: &[usize]) -> ResultRows {
        match self.kind {
            Kind::Kernel => {}
            Kind::Declared(_, declared::DeclaredKernel::OfRule) => return ResultRows::All,
            _ => return within_rows(self.operands),
        }
        let given = Given { operator: self, attributes, numbers: &[], ranks, names: None };
        let applies = |rows: &&ResultRows| match rows {
            ResultRows::Added { when, .. } => self.holds(*when, attributes, ranks),
            ResultRows::Within { when, unless, .. } => {
                self.holds(*when, attributes, ranks)
                    && unless.is_none_or(|condition| !(condition.holds)(&given))
            }
            _ => true,
        };
        self.result_rows.iter().find(applies).copied().unwrap_or(ResultRows::All)
    }

    /// The operator that reads rows of a table as they are, by the columns of a csr or by ids.
    pub fn reader_of_rows(by_ids: bool) -> Option<&'static Operator> {
        let reads = |read: &RowsRead| {
            read.what == RowUse::AsTheyAre && matches!(read.by, Some(RowNames::Ids(_))) == by_ids
        };
        super::all().find(|operator| operator.reads_rows.iter().any(reads))
    }
}

/// Rows that the columns of a csr name.
pub(super) const fn rows_by(table: &'static str, by: &'static str, what: RowUse) -> RowsRead {
    RowsRead { table, by: Some(RowNames::Columns(by)), when: None, what }
}

/// Rows that ids name.
pub(super) const fn rows_by_ids(table: &'static str, ids: &'static str, what: RowUse) -> RowsRead {
    RowsRead { table, by: Some(RowNames::Ids(ids)), when: None, what }
}

/// All rows.
pub(super) const fn all_rows(table: &'static str) -> RowsRead {
    RowsRead { table, by: None, when: None, what: RowUse::Otherwise }
}

impl RowsRead {
    /// The same under a condition.
    pub(super) const fn only(self, when: &'static str) -> Self {
        RowsRead { when: Some(when), ..self }
    }
}

/// The rows that these operands store, each computed by itself.
pub(super) const fn within_rows(of: &'static [&'static str]) -> ResultRows {
    ResultRows::Within { of, when: None, unless: None }
}

/// The same unless a condition holds.
pub(super) const fn within_rows_unless(
    of: &'static [&'static str],
    unless: &'static Condition,
) -> ResultRows {
    ResultRows::Within { of, when: None, unless: Some(unless) }
}
