//! The macro-free operators: for each operator of the table a trait with one implementation a rule, a function,
//! and the signs of Rust where they exist.
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
fn trait_name(operator: &Operator) -> Ident {
    let mut name = String::new();
    for word in operator.name.split('_') {
        let mut letters = word.chars();
        name.extend(letters.next().map(|letter| letter.to_ascii_uppercase()));
        name.push_str(letters.as_str());
    }
    // `dense`, `csr` and `row_sparse` name array types.
    if operator.name.parse::<Storage>().is_ok() {
        name.insert_str(0, "To");
    }
    ident(&name)
}

/// The attributes that a caller gives: transpositions are part of the operands, storage of another function.
fn given(operator: &Operator) -> Vec<(Ident, TokenStream, TokenStream)> {
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
                AttributeKind::Axis => quote! {
                    if let Some(axis) = #name {
                        attributes.set(#text, AttributeValue::Axis(axis));
                    }
                },
            };
            Some((name, attribute_type(attribute.kind), set))
        })
        .collect()
}

fn operation(operator: &'static Operator) -> TokenStream {
    let (name, tr) = (ident(operator.name), trait_name(operator));
    let others: Vec<Ident> = operator.operands[1..].iter().map(|operand| ident(operand)).collect();
    let types: Vec<Ident> =
        operator.operands[1..].iter().map(|operand| ident(&capital(operand))).collect();
    let given = given(operator);
    let (attributes, kinds): (Vec<_>, Vec<_>) = given.iter().map(|(n, k, _)| (n, k)).unzip();
    let rules: Vec<String> =
        operator.storage.iter().map(|rule| format!("`{}`", rule.text())).collect();
    let docs = format!("{}\n\nStorage: {}.", operator.summary, rules.join(", "));
    let doc_errors = "# Errors\n\nOperands whose shapes do not fit.";
    let message = match others.is_empty() {
        true => format!("`{}` has no rule for `{{Self}}`", operator.name),
        false => {
            let others: Vec<String> = types.iter().map(|name| format!("`{{{name}}}`")).collect();
            format!("`{}` has no rule for `{{Self}}` and {}", operator.name, others.join(" and "))
        }
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
            fn #name(self #(, #others: #types)* #(, #attributes: #kinds)*) -> Result<Self::Output>;
        }

        #[doc = #docs]
        #[doc = ""]
        #[doc = #doc_errors]
        pub fn #name<#generics>(
            #first: Operand #(, #others: #types)* #(, #attributes: #kinds)*
        ) -> Result<<Operand as #tr<#(#types),*>>::Output>
        where
            Operand: #tr<#(#types),*>,
        {
            #tr::#name(#first #(, #others)* #(, #attributes)*)
        }
    };
    for rule in operator.storage {
        let signature = rule.signature();
        let result = signature.result;
        tokens.extend(implementations(&Kernel { operator, signature, result }));
    }
    tokens
}

fn capital(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map(|letter| letter.to_ascii_uppercase()).into_iter().chain(letters).collect()
}

/// How an operand of a rule may be given: its type, whether it is read transposed, and how the kernel sees it.
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
        Pattern::Ids => vec![form(quote!(Dense<u32>), false)],
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

fn implementations(kernel: &Kernel) -> TokenStream {
    // A number's type is written out: `impl Mul<T> for &Csr<T>` for all `T` would overlap with arrays.
    let scalar = kernel.signature.operands.contains(&Pattern::Scalar);
    let elements: Vec<TokenStream> =
        if scalar { vec![quote!(f32), quote!(f64)] } else { vec![quote!(T)] };
    let mut tokens = TokenStream::new();
    for element in elements {
        let generics = if scalar { quote!() } else { quote!(<T: Float>) };
        let bound = if scalar { quote!() } else { quote!(where Cpu: Kernels<T>,) };
        let first = forms(kernel, 0, &element);
        let second = if kernel.operator.operands.len() > 1 {
            forms(kernel, 1, &element)
        } else {
            Vec::new()
        };
        for lhs in &first {
            if second.is_empty() {
                tokens.extend(implementation(kernel, &[lhs], &element, &generics, &bound));
            }
            for rhs in &second {
                tokens.extend(implementation(kernel, &[lhs, rhs], &element, &generics, &bound));
            }
        }
    }
    tokens
}

fn implementation(
    kernel: &Kernel,
    forms: &[&Form],
    element: &TokenStream,
    generics: &TokenStream,
    bound: &TokenStream,
) -> TokenStream {
    let operator = kernel.operator;
    let (tr, name, kernel_name, text) =
        (trait_name(operator), ident(operator.name), kernel.name(), operator.name);
    let out = array(kernel.result);
    let (this, others) = (&forms[0].ty, forms[1..].iter().map(|form| &form.ty).collect::<Vec<_>>());
    let other_names: Vec<Ident> =
        operator.operands[1..].iter().map(|operand| ident(operand)).collect();
    let given = given(operator);
    let (attributes, kinds): (Vec<_>, Vec<_>) = given.iter().map(|(n, k, _)| (n, k)).unzip();
    let set = given.iter().map(|(_, _, set)| set);
    let turned =
        forms.iter().enumerate().filter(|(_, form)| form.transposed).filter_map(|(index, _)| {
            let flag = operator.transpose_flag(index)?;
            Some(quote!(attributes.set(#flag, AttributeValue::Flag(true));))
        });
    let shapes = forms.iter().map(|form| &form.shape);
    let views = forms.iter().map(|form| &form.view);
    let same_shape = kernel.signature.same_shape;
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
            type Output = #out<#element>;

            #[allow(unused_mut)]
            fn #name(self #(, #other_names: #others)* #(, #attributes: #kinds)*) -> Result<Self::Output> {
                let mut attributes = Attributes::default();
                #(#turned)*
                #(#set)*
                check_shapes(#text, &attributes, &[#(#shapes),*], #same_shape)?;
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
    let (std_trait, method) = match kernel.operator.name {
        "add" => ("Add", "add"),
        "subtract" => ("Sub", "sub"),
        "multiply" => ("Mul", "mul"),
        "divide" => ("Div", "div"),
        "negative" => ("Neg", "neg"),
        _ => return TokenStream::new(),
    };
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
