//! Epochs whose last batch is filled up.

use super::*;
use crate::error::Result;
use nnz_data::Batches;
use nnz_optim::{Adam, UpdateRule};

/// The parameters, the losses of epochs and the outputs at the end are those of the steps alone:
/// the loss over true samples, for the report, is computed beside them.
fn has_the_bits_of_its_steps<R: UpdateRule>(rule: R) -> Result<()> {
    const N: usize = 42;
    let data = data::<f32>(N);
    let mut trainer = Trainer::new(rule.clone()).progress(Progress::Silent).decay_all();
    trainer = trainer.batch_size(4).epochs(3).shuffle(false).last_batch(LastBatch::Pad);
    let mut padded = Linear::<f32>::new(D);
    let mut of_padded = trainer.updater(&padded)?;
    trainer.fit_epochs(&mut padded, &mut of_padded, &data, 0..3)?;
    let mut model = Linear::<f32>::new(D);
    let mut updater = trainer.updater(&model)?;
    let options =
        BatchOptions { batch_size: 4, last_batch: LastBatch::Pad, ..BatchOptions::default() };
    let mut batches = data.batches(Linear::<f32>::INPUTS, &options)?;
    for epoch in 0..3 {
        batches.start_epoch(epoch)?;
        while let Some(batch) = batches.next_batch()? {
            let bound = model.bind(&batch)?;
            model.train_step(&bound, &mut updater)?;
        }
        updater.flush_model(&mut model)?;
    }
    let outputs = |model: &Linear<f32>| model.dense_output(0).unwrap().values().to_vec();
    assert_eq!(padded.w.values(), model.w.values(), "{}", R::NAME);
    assert_eq!(padded.b.values(), model.b.values(), "{}", R::NAME);
    assert_eq!(outputs(&padded), outputs(&model), "{}", R::NAME);
    Ok(())
}

#[test]
fn fault_an_epoch_that_is_filled_up_has_the_bits_of_its_steps() -> Result<()> {
    has_the_bits_of_its_steps(Sgd { weight_decay: 0.03, ..sgd(0.05, 0.0) })?;
    has_the_bits_of_its_steps(Sgd { weight_decay: 0.03, ..sgd(0.05, 0.9) })?;
    has_the_bits_of_its_steps(Ftrl { l1: 0.01, l2: 0.1, ..Ftrl::default() })?;
    has_the_bits_of_its_steps(Adam::default())
}
