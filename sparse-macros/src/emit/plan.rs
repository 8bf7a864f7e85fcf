//! `PLAN`: what the compiler decided, as a constant of plain data; and what is said of it when a model is made.

use super::Emit;
use super::structs::named_inputs;
use proc_macro2::{Ident, Span, TokenStream};
use quote::quote;
use sparse_core::inspect::{
    Extent, Operand, PlanRowSet, PlanRows, PlanStep, PlanTable, PlanValue, Stored, Written,
};
use sparse_core::storage::{ElementType, Storage};

/// ```text
/// use inspect::{PlanTable, PlanValue, …};
/// PlanTable {
///     name: "LinearRegression",
///     element: ElementType::F32,
///     values: &[PlanValue { name: "x", …, computed: None, written: None }, …],
///     rows: &[…],
///     step: PlanStep::LinearRows { input: 0, weight: 2, factors: None, loss: "squared_error(pred, y)" },
///     warns: false,
/// }
/// ```
pub(super) fn constant(emit: &Emit<'_>) -> TokenStream {
    let (rt, plan) = (&emit.rt, emit.plan);
    let PlanTable { name, element: _, values, rows, step, warns } = plan;
    let element = element(plan.element);
    let values = values.iter().map(|value| self::value(emit, value));
    let rows = rows.iter().map(self::rows);
    let step = match step {
        PlanStep::None => quote!(None),
        PlanStep::Unfused { reason } => quote!(Unfused { reason: #reason }),
        PlanStep::LinearRows { input, weight, factors, loss } => {
            let factors = match factors {
                None => quote!(None),
                Some(position) => quote!(Some(#position)),
            };
            quote!(LinearRows { input: #input, weight: #weight, factors: #factors, loss: #loss })
        }
    };
    // Names are brought in once: a path before each of them is most of the tokens of an expansion.
    quote! {{
        #[allow(unused_imports)]
        use #rt::inspect::{
            Computed, Operand, Part, PlanRowSet, PlanRows, PlanStep, PlanTable, PlanValue, Stored, Written,
        };
        #[allow(unused_imports)]
        use #rt::{ElementType, Extent, Storage};
        #[allow(unused_imports)]
        use ::core::option::Option::{None, Some};
        PlanTable {
            name: #name,
            element: #element,
            values: &[#(#values),*],
            rows: &[#(#rows),*],
            step: PlanStep::#step,
            warns: #warns,
        }
    }}
}

fn value(emit: &Emit<'_>, value: &PlanValue<'_>) -> TokenStream {
    let PlanValue { name, number, .. } = value;
    let (element, storage) = (element(value.element), variant(value.storage));
    let part = variant(value.part);
    let shape = value.shape.iter().map(|extent| match extent {
        Extent::Constant(size) => quote!(Extent::Constant(#size)),
        Extent::Named(name) => match emit.constant(name) {
            Some(value) => quote!(Extent::Constant(#value)),
            None => quote!(Extent::Named(#name)),
        },
    });
    let stored = match value.stored {
        Stored::All => quote!(All),
        Stored::AllRows => quote!(AllRows),
        Stored::As(source) => quote!(As(#source)),
        Stored::Distinct(inputs) => quote!(Distinct(&[#(#inputs),*])),
    };
    let gradient = option(value.gradient.map(|gradient| quote!(#gradient)));
    let computed = option(value.computed.map(|how| {
        let (operator, kernel, fused, fallback) =
            (how.operator, how.kernel, how.fused, how.fallback);
        let operands = how.operands.iter().map(|operand| match operand {
            Operand::Value(position) => quote!(Operand::Value(#position)),
            Operand::Shape(position) => quote!(Operand::Shape(#position)),
            Operand::Number(number) => {
                let bits = number.to_bits();
                quote!(Operand::Number(f64::from_bits(#bits)))
            }
        });
        quote! {
            Computed {
                operator: #operator,
                kernel: #kernel,
                operands: &[#(#operands),*],
                fused: #fused,
                fallback: #fallback,
            }
        }
    }));
    let written = option(value.written.map(|written| {
        let written = match written {
            Written::Buffer(index) => quote!(Buffer(#index)),
            Written::Output(name) => quote!(Output(#name)),
            Written::Gradient(parameter) => quote!(Gradient(#parameter)),
        };
        quote!(Written::#written)
    }));
    quote! {
        PlanValue {
            name: #name,
            number: #number,
            part: Part::#part,
            storage: Storage::#storage,
            element: #element,
            shape: &[#(#shape),*],
            stored: Stored::#stored,
            gradient: #gradient,
            computed: #computed,
            written: #written,
        }
    }
}

fn rows(rows: &PlanRows<'_>) -> TokenStream {
    let set = |set: &PlanRowSet<'_>| match set {
        PlanRowSet::All => quote!(PlanRowSet::All),
        PlanRowSet::Columns(inputs) => quote!(PlanRowSet::Columns(&[#(#inputs),*])),
    };
    let (parameter, reads) = (rows.parameter, set(&rows.reads));
    let writes = option(rows.writes.as_ref().map(set));
    quote!(PlanRows { parameter: #parameter, reads: #reads, writes: #writes })
}

fn option(tokens: Option<TokenStream>) -> TokenStream {
    match tokens {
        Some(tokens) => quote!(Some(#tokens)),
        None => quote!(None),
    }
}

fn element(element: ElementType) -> TokenStream {
    let name = Ident::new(&element.name().to_uppercase(), Span::call_site());
    quote!(ElementType::#name)
}

/// A variant by its name in Rust.
fn variant(value: impl std::fmt::Debug) -> Ident {
    Ident::new(&format!("{value:?}"), Span::call_site())
}

/// What a new model says of itself: its plan where `NNZ_LOG` asks for it, and once each conversion that
/// `fallback = warn` inserted.
///
/// ```text
/// static FALLBACKS: Once = Once::new();
/// FALLBACKS.call_once(|| warn_of_fallbacks(&Self::PLAN));
/// log_plan(&model);
/// ```
pub(super) fn log(emit: &Emit<'_>) -> TokenStream {
    let (rt, name) = (&emit.rt, &emit.name);
    let warn = (emit.plan.warns && emit.plan.fallbacks().next().is_some()).then(|| {
        quote! {
            static FALLBACKS: ::std::sync::Once = ::std::sync::Once::new();
            FALLBACKS.call_once(|| #rt::warn_of_fallbacks(&<#name as #rt::Model>::PLAN));
        }
    });
    quote!(#warn #rt::log_plan(&__model);)
}

/// ```text
/// impl inspect::Measure for LinearRegressionBatch<'_> {
///     fn measure(&self, sizes: &mut inspect::Sizes) {
///         measure_csr(sizes, "x", self.x);
///         measure_dense(sizes, "y", self.y);
///     }
/// }
/// ```
pub(super) fn measure(emit: &Emit<'_>) -> TokenStream {
    let (rt, batch) = (&emit.rt, &emit.batch);
    let inputs = named_inputs(emit).map(|id| {
        let (field, name) = (emit.declared(id), emit.graph.label(id));
        match emit.graph.storage(id) {
            Storage::Csr => quote!(#rt::measure_csr(sizes, #name, self.#field);),
            Storage::RowSparse => quote!(#rt::measure_row_sparse(sizes, #name, self.#field);),
            Storage::Dense if emit.graph.value(id).element.is_id() => {
                quote!(#rt::measure_ids(sizes, #name, self.#field);)
            }
            Storage::Dense => quote!(#rt::measure_dense(sizes, #name, self.#field);),
        }
    });
    quote! {
        #[automatically_derived]
        impl #rt::inspect::Measure for #batch<'_> {
            fn measure(&self, sizes: &mut #rt::inspect::Sizes) {
                #(#inputs)*
            }
        }
    }
}
