//! Gradients that go into their update without being made, found in the plan of a model that is not
//! `fuse = off`.

use super::fused::RowsLaunch;
use super::plan_search::{applies, is_operand, position};
use super::workspace::{NamedRowsMemory, Place, Workspace};
use crate::optimizer::cuda::{RowSums, StoredValues, Summed};
use nnz_arrays::device::cuda::{CudaBuffer, CudaError, CudaSlice};
use nnz_arrays::kernels::cuda::occurrences::Occurrences;
use nnz_arrays::kernels::cuda::table::GpuOperand;
use nnz_arrays::kernels::cuda::{CudaContext, GpuFloat};
use nnz_arrays::kernels::embedding_bag::cuda::find_shares;
use nnz_arrays::kernels::lookup::Lookup;
use nnz_arrays::kernels::take::cuda::places_of_lists;
use nnz_device::cuda::MOST_SIDES;
use sparse_core::inspect::{PlanStep, PlanTable, PlanValue, Written};
use sparse_core::ir::Attributes;
use sparse_core::operators::find;
use sparse_core::shapes::place_of;
use sparse_core::storage::Storage;

/// The parameters whose gradient goes into their update: a sum over rows of the batch, each of
/// which names rows of the parameter.
#[derive(Clone, Debug, Default)]
pub(super) struct InPlace {
    /// What names rows; each is looked for once, whichever gradients are sums over it.
    sources: Vec<Source>,
    /// Each of the gradients.
    sums: Vec<Sum>,
}

/// What names rows of parameters.
#[derive(Clone, Debug)]
enum Source {
    /// The columns of a csr.
    Columns(Place),
    /// Ids.
    Ids {
        /// One or several arrays of them, and whether those beyond the extent are the ends, or
        /// count on from the other end.
        lists: Vec<List>,
        /// A parameter whose rows they are.
        of: Place,
    },
}

/// An array of ids, and what becomes of those beyond the extent.
#[derive(Clone, Copy, Debug, PartialEq)]
struct List {
    ids: Place,
    clip: bool,
    wrap: bool,
}

/// A gradient that goes into its update.
#[derive(Clone, Debug)]
struct Sum {
    parameter: Place,
    /// The position of the gradient in the plan.
    gradient: usize,
    /// The gradient, the terms that it is the sum of, and the sums of these: what need not be made.
    unmade: Vec<usize>,
    /// The place of what names its rows.
    source: usize,
    /// The positions of its right sides, or of the derivatives by interactions.
    right: Vec<usize>,
    factors: Factors,
}

/// What the rows of a right side are multiplied by.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Factors {
    /// The values of the csr.
    Values,
    /// Those of bags.
    Bags { mean: bool, weighted: bool },
    /// Nothing.
    Ones,
    /// It is the gradient of interactions, whose sums a [`RowsLaunch`] has.
    Interactions,
}

/// A term of a gradient.
#[derive(Clone, Copy, Debug)]
struct Term {
    names: Names,
    right: usize,
    factors: Factors,
}

#[derive(Clone, Copy, Debug)]
enum Names {
    Columns(Place),
    Ids(List),
}

impl InPlace {
    /// Memory for what names rows, and for what sums over them read.
    pub(super) fn memory(&self) -> NamedRowsMemory {
        NamedRowsMemory {
            occurrences: self.sources.iter().map(|_| Occurrences::default()).collect(),
            shares: self.sums.iter().map(|_| CudaBuffer::default()).collect(),
        }
    }

    /// Those of a plan that does not say `fuse = off`.
    pub(super) fn find(plan: &PlanTable<'_>, places: &[Place], fused: Option<&RowsLaunch>) -> Self {
        let mut found = InPlace::default();
        if matches!(plan.step, PlanStep::Unfused { .. }) {
            return found;
        }
        for (parameter, value) in plan.values.iter().enumerate() {
            let Some(gradient) = value.gradient else { continue };
            let shared = plan.values.iter().filter(|of| of.gradient == Some(gradient)).count() > 1;
            let mut terms = Terms { plan, places, fused, unmade: Vec::new(), found: Vec::new() };
            if shared || !terms.add(gradient as usize, 0) {
                continue;
            }
            let Some((source, factors)) = source(&terms.found, places[parameter]) else { continue };
            let known =
                found.sources.iter().position(|known| is_same(plan, places, known, &source));
            let source = known.unwrap_or_else(|| {
                found.sources.push(source);
                found.sources.len() - 1
            });
            found.sums.push(Sum {
                parameter: places[parameter],
                gradient: gradient as usize,
                right: terms.found.iter().map(|term| term.right).collect(),
                unmade: terms.unmade,
                source,
                factors,
            });
        }
        found
    }

    /// Gives what is read after all other launches slots of its own, from `first_slot` on, where
    /// the plan would write something else there. Returns how many.
    pub(super) fn keep(
        &self,
        plan: &PlanTable<'_>,
        places: &mut [Place],
        first_slot: usize,
    ) -> usize {
        let mut next = first_slot;
        for &right in self.sums.iter().flat_map(|sum| &sum.right) {
            let Some(Written::Buffer(buffer)) = plan.values[right].written else { continue };
            if places[right] == Place::Slot(buffer as usize) {
                places[right] = Place::Slot(next);
                next += 1;
            }
        }
        next - first_slot
    }

    /// Whether a value need not be made.
    pub(super) fn is_unmade(&self, value: usize) -> bool {
        self.sums.iter().any(|sum| sum.unmade.contains(&value))
    }

    /// The gradients.
    pub(super) fn gradients(&self) -> impl Iterator<Item = usize> {
        self.sums.iter().map(|sum| sum.gradient)
    }

    /// Asks for the rows that the batch names, and for what sums over them read; nobody waits for
    /// their number.
    ///
    /// # Errors
    ///
    /// [`CudaError::OutOfMemory`], [`CudaError::TooManyEntries`].
    pub(super) fn ask_for_rows<T: GpuFloat>(
        &self,
        workspace: &mut Workspace<T>,
        context: &mut CudaContext,
    ) -> Result<(), CudaError> {
        // Out of the workspace, which has the operands.
        let mut occurrences = std::mem::take(&mut workspace.named.occurrences);
        let mut shares = std::mem::take(&mut workspace.named.shares);
        let mut sources = self.sources.iter().zip(&mut occurrences);
        let asked = sources.try_for_each(|(source, to)| source.ask(to, workspace, context));
        let asked = asked.and_then(|()| {
            let mut sums = self.sums.iter().zip(&mut shares);
            sums.try_for_each(|(sum, to)| self.ask_for_shares(sum, to, workspace, context))
        });
        workspace.named = NamedRowsMemory { occurrences, shares };
        asked
    }

    fn ask_for_shares<T: GpuFloat>(
        &self,
        sum: &Sum,
        to: &mut CudaBuffer<f64>,
        workspace: &Workspace<T>,
        context: &CudaContext,
    ) -> Result<(), CudaError> {
        let (Factors::Bags { mean, weighted }, Source::Columns(x)) =
            (sum.factors, &self.sources[sum.source])
        else {
            return Ok(());
        };
        let gpu = context.gpu();
        match workspace.operand(*x) {
            Some(GpuOperand::Csr(x)) => find_shares::<T, _>(gpu, to, x, mean, weighted).map(drop),
            Some(GpuOperand::Unit(x)) => find_shares::<T, _>(gpu, to, x, mean, weighted).map(drop),
            _ => Ok(()),
        }
    }

    /// The gradient of a parameter that need not be made, when its operands and the rows of its
    /// source are there.
    pub(super) fn sums_of<'w, T: GpuFloat>(
        &self,
        places: &[Place],
        workspace: &'w Workspace<T>,
        parameter: usize,
    ) -> Option<RowSums<'w, T>> {
        let is_it = |(_, of): &(usize, &Sum)| of.parameter == Place::Parameter(parameter);
        let (at, sum) = self.sums.iter().enumerate().find(is_it)?;
        let occurrences = &workspace.named.occurrences[sum.source];
        let right = |at: usize| workspace.operand(places[at])?.dense();
        let (values, rows, n_rows) = match &self.sources[sum.source] {
            Source::Columns(x) => {
                let (values, n_rows) = match workspace.operand(*x)? {
                    GpuOperand::Csr(x) => (StoredValues::Numbers(x.values()), x.n_rows()),
                    GpuOperand::Unit(x) => (StoredValues::Units, x.n_rows()),
                    _ => return None,
                };
                (values, occurrences.rows(), vec![n_rows])
            }
            Source::Ids { lists, .. } => {
                let ids = lists.iter().map(|list| workspace.ids(list.ids));
                let n_rows = ids.map(|ids| Some(ids?.len())).collect::<Option<Vec<_>>>()?;
                (StoredValues::Units, CudaSlice::default(), n_rows)
            }
        };
        if sum.factors == Factors::Interactions {
            let (right, factor_sums) = (right(sum.right[0])?, workspace.factor_sums.as_slice());
            return Some(RowSums {
                occurrences,
                of: Summed::Interactions { values, right, factor_sums },
            });
        }
        let (values, shares) = match sum.factors {
            Factors::Bags { mean, weighted } => {
                let shares =
                    if mean { workspace.named.shares[at].as_slice() } else { CudaSlice::default() };
                (if weighted { values } else { StoredValues::Units }, shares)
            }
            _ => (values, CudaSlice::default()),
        };
        let sides = sum.right.iter().zip(n_rows).map(|(&at, n)| Some((right(at)?.values(), n)));
        let right = sides.collect::<Option<Vec<_>>>()?;
        Some(RowSums { occurrences, of: Summed::Rows { values, shares, rows, right } })
    }
}

impl Source {
    fn ask<T: GpuFloat>(
        &self,
        to: &mut Occurrences,
        workspace: &Workspace<T>,
        context: &mut CudaContext,
    ) -> Result<(), CudaError> {
        let (gpu, places) = (&context.gpu().clone(), &mut context.places);
        match self {
            Source::Columns(x) => match workspace.operand(*x) {
                Some(GpuOperand::Csr(x)) => to.ask(gpu, x),
                Some(GpuOperand::Unit(x)) => to.ask(gpu, x),
                _ => Ok(()),
            },
            Source::Ids { lists, of } => {
                let Some(table) = workspace.operand(*of).and_then(GpuOperand::dense) else {
                    return Ok(());
                };
                let ids = lists.iter().map(|list| {
                    let lookup = Lookup::new(table.shape(), 0, list.clip, list.wrap);
                    Some((workspace.ids(list.ids)?, lookup))
                });
                let Some(lists): Option<Vec<_>> = ids.collect() else { return Ok(()) };
                places_of_lists(gpu, places, &lists)?;
                to.ask_for_ids(gpu, places.as_slice(), table.shape().n_rows())
            }
        }
    }
}

/// What names the rows of all terms of a gradient, and what their right sides are multiplied by:
/// several terms of ids, or one.
fn source(terms: &[Term], parameter: Place) -> Option<(Source, Factors)> {
    match terms {
        [Term { names: Names::Columns(x), factors, .. }] => Some((Source::Columns(*x), *factors)),
        _ if terms.len() <= MOST_SIDES => {
            let lists = terms.iter().map(|term| match term.names {
                Names::Ids(list) => Some(list),
                Names::Columns(_) => None,
            });
            Some((
                Source::Ids { lists: lists.collect::<Option<_>>()?, of: parameter },
                Factors::Ones,
            ))
        }
        _ => None,
    }
}

/// Whether both name the same rows.
fn is_same(plan: &PlanTable<'_>, places: &[Place], one: &Source, other: &Source) -> bool {
    let extent = |parameter: &Place| {
        let at = places.iter().position(|place| place == parameter)?;
        plan.values[at].shape.first()
    };
    match (one, other) {
        (Source::Columns(one), Source::Columns(other)) => one == other,
        (Source::Ids { lists, of }, Source::Ids { lists: others, of: other }) => {
            lists == others && extent(of) == extent(other)
        }
        _ => false,
    }
}

/// The terms of a gradient, as far as they were found.
struct Terms<'p> {
    plan: &'p PlanTable<'p>,
    places: &'p [Place],
    fused: Option<&'p RowsLaunch>,
    unmade: Vec<usize>,
    found: Vec<Term>,
}

impl Terms<'_> {
    /// Adds those that a value is the sum of, which so many others read. False where there is
    /// something else in it.
    fn add(&mut self, value: usize, n_readers: usize) -> bool {
        let of = &self.plan.values[value];
        let readers = self.plan.values.iter().filter(|other| is_operand(other, value)).count();
        let is_output = matches!(of.written, Some(Written::Output(_)));
        if readers != n_readers || is_output || of.storage != Storage::RowSparse {
            return false;
        }
        self.unmade.push(value);
        if let Some(sum) = applies(of, "add") {
            let mut terms = sum.operands.iter().map(position);
            return terms.all(|term| term.is_some_and(|term| self.add(term, 1)));
        }
        let term = self.term(of).filter(|term| {
            // What another update may change is none.
            let is_parameter = matches!(self.places[term.right], Place::Parameter(_));
            self.plan.values[term.right].storage == Storage::Dense && !is_parameter
        });
        self.found.extend(term);
        term.is_some()
    }

    fn term(&self, value: &PlanValue<'_>) -> Option<Term> {
        let how = value.computed?;
        let attributes = Attributes::from(how.attributes);
        let (first, second) = (position(how.operands.first()?)?, position(how.operands.get(1)?)?);
        let columns = || {
            let x = self.places[first];
            let is_csr = self.plan.values[first].storage == Storage::Csr;
            (is_csr && matches!(x, Place::Input(_))).then_some(Names::Columns(x))
        };
        let flag = |name| attributes.flag(name);
        match how.operator {
            "dot" if flag("transpose_lhs") && !flag("transpose_rhs") => {
                Some(Term { names: columns()?, right: second, factors: Factors::Values })
            }
            "embedding_bag_gradient" => {
                let factors = Factors::Bags { mean: flag("mean"), weighted: flag("weighted") };
                Some(Term { names: columns()?, right: second, factors })
            }
            "pairwise_interaction_gradient" => {
                let right = position(how.operands.get(2)?)?;
                let is = self.fused?.interactions()
                    == Some((self.places[first], self.places[second], right));
                is.then_some(Term { names: columns()?, right, factors: Factors::Interactions })
            }
            "take_gradient" => {
                let axis = find(how.operator)?.integer(&attributes, "axis").unwrap_or(0);
                let by_rows = place_of(axis, value.shape.len()) == Some(0);
                let ids = self.places[second];
                let list = List { ids, clip: flag("clip"), wrap: flag("wrap") };
                let is = by_rows && matches!(ids, Place::Input(_));
                is.then_some(Term { names: Names::Ids(list), right: first, factors: Factors::Ones })
            }
            _ => None,
        }
    }
}
