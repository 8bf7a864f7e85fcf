//! Runs that are ended and resumed, against runs that are not.

use super::{D, data, linear::Linear};
use crate::metric::{Auc, Mse, TopKAccuracy};
use crate::schedule::{Schedule, ScheduleUnit};
use crate::training::checkpoint::{self, CheckpointError};
use crate::training::*;
use nnz_data::DataSource;
use nnz_data::libsvm::{IndexBase, Reader};
use nnz_data::stream::Stream;
use nnz_optim::{Adam, Ftrl, GroupAdaGrad, LazyUpdate, Sgd, UpdateRule};
use proptest::prelude::*;
use sparse_core::element::Float;
use std::cell::Cell;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// A file of its own for each test, removed in the end.
pub(super) struct File(pub(super) PathBuf);

impl File {
    pub(super) fn new(test: &str) -> File {
        let name = format!("nnz-resume-{test}-{}.safetensors", std::process::id());
        File(std::env::temp_dir().join(name))
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Saves every so many batches, and ends the run after so many of these.
struct SaveAndStop<'a> {
    path: &'a Path,
    every: u64,
    left: &'a Cell<u64>,
}

impl Callback for SaveAndStop<'_> {
    fn epoch(&mut self, _: &EpochReport, moment: &Moment<'_>) -> crate::Result<ControlFlow<()>> {
        self.batch(moment)
    }

    fn next_batch(&self, n_batches: u64) -> Option<u64> {
        Some((n_batches / self.every + 1) * self.every)
    }

    fn batch(&mut self, moment: &Moment<'_>) -> crate::Result<ControlFlow<()>> {
        if self.left.get() == 0 {
            return Ok(ControlFlow::Break(()));
        }
        self.left.set(self.left.get() - 1);
        moment.save_run(self.path)?;
        Ok(match self.left.get() {
            0 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        })
    }
}

fn trainer<'a, R: UpdateRule>(rule: &R, batch_size: usize) -> Trainer<'a, R> {
    let by_step = Schedule::InverseScaling { decay: 0.01, power: 0.5, unit: ScheduleUnit::Step };
    let trainer = Trainer::new(rule.clone()).batch_size(batch_size).epochs(3);
    let trainer = trainer.metric(Mse).metric(Auc).progress(Progress::Silent);
    // Rates that change at every step, and rates that do not.
    if batch_size == 1 || R::ONE_RATE { trainer } else { trainer.schedule(by_step) }
}

fn bits<T: Float>(model: &Linear<T>) -> Vec<u64> {
    let values = model.w.values().iter().chain(model.b.values());
    values.map(|value| value.as_f64().to_bits()).collect()
}

/// All of a report but the time it took.
fn timeless(mut report: FitReport) -> FitReport {
    report.epochs.iter_mut().for_each(|epoch| epoch.seconds = 0.0);
    report
}

fn check<R: UpdateRule>(rule: &R, test: &str) {
    check_on(&data::<f64>(41), rule, test, &[(1, 17, 1), (1, 50, 2), (7, 2, 1), (7, 4, 3)]);
}

/// Ends a run after `n_saves` checkpoints of one each `every` batches and resumes it, over and
/// over: of each of `cuts`, after the batch size.
fn check_on<T: Float, R: UpdateRule>(
    data: &impl DataSource<T>,
    rule: &R,
    test: &str,
    cuts: &[(usize, u64, u64)],
) {
    for &(batch_size, every, n_saves) in cuts {
        let mut whole = Linear::<T>::new(D);
        let expected = trainer(rule, batch_size).fit(&mut whole, data).unwrap();
        let file = File::new(&format!("{test}-{batch_size}-{every}"));
        let mut report = None;
        let mut resumed = Linear::<T>::new(D);
        for part in 0.. {
            assert!(part < 60, "no progress");
            // Another process would begin with a model of its own.
            resumed = Linear::<T>::new(D);
            let left = Cell::new(n_saves);
            let stop = SaveAndStop { path: &file.0, every, left: &left };
            let mut trainer = trainer(rule, batch_size).callback(stop);
            let ended = match part {
                0 => trainer.fit(&mut resumed, data),
                _ => trainer.resume(&mut resumed, data, &file.0),
            };
            let ended = ended.unwrap();
            let is_done = ended.epochs.len() == 3 && !ended.stopped && left.get() > 0;
            report = Some(ended);
            if is_done || checkpoint_epoch(&file.0) == 3 {
                break;
            }
        }
        let name = format!("{rule:?}, batches of {batch_size}, every {every}");
        assert_eq!(bits(&resumed), bits(&whole), "{name}");
        assert_eq!(timeless(report.unwrap()), timeless(expected), "{name}");
    }
}

/// The epoch that a saved run is in.
fn checkpoint_epoch(path: &Path) -> u64 {
    let text = fs::read(path).unwrap();
    let text = String::from_utf8_lossy(&text);
    let (_, rest) = text.split_once("\"position\":{\"epoch\":").unwrap();
    rest.split(',').next().unwrap().parse().unwrap()
}

#[test]
fn a_resumed_run_is_the_run_to_the_bit() {
    let sgd = Sgd { learning_rate: 0.05, momentum: 0.9, weight_decay: 0.01, ..Sgd::default() };
    check(&sgd, "exact");
    check(&Sgd { lazy_update: LazyUpdate::Touched, ..sgd.clone() }, "touched");
    check(&Sgd { lazy_update: LazyUpdate::Dense, ..sgd }, "dense");
    check(&Ftrl { learning_rate: 0.5, l1: 0.1, l2: 0.1, ..Ftrl::default() }, "ftrl");
    // Steps that count how many there were, and states of rows.
    check(&Adam { lazy_update: LazyUpdate::Touched, ..Adam::default() }, "adam");
    check(&GroupAdaGrad::default(), "group");
}

/// Rows that wait when a run is saved are caught up with to the same bits.
#[test]
fn n16_a_resumed_run_by_adam_is_the_run_to_the_bit() {
    check(&Adam::default(), "adam-exact");
}

/// Of a file that does not fit into the buffer, in an order that follows from seed and epoch.
#[test]
fn a_run_on_a_stream_is_resumed_to_the_bit() {
    let row = |i: usize| {
        let columns = [1 + i % 3, 4 + i % 5];
        let entries =
            columns.map(|column| format!(" {column}:{}", (i * column % 17) as f64 / 16.0));
        format!("{}{}{}\n", i % 2, entries[0], entries[1])
    };
    let text: String = (0..4000).map(row).collect();
    let path = File(std::env::temp_dir().join(format!("nnz-resume-{}.svm", std::process::id())));
    fs::write(&path.0, text).unwrap();
    let format = Reader::new().index_base(IndexBase::One).n_features(D);
    let stream = Stream::new(format).files([&path.0]).buffer(1 << 20).open().unwrap();
    let sgd = Sgd { learning_rate: 0.05, momentum: 0.9, weight_decay: 0.01, ..Sgd::default() };
    check_on(&stream, &sgd, "stream", &[(32, 50, 2)]);
}

/// After an epoch nothing waits: the file is a model like any other. Within one it is refused as
/// such.
#[test]
fn a_checkpoint_of_a_run_is_a_model_after_an_epoch() {
    let data = data::<f64>(40);
    let rule = Sgd { momentum: 0.5, ..Sgd::default() };
    let file = File::new("model");
    let mut model = Linear::<f64>::new(D);
    trainer(&rule, 4).callback(Checkpoints::new(&file.0)).fit(&mut model, &data).unwrap();
    let mut loaded = Linear::<f64>::new(D);
    let metadata = checkpoint::load(&mut loaded, &file.0).unwrap();
    assert!(metadata.has_run() && metadata.is_settled);
    assert_eq!(bits(&loaded), bits(&model));
    // Nothing is left to do.
    let report = trainer(&rule, 4).resume(&mut loaded, &data, &file.0).unwrap();
    assert_eq!((report.epochs.len(), report.stopped), (3, false));
    assert_eq!(bits(&loaded), bits(&model));
    // More epochs than the run was to have.
    let report = trainer(&rule, 4).epochs(5).resume(&mut loaded, &data, &file.0).unwrap();
    let mut longer = Linear::<f64>::new(D);
    trainer(&rule, 4).epochs(5).fit(&mut longer, &data).unwrap();
    assert_eq!((report.epochs.len(), bits(&loaded)), (5, bits(&longer)));

    let left = Cell::new(1);
    let stop = SaveAndStop { path: &file.0, every: 3, left: &left };
    trainer(&rule, 4).callback(stop).fit(&mut Linear::<f64>::new(D), &data).unwrap();
    let before = bits(&loaded);
    let error = checkpoint::load(&mut loaded, &file.0).unwrap_err();
    let crate::Error::Checkpoint(CheckpointError::Unsettled { .. }) = error else {
        panic!("{error}");
    };
    assert_eq!(bits(&loaded), before);
}

/// Ends a run after three batches of its second epoch.
struct StopInEpoch;

impl Callback for StopInEpoch {
    fn next_batch(&self, n_batches: u64) -> Option<u64> {
        (n_batches < 3).then_some(3)
    }

    fn batch(&mut self, moment: &Moment<'_>) -> crate::Result<ControlFlow<()>> {
        Ok(match moment.position().epoch {
            0 => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        })
    }
}

/// By a callback after an epoch that is none of those to be saved, or between batches; the run goes
/// on from there to the same bits.
#[test]
fn a_run_is_saved_where_it_ends_whoever_ends_it() {
    let data = data::<f64>(40);
    let rule = Sgd { momentum: 0.5, ..Sgd::default() };
    let file = File::new("ended");
    let saved = || trainer(&rule, 4).epochs(5).callback(Checkpoints::new(&file.0).every_epochs(4));
    let mut whole = Linear::<f64>::new(D);
    trainer(&rule, 4).epochs(5).fit(&mut whole, &data).unwrap();
    let after_two = |report: &EpochReport| match report.epoch {
        0 => ControlFlow::Continue(()),
        _ => ControlFlow::Break(()),
    };
    let mut ended = Linear::<f64>::new(D);
    saved().callback(after_two).fit(&mut ended, &data).unwrap();
    assert_eq!(checkpoint_epoch(&file.0), 2);
    let mut loaded = Linear::<f64>::new(D);
    checkpoint::load(&mut loaded, &file.0).unwrap();
    assert_eq!(bits(&loaded), bits(&ended));

    let mut ended = Linear::<f64>::new(D);
    let report = saved().callback(StopInEpoch).fit(&mut ended, &data).unwrap();
    assert_eq!((report.stopped, checkpoint_epoch(&file.0)), (true, 1));
    saved().resume(&mut loaded, &data, &file.0).unwrap();
    assert_eq!((bits(&loaded), checkpoint_epoch(&file.0)), (bits(&whole), 5));
}

#[test]
fn other_settings_and_other_files_are_refused() {
    let (data, other_data) = (data::<f64>(40), data::<f64>(30));
    let rule = Sgd { momentum: 0.5, ..Sgd::default() };
    let file = File::new("settings");
    let left = Cell::new(1);
    let stop = SaveAndStop { path: &file.0, every: 3, left: &left };
    trainer(&rule, 4).callback(stop).fit(&mut Linear::<f64>::new(D), &data).unwrap();

    let mut model = Linear::<f64>::new(D);
    let mut refused = |mut trainer: Trainer<'_, Sgd>, data: &_| {
        let error = trainer.resume(&mut model, data, &file.0).unwrap_err().to_string();
        assert!(bits(&model).iter().all(|bits| *bits == 0), "{error}");
        let message = error.strip_prefix(&format!("{}: ", file.0.display()));
        message.map_or(error.clone(), str::to_owned)
    };
    let other = Sgd { momentum: 0.9, ..Sgd::default() };
    assert_eq!(
        refused(trainer(&other, 4), &data),
        "the run was made with `momentum` = 0.5, but here it is 0.9: resume it with the same"
    );
    assert!(refused(trainer(&rule, 5), &data).contains("`batch_size` = 4, but here it is 5"));
    assert!(refused(trainer(&rule, 4), &other_data).contains("`rows of the data` = 40"));
    assert!(refused(trainer(&rule, 4).shuffle(false), &data).contains("`order` = Shuffled"));
    assert!(refused(trainer(&rule, 4).schedule(Schedule::Constant), &data).contains("`schedule`"));
    assert!(refused(trainer(&rule, 4).decay_all(), &data).contains("`weight_decay_scale of b`"));
    let by_step = Schedule::InverseScaling { decay: 0.01, power: 0.5, unit: ScheduleUnit::Step };
    let measured_otherwise = Trainer::new(rule.clone()).batch_size(4).schedule(by_step);
    assert_eq!(
        refused(measured_otherwise.metric(Mse).metric(TopKAccuracy { k: 2 }), &data),
        "the run was made with `metrics` = [Mse, Auc], but here it is [Mse, TopKAccuracy { k: 2 }]: resume it with the same"
    );

    let mut wide = Linear::<f64>::new(D + 1);
    let error = trainer(&rule, 4).resume(&mut wide, &data, &file.0).unwrap_err().to_string();
    assert!(error.contains("parameter `w` has shape [20, 1] in the file and [21, 1]"), "{error}");
    let mut single = Linear::<f32>::new(D);
    let error = trainer(&rule, 4).resume(&mut single, &super::data::<f32>(40), &file.0);
    let error = error.unwrap_err().to_string();
    assert!(error.contains("`w` has elements of type f64 in the file and f32"), "{error}");
    let mut graph = Linear::<f64, 5>::new(D);
    let error = trainer(&rule, 4).resume(&mut graph, &data, &file.0).unwrap_err().to_string();
    assert!(error.contains("another graph"), "{error}");

    checkpoint::save(&Linear::<f64>::new(D), &file.0).unwrap();
    assert_eq!(
        refused(trainer(&rule, 4), &data),
        "holds the parameters of a model, but no run of training that could be resumed"
    );
}

/// What a run within an epoch is saved as, of a rule with everything: states, rows that wait, a
/// history, metrics.
fn saved_run(file: &File) -> (Sgd, Vec<u8>) {
    let rule = Sgd { momentum: 0.5, weight_decay: 0.01, ..Sgd::default() };
    let left = Cell::new(1);
    let stop = SaveAndStop { path: &file.0, every: 3, left: &left };
    trainer(&rule, 4).callback(stop).fit(&mut Linear::<f64>::new(D), &data::<f64>(40)).unwrap();
    (rule, fs::read(&file.0).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// A bit that flips, wherever, and a file that ends early: an error and the model as it was,
    /// or, where the bit means nothing, the run that was saved.
    #[test]
    fn damaged_runs_are_refused(place in 0.0..1.0f64, bit in 0..8u32, cut in any::<bool>()) {
        let file = File::new(&format!("damaged-{place}-{bit}"));
        let (rule, mut bytes) = saved_run(&file);
        let load = || {
            let mut model = Linear::<f64>::new(D);
            let mut updater = trainer(&rule, 4).updater(&model).unwrap();
            let run = checkpoint::load_run(&mut model, &mut updater, &file.0);
            (run.map(|run| (run.position, run.totals, run.metrics)), bits(&model), updater.clock())
        };
        let (expected, weights, clock) = load();
        let place = (place * bytes.len() as f64) as usize;
        if cut { bytes.truncate(place) } else { bytes[place] ^= 1 << bit }
        fs::write(&file.0, &bytes).unwrap();
        match load() {
            (Ok(run), loaded, steps) => {
                prop_assert!(!cut);
                prop_assert_eq!((run, loaded, steps), (expected.unwrap(), weights, clock));
            }
            (Err(error), loaded, steps) => {
                prop_assert!(loaded.iter().all(|bits| *bits == 0) && steps == 0, "{}", error);
            }
        }
    }
}

#[test]
fn warm_starts_take_what_there_is() {
    let file = File::new("warm");
    let mut taught = Linear::<f64>::new(D);
    taught.w.values_mut().fill(0.5);
    taught.b.values_mut().fill(0.25);
    checkpoint::save(&taught, &file.0).unwrap();
    // Another graph with the same parameters.
    let mut model = Linear::<f64, 7>::new(D);
    assert!(checkpoint::load(&mut model, &file.0).is_err());
    let options = checkpoint::LoadOptions::WARM_START;
    let loaded = checkpoint::load_with(&mut model, &file.0, options).unwrap();
    assert!(loaded.missing.is_empty() && loaded.unexpected.is_empty());
    assert_eq!((model.w.values()[3], model.b.values()[0]), (0.5, 0.25));
    // In memory, and shapes that differ.
    let mut copy = Linear::<f64, 8>::new(D);
    checkpoint::warm_start(&mut copy, &taught).unwrap();
    assert_eq!(copy.w.values(), taught.w.values());
    let error = checkpoint::warm_start(&mut Linear::<f64>::new(3), &taught).unwrap_err();
    assert!(error.to_string().contains("`w` has shape [20, 1]"), "{error}");
    let error = checkpoint::load_with(&mut Linear::<f64>::new(3), &file.0, options).unwrap_err();
    assert!(error.to_string().contains("`w` has shape [20, 1] in the file"), "{error}");
}

/// The file of a run does not grow with its epochs, and what watches them goes on as if it had seen
/// all.
#[test]
fn a_checkpoint_has_the_reports_of_the_last_epochs_alone() {
    const PATIENCE: u64 = 500;
    let data = data::<f64>(4);
    let file = File::new("reports");
    let trainer = |epochs| {
        Trainer::new(Sgd { learning_rate: 1e-9, ..Sgd::default() })
            .batch_size(4)
            .epochs(epochs)
            .progress(Progress::Silent)
            // Nothing becomes better by so much: the first epoch is the best.
            .callback(EarlyStopping::patience(PATIENCE).min_delta(1e-4))
            .callback(Checkpoints::new(&file.0).every_epochs(10_000))
    };
    let mut whole = Linear::<f64>::new(D);
    let expected = trainer(10_000).fit(&mut whole, &data).unwrap();
    assert_eq!((expected.epochs.len() as u64, expected.stopped), (PATIENCE + 1, true));
    let size = |epochs| {
        trainer(epochs).fit(&mut Linear::<f64>::new(D), &data).unwrap();
        fs::metadata(&file.0).unwrap().len()
    };
    let (short, long) = (size(260), size(400));
    assert!(long < short + short / 20, "{short} {long}");
    let mut resumed = Linear::<f64>::new(D);
    let report = trainer(10_000).resume(&mut resumed, &data, &file.0).unwrap();
    assert_eq!((bits(&resumed), report.stopped), (bits(&whole), true));
    assert_eq!(report.epochs.len(), checkpoint::KEPT_REPORTS + 101);
    let same = |(found, expected): (&EpochReport, &EpochReport)| {
        found.epoch == expected.epoch && found.loss.to_bits() == expected.loss.to_bits()
    };
    assert!(report.epochs.iter().rev().zip(expected.epochs.iter().rev()).all(same));
    // One that watches other things is told of what there is.
    let mut other = EarlyStopping::patience(3).watch(Watch::smallest("mse"));
    assert!(!other.restore(&EarlyStopping::patience(3).state().unwrap()));
    let state = other.state().unwrap();
    assert!(!other.restore("no state") && other.restore(&state));
    let mut best = BestModel::new("best");
    assert!(!best.restore(&state) && best.restore(&best.clone().state().unwrap()));
}
