//! Batches are copied to a GPU while it computes, in an order that events keep, and what fails on
//! the way is named.

use crate::Logistic;
use crate::device::{
    Wait, fail, gpu, is_real, leave_out, limit_memory, place_of_freed_host_memory,
};
use nnz::core::update_rules::UpdateRule;
use nnz::data::{Batch, BatchOptions, Batches, DataError, DataSource, Order, Position, synthetic};
use nnz::device::cuda::CudaError;
use nnz::model::{ModelError, OnGpu};
use nnz::optimizer::Updater;
use nnz::prelude::*;
use nnz::training::{BatchHook, EpochTotals, fit_epoch};
use std::cell::RefCell;
use std::ops::ControlFlow;

graph! {
    /// A launch for each value.
    model LogisticOff {
        fuse = off;
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        param b: dense[1] = Zeros;
        let score = dot(x, w) + b;
        loss logistic(score, y);
    }

    /// A factorization machine.
    pub model Machine {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        param v: row_sparse[d, k] = Normal { mean: 0.0, std: 0.1 };
        let score = dot(x, w) + pairwise_interaction(x, v);
        loss logistic(score, y);
    }
}

const ROWS: usize = 150;
pub(crate) const COLUMNS: usize = 80;
pub(crate) const OPTIONS: BatchOptions = BatchOptions {
    // The last one is smaller.
    batch_size: 16,
    order: Order::Shuffled { seed: 5 },
    last_batch: nnz::data::LastBatch::Short,
    labels: nnz::data::Labels::Required,
};

pub(crate) fn data() -> Dataset {
    synthetic::click_log(ROWS, COLUMNS, 6, 1).unwrap()
}

pub(crate) fn model() -> OnGpu<Logistic> {
    OnGpu::new(&Logistic::new(dims! { d: COLUMNS }, Seed(3)).unwrap(), &gpu()).unwrap()
}

fn updater(model: &OnGpu<Logistic>) -> Updater<AdaGrad, f32> {
    Updater::for_model(AdaGrad { learning_rate: 0.1, ..AdaGrad::default() }, model).unwrap()
}

fn bits(model: OnGpu<Logistic>) -> Vec<u32> {
    let model = model.into_host().unwrap();
    model.w.values().iter().chain(model.b.values()).map(|value| value.to_bits()).collect()
}

/// Two epochs, of which nothing is known before it is needed.
fn step_by_step(max_norm: Option<f64>) -> Vec<u32> {
    let (data, mut model) = (data(), model());
    let mut updater = updater(&model);
    let mut batches = data.batches(Logistic::INPUTS, &OPTIONS).unwrap();
    for epoch in 0..2 {
        batches.start_epoch(epoch).unwrap();
        while let Some(batch) = batches.next_batch().unwrap() {
            let batch = model.bind(&batch).unwrap();
            match max_norm {
                None => model.train_step(&batch, &mut updater).unwrap(),
                Some(max_norm) => model.clipped_step(&batch, &mut updater, max_norm).unwrap(),
            };
        }
        updater.flush_model(&mut model).unwrap();
    }
    bits(model)
}

/// Two epochs of the training loop.
fn fitted<H: BatchHook<OnGpu<Logistic>>>(hook: &mut H) -> Result<Vec<u32>, Error> {
    let (data, mut model) = (data(), model());
    let mut updater = updater(&model);
    let mut batches = data.batches(Logistic::INPUTS, &OPTIONS)?;
    for epoch in 0..2 {
        let totals = fit_epoch(&mut model, &mut updater, &mut batches, epoch, hook)?;
        assert_eq!((totals.n_rows, totals.n_batches), (ROWS as u64, 10));
    }
    Ok(bits(model))
}

/// Looks after each third step, and evaluates a batch then.
struct Pausing<'d> {
    data: &'d Dataset,
    pauses: Vec<u64>,
}

impl BatchHook<OnGpu<Logistic>> for Pausing<'_> {
    fn sees_steps(&self) -> bool {
        false
    }

    fn steps_to_pause(&self, totals: &EpochTotals) -> u64 {
        3 - totals.n_batches % 3
    }

    fn sees_gradients(&self, _: &EpochTotals) -> bool {
        true
    }

    fn pause<R: UpdateRule>(
        &mut self,
        model: &mut OnGpu<Logistic>,
        _: &mut Updater<R, f32>,
        position: Position,
        _: &EpochTotals,
    ) -> Result<ControlFlow<()>, Error> {
        self.pauses.push(position.batch);
        let options = BatchOptions { batch_size: ROWS, ..BatchOptions::default() };
        let mut all = self.data.batches(Logistic::INPUTS, &options)?;
        if let Some(batch) = all.next_batch()? {
            let batch = model.bind(&batch)?;
            assert_eq!(model.forward(&batch)?[0].values().len(), ROWS);
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// Looks at each batch.
struct Looking {
    n_rows: usize,
}

impl BatchHook<OnGpu<Logistic>> for Looking {
    fn after_step<'b, B: Batch<'b, f32>>(
        &mut self,
        _: &OnGpu<Logistic>,
        batch: &B,
        _: f64,
    ) -> Result<(), Error> {
        self.n_rows += batch.n_rows();
        Ok(())
    }
}

/// A norm that is met.
struct Clipped;

impl BatchHook<OnGpu<Logistic>> for Clipped {
    fn sees_steps(&self) -> bool {
        false
    }

    fn max_norm(&self) -> Option<f64> {
        Some(0.01)
    }
}

#[test]
fn looking_ahead_changes_no_bit() {
    let expected = step_by_step(None);
    assert_eq!(fitted(&mut ()).unwrap(), expected);
    let data = data();
    let mut pausing = Pausing { data: &data, pauses: Vec::new() };
    assert_eq!(fitted(&mut pausing).unwrap(), expected);
    assert_eq!(pausing.pauses, [3, 6, 9, 3, 6, 9]);
    let mut looking = Looking { n_rows: 0 };
    assert_eq!(fitted(&mut looking).unwrap(), expected);
    assert_eq!(looking.n_rows, 2 * ROWS);
    let clipped = step_by_step(Some(0.01));
    assert_ne!(clipped, expected);
    assert_eq!(fitted(&mut Clipped).unwrap(), clipped);
}

/// Batches, and steps, in the order in which they are read and done. Ends with an error.
struct Logged<'l, B> {
    batches: B,
    log: &'l RefCell<Vec<String>>,
}

impl<B: Batches<f32>> Batches<f32> for Logged<'_, B> {
    type Batch<'b>
        = B::Batch<'b>
    where
        Self: 'b;

    fn seek(&mut self, position: Position) -> nnz::data::Result<()> {
        self.batches.seek(position)
    }

    fn next_batch(&mut self) -> nnz::data::Result<Option<B::Batch<'_>>> {
        let Position { batch, .. } = self.batches.position();
        self.log.borrow_mut().push(format!("batch {batch}"));
        if batch == 3 {
            return Err(DataError::ZeroBatchSize.into());
        }
        self.batches.next_batch()
    }

    fn position(&self) -> Position {
        self.batches.position()
    }

    fn n_batches(&self) -> Option<u64> {
        self.batches.n_batches()
    }
}

struct Steps<'l>(&'l RefCell<Vec<String>>);

impl BatchHook<OnGpu<Logistic>> for Steps<'_> {
    fn sees_steps(&self) -> bool {
        false
    }

    fn after_steps(&mut self, _: &OnGpu<Logistic>, n_steps: u64) -> Result<(), Error> {
        self.0.borrow_mut().push(format!("{n_steps} done"));
        Ok(())
    }
}

#[test]
fn the_next_batch_is_read_during_a_step_and_its_error_is_said_after_it() {
    let (data, mut model, log) = (data(), model(), RefCell::default());
    let mut updater = updater(&model);
    let batches = data.batches(Logistic::INPUTS, &OPTIONS).unwrap();
    let mut batches = Logged { batches, log: &log };
    let found = fit_epoch(&mut model, &mut updater, &mut batches, 0, &mut Steps(&log));
    assert!(matches!(found, Err(Error::Data(DataError::ZeroBatchSize))), "{found:?}");
    let log = log.borrow();
    let expected = ["batch 0", "batch 1", "1 done", "batch 2", "1 done", "batch 3", "1 done"];
    assert_eq!(*log, expected);
    // All three are in the model.
    assert_eq!(updater.clock(), 3);
    assert!(model.into_host().unwrap().w.values().iter().any(|weight| *weight != 0.0));
}

#[test]
fn a_wait_that_is_missing_is_seen_by_the_emulation() {
    if is_real() {
        return;
    }
    let expected = step_by_step(None);
    for waits in [Wait::Kernels, Wait::Copies] {
        leave_out(waits);
        let found = fitted(&mut ());
        leave_out(Wait::Nothing);
        assert!(found.is_err() || found.is_ok_and(|bits| bits != expected), "{waits:?}");
    }
    assert_eq!(fitted(&mut ()).unwrap(), expected);

    // The host waits for copies that nobody has waited for, before there is a larger block.
    let data = data();
    let step_on_the_second = |waits| {
        let mut model = model();
        let mut updater = updater(&model);
        for batch_size in [16, ROWS] {
            let options = BatchOptions { batch_size, ..OPTIONS };
            let mut batches = data.batches(Logistic::INPUTS, &options).unwrap();
            let batch = batches.next_batch().unwrap().unwrap();
            leave_out(waits);
            let taken = model.take_batch(&model.bind(&batch)?);
            leave_out(Wait::Nothing);
            taken?;
        }
        model.step_on_taken(&mut updater, None, |_| ())
    };
    assert!(step_on_the_second(Wait::Nothing).is_ok());
    assert!(step_on_the_second(Wait::Host).is_err());
}

/// Tests run side by side, so that a copy from freed memory would read what another test has put
/// there, and be right.
#[test]
fn the_emulation_gives_no_place_of_host_memory_twice() {
    if is_real() {
        return;
    }
    let _gpu = gpu();
    let mut places: Vec<_> = (0..100).map(|_| place_of_freed_host_memory(5000)).collect();
    places.sort_unstable();
    places.dedup();
    assert_eq!(places.len(), 100);
}

#[test]
fn what_fails_while_steps_go_on_is_named_by_the_next_one_that_waits() {
    if is_real() {
        return;
    }
    let data = data();
    let mut batches = data.batches(Logistic::INPUTS, &OPTIONS).unwrap();
    let batch = batches.next_batch().unwrap().unwrap();
    let step = |failing: Option<&std::ffi::CStr>| {
        let mut model = model();
        let mut updater = updater(&model);
        let batch = model.bind(&batch).unwrap();
        model.train_step(&batch, &mut updater).unwrap();
        if let Some(failing) = failing {
            fail(failing);
        }
        let found = model.train_step(&batch, &mut updater);
        (found, model.train_step(&batch, &mut updater))
    };
    let (first, second) = step(None);
    assert!(first.is_ok() && second.is_ok());

    // Of the loss, which the step waits for.
    let (first, _) = step(Some(c"linear_rows"));
    let Err(nnz::model::Error::Cuda(CudaError::Kernel { kernels, copies, .. })) = &first else {
        panic!("{first:?}")
    };
    assert!(kernels.contains(&"linear_rows"), "{first:?}");
    assert_eq!(**copies, ["x", "y"]);
    let text = first.unwrap_err().to_string();
    assert!(text.contains("`linear_rows`") && text.contains("a copy of `x`, `y`"), "{text}");

    // Of the update, which nobody waits for before the next step.
    let (first, second) = step(Some(c"update_of_sums"));
    assert!(first.is_ok());
    let Err(nnz::model::Error::Cuda(CudaError::Kernel { kernels, .. })) = &second else {
        panic!("{second:?}")
    };
    assert!(kernels.contains(&"update_of_sums"), "{second:?}");

    let (first, second) = step(Some(c"copy"));
    let Err(nnz::model::Error::Cuda(CudaError::Kernel { copies, .. })) = &first else {
        panic!("{first:?}")
    };
    assert_eq!(**copies, ["x", "y"]);
    assert!(second.is_err());

    // A call that is refused changes nothing.
    let (first, second) = step(Some(c"call"));
    let text = first.unwrap_err().to_string();
    assert_eq!(text, "`x`, `y` could not be copied to the GPU: CUDA_ERROR_INVALID_VALUE");
    assert!(second.is_ok());
}

#[test]
fn a_step_needs_a_batch_that_was_taken() {
    let data = data();
    let mut batches = data.batches(Logistic::INPUTS, &OPTIONS).unwrap();
    let batch = batches.next_batch().unwrap().unwrap();
    let mut model = model();
    let mut on_gpu = updater(&model);
    let batch = model.bind(&batch).unwrap();
    let missing = |found: nnz::model::Result<f64>| {
        matches!(
            found,
            Err(nnz::model::Error::Model(ModelError::NoBatchTaken { model: "Logistic" }))
        )
    };
    assert!(missing(model.step_on_taken(&mut on_gpu, None, |_| ())));
    model.take_batch(&batch).unwrap();
    // Which others do not disturb.
    let before = model.loss(&batch).unwrap();
    assert_eq!(model.step_on_taken(&mut on_gpu, None, |_| ()).unwrap(), before);
    assert!(missing(model.step_on_taken(&mut on_gpu, None, |_| ())));
    let mut host = Logistic::new(dims! { d: COLUMNS }, Seed(3)).unwrap();
    let mut on_host = Updater::for_model(Sgd::default(), &host).unwrap();
    assert!(!Logistic::TAKES_BATCHES && host.take_batch(&batch).is_err());
    assert!(missing(host.step_on_taken(&mut on_host, None, |_| ())));
}

/// What a training loop asks the GPU's memory for after an epoch.
fn allocates_nothing_more<M: Model<Element = f32>>(mut model: M, hook: &mut impl BatchHook<M>) {
    let data = data();
    let rule = AdaGrad { learning_rate: 0.1, ..AdaGrad::default() };
    let mut updater = Updater::for_model(rule, &model).unwrap();
    let options = BatchOptions { order: Order::Sequential, ..OPTIONS };
    let mut batches = data.batches(M::INPUTS, &options).unwrap();
    fit_epoch(&mut model, &mut updater, &mut batches, 0, hook).unwrap();
    limit_memory(0);
    let found = fit_epoch(&mut model, &mut updater, &mut batches, 1, hook);
    limit_memory(usize::MAX);
    found.unwrap();
}

#[test]
fn a_second_epoch_allocates_nothing_on_the_gpu() {
    if is_real() {
        return;
    }
    allocates_nothing_more(model(), &mut ());
    allocates_nothing_more(model(), &mut Clipped);
    allocates_nothing_more(model(), &mut Looking { n_rows: 0 });
    let unfused = LogisticOff::new(dims! { d: COLUMNS }, Seed(3)).unwrap();
    allocates_nothing_more(OnGpu::new(&unfused, &gpu()).unwrap(), &mut ());
    let machine = Machine::new(dims! { d: COLUMNS, k: 4 }, Seed(3)).unwrap();
    allocates_nothing_more(OnGpu::new(&machine, &gpu()).unwrap(), &mut ());
}
