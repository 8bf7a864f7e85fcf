use nnz::prelude::*;

graph! {
    block empty(x) {}
    block ended(x) { let y = tanh(x); }
    block unused(x) { tanh(x); x + 1 }
    block declares(x) { param w: dense[1] = Zeros; x * w }

    pub model Uses {
        input x: dense[n, d];
        output a = empty(x);
        output b = ended(x);
        output c = unused(x);
        output d = declares(x);
    }
}

fn main() {}
