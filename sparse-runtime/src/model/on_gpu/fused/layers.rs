//! Rows of a batch that go through dense layers, wide & deep and its kin, or are another function of what is read than its sum: what the plan has
//! found.
//!
//! A row of a value is an array whose length the source has. All that is computed of declared values row by row, up to the loss and back, is one
//! launch; what has another form is launched by itself, and reads rows that the one launch writes for it.

use super::super::program::Place;
use super::{Loss, applies, computed_for, is_operand, is_output, position};
use crate::device::cuda::Cuda;
use crate::formats::{DenseView, IdsView, Shape};
use crate::kernels::cuda::layer_rows::{
    self, Chain, Element, Gradient, LayerOperands, LayerResults, LayerRows, Matrix, Named, Names,
    Row, Step, Sum,
};
use crate::kernels::cuda::linear_rows::RowLoss;
use crate::kernels::cuda::table::{GpuArray, GpuOperand};
use crate::kernels::cuda::{CudaContext, GpuFloat, Labels, ScalarFunction};
use sparse_core::inspect::{Computed, Extent, Operand, Part, PlanTable};
use sparse_core::ir::Attributes;
use sparse_core::operators::{Operator, find};
use sparse_core::storage::{ElementType, Storage};

/// The launch, and what it reads.
#[derive(Clone, Debug)]
pub(super) struct Layers {
    kernel: LayerRows,
    places: Places,
    /// The ranks of the rows that are kept.
    ranks: Vec<usize>,
    /// The shapes of the gradients of dense parameters.
    shapes: Vec<Shape>,
}

/// The launch, with the positions of what it computes.
pub(super) struct Found {
    pub(super) layers: Layers,
    /// All of them, in the order of the plan.
    pub(super) values: Vec<usize>,
    /// Those that others may read: the loss, rows, and gradients of dense parameters.
    pub(super) kept: Vec<usize>,
}

/// Where the arrays are, of each kind in the order of the chain.
#[derive(Clone, Debug, Default)]
struct Places {
    matrices: Vec<Place>,
    tables: Vec<Place>,
    csrs: Vec<Place>,
    ids: Vec<Place>,
    inputs: Vec<Place>,
}

impl Layers {
    pub(super) fn find(plan: &PlanTable<'_>, places: &[Place], loss: &Loss<'_>) -> Option<Found> {
        let of_loss = RowLoss::new(loss.operator, &Attributes::from(loss.computed.attributes))?;
        let mut gradients: Vec<usize> = Vec::new();
        for gradient in plan.values.iter().filter_map(|value| value.gradient) {
            if !gradients.contains(&(gradient as usize)) {
                gradients.push(gradient as usize);
            }
        }
        let wanted = [&[loss.value, loss.gradient], &gradients[..]].concat();
        let mut rows = Rows {
            plan,
            places,
            batch: batch(plan, loss.score)?,
            found: vec![None; plan.values.len()],
            chain: Chain::default(),
            arrays: Places::default(),
        };
        for at in computed_for(plan, &wanted) {
            // Of what has another form nothing is computed here.
            let _ = rows.add(at, loss);
        }
        rows.found[loss.gradient]?;
        let is_computed = |at: &usize| plan.values[*at].computed.is_some();
        let of_rows = (0..plan.values.len()).filter(|at| rows.found[*at].is_some());
        let mut values: Vec<_> = of_rows.filter(is_computed).chain([loss.value]).collect();
        let mut summed = Vec::new();
        for gradient in gradients {
            let of = plan.values.iter().position(|of| of.gradient == Some(gradient as u32))?;
            let mut terms = Vec::new();
            let mut sums = Vec::new();
            if rows.sums(of, gradient, 0, &mut terms, &mut sums).is_some() {
                values.extend(terms);
                let shape = Shape::try_new(&rows.extents(of)?).ok()?;
                rows.chain.gradients.push(Gradient { size: shape.size(), sums });
                summed.push((gradient, shape));
            }
        }
        values.sort_unstable();
        let is_read = |of: &usize| {
            let of_others = (0..plan.values.len()).filter(|at| values.binary_search(at).is_err());
            let mut launched = of_others.filter(|at| plan.values[*at].part != Part::Unused);
            is_output(&plan.values[*of]) || launched.any(|at| is_operand(&plan.values[at], *of))
        };
        let kept: Vec<_> = values
            .iter()
            .copied()
            .filter(|at| *at != loss.value && rows.found[*at].is_some() && is_read(at))
            .collect();
        let mut chain = rows.chain;
        chain.kept = kept.iter().filter_map(|at| rows.found[*at]).collect();
        let layers = Layers {
            kernel: LayerRows::new(chain, of_loss, plan.element)?,
            places: rows.arrays,
            ranks: kept.iter().map(|at| plan.values[*at].shape.len()).collect(),
            shapes: summed.iter().map(|(_, shape)| *shape).collect(),
        };
        let summed = summed.into_iter().map(|(gradient, _)| gradient);
        let kept = std::iter::once(loss.value).chain(kept).chain(summed).collect();
        Some(Found { layers, values, kept })
    }

    /// Computes a batch; of the rows that are kept those that are wanted.
    pub(super) fn launch<'w, T: GpuFloat>(
        &self,
        out: &mut [GpuArray<T>],
        is_wanted: impl Fn(usize) -> bool,
        operand: impl Fn(Place) -> Option<GpuOperand<'w, T>>,
        labels: Labels<'w, T>,
        row_weights: Option<DenseView<'w, T, Cuda>>,
        context: &mut CudaContext,
    ) -> Option<()> {
        let (loss, rest) = out.split_first_mut()?;
        let (rows, gradients) = rest.split_at_mut_checked(self.ranks.len())?;
        let rows = rows.iter_mut().zip(&self.ranks).enumerate();
        let kept = rows.map(|(at, (row, rank))| {
            // The loss is before them.
            (is_wanted(at + 1).then(|| row.dense()), *rank)
        });
        let gradients = gradients.iter_mut().zip(&self.shapes);
        let out = LayerResults {
            loss: loss.dense(),
            kept: kept.collect(),
            gradients: gradients.map(|(gradient, shape)| (gradient.dense(), *shape)).collect(),
        };
        let dense = |places: &[Place]| {
            places.iter().map(|place| operand(*place)?.dense()).collect::<Option<Vec<_>>>()
        };
        let ids = |place: &Place| -> Option<IdsView<'w, Cuda>> {
            match operand(*place)? {
                GpuOperand::Ids(ids) => Some(ids),
                _ => None,
            }
        };
        let names = |place: &Place| match operand(*place)? {
            GpuOperand::Csr(x) => Some(Names::Csr(x)),
            GpuOperand::Unit(x) => Some(Names::Unit(x)),
            _ => None,
        };
        let of = LayerOperands {
            matrices: dense(&self.places.matrices)?,
            tables: dense(&self.places.tables)?,
            csrs: self.places.csrs.iter().map(names).collect::<Option<_>>()?,
            ids: self.places.ids.iter().map(ids).collect::<Option<_>>()?,
            inputs: dense(&self.places.inputs)?,
            labels,
            row_weights,
        };
        layer_rows::compute(out, &of, &self.kernel, context)
    }
}

/// The extent that batches have, which is not one of parameters.
fn batch<'p>(plan: &PlanTable<'p>, score: usize) -> Option<Extent<'p>> {
    let batch = *plan.values[score].shape.first()?;
    let mut fixed = plan.values.iter().filter(|value| {
        matches!(value.part, Part::Parameter | Part::Frozen | Part::State)
            && value.shape.contains(&batch)
    });
    (matches!(batch, Extent::Named(_)) && fixed.next().is_none()).then_some(batch)
}

/// The values that are rows, as far as they were found.
struct Rows<'p> {
    plan: &'p PlanTable<'p>,
    places: &'p [Place],
    batch: Extent<'p>,
    found: Vec<Option<Row>>,
    chain: Chain,
    arrays: Places,
}

impl Rows<'_> {
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
    fn extents(&self, at: usize) -> Option<Vec<usize>> {
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
    fn row(&mut self, at: usize) -> Option<Row> {
        if self.found[at].is_none() && self.is_input(at) {
            let columns = self.columns(at)?;
            let (input, _) = number_of(&mut self.arrays.inputs, self.places[at]);
            self.chain.inputs.push(columns);
            let to = self.make(columns);
            self.chain.steps.push(Step::Load { input, to });
            self.found[at] = Some(to);
        }
        self.found[at]
    }

    /// Room for a row.
    fn make(&mut self, columns: usize) -> Row {
        let at = self.chain.width;
        self.chain.width += columns;
        Row { at, columns }
    }

    /// Finds the row of a value, unless it has another form.
    fn add(&mut self, at: usize, loss: &Loss<'_>) -> Option<()> {
        let columns = self.columns(at)?;
        if at == loss.gradient {
            let scores = self.row(loss.score).filter(|scores| scores.columns == columns)?;
            let to = self.make(columns);
            self.chain.steps.push(Step::Loss { scores, to });
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
    ) -> Option<Row> {
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
        self.chain.steps.push(Step::ElementWise { function, operands, to });
        Some(to)
    }

    fn computed(
        &mut self,
        at: usize,
        how: Computed<'_>,
        operator: &'static Operator,
        attributes: &Attributes,
        columns: usize,
    ) -> Option<Row> {
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
                    Row { columns: first.columns, ..to },
                    Row { at: to.at + first.columns, columns: second.columns },
                );
                self.chain.steps.push(Step::Copy { of: first, first: 0, to: left });
                self.chain.steps.push(Step::Copy { of: second, first: 0, to: right });
                Some(to)
            }
            ("slice_like", Some(_)) => {
                let of = self.row(first).filter(|of| of.columns >= columns)?;
                match of.columns - columns {
                    before if before > 0 && flag("from_end") => {
                        let to = self.make(columns);
                        self.chain.steps.push(Step::Copy { of, first: before, to });
                        Some(to)
                    }
                    _ => Some(Row { columns, ..of }),
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
                self.chain.steps.push(Step::Repeat { of, factor, to });
                Some(to)
            }
            ("softmax", None) if over_columns() && self.rank(at) == 2 => {
                let of = self.row(first)?;
                let to = self.make(columns);
                self.chain.steps.push(Step::Softmax { of, to });
                Some(to)
            }
            _ => None,
        }
    }

    fn named(&mut self, named: Named, table: usize, columns: usize) -> Option<Row> {
        let table = self.table(table, columns)?;
        let to = self.make(columns);
        self.chain.steps.push(Step::Named { named, table, to });
        Some(to)
    }

    fn product(
        &mut self,
        x: Row,
        w: usize,
        transposed: bool,
        bias: Option<usize>,
        columns: usize,
    ) -> Option<Row> {
        let matrix = self.matrix(w)?;
        let bias = match bias {
            Some(bias) => Some(self.matrix(bias)?),
            None => None,
        };
        let to = self.make(columns);
        self.chain.steps.push(Step::Product { x, matrix, transposed, bias, to });
        Some(to)
    }

    fn total(&mut self, of: Row, count: usize) -> Row {
        let to = self.make(1);
        self.chain.steps.push(Step::Total { of, count, to });
        to
    }

    /// What the gradient of a dense parameter is the sum of, with the values that are no others' then, of which so many others read this one.
    /// `None` where there is something else in it.
    fn sums(
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
        Operand::Number(_) => None,
    }
}
