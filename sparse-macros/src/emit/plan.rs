//! `PLAN`: what the compiler decided, as a constant of plain data; and what is said of it when a
//! model is made.

use super::context::Emit;
use super::declarations::named_inputs;
use super::numbers;
use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote};
use sparse_core::formula::Formula;
use sparse_core::inspect::{
    Computed, Extent, Operand, PlanLookup, PlanLookupRead, PlanNamedRow, PlanPool, PlanRead,
    PlanRowSet, PlanRows, PlanStep, PlanTable, PlanValue, Stored, Written,
};
use sparse_core::ir::{AttributeValue, Entry};
use sparse_core::storage::Storage;

/// Constructors and variants come from one module of the runtime, so that a value is a line of a
/// table. Constants of the user are named outside of the block that imports them: none of theirs is
/// shadowed.
///
/// ```text
/// const __EXTENT_0: usize = CLASSES;
/// {
///     use plan::*;
///     PlanTable {
///         name: "LinearRegression",
///         element: F32,
///         values: &[declared("x", 0, Input, Csr, F32, &[Named("n"), Named("d")], As(0), None), …],
///         rows: &[…],
///         losses: &[Value(5)],
///         step: PlanStep::LinearRows { input: 0, weight: 2, factors: None,
///             loss: "squared_error(pred, y)" },
///         warns: false,
///     }
/// }
/// ```
pub(super) fn constant(emit: &Emit<'_>) -> TokenStream {
    let (rt, plan) = (&emit.rt, emit.plan);
    let PlanTable { name, element: _, values, rows, losses, step, warns } = plan;
    let element = variant(plan.element);
    let constants = Constants::of(emit);
    let values = values.iter().map(|value| self::value(&constants, value));
    let rows = rows.iter().map(self::rows);
    let losses = losses.iter().map(|loss| operand(&constants, loss));
    let step = match step {
        PlanStep::None => quote!(None),
        PlanStep::Unfused { reason } => quote!(Unfused { reason: #reason }),
        PlanStep::Scattered { reason, parameters, one_row, many_rows, reads } => {
            let reads = reads.iter().map(read);
            let one_row = option(one_row.map(|reason| quote!(#reason)));
            let many_rows = option(many_rows.map(|many_rows| quote!(#many_rows)));
            quote!(Scattered {
                reason: #reason, parameters: &[#(#parameters),*], one_row: #one_row, many_rows: #many_rows,
                reads: &[#(#reads),*]
            })
        }
        PlanStep::LinearRows { input, weight, factors, loss } => {
            let factors = option(factors.map(|position| quote!(#position)));
            quote!(LinearRows { input: #input, weight: #weight, factors: #factors, loss: #loss })
        }
        PlanStep::LookupRows { reads, loss } => {
            let reads = reads.iter().map(lookup);
            quote!(LookupRows { reads: &[#(#reads),*], loss: #loss })
        }
    };
    let extents =
        constants.0.iter().map(|(_, extent, value)| quote!(const #extent: #rt::usize = #value;));
    let numbers = constants.1.iter().map(|(name, number)| {
        let value = numbers::constant(emit, name);
        quote!(const #number: #rt::f64 = #value;)
    });
    quote! {{
        #(#extents)*
        #(#numbers)*
        {
            #[allow(unused_imports)]
            use #rt::plan::*;
            PlanTable {
                name: #name,
                element: #element,
                values: &[#(#values),*],
                rows: &[#(#rows),*],
                losses: &[#(#losses),*],
                step: PlanStep::#step,
                warns: #warns,
            }
        }
    }}
}

/// The constants of Rust that are dimensions: the name, the constant that stands for it in the
/// plan, and its value.
struct Constants<'a>(Vec<(&'a str, Ident, &'a TokenStream)>, Vec<(String, Ident)>);

impl<'a> Constants<'a> {
    fn of(emit: &'a Emit<'_>) -> Self {
        let is_extent = |(name, _): &&(String, TokenStream)| emit.graph.unify.is_constant(name);
        let named = emit.constants.iter().filter(is_extent).enumerate();
        let named =
            named.map(|(index, (name, value))| (&**name, format_ident!("__EXTENT_{index}"), value));
        let mut numbers: Vec<(String, Ident)> = Vec::new();
        let mut add = |name: &str| {
            let is_known = numbers.iter().any(|(known, _)| known == name);
            if !is_known && emit.constants.iter().any(|(known, _)| known == name) {
                let index = format_ident!("__NUMBER_{}", numbers.len());
                numbers.push((name.to_owned(), index));
            }
        };
        for how in emit.plan.values.iter().filter_map(|value| value.computed) {
            for (attribute, value) in how.attributes {
                if let AttributeValue::Named(name) = value
                    && !numbers::is_extent(how.operator, attribute)
                {
                    add(name);
                }
            }
        }
        for formula in emit.graph.ids().filter_map(|id| emit.graph.number_of(id)) {
            formula.names().into_iter().for_each(&mut add);
        }
        Constants(named.collect(), numbers)
    }

    fn number(&self, wanted: &str) -> Option<&Ident> {
        self.1.iter().find(|(name, _)| *name == wanted).map(|(_, number)| number)
    }

    fn extent(&self, wanted: &str) -> Option<&Ident> {
        self.0.iter().find(|(name, ..)| *name == wanted).map(|(_, extent, _)| extent)
    }
}

fn value(constants: &Constants<'_>, value: &PlanValue<'_>) -> TokenStream {
    let PlanValue { name, number, .. } = value;
    let (element, storage) = (variant(value.element), variant(value.storage));
    let part = variant(value.part);
    let shape = value.shape.iter().map(|extent| match extent {
        Extent::Constant(size) => quote!(Constant(#size)),
        Extent::Named(name) => match constants.extent(name) {
            Some(extent) => quote!(Constant(#extent)),
            None => quote!(Named(#name)),
        },
    });
    let stored = match value.stored {
        Stored::All => quote!(All),
        Stored::AllRows => quote!(AllRows),
        Stored::As(source) => quote!(As(#source)),
        Stored::Distinct(inputs) => quote!(Distinct(&[#(#inputs),*])),
    };
    let what = quote!(#name, #number, #part, #storage, #element, &[#(#shape),*], #stored);
    let Some(how) = value.computed else {
        let gradient = option(value.gradient.map(|gradient| quote!(#gradient)));
        return quote!(declared(#what, #gradient));
    };
    let Computed { operator, kernel, on_gpu, operands, attributes, fused, fallback } = how;
    let on_gpu = option(on_gpu.map(|name| quote!(#name)));
    let operands = operands.iter().map(|of| operand(constants, of));
    let attributes =
        attributes.iter().map(|(name, value)| attribute(constants, operator, name, value));
    let written = option(value.written.map(|written| match written {
        Written::Buffer(index) => quote!(Buffer(#index)),
        Written::Output(name) => quote!(Output(#name)),
        Written::Gradient(parameter) => quote!(Written::Gradient(#parameter)),
        Written::Within(result) => quote!(Within(#result)),
    }));
    quote!(computed(#what, #operator, #kernel, #on_gpu, &[#(#operands),*], &[#(#attributes),*], #fused, #fallback, #written))
}

fn operand(constants: &Constants<'_>, operand: &Operand) -> TokenStream {
    match operand {
        Operand::Value(position) => quote!(Value(#position)),
        Operand::Shape(position) => quote!(Shape(#position)),
        Operand::Number(number) => {
            let bits = number.to_bits();
            quote!(number(#bits))
        }
        Operand::Named { text, .. } => {
            let formula = sparse_core::formula::parse(text).unwrap_or(Formula::Number(0.0));
            let names = formula.names().into_iter().map(str::to_owned).collect::<Vec<_>>();
            let known = names.iter().filter_map(|name| {
                let number = constants.number(name)?;
                Some(quote!((#name, #number)))
            });
            quote!(named_number(#text, &[#(#known),*]))
        }
    }
}

fn attribute(
    constants: &Constants<'_>,
    operator: &str,
    name: &str,
    value: &AttributeValue,
) -> TokenStream {
    let extent = |wanted: &str| {
        let extent = constants.extent(wanted);
        quote!(#extent as i64)
    };
    let value = match value {
        AttributeValue::Flag(flag) => quote!(Flag(#flag)),
        AttributeValue::Integer(integer) => quote!(Integer(#integer)),
        AttributeValue::Number(number) => {
            let bits = number.0.to_bits();
            quote!(real(#bits))
        }
        AttributeValue::Named(wanted) if numbers::is_extent(operator, name) => {
            let extent = extent(wanted);
            quote!(Integer(#extent))
        }
        AttributeValue::Named(wanted) => {
            let number = constants.number(wanted);
            quote!(real_number(#number))
        }
        AttributeValue::NamedList(list) => {
            let entries = list.entries().map(|entry| {
                option(entry.map(|entry| match entry {
                    Entry::Integer(integer) => quote!(#integer),
                    Entry::Named(name) => extent(name),
                }))
            });
            quote!(list(&[#(#entries),*]))
        }
        AttributeValue::List(list) => {
            let entries = list.entries().iter().map(|entry| option(entry.map(|of| quote!(#of))));
            quote!(list(&[#(#entries),*]))
        }
        AttributeValue::Storage(storage) => {
            let storage = variant(storage);
            quote!(AttributeValue::Storage(#storage))
        }
    };
    quote!((#name, #value))
}

fn rows(rows: &PlanRows<'_>) -> TokenStream {
    let set = |set: &PlanRowSet<'_>| match set {
        PlanRowSet::All => quote!(PlanRowSet::All),
        PlanRowSet::Columns(inputs) => quote!(Columns(&[#(#inputs),*])),
    };
    let (parameter, reads) = (rows.parameter, set(&rows.reads));
    let writes = option(rows.writes.as_ref().map(set));
    let decays = rows.decays;
    quote!(PlanRows { parameter: #parameter, reads: #reads, writes: #writes, decays: #decays })
}

/// `read(2, 0, PlanPool::Rows)`
fn read(read: &PlanRead) -> TokenStream {
    let PlanRead { table, by, pool } = read;
    let pool = match pool {
        PlanPool::Sum { weighted, mean } => quote!(Sum { weighted: #weighted, mean: #mean }),
        PlanPool::Rows => quote!(Rows),
        PlanPool::Pairs => quote!(Pairs),
    };
    quote!(read(#table, #by, PlanPool::#pool))
}

fn lookup(lookup: &PlanLookup) -> TokenStream {
    let PlanLookup { value, gradient, read } = lookup;
    let named = |row: &PlanNamedRow| {
        let PlanNamedRow { table, ids } = row;
        quote!(named(#table, #ids))
    };
    match read {
        PlanLookupRead::Element(row) => {
            let row = named(row);
            quote!(element(#value, #gradient, #row))
        }
        PlanLookupRead::Inner { left, right, mean } => {
            let (left, right) = (named(left), named(right));
            quote!(inner(#value, #gradient, #left, #right, #mean))
        }
    }
}

fn option(tokens: Option<TokenStream>) -> TokenStream {
    match tokens {
        Some(tokens) => quote!(Some(#tokens)),
        None => quote!(None),
    }
}

/// A variant by its name in Rust.
pub(super) fn variant(value: impl std::fmt::Debug) -> Ident {
    Ident::new(&format!("{value:?}"), Span::call_site())
}

/// What a new model says of itself: its plan where `NNZ_LOG` asks for it, and once each conversion
/// that `fallback = warn` inserted.
///
/// ```text
/// static __FALLBACKS: Once = Once::new();
/// __FALLBACKS.call_once(|| warn_of_fallbacks(&Self::PLAN));
/// log_plan(&model);
/// ```
pub(super) fn log(emit: &Emit<'_>) -> TokenStream {
    let (rt, name) = (&emit.rt, &emit.name);
    let warn = (emit.plan.warns && emit.plan.fallbacks().next().is_some()).then(|| {
        quote! {
            static __FALLBACKS: ::std::sync::Once = ::std::sync::Once::new();
            __FALLBACKS.call_once(|| #rt::warn_of_fallbacks(&<#name as #rt::Model>::PLAN));
        }
    });
    quote!(#warn #rt::log_plan(&__model);)
}

/// ```text
/// impl inspect::Measure for LinearRegressionBatch<'_> {
///     fn measure(&self, __sizes: &mut inspect::Sizes) {
///         measure_csr(__sizes, "x", self.x);
///         measure_dense(__sizes, "y", self.y);
///     }
/// }
/// ```
pub(super) fn measure(emit: &Emit<'_>) -> TokenStream {
    let (rt, batch) = (&emit.rt, &emit.batch);
    let inputs = named_inputs(emit).map(|id| {
        let (field, name) = (emit.declared(id), emit.graph.label(id));
        match emit.graph.storage(id) {
            Storage::Csr => quote!(#rt::measure_csr(__sizes, #name, self.#field);),
            Storage::RowSparse => quote!(#rt::measure_row_sparse(__sizes, #name, self.#field);),
            Storage::Dense if emit.graph.value(id).element.is_id() => {
                quote!(#rt::measure_ids(__sizes, #name, self.#field);)
            }
            Storage::Dense => quote!(#rt::measure_dense(__sizes, #name, self.#field);),
        }
    });
    quote! {
        #[automatically_derived]
        impl #rt::inspect::Measure for #batch<'_> {
            fn measure(&self, __sizes: &mut #rt::inspect::Sizes) {
                #(#inputs)*
            }
        }
    }
}
