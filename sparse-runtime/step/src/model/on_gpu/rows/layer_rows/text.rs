//! The statements of a kernel through dense layers, made of what becomes of a row.

use super::{Chain, ChainStep, Element, Matrix, Named, RowSpan, Sum};
use nnz_arrays::kernels::cuda::lanes;
use std::fmt::Write as _;

/// What a chain becomes in the text: a macro each.
pub(super) struct Statements {
    pub(super) functions: String,
    pub(super) load: String,
    pub(super) row: String,
    pub(super) sums: String,
    pub(super) add: String,
    pub(super) write: String,
    pub(super) target: String,
}

impl Statements {
    /// Those of a chain whose groups have so many lanes and blocks so many threads. `None` where a
    /// function of elements has no text.
    pub(crate) fn of(chain: &Chain, lanes: usize, threads: usize) -> Option<Self> {
        let mut writer = Writer {
            chain,
            lanes,
            functions: String::new(),
            n_functions: 0,
            row: String::new(),
            unseen: Vec::new(),
        };
        chain.steps.iter().try_for_each(|step| writer.step(step))?;
        for (number, row) in chain.kept.iter().enumerate() {
            writer.push(format_args!(
                "keep<{}>(own + {}, {}, row);",
                row.columns,
                row.at,
                array("REAL", chain.place_of_kept(number))
            ));
        }
        let Writer { functions, row, .. } = writer;
        let mut statements = Statements {
            functions,
            load: String::new(),
            row,
            sums: String::new(),
            add: String::new(),
            write: String::new(),
            target: String::new(),
        };
        statements.of_matrices(chain);
        statements.of_gradients(chain, threads);
        Some(statements)
    }

    // Writing to a string does not fail.

    fn of_matrices(&mut self, chain: &Chain) {
        for (number, matrix) in chain.matrices.iter().enumerate() {
            let Matrix { rows, columns } = *matrix;
            let (step, first) = (matrix.step(), chain.first_of_matrix(number));
            let from = array("const REAL", number);
            let _ =
                write!(self.load, "load<{rows}, {columns}, {step}>({from}, weights + {first}); ");
        }
    }

    fn of_gradients(&mut self, chain: &Chain, threads: usize) {
        let mut first = 0;
        for (number, gradient) in chain.gradients.iter().enumerate() {
            let (size, each) = (gradient.size, gradient.size.div_ceil(threads).max(1));
            let _ = write!(self.sums, "f64 sums_{number}[{each}] = {{}}; ");
            for sum in &gradient.sums {
                let _ = match sum {
                    Sum::Outer(left, right) => write!(
                        self.add,
                        "add_outer<{}, {}>(sums_{number}, rows + {}, rows + {}, count); ",
                        left.columns, right.columns, left.at, right.at
                    ),
                    Sum::Row(row) => write!(
                        self.add,
                        "add_row<{}>(sums_{number}, rows + {}, count); ",
                        row.columns, row.at
                    ),
                    Sum::Total(row) => write!(
                        self.add,
                        "add_total<{}>(sums_{number}, rows + {}, count); ",
                        row.columns, row.at
                    ),
                };
            }
            let _ = write!(self.write, "write<{size}>(sums_{number}, to + {}); ", first + 1);
            let end = first + size;
            let target = array("REAL", number);
            let _ = write!(self.target, "at < {end} ? {target} + (at - {first}) : ");
            first = end;
        }
        self.target.push_str("(REAL *)nullptr + at");
    }
}

/// The array of a number, of elements of a type.
fn array(of: &str, number: usize) -> String {
    format!("array<{of}>(of, {number})")
}

struct Writer<'a> {
    chain: &'a Chain,
    lanes: usize,
    functions: String,
    n_functions: usize,
    row: String,
    /// What other lanes have not seen yet.
    unseen: Vec<RowSpan>,
}

impl Writer<'_> {
    fn push(&mut self, statement: std::fmt::Arguments<'_>) {
        // Writing to a string does not fail.
        let _ = write!(self.row, "{statement} ");
    }

    /// Before all of a row is read by each lane.
    fn see(&mut self, row: RowSpan) {
        let meets = |of: &RowSpan| of.at < row.at + row.columns && row.at < of.at + of.columns;
        if self.unseen.iter().any(meets) {
            self.unseen.clear();
            self.push(format_args!("together();"));
        }
    }

    fn step(&mut self, step: &ChainStep) -> Option<()> {
        match *step {
            ChainStep::Load { input, to } => {
                let from = array("const REAL", self.chain.place_of_input(input));
                let RowSpan { at, columns } = to;
                self.push(format_args!(
                    "copy_row<{columns}>({from} + row * {columns}, own + {at});"
                ));
            }
            ChainStep::Named { ref named, table, to } => self.named(named, table, to),
            ChainStep::Product { x, matrix, transposed, bias, to } => {
                let of = &self.chain.matrices[matrix];
                let [row_step, column_step] = match (of.is_flat(), transposed) {
                    (true, _) => [1, 1],
                    (false, false) => [of.step(), 1],
                    (false, true) => [1, of.step()],
                };
                let function = match to.columns {
                    1 => format!("inner_product<{}, {row_step}>", x.columns),
                    columns => {
                        self.see(x);
                        format!("product<{}, {columns}, {row_step}, {column_step}>", x.columns)
                    }
                };
                let bias = match bias {
                    Some(bias) => format!("weights + {}", self.chain.first_of_matrix(bias)),
                    None => "(const REAL *)nullptr".to_owned(),
                };
                let first = self.chain.first_of_matrix(matrix);
                self.push(format_args!(
                    "{function}(own + {}, weights + {first}, {bias}, own + {});",
                    x.at, to.at
                ));
            }
            ChainStep::ElementWise { ref function, ref operands, to } => {
                let name = format!("f{}", self.n_functions);
                self.n_functions += 1;
                let _ = write!(self.functions, "{} ", function.function(&name)?);
                let given: Vec<_> =
                    operands.iter().map(|operand| self.element(*operand, to.columns)).collect();
                self.push(format_args!(
                    "for (u32 at = lane; at < {}; at += LANES) own[{} + at] = {name}({});",
                    to.columns,
                    to.at,
                    given.join(", ")
                ));
            }
            ChainStep::Copy { of, first, to } => {
                self.see(of);
                let (from, RowSpan { at, columns }) = (of.at + first, to);
                self.push(format_args!("copy_row<{columns}>(own + {from}, own + {at});"));
            }
            ChainStep::Total { of, count, to } => {
                let (RowSpan { at, columns }, to) = (of, to.at);
                self.push(format_args!("total<{columns}>(own + {at}, REAL({count}), own + {to});"));
            }
            ChainStep::Repeat { of, factor, to } => {
                self.see(of);
                let (from, RowSpan { at, columns }) = (of.at, to);
                self.push(format_args!(
                    "repeat<{columns}>(own + {from}, REAL({factor:?}), own + {at});"
                ));
            }
            ChainStep::Softmax { of, to } => {
                let (RowSpan { at, columns }, to) = (of, to.at);
                self.push(format_args!("softmax_row<{columns}>(own + {at}, own + {to});"));
            }
            ChainStep::Loss { scores, to } => {
                let (RowSpan { at, columns }, to) = (scores, to.at);
                self.push(format_args!(
                    "loss += lose<{columns}>(own + {at}, labels, attributes, row, share, own + {to});"
                ));
            }
        }
        self.unseen.push(step.to());
        Some(())
    }

    fn named(&mut self, named: &Named, table: usize, to: RowSpan) {
        let (place, RowSpan { at, columns }) = (self.chain.place_of_table(table), to);
        let rows = array("const REAL", place);
        match *named {
            Named::Columns { csr, mean, weighted } => {
                let first = self.chain.place_of_csr(csr);
                let across = lanes(columns).min(self.lanes);
                let (starts, ends) = (array("const u64", first), array("const u64", first + 1));
                let ids = array(&format!("const COLUMN_{csr}"), first + 2);
                let values = array(&format!("const VALUE_{csr}"), first + 3);
                let (weighted, mean) = (u8::from(weighted), u8::from(mean));
                self.push(format_args!(
                    "read_named<{columns}, {across}, {weighted}, {mean}>({starts}, {ends}, {ids}, {values}, {rows}, row, own + {at});"
                ));
            }
            Named::Ids { ids, clip, wrap } => {
                let from = array(&format!("const ID_{ids}"), self.chain.place_of_ids(ids));
                let (clip, wrap) = (u8::from(clip), u8::from(wrap));
                self.push(format_args!(
                    "take_row<{columns}>({from}, of.at[{}], {clip}, {wrap}, {rows}, row, own + {at});",
                    place + 1
                ));
            }
        }
    }

    /// An operand's element for element `at` of a row of so many.
    fn element(&mut self, of: Element, columns: usize) -> String {
        match of {
            Element::Row(row) if row.columns == columns => format!("own[{} + at]", row.at),
            Element::Row(row) => {
                self.see(row);
                format!("own[{}]", row.at)
            }
            Element::Matrix(number) => {
                let first = self.chain.first_of_matrix(number);
                match self.chain.matrices[number].size() {
                    1 => format!("weights[{first}]"),
                    _ => format!("weights[{first} + at]"),
                }
            }
            Element::Number(number) => format!("REAL({number:?})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Gradient;
    use super::*;

    fn row(at: usize, columns: usize) -> RowSpan {
        RowSpan { at, columns }
    }

    #[test]
    fn lanes_wait_where_they_read_what_others_wrote_and_nowhere_else() {
        let product =
            |x, matrix, to| ChainStep::Product { x, matrix, transposed: false, bias: None, to };
        let chain = Chain {
            matrices: vec![Matrix { rows: 4, columns: 6 }, Matrix { rows: 6, columns: 1 }],
            inputs: vec![4],
            steps: vec![
                ChainStep::Load { input: 0, to: row(0, 4) },
                product(row(0, 4), 0, row(4, 6)),
                // Each lane reads what it has written.
                product(row(4, 6), 1, row(10, 1)),
                ChainStep::Repeat { of: row(10, 1), factor: 0.5, to: row(11, 6) },
            ],
            kept: vec![row(11, 6)],
            gradients: vec![Gradient { size: 24, sums: vec![Sum::Outer(row(0, 4), row(11, 6))] }],
            width: 17,
            ..Chain::default()
        };
        let found = Statements::of(&chain, 8, 256).unwrap();
        let expected = [
            "copy_row<4>(array<const REAL>(of, 2) + row * 4, own + 0); together();",
            "product<4, 6, 7, 1>(own + 0, weights + 0, (const REAL *)nullptr, own + 4);",
            "inner_product<6, 1>(own + 4, weights + 28, (const REAL *)nullptr, own + 10); together();",
            "repeat<6>(own + 10, REAL(0.5), own + 11);",
            "keep<6>(own + 11, array<REAL>(of, 3), row); ",
        ];
        assert_eq!(found.row, expected.join(" "));
        assert_eq!(
            found.load,
            "load<4, 6, 7>(array<const REAL>(of, 0), weights + 0); load<6, 1, 1>(array<const REAL>(of, 1), weights + 28); "
        );
        assert_eq!(found.sums, "f64 sums_0[1] = {}; ");
        assert_eq!(found.add, "add_outer<4, 6>(sums_0, rows + 0, rows + 11, count); ");
        assert_eq!(found.write, "write<24>(sums_0, to + 1); ");
        assert_eq!(found.target, "at < 24 ? array<REAL>(of, 0) + (at - 0) : (REAL *)nullptr + at");
    }
}
