//! Updates that the reference refuses: a weight without some of its rows, weight decay with
//! row_sparse gradients.
//!
//! The library takes them. What comes of it is held to the recurrences of all rows, or of the rows
//! of the gradient where the case says lazy, computed here in `f64`.

use crate::golden::case::{Tensor, id};
use crate::golden::compare::Tolerance;
use crate::golden::reasons::{Deviation, Kind};
use crate::golden::rules::configured;
use nnz::core::storage::Storage;
use nnz::core::update_rules::{LazyUpdate, RuleVisitor, UpdateRule, with_rule};
use nnz::kernels::Array;
use nnz::optimizer::{ParameterSpec, Updater};
use serde_json::Value;

/// Runs a case in every mode that it says.
pub(crate) fn run(case: &Value) -> Result<Vec<Deviation>, String> {
    let optimizer = case["optimizer"].as_str().ok_or("no optimizer")?;
    let gradients = Tensor::read_all(&case["grads"])?;
    let gradients: Vec<Tensor> = gradients.into_iter().collect::<Option<_>>().ok_or("null")?;
    let weight = Tensor::read(&case["weight"])?;
    let lazy = case["hyper"]["lazy_update"] == true;
    let expected = textbook(case, lazy, &weight, &gradients)?;
    let modes: &[LazyUpdate] =
        if lazy { &[LazyUpdate::Touched] } else { &[LazyUpdate::Dense, LazyUpdate::Exact] };
    for &mode in modes {
        let run = Run { case, mode, weight: &weight, gradients: &gradients };
        let found = with_rule(optimizer, run).map_err(|error| error.to_string())??;
        let numbers = found.iter().map(|&value| f64::from(value));
        Tolerance::of_case(id(case), "").compare(
            &format!("{mode:?}: weight"),
            numbers,
            &expected,
        )?;
    }
    Ok(vec![Kind::Accepted.because("the update is made")])
}

/// A case in one mode; its output is the weight at the end.
struct Run<'a> {
    case: &'a Value,
    mode: LazyUpdate,
    weight: &'a Tensor,
    gradients: &'a [Tensor],
}

impl RuleVisitor for Run<'_> {
    type Output = Result<Vec<f32>, String>;

    fn visit<R: UpdateRule>(self, mut rule: R) -> Result<Vec<f32>, String> {
        rule.set_lazy_update(self.mode);
        let rule = configured(rule, self.case)?;
        let mut table: Vec<f32> = self.weight.expand().iter().map(|&w| w as f32).collect();
        let (n_rows, row_size) = (self.weight.shape[0], self.weight.shape[1..].iter().product());
        let spec = ParameterSpec::new("weight", n_rows, row_size, Some(Storage::RowSparse));
        let mut updater =
            Updater::<R, f32>::new(rule, [spec]).map_err(|error| error.to_string())?;
        for gradient in self.gradients {
            let Array::RowSparse(gradient) = gradient.array()? else {
                return Err("a gradient that is not row_sparse".into());
            };
            let mut step = || -> nnz::Result<()> {
                updater.begin_step()?;
                let rows = gradient.indices().iter().map(|&row| row as usize);
                updater.settle_rows(0, &mut table, rows)?;
                updater.apply_row_sparse(0, &mut table, gradient.view())?;
                Ok(updater.end_step()?)
            };
            step().map_err(|error| error.to_string())?;
        }
        updater.flush(0, &mut table).map_err(|error| error.to_string())?;
        Ok(table)
    }
}

/// The recurrences, in `f64`, of all rows or of those of each gradient.
fn textbook(
    case: &Value,
    lazy: bool,
    weight: &Tensor,
    gradients: &[Tensor],
) -> Result<Vec<f64>, String> {
    let hyper = |name: &str, default: f64| case["hyper"][name].as_f64().unwrap_or(default);
    let (rate, wd, momentum) =
        (hyper("learning_rate", 0.0), hyper("wd", 0.0), hyper("momentum", 0.0));
    let (eps, clip, rescale) =
        (hyper("eps", 0.0), hyper("clip_gradient", f64::INFINITY), hyper("rescale_grad", 1.0));
    let row_size = weight.shape[1..].iter().product::<usize>();
    let mut weights = weight.expand();
    let mut states = vec![0.0; weights.len()];
    for gradient in gradients {
        let dense = gradient.expand();
        for (at, (w, state)) in weights.iter_mut().zip(&mut states).enumerate() {
            if lazy && !gradient.indices.contains(&((at / row_size) as u64)) {
                continue;
            }
            let q = (rescale * dense[at]).clamp(-clip, clip);
            match case["optimizer"].as_str() {
                Some("sgd") => {
                    *state = momentum * *state - rate * (q + wd * *w);
                    *w += *state;
                }
                Some("adagrad") => {
                    *state += q * q;
                    *w -= rate * (q / (*state + eps).sqrt() + wd * *w);
                }
                name => return Err(format!("there are no recurrences of {name:?} here")),
            }
        }
    }
    Ok(weights)
}
