//! The macro-free operators: for each operator of the table a trait with one implementation a rule,
//! a function, and the signs of Rust where they exist.
//!
//! Emits, for `dot`'s second rule:
//!
//! ```text
//! pub trait Dot<Rhs> { type Output; fn dot(self, rhs: Rhs) -> Result<Self::Output>; }
//! impl<T: Float> Dot<&Dense<T>> for &Csr<T> where Cpu: Kernels<T> {
//!     type Output = Dense<T>; …
//! }
//! ```

use super::{Kernel, array, attribute_type, ident};
use proc_macro2::TokenStream;
use quote::quote;
use sparse_core::operators::{self, AttributeKind, Operator, Pattern};
use sparse_core::storage::Storage;
use syn::Ident;

/// All traits, functions and implementations.
pub(crate) fn operators() -> TokenStream {
    operators::all().filter(|operator| !operator.internal).map(operation).collect()
}

/// `softmax_cross_entropy` → `SoftmaxCrossEntropy`.
fn trait_name(operator: &Operator, function: &str) -> Ident {
    let mut name = String::new();
    for word in function.split('_') {
        let mut letters = word.chars();
        name.extend(letters.next().map(|letter| letter.to_ascii_uppercase()));
        name.push_str(letters.as_str());
    }
    // `dense`, `csr` and `row_sparse` name array types.
    if operator.converts_to.is_some() {
        name.insert_str(0, "To");
    }
    ident(&name)
}

/// An attribute that a caller gives.
struct Given {
    name: Ident,
    /// The type that the trait's method takes.
    ty: TokenStream,
    /// What the function takes: anything that becomes it.
    easy: TokenStream,
    /// How it is put among the attributes that the shape rule reads.
    set: TokenStream,
}

/// The attributes that a caller gives: transpositions are part of the operands, storage of another
/// function.
fn given(operator: &Operator) -> Vec<Given> {
    operator
        .attributes
        .iter()
        .filter(|attribute| !attribute.name.starts_with("transpose_"))
        .filter_map(|attribute| {
            let (name, text) = (ident(attribute.name), attribute.name);
            let set = match attribute.kind {
                AttributeKind::Storage => return None,
                AttributeKind::Flag => quote! {
                    attributes.set(#text, AttributeValue::Flag(#name));
                },
                AttributeKind::Integer(_) => quote! {
                    attributes.set(#text, AttributeValue::Integer(#name));
                },
                AttributeKind::Number(_) => quote! {
                    attributes.set(#text, AttributeValue::Number(Number(#name)));
                },
                AttributeKind::Axes => quote! {
                    if let Some(list) = #name.0 {
                        attributes.set(#text, AttributeValue::List(list));
                    }
                },
                AttributeKind::List => quote! {
                    if let Some(list) = #name {
                        attributes.set(#text, AttributeValue::List(list));
                    }
                },
            };
            let ty = attribute_type(attribute.kind);
            let easy = match attribute.kind {
                AttributeKind::Axes | AttributeKind::List => quote!(impl Into<#ty>),
                _ => ty.clone(),
            };
            Some(Given { name, ty, easy, set })
        })
        .collect()
}

/// A trait with its function and implementations: one for each number of operands that an operator
/// takes.
fn operation(operator: &'static Operator) -> TokenStream {
    (operator.required()..=operator.operands.len()).map(|arity| of_arity(operator, arity)).collect()
}

/// The name of the function for a number of operands: `squared_error`, `squared_error_with_weight`.
fn function_name(operator: &Operator, arity: usize) -> String {
    let mut name = operator.name.to_owned();
    for (index, optional) in operator.operands[operator.required()..arity].iter().enumerate() {
        name.push_str(if index == 0 { "_with_" } else { "_and_" });
        name.push_str(optional);
    }
    name
}

fn of_arity(operator: &'static Operator, arity: usize) -> TokenStream {
    let text = function_name(operator, arity);
    let (name, tr) = (ident(&text), trait_name(operator, &text));
    let operands = &operator.operands[..arity];
    let others: Vec<Ident> = operands[1..].iter().map(|operand| ident(operand)).collect();
    let types: Vec<Ident> = operands[1..].iter().map(|operand| ident(&capital(operand))).collect();
    let given = given(operator);
    let attributes: Vec<_> = given.iter().map(|given| &given.name).collect();
    let kinds: Vec<_> = given.iter().map(|given| &given.ty).collect();
    let easy: Vec<_> = given.iter().map(|given| &given.easy).collect();
    let of_this_arity =
        || operator.storage.iter().filter(|rule| rule.signature().operands.len() == arity);
    let rules: Vec<String> = of_this_arity()
        .map(|rule| match rule.signature().condition {
            Some(condition) => format!("`{}` {}", rule.text(), condition.text),
            None => format!("`{}`", rule.text()),
        })
        .collect();
    let docs = format!("{}\n\nStorage: {}.", operator.summary, rules.join(", "));
    let doc_errors = "# Errors\n\nOperands whose shapes or attributes do not fit, and a condition of the rule that does not hold.";
    let message = if others.is_empty() {
        format!("`{text}` has no rule for `{{Self}}`")
    } else {
        let others: Vec<String> = types.iter().map(|name| format!("`{{{name}}}`")).collect();
        format!("`{text}` has no rule for `{{Self}}` and {}", others.join(" and "))
    };
    let note = match operator.alternative {
        // What is `dense(x)` in a graph is a method here.
        Some(alternative) => alternative.replace("dense({})", "&x.to_dense()?").replace("{}", "x"),
        None => format!(
            "the rules are: {}; convert an operand with `to_dense()`, `to_csr()` or `to_row_sparse()`",
            rules.join(", ")
        ),
    };
    let first = ident(operator.operands[0]);
    let generics = quote!(Operand #(, #types)*);
    let mut tokens = quote! {
        #[doc = #docs]
        #[diagnostic::on_unimplemented(message = #message, note = #note)]
        pub trait #tr<#(#types),*>: Sized {
            /// What the rule gives.
            type Output;
            #[doc = #docs]
            #[doc = ""]
            #[doc = #doc_errors]
            #[allow(clippy::too_many_arguments)]
            fn #name(self #(, #others: #types)* #(, #attributes: #kinds)*) -> Result<Self::Output>;
        }

        #[doc = #docs]
        #[doc = ""]
        #[doc = #doc_errors]
        #[allow(clippy::too_many_arguments)]
        pub fn #name<#generics>(
            #first: Operand #(, #others: #types)* #(, #attributes: #easy)*
        ) -> Result<<Operand as #tr<#(#types),*>>::Output>
        where
            Operand: #tr<#(#types),*>,
        {
            #tr::#name(#first #(, #others)* #(, #attributes.into())*)
        }
    };
    for rule in of_this_arity() {
        let signature = rule.signature();
        // One implementation for each choice of types: a rule with a condition comes before one
        // without, which is it.
        let covered = operator.storage.iter().any(|other| {
            let other = other.signature();
            other.operands == signature.operands && other.condition.is_none()
        });
        if signature.condition.is_some() && covered {
            continue;
        }
        let result = signature.result;
        let function = signature.kernel(result);
        let kernel = Kernel { operator, signature, result, function };
        tokens.extend(implementations(&kernel, &text));
    }
    tokens
}

fn capital(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map(|letter| letter.to_ascii_uppercase()).into_iter().chain(letters).collect()
}

/// How an operand of a rule may be given: its type, whether it is read transposed, and how the
/// kernel sees it.
#[derive(Clone)]
struct Form {
    ty: TokenStream,
    transposed: bool,
    view: TokenStream,
    shape: TokenStream,
}

fn forms(kernel: &Kernel, index: usize, element: &TokenStream) -> Vec<Form> {
    let name = ident(if index == 0 { "self" } else { kernel.operator.operands[index] });
    let turns = kernel.operator.transpose_flag(index).is_some();
    let form = |array: TokenStream, transposed: bool| {
        let inner = if transposed { quote!(#name.0) } else { quote!(#name) };
        Form {
            ty: if transposed { quote!(Transposed<&#array>) } else { quote!(&#array) },
            transposed,
            view: quote!(#inner.view()),
            shape: quote!(&#inner.extents()),
        }
    };
    match kernel.signature.operands[index] {
        Pattern::Scalar => vec![Form {
            ty: element.clone(),
            transposed: false,
            view: quote!(#name),
            shape: quote!(&[]),
        }],
        // Ids of every type.
        Pattern::Ids => [
            quote!(IdsView<'_>),
            quote!(&Ids),
            quote!(&Dense<u32>),
            quote!(&Dense<u64>),
            quote!(&Dense<i64>),
        ]
        .into_iter()
        .map(|ty| Form {
            ty,
            transposed: false,
            view: quote!(IdsView::from(#name)),
            shape: quote!(&IdsView::from(#name).shape()[..]),
        })
        .collect(),
        // An array of any storage.
        Pattern::Like => Storage::ALL
            .map(|storage| {
                let array = array(storage);
                Form { view: quote!(#name.extents()), ..form(quote!(#array<#element>), false) }
            })
            .into(),
        // Of the same rule as numbers: coherence allows no implementation for them beside that for
        // any float.
        Pattern::Unit(_) => Vec::new(),
        Pattern::Array(storage, transposed) => {
            let array = array(storage);
            let array = quote!(#array<#element>);
            match storage {
                Storage::Dense if turns => vec![form(array.clone(), false), form(array, true)],
                _ => vec![form(array, transposed)],
            }
        }
    }
}

fn implementations(kernel: &Kernel, function: &str) -> TokenStream {
    // A number's type is written out: `impl Mul<T> for &Csr<T>` for all `T` would overlap with
    // arrays.
    let scalar = kernel.signature.operands.contains(&Pattern::Scalar);
    let typed = |pattern: &Pattern| matches!(pattern, Pattern::Array(..) | Pattern::Scalar);
    // What is made of ids alone has numbers of the usual type.
    let untyped = !kernel.signature.operands.iter().any(typed);
    let elements: Vec<_> = match (scalar, untyped) {
        (true, _) => super::elements().collect(),
        (_, true) => vec![(quote!(), quote!(f32))],
        _ => vec![(quote!(), quote!(T))],
    };
    let scalar = scalar || untyped;
    let mut tokens = TokenStream::new();
    for (condition, element) in elements {
        let mut implementations = TokenStream::new();
        let generics = if scalar { quote!() } else { quote!(<T: Float>) };
        let bound = if scalar { quote!() } else { quote!(where Cpu: Kernels<T>,) };
        // Every choice of a form for each operand.
        let choices = (0..kernel.signature.operands.len()).fold(vec![vec![]], |starts, index| {
            let forms = forms(kernel, index, &element);
            let longer = starts.iter().flat_map(|start: &Vec<Form>| {
                forms.iter().map(move |form| start.iter().chain([form]).cloned().collect())
            });
            longer.collect()
        });
        for forms in &choices {
            let forms: Vec<&Form> = forms.iter().collect();
            implementations
                .extend(implementation(kernel, function, &forms, &element, &generics, &bound));
        }
        tokens.extend(if condition.is_empty() {
            implementations
        } else {
            quote!(#condition const _: () = { #implementations };)
        });
    }
    tokens
}

fn implementation(
    kernel: &Kernel,
    function: &str,
    forms: &[&Form],
    element: &TokenStream,
    generics: &TokenStream,
    bound: &TokenStream,
) -> TokenStream {
    let operator = kernel.operator;
    let (tr, name, kernel_name, text) =
        (trait_name(operator, function), ident(function), kernel.name(), operator.name);
    let out = array(kernel.result);
    let result = if kernel.signature.gives_ids { quote!(u64) } else { element.clone() };
    let (this, others) = (&forms[0].ty, forms[1..].iter().map(|form| &form.ty).collect::<Vec<_>>());
    let other_names: Vec<Ident> =
        operator.operands[1..forms.len()].iter().map(|operand| ident(operand)).collect();
    let given = given(operator);
    let attributes: Vec<_> = given.iter().map(|given| &given.name).collect();
    let kinds: Vec<_> = given.iter().map(|given| &given.ty).collect();
    let set = given.iter().map(|given| &given.set);
    let turned =
        forms.iter().enumerate().filter(|(_, form)| form.transposed).filter_map(|(index, _)| {
            let flag = operator.transpose_flag(index)?;
            Some(quote!(attributes.set(#flag, AttributeValue::Flag(true));))
        });
    let shapes = forms.iter().map(|form| &form.shape);
    let views = forms.iter().map(|form| &form.view);
    let rule = operator
        .storage
        .iter()
        .position(|rule| rule.signature() == kernel.signature)
        .unwrap_or_default();
    let numbers = forms.iter().zip(&kernel.signature.operands).map(|(form, pattern)| {
        let view = &form.view;
        match pattern {
            Pattern::Scalar => quote!(Some(#view.as_f64())),
            _ => quote!(None),
        }
    });
    let all_shapes: Vec<_> = forms.iter().map(|form| &form.shape).collect();
    let ids = operator.ids_below.and_then(|below| {
        let ids = operator.operand_index(below.ids)?;
        let view = &forms.get(ids)?.view;
        (kernel.signature.operands[ids] == Pattern::Ids)
            .then(|| quote!(check_ids(#text, &attributes, #view, &[#(#all_shapes),*])?;))
    });
    let passed = kernel.attributes().into_iter().map(|(attribute, _)| {
        let index =
            (0..forms.len()).find(|index| operator.transpose_flag(*index) == Some(attribute));
        match index {
            Some(index) => {
                let transposed = forms[index].transposed;
                quote!(#transposed)
            }
            None => {
                let attribute = ident(attribute);
                quote!(#attribute)
            }
        }
    });
    let sign = sign(kernel, forms, element, generics, bound);
    quote! {
        impl #generics #tr<#(#others),*> for #this #bound {
            type Output = #out<#result>;

            #[allow(unused_mut)]
            #[allow(clippy::too_many_arguments)]
            fn #name(self #(, #other_names: #others)* #(, #attributes: #kinds)*) -> Result<Self::Output> {
                let mut attributes = Attributes::default();
                #(#turned)*
                #(#set)*
                check(#text, #rule, &attributes, &[#(#shapes),*], &[#(#numbers),*], size_of::<#result>())?;
                #ids
                let mut out = #out::default();
                Cpu::#kernel_name(&mut out, #(#views,)* #(#passed,)* &mut Context::default());
                Ok(out)
            }
        }
        #sign
    }
}

/// `&a + &b`, where the operator has a sign.
fn sign(
    kernel: &Kernel,
    forms: &[&Form],
    element: &TokenStream,
    generics: &TokenStream,
    bound: &TokenStream,
) -> TokenStream {
    let Some((std_trait, method)) = kernel.operator.std_trait else { return TokenStream::new() };
    if kernel.signature.condition.is_some() {
        return TokenStream::new();
    }
    let (std_trait, method, name) = (ident(std_trait), ident(method), ident(kernel.operator.name));
    let out = array(kernel.result);
    let this = &forms[0].ty;
    let panics = "# Panics\n\nIf the shapes do not fit; the function of the operator's name returns the error.";
    let (parameters, argument, call) = match forms.get(1) {
        Some(rhs) => {
            let ty = &rhs.ty;
            (quote!(<#ty>), quote!(, rhs: #ty), quote!(#name(self, rhs)))
        }
        None => (quote!(), quote!(), quote!(#name(self))),
    };
    quote! {
        impl #generics std::ops::#std_trait #parameters for #this #bound {
            type Output = #out<#element>;

            #[doc = #panics]
            #[track_caller]
            fn #method(self #argument) -> Self::Output {
                match #call {
                    Ok(result) => result,
                    Err(error) => panic!("{error}"),
                }
            }
        }
    }
}
