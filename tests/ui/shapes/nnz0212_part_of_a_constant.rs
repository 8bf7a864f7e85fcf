use nnz::prelude::*;

const WIDTH: usize = 4;

graph! {
    pub model PartOfAConstant {
        const WIDTH;
        const SHORT = WIDTH - 2;
        input x: dense[n, WIDTH];
        input short: dense[n, SHORT];
        input long: dense[n, 6];
        output fits = topk(x, k = 4, axis = 1);
        output best = topk(x, k = 5, axis = 1);
        output inner = slice(x, begin = [0, 1]) + short;
        output alike = slice_like(x, long);
        output twice = repeat(x, repeats = 2, axis = 1) + long;
    }
}

fn main() {}
