//! Table rows: which ones an operator reads, and which ones its result stores.

use super::write::{all_rows, within_rows};
use super::{DeclaredKernel, Given, Kind, Operator, ResultRows, RowsRead};
use crate::attributes::Attributes;

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
            Kind::Kernel | Kind::Declared(_, DeclaredKernel::OfRule) => {}
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
}
