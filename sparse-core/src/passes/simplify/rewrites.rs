//! The table of algebraic rewrites.

use super::numbers::is_usual;
use super::pattern::Bindings;
use crate::formula::{BinaryOperator, Formula};
use crate::ir::{Graph, ValueId};
use crate::shapes::Dim;
use crate::storage::Storage;

/// An expression that another one takes the place of.
///
/// Both sides are formulas over operators. The names `s` and `t` stand for numbers, other names for
/// arrays. `scaled(x)` is `s * x`, `x * s`, `x / s` or `-x`, and on the right the same of another
/// array. Attributes that a pattern does not name may be any; a call on the right that names none
/// has those of the call of its operator on the left.
#[derive(Clone, Copy, Debug)]
pub struct Rewrite {
    /// What is found.
    pub pattern: &'static str,
    /// What takes its place.
    pub replacement: &'static str,
    /// Who may use what lies between the names and the result of the pattern.
    pub uses: Uses,
    /// Why.
    pub why: &'static str,
    /// What becomes of the last bits.
    pub bits: Bits,
    pub(super) when: fn(&Graph, &Bindings, ValueId) -> bool,
}

/// Who may use the inner values of a pattern: what is still needed by others is computed all the
/// same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Uses {
    /// Anybody: the replacement costs no more than the result alone did.
    Any,
    /// The pattern alone.
    One,
    /// Operators of the same name as the result's, for which the same rewrite is meant.
    Alike,
}

/// What a rewrite does to the bits of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bits {
    /// They are the same, but for the sign of a zero.
    Same,
    /// Roundings are made at another place: a scaling after a sum and not before it, one product of
    /// numbers and not two. As many of them or fewer, so that the bound on the error is no larger.
    Rounded,
}

/// The rewrites. Those that need neither shapes nor storage types (`x * 1`, `x + 0`,
/// `transpose(transpose(x))`, a `transpose` inside of `dot`, arithmetic on numbers) are made when a
/// value is built, also of what these rewrites give.
///
/// There is none for `sum(dot(x, w))` of a csr `x`: the sums of its columns are as many as the
/// table has rows.
pub const REWRITES: &[Rewrite] = &[
    Rewrite {
        pattern: "dot(scaled(x), w, transpose_lhs = false)",
        replacement: "scaled(dot(x, w))",
        uses: Uses::Alike,
        why: "a few numbers for each row of the result, in place of one for each stored element and a copy of their columns",
        bits: Bits::Rounded,
        when: |graph, given, root| stored(graph, given, "x", Storage::Csr) && narrow(graph, root),
    },
    Rewrite {
        pattern: "dot(x, read_rows(w, x), transpose_lhs = false)",
        replacement: "dot(x, w)",
        uses: Uses::Any,
        why: "what is left of a function of a table that was moved behind the product: the product reads the same rows",
        bits: Bits::Same,
        when: |graph, given, _| stored(graph, given, "x", Storage::Csr),
    },
    Rewrite {
        pattern: "dot(scaled(x), g, transpose_lhs = true)",
        replacement: "dot(x, scaled(g))",
        uses: Uses::Alike,
        why: "the same in a gradient: the rows of the batch are fewer than the stored elements",
        bits: Bits::Rounded,
        when: |graph, given, root| stored(graph, given, "x", Storage::Csr) && narrow(graph, root),
    },
    Rewrite {
        pattern: "dot(x, scaled(w), transpose_lhs = false)",
        replacement: "scaled(dot(x, w))",
        uses: Uses::Alike,
        why: "a batch reads some rows of a table; scaling the table reads and writes all of them",
        bits: Bits::Rounded,
        when: |graph, given, _| stored(graph, given, "x", Storage::Csr),
    },
    Rewrite {
        pattern: "scaled(dot(x, g, transpose_lhs = true))",
        replacement: "dot(x, scaled(g))",
        uses: Uses::One,
        why: "the gradient of a table has more rows than the batch; the loop over the batch scales as it goes",
        bits: Bits::Rounded,
        when: |graph, given, _| stored(graph, given, "x", Storage::Csr),
    },
    Rewrite {
        pattern: "sum(scaled(x))",
        replacement: "scaled(sum(x))",
        uses: Uses::Alike,
        why: "the sums are scaled, not what is summed",
        bits: Bits::Rounded,
        when: always,
    },
    Rewrite {
        pattern: "mean(scaled(x))",
        replacement: "scaled(mean(x))",
        uses: Uses::Alike,
        why: "as for sums",
        bits: Bits::Rounded,
        when: always,
    },
    Rewrite {
        pattern: "sum(dot(x, w, transpose_lhs = false, transpose_rhs = false))",
        replacement: "sum(dot(sum(x, axis = 0, keepdims = true), w))",
        uses: Uses::One,
        why: "the sum over the rows of a dense product is the product of the sum of rows: one row instead of all",
        bits: Bits::Rounded,
        when: |graph, given, root| {
            let all =
                graph.apply_of(root).is_some_and(|sum| sum.attributes.iter().next().is_none());
            let shape = given.value("x").map(|x| graph.shape(x)).unwrap_or_default();
            let many = shape.len() == 2 && shape[0] != Dim::Size(1);
            let dense = |name| stored(graph, given, name, Storage::Dense);
            // A sum of many rows is not stored in 16 bits where the source does not ask for it.
            all && many && !graph.element().is_half() && dense("x") && dense("w")
        },
    },
    Rewrite {
        pattern: "s * (t * x)",
        replacement: "x * (s * t)",
        uses: Uses::Any,
        why: "one pass over what is stored instead of two",
        bits: Bits::Rounded,
        when: |graph, given, _| {
            let number = |name| given.value(name).and_then(|id| graph.number_of(id));
            let product = number("s")
                .zip(number("t"))
                .map(|(s, t)| Formula::Binary(BinaryOperator::Multiply, Box::new(s), Box::new(t)));
            !graph.element().is_half() && product.is_some_and(|product| is_usual(&product))
        },
    },
    Rewrite {
        pattern: "-(s * x)",
        replacement: "x * -s",
        uses: Uses::Any,
        why: "one pass instead of two",
        bits: Bits::Same,
        when: always,
    },
    Rewrite {
        pattern: "s * (-x)",
        replacement: "x * -s",
        uses: Uses::Any,
        why: "one pass instead of two",
        bits: Bits::Same,
        when: always,
    },
    Rewrite {
        pattern: "-(-x)",
        replacement: "x",
        uses: Uses::Any,
        why: "nothing is left to compute",
        bits: Bits::Same,
        when: always,
    },
    Rewrite {
        pattern: "x + -y",
        replacement: "x - y",
        uses: Uses::Any,
        why: "one pass instead of two",
        bits: Bits::Same,
        when: always,
    },
    Rewrite {
        pattern: "-x + y",
        replacement: "y - x",
        uses: Uses::Any,
        why: "one pass instead of two",
        bits: Bits::Same,
        when: always,
    },
    Rewrite {
        pattern: "x - -y",
        replacement: "x + y",
        uses: Uses::Any,
        why: "one pass instead of two",
        bits: Bits::Same,
        when: always,
    },
    Rewrite {
        pattern: "dense(x)",
        replacement: "x",
        uses: Uses::Any,
        why: "a conversion of what is stored so already is a copy",
        bits: Bits::Same,
        when: |graph, given, _| stored(graph, given, "x", Storage::Dense),
    },
    Rewrite {
        pattern: "csr(x)",
        replacement: "x",
        uses: Uses::Any,
        why: "as for `dense`",
        bits: Bits::Same,
        when: |graph, given, _| stored(graph, given, "x", Storage::Csr),
    },
    Rewrite {
        pattern: "row_sparse(x)",
        replacement: "x",
        uses: Uses::Any,
        why: "as for `dense`",
        bits: Bits::Same,
        when: |graph, given, _| stored(graph, given, "x", Storage::RowSparse),
    },
    Rewrite {
        pattern: "dense(csr(x))",
        replacement: "dense(x)",
        uses: Uses::Any,
        why: "a conversion to csr and back leaves out zeros, and puts them in again",
        bits: Bits::Same,
        when: always,
    },
    Rewrite {
        pattern: "dense(row_sparse(x))",
        replacement: "dense(x)",
        uses: Uses::Any,
        why: "as for csr",
        bits: Bits::Same,
        when: always,
    },
];

fn always(_: &Graph, _: &Bindings, _: ValueId) -> bool {
    true
}

fn stored(graph: &Graph, given: &Bindings, name: &str, storage: Storage) -> bool {
    given.value(name).is_some_and(|id| graph.storage(id) == storage)
}

/// Whether a value has few columns: to scale a row of them costs no more than to copy the stored
/// elements of a csr row.
fn narrow(graph: &Graph, id: ValueId) -> bool {
    const FEW: u64 = 32;
    matches!(graph.shape(id).last(), Some(Dim::Size(columns)) if *columns <= FEW)
}
