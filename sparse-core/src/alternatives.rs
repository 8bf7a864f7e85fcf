//! Models whose inputs may have one of several storage types, `input x: csr | dense[n, d]`: one
//! variant for each combination, each compiled like any other model.

use crate::compile::{Compiled, compile};
use crate::diagnostics::{Code, Diagnostic, Severity};
use crate::ir::{Alternatives, Graph, ValueId};
use crate::storage::{Storage, join};

/// How many variants a model may have: each is a model of its own for this compiler and for Rust's.
pub const MOST_VARIANTS: usize = 8;

/// A model with one storage type for each input.
#[derive(Clone, Debug)]
pub struct Variant<M> {
    /// What was chosen for each input that has alternatives, in the order of declaration.
    pub storages: Vec<(ValueId, Storage)>,
    /// The model; its graph has the variant's name.
    pub model: M,
}

/// All variants of a model.
#[derive(Clone, Debug)]
pub struct Variants {
    /// The variants, the first alternatives first; a model without alternatives is its only one.
    pub variants: Vec<Variant<Compiled>>,
    /// The [fingerprint](Compiled::fingerprint) of the first variant, under the name of the model.
    /// It is that of all: they have the same parameters, so that a checkpoint of one is one of the
    /// others, and stays one when an alternative is added.
    pub fingerprint: u64,
    /// Everything to tell the user. What holds of some variants only says of which.
    pub diagnostics: Vec<Diagnostic>,
}

/// Runs every pass on every variant.
///
/// ```
/// # mod nnz { pub use sparse_core as core; }
/// use nnz::core::{alternatives::compile_variants, ir};
/// let text = "model M f32\nx = input csr | dense f32 [n, d]\ny = log(x)\noutput y = y";
/// let graph = ir::parse(text)?;
/// let variants = compile_variants(graph);
/// assert_eq!(variants.variants[1].model.graph.name, "MDense");
/// assert!(variants.diagnostics[0].message.ends_with("\nwhere `x` is `csr`"));
/// # Ok::<(), String>(())
/// ```
pub fn compile_variants(graph: Graph) -> Variants {
    let mut variants: Vec<Variant<Compiled>> = split(&graph)
        .into_iter()
        .map(|Variant { storages, model }| Variant { storages, model: compile(model) })
        .collect();
    let fingerprint = variants[0].model.fingerprint();
    let diagnostics = together(&graph, &variants);
    for variant in &mut variants {
        variant.model.graph.name = variant_name(&graph, &variant.storages);
    }
    Variants { variants, fingerprint, diagnostics }
}

/// A graph for each combination of storage types, not compiled. They have the name of the model.
pub fn split(graph: &Graph) -> Vec<Variant<Graph>> {
    let mut combinations: Vec<Vec<(ValueId, Storage)>> = vec![Vec::new()];
    for Alternatives { value, storages } in &graph.alternatives {
        let longer = |combination: &Vec<_>, storage: &Storage| {
            [combination.clone(), vec![(*value, *storage)]].concat()
        };
        combinations = combinations
            .iter()
            .flat_map(|combination| storages.iter().map(|storage| longer(combination, storage)))
            .collect();
    }
    let choose = |storages: Vec<(ValueId, Storage)>| {
        let mut model = Graph { alternatives: Vec::new(), ..graph.clone() };
        for (value, storage) in &storages {
            model.values[value.0].storage = Some(*storage);
        }
        Variant { storages, model }
    };
    combinations.into_iter().map(choose).collect()
}

/// What a variant is called: `ScorerCsr` of `Scorer`.
pub fn variant_name(graph: &Graph, storages: &[(ValueId, Storage)]) -> String {
    // The name in Rust of a storage type is that of its arrays.
    let words: String = storages.iter().map(|(_, storage)| format!("{storage:?}")).collect();
    format!("{}{words}", graph.name)
}

/// A combination in words: `` `x` is `csr` and `z` is `dense` ``.
pub fn in_words(graph: &Graph, storages: &[(ValueId, Storage)]) -> String {
    let words = storages.iter();
    let words = words.map(|(value, storage)| format!("`{}` is `{storage}`", graph.label(*value)));
    words.collect::<Vec<_>>().join(" and ")
}

/// Several combinations in words, without the inputs that do not matter to them.
fn some_in_words(graph: &Graph, combinations: &[&[(ValueId, Storage)]]) -> String {
    // For each input what it may be.
    let choices = graph.alternatives.iter().enumerate().map(|(place, known)| {
        let chosen = |storage: &&Storage| {
            combinations.iter().any(|combination| combination[place].1 == **storage)
        };
        (known, known.storages.iter().filter(chosen).copied().collect::<Vec<_>>())
    });
    let choices: Vec<(&Alternatives, Vec<Storage>)> = choices.collect();
    let independent = choices.iter().map(|(_, chosen)| chosen.len()).product::<usize>();
    if independent != combinations.len() {
        let words = combinations.iter().map(|combination| in_words(graph, combination));
        return words.collect::<Vec<_>>().join(", or ");
    }
    let words = choices.iter().filter(|(known, chosen)| chosen.len() < known.storages.len());
    let words = words.map(|(known, chosen)| {
        format!("`{}` is `{}`", graph.label(known.value), join(chosen, "` or `"))
    });
    words.collect::<Vec<_>>().join(" and ")
}

/// The diagnostics of all variants, each once.
fn together(graph: &Graph, variants: &[Variant<Compiled>]) -> Vec<Diagnostic> {
    let mut said: Vec<(Diagnostic, Vec<usize>)> = Vec::new();
    for (index, variant) in variants.iter().enumerate() {
        let mut open: Vec<usize> = (0..said.len()).collect();
        for diagnostic in &variant.model.diagnostics {
            // One that is said twice of a variant is two.
            match open.iter().position(|known| said[*known].0 == *diagnostic) {
                Some(position) => said[open.remove(position)].1.push(index),
                None => said.push((diagnostic.clone(), vec![index])),
            }
        }
    }
    let stops = |diagnostic: &Diagnostic| diagnostic.code.severity() == Severity::Error;
    let stopped = said.iter().any(|(diagnostic, _)| stops(diagnostic));
    said.into_iter()
        .filter(|(diagnostic, of)| {
            // A conversion may be there for the sake of another variant. Warnings of variants wait
            // for the errors of others.
            of.len() == variants.len()
                || diagnostic.code != Code::NothingToConvert && (stops(diagnostic) || !stopped)
        })
        .map(|(diagnostic, of)| {
            if of.len() == variants.len() {
                diagnostic
            } else {
                let of = of.iter().map(|index| &variants[*index].storages[..]).collect::<Vec<_>>();
                let words = some_in_words(graph, &of);
                let message = format!("{}\nwhere {words}", diagnostic.message);
                Diagnostic { message, ..diagnostic }
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::parse;

    fn variants(text: &str) -> (Vec<String>, Vec<String>) {
        let found = compile_variants(parse(&format!("model M f32\n{text}")).unwrap());
        let names = found.variants.iter().map(|variant| variant.model.graph.name.clone()).collect();
        (names, found.diagnostics.iter().map(Diagnostic::text).collect())
    }

    #[test]
    fn variants_come_in_the_order_of_the_source() {
        let (names, diagnostics) = variants(
            "x = input csr | dense f32 [n, d]\nz = input row_sparse | dense f32 [d, 2]\ny = dot(x, z)\noutput y = y",
        );
        assert!(diagnostics.is_empty(), "{diagnostics:?}");
        assert_eq!(names, ["MCsrRowSparse", "MCsrDense", "MDenseRowSparse", "MDenseDense"]);
    }

    #[test]
    fn errors_of_some_variants_name_them() {
        let (_, diagnostics) = variants(
            "x = input csr | dense | row_sparse f32 [n, d]\na = log(x)\nb = dot(x, x)\noutput a = a\noutput b = b",
        );
        // The shape is wrong whatever the storage is.
        assert_eq!(diagnostics.len(), 1, "{diagnostics:?}");
        assert!(diagnostics[0].starts_with("[NNZ0201]") && !diagnostics[0].contains("where"));
        let (_, diagnostics) =
            variants("x = input csr | dense | row_sparse f32 [n, d]\na = log(x)\noutput a = a");
        let found: Vec<_> = diagnostics.iter().map(|text| text.lines().nth(1).unwrap()).collect();
        assert_eq!(found, ["where `x` is `csr`", "where `x` is `row_sparse`"], "{diagnostics:?}");
    }

    #[test]
    fn inputs_that_do_not_matter_are_left_out() {
        let of = |value: &str| {
            let (_, diagnostics) = variants(&format!(
                "x = input csr | dense f32 [n, d]\nz = input csr | row_sparse | dense f32 [n, d]\na = {value}\noutput a = a"
            ));
            let places = diagnostics.iter().map(|text| text.lines().nth(1).unwrap().to_owned());
            places.collect::<Vec<_>>()
        };
        assert_eq!(of("log(x)"), ["where `x` is `csr`"]);
        assert_eq!(of("log(z)"), ["where `z` is `csr`", "where `z` is `row_sparse`"]);
        assert_eq!(of("add(x, z)"), ["where `x` is `csr` and `z` is `row_sparse`"]);
    }

    #[test]
    fn a_conversion_may_be_there_for_another_variant() {
        let (_, diagnostics) =
            variants("x = input csr | dense f32 [n, d]\na = dense(x)\nb = log(a)\noutput b = b");
        assert!(diagnostics.is_empty(), "{diagnostics:?}");
        let (_, diagnostics) =
            variants("x = input csr | dense f32 [n, d]\na = csr(x)\nb = csr(a)\noutput b = b");
        assert_eq!(diagnostics.len(), 1, "{diagnostics:?}");
    }

    #[test]
    fn the_fingerprint_is_that_of_the_first_alternative() {
        let of = |storages: &str| {
            let text =
                format!("model M f32\nx = input {storages} f32 [n, d]\ny = tanh(x)\noutput y = y");
            compile_variants(parse(&text).unwrap()).fingerprint
        };
        assert_eq!(of("csr"), of("csr | dense"));
        assert_ne!(of("csr"), of("dense | csr"));
    }
}
