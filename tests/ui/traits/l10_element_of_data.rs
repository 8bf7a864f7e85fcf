//! A model of `f64` with data of `f32`: `fit` and `predict` name the call that mends it.
use nnz::prelude::*;
use nnz::training::predict;

graph! {
    pub model Precise {
        dtype = f64;
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        let score = dot(x, w);
        loss squared_error(score, y);
        output score;
    }
}

fn trained_on(model: &mut Precise, data: &Dataset) -> Result<()> {
    Trainer::new(Sgd::default()).fit(model, data)?;
    Ok(())
}

fn evaluated_on(model: &mut Precise, data: &Dataset<f64>, test: &Dataset) -> Result<()> {
    Trainer::new(Sgd::default()).evaluation(test).fit(model, data)?;
    Ok(())
}

fn predicted(model: &mut Precise, data: &Dataset) -> Result<()> {
    predict(model, data, 32)?;
    Ok(())
}

fn mended(model: &mut Precise, data: &Dataset) -> Result<()> {
    predict(model, &data.cast::<f64>()?, 32)?;
    Ok(())
}

fn main() {}
