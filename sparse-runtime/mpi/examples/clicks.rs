//! A factorization machine trained by all processes of a job, or by this one alone.
//!
//! ```text
//! cargo build --release --example clicks
//! mpirun -n 4 target/release/examples/clicks clicks.safetensors
//! ```

use nnz::data::synthetic;
use nnz::prelude::*;
use nnz::store::{Communicator, Outcome};
use nnz::training::checkpoint;

graph! {
    /// A factorization machine.
    pub model Machine {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        param v: row_sparse[d, 8] = Normal { mean: 0.0, std: 0.05 };
        param b: dense[1] = Zeros;
        let score = dot(x, w) + pairwise_interaction(x, v) + b;
        loss logistic(score, y);
        output probability = sigmoid(score);
    }
}

fn main() -> Result<()> {
    let mut group = nnz_mpi::group()?;
    let path = std::env::args().nth(1).unwrap_or_else(|| "clicks.safetensors".to_owned());
    let data = synthetic::click_log(50_000, 1 << 18, 20, 1)?;
    let mut model = Machine::new(dims! { d: 1 << 18 }, Seed(42))?;
    Trainer::new(AdaGrad { learning_rate: 0.05, ..AdaGrad::default() })
        .batch_size(8192)
        .epochs(3)
        .fit_as_worker(&mut model, &data, &mut group)?;
    if group.rank() == 0 {
        checkpoint::save(&model, &path)?;
        println!("{} workers have trained {path}", group.size());
    }
    group.end(Outcome::Done)?;
    Ok(())
}
