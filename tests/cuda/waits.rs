//! How often the host waits for a GPU in a step, and that losses which are read late are those that
//! are read at once.

use crate::device::{Count, count, fail, gpu, is_real};
use crate::named::{self, Ratings, WideDeep};
use crate::uploads::{COLUMNS, Machine, OPTIONS, data, model};
use crate::{Logistic, LogisticOff};
use nnz::data::{Batches, DataSource};
use nnz::device::cuda::CudaError;
use nnz::model::OnGpu;
use nnz::optimizer::Updater;
use nnz::prelude::*;
use nnz::training::{TrainError, fit_epoch};

const STEPS: usize = 10;

fn sgd<M: Model<Element = f32>>(model: &M, learning_rate: f64) -> Updater<Sgd, f32> {
    let rule = Sgd { learning_rate, ..Sgd::default() };
    let mut updater = Updater::for_model(rule, model).unwrap();
    updater.set_records_outputs(false);
    updater
}

/// What some work waits for: all of a stream, and a place in one.
fn waits(work: impl FnOnce()) -> [usize; 2] {
    let counts = || [Count::StreamWaits, Count::EventWaits].map(count);
    let before = counts();
    work();
    let after = counts();
    [0, 1].map(|of| after[of] - before[of])
}

/// The losses of an epoch, one by one and late, hold to each other, as do the parameters. Returns
/// the waits of each step, of each that is begun, and of reading all losses of those.
fn steps<M: Model<Element = f32>>(host: &M, data: &Dataset) -> [Vec<[usize; 2]>; 3] {
    let mut found = [Vec::new(), Vec::new(), Vec::new()];
    let (mut now, mut late) =
        (OnGpu::new(host, &gpu()).unwrap(), OnGpu::new(host, &gpu()).unwrap());
    let (mut of_now, mut of_late) = (sgd(&now, 0.5), sgd(&late, 0.5));
    let mut expected = Vec::new();
    let mut batches = data.batches(M::INPUTS, &OPTIONS).unwrap();
    while let Some(batch) = batches.next_batch().unwrap() {
        let batch = now.bind(&batch).unwrap();
        // In memory that is there: the first step of a model asks for it.
        now.take_batch(&batch).unwrap();
        let step = || expected.push(now.step_on_taken(&mut of_now, None, |_| ()).unwrap());
        found[0].push(waits(step));
        late.take_batch(&batch).unwrap();
        let begin = || late.begin_step_on_taken(&mut of_late, None, |_| ()).unwrap();
        found[1].push(waits(begin));
    }
    let mut losses = Vec::new();
    found[2].push(waits(|| late.late_losses(&mut losses).unwrap()));
    let bits = |losses: &[f64]| losses.iter().map(|loss| loss.to_bits()).collect::<Vec<_>>();
    assert_eq!((losses.len(), bits(&losses)), (STEPS, bits(&expected)));
    late.late_losses(&mut losses).unwrap();
    assert_eq!(losses.len(), STEPS, "each is given once");
    let (now, late) = (now.into_host().unwrap(), late.into_host().unwrap());
    for (now, late) in now.parameters().iter().zip(late.parameters()) {
        assert_eq!(now.values(), late.values());
    }
    found
}

#[test]
fn a_fused_step_waits_for_nothing_but_a_loss_that_is_read() {
    let data = data();
    let logistic = steps(&Logistic::new(dims! { d: COLUMNS }, Seed(3)).unwrap(), &data);
    let machine = steps(&Machine::new(dims! { d: COLUMNS, k: 4 }, Seed(3)).unwrap(), &data);
    let deep = steps(&WideDeep::new(named::sizes::<WideDeep>(COLUMNS), Seed(3)).unwrap(), &data);
    let rated = named::rated(150);
    let ratings = steps(&Ratings::new(named::sizes::<Ratings>(COLUMNS), Seed(3)).unwrap(), &rated);
    let unfused = steps(&LogisticOff::new(dims! { d: COLUMNS }, Seed(3)).unwrap(), &data);
    if is_real() {
        return;
    }
    for [now, late, losses] in [logistic, machine, deep, ratings] {
        assert_eq!(now, [[0, 1]; STEPS]);
        assert_eq!(late, [[0, 0]; STEPS]);
        assert_eq!(losses, [[0, 1]]);
    }
    // How much memory a gradient that is made takes is waited for.
    let [_, late, _] = unfused;
    assert_eq!(late, [[1, 0]; STEPS]);
}

#[test]
fn an_epoch_has_the_losses_of_its_steps_and_ends_at_the_first_that_diverged() {
    let data = data();
    for learning_rate in [0.5, 1e39] {
        let mut one_by_one = model();
        let mut updater = sgd(&one_by_one, learning_rate);
        let mut batches = data.batches(Logistic::INPUTS, &OPTIONS).unwrap();
        let (mut sum, mut diverged) = (0.0, None);
        for at in 0..STEPS as u64 {
            let batch = batches.next_batch().unwrap().unwrap();
            let batch = one_by_one.bind(&batch).unwrap();
            let loss = one_by_one.train_step(&batch, &mut updater).unwrap();
            if !loss.is_finite() && diverged.is_none() {
                diverged = Some((at, loss.to_bits()));
            }
            sum += loss * batch.x.n_rows() as f64;
        }
        let mut there = model();
        let mut updater = sgd(&there, learning_rate);
        let mut batches = data.batches(Logistic::INPUTS, &OPTIONS).unwrap();
        let found = fit_epoch(&mut there, &mut updater, &mut batches, 0, &mut ());
        match (diverged, found) {
            (None, Ok(totals)) => assert_eq!(totals.loss_sum.to_bits(), sum.to_bits()),
            (Some(expected), Err(Error::Train(TrainError::Diverged { batch, loss, .. }))) => {
                assert_eq!((batch, loss.to_bits()), expected);
            }
            (_, found) => panic!("{found:?}"),
        }
        assert_eq!(diverged.is_some(), learning_rate > 1.0);
    }
}

#[test]
fn what_fails_in_a_step_that_nobody_waits_for_is_named_with_its_loss() {
    if is_real() {
        return;
    }
    let data = data();
    for kernel in [c"linear_rows", c"update_of_sums"] {
        let mut there = model();
        let mut updater = sgd(&there, 0.5);
        let mut batches = data.batches(Logistic::INPUTS, &OPTIONS).unwrap();
        let mut losses = Vec::new();
        for is_to_fail in [false, true, false] {
            let batch = batches.next_batch().unwrap().unwrap();
            let batch = there.bind(&batch).unwrap();
            there.take_batch(&batch).unwrap();
            if is_to_fail {
                fail(kernel);
            }
            there.begin_step_on_taken(&mut updater, None, |_| ()).unwrap();
        }
        let found = there.late_losses(&mut losses).unwrap_err();
        let nnz::model::Error::Cuda(CudaError::Kernel { kernels, .. }) = &found else {
            panic!("{found:?}")
        };
        assert!(kernels.contains(&kernel.to_str().unwrap()), "{found:?}");
        assert!(losses.is_empty());
    }
}
