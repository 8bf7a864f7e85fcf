//! The list of operators, family by family.

use super::{
    Operator, RowNames, RowUse, RowsRead, dot, elementwise, layers, layout, loss, order, parts,
    reduce, selection, storage_casts, structure, unary,
};

/// Every operator, family by family, in the order of the documentation.
pub fn all() -> impl Iterator<Item = &'static Operator> {
    families().into_iter().flat_map(|(_, rows)| rows).copied()
}

/// The families: title and operators, in the order of the documentation.
pub fn families() -> Vec<(&'static str, &'static [&'static Operator])> {
    vec![
        ("dot", dot::ALL),
        ("elementwise", elementwise::ALL),
        ("unary", unary::ALL),
        ("reduce", reduce::ALL),
        ("parts", parts::ALL),
        ("selection", selection::ALL),
        ("layout", layout::ALL),
        ("order", order::ALL),
        ("structure", structure::ALL),
        ("storage", storage_casts::ALL),
        ("layers", layers::ALL),
        ("loss", loss::ALL),
    ]
}

/// The operator of a name, or of another name of it.
pub fn find(name: &str) -> Option<&'static Operator> {
    all().find(|operator| operator.name == name || operator.aliases.contains(&name))
}

impl Operator {
    /// The operator that reads rows of a table as they are, by the columns of a csr or by ids.
    pub fn reader_of_rows(by_ids: bool) -> Option<&'static Operator> {
        let reads = |read: &RowsRead| {
            read.what == RowUse::AsTheyAre && matches!(read.by, Some(RowNames::Ids(_))) == by_ids
        };
        all().find(|operator| operator.reads_rows.iter().any(reads))
    }
}
