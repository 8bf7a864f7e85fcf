//! Support for code emitted by `graph!`, beside kernels: checks of a batch, and small conveniences.
//! Not part of the public interface.

pub mod plan;

use crate::error::Result;
use crate::model::{InputView, Model, ModelError, Parameter, Plan};
use nnz_arrays::formats::{
    Array, CsrView, DenseView, Extents, IdsView, RowSparseView, Shape, position_beyond,
};
use sparse_core::element::{Element, Float, Id, Stored};
use sparse_core::inspect::{BoundPlan, Sizes};
use std::collections::HashSet;
use std::fmt;

/// Compares one extent of a batch.
///
/// # Errors
///
/// [`ModelError::Extent`].
#[inline(always)]
pub fn check_extent(
    model: &'static str,
    input: &'static str,
    axis: usize,
    found: usize,
    expected: usize,
) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    Err(ModelError::extent(model, input, axis, found, expected).into())
}

/// Compares the columns of a batch's array with a dimension of the model.
///
/// # Errors
///
/// [`ModelError::Features`].
#[inline(always)]
pub fn check_features(
    model: &'static str,
    input: &'static str,
    dim: &'static str,
    found: usize,
    expected: usize,
) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    Err(ModelError::features(model, input, dim, found, expected).into())
}

/// Compares the samples of a batch with those that the model fixes.
///
/// # Errors
///
/// [`ModelError::BatchSize`].
#[inline(always)]
pub fn check_batch_size(
    model: &'static str,
    input: &'static str,
    dim: Option<&'static str>,
    found: usize,
    expected: usize,
) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    Err(ModelError::batch_size(model, input, dim, found, expected).into())
}

/// Refuses a batch of `n_rows` samples whose label has `found`, none at all.
///
/// # Errors
///
/// [`ModelError::NoLabel`].
#[inline(always)]
pub fn check_label(
    model: &'static str,
    label: &'static str,
    found: Option<usize>,
    n_rows: usize,
) -> Result<()> {
    if found.unwrap_or(0) > 0 || n_rows == 0 {
        return Ok(());
    }
    Err(ModelError::no_label(model, label, n_rows).into())
}

/// Compares the rank of a batch's array.
///
/// # Errors
///
/// [`ModelError::Rank`].
#[inline(always)]
pub fn check_rank(
    model: &'static str,
    input: &'static str,
    shape: &Shape,
    expected: usize,
) -> Result<()> {
    if shape.rank() == expected {
        return Ok(());
    }
    Err(ModelError::rank(model, input, *shape, expected).into())
}

/// A parameter of one variant of a model as that of another: they differ in the storage type of the
/// gradient.
#[inline]
pub fn same_parameter<T: Float, S, G, H>(parameter: Parameter<S, G>) -> Parameter<S, H>
where
    S: Array<Element = T>,
    G: Array<Element = T>,
    H: Array<Element = T>,
{
    parameter.for_gradient()
}

/// The ids of a batch in the type that the model declares.
///
/// # Errors
///
/// [`ModelError::IdType`].
#[inline(always)]
pub fn typed_ids<'a, I: Id>(
    model: &'static str,
    input: &'static str,
    ids: IdsView<'a>,
) -> Result<DenseView<'a, I>>
where
    DenseView<'a, I>: TryFrom<IdsView<'a>, Error = IdsView<'a>>,
{
    ids.try_into().map_err(|ids: IdsView<'_>| {
        let (declared, found) = (I::TYPE, ids.element());
        ModelError::IdType { model, input, declared, found }.into()
    })
}

/// Checks that ids are below the extent that they are positions in; a negative one is not. O(ids).
///
/// # Errors
///
/// [`ModelError::Id`], naming the first one that is not.
#[inline]
pub fn check_ids<I: Id>(
    model: &'static str,
    name: &'static str,
    ids: DenseView<'_, I>,
    bound: usize,
) -> Result<()>
where
    for<'a> IdsView<'a>: From<DenseView<'a, I>>,
{
    match position_beyond(ids.values(), bound) {
        None => Ok(()),
        Some(position) => Err(ModelError::id(model, name, ids.into(), position, bound).into()),
    }
}

/// Compares the result of a declared operator's function with its shape rule: later kernels rely on
/// it.
///
/// # Errors
///
/// [`ModelError::ResultShape`].
#[inline]
pub fn check_result(
    model: &'static str,
    operator: &'static str,
    result: &impl Extents,
    expected: &[usize],
) -> Result<()> {
    let found = result.extents();
    if *found == *expected {
        return Ok(());
    }
    let expected = Shape::try_new(expected)?;
    let (found, expected) = (Box::new(found), Box::new(expected));
    Err(ModelError::ResultShape { model, operator, found, expected }.into())
}

/// Checks that the row_sparse result of a declared operator's function stores rows that `names`
/// names, as its line `stores` says: in debug builds only. O(entries of `names` + stored rows).
///
/// # Errors
///
/// [`ModelError::OtherRowStored`].
pub fn check_rows_stored<T: Float>(
    model: &'static str,
    operator: &'static str,
    result: RowSparseView<'_, T>,
    names: InputView<'_, T>,
) -> Result<()> {
    if !cfg!(debug_assertions) {
        return Ok(());
    }
    let mut named = HashSet::new();
    names.visit(&mut |row| {
        named.insert(row);
        Ok(())
    })?;
    match result.iter_rows().find(|(row, _)| !named.contains(row)) {
        None => Ok(()),
        Some((row, _)) => {
            let (what, row) = ("result of the operator", row as u64);
            Err(ModelError::OtherRowStored { model, what, of: operator, row }.into())
        }
    }
}

/// Compares what a declared operator says of its function at 0 with what the function gives there:
/// sparse results rely on it.
///
/// # Errors
///
/// [`ModelError::NotZero`].
pub fn check_at_zero<T: Float>(
    model: &'static str,
    operator: &'static str,
    what: &'static str,
    found: T,
) -> Result<()> {
    let found = found.as_f64();
    if found == 0.0 {
        return Ok(());
    }
    Err(ModelError::NotZero { model, operator, what, found }.into())
}

/// The extents of a view, whatever its storage.
#[inline]
pub fn shape_of(view: &impl Extents) -> Shape {
    view.extents()
}

/// The one element of a loss.
#[inline]
pub fn scalar_of<T: Float>(loss: DenseView<'_, T>) -> f64 {
    loss.values().first().map_or(f64::NAN, |value| value.as_f64())
}

/// A model's `Debug`: its name, its dimensions, its parameters' shapes.
pub fn debug_model<M: Model>(model: &M, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut out = f.debug_struct(M::NAME);
    out.field("dims", &format_args!("{}", model.dims()));
    for parameter in model.parameters() {
        out.field(parameter.name, &parameter.shape);
    }
    out.finish()
}

/// One warning for each conversion that `fallback = warn` inserted: the operator, the operand,
/// storage types and cost.
pub fn warn_of_fallbacks(plan: &Plan) {
    for position in 0..plan.values.len() as u32 {
        if let Some(fallback) = plan.fallback(position) {
            tracing::warn!(
                target: "nnz::fallback",
                model = plan.name,
                operator = fallback.operators,
                operand = fallback.operand,
                from = %fallback.from,
                to = %fallback.to,
                bytes = %fallback.bytes,
                "{fallback}"
            );
        }
    }
}

/// The plan of a new model, where the environment says `NNZ_LOG=plan`: an event of the target
/// `nnz::plan`, or lines on standard error in a program that has set up no subscriber.
pub fn log_plan<M: Model>(model: &M) {
    if is_plan_asked_for() {
        log_bound_plan(M::NAME, &model.plan());
    }
}

fn is_plan_asked_for() -> bool {
    let is_plan = |word: &str| word.trim() == "plan";
    std::env::var("NNZ_LOG").is_ok_and(|words| words.split(',').any(is_plan))
}

fn log_bound_plan(model: &str, plan: &BoundPlan<'_>) {
    if tracing::dispatcher::has_been_set() {
        tracing::info!(target: "nnz::plan", model, "{plan}");
    } else {
        eprint!("{plan}");
    }
}

/// The size of a csr array of a batch. O(nnz log nnz).
pub fn measure_csr<T: Stored>(sizes: &mut Sizes, name: &str, array: CsrView<'_, T>) {
    let columns = distinct(array.iter_columns().map(|column| column as u64));
    sizes.input(name, &[array.n_rows(), array.n_cols()], Some(array.nnz()), Some(columns));
}

/// The size of a row_sparse array of a batch.
pub fn measure_row_sparse<T: Element>(sizes: &mut Sizes, name: &str, array: RowSparseView<'_, T>) {
    sizes.input(name, array.shape(), Some(array.n_stored()), None);
}

/// The size of a dense array of a batch.
pub fn measure_dense<T: Element>(sizes: &mut Sizes, name: &str, array: DenseView<'_, T>) {
    sizes.input(name, array.shape(), None, None);
}

/// The size of an array of ids of a batch. O(ids log ids).
pub fn measure_ids<T: Id>(sizes: &mut Sizes, name: &str, array: DenseView<'_, T>) {
    let ids = distinct(array.values().iter().filter_map(|id| Some(id.index()? as u64)));
    sizes.input(name, array.shape(), None, Some(ids));
}

fn distinct(ids: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut ids: Vec<u64> = ids.collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}
