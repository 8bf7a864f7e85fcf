//! The pages for people who come from another library or program, in `docs/coming_from`.

use super::root;
use nnz_optim::{NAMES, RuleVisitor, UpdateRule, with_rule};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Names of MXNet that its sparse tutorials, `Module`, `SVRGModule` and the two `fit` use:
/// functions, classes, arguments, attributes and variables of the environment.
const OF_MXNET: &str = "
    sym.Variable sym.var symbol.Variable stype shape init dtype Group sym.sparse elemwise_add
    broadcast_add negative log sparse.dot nd.dot transpose_a LinearRegressionOutput SoftmaxOutput
    simple_bind bind arg_dict outputs MXNET_INFER_STORAGE_TYPE_VERBOSE_LOGGING
    MXNET_EXEC_LOG_LEVEL
    csr_matrix row_sparse_array nd.array nd.ones sparse.zeros nd.arange reshape rand_ndarray
    cast_storage tostype copyto copy asnumpy retain .data .indices .indptr .stype mx.cpu mx.gpu ctx
    context random.seed mx.random.seed
    LibSVMIter NDArrayIter batch_size shuffle last_batch_handle data_names label_names label_name
    provide_data provide_label data_shapes label_shapes reset
    Module symbol logger work_load_list fixed_param_names state_names group2ctxs
    compression_params for_training is_train inputs_need_grad force_rebind force_init shared_module
    grad_req init_params initializer initializer.Normal init.Uniform arg_params aux_params
    allow_missing set_params get_params init_optimizer optimizer optimizer_params optimizer.SGD
    learning_rate momentum wd rescale_grad clip_gradient lazy_update kvstore forward backward
    forward_backward update out_grads update_metric metric.create metric.get get_name_value
    metric.reset score save_checkpoint load_checkpoint prepare sparse_row_id_fn install_monitor
    monitor tic toc_print
    train_data eval_data eval_metric validation_metric epoch_end_callback batch_end_callback
    eval_end_callback eval_batch_end_callback begin_epoch num_epoch Speedometer lr_scheduler
    SVRGModule update_freq update_full_grads push pull row_sparse_pull set_optimizer
    BatchEndParam EvalMetric create_state optimizer.update ones_like MXNetError num_parts
    round_batch
";

/// The pages, with their names.
pub(super) fn pages() -> Vec<(PathBuf, String)> {
    let mut pages: Vec<(PathBuf, String)> = fs::read_dir(root().join("docs/coming_from"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.clone(), fs::read_to_string(path).unwrap()))
        .collect();
    pages.sort();
    pages
}

/// The cells of a row of a table in Markdown, or nothing.
pub(super) fn cells(line: &str) -> Option<Vec<&str>> {
    Some(line.trim().strip_prefix('|')?.strip_suffix('|')?.split('|').map(str::trim).collect())
}

/// The long flags in a text, without the hyphens in front.
fn flags(text: &str) -> impl Iterator<Item = &str> {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_';
    text.split(move |letter: char| !is_part(letter))
        .filter_map(|word| word.strip_prefix("--"))
        .filter(|flag| flag.starts_with(|letter: char| letter.is_ascii_alphabetic()))
}

#[test]
fn flags_are_the_words_after_two_hyphens() {
    let found: Vec<&str> = flags("`--l2 1e-4`, -q, --hash-bits=3 | --- | a--b").collect();
    assert_eq!(found, ["l2", "hash-bits"]);
}

#[test]
fn every_name_of_mxnet_has_a_row() {
    let page = fs::read_to_string(root().join("docs/coming_from/mxnet.md")).unwrap();
    let first: String =
        page.lines().filter_map(cells).map(|cells| format!("{} ", cells[0])).collect();
    let missing: Vec<&str> =
        OF_MXNET.split_whitespace().filter(|name| !first.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "the page on MXNet has no row for {missing:?}");
}

#[test]
fn every_page_is_a_module_and_on_the_index() {
    let modules = fs::read_to_string(root().join("src/coming_from.rs")).unwrap();
    let index = fs::read_to_string(root().join("docs/coming_from/index.md")).unwrap();
    for (path, _) in pages() {
        let name = path.file_stem().unwrap().to_str().unwrap();
        assert!(modules.contains(&format!("coming_from/{name}.md")), "{name}");
        assert!(name == "index" || index.contains(&format!("[`{name}`]")), "{name}");
    }
}

/// What a page says to write is a flag of the program; any other flag stands in a first cell, as
/// one of the program that the page is about.
#[test]
fn flags_to_write_are_those_of_the_program() {
    let ours = flags_of_the_program();
    assert!(ours.len() > 80, "{ours:?}");
    for (path, text) in pages() {
        let theirs: BTreeSet<&str> =
            text.lines().filter_map(cells).flat_map(|cells| flags(cells[0])).collect();
        let mut is_our_command = false;
        for line in text.lines() {
            is_our_command = line.starts_with("nnz ") || (is_our_command && line.starts_with("  "));
            let here = cells(line).map_or(line.to_owned(), |cells| cells[1..].join(" "));
            let is_to_write = is_our_command || cells(line).is_some();
            for flag in flags(&here) {
                let is_known = ours.contains(flag) || (!is_to_write && theirs.contains(flag));
                // The commands of another program stand beside ours.
                let is_theirs = line.starts_with("vw ") || line.starts_with("xlearn");
                assert!(is_known || is_theirs, "{}: `--{flag}` is no flag", path.display());
            }
        }
    }
}

/// Every long flag of `nnz`: those declared in its sources, and the hyperparameters.
fn flags_of_the_program() -> BTreeSet<String> {
    struct Hyperparameters<'a>(&'a mut BTreeSet<String>);
    impl RuleVisitor for Hyperparameters<'_> {
        type Output = ();
        fn visit<R: UpdateRule>(self, mut rule: R) {
            self.0.extend(rule.hyperparameters().iter().map(|row| row.name.replace('_', "-")));
        }
    }
    // Flags without a field of their own: a switch of all commands, a penalty by tables, and what
    // clap adds.
    let mut flags: BTreeSet<String> = ["quiet", "l2", "help", "version"].map(String::from).into();
    for name in NAMES {
        let _ = with_rule(name, Hyperparameters(&mut flags));
    }
    declared(&root().join("cli/src"), &mut flags);
    flags
}

/// Adds the flags of the fields below `#[arg(long …)]` in the sources of a folder, and their
/// aliases.
fn declared(folder: &Path, flags: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            declared(&path, flags);
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        for after in text.split("#[arg(").skip(1) {
            let (attribute, field) = after.split_once(")]\n").unwrap();
            if let Some((_, named)) = attribute.split_once("long = \"") {
                flags.insert(named.split('"').next().unwrap().to_owned());
            } else if attribute.split([',', ' ']).any(|word| word == "long") {
                let name = field.trim_start().split(':').next().unwrap();
                let name = name.rsplit(' ').next().unwrap();
                flags.insert(name.replace('_', "-"));
            }
            if let Some((_, alias)) = attribute.split_once("visible_alias = \"") {
                flags.insert(alias.split('"').next().unwrap().to_owned());
            }
        }
    }
}
