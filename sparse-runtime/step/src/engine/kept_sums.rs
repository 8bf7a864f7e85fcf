//! The sums over a batch, of what a [pass](super::whole_batch) has kept of its samples, given to a
//! [`Sink`].

use super::program::{Pool, Program, Read, Source, TrainedDense};
use super::sink::Sink;
use super::table_rows::TableRows;
use super::terms::{self, OfSamples, Term};
use super::whole_batch::{Kept, Sizes};
use crate::error::Result;
use crate::linear::Scratch;
use crate::optimizer::clip;
use nnz_arrays::kernels::Parallel;
use sparse_core::element::Float;
use sparse_core::passes::MOST_PARAMETERS;

/// The sums of tables, clipped to the common norm `max_norm` if there is one.
pub(super) fn tables<T: Float<Accumulator = T>>(
    program: &mut Program<'_, '_, T>,
    sink: &mut dyn Sink<T>,
    max_norm: Option<f64>,
    parallel: Parallel,
    scratch: &mut Scratch<T>,
    sizes: Sizes,
) -> Result<()> {
    let mut kept = std::mem::take(&mut scratch.kept);
    let Kept { gradients, sums, totals, .. } = &mut kept;
    let of_samples = (&gradients[..], &sums[..]);
    let result = tables_by(program, sink, (max_norm, totals), parallel, scratch, sizes, of_samples);
    scratch.kept = kept;
    result
}

/// The gradients of dense parameters, which are the sums of their terms.
pub(super) fn dense<T: Float<Accumulator = T>>(
    program: &mut Program<'_, '_, T>,
    sink: &mut dyn Sink<T>,
    mut totals: &[f64],
) -> Result<()> {
    for TrainedDense { parameter, values, gradient, .. } in program.dense.iter_mut() {
        let (own, others) = totals.split_at(values.len());
        totals = others;
        gradient.iter_mut().zip(own).for_each(|(gradient, total)| *gradient = T::of(*total));
        sink.apply_dense(*parameter, values, gradient)?;
    }
    Ok(())
}

fn tables_by<T: Float<Accumulator = T>>(
    program: &mut Program<'_, '_, T>,
    sink: &mut dyn Sink<T>,
    (max_norm, totals): (Option<f64>, &mut [f64]),
    parallel: Parallel,
    scratch: &mut Scratch<T>,
    sizes: Sizes,
    (of_reads, of_interactions): (&[T], &[T]),
) -> Result<()> {
    let Program { reads, tables, .. } = program;
    let reads: &[Read<'_, '_, T>] = reads;
    let parameters = tables.iter().map(|table| table.parameter);
    let mut indices = [0; MOST_PARAMETERS];
    indices.iter_mut().zip(parameters).for_each(|(index, parameter)| *index = parameter);
    sink.with_tables(tables, true, &mut |tables| {
        let (mut first_gradient, mut first_sum, mut first) = (0, 0, 0);
        while let Some(Read { source: Source::Trained(table), .. }) = reads.get(first) {
            let is_of_table =
                |read: &&Read<'_, '_, T>| matches!(read.source, Source::Trained(of) if of == *table);
            let of_table = &reads[first..];
            let of_table = &of_table[..of_table.iter().take_while(is_of_table).count()];
            first += of_table.len();
            let Some(rows) = tables.get_mut(*table).and_then(Option::as_mut) else { continue };
            let row_size = rows.facts().row_size;
            let terms = of_table.iter().filter_map(|read| {
                let size = if read.has_gradient { read.size } else { 0 };
                let of_sums = if read.pool == Pool::Pairs { row_size } else { 0 };
                let term = Term {
                    refs: read.refs,
                    pool: read.pool,
                    gradients: OfSamples {
                        all: of_reads,
                        stride: sizes.gradients,
                        first: first_gradient,
                        size,
                    },
                    sums: OfSamples {
                        all: of_interactions,
                        stride: sizes.sums,
                        first: first_sum,
                        size: of_sums,
                    },
                };
                first_gradient += size;
                first_sum += of_sums;
                read.has_gradient.then_some(term)
            });
            with_terms(terms, |terms| match max_norm {
                None => terms::update(&mut **rows, terms, indices[*table], parallel, scratch),
                Some(_) => terms::sum(&mut **rows, terms, scratch),
            });
        }
        if let Some(max_norm) = max_norm {
            clip_sums(max_norm, tables, totals);
            tables.iter_mut().flatten().for_each(|rows| rows.apply_sums());
        }
        Ok(())
    })
}

/// Multiplies the sums of all tables and of dense parameters by one factor, so that their common
/// norm is at most `max_norm`.
fn clip_sums<T: Float<Accumulator = T>>(
    max_norm: f64,
    tables: &mut [Option<&mut dyn TableRows<T>>],
    totals: &mut [f64],
) {
    clip::scale_to(max_norm, &mut |visit| {
        for rows in tables.iter_mut().flatten() {
            visit(rows.sums_and_weights().0.values_mut());
        }
        visit(totals);
    });
}

/// Calls `body` with terms as a list, on the stack where they are few.
fn with_terms<'b, 'k, T: Float, O>(
    mut terms: impl Iterator<Item = Term<'b, 'k, T>>,
    body: impl FnOnce(&[Term<'b, 'k, T>]) -> O,
) -> O {
    const FEW: usize = 16;
    let first: [Option<Term<'b, 'k, T>>; FEW] = std::array::from_fn(|_| terms.next());
    let rest: Vec<Term<'b, 'k, T>> = terms.collect();
    if rest.is_empty()
        && let Some(one) = first[0]
    {
        let count = first.iter().flatten().count();
        let list = first.map(|term| term.unwrap_or(one));
        return body(&list[..count]);
    }
    let all: Vec<Term<'b, 'k, T>> = first.into_iter().flatten().chain(rest).collect();
    body(&all)
}
