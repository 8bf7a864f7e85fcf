//! The page of update rules.

use nnz_optim::{Idle, NAMES, RuleVisitor, Step, UpdateRule, with_rule};
use sparse_core::document::{Page, generated_from, table};

/// `docs/optimizers.md`.
pub(super) fn page() -> Page {
    let mut text = generated_from("`sparse-runtime/optim/src/`");
    text.push_str(
        "# Update rules\n\n\
         An update rule says how a gradient changes a weight: `Trainer::new(Sgd { \
         learning_rate: 0.1, ..Sgd::default() })`, or `nnz train --optimizer sgd \
         --learning-rate 0.1`. `lazy_update` says how a row_sparse gradient is applied:\n\n\
         - `Exact`, the default, is the mathematics of the dense update at the cost of the \
         table rows touched. A row is caught up in closed form with its idle steps, those \
         without a gradient. Rules without a closed form refuse it.\n\
         - `Touched` changes only the rows of the gradient.\n\
         - `Dense` changes all rows at every step.\n\n\
         The learning rate is the field `learning_rate` of every rule. There is no `lr`: for \
         an unknown field rustc proposes the most similar name, which is `l1`, another \
         hyperparameter. `nnz::prelude` has the rules, and `..Sgd::default()` the omitted \
         fields.\n\n",
    );
    text.push_str(&table(&["rule", "state of a weight", "`Exact`"], &each(|| Row)));
    text.push_str(
        "\n## Which parameters decay\n\n\
         Weight decay and L1 shrink a parameter that is used as a weight: as a factor of a \
         product, as a table of a lookup or a bag, or multiplied with a csr. They also shrink \
         parameters from whose elements such a weight is computed (`dot(x, relu(w))`). A \
         parameter that is only added, or multiplied by broadcasting (a bias, a scale, a \
         temperature), does not decay. Storage and shape play no part: `dense[d]`, `dense[d, \
         1]` and `row_sparse[d, 1]` in `dot(x, w)` decay alike. The row_sparse operands of \
         your own operator count as tables.\n\n\
         `param(decay) b: …` and `param(no_decay) w: …` overrule the uses. The plan says \
         `decays` or `no decay` beside each parameter, and so does the documentation of its \
         field. `Trainer::weight_decay_scale` sets another factor than 0 or 1 in a run.\n",
    );
    for section in each(|| Section) {
        text.push_str(&section);
    }
    Page { path: "docs/optimizers.md".into(), text }
}

/// What a visitor says of each rule, in the order of the list.
fn each<V: RuleVisitor>(visitor: impl Fn() -> V) -> Vec<V::Output> {
    NAMES.iter().filter_map(|name| with_rule(name, visitor()).ok()).collect()
}

/// The line of a rule in the table.
struct Row;

impl RuleVisitor for Row {
    type Output = Vec<String>;

    fn visit<R: UpdateRule>(self, rule: R) -> Vec<String> {
        let states = R::STATES.join(", ");
        let link = format!("[`{0}`](#{0})", R::NAME);
        vec![link, states, exact(&rule).to_owned()]
    }
}

/// Whether a rule has closed forms with its defaults, and with everything that they leave off.
fn exact<R: UpdateRule>(rule: &R) -> &'static str {
    let mut all = rule.clone();
    for mut row in all.hyperparameters() {
        if row.get().unwrap_or(0.0) == 0.0 {
            row.set(0.5);
        }
    }
    match (rule.check().is_ok(), all.check().is_ok()) {
        (true, true) => "yes",
        (true, false) => "in part",
        (false, _) => "no",
    }
}

/// The section of a rule.
struct Section;

impl RuleVisitor for Section {
    type Output = String;

    fn visit<R: UpdateRule>(self, rule: R) -> String {
        let about: Vec<&str> =
            R::ABOUT.lines().map(|line| line.strip_prefix(' ').unwrap_or(line)).collect();
        let step = rule.step::<f64>(rule.learning_rate(), 1.0, 0);
        let idle = match step.idle() {
            Idle::Nothing => "With the defaults an idle step changes nothing.\n\n",
            Idle::Closed(_) | Idle::Open => "",
        };
        let mut rule = rule;
        let rows: Vec<Vec<String>> = rule
            .hyperparameters()
            .iter()
            .map(|row| {
                let default = row.get().map_or("none".to_owned(), |value| value.to_string());
                let meaning = row.meaning.trim().to_owned();
                vec![format!("`{}`", row.name), default, row.bound.words().to_owned(), meaning]
            })
            .collect();
        format!(
            "\n## {}\n\n{}\n\n{idle}{}",
            R::NAME,
            without_links(&about.join("\n")),
            table(&["hyperparameter", "default", "must be", "meaning"], &rows)
        )
    }
}

/// Links of the documentation of Rust, `` [`Adam`](super::Adam) ``, as the words alone.
fn without_links(text: &str) -> String {
    let mut rest = text;
    let mut out = String::new();
    while let Some((before, after)) = rest.split_once("[`") {
        let Some((word, after)) = after.split_once("`]") else { break };
        out.push_str(&format!("{before}`{word}`"));
        rest = match after.strip_prefix('(').and_then(|target| target.split_once(')')) {
            Some((_, after)) => after,
            None => after,
        };
    }
    out + rest
}
