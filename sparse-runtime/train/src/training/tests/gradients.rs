//! Models written by hand without their gradients.

use super::linear::WITHOUT_GRADIENTS;
use super::*;
use crate::error::{Error, Result};
use nnz_optim::Svrg;
use nnz_step::model::ModelError;

/// Each of these changes gradients or hands them on.
#[test]
fn fault_a_model_without_its_gradients_is_refused_by_the_name_of_the_parameter() {
    type Without = Linear<f64, WITHOUT_GRADIENTS>;
    let data = data::<f64>(40);
    let quiet = || quiet(sgd(0.1, 0.0)).batch_size(4).epochs(2);
    let looks = || Monitor::new(|_, _| ()).every_batches(3).gradients();
    let svrg = || Trainer::new(Svrg { update_freq: 1, rule: sgd(0.1, 0.0) }).batch_size(4);
    type Run<'r> = Box<dyn Fn(&mut Without) -> Result<FitReport> + 'r>;
    let runs: [Run<'_>; 6] = [
        Box::new(|model| quiet().fit_on_threads(model, &data, 1)),
        Box::new(|model| quiet().fit_on_threads(model, &data, 2)),
        Box::new(|model| quiet().clip_norm(1.0).fit_on_threads(model, &data, 2)),
        Box::new(|model| quiet().clip_norm(1.0).fit(model, &data)),
        Box::new(|model| quiet().callback(looks()).fit(model, &data)),
        Box::new(|model| svrg().progress(Progress::Silent).fit(model, &data)),
    ];
    for (number, run) in runs.iter().enumerate() {
        let error = run(&mut Linear::new(D)).unwrap_err();
        let is_refusal = matches!(
            &error,
            Error::Model(ModelError::NoGradient { model: "Linear", parameter: "w" })
        );
        assert!(is_refusal, "{number}: {error}");
        assert!(error.to_string().contains("implement `Model::gradient_mut`"), "{error}");
    }
    // The usual steps apply the gradients themselves.
    assert!(quiet().fit(&mut Without::new(D), &data).is_ok());
}
