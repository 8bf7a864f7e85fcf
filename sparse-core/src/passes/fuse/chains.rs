//! Chains: element-wise operators over one iteration space that are one loop, without the values
//! between them.
//!
//! The space is a dense shape, what a csr stores, or the stored rows of a row_sparse array. A value
//! that only one loop reads, at the place that the loop is at, is computed in it and never stored:
//! the loops are the largest parts of the graph with one result. So a value that the backward pass
//! reads as well, an output, the score of one, or what a reduction reads is stored.
//!
//! Unlike the loop over rows of data, which is a training step, chains are in whatever calls
//! kernels: `forward`, `loss`, gradients, and steps that are not one loop.

use super::super::link::linked_score;
use super::Fusion;
use crate::ir::{Apply, Graph, ValueId};
use crate::operators::{BinaryFamily, Kind};
use crate::shapes::Dim;
use crate::storage::Storage;
use std::collections::BTreeSet;

/// Several element-wise operators that are one loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    /// What the loop computes, in order. The last is its result, the only one that is stored.
    pub values: Vec<ValueId>,
    /// The arrays that it reads, each once. The first has the storage, the shape and what is stored
    /// of the result.
    pub reads: Vec<ChainRead>,
}

/// An array that a chain reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainRead {
    /// The array.
    pub value: ValueId,
    /// Its element for an element of the result.
    pub reach: Reach,
}

/// Which element of an operand goes with an element of the result. The columns are the last axis,
/// all others are the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// That at the same place.
    Element,
    /// One for each row.
    Row,
    /// One for each column.
    Column,
    /// The only one.
    One,
}

/// The chains of a graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chains {
    all: Vec<Chain>,
    /// For each value of a chain its position among them.
    of: Vec<Option<usize>>,
}

impl Chain {
    /// Whether rows and columns matter: else the elements are one run.
    pub fn is_by_rows(&self) -> bool {
        self.reads.iter().any(|read| matches!(read.reach, Reach::Row | Reach::Column))
    }
}

impl Chains {
    /// The chain that computes a value, as its result or on the way.
    pub fn of(&self, id: ValueId) -> Option<&Chain> {
        self.all.get((*self.of.get(id.0)?)?)
    }

    /// The result of the loop that computes a value on the way, without storing it.
    pub fn result_beyond(&self, id: ValueId) -> Option<ValueId> {
        self.of(id)?.values.last().copied().filter(|result| *result != id)
    }
}

/// Finds the chains of a graph whose step was fused as `fusion` says. Linear in its size.
pub fn chains(graph: &Graph, fusion: &Fusion) -> Chains {
    // Each operator rounds a half where it stores it.
    if graph.no_fuse || graph.element().is_half() {
        return Chains::default();
    }
    let spaces = spaces(graph, fusion);
    let results = results(graph, &spaces);
    let mut members: Vec<Vec<ValueId>> = vec![Vec::new(); graph.values.len()];
    for id in graph.ids() {
        if let Some(result) = results[id.0] {
            members[result.0].push(id);
        }
    }
    let mut chains = Chains { all: Vec::new(), of: vec![None; graph.values.len()] };
    for values in members.into_iter().filter(|values| values.len() > 1) {
        let Some(reads) = reads(graph, &values) else { continue };
        for id in &values {
            chains.of[id.0] = Some(chains.all.len());
        }
        chains.all.push(Chain { values, reads });
    }
    chains
}

/// For each element-wise operator whose operands fit into one loop, the value whose pattern its
/// result has: any for a dense one, which stores everything.
fn spaces(graph: &Graph, fusion: &Fusion) -> Vec<Option<ValueId>> {
    let mut spaces: Vec<Option<ValueId>> = vec![None; graph.values.len()];
    let computed = fusion.computed(graph);
    for id in graph.ids() {
        let is_left_out = matches!(fusion, Fusion::Scattered { .. }) && computed[id.0];
        if let Some(apply) = graph.apply_of(id).filter(|_| !is_left_out) {
            spaces[id.0] = space(graph, id, apply, &spaces);
        }
    }
    spaces
}

fn space(graph: &Graph, id: ValueId, apply: &Apply, spaces: &[Option<ValueId>]) -> Option<ValueId> {
    let storage = graph.storage(id);
    let drops_zeros = match apply.operator.kind {
        Kind::Unary(_) => false,
        // What either operand of a sum of csr matrices stores is dropped where the sum is 0.
        Kind::Binary(BinaryFamily::Union, _) => storage == Storage::Csr,
        Kind::Binary(..) => false,
        _ => return None,
    };
    if graph.value(id).element != graph.element() {
        return None;
    }
    let mut pattern = None;
    for operand in apply.operands.iter().copied().filter(|id| !graph.is_number(*id)) {
        if graph.value(operand).element != graph.element() {
            return None;
        }
        let reach = reach(graph, operand, id)?;
        if !graph.storage(operand).is_sparse() {
            // A dense operand of a sparse result would have to be looked up.
            if storage.is_sparse() && reach != Reach::One {
                return None;
            }
            continue;
        }
        let other = spaces[operand.0].unwrap_or(operand);
        let is_second = pattern.is_some();
        if graph.storage(operand) != storage
            || reach != Reach::Element
            || *pattern.get_or_insert(other) != other
            || (is_second && drops_zeros)
        {
            return None;
        }
    }
    match storage {
        Storage::Dense => Some(id),
        Storage::Csr | Storage::RowSparse => pattern,
    }
}

/// Which element of an operand goes with an element of the result; `None` where it repeats in some
/// other way.
fn reach(graph: &Graph, operand: ValueId, result: ValueId) -> Option<Reach> {
    let (operand, result) = (graph.shape(operand), graph.shape(result));
    let is_one = |dim: &Dim| *dim == Dim::Size(1);
    if operand == result {
        return Some(Reach::Element);
    }
    if operand.iter().all(is_one) {
        return Some(Reach::One);
    }
    let (column, rows) = operand.split_last()?;
    let (columns, other_rows) = result.split_last()?;
    if column == columns && rows.iter().all(is_one) {
        return Some(Reach::Column);
    }
    (is_one(column) && rows == other_rows).then_some(Reach::Row)
}

/// For each value with a space the result of the loop that it belongs to, which may be itself.
fn results(graph: &Graph, spaces: &[Option<ValueId>]) -> Vec<Option<ValueId>> {
    /// Who reads a value.
    #[derive(Clone, Copy, PartialEq)]
    enum Readers {
        Nobody,
        /// One loop, that of this result.
        Loop(ValueId),
        Others,
    }
    let mut readers = vec![Readers::Nobody; graph.values.len()];
    let outputs = graph.outputs.iter().map(|output| output.value);
    let gradients = graph.gradients.iter().map(|(_, gradient)| *gradient);
    let updates = graph.updates.iter().map(|update| update.value);
    let score = linked_score(graph).map(|(_, score)| score);
    let stored = outputs.chain(gradients).chain(updates).chain(graph.losses.iter().copied());
    for id in stored.chain(score) {
        readers[id.0] = Readers::Others;
    }
    let mut results = vec![None; graph.values.len()];
    // Users before their operands.
    for id in graph.ids().rev() {
        let Some(apply) = graph.apply_of(id) else { continue };
        if let Some(pattern) = spaces[id.0] {
            let is_sparse = graph.storage(id).is_sparse();
            let alike = |result: &ValueId| {
                graph.storage(*result) == graph.storage(id)
                    && (!is_sparse || spaces[result.0] == Some(pattern))
                    && graph.shape(*result) == graph.shape(id)
            };
            results[id.0] = match readers[id.0] {
                Readers::Loop(result) if alike(&result) => Some(result),
                _ => Some(id),
            };
        }
        let reader = results[id.0].map_or(Readers::Others, Readers::Loop);
        for operand in &apply.operands {
            let known = &mut readers[operand.0];
            *known = match *known {
                Readers::Nobody => reader,
                same if same == reader => reader,
                _ => Readers::Others,
            };
        }
    }
    results
}

/// What a loop reads; `None` where nothing of it has the place of the result's elements.
fn reads(graph: &Graph, values: &[ValueId]) -> Option<Vec<ChainRead>> {
    let result = *values.last()?;
    let mut known: BTreeSet<ValueId> = values.iter().copied().collect();
    let mut reads = Vec::new();
    for apply in values.iter().filter_map(|id| graph.apply_of(*id)) {
        for operand in &apply.operands {
            if !graph.is_number(*operand) && known.insert(*operand) {
                reads.push(ChainRead { value: *operand, reach: reach(graph, *operand, result)? });
            }
        }
    }
    let gives_pattern = |read: &ChainRead| {
        read.reach == Reach::Element && graph.storage(read.value) == graph.storage(result)
    };
    // A csr of the batch may be rows of a larger one, here and there. There is one at most, whose
    // pattern the others have.
    let of_batch = |read: &ChainRead| gives_pattern(read) && graph.apply_of(read.value).is_none();
    let first = reads.iter().position(of_batch).or_else(|| reads.iter().position(gives_pattern))?;
    reads.swap(0, first);
    Some(reads)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::compile;
    use crate::ir::parse;

    /// The chains, each as the names of what it computes and of what it reads.
    fn run(text: &str) -> Vec<(String, Vec<(String, Reach)>)> {
        let compiled = compile(parse(text).unwrap());
        assert!(compiled.errors().next().is_none(), "{:?}", compiled.diagnostics);
        let graph = &compiled.graph;
        let named = |chain: &Chain| {
            let values: Vec<_> = chain.values.iter().map(|id| graph.label(*id)).collect();
            let reads = chain.reads.iter().map(|read| (graph.label(read.value), read.reach));
            (values.join(" "), reads.collect())
        };
        compiled.chains.all.iter().map(named).collect()
    }

    fn reads(names: &[(&str, Reach)]) -> Vec<(String, Reach)> {
        names.iter().map(|(name, reach)| ((*name).to_owned(), *reach)).collect()
    }

    use Reach::{Column, Element, One, Row};

    const DATA: &str = "\
model M f32
x = input csr f32 [n, d]
z = input csr f32 [n, d]
r = input row_sparse f32 [n, 2]
a = input dense f32 [n, 2]
c = input dense f32 [2]
e = input dense f32 [n, 1]
s = input dense f32 [1]
";

    #[test]
    fn a_dense_chain_is_one_loop() {
        let found = run(&format!(
            "{DATA}t = multiply(c, s)\nu = add(a, c)\nv = multiply(u, e)\nw = divide(v, s)\nh = tanh(w)\n\
             k = add(h, t)\noutput k = k"
        ));
        // `t` has another shape.
        let expected =
            reads(&[("a", Element), ("c", Column), ("e", Row), ("s", One), ("t", Column)]);
        assert_eq!(found, [("u v w h k".to_owned(), expected)]);
    }

    #[test]
    fn a_value_that_is_read_twice_in_one_loop_is_in_it() {
        let found = run(&format!("{DATA}t = tanh(a)\nu = multiply(t, t)\noutput u = u"));
        assert_eq!(found, [("t u".to_owned(), reads(&[("a", Element)]))]);
    }

    #[test]
    fn values_with_other_readers_are_stored() {
        let read_by =
            |last: &str| run(&format!("{DATA}t = tanh(a)\nu = square(t)\noutput u = u\n{last}"));
        assert_eq!(read_by("output t = t"), []);
        assert_eq!(read_by("v = sum(t)\noutput v = v"), []);
        assert_eq!(read_by("v = exp(t)\noutput v = v"), []);
        assert_eq!(read_by("v = zeros_like(t)\noutput v = v"), []);
    }

    #[test]
    fn one_operator_is_a_kernel() {
        assert_eq!(run(&format!("{DATA}t = dot(a, c)\nu = tanh(t)\noutput u = u")), []);
    }

    #[test]
    fn stored_elements_are_one_space_where_the_pattern_is_one() {
        let found = run(&format!(
            "{DATA}t = abs(x)\nu = multiply(t, x)\nv = multiply(u, s)\noutput v = v\n\
             k = tanh(x)\ng = multiply(k, z)\noutput g = g"
        ));
        assert_eq!(found, [("t u v".to_owned(), reads(&[("x", Element), ("s", One)]))]);
    }

    #[test]
    fn sums_of_csr_matrices_drop_zeros_and_those_of_rows_do_not() {
        let sums = |of: &str| run(&format!("{DATA}t = tanh({of})\nu = add(t, {of})\noutput u = u"));
        assert_eq!(sums("x"), []);
        assert_eq!(sums("r"), [("t u".to_owned(), reads(&[("r", Element)]))]);
    }

    #[test]
    fn a_dense_operand_of_a_csr_is_looked_up_by_its_kernel() {
        let found = run(&format!(
            "{DATA}w = input dense f32 [n, d]\nt = multiply(x, w)\nu = tanh(t)\noutput u = u"
        ));
        assert_eq!(found, []);
    }

    #[test]
    fn a_csr_of_the_batch_gives_the_pattern() {
        let found = run(&format!(
            "{DATA}t = abs(x)\nk = sum(t)\nu = multiply(t, x)\nv = tanh(u)\noutput v = v\noutput k = k"
        ));
        assert_eq!(found, [("u v".to_owned(), reads(&[("x", Element), ("t", Element)]))]);
    }

    #[test]
    fn nothing_is_fused_where_the_model_says_so_and_of_halves() {
        let text = format!("{DATA}t = tanh(a)\nu = square(t)\noutput u = u");
        assert_eq!(run(&text).len(), 1);
        let mut graph = parse(&text).unwrap();
        graph.no_fuse = true;
        assert_eq!(compile(graph).chains, Chains::default());
        let half = text.replace("f32", "f16");
        assert_eq!(compile(parse(&half).unwrap()).chains, Chains::default());
    }
}
