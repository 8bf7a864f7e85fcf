//! Whatever is emitted binds no name that a user could give, and means none that a user could have
//! given to something else.

use super::expanded;
use proc_macro2::TokenStream;
use quote::quote;
use std::collections::BTreeSet;
use syn::visit::{self, Visit};

/// A model for each emitter, of names that begin with `own`.
fn models() -> TokenStream {
    quote! {
        pub block own_block(own_x, own_w) { dot(own_x, own_w) }
        operator own_operator(own_x) { each = crate::own_function; derivative = crate::own_slope; }

        pub model OwnLinear {
            const own_columns = crate::OWN;
            input own_x: csr[own_n, own_d];
            label own_y: dense[own_n, own_columns];
            param own_w: row_sparse[own_d, own_columns] = Constant(crate::own_start());
            param own_b: dense[own_columns] = Normal { mean: 0.0, std: crate::own_start() };
            let own_score = own_block(own_x, own_w) + own_b;
            loss softmax_cross_entropy(own_score, own_y);
            output own_probabilities = softmax(own_score);
        }
        pub model OwnLookups {
            input own_i: dense<u32>[own_n];
            input own_j: dense<i64>[own_n];
            label own_y: dense[own_n];
            param own_p: row_sparse[own_u, own_k] = Zeros;
            param own_q: row_sparse[own_v, own_k] = Zeros;
            param own_b: dense[1] = Zeros;
            let own_score = sum(take(own_p, own_i) * take(own_q, own_j), axis = 1) + own_b;
            loss squared_error(own_score, own_y);
            output own_score;
        }
        pub model OwnMachine {
            input own_x: csr<unit>[own_n, own_d];
            label own_y: dense[own_n, 1];
            param own_w: row_sparse[own_d, 1] = Zeros;
            param own_v: row_sparse[own_d, 8] = Zeros;
            loss logistic(dot(own_x, own_w) + pairwise_interaction(own_x, own_v), own_y);
        }
        pub model OwnLayers {
            input own_x: csr[own_n, own_d];
            input own_z: dense[own_n, 2];
            label own_y: dense[own_n, 1];
            param own_t: row_sparse[own_d, 8] = Zeros;
            param own_h: dense[8, 2] = Zeros;
            param own_g: dense[4, 1] = Zeros;
            let own_score = dot(concat(relu(dot(embedding_bag(own_x, own_t), own_h)), own_z, axis = 1), own_g);
            loss logistic(own_score, own_y);
            output own_score;
        }
        pub model OwnKernels {
            dtype = f64;
            fallback = warn;
            input own_x: csr | dense[own_n, own_d];
            label own_y: dense[own_n, own_d];
            param own_w: dense[own_d] = Ones;
            state own_mean: dense[own_d] = Zeros;
            let own_all = tanh(own_operator(log(own_x * own_w) + 1.0)) * 2.0;
            loss squared_error(own_all, own_y);
            update own_mean = mean(own_all, axis = 0);
            output own_all;
            output own_order = argsort(own_all, axis = 1);
        }
    }
}

#[derive(Default)]
struct Names {
    bound: BTreeSet<String>,
    meant: BTreeSet<String>,
}

impl<'ast> Visit<'ast> for Names {
    fn visit_pat_ident(&mut self, pattern: &'ast syn::PatIdent) {
        self.bound.insert(pattern.ident.to_string());
        visit::visit_pat_ident(self, pattern);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if let (None, Some(first)) = (path.leading_colon, path.segments.first()) {
            self.meant.insert(first.ident.to_string());
        }
        visit::visit_path(self, path);
    }

    // The plan imports what it is made of; the user's constants are outside of that.
    fn visit_expr_block(&mut self, block: &'ast syn::ExprBlock) {
        let is_import =
            |statement: &syn::Stmt| matches!(statement, syn::Stmt::Item(syn::Item::Use(_)));
        let imports = block.block.stmts.iter().any(is_import);
        let text = quote!(#block).to_string();
        if imports && text.contains("PlanTable") {
            assert!(!text.contains("crate"), "{text}")
        } else {
            visit::visit_expr_block(self, block)
        }
    }

    // What these hold is the compiler's, or documentation.
    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}

    fn visit_item_macro(&mut self, _: &'ast syn::ItemMacro) {}
}

#[test]
fn nothing_that_is_emitted_is_unsafe() {
    let text = expanded(models()).to_string();
    assert!(text.contains("struct OwnKernelsCsr") && text.contains("struct OwnLayers"), "{text}");
    assert!(!text.contains("unsafe") && !text.contains("compile_error"), "{text}");
}

#[test]
fn no_name_is_taken_from_a_user() {
    let file = syn::parse2::<syn::File>(expanded(models())).unwrap();
    let mut names = Names::default();
    names.visit_file(&file);
    let hidden = |name: &&String| !name.starts_with("__");
    let own = |name: &&String| !["own", "Own"].iter().any(|start| name.starts_with(start));
    let bound: Vec<_> = names.bound.iter().filter(hidden).collect();
    assert!(bound.is_empty(), "{bound:?}");
    // Initializers are written by their names, a storage type by that of its input. The last is in
    // a block of its own.
    let known =
        ["Self", "self", "crate", "Constant", "Normal", "Ones", "Zeros", "OWN_X", "warning_0"];
    let meant = names.meant.iter().filter(hidden).filter(own);
    let meant: Vec<_> = meant.filter(|name| !known.contains(&name.as_str())).collect();
    assert!(meant.is_empty(), "{meant:?}");
}
