//! Every reason, every correction and every recipe covers a case: one that covers none says
//! nothing, or is misspelt.

use crate::folder::say;
use crate::golden::case::cases;
use crate::golden::device::Host;
use crate::golden::operators::FILES;
use crate::golden::tally::Tally;
use crate::golden::{corrections, create, graphs, infer, libsvm, noncanonical, operators, reasons};
use crate::golden::{recipes, refusals};
use serde_json::Value;
use std::collections::BTreeSet;

#[test]
fn every_reason_and_every_recipe_covers_a_case() {
    let operators = FILES.iter().map(|file| operators::judged(file, &Host));
    let others = [
        graphs::judged(&Host),
        refusals::judged(&Host),
        noncanonical::judged(&Host),
        infer::judged(),
        create::judged(),
        libsvm::judged(),
    ];
    let Some(tallies) = operators.chain(others).collect::<Option<Vec<Tally>>>() else { return };
    let used: BTreeSet<&str> = tallies.iter().flat_map(Tally::reasons).collect();
    let tables = [create::REASONS, libsvm::REASONS, noncanonical::REASONS];
    let tables = tables.into_iter().flatten().map(|reason| reason.why);
    let whys = reasons::whys().chain(corrections::whys()).chain(tables);
    let unused = whys.filter(|why| !used.contains(why));

    let mut ops = BTreeSet::new();
    for file in FILES.iter().chain(&["graphs", "infer", "refusals", "noncanonical"]) {
        for case in cases(file).into_iter().flatten() {
            let nodes = case["graph"]["nodes"].as_array().into_iter().flatten();
            let named = [&case].into_iter().chain(nodes).map(|node| &node["op"]);
            ops.extend(named.filter_map(Value::as_str).map(str::to_owned));
        }
    }
    let unused: Vec<&str> =
        unused.chain(recipes::listed().filter(|op| !ops.contains(*op))).collect();
    if std::env::var_os("NNZ_GOLDEN").is_some() {
        // Another folder need not have a case for each.
        say(&format!("golden: no case in this folder for {unused:?}"));
    } else {
        assert!(unused.is_empty(), "these cover no case: {unused:#?}");
    }
}
