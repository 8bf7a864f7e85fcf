//! Blocks: in one `graph!`, from another module, from another crate.
#![allow(clippy::unwrap_used)]

use nnz::formats::{Csr, Dense};
use nnz::prelude::*;

mod library {
    nnz::graph! {
        /// A linear layer.
        pub block layer(x, w, b = 0.0) { dot(x, w) + b }

        /// Weights the error, and adds a penalty.
        pub(crate) block penalized(error, w, weight = 1.0, penalty = 0.0) {
            let size = square_sum(w);
            weight * error + penalty * size
        }

        /// Two layers.
        pub block two(x, w, b, v) {
            let hidden = tanh(layer(x, w, b));
            layer(hidden, v)
        }

        pub block total(x, axis, keepdims = false) { sum(x, axis = axis, keepdims = keepdims) }
    }
}

/// The same once more, in another place.
mod again {
    nnz::graph! {
        pub block layer(x, w, b = 0.0) { dot(x, w) + b }
    }

    mod inner {
        nnz::graph! {
            pub block layer(x, w, b = 0.0) { dot(x, w) + b }
        }
    }
}

graph! {
    use library::{layer, penalized as with_penalty};

    block twice(x, w, v) {
        let scores: dense[rows, columns] = layer(x, w);
        scores + layer(x, v)
    }

    /// The same as `Written`, from blocks.
    pub model FromBlocks {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Constant(0.5);
        param v: row_sparse[d, 1] = Constant(0.25);
        param b: dense[1] = Ones;
        let pred = twice(x, w, v) + b;
        loss with_penalty(squared_error(pred, y), b, penalty = 0.1);
        output pred;
    }

    pub model Written {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Constant(0.5);
        param v: row_sparse[d, 1] = Constant(0.25);
        param b: dense[1] = Ones;
        let pred = dot(x, w) + dot(x, v) + b;
        loss squared_error(pred, y) + 0.1 * square_sum(b);
        output pred;
    }

    pub model ByPath {
        input x: csr[n, d];
        input z: dense[n, d];
        param(frozen) w: row_sparse[d, 2] = Constant(0.5);
        param(frozen) v: dense[2, 1] = Ones;
        param(frozen) b: dense[2] = Zeros;
        output sparse = library::two(x, w, b, v);
        output dense = z.library_free(w);
        output rows = library::total(z, axis = 1);
        output kept = library::total(z, 1, keepdims = true);
    }

    block library_free(z, w) { dot(z, dense(w)) }
}

fn batch() -> (Csr, Dense) {
    let x = Csr::new(3, vec![0, 2, 3], vec![0_u32, 2, 1], vec![1.0, 2.0, 3.0]).unwrap();
    (x, Dense::new([2, 1], vec![1.0, -1.0]).unwrap())
}

#[test]
fn a_block_is_what_it_stands_for() {
    let (x, y) = batch();
    let mut blocks = FromBlocks::new(dims! { d: 3 }, Seed(1)).unwrap();
    let mut written = Written::new(dims! { d: 3 }, Seed(1)).unwrap();
    let (a, b) = (
        FromBlocksBatch { x: x.view(), y: y.view(), ..Default::default() },
        WrittenBatch { x: x.view(), y: y.view(), ..Default::default() },
    );
    // (1 + 2)·0.75 + 1 and 3·0.75 + 1
    assert_eq!(blocks.forward(&a).unwrap().pred.values(), [3.25, 3.25]);
    assert_eq!(blocks.loss_and_grads(&a).unwrap(), written.loss_and_grads(&b).unwrap());
    assert_eq!(blocks.gradients().w, written.gradients().w);
    assert_eq!(blocks.gradients().b, written.gradients().b);
}

#[test]
fn a_block_is_inferred_for_each_use() {
    let (x, _) = batch();
    let z = Dense::new([2, 3], vec![1.0, 0.0, 2.0, 0.0, 3.0, 0.0]).unwrap();
    let mut model = ByPath::new(dims! { d: 3 }, Seed(1)).unwrap();
    let batch = ByPathBatch { x: x.view(), z: z.view(), ..Default::default() };
    let outputs = model.forward(&batch).unwrap();
    let expected = 2.0 * 1.5_f32.tanh();
    assert!(outputs.sparse.values().iter().all(|value| (value - expected).abs() < 1e-6));
    assert_eq!(outputs.dense.values(), [1.5, 1.5, 1.5, 1.5]);
    assert_eq!(*outputs.rows.shape(), [2].into());
    assert_eq!(outputs.rows.values(), [3.0, 3.0]);
    assert_eq!(*outputs.kept.shape(), [2, 1].into());
}

#[test]
fn the_plan_names_what_is_computed_in_a_block() {
    let plan = FromBlocks::PLAN.to_string();
    assert!(plan.contains("twice.scores"), "{plan}");
}
