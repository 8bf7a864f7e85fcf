//! The known computation of a row of each value.

use crate::model::on_gpu::plan_search::{Loss, applies, is_operand, is_output, position};
use crate::model::on_gpu::rows::layer_rows::{
    Chain, ChainStep, Element, Matrix, Named, RowSpan, Sum,
};
use crate::model::on_gpu::workspace::Place;
use nnz_arrays::kernels::cuda::ScalarFunction;
use sparse_core::inspect::{Computed, Extent, Operand, PlanTable};
use sparse_core::ir::Attributes;
use sparse_core::operators::{Operator, find};
use sparse_core::storage::{ElementType, Storage};

/// Where the arrays are, of each kind in the order of the chain.
#[derive(Clone, Debug, Default)]
pub(super) struct ArrayPlaces {
    pub(super) matrices: Vec<Place>,
    pub(super) tables: Vec<Place>,
    pub(super) csrs: Vec<Place>,
    pub(super) ids: Vec<Place>,
    pub(super) inputs: Vec<Place>,
}

/// The values that are rows, as far as they were found.
pub(super) struct RowValues<'p> {
    plan: &'p PlanTable<'p>,
    places: &'p [Place],
    /// The extent that batches have.
    batch: Extent<'p>,
    /// For each value of the plan its row.
    pub(super) found: Vec<Option<RowSpan>>,
    /// How they are computed.
    pub(super) chain: Chain,
    /// What the chain reads.
    pub(super) arrays: ArrayPlaces,
}

impl<'p> RowValues<'p> {
    /// None yet.
    pub(super) fn new(plan: &'p PlanTable<'p>, places: &'p [Place], batch: Extent<'p>) -> Self {
        let found = vec![None; plan.values.len()];
        let (chain, arrays) = (Chain::default(), ArrayPlaces::default());
        RowValues { plan, places, batch, found, chain, arrays }
    }

    /// The elements of a row of a dense value, where the source has their number.
    fn columns(&self, at: usize) -> Option<usize> {
        let value = &self.plan.values[at];
        let is_dense = value.storage == Storage::Dense && value.element == self.plan.element;
        let is_float = matches!(value.element, ElementType::F32 | ElementType::F64);
        match value.shape {
            [rows] if *rows == self.batch && is_dense && is_float => Some(1),
            [rows, Extent::Constant(columns)] if *rows == self.batch && is_dense && is_float => {
                (*columns > 0).then_some(*columns)
            }
            _ => None,
        }
    }

    fn rank(&self, at: usize) -> usize {
        self.plan.values[at].shape.len()
    }

    /// The extents of a dense parameter, where the source has them.
    pub(super) fn extents(&self, at: usize) -> Option<Vec<usize>> {
        let value = &self.plan.values[at];
        let is = matches!(self.places[at], Place::Parameter(_)) && value.storage == Storage::Dense;
        let extents = value.shape.iter().map(|extent| match extent {
            Extent::Constant(extent) => Some(*extent),
            Extent::Named(_) => None,
        });
        is.then(|| extents.collect())?
    }

    /// Whether a value is a dense parameter of such extents, but for those that are 1.
    fn is_parameter(&self, at: usize, wanted: &[usize]) -> bool {
        let counted = |extent: &&usize| **extent != 1;
        self.extents(at)
            .is_some_and(|found| found.iter().filter(counted).eq(wanted.iter().filter(counted)))
    }

    /// The number of a dense parameter among those of the chain.
    fn matrix(&mut self, at: usize) -> Option<usize> {
        let (rows, columns) = match self.extents(at)?[..] {
            [] => (1, 1),
            [columns] => (1, columns),
            [rows, columns] => (rows, columns),
            _ => return None,
        };
        let (number, is_new) = number_of(&mut self.arrays.matrices, self.places[at]);
        if is_new {
            self.chain.matrices.push(Matrix { rows, columns });
        }
        Some(number)
    }

    /// The number of a parameter among the tables, of which a row has so many elements.
    fn table(&mut self, at: usize, columns: usize) -> Option<usize> {
        let is_row = match self.plan.values[at].shape {
            [_] => columns == 1,
            [_, Extent::Constant(extent)] => *extent == columns,
            _ => false,
        };
        (is_row && matches!(self.places[at], Place::Parameter(_))).then_some(())?;
        let (number, is_new) = number_of(&mut self.arrays.tables, self.places[at]);
        if is_new {
            self.chain.tables.push(columns);
        }
        Some(number)
    }

    fn csr(&mut self, at: usize) -> Option<usize> {
        let is = self.is_input(at) && self.plan.values[at].storage == Storage::Csr;
        is.then_some(())?;
        let (number, _) = number_of(&mut self.arrays.csrs, self.places[at]);
        self.chain.n_csrs = self.arrays.csrs.len();
        Some(number)
    }

    /// One for each row of the batch.
    fn ids(&mut self, at: usize) -> Option<usize> {
        let value = &self.plan.values[at];
        let is = self.is_input(at) && value.element.is_id() && *value.shape == [self.batch];
        is.then_some(())?;
        let (number, _) = number_of(&mut self.arrays.ids, self.places[at]);
        self.chain.n_ids = self.arrays.ids.len();
        Some(number)
    }

    fn is_input(&self, at: usize) -> bool {
        matches!(self.places[at], Place::Input(_))
    }

    /// A row of a value: one that was found, or one of the batch.
    fn row(&mut self, at: usize) -> Option<RowSpan> {
        if self.found[at].is_none() && self.is_input(at) {
            let columns = self.columns(at)?;
            let (input, _) = number_of(&mut self.arrays.inputs, self.places[at]);
            self.chain.inputs.push(columns);
            let to = self.make(columns);
            self.chain.steps.push(ChainStep::Load { input, to });
            self.found[at] = Some(to);
        }
        self.found[at]
    }

    /// Room for a row.
    fn make(&mut self, columns: usize) -> RowSpan {
        let at = self.chain.width;
        self.chain.width += columns;
        RowSpan { at, columns }
    }

    /// Finds the row of a value, unless it has another form.
    pub(super) fn add(&mut self, at: usize, loss: &Loss<'_>) -> Option<()> {
        let columns = self.columns(at)?;
        if at == loss.gradient {
            let scores = self.row(loss.score).filter(|scores| scores.columns == columns)?;
            let to = self.make(columns);
            self.chain.steps.push(ChainStep::Loss { scores, to });
            self.found[at] = Some(to);
            return Some(());
        }
        let how = self.plan.values[at].computed?;
        let operator = find(how.operator)?;
        let attributes = Attributes::from(how.attributes);
        self.found[at] = match ScalarFunction::new(operator, &attributes) {
            Some(function) => self.element_wise(at, how, function, columns),
            None => self.computed(at, how, operator, &attributes, columns),
        };
        self.found[at].map(|_| ())
    }

    fn element_wise(
        &mut self,
        at: usize,
        how: Computed<'_>,
        function: ScalarFunction,
        columns: usize,
    ) -> Option<RowSpan> {
        // Its attributes are in the text.
        function.function("f")?;
        let mut operands = Vec::with_capacity(how.operands.len());
        for operand in how.operands {
            operands.push(match *operand {
                Operand::Number(number) if number.is_finite() => Element::Number(number),
                Operand::Value(of) if matches!(self.places[of as usize], Place::Parameter(_)) => {
                    let of = of as usize;
                    let fits = self.is_parameter(of, &[]) || self.is_parameter(of, &[columns]);
                    Element::Matrix(self.matrix(of).filter(|_| fits)?)
                }
                Operand::Value(of) if self.rank(of as usize) == self.rank(at) => {
                    Element::Row(self.row(of as usize)?)
                }
                _ => return None,
            });
        }
        let fits = |operand: &Element| match operand {
            Element::Row(row) => row.columns == columns || row.columns == 1,
            Element::Matrix(_) | Element::Number(_) => true,
        };
        operands.iter().all(fits).then_some(())?;
        let to = self.make(columns);
        self.chain.steps.push(ChainStep::ElementWise { function, operands, to });
        Some(to)
    }

    fn computed(
        &mut self,
        at: usize,
        how: Computed<'_>,
        operator: &'static Operator,
        attributes: &Attributes,
        columns: usize,
    ) -> Option<RowSpan> {
        let flag = |name| attributes.flag(name);
        let over_columns = || operator.integer(attributes, "axis") != Some(0);
        let first = position(how.operands.first()?)?;
        let second = how.operands.get(1).and_then(any_position);
        match (how.operator, second) {
            ("dot", Some(table)) if self.plan.values[first].storage == Storage::Csr => {
                (!flag("transpose_lhs") && !flag("transpose_rhs")).then_some(())?;
                let csr = self.csr(first)?;
                self.named(Named::Columns { csr, mean: false, weighted: true }, table, columns)
            }
            ("embedding_bag", Some(table)) => {
                let csr = self.csr(first)?;
                let (mean, weighted) = (flag("mean"), flag("weighted"));
                self.named(Named::Columns { csr, mean, weighted }, table, columns)
            }
            ("take", Some(ids)) if operator.integer(attributes, "axis") == Some(0) => {
                let ids = self.ids(ids)?;
                let (clip, wrap) = (flag("clip"), flag("wrap"));
                self.named(Named::Ids { ids, clip, wrap }, first, columns)
            }
            ("embedding", Some(table)) => {
                let ids = self.ids(first)?;
                self.named(Named::Ids { ids, clip: false, wrap: false }, table, columns)
            }
            ("dot", Some(w)) if !flag("transpose_lhs") => {
                let (x, transposed) = (self.row(first)?, flag("transpose_rhs"));
                let extents = if transposed { [columns, x.columns] } else { [x.columns, columns] };
                self.is_parameter(w, &extents).then_some(())?;
                self.product(x, w, transposed, None, columns)
            }
            // Of a number a row and a vector: the gradient of a product with that.
            ("outer", Some(w)) => {
                let x = self.row(first).filter(|x| x.columns == 1)?;
                self.is_parameter(w, &[columns]).then_some(())?;
                self.product(x, w, true, None, columns)
            }
            ("fully_connected", Some(w)) => {
                let x = self.row(first)?;
                let bias = match how.operands.get(2) {
                    Some(bias) => Some(position(bias)?),
                    None => None,
                };
                let fits = bias.is_none_or(|bias| self.is_parameter(bias, &[columns]));
                (fits && self.is_parameter(w, &[columns, x.columns])).then_some(())?;
                self.product(x, w, true, bias, columns)
            }
            ("concat", Some(second)) if over_columns() && self.rank(at) == 2 => {
                let (first, second) = (self.row(first)?, self.row(second)?);
                let to = self.make(columns);
                let (left, right) = (
                    RowSpan { columns: first.columns, ..to },
                    RowSpan { at: to.at + first.columns, columns: second.columns },
                );
                self.chain.steps.push(ChainStep::Copy { of: first, first: 0, to: left });
                self.chain.steps.push(ChainStep::Copy { of: second, first: 0, to: right });
                Some(to)
            }
            ("slice_like", Some(_)) => {
                let of = self.row(first).filter(|of| of.columns >= columns)?;
                match of.columns - columns {
                    before if before > 0 && flag("from_end") => {
                        let to = self.make(columns);
                        self.chain.steps.push(ChainStep::Copy { of, first: before, to });
                        Some(to)
                    }
                    _ => Some(RowSpan { columns, ..of }),
                }
            }
            ("reduce_to", Some(_)) => match self.row(first)? {
                of if of.columns == columns => Some(of),
                of if columns == 1 => Some(self.total(of, 1)),
                _ => None,
            },
            ("sum" | "mean", None) if self.rank(first) == 2 && columns == 1 => {
                let over = attributes.axes("axis").places(2)?;
                (over == [1] && !flag("exclude")).then_some(())?;
                let of = self.row(first)?;
                Some(self.total(of, if how.operator == "mean" { of.columns } else { 1 }))
            }
            ("broadcast_like", Some(_)) => {
                let of = self.row(first).filter(|of| of.columns == 1)?;
                let factor = if flag("mean") { 1.0 / columns as f64 } else { 1.0 };
                let to = self.make(columns);
                self.chain.steps.push(ChainStep::Repeat { of, factor, to });
                Some(to)
            }
            ("softmax", None) if over_columns() && self.rank(at) == 2 => {
                let of = self.row(first)?;
                let to = self.make(columns);
                self.chain.steps.push(ChainStep::Softmax { of, to });
                Some(to)
            }
            _ => None,
        }
    }

    fn named(&mut self, named: Named, table: usize, columns: usize) -> Option<RowSpan> {
        let table = self.table(table, columns)?;
        let to = self.make(columns);
        self.chain.steps.push(ChainStep::Named { named, table, to });
        Some(to)
    }

    fn product(
        &mut self,
        x: RowSpan,
        w: usize,
        transposed: bool,
        bias: Option<usize>,
        columns: usize,
    ) -> Option<RowSpan> {
        let matrix = self.matrix(w)?;
        let bias = match bias {
            Some(bias) => Some(self.matrix(bias)?),
            None => None,
        };
        let to = self.make(columns);
        self.chain.steps.push(ChainStep::Product { x, matrix, transposed, bias, to });
        Some(to)
    }

    fn total(&mut self, of: RowSpan, count: usize) -> RowSpan {
        let to = self.make(1);
        self.chain.steps.push(ChainStep::Total { of, count, to });
        to
    }

    /// What the gradient of a dense parameter is the sum of, with the values that are no others'
    /// then, of which so many others read this one. `None` where there is something else in it.
    pub(super) fn sums(
        &mut self,
        parameter: usize,
        value: usize,
        n_readers: usize,
        terms: &mut Vec<usize>,
        sums: &mut Vec<Sum>,
    ) -> Option<()> {
        let of = &self.plan.values[value];
        let readers = self.plan.values.iter().filter(|other| is_operand(other, value)).count();
        let is = readers == n_readers && !is_output(of) && of.storage == Storage::Dense;
        is.then_some(())?;
        terms.push(value);
        if let Some(sum) = applies(of, "add") {
            return sum
                .operands
                .iter()
                .try_for_each(|term| self.sums(parameter, position(term)?, 1, terms, sums));
        }
        let how = of.computed?;
        let attributes = Attributes::from(how.attributes);
        let flag = |name| attributes.flag(name);
        let first = position(how.operands.first()?)?;
        let row = self.row(first)?;
        sums.push(match how.operator {
            "dot" if flag("transpose_lhs") && !flag("transpose_rhs") => {
                let right = self.row(position(how.operands.get(1)?)?)?;
                self.is_parameter(parameter, &[row.columns, right.columns]).then_some(())?;
                Sum::Outer(row, right)
            }
            "reduce_to" | "sum" => {
                let over = attributes.axes("axis").places(self.rank(first));
                let over_rows = how.operator == "reduce_to"
                    || over.is_some_and(|over| over == [0]) && !flag("exclude");
                if over_rows && self.is_parameter(parameter, &[row.columns]) {
                    Sum::Row(row)
                } else if how.operator == "reduce_to" && self.is_parameter(parameter, &[]) {
                    Sum::Total(row)
                } else {
                    return None;
                }
            }
            _ => return None,
        });
        Some(())
    }
}

/// The number of a place among others, where it is added unless it is there already.
fn number_of(places: &mut Vec<Place>, place: Place) -> (usize, bool) {
    let known = places.iter().position(|known| *known == place);
    let number = known.unwrap_or_else(|| {
        places.push(place);
        places.len() - 1
    });
    (number, known.is_none())
}

/// A value that is an operand, or lends its shape.
fn any_position(operand: &Operand) -> Option<usize> {
    match operand {
        Operand::Value(position) | Operand::Shape(position) => Some(*position as usize),
        Operand::Number(_) | Operand::Named { .. } => None,
    }
}
