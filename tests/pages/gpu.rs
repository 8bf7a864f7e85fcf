//! The page of what GPUs compute: the rules that have kernels there, and those that do not.

use nnz_optim::{NAMES, RuleVisitor, Step, UpdateRule, with_rule};
use sparse_core::document::{Page, code_list, generated_from, table};
use sparse_core::operators::{self, Operator, Rule};

/// `docs/gpu.md`.
pub(super) fn page() -> Page {
    let mut text = generated_from(
        "the operator table and the update rules (`sparse-core/src/operators`, `sparse-runtime/optim`)",
    );
    text.push_str(
        "# What a GPU computes\n\n\
         `OnGpu::new(&model, &gpu)`, with the feature `cuda`, is a model on a GPU. Every \
         operator of its graph and of its gradients must have a kernel there for the storage \
         of its operands; a model that needs another does not compile. States and operators \
         of the user's own are on the host only. The last lines of a plan (`println!(\"{}\", \
         Model::PLAN)`) name the launch for each value: the kernel of the same name, or one \
         that operators of a kind share, made of their formula.\n\n\
         Outputs come back to the host as they are stored: dense ones as `forward` gives \
         them, others by `OnGpu::csr_output` and `row_sparse_output`.\n\n\
         Ids that a model computes (positions, counts) are a dense array of `u64` there as on \
         the host, for any operator that takes ids. `OnGpu::ids_output` copies outputs that \
         are ids to the host.\n\n",
    );
    let (mut of_rules, mut n_there, mut n_rules) = (Vec::new(), 0, 0);
    for (_, rows) in operators::families() {
        for group in groups(rows) {
            let [there, missing] = [true, false].map(|on_gpu| rules(group[0], on_gpu));
            n_there += there.len() * group.len();
            n_rules += (there.len() + missing.len()) * group.len();
            let names = group.iter().map(|operator| operator.name);
            of_rules.push(vec![code_list(names), code_list(there), code_list(missing)]);
        }
    }
    let mut columns = vec!["operators", "rules with kernels", "without"];
    if n_there == n_rules {
        text.push_str(&format!("All {n_rules} storage rules have kernels.\n\n"));
        columns.pop();
        of_rules.iter_mut().for_each(|row: &mut Vec<String>| row.truncate(columns.len()));
    } else {
        text.push_str(&format!("{n_there} of {n_rules} storage rules have kernels.\n\n"));
    }
    text.push_str(&table(&columns, &of_rules));
    let [there, missing] = [true, false].map(|on_gpu| {
        let is = |name: &&&str| with_rule(name, OnGpu).is_ok_and(|found| found == on_gpu);
        code_list(NAMES.iter().filter(is))
    });
    text.push_str(&format!("\n## Update rules\n\nWith kernels: {there}.\n"));
    if !missing.is_empty() {
        text.push_str(&format!("\nWithout: {missing}.\n"));
    }
    text.push_str(
        "\n`LazyUpdate::Exact`, `Touched` and `Dense` are as on the host. Where steps without a \
         gradient change table rows, the GPU keeps the last step of each row, and catches up \
         the rows that a batch names before the step reads them. ",
    );
    let on_host = NAMES.iter().filter(|name| with_rule(name, WaitsOnHost).is_ok_and(|found| found));
    text.push_str(&format!(
        "Idle steps of {} have no formulas for the GPU: `Exact` is refused with these rules there, \
         `Touched` or `Dense` are not. ",
        code_list(on_host)
    ));
    text.push_str(
        "Where scores are a product of a csr with a parameter, with or without a bias, \
         derivatives by the scores are kept on the GPU for each sample of the data. `Svrg` \
         and `Saga` [correct gradients](variance_reduction.md) by them as on the host, within \
         the one launch of the batch or by a launch after that of the derivatives. For any \
         other model `Svrg` computes the gradients of the batch at the snapshot, which is a \
         second model on the GPU, and `Saga` is refused by name, as on the host.\n",
    );
    text.push_str(
        "\n## Steps\n\n\
         Each value of the plan is a launch of its kernel, with these exceptions:\n\n\
         - The model is `dot(x, w)` of a csr, perhaps plus `pairwise_interaction(x, v)` and a \
         bias, into a loss. The scores, the loss and its derivatives by the scores are then \
         one kernel. It writes the scores if an output is computed from them and outputs are \
         read.\n\
         - The model is lookups by ids of the batch, `sum(take(p, users) * take(q, items), \
         axis = 1)` or its `mean`, and `take(b, users)` of one number. Each parameter occurs \
         once, with at most 8 in all; they are added up with a bias and numbers, into a loss \
         that is a sum over scores. One kernel then computes the same, with the derivatives \
         by the table rows of either side.\n\
         - A gradient is a sum over samples of the batch that gives table rows: csrᵀ · dense, \
         that of `embedding_bag`, that of `take` and `embedding` by ids of the batch, of a \
         table that is looked up in up to 4 places, and that of the interactions of such a \
         model. The kernel that sums a row's gradient ends in the update rule's recurrence. \
         The columns of a csr, and ids, are searched once for all of them. The gradient \
         itself is made where its norm is needed, where all rows make each step \
         (`LazyUpdate::Dense`), and for rules with a state of whole rows (`group-adagrad`).\n\n\
         `fuse = off` in the model leaves a kernel for each value. `OnGpu::kernels` lists \
         what computes each value, and what a step has instead; `Gpu::trace` lists the \
         kernels of a call in the order of their launches.\n\n\
         ## Batches\n\n\
         The arrays of a batch are written into one block of pinned memory and copied by one \
         call, beside the kernels, which wait for what they read. `Trainer` and `fit_epoch` \
         read and copy the next batch while a step computes, unless a callback or a metric \
         reads the batch of the step. Your own loop does so by `take_batch` and \
         `step_on_taken`; `train_step` copies its batch during the update of the previous \
         step. There are two blocks, which grow to the largest batch so far; after that a \
         step allocates nothing on the GPU.\n\n\
         ## Waiting\n\n\
         A step whose gradients go into their updates waits only for what is read of it: its \
         loss, where `train_step` returns it, and outputs, where the updater records them. \
         `Trainer` and `fit_epoch` read losses up to 32 steps later where nothing observes a \
         step, with the same bits. A loss that is not finite is reported with its batch, \
         after the steps made meanwhile. Your own loop does so by `begin_step_on_taken` and \
         `late_losses`. A failure on the GPU is an error of the next call that waits, which \
         names the kernels.\n\n\
         The launches of a step up to its loss, and those after it, are CUDA graphs once the \
         kernels of a step equal those of the previous one; sizes and addresses may differ. \
         If the driver refuses graphs, `Gpu::graphs_refused` says why; results are the same.\n",
    );
    Page { path: "docs/gpu.md".into(), text }
}

/// The operators of a family that have kernels for the same rules, together.
fn groups(rows: &[&'static Operator]) -> Vec<Vec<&'static Operator>> {
    let mut groups: Vec<Vec<&'static Operator>> = Vec::new();
    let alike = |a: &Operator, b: &Operator| {
        [true, false].iter().all(|&on_gpu| rules(a, on_gpu) == rules(b, on_gpu))
    };
    for operator in rows {
        match groups.iter_mut().find(|group| alike(group[0], operator)) {
            Some(group) => group.push(operator),
            None => groups.push(vec![operator]),
        }
    }
    groups
}

/// The rules that have kernels on a GPU, or those that have none.
fn rules(operator: &Operator, on_gpu: bool) -> Vec<&'static str> {
    let is_there = |rule: &&Rule| {
        let signature = rule.signature();
        let kernel = format!("{}_{}", operator.name, signature.kernel(signature.result));
        operator.gpu_family(&kernel).is_some() == on_gpu
    };
    operator.storage.iter().filter(is_there).map(Rule::text).collect()
}

/// Whether rows wait for idle steps of a rule, by its defaults, of which there are no formulas.
struct WaitsOnHost;

impl RuleVisitor for WaitsOnHost {
    type Output = bool;

    fn visit<R: UpdateRule>(self, rule: R) -> bool {
        let waits = rule.step::<f64>(rule.learning_rate(), 1.0, 0).idle().changes();
        rule.check().is_ok() && waits && !R::CATCHES_UP_ON_GPU
    }
}

/// Whether a rule has a kernel: those whose recurrence is a formula.
struct OnGpu;

impl RuleVisitor for OnGpu {
    type Output = bool;

    fn visit<R: UpdateRule>(self, _: R) -> bool {
        R::RECURRENCE.is_some()
    }
}
