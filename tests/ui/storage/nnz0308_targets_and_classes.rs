use nnz::prelude::*;

graph! {
    pub model Targets {
        input s: dense[n, 3];
        label classes: dense[n];
        label targets: dense<u32>[n, 3];
        param b: dense[3] = Zeros;
        loss softmax_cross_entropy(s + b, classes);
        loss softmax_cross_entropy(s + b, targets);
        output p = softmax(s + b);
    }
}

fn main() {}
