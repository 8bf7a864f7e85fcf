//! What is kept of a run: checkpoints to go on from, and the best model.

use super::arguments::{Arguments, Watched};
use super::clipping::Clipping;
use super::run::Run;
use super::state;
use crate::Failure;
use crate::files;
use crate::input::DataFiles;
use crate::models::notes::{CLIP, note_of_clip};
use crate::report::tell;
use clap::ValueEnum;
use nnz::core::update_rules::UpdateRule;
use nnz::data::{DataSource, IdMap};
use nnz::prelude::*;
use nnz::training::{Callback, EpochReport, FitReport, Moment, Watch};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// Refuses files that cannot be kept, or would be lost, before any data is read.
pub(crate) fn check(arguments: &Arguments) -> Result<(), Failure> {
    let (save, run) = (&arguments.save, &arguments.checkpoint);
    let mut read = arguments.reading.files([&arguments.data].into_iter().chain(&arguments.test));
    read.extend(arguments.test_labels.clone());
    let saved = save.iter().map(|path| ("--save", path));
    let state = state::to_save(arguments);
    let saved = saved.chain(state.iter().map(|path| ("--save-state", path)));
    for (flag, path) in saved.chain(run.iter().map(|path| ("--checkpoint", path))) {
        files::check_not_read(flag, path, read.iter().map(PathBuf::as_path))?;
        files::check_writable(flag, path)?;
    }
    if let (Some(save), Some(run)) = (save, run)
        && std::path::absolute(save)? == std::path::absolute(run)?
    {
        let path = run.display();
        return Err(format!("--checkpoint and --save are one file, `{path}`: name two").into());
    }
    watch(arguments)?;
    resumed(arguments)?;
    Ok(())
}

/// The file that the run goes on from, if it is not a new one.
pub(crate) fn resumed(arguments: &Arguments) -> Result<Option<&Path>, Failure> {
    let Some(path) = arguments.checkpoint.as_deref() else { return Ok(None) };
    match (arguments.resume, path.try_exists()?) {
        (true, true) => Ok(Some(path)),
        (false, false) => Ok(None),
        (true, false) => Err(format!(
            "--resume: there is no `{}` to go on from: leave --resume out to begin a run",
            path.display()
        )
        .into()),
        (false, true) if !path.is_file() => Ok(None),
        (false, true) => Err(format!(
            "--checkpoint: `{}` is there already and would be lost: go on with its run by --resume, remove it, or name another file",
            path.display()
        )
        .into()),
    }
}

/// What the run is ended by, and the model kept for.
fn watch(arguments: &Arguments) -> Result<Watch, Failure> {
    let watched = arguments.watch.unwrap_or(Watched::Loss);
    let name = name_of(watched);
    let metrics = arguments.model.metrics(None);
    let known: Vec<&str> = metrics.iter().map(|metric| metric.name()).collect();
    match watched {
        Watched::Loss => Ok(Watch::default()),
        _ if !known.contains(&&name[..]) => Err(format!(
            "--watch {name}: that is not measured of this model: watch loss or {}",
            known.join(" or ")
        )
        .into()),
        Watched::Rmse => Ok(Watch::smallest(name)),
        Watched::Accuracy | Watched::Auc => Ok(Watch::largest(name)),
    }
}

fn name_of(watched: Watched) -> String {
    watched.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

/// Has a trainer keep what the command line asks for, and refuse to go on with a run on other data.
pub(crate) fn attach<'a, R: UpdateRule, E>(
    mut trainer: Trainer<'a, R, E>,
    run: &'a Run<'a>,
) -> Result<Trainer<'a, R, E>, Failure> {
    let arguments = run.arguments;
    let size = |files: &DataFiles| -> std::io::Result<u64> {
        let sizes = files.paths().iter().map(|path| path.metadata().map(|there| there.len()));
        sizes.sum()
    };
    trainer = trainer.setting("bytes of the data", size(&arguments.data)?.to_string());
    for (name, note) in run.notes {
        trainer = trainer.setting(*name, &note[..]);
    }
    if let Some(clip) = run.clipping.setting() {
        trainer = trainer.setting(CLIP, clip);
    }
    if let Some(tolerance) = arguments.tolerance {
        let patience = arguments.patience.unwrap_or(1);
        trainer = trainer.setting("tolerance", format!("{tolerance} in {patience} epochs"));
        trainer = trainer.callback(EarlyStopping::patience(patience).min_delta(tolerance));
    }
    let mut watched = "nothing".to_owned();
    if let Some(patience) = arguments.patience {
        let watch = watch(arguments)?;
        let name = name_of(arguments.watch.unwrap_or(Watched::Loss));
        watched = match &arguments.test {
            Some(test) => format!("{name} on {} bytes", size(test)?),
            None => format!("{name} on {:?} of the data", arguments.holdout),
        };
        trainer = trainer.callback(EarlyStopping::patience(patience).watch(watch.clone()));
        if let Some(path) = &arguments.save {
            watched += &format!(", for {}", path.display());
            let mut best = BestModel::new(path).watch(watch);
            for (name, note) in run.notes {
                best = best.note(*name, &note[..]);
            }
            for (name, ids) in ids_by_name(run.ids) {
                best = best.ids(name, ids.clone());
            }
            trainer = trainer.callback(Best { best, clipping: run.clipping });
        }
    }
    // The best model so far is in the file of the run before.
    trainer = trainer.setting("what --patience watches", watched);
    if let (Some(_), Some(test)) = (arguments.patience, run.test)
        && let Some(fingerprint) = test.fingerprint()?
    {
        let fingerprint = format!("{fingerprint:016x}");
        trainer = trainer.setting("fingerprint of the test data", fingerprint);
    }
    if let Some(path) = &arguments.checkpoint {
        let mut kept = Checkpoints::new(path).every_epochs(arguments.checkpoint_every.unwrap_or(1));
        if let Some(batches) = arguments.checkpoint_batches {
            kept = kept.every_batches(batches);
        }
        trainer = trainer.callback(kept);
    }
    Ok(trainer)
}

/// The best model, with the note of what its predictions are cut to: of a stream that is known
/// after the first epoch.
struct Best<'a> {
    best: BestModel,
    clipping: &'a Clipping<'a>,
}

impl Callback for Best<'_> {
    fn watches(&self) -> Option<&str> {
        self.best.watches()
    }

    fn begin(&mut self, epoch: u64) {
        self.best.begin(epoch);
    }

    fn epoch(&mut self, report: &EpochReport, moment: &Moment<'_>) -> nnz::Result<ControlFlow<()>> {
        if let Some((name, note)) = self.clipping.range().map(note_of_clip) {
            self.best.set_note(name, note);
        }
        self.best.epoch(report, moment)
    }

    fn state(&self) -> Option<String> {
        self.best.state()
    }

    fn restore(&mut self, state: &str) -> bool {
        self.best.restore(state)
    }

    fn replay(&mut self, report: &EpochReport) -> ControlFlow<()> {
        self.best.replay(report)
    }
}

/// Draws the run if that is asked for, and prints to the error stream its warnings, and that it
/// ended before its last epoch. A picture that cannot be written is a warning: the model is still
/// to be saved.
pub(crate) fn tell_end(report: &FitReport, arguments: &Arguments) {
    if let Some(Err(error)) = arguments.plot.as_ref().map(|path| report.save_svg(path)) {
        tell(format_args!("warning: --plot: {error}"));
    }
    for warning in &report.warnings {
        tell(format_args!("warning: {warning}"));
    }
    if let Some(last) = report.last().filter(|_| report.stopped) {
        let epoch = last.epoch + 1;
        let why = match arguments.tolerance {
            Some(tolerance) => format!("the loss is no lower by {tolerance}"),
            None => "no better on the test data".to_owned(),
        };
        tell(format_args!("stopped after epoch {epoch}: {why}"));
    }
}

/// What the numbers of users and items stand for, for the model's file.
pub(crate) fn ids_by_name(ids: Option<&(IdMap, IdMap)>) -> Vec<(&'static str, &IdMap)> {
    ids.into_iter().flat_map(|(users, items)| [("user", users), ("item", items)]).collect()
}
