//! Warnings of steps that are rounded away and of states that are not finite.

use super::*;
use crate::error::Result;
use crate::optimizer::Updater;
use sparse_core::update_rules::AdaGrad;

/// Samples of one feature, 1, with a label.
fn ones<T: Float>(n: usize, label: f64) -> Dataset<T> {
    let rows = (0..n).map(|_| [(0, T::one())]);
    Dataset::new(Csr::from_rows(1, rows).unwrap(), vec![T::of(label); n]).unwrap()
}

fn count(warnings: &[String], start: &str) -> usize {
    warnings.iter().filter(|warning| warning.starts_with(start)).count()
}

/// The weight is 1, its gradient 1, the rate 1e-3.
#[cfg(feature = "half")]
#[test]
fn n13_a_bf16_table_that_does_not_move_in_2000_steps_has_one_warning() -> Result<()> {
    fn trained<T: Float>(n_samples: usize, n_epochs: u64) -> Result<(f64, Vec<String>)> {
        let mut model = Linear::<T>::new(1);
        model.w.values_mut()[0] = T::one();
        let mut trainer = quiet(sgd(1e-3, 0.0)).epochs(n_epochs).batch_size(1);
        trainer = trainer.learning_rate_scale("b", 0.0);
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

/// Rows wait for steps that they missed while the gradients of the check are computed.
#[test]
fn n13_training_has_the_same_bits_with_and_without_the_check() -> Result<()> {
    let data = data::<f64>(300);
    for batch_size in [1, 2] {
        let rule = Sgd { weight_decay: 0.01, ..sgd(0.05, 0.9) };
        let mut trainer = quiet(rule.clone()).epochs(3).batch_size(batch_size).shuffle(false);
        let (checked, _) = fitted(&mut trainer, &data);
        let mut model = Linear::<f64>::new(D);
        let mut updater = Updater::for_model(rule, &model)?;
        let options = BatchOptions { batch_size, ..BatchOptions::default() };
        let mut batches = data.batches(Linear::<f64>::INPUTS, &options)?;
        for epoch in 0..3 {
            fit_epoch(&mut model, &mut updater, &mut batches, epoch, &mut ())?;
        }
        assert_eq!(checked, [model.w.values(), model.b.values()].concat());
    }
    Ok(())
}
