//! Flags that people know from other programs, and where they lead here.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, Error};

/// A flag of another program, and what to write here.
const ELSEWHERE: &[(&str, &str)] = &[
    ("--final_regressor", "to save the model, --save FILE"),
    ("-f", "to save the model, --save FILE"),
    ("--initial_regressor", "to go on from a saved model, `nnz train --init FILE`"),
    ("-i", "to go on from a saved model, `nnz train --init FILE`"),
    ("--testonly", "to score data, `nnz predict`; to measure a model, `nnz evaluate`"),
    ("-t", "to score data, `nnz predict`; to measure a model, `nnz evaluate`"),
    ("--predictions", "to write predictions, `nnz predict --output FILE`"),
    ("-p", "to write predictions, `nnz predict --output FILE`"),
    ("-d", "the data is --data FILE"),
    ("-c", "to keep what was parsed, --cache"),
    ("--cache_file", "to keep what was parsed, --cache"),
    ("--loss_function", "the loss is that of the model: --model linear, logistic, poisson, …"),
    ("--loss", "the loss is that of the model: --model linear, logistic, poisson, …"),
    ("--objective_function", "the loss is that of the model: --model linear, logistic, …"),
    ("--quantile_tau", "the share of labels below is --model quantile --quantile SHARE"),
    ("--ngram", "runs of words are --ngrams N"),
    ("--bfgs", "update rules are --optimizer NAME; svrg and saga reach the optimum"),
    ("--solver", "update rules are --optimizer NAME"),
    ("--algorithm", "update rules are --optimizer NAME"),
    ("--power_t", "the step size falls by --schedule inverse-scaling --power P"),
    ("--noconstant", "to leave the bias out, --no-bias"),
    ("--holdout_off", "nothing is held out unless --test FILE says so"),
    ("--early_terminate", "to end without improvement, --patience EPOCHS"),
    ("--early-stopping", "to end without improvement, --patience EPOCHS"),
    ("--num_class", "classes are those of the data: --model softmax"),
    ("--oaa", "classes are those of the data: --model softmax"),
    ("--tol", "to end when the loss falls by less, --tolerance DIFFERENCE"),
    ("--C", "the penalty is --l2, of the mean loss: 1 / (C · samples)"),
    ("--lambda", "the penalty is --l2"),
    ("--dim", "the columns of tables are --factors K"),
    ("--latent", "the columns of tables are --factors K"),
    ("--max_iter", "passes over the data are --epochs N"),
    ("--n-iter", "passes over the data are --epochs N"),
    ("--iterations", "passes over the data are --epochs N"),
    ("--random_seed", "the seed is --seed N"),
    ("--label_column", "columns have kinds: --schema NAME:label,…"),
    ("--num_threads", "threads are --threads N"),
    ("--nthread", "threads are --threads N"),
    ("--verbose", "to see less, --quiet; for programs, --json"),
    ("-v", "the version is --version"),
    ("-s", "the model is --model NAME, the update rule --optimizer NAME"),
];

/// What a flag of another program is here.
pub(crate) fn lead(flag: &str) -> Option<&'static str> {
    ELSEWHERE.iter().find(|(known, _)| *known == flag).map(|(_, lead)| *lead)
}

/// An error with a suggestion that leads to the flag of this program, where an unknown one is known
/// from elsewhere or is written with `_`. Of an unknown flag that is known nowhere the error stays
/// as it is.
pub(crate) fn explained(mut error: Error, command: &Command) -> Error {
    if error.kind() != ErrorKind::UnknownArgument {
        return error;
    }
    let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidArg) else {
        return error;
    };
    let given = given.split('=').next().unwrap_or_default().to_owned();
    let hyphened = given.trim_start_matches('-').replace('_', "-");
    let is_here = command.get_subcommands().any(|subcommand| {
        subcommand.get_arguments().any(|argument| {
            argument.get_long() == Some(&hyphened)
                || argument.get_all_aliases().unwrap_or_default().contains(&&hyphened[..])
        })
    });
    let lead = match lead(&given) {
        Some(lead) => lead.to_owned(),
        None if is_here && given.contains('_') => format!("write --{hyphened}"),
        None => return error,
    };
    for kind in [ContextKind::SuggestedArg, ContextKind::SuggestedValue] {
        error.remove(kind);
    }
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![lead.into()]));
    error
}
