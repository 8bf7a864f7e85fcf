use nnz::prelude::*;

// A fault of one alternative is reported once, with its name; a fault of all of them as usual.
graph! {
    block tempered(x) { exp(x) }

    pub model M {
        input x: csr | dense[n, d];
        input z: csr | dense | row_sparse[n, d];
        let a = log(x);
        let b: csr[n, d] = tanh(x);
        output c = x + z;
        output e = tempered(z) + a;
        output f = dot(x, z) + sum(b);
    }

    pub model Trained {
        input x: csr | dense[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        loss squared_error(dot(x, w), y);
    }

    /// Nothing to say of this one.
    pub model Converted {
        input x: csr | dense[n, d];
        output y = log(dense(x));
    }
}

// The types are there in spite of the errors.
fn score(model: &mut TrainedDense, batch: &TrainedDenseBatch<'_>) -> Result<f64> {
    Ok(model.loss(batch)?)
}

fn moved(model: TrainedCsr) -> Trained<Dense> {
    model.into()
}

fn main() {}
