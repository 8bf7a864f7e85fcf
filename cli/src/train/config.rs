//! A run of training as a TOML file, whose keys are the names of flags without the hyphens.
//!
//! The file becomes flags before the command line is parsed, so that `clap` checks both alike.

use super::arguments::Arguments;
use crate::Failure;
use crate::files::beside;
use crate::unknown_flags;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};
use nnz_device::atomic_write::replace_file;
use std::any::TypeId;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// The ending of the file that repeats a run, beside its model.
const ENDING: &str = "run.toml";

/// The beginning of such a file.
const WRITTEN: &str = "# Written by `nnz train`";

/// Flags of one call, not of the run that it makes.
const OF_THE_CALL: [&str; 2] = ["config", "resume"];

/// The arguments of the program, with those of `--config FILE` behind the name of the subcommand.
///
/// A flag that is also in `arguments`, or excludes one of those, is left out of the file's.
///
/// # Errors
///
/// A file that cannot be read or is no TOML, a key that is no flag, and a value of a kind that the
/// flag does not take.
pub(crate) fn expanded(
    command: &mut Command,
    arguments: Vec<OsString>,
) -> Result<Vec<OsString>, Failure> {
    let is_word = |argument: &OsString| !argument.as_encoded_bytes().starts_with(b"-");
    let Some(at) = arguments.iter().skip(1).position(is_word).map(|position| position + 2) else {
        return Ok(arguments);
    };
    let (before, given) = arguments.split_at(at);
    command.build();
    let name = before.last().and_then(|name| name.to_str()).unwrap_or_default();
    let of_file = match (command.find_subcommand(name), file_of(given)) {
        (Some(subcommand), Some(path)) if flag(subcommand, "config").is_some() => {
            flags_of_file(subcommand, Path::new(&path), given)?
        }
        _ => return Ok(arguments),
    };
    Ok([before, &of_file, given].concat())
}

/// What `--config FILE` or `--config=FILE` names.
fn file_of(given: &[OsString]) -> Option<OsString> {
    let mut given = given.iter();
    while let Some(argument) = given.next() {
        match argument.to_str().and_then(|text| text.strip_prefix("--config")) {
            Some("") => return given.next().cloned(),
            Some(rest) if rest.starts_with('=') => return Some(rest[1..].into()),
            _ => {}
        }
    }
    None
}

fn flags_of_file(
    command: &Command,
    path: &Path,
    given: &[OsString],
) -> Result<Vec<OsString>, Failure> {
    let failed = |problem: String| format!("--config: {}: {problem}", path.display());
    let text = fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
    let table: Table = text.parse().map_err(|error| failed(format!("{error}")))?;
    let of_line: Vec<&Arg> = command.get_arguments().filter(|arg| is_in(arg, given)).collect();
    let excludes = |one: &Arg, other: &Arg| {
        let excluded = command.get_arg_conflicts_with(one);
        excluded.iter().any(|excluded| excluded.get_id() == other.get_id())
    };
    let mut flags = Vec::new();
    for (key, value) in &table {
        let arg = flag(command, key).filter(|arg| !OF_THE_CALL.contains(&arg.get_id().as_str()));
        let arg = arg.ok_or_else(|| failed(unknown(command, key)))?;
        let stands_back = of_line.iter().any(|other| {
            arg.get_id() == other.get_id() || excludes(arg, other) || excludes(other, arg)
        });
        let texts = texts(arg, value).map_err(|problem| failed(format!("`{key}` {problem}")))?;
        if !stands_back {
            flags.extend(texts.into_iter().map(|text| match text {
                Some(text) => OsString::from(format!("--{key}={text}")),
                None => OsString::from(format!("--{key}")),
            }));
        }
    }
    Ok(flags)
}

/// The flag of a name or an alias.
fn flag<'c>(command: &'c Command, key: &str) -> Option<&'c Arg> {
    let is_setting = |arg: &&Arg| {
        let action = arg.get_action();
        action.takes_values() || matches!(action, ArgAction::SetTrue)
    };
    command.get_arguments().filter(is_setting).find(|arg| names(arg).any(|name| name == key))
}

fn names(arg: &Arg) -> impl Iterator<Item = &str> {
    arg.get_long().into_iter().chain(arg.get_all_aliases().unwrap_or_default())
}

/// Whether a flag is among the arguments of the command line.
fn is_in(arg: &Arg, given: &[OsString]) -> bool {
    let short = arg.get_short().map(|letter| format!("-{letter}"));
    given.iter().filter_map(|argument| argument.to_str()).any(|text| {
        let long = text.strip_prefix("--").map(|text| text.split('=').next().unwrap_or_default());
        names(arg).any(|name| long == Some(name))
            || short.as_ref().is_some_and(|short| text.starts_with(short))
    })
}

/// What is said of a key that is no flag.
fn unknown(command: &Command, key: &str) -> String {
    if OF_THE_CALL.contains(&key) {
        return format!("`{key}` is of one call, not of a run: write --{key} on the command line");
    }
    if let Some(lead) = unknown_flags::lead(&format!("--{key}")) {
        return format!("there is no flag `{key}`: {lead}");
    }
    let likeness = |name: &str| strsim::jaro_winkler(name, key);
    let all = command.get_arguments().filter_map(Arg::get_long);
    match all.max_by(|one, other| likeness(one).total_cmp(&likeness(other))) {
        Some(name) if likeness(name) > 0.7 => {
            format!("there is no flag `{key}`: is it `{name}`?")
        }
        _ => format!("there is no flag `{key}`: `nnz {} --help` lists them", command.get_name()),
    }
}

/// The texts of a flag, once for each time that it is given; `None` is the flag alone.
fn texts(arg: &Arg, value: &Value) -> Result<Vec<Option<String>>, String> {
    let takes_values = arg.get_action().takes_values();
    let may_be_alone = arg.get_num_args().is_none_or(|range| range.min_values() == 0);
    let is_list = matches!(arg.get_action(), ArgAction::Append);
    match value {
        Value::Boolean(false) if may_be_alone => Ok(Vec::new()),
        Value::Boolean(true) if may_be_alone => Ok(vec![None]),
        _ if !takes_values => Err(format!("is true or false, not {value}")),
        Value::Array(values) if is_list => {
            values.iter().map(|value| text(value).map(Some)).collect()
        }
        Value::Table(pairs) => {
            let pair = |(name, value)| Ok(format!("{name}={}", text(value)?));
            let pairs: Result<Vec<String>, String> = pairs.iter().map(pair).collect();
            let pairs = pairs?;
            let of_all = || vec![Some(pairs.join(","))];
            Ok(if is_list { pairs.into_iter().map(Some).collect() } else { of_all() })
        }
        value => Ok(vec![Some(text(value)?)]),
    }
}

/// A value as on the command line.
fn text(value: &Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Integer(number) => Ok(number.to_string()),
        Value::Float(number) => Ok(number.to_string()),
        other => Err(format!("takes one text or number, not {other}")),
    }
}

/// The file that repeats a run, which is written beside its model.
#[derive(Debug)]
pub(crate) struct RunFile {
    model: PathBuf,
    text: String,
}

impl RunFile {
    /// That of a run which saves its model: every flag that was given.
    ///
    /// # Errors
    ///
    /// A file of that name that `nnz train` has not written, and would be lost.
    pub(crate) fn of(
        command: &Command,
        arguments: &Arguments,
        matches: &ArgMatches,
    ) -> Result<Option<Self>, Failure> {
        let Some(model) = arguments.save.clone() else { return Ok(None) };
        let path = beside(&model, ENDING);
        if fs::read_to_string(&path).is_ok_and(|text| !text.starts_with(WRITTEN)) {
            return Err(format!(
                "--save: `{0}` is not written by `nnz train`, and would be lost: rename it, or save the model elsewhere",
                path.display()
            )
            .into());
        }
        let version = env!("CARGO_PKG_VERSION");
        let text = format!(
            "{WRITTEN} {version}: `nnz train --config` and the name of this file repeats the run.\n{}",
            table(command, matches)?
        );
        Ok(Some(RunFile { model, text }))
    }

    /// Writes it, unless the model went into a pipe or a device.
    pub(crate) fn write(&self) -> Result<(), Failure> {
        if self.model.is_file() {
            let path = beside(&self.model, ENDING);
            replace_file(&path, |writer| writer.write_all(self.text.as_bytes())).map_err(
                |error| {
                    format!(
                        "`{}`, which would repeat the run: {error}: the model itself is saved",
                        path.display()
                    )
                },
            )?;
        }
        Ok(())
    }
}

/// The flags that were given, by their names.
fn table(command: &Command, matches: &ArgMatches) -> Result<Table, Failure> {
    let mut table = Table::new();
    for arg in command.get_arguments() {
        let id = arg.get_id().as_str();
        let is_given = matches.value_source(id) == Some(ValueSource::CommandLine);
        let Some(name) = arg.get_long().filter(|_| is_given && !OF_THE_CALL.contains(&id)) else {
            continue;
        };
        let value = if arg.get_action().takes_values() {
            let raw = matches.get_raw(id).into_iter().flatten();
            let mut values = raw.map(|raw| value(arg, raw)).collect::<Result<Vec<_>, _>>()?;
            if values.len() == 1 { values.remove(0) } else { Value::Array(values) }
        } else {
            Value::Boolean(true)
        };
        table.insert(name.to_owned(), value);
    }
    Ok(table)
}

/// A value of the command line: a number where it is the same text again, or the flag's value is a
/// number of the same bits.
fn value(arg: &Arg, raw: &OsStr) -> Result<Value, Failure> {
    let text = raw.to_str().ok_or_else(|| {
        let name = arg.get_id();
        format!(
            "--{name}: `{}` is no UTF-8, which a file that repeats the run needs",
            raw.display()
        )
    })?;
    let integer = text.parse::<i64>().ok().filter(|number| number.to_string() == text);
    let is_number = arg.get_value_parser().type_id() == TypeId::of::<f64>();
    let float = || text.parse::<f64>().ok().filter(|_| is_number);
    Ok(match integer.map(Value::Integer).or_else(|| float().map(Value::Float)) {
        Some(number) => number,
        None => Value::String(text.to_owned()),
    })
}
