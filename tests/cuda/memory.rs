//! What a model allocates on a GPU, and what becomes of it where there is no more.

use crate::device::{gpu, is_real, limit_memory};
use crate::{Logistic, near};
use nnz::data::{BatchOptions, Batches, DataSource, synthetic};
use nnz::device::cuda::CudaError;
use nnz::model::OnGpu;
use nnz::optimizer::Updater;
use nnz::prelude::*;
use nnz::training::checkpoint;

const SMALL: usize = 20;
const LARGE: usize = 100;

#[test]
fn a_step_allocates_for_its_largest_batch_and_a_model_survives_what_is_missing() {
    if is_real() {
        return;
    }
    let data: Dataset = synthetic::click_log(LARGE, 50, 6, 1).unwrap();
    let model = Logistic::new(dims! { d: 50 }, Seed(3)).unwrap();
    let mut there = OnGpu::new(&model, &gpu()).unwrap();
    let rule = AdaGrad { learning_rate: 0.1, ..AdaGrad::default() };
    let mut updater = Updater::for_model(rule, &there).unwrap();
    let mut step = |there: &mut OnGpu<Logistic>, batch_size: usize| {
        let options = BatchOptions { batch_size, ..BatchOptions::default() };
        let mut batches = data.batches(Logistic::INPUTS, &options).unwrap();
        let batch = batches.next_batch().unwrap().unwrap();
        let batch = there.bind(&batch).unwrap();
        there.train_step(&batch, &mut updater)
    };
    // There is room for two batches.
    step(&mut there, SMALL).unwrap();
    step(&mut there, SMALL).unwrap();
    limit_memory(0);
    // In the memory of the first steps.
    step(&mut there, SMALL).unwrap();
    step(&mut there, SMALL).unwrap();
    let error = step(&mut there, LARGE).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, nnz::model::Error::Cuda(CudaError::OutOfMemory { .. })), "{text}");
    assert!(text.contains("bytes left on the GPU for `x`, `y` of `Logistic`: "), "{text}");
    // As it was before that step: it goes on, and is saved.
    let before = there.clone().into_host();
    limit_memory(usize::MAX);
    assert!(before.is_err(), "a clone needs memory of its own");
    let before = there.clone().into_host().unwrap();
    let path = std::env::temp_dir().join(format!("nnz-memory-{}.safetensors", std::process::id()));
    checkpoint::save(&before, &path).unwrap();
    let mut loaded = Logistic::new(dims! { d: 50 }, Seed(4)).unwrap();
    checkpoint::load(&mut loaded, &path).unwrap();
    std::fs::remove_file(&path).unwrap();
    near(loaded.w.values(), before.w.values(), "the model that was saved");
    let first = step(&mut there, LARGE).unwrap();
    assert!(step(&mut there, LARGE).unwrap() < first);
}

#[test]
fn a_step_without_memory_for_the_columns_of_its_batch_changes_nothing() {
    if is_real() {
        return;
    }
    let data: Dataset = synthetic::click_log(LARGE, 50, 6, 1).unwrap();
    let model = Logistic::new(dims! { d: 50 }, Seed(3)).unwrap();
    let mut there = OnGpu::new(&model, &gpu()).unwrap();
    let rule = Sgd { learning_rate: 0.5, ..Sgd::default() };
    let mut updater = Updater::for_model(rule, &there).unwrap();
    let options = BatchOptions { batch_size: LARGE, ..BatchOptions::default() };
    let mut batches = data.batches(Logistic::INPUTS, &options).unwrap();
    let batch = batches.next_batch().unwrap().unwrap();
    let batch = there.bind(&batch).unwrap();
    // There is room for the batch, and
    there.forward(&batch).unwrap();
    there.forward(&batch).unwrap();
    // for its entries, but not for where their columns end.
    let entries = 4 * batch.x.nnz();
    limit_memory(entries);
    let error = there.train_step(&batch, &mut updater).unwrap_err();
    limit_memory(usize::MAX);
    assert!(
        matches!(error, nnz::model::Error::Cuda(CudaError::OutOfMemory { bytes, .. }) if bytes == entries + 4),
        "{error}"
    );
    let before = there.clone().into_host().unwrap();
    assert!(before.w.values().iter().chain(before.b.values()).all(|weight| *weight == 0.0));
    let first = there.train_step(&batch, &mut updater).unwrap();
    assert!(there.train_step(&batch, &mut updater).unwrap() < first);
}
