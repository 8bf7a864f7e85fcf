//! Fits that start from weights which are not zero.

use super::*;
use crate::error::{Error, Result};
use nnz_optim::{Step, UpdateRule};
use nnz_step::optimizer::{OptimizerError, Updater};

const N_COLUMNS: usize = 30;
const NAMED: [usize; 4] = [3, 7, 8, 20];

fn rule() -> Ftrl {
    Ftrl { l1: 0.01, l2: 0.1, ..Ftrl::default() }
}

fn one_sample() -> Dataset<f32> {
    let row = NAMED.map(|column| (column, 1.0 + column as f32 / 8.0));
    Dataset::new(Csr::from_rows(N_COLUMNS, [row]).unwrap(), vec![2.0]).unwrap()
}

/// A model whose weights were set by hand, all of them different.
fn model() -> Linear<f32> {
    let mut model = Linear::new(N_COLUMNS);
    for (column, weight) in model.w.values_mut().iter_mut().enumerate() {
        *weight = (column as f32 - 14.5) / 7.0;
    }
    model
}

/// One step of FTRL on one sample of the linear model, from states that give the weights.
fn expected(weights: &[f32], bias: f32) -> Vec<f32> {
    let row = NAMED.map(|column| (column, 1.0 + column as f32 / 8.0));
    let score = row.iter().fold(bias, |score, (column, value)| score + value * weights[*column]);
    let mut expected = weights.to_vec();
    for (column, value) in row {
        let w = f64::from(weights[column]);
        let z = if w == 0.0 { 0.0 } else { -w * (1.0 / 0.1 + 0.1) - w.signum() * 0.01 };
        let q = f64::from(value) * f64::from(score - 2.0);
        let z = z + q - q.abs() / 0.1 * w;
        let root = q.abs();
        let leader = (z.signum() * 0.01 - z) / ((1.0 + root) / 0.1 + 0.1);
        expected[column] = if z.abs() <= 0.01 { 0.0 } else { leader as f32 };
    }
    expected
}

fn fit<const GRAPH: u64>(model: &mut Linear<f32, GRAPH>) -> Result<()> {
    Trainer::new(rule()).epochs(1).progress(Progress::Silent).fit(model, &one_sample()).map(drop)
}

fn assert_moved_by_one_step(before: &[f32], bias: f32, after: &[f32]) {
    for (column, (after, expected)) in after.iter().zip(expected(before, bias)).enumerate() {
        if NAMED.contains(&column) {
            assert!((after - expected).abs() < 1e-5, "{column}: {after}, not {expected}")
        } else {
            assert_eq!(after.to_bits(), before[column].to_bits(), "{column}")
        }
    }
}

#[test]
fn n2_ftrl_moves_only_the_weights_that_a_sample_names() -> Result<()> {
    let mut model = model();
    for _ in 0..2 {
        // The second fit, with fresh states, starts from what the first has left.
        let (before, bias) = (model.w.values().to_vec(), model.b.values()[0]);
        fit(&mut model)?;
        assert_moved_by_one_step(&before, bias, model.w.values());
        assert!(NAMED.iter().all(|column| model.w.values()[*column] != before[*column]));
    }
    Ok(())
}

#[test]
fn n2_a_model_that_was_loaded_is_trained_on() -> Result<()> {
    let mut first = model();
    fit(&mut first)?;
    let path = std::env::temp_dir().join(format!("nnz-n2-{}.safetensors", std::process::id()));
    checkpoint::save(&first, &path)?;
    let mut loaded = Linear::<f32>::new(N_COLUMNS);
    let result = checkpoint::load(&mut loaded, &path);
    let _ = std::fs::remove_file(&path);
    result?;
    fit(&mut loaded)?;
    assert_moved_by_one_step(first.w.values(), first.b.values()[0], loaded.w.values());
    Ok(())
}

/// From a model of another graph, in memory and in a file; states of steps before are not kept.
#[test]
fn n2_a_warm_start_goes_on_from_the_weights_of_another_model() -> Result<()> {
    let mut first = model();
    fit(&mut first)?;
    let started = |mut warm: Linear<f32, 7>| -> Result<()> {
        assert_eq!(warm.w.values(), first.w.values());
        fit(&mut warm)?;
        assert_moved_by_one_step(first.w.values(), first.b.values()[0], warm.w.values());
        Ok(())
    };
    let mut warm = Linear::<f32, 7>::new(N_COLUMNS);
    checkpoint::warm_start(&mut warm, &first)?;
    started(warm)?;
    let path = std::env::temp_dir().join(format!("nnz-n2-warm-{}", std::process::id()));
    checkpoint::save(&first, &path)?;
    let mut loaded = Linear::<f32, 7>::new(N_COLUMNS);
    let result = checkpoint::load_with(&mut loaded, &path, checkpoint::LoadOptions::WARM_START);
    let _ = std::fs::remove_file(&path);
    result?;
    started(loaded)
}

#[test]
fn n2_weights_that_no_state_gives_are_refused() {
    let rule = Ftrl { beta: 0.0, ..Ftrl::default() };
    let is_refused = |result: Result<()>| {
        let error = result.unwrap_err();
        let refusal = matches!(
            &error,
            Error::Optimizer(OptimizerError::NoState { parameter, rule: "ftrl", decays: true, .. })
                if parameter == "w"
        );
        assert!(refusal, "{error}");
        let text = error.to_string();
        assert!(text.contains("unless `beta` or `l2` is above 0"), "{text}");
    };
    let trainer = || Trainer::new(rule.clone()).epochs(1).progress(Progress::Silent);
    let data = one_sample();
    is_refused(trainer().fit(&mut model(), &data).map(drop));
    is_refused(Updater::for_model(rule.clone(), &model()).map(drop).map_err(Error::from));
    // The model may be loaded after the updater was made.
    let mut changed = Linear::<f32>::new(N_COLUMNS);
    let mut updater = trainer().updater(&changed).unwrap();
    changed.w.values_mut()[5] = 1.0;
    is_refused(trainer().fit_epochs(&mut changed, &mut updater, &data, 0..1).map(drop));
    // Zeros have a state, and with a penalty every weight has one.
    trainer().fit(&mut Linear::<f32>::new(N_COLUMNS), &data).unwrap();
    let step = Ftrl { l2: 0.1, ..rule.clone() }.step::<f32>(0.1, 1.0, 0);
    assert!(step.implied_state(1.0).is_some());
    let l2 = Ftrl { l2: 0.1, ..rule };
    Trainer::new(l2).epochs(1).progress(Progress::Silent).fit(&mut model(), &data).unwrap();
}
