use nnz::prelude::*;

fn whole(out: &mut Dense, x: CsrView<'_>) {
    out.fill(x.nnz() as f32);
}

fn element(x: f64) -> f64 {
    x * x
}

// The types of functions follow from the rules; Rust's compiler says so at their paths.
graph! {
    operator whole(x) { rule dense -> dense = crate::whole; }
    operator element(x) { each = crate::element; }
    operator missing(x) { each = crate::misisng; }

    pub model M {
        input x: dense[n, d];
        output y = whole(x);
        output z = element(x);
        output u = missing(x);
    }
}

fn main() {}
