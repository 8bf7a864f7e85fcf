//! Warnings of steps that are rounded away and of states that are not finite.

use super::*;
use crate::error::Result;
use nnz_arrays::formats::DenseView;
use nnz_optim::AdaGrad;
use nnz_step::optimizer::Updater;

/// Samples of one feature, 1, with a label.
fn ones<T: Float>(n: usize, label: f64) -> Dataset<T> {
    let rows = (0..n).map(|_| [(0, T::one())]);
    Dataset::new(Csr::from_rows(1, rows).unwrap(), vec![T::of(label); n]).unwrap()
}

fn count(warnings: &[String], start: &str) -> usize {
    warnings.iter().filter(|warning| warning.starts_with(start)).count()
}

/// A model whose weight is 1, with gradient 1 for samples of label 0.
fn of_one<T: Float>() -> Linear<T> {
    let mut model = Linear::<T>::new(1);
    model.w.values_mut()[0] = T::one();
    model
}

fn trainer(learning_rate: f64) -> Trainer<'static, Sgd> {
    quiet(sgd(learning_rate, 0.0)).batch_size(1).learning_rate_scale("b", 0.0)
}

/// The weight is 1, its gradient 1, the rate 1e-3.
#[cfg(feature = "half")]
#[test]
fn n13_a_bf16_table_that_does_not_move_in_2000_steps_has_one_warning() -> Result<()> {
    fn trained<T: Float>(n_samples: usize, n_epochs: u64) -> Result<(f64, Vec<String>)> {
        let mut model = of_one::<T>();
        let mut trainer = trainer(1e-3).epochs(n_epochs);
        let report = trainer.fit(&mut model, &ones::<T>(n_samples, 0.0))?;
        Ok((model.w.values()[0].as_f64(), report.warnings))
    }
    for (n_samples, n_epochs) in [(2000, 1), (1, 2000), (200, 10)] {
        let (weight, warnings) = trained::<sparse_core::element::bf16>(n_samples, n_epochs)?;
        assert_eq!((weight, warnings.len()), (1.0, 1), "{warnings:?}");
        assert_eq!(count(&warnings, "parameter `w` mostly does not move"), 1, "{warnings:?}");
        assert!(warnings[0].contains("weights of `bf16`"), "{warnings:?}");
        let (weight, warnings) = trained::<f32>(n_samples, n_epochs)?;
        assert!(weight < 0.2 && warnings.is_empty(), "{weight} {warnings:?}");
    }
    Ok(())
}

/// Steps of 1e-8 are below half a unit in the last place of 1. Shorter gradients move less.
#[test]
fn n13_the_check_clips_gradients_as_a_step_does() -> Result<()> {
    let warnings = |learning_rate: f64, clip_norm: Option<f64>| -> Result<Vec<String>> {
        let ends = |_: &EpochReport| ControlFlow::Break(());
        let mut trainer = trainer(learning_rate).epochs(4000).clip_norm(clip_norm).callback(ends);
        let report = trainer.fit(&mut of_one::<f32>(), &ones(250, 0.0))?;
        Ok(report.warnings)
    };
    assert!(warnings(1e-5, None)?.is_empty());
    assert_eq!(warnings(2e-8, None)?.len(), 1);
    assert_eq!(warnings(1e-5, Some(2e-3))?.len(), 1);
    Ok(())
}

/// Squares of gradients are infinite in `f32`: weights stop, and the loss stays finite.
#[test]
fn n13_states_that_are_not_finite_have_one_warning() -> Result<()> {
    let fit = |label: f64| -> Result<Vec<String>> {
        let trainer = Trainer::new(AdaGrad::default()).epochs(3).progress(Progress::Silent);
        let mut trainer = trainer.learning_rate_scale("b", 0.0);
        Ok(trainer.fit(&mut Linear::<f32>::new(1), &ones(40, label))?.warnings)
    };
    assert!(fit(2.0)?.is_empty());
    let warnings = fit(2e19)?;
    let of = |name| count(&warnings, &format!("parameter `{name}`: optimizer states are not"));
    assert_eq!((of("w"), of("b"), warnings.len()), (1, 1, 2), "{warnings:?}");
    Ok(())
}

/// Epochs that are calls of their own are one run, as long as the updater goes on.
#[cfg(feature = "half")]
#[test]
fn n13_a_run_in_several_calls_warns_once() -> Result<()> {
    use sparse_core::element::bf16;
    let data = ones::<bf16>(200, 0.0);
    for _ in 0..2 {
        let mut trainer = trainer(1e-3).epochs(4);
        let mut model = of_one::<bf16>();
        let mut updater = trainer.updater(&model)?;
        let warnings = (0..4).map(|epoch| {
            let report = trainer.fit_epochs(&mut model, &mut updater, &data, epoch..epoch + 1)?;
            Ok(report.warnings.len())
        });
        assert_eq!(warnings.collect::<Result<Vec<_>>>()?, [1, 0, 0, 0]);
        // Another run begins with another updater.
        let mut model = of_one::<bf16>();
        let mut updater = trainer.updater(&model)?;
        let report = trainer.fit_epochs(&mut model, &mut updater, &data, 0..1)?;
        assert_eq!(report.warnings.len(), 1);
    }
    Ok(())
}

/// Rows wait for steps that they missed while the gradients of the check are computed.
#[test]
fn n13_training_has_the_same_bits_with_and_without_the_check() -> Result<()> {
    let data = data::<f64>(300);
    let bits = |model: &Linear<f64>| {
        let outputs = model
            .dense_output(0)
            .map_or(Vec::new(), |view: DenseView<'_, f64>| view.values().to_vec());
        [model.w.values(), model.b.values(), &outputs].concat()
    };
    for (batch_size, records) in [(1, true), (2, true), (2, false), (300, true)] {
        let rule = Sgd { weight_decay: 0.01, ..sgd(0.05, 0.9) };
        let mut trainer = quiet(rule.clone()).epochs(3).batch_size(batch_size).shuffle(false);
        if records {
            trainer = trainer.metric(Mse);
        }
        let mut checked = Linear::<f64>::new(D);
        trainer.fit(&mut checked, &data)?;
        let mut model = Linear::<f64>::new(D);
        let mut updater = Updater::for_model(rule, &model)?;
        updater.set_records_outputs(records);
        let options = BatchOptions { batch_size, ..BatchOptions::default() };
        let mut batches = data.batches(Linear::<f64>::INPUTS, &options)?;
        for epoch in 0..3 {
            fit_epoch(&mut model, &mut updater, &mut batches, epoch, &mut ())?;
        }
        assert_eq!(bits(&checked), bits(&model));
    }
    Ok(())
}
