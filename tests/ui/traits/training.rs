//! Something else where training wants a model, a rule, a metric or data.
use nnz::prelude::*;

graph! {
    pub model Linear {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        loss squared_error(dot(x, w), y);
    }
}

fn rule_is_a_metric() {
    let _ = Trainer::new(Mse);
}

fn metric_is_a_rule() {
    let _ = Trainer::new(Sgd::default()).metric(Sgd::default());
}

fn model_is_data(data: &Dataset) -> Result<()> {
    let mut copy = data.clone();
    Trainer::new(Sgd::default()).fit(&mut copy, data)?;
    Ok(())
}

fn data_is_a_matrix(model: &mut Linear, x: &Csr) -> Result<()> {
    Trainer::new(Sgd::default()).fit(model, x)?;
    Ok(())
}

fn data_is_of_another_element(model: &mut Linear, data: &Dataset<f64>) -> Result<()> {
    Trainer::new(Sgd::default()).fit(model, data)?;
    Ok(())
}

fn evaluation_is_owned(model: &mut Linear, data: &Dataset) -> Result<()> {
    Trainer::new(Sgd::default()).evaluation(data.clone()).fit(model, data)?;
    Ok(())
}

fn batch_is_of_nothing(model: &Linear) {
    println!("{}", model.plan().bind(&3));
}

fn main() {}
