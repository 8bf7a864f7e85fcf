//! A model with an error still gives its types: the code that uses it has no further errors.
use nnz::optimizer::Updater;
use nnz::prelude::*;

graph! {
    pub model Wrong {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        let pred = dot(x, w);
        loss squared_error(dot(log(x), w), y);
        output pred;
    }
}

fn use_it(x: &Csr, y: &Dense) -> Result<f64> {
    let mut model = Wrong::new(dims! { d: 3 }, Seed(1))?;
    let batch = WrongBatch { x: x.view(), y: y.view() };
    let shape = *model.forward(&batch)?.pred.shape();
    let mut updater = Updater::for_model(Sgd::default(), &model)?;
    let loss = model.train_step(&batch, &mut updater)?;
    let stored: &RowSparse = &model.gradients().w;
    Ok(loss + shape.size() as f64 + stored.values().len() as f64 + f64::from(model.w.values()[0]))
}

fn main() {
    let _ = use_it;
}
