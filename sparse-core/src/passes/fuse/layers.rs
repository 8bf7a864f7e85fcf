//! Steps of one row of data through dense layers: a row of every value is an array whose length the
//! source has.
//!
//! Rows of parameters that the batch names (products with a csr, bags, embeddings) go through
//! products with dense parameters and element-wise functions to a loss, and the gradients back to
//! the rows. So go the rows of a larger batch, where the dense parameters are [few](are_few)
//! elements; else its products are kernels' work.

use super::super::scatter::{NamedRows, Scatter};
use super::row_loop::{is_over_columns, is_scalar_function, loss_gradient};
use crate::ir::{Apply, Graph, Kind, ValueId};
use crate::operators::{Link, MatrixProduct, Placement, Total};
use crate::shapes::Dim;
use crate::storage::Storage;
use std::collections::BTreeSet;

/// The parts of a step of one row.
#[derive(Clone, Debug, PartialEq)]
pub struct Layers {
    /// What is read of row_sparse parameters: those of one parameter are one after the other.
    pub reads: Vec<RowsRead>,
    /// What is read likewise of parameters that are not trained.
    pub frozen: Vec<RowsRead>,
    /// What is computed of that, in order, [`score_gradient`](Self::score_gradient) among it.
    pub values: Vec<RowValue>,
    /// The loss.
    pub loss: ValueId,
    /// The gradient with respect to the scores.
    pub score_gradient: ValueId,
    /// The dense parameters that are trained, and what their gradients are the sums of.
    pub dense: Vec<(ValueId, Vec<DenseGradient>)>,
}

/// Rows of a parameter that the batch names, as one value of a row of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowsRead {
    /// The parameter.
    pub table: ValueId,
    /// The value.
    pub value: ValueId,
    /// The gradient with respect to the value. None where nothing goes back to it: behind
    /// `stop_gradient`, or where the parameter is frozen.
    pub gradient: Option<ValueId>,
}

/// A value of a row of data.
#[derive(Clone, Debug, PartialEq)]
pub struct RowValue {
    /// The value.
    pub value: ValueId,
    /// How a row of it is computed.
    pub computed: RowComputed,
}

/// How a row of a value is computed from rows of other values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowComputed {
    /// Each element by the operator's formula; operands of one column, and parameters of one row,
    /// repeat.
    ElementWise,
    /// The loss's gradient, with the loss.
    Loss,
    /// x · w, or x · wᵀ, and a bias.
    Product {
        /// A row.
        x: ValueId,
        /// A dense parameter.
        w: ValueId,
        /// Whether it is read transposed.
        transposed: bool,
        /// A dense parameter that is added.
        bias: Option<ValueId>,
    },
    /// One row after the other.
    Joined(ValueId, ValueId),
    /// The first elements of a row, or the last.
    Part {
        /// The row.
        of: ValueId,
        /// Whether they are the last.
        from_end: bool,
    },
    /// The sum of a row, or the mean.
    Total {
        /// The row.
        of: ValueId,
        /// Whether it is the mean.
        mean: bool,
    },
    /// The one element of a row, in every place.
    Repeated {
        /// The row.
        of: ValueId,
        /// Whether each place has its share only: the places are divided by their number.
        shared: bool,
    },
    /// The same.
    Copy(ValueId),
    /// The softmax of a row.
    Softmax(ValueId),
}

/// What the gradient of a dense parameter is made of, or one of several things that it is the sum
/// of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DenseGradient {
    /// The products of all elements of two rows.
    Outer(ValueId, ValueId),
    /// A row.
    Row(ValueId),
    /// The sum of a row.
    Total(ValueId),
}

/// The longest row that is kept on the stack.
const LONGEST: u64 = 1024;

/// The most reads of a row of data. The loop is one function with all of them in it, in a copy for
/// each kind of update and of vectors: of 200 rustc takes minutes and gigabytes. A kernel is
/// compiled once, however many of its calls there are.
const MOST_READS: usize = 128;

/// The most elements that dense parameters have where [`are_few`].
pub const FEW: usize = 1 << 12;

/// Whether dense parameters of so many elements in all stay in a cache, from which each row of data
/// reads them. Of more, the product of all rows of a batch with one of them is a kernel's work.
pub const fn are_few(elements: usize) -> bool {
    elements <= FEW
}

impl Layers {
    /// What is read of each row_sparse parameter.
    pub fn reads_by_table(&self) -> impl DoubleEndedIterator<Item = &[RowsRead]> + use<'_> {
        self.reads.chunk_by(|one, next| one.table == next.table)
    }

    /// Whether the dense parameters that are trained [are few](are_few) elements, if their extents
    /// are numbers.
    pub fn are_few(&self, graph: &Graph) -> Option<bool> {
        let mut elements = 0usize;
        for (parameter, _) in &self.dense {
            elements = elements.saturating_add(elements_of(graph, *parameter)?);
        }
        Some(are_few(elements))
    }
}

/// The elements of a parameter, if its extents are numbers.
fn elements_of(graph: &Graph, parameter: ValueId) -> Option<usize> {
    graph.shape(parameter).iter().try_fold(1usize, |size, dim| match dim {
        Dim::Size(extent) => Some(size.saturating_mul(usize::try_from(*extent).ok()?)),
        _ => None,
    })
}

/// The parts of a step of one row, or why it is not one loop. `scattered` are the parameters whose
/// gradients are rows that the batch names.
pub(super) fn layers(graph: &Graph, scattered: &[Scatter]) -> Result<Layers, String> {
    let [loss] = graph.losses[..] else {
        return Err(format!("the model has {} losses", graph.losses.len()));
    };
    let score_gradient = loss_gradient(graph, loss)?;
    let batch = match graph.shape(score_gradient).first() {
        Some(Dim::Named(name)) if !graph.unify.is_constant(name) => Dim::Named(name.clone()),
        _ => return Err("the number of rows is fixed".into()),
    };
    let rows = Samples { graph, batch };
    let mut parts = Layers {
        reads: Vec::new(),
        frozen: Vec::new(),
        values: Vec::new(),
        loss,
        score_gradient,
        dense: Vec::new(),
    };
    // What the updates are made of instead.
    few_reads(scattered.iter().flat_map(|scatter| &scatter.lookups).map(Vec::len).sum())?;
    let mut inside = BTreeSet::from([loss]);
    for scatter in scattered {
        parts.reads.extend(rows.reads(scatter)?);
        inside.extend(&scatter.skipped);
    }
    let mut dense = Vec::new();
    let tables: BTreeSet<ValueId> = scattered.iter().map(|scatter| scatter.parameter).collect();
    for (parameter, gradient) in &graph.gradients {
        if !tables.contains(parameter) {
            dense.push((*parameter, terms_of(graph, *gradient, &mut inside)));
        }
    }
    let read: BTreeSet<ValueId> = parts.reads.iter().map(|read| read.value).collect();
    for id in graph.ids() {
        let Some(apply) = graph.apply_of(id) else { continue };
        if inside.contains(&id) || read.contains(&id) {
            continue;
        }
        if let Some(table) = frozen_table(graph, apply) {
            parts.frozen.push(rows.read_frozen(table, id, apply)?);
            continue;
        }
        let computed =
            if id == score_gradient { RowComputed::Loss } else { rows.computed(id, apply)? };
        parts.values.push(RowValue { value: id, computed });
    }
    few_reads(parts.reads.len() + parts.frozen.len())?;
    for (parameter, terms) in dense {
        parts.dense.push((parameter, rows.dense_gradient(parameter, terms)?));
    }
    Ok(parts)
}

fn few_reads(n_reads: usize) -> Result<(), String> {
    match n_reads {
        0..=MOST_READS => Ok(()),
        _ => Err(format!(
            "a row of data has {n_reads} reads of parameters, which are more than {MOST_READS}"
        )),
    }
}

/// The frozen parameter whose rows a value reads, if it is one.
fn frozen_table(graph: &Graph, apply: &Apply) -> Option<ValueId> {
    let is_frozen =
        |id: &ValueId| matches!(graph.value(*id).kind, Kind::Parameter { frozen: true, .. });
    let table = apply.operands.iter().copied().find(is_frozen)?;
    NamedRows::read(graph, apply, table).map(|_| table)
}

/// How bags add up: whether they are means, and whether rows are weighted.
fn of_bags(apply: &Apply) -> [bool; 2] {
    ["mean", "weighted"].map(|flag| apply.attributes.flag(flag))
}

/// What a gradient is the sum of, in order, and with it what is `inside`. Without recursion: a sum
/// is as deep as it has terms.
fn terms_of<'a>(graph: &'a Graph, sum: ValueId, inside: &mut BTreeSet<ValueId>) -> Vec<&'a Apply> {
    let (mut terms, mut next) = (Vec::new(), vec![sum]);
    while let Some(id) = next.pop() {
        inside.insert(id);
        match graph.apply_of(id) {
            Some(apply) if apply.operator.is_sum => {
                next.extend(apply.operands.iter().rev());
            }
            apply => terms.extend(apply),
        }
    }
    terms
}

/// The values that are rows of data.
struct Samples<'a> {
    graph: &'a Graph,
    /// The extent that batches have.
    batch: Dim,
}

impl Samples<'_> {
    /// The elements of a row of a dense value, where the source has their number.
    fn columns(&self, id: ValueId) -> Result<Dim, String> {
        let shape = self.graph.shape(id);
        let columns = match &shape[..] {
            [rows] if *rows == self.batch => &Dim::Size(1),
            [rows, columns] if *rows == self.batch => columns,
            _ => return Err(format!("`{}` has no rows of data", self.graph.label(id))),
        };
        let is_float = self.graph.value(id).element.is_float();
        if self.graph.storage(id) != Storage::Dense || !is_float {
            return Err(format!("rows of `{}` are not dense numbers", self.graph.label(id)));
        }
        self.is_constant(columns, id)?;
        Ok(columns.clone())
    }

    fn is_constant(&self, dim: &Dim, of: ValueId) -> Result<(), String> {
        let label = || self.graph.label(of);
        match dim {
            Dim::Size(0) => Err(format!("rows of `{}` are empty", label())),
            Dim::Size(size) if *size > LONGEST => {
                Err(format!("rows of `{}` have more than {LONGEST} elements", label()))
            }
            Dim::Size(_) => Ok(()),
            Dim::Named(name) if self.graph.unify.is_constant(name) => Ok(()),
            _ => Err(format!(
                "the extent `{dim}` of `{}` is neither a number nor a constant of the source",
                label()
            )),
        }
    }

    /// The values that read a parameter by rows, and their gradients.
    fn reads(&self, scatter: &Scatter) -> Result<Vec<RowsRead>, String> {
        let (graph, table) = (self.graph, scatter.parameter);
        let name = graph.label(table);
        let lookups = scatter.lookups.as_deref();
        let lookups = lookups.ok_or(format!("not all that reads `{name}` names its rows"))?;
        let reads = lookups.iter().map(|value| self.read(scatter, *value));
        let reads = reads.collect::<Result<Vec<_>, _>>()?;
        let n_gradients = reads.iter().filter(|read| read.gradient.is_some()).count();
        if n_gradients != scatter.terms.len() {
            return Err(format!(
                "the gradient of `{name}` is of {} term{}, of which {n_gradients} are of the rows that it is read by",
                scatter.terms.len(),
                if scatter.terms.len() == 1 { "" } else { "s" },
            ));
        }
        Ok(reads)
    }

    /// One of the values that read a parameter by rows, and its gradient.
    fn read(&self, scatter: &Scatter, value: ValueId) -> Result<RowsRead, String> {
        let (graph, table) = (self.graph, scatter.parameter);
        let named = |value: ValueId| {
            let apply = graph.apply_of(value)?;
            Some((NamedRows::read(graph, apply, table)?, of_bags(apply)))
        };
        let added = |term: &ValueId| {
            let apply = graph.apply_of(*term)?;
            let (rows, added) = NamedRows::added(graph, apply)?;
            Some(((rows, of_bags(apply)), added))
        };
        let own = named(value).ok_or("rows are not named")?;
        let mut terms = scatter.terms.iter().filter_map(added).filter(|(rows, _)| *rows == own);
        // Nothing goes back to what is read for `stop_gradient` alone.
        let gradient = terms.next().map(|(_, gradient)| gradient);
        let lookups = scatter.lookups.iter().flatten();
        let n_lookups = lookups.filter(|it| named(**it) == Some(own)).count();
        if terms.next().is_some() || gradient.is_some() && n_lookups != 1 {
            return Err(format!("the gradient of `{}` is not known apart", graph.label(value)));
        }
        self.are_given(own.0)?;
        self.columns(value)?;
        gradient.map_or(Ok(Dim::Size(1)), |gradient| self.columns(gradient))?;
        Ok(RowsRead { table, value, gradient })
    }

    /// A value that reads rows of a parameter that is not trained.
    fn read_frozen(
        &self,
        table: ValueId,
        value: ValueId,
        apply: &Apply,
    ) -> Result<RowsRead, String> {
        let rows = NamedRows::read(self.graph, apply, table).ok_or("rows are not named")?;
        self.are_given(rows)?;
        self.columns(value)?;
        Ok(RowsRead { table, value, gradient: None })
    }

    /// Refuses rows that something computed names.
    fn are_given(&self, rows: NamedRows) -> Result<(), String> {
        let (NamedRows::Product { csr: by }
        | NamedRows::Bags { bags: by }
        | NamedRows::Ids { ids: by }) = rows;
        match self.graph.value(by).kind {
            Kind::Input | Kind::Label => Ok(()),
            _ => Err(format!("`{}`, which names rows, is computed", self.graph.label(by))),
        }
    }

    /// Whether a value is a dense parameter of so many elements in all, one after the other.
    fn is_parameter(&self, id: ValueId, wanted: &[&Dim]) -> bool {
        let is_parameter = matches!(self.graph.value(id).kind, Kind::Parameter { .. });
        let shape = self.graph.shape(id);
        let counted = |dim: &&Dim| **dim != Dim::Size(1);
        is_parameter
            && self.graph.storage(id) == Storage::Dense
            && shape.iter().filter(counted).eq(wanted.iter().copied().filter(counted))
    }

    /// What a gradient of a dense parameter is the sum of. Of more than one thing it is made, on
    /// the stack.
    fn dense_gradient(
        &self,
        parameter: ValueId,
        terms: Vec<&Apply>,
    ) -> Result<Vec<DenseGradient>, String> {
        if terms.len() > 1 && !elements_of(self.graph, parameter).is_some_and(are_few) {
            let name = self.graph.label(parameter);
            return Err(format!(
                "the gradient of `{name}`, a sum, has more than {FEW} elements, or nobody knows how many"
            ));
        }
        terms.into_iter().map(|term| self.dense_term(parameter, term)).collect()
    }

    fn dense_term(&self, parameter: ValueId, apply: &Apply) -> Result<DenseGradient, String> {
        let name = self.graph.label(parameter);
        let refused =
            || format!("the gradient of `{name}` (`{}`) is none of a row", apply.operator.name);
        let of = |place: usize| apply.operands.get(place).copied().ok_or_else(refused);
        let flag = |name| apply.attributes.flag(name);
        let operator = apply.operator;
        if operator.matrix_product == MatrixProduct::ByFlags
            && flag("transpose_lhs")
            && !flag("transpose_rhs")
        {
            let (left, right) = (of(0)?, of(1)?);
            let (rows, columns) = (self.columns(left)?, self.columns(right)?);
            if self.is_parameter(parameter, &[&rows, &columns]) {
                return Ok(DenseGradient::Outer(left, right));
            }
        } else if operator.undoes_broadcasting || operator.total() == Some(Total::Sum) {
            let (row, columns) = (of(0)?, self.columns(of(0)?)?);
            let axes = apply.attributes.axes("axis").places(self.graph.shape(row).len());
            let over_rows = operator.undoes_broadcasting
                || axes.is_some_and(|axes| axes == [0]) && !flag("exclude");
            if over_rows && self.is_parameter(parameter, &[&columns]) {
                return Ok(DenseGradient::Row(row));
            }
            if operator.undoes_broadcasting && self.is_parameter(parameter, &[]) {
                return Ok(DenseGradient::Total(row));
            }
        }
        Err(refused())
    }

    fn computed(&self, id: ValueId, apply: &Apply) -> Result<RowComputed, String> {
        let columns = self.columns(id)?;
        let (operator, flag) = (apply.operator, |name| apply.attributes.flag(name));
        let refused = || {
            let (label, name) = (self.graph.label(id), operator.name);
            Err(format!(
                "`{label}` (`{name}`) is not computed from rows of data and dense parameters"
            ))
        };
        let &first = apply.operands.first().ok_or("an operator has no operands")?;
        let second = apply.operands.get(1).copied();
        if is_scalar_function(apply) {
            let rank = self.graph.shape(id).len();
            let fits = |operand: &ValueId| self.is_operand(*operand, rank, &columns);
            return if apply.operands.iter().all(fits) {
                Ok(RowComputed::ElementWise)
            } else {
                refused()
            };
        }
        if let Some(w) = second
            && operator.matrix_product != MatrixProduct::None
        {
            return self.product(apply, first, w, &columns)?.map_or_else(refused, Ok);
        }
        if operator.undoes_broadcasting && second.is_some() {
            let of_first = self.columns(first)?;
            return match columns {
                _ if of_first == columns => Ok(RowComputed::Copy(first)),
                Dim::Size(1) => Ok(RowComputed::Total { of: first, mean: false }),
                _ => refused(),
            };
        }
        let is_matrix = self.graph.shape(id).len() == 2;
        match (operator.placement, second) {
            (Placement::Joined, Some(second)) if is_over_columns(apply, "axis") && is_matrix => {
                self.columns(first)?;
                self.columns(second)?;
                return Ok(RowComputed::Joined(first, second));
            }
            (Placement::PartLike, Some(like)) if self.columns(like).as_ref() == Ok(&columns) => {
                self.columns(first)?;
                return Ok(RowComputed::Part { of: first, from_end: flag("from_end") });
            }
            (Placement::RepeatedLike, Some(_)) if self.columns(first)? == Dim::Size(1) => {
                return Ok(RowComputed::Repeated { of: first, shared: flag("mean") });
            }
            _ => {}
        }
        if let Some(total) = operator.total()
            && self.graph.shape(first).len() == 2
            && columns == Dim::Size(1)
            && !flag("exclude")
            && apply.attributes.axes("axis").places(2).is_some_and(|axes| axes == [1])
        {
            self.columns(first)?;
            return Ok(RowComputed::Total { of: first, mean: total == Total::Mean });
        }
        if operator.link == Some(Link::Softmax) && is_over_columns(apply, "axis") && is_matrix {
            self.columns(first)?;
            return Ok(RowComputed::Softmax(first));
        }
        refused()
    }

    /// The product of rows with a dense parameter `w`; none where the parameter does not fit.
    fn product(
        &self,
        apply: &Apply,
        x: ValueId,
        w: ValueId,
        columns: &Dim,
    ) -> Result<Option<RowComputed>, String> {
        let flag = |name| apply.attributes.flag(name);
        let (transposed, bias, fits) = match apply.operator.matrix_product {
            MatrixProduct::ByFlags if !flag("transpose_lhs") => {
                let (inner, transposed) = (self.columns(x)?, flag("transpose_rhs"));
                let extents = if transposed { [columns, &inner] } else { [&inner, columns] };
                (transposed, None, self.is_parameter(w, &extents))
            }
            // Of a number a row and a vector: the gradient of a product with that.
            MatrixProduct::Outer => {
                let is_number = self.columns(x)? == Dim::Size(1);
                (true, None, is_number && self.is_parameter(w, &[columns]))
            }
            MatrixProduct::WithTransposed(_) => {
                let (inner, bias) = (self.columns(x)?, apply.operands.get(2).copied());
                let is_bias = |bias| self.is_parameter(bias, &[columns]);
                let fits = self.is_parameter(w, &[columns, &inner]) && bias.is_none_or(is_bias);
                (true, bias, fits)
            }
            _ => return Ok(None),
        };
        Ok(fits.then_some(RowComputed::Product { x, w, transposed, bias }))
    }

    /// Whether each element of a row of a value with so many columns, of such a rank, has its
    /// element of an operand.
    fn is_operand(&self, id: ValueId, rank: usize, columns: &Dim) -> bool {
        let fits = |own: &Dim| own == columns || *own == Dim::Size(1);
        match self.graph.value(id).kind {
            Kind::Constant(_) | Kind::Named(_) => true,
            Kind::Parameter { .. } => {
                self.is_parameter(id, &[]) || self.is_parameter(id, &[columns])
            }
            _ => self.graph.shape(id).len() == rank && self.columns(id).is_ok_and(|own| fits(&own)),
        }
    }
}
