//! Update rules with recorded hyperparameters.

use nnz::core::update_rules::UpdateRule;
use serde_json::Value;

/// Our name of a hyperparameter that the reference calls otherwise.
fn our_name<'a>(rule: &str, theirs: &'a str) -> &'a str {
    match (rule, theirs) {
        ("ftrl", "wd") => "l2",
        (_, "wd") => "weight_decay",
        (_, "eps") => "epsilon",
        (_, "lamda1") => "l1",
        (_, same) => same,
    }
}

/// A rule with the hyperparameters of a case, but for `lazy_update`.
pub(crate) fn configured<R: UpdateRule>(mut rule: R, case: &Value) -> Result<R, String> {
    for (name, value) in case["hyper"].as_object().ok_or("no hyperparameters")? {
        if name == "lazy_update" {
            continue;
        }
        let value = value.as_f64().ok_or_else(|| format!("`{name}` is no number"))?;
        rule.set(our_name(R::NAME, name), value).map_err(|error| error.to_string())?;
    }
    Ok(rule)
}
