//! Table rows that a declared operator says it reads and stores, held to its rules and shapes.

use super::declared::{Declaration, DeclaredPart, NamedRows};
use crate::shapes::{names_of, terms};

/// What is not so, and what to write: of a declaration whose rules and shape are well formed.
pub(super) fn faults(declaration: &Declaration) -> Vec<(DeclaredPart, String, String)> {
    let rules: Vec<Vec<&str>> = declaration.rules.iter().map(|rule| words(rule)).collect();
    let shapes = declaration.shape.as_deref().map(words);
    let said = Said { declaration, rules, shapes };
    let reads = declaration.reads.iter().enumerate().filter_map(|(index, (table, by))| {
        let place = declaration.operands.iter().position(|operand| operand == table);
        let (message, help) = said.check(table, place?, by).err()?;
        Some((DeclaredPart::Reads(index), message, help))
    });
    let stores = declaration.stores.as_ref().and_then(|by| {
        let (message, help) = said.check("the result", declaration.operands.len(), by).err()?;
        Some((DeclaredPart::Stores, message, help))
    });
    reads.chain(stores).collect()
}

/// The words of a rule or of a shape rule: those of the operands, and then that of the result.
fn words(text: &str) -> Vec<&str> {
    let Some((operands, result)) = text.split_once("->") else { return Vec::new() };
    terms(operands).into_iter().chain([result.trim()]).collect()
}

/// A declaration by its words.
struct Said<'a> {
    declaration: &'a Declaration,
    rules: Vec<Vec<&'a str>>,
    shapes: Option<Vec<&'a str>>,
}

impl Said<'_> {
    /// Whether `by` can name the rows of the array at a place of the rules.
    fn check(&self, table: &str, place: usize, by: &NamedRows) -> Result<(), (String, String)> {
        let is_operand = place < self.declaration.operands.len();
        let shown = if is_operand { format!("`{table}`") } else { table.to_owned() };
        let mut of_tables = self.rules.iter().filter(|rule| rule[place] == "row_sparse").peekable();
        if of_tables.peek().is_none() {
            let message =
                format!("no rule has {shown} as row_sparse, so that it has no table rows");
            let help = "write `row_sparse` in a rule, or leave this line out: a dense array is \
                        read and stored as a whole";
            return Err((message, help.to_owned()));
        }
        let name = by.operand();
        let Some(names) = self.declaration.operands.iter().position(|known| known == name) else {
            return Ok(());
        };
        let pattern = by.pattern();
        if let Some(rule) = of_tables.find(|rule| rule[names] != pattern) {
            let message = format!(
                "`{name}` is `{}` in a rule, and only `{pattern}` names rows so",
                rule[names]
            );
            let help = match rule[names] {
                "csr" => format!("write `columns({name})`"),
                "ids" => format!("write `ids({name})`"),
                _ => "rows are named by `columns` of a csr, or by `ids`".to_owned(),
            };
            return Err((message, help));
        }
        match by {
            NamedRows::Ids(_) => Ok(()),
            NamedRows::Columns(_) => self.check_extents(&shown, place, name, names),
        }
    }

    /// The columns of a csr are rows of a table where both extents have one letter.
    fn check_extents(
        &self,
        shown: &str,
        place: usize,
        name: &str,
        names: usize,
    ) -> Result<(), (String, String)> {
        let extents = |place: usize| {
            let shape = self.shapes.as_ref()?.get(place)?;
            shape.starts_with('[').then(|| names_of(shape))
        };
        let rows = extents(place).and_then(|extents| extents.first().copied());
        let columns = extents(names).and_then(|extents| extents.last().copied());
        if rows.is_some() && rows == columns {
            return Ok(());
        }
        let message = format!("nothing says that {shown} has as many rows as `{name}` has columns");
        let help = format!(
            "give both extents one letter in the shape rule, as `d` in `shape [n, d] [d, k] -> …;` \
             for a csr `{name}` and its table"
        );
        Err((message, help))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn declaration(rule: &str, shape: Option<&str>, by: NamedRows) -> Declaration {
        Declaration {
            name: "f".into(),
            operands: ["x", "v"].map(str::to_owned).to_vec(),
            rules: vec![rule.into()],
            shape: shape.map(str::to_owned),
            reads: vec![("v".into(), by)],
            ..Declaration::default()
        }
    }

    #[test]
    fn rows_are_named_by_what_can_name_them() {
        let columns = || NamedRows::Columns("x".into());
        let shape = Some("[n, d] [d, k] -> [n, k]");
        for (rule, shape, by, message) in [
            (
                "csr dense -> dense",
                shape,
                columns(),
                "no rule has `v` as row_sparse, so that it has no table rows",
            ),
            (
                "dense row_sparse -> dense",
                shape,
                columns(),
                "`x` is `dense` in a rule, and only `csr` names rows so",
            ),
            (
                "csr row_sparse -> dense",
                shape,
                NamedRows::Ids("x".into()),
                "`x` is `csr` in a rule, and only `ids` names rows so",
            ),
            (
                "csr row_sparse -> dense",
                Some("[n, d] [e, k] -> [n, k]"),
                columns(),
                "nothing says that `v` has as many rows as `x` has columns",
            ),
            (
                "csr row_sparse -> dense",
                None,
                columns(),
                "nothing says that `v` has as many rows as `x` has columns",
            ),
        ] {
            let found = declaration(rule, shape, by).check();
            assert_eq!((found[0].0, found[0].1.as_str()), (DeclaredPart::Reads(0), message));
        }
        let by_ids = NamedRows::Ids("x".into());
        for (rule, by) in
            [("csr row_sparse -> dense", columns()), ("ids row_sparse -> dense", by_ids)]
        {
            assert_eq!(declaration(rule, shape, by).check(), []);
        }
    }

    #[test]
    fn stored_rows_are_those_of_a_row_sparse_result() {
        let stores = |rule: &str| Declaration {
            reads: Vec::new(),
            stores: Some(NamedRows::Columns("x".into())),
            ..declaration(rule, Some("[n, d] [n, k] -> [d, k]"), NamedRows::Columns("x".into()))
        };
        assert_eq!(stores("csr dense -> row_sparse").check(), []);
        let found = stores("csr dense -> dense").check();
        assert_eq!(
            (found[0].0, found[0].1.as_str()),
            (
                DeclaredPart::Stores,
                "no rule has the result as row_sparse, so that it has no table rows"
            )
        );
    }
}
