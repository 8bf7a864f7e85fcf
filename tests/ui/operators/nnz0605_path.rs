use nnz::prelude::*;

mod functions {
    nnz::graph! {
        pub operator cube(x) { each = cube; }
        pub(crate) operator sixth(x) { rule dense -> dense = self::sixth; }
    }
}

fn main() {}
