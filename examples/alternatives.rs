//! One model for sparse and for dense data: trained on click logs as csr, it scores single requests
//! as dense rows.
//!
//! ```sh
//! cargo run --release --example alternatives
//! ```

use nnz::data::synthetic;
use nnz::prelude::*;

graph! {
    /// Logistic regression of one feature set, stored in either way.
    pub model Clicks {
        input x: csr | dense[n, d];
        label y: dense[n, 1];
        param w: dense[d, 1] = Zeros;
        param b: dense[1] = Zeros;
        let score = dot(x, w) + b;
        loss logistic(score, y);
        output probability = sigmoid(score);
    }
}

fn main() -> Result<()> {
    let d = 200;
    let data = synthetic::click_log(4000, d, 10, 1)?;

    // Trained by the csr variant: a step costs what the batch stores.
    let mut model = ClicksCsr::new(dims! { d: d }, Seed(3))?;
    let rule = Sgd { learning_rate: 0.5, ..Sgd::default() };
    Trainer::new(rule).batch_size(16).epochs(3).metric(Auc).fit(&mut model, &data)?;

    // The same parameters, moved, score dense rows.
    let mut scorer = Clicks::<Dense>::from(model);
    let features = (0..d).map(|column| if column % 20 == 0 { 1.0 } else { 0.0 });
    let request = Dense::new([1, d], features.collect())?;
    let batch = ClicksDenseBatch { x: request.view(), ..Default::default() };
    let probability = scorer.forward(&batch)?.probability.values()[0];
    println!("a request is clicked with probability {probability:.3}");
    println!("{}", ClicksDense::PLAN);
    Ok(())
}
