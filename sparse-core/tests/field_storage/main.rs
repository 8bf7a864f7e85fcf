//! Gradients of sparse values are stored where the values are: the graphs of the field cases S.

#![allow(clippy::unwrap_used, unreachable_pub)]

mod cases;

use cases::{
    BY_ROWS, COMPUTED, COMPUTED_ROWS, CONTINUED, CONTINUED_ROWS, DATA, MODELS, OTHERS, REFUSED,
    dense_temporaries, whole_tables,
};
use sparse_core::compile::{Compiled, compile};
use sparse_core::diagnostics::Diagnostic;
use sparse_core::ir::{parse, print};
use sparse_core::passes::{RowSet, TableRows};
use sparse_core::shapes::show;
use sparse_core::storage::Storage;

fn compiled(text: &str) -> Compiled {
    let compiled = compile(parse(&format!("model M f32\n{text}\nloss l\n")).unwrap());
    let errors: Vec<String> = compiled.errors().map(Diagnostic::text).collect();
    assert!(errors.is_empty(), "{text}\n{errors:?}");
    compiled
}

/// The dense values of batch × columns.
fn dense_batches(compiled: &Compiled) -> Vec<String> {
    let graph = &compiled.graph;
    let is_batch = |id: &_| ["[n, d]", "[d, n]"].contains(&&*show(&graph.shape(*id)));
    let dense = |id: &_| graph.storage(*id) == Storage::Dense && is_batch(id);
    graph.ids().filter(dense).map(|id| graph.describe(id)).collect()
}

#[test]
fn s_gradients_of_computed_csr_values_live_at_their_patterns() {
    let mut found = Vec::new();
    for made in COMPUTED {
        for continued in CONTINUED {
            let compiled = compiled(&format!("{DATA}{made}{continued}"));
            let dense = dense_batches(&compiled);
            if !dense.is_empty() {
                found.push(format!("{}\n{dense:?}", print(&compiled.graph)));
            }
        }
    }
    assert!(found.is_empty(), "{} of 34:\n{}", found.len(), found.join("\n"));
}

#[test]
fn s_functions_of_a_table_are_computed_for_the_rows_of_a_batch() {
    for (lines, parameters) in BY_ROWS {
        let compiled = compiled(&format!(
            "{DATA}w = param row_sparse f32 [d, 1] \"Ones\"\n{lines}\nl = squared_error(p, y)"
        ));
        let text = print(&compiled.graph);
        let graph = &compiled.graph;
        let is_table = |rows: &&TableRows| graph.storage(rows.parameter) == Storage::RowSparse;
        let tables: Vec<_> = compiled.rows.iter().filter(is_table).collect();
        assert_eq!(tables.len(), parameters, "{text}");
        for rows in tables {
            assert_ne!(rows.reads, RowSet::All, "{text}");
            assert_eq!(Some(&rows.reads), rows.writes.as_ref(), "{text}");
        }
    }
}

/// What moves rows does not commute with reading some: the table is read as a whole, and the plan
/// says so.
#[test]
fn s_tables_whose_rows_are_moved_are_read_as_a_whole() {
    for lines in [
        "v = param row_sparse f32 [40, 1] \"Ones\"\nu = concat(w, v)\np = embedding(i, u)",
        "u = slice_axis(w, axis = 0, begin = 1)\np = embedding(i, u)",
        "u = slice(w, step = [-1])\np = embedding(i, u)",
        "v = param(frozen) row_sparse f32 [40] \"\"\nu = outer(v, v)\na = slice_axis(w, axis = 0, begin = 0, end = 40)\nb = embedding(i, a)\n\
         c = embedding(i, u)\ne = sum(c, axis = 1, keepdims = true)\np = add(b, e)",
    ] {
        let compiled = compiled(&format!(
            "{DATA}i = input dense u32 [n]\nw = param row_sparse f32 [40, 1] \"Ones\"\n{lines}\nl = squared_error(p, y)"
        ));
        let text = print(&compiled.graph);
        assert!(compiled.rows.iter().all(|rows| rows.reads == RowSet::All), "{text}");
    }
}

#[test]
fn s_no_gradient_is_denser_than_its_value() {
    let made = COMPUTED[0];
    let mut found = Vec::new();
    for continued in CONTINUED.into_iter().chain(OTHERS) {
        let text = format!("model M f32\n{DATA}{made}{continued}\nloss l\n");
        let compiled = compile(parse(&text).unwrap());
        found.extend(compiled.errors().map(|error| format!("{text}{}", error.text())));
        let dense = dense_temporaries(&compiled);
        found.extend(dense.into_iter().map(|dense| format!("{}{dense}", print(&compiled.graph))));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn s_gradients_of_computed_rows_have_these_rows() {
    let mut found = Vec::new();
    for made in COMPUTED_ROWS {
        for continued in CONTINUED_ROWS {
            let text = format!("model M f32\n{DATA}{made}{continued}\nloss l\n");
            let compiled = compile(parse(&text).unwrap());
            found.extend(compiled.errors().map(|error| format!("{text}{}", error.text())));
            let dense = whole_tables(&compiled);
            if !dense.is_empty() {
                found.push(format!("{}{dense:?}", print(&compiled.graph)));
            }
        }
    }
    assert!(found.is_empty(), "{} of them:\n{}", found.len(), found.join("\n"));
}
const IDS: &str = "i = input dense u32 [n]\n";

#[test]
fn s_models_of_all_sorts_make_no_array_of_every_column_or_row() {
    let mut found = Vec::new();
    for lines in MODELS {
        let text = format!("model M f32\n{DATA}{IDS}{lines}\nloss l\n");
        let compiled = compile(parse(&text).unwrap());
        found.extend(compiled.errors().map(|error| format!("{text}{}", error.text())));
        let dense = dense_batches(&compiled).into_iter().chain(whole_tables(&compiled));
        let dense: Vec<String> = dense.collect();
        if !dense.is_empty() {
            found.push(format!("{}{dense:?}", print(&compiled.graph)));
        }
        let tables = compiled
            .rows
            .iter()
            .filter(|rows| compiled.graph.storage(rows.parameter) == Storage::RowSparse);
        let whole = tables.filter(|rows| rows.reads == RowSet::All);
        found.extend(whole.map(|_| format!("{}reads all rows", print(&compiled.graph))));
    }
    assert!(found.is_empty(), "{} of them:\n{}", found.len(), found.join("\n"));
}

#[test]
fn s_operators_that_need_every_column_or_row_are_refused() {
    for (lines, code, name) in REFUSED {
        let text = format!("model M f32\n{DATA}{IDS}{lines}\nloss l\n");
        let compiled = compile(parse(&text).unwrap());
        let errors: Vec<&Diagnostic> = compiled.errors().collect();
        let graph = &compiled.graph;
        let place = graph.ids().find(|id| graph.label(*id) == name).map(|id| graph.value(id).place);
        let told = errors.iter().any(|error| {
            error.text().starts_with(&format!("[{code}]")) && Some(error.place) == place
        });
        assert!(told, "{text}{:?}", errors.iter().map(|error| error.text()).collect::<Vec<_>>());
        assert!(errors.iter().all(|error| error.text().contains(" bytes")), "{text}");
    }
}

/// What a gradient would make is a warning, or nothing, where the model allows it.
#[test]
fn s_a_fallback_allows_arrays_of_every_column_or_row() {
    let of_gradients = REFUSED.iter().filter(|(lines, ..)| lines.contains("pick"));
    for (lines, ..) in of_gradients {
        for (fallback, n_told) in [("warn", 1), ("allow", 0)] {
            let head = format!("model M f32 fallback = {fallback}");
            let compiled =
                compile(parse(&format!("{head}\n{DATA}{IDS}{lines}\nloss l\n")).unwrap());
            assert!(compiled.errors().next().is_none(), "{lines}");
            let told = compiled.diagnostics.iter().map(Diagnostic::text);
            let told = told.filter(|text| text.contains("fallback: the gradient of `pick`"));
            assert_eq!(told.count(), n_told, "{lines}");
        }
    }
}
