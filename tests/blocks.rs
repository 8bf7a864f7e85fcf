//! Blocks: in one `graph!`, from another module, from another crate.
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

/// The same tokens in several places: of one macro used twice, of one repetition, in a macro of a
/// macro, of one file.
#[allow(unreachable_pub)]
mod written_by_macros {
    macro_rules! doubling {
        () => {
            nnz::graph! {
                pub block doubled(x) { scaled(2.0 * x, 1.0) }
                pub operator scaled(x, y) {
                    rule dense scalar -> dense = crate::blocks::written_by_macros::scaled;
                    shape [n] any -> [n];
                    gradient x = grad * y;
                }
            }
        };
    }

    macro_rules! in_modules {
        ($($name:ident)*) => { $(pub mod $name { doubling! {} })* };
    }

    pub mod first {
        doubling! {}
    }

    pub mod second {
        doubling! {}
    }

    in_modules! { third fourth }

    macro_rules! repeated {
        ($($name:ident)*) => {
            $(pub mod $name {
                nnz::graph! {
                    pub block doubled(x) { x + x }
                }
            })*
        };
    }

    repeated! { fifth sixth }

    pub(super) fn scaled(
        out: &mut nnz::formats::Dense<f32>,
        x: nnz::formats::DenseView<'_, f32>,
        y: f32,
    ) {
        let values = x.values().iter().map(|x| x * y);
        out.values_mut().iter_mut().zip(values).for_each(|(out, x)| *out = x);
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
    let (a, b) =
        (FromBlocksBatch { x: x.view(), y: y.view() }, WrittenBatch { x: x.view(), y: y.view() });
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
    let batch = ByPathBatch { x: x.view(), z: z.view() };
    let outputs = model.forward(&batch).unwrap();
    let expected = 2.0 * 1.5_f32.tanh();
    assert!(outputs.sparse.values().iter().all(|value| (value - expected).abs() < 1e-6));
    assert_eq!(outputs.dense.values(), [1.5, 1.5, 1.5, 1.5]);
    assert_eq!(*outputs.rows.shape(), [2].into());
    assert_eq!(outputs.rows.values(), [3.0, 3.0]);
    assert_eq!(*outputs.kept.shape(), [2, 1].into());
}

mod uses_written_by_macros {
    use super::written_by_macros::{
        fifth, first, fourth::doubled as by_name, second, sixth, third,
    };

    nnz::graph! {
        use by_name;

        pub model All {
            input x: dense[n];
            output sum = first::doubled(x) + second::doubled(x) + third::doubled(x) + by_name(x)
                + fifth::doubled(x) + sixth::doubled(x);
        }
    }
}

#[test]
fn a_macro_writes_a_block_in_several_modules() {
    use uses_written_by_macros::{All, AllBatch};
    let x = Dense::new([2], vec![1.0, -0.5]).unwrap();
    let mut model = All::new(dims! {}, Seed(1)).unwrap();
    let batch = AllBatch { x: x.view() };
    assert_eq!(model.forward(&batch).unwrap().sum.values(), [12.0, -6.0]);
}

graph! {
    block pooled(x, over, keep = false, plus = 0.0) {
        sum(x, axis = over, keepdims = keep) + plus
    }
    block pooled_twice(x, over, keep) {
        pooled(x, over, keep) + pooled(x, over, plus = 1.0, keep = keep)
    }

    /// What attributes take, in order and by name, and handed on.
    pub model InOrder {
        input x: dense[n, 2];
        input s: csr[n, d];
        output all = pooled(x, [0, 1]);
        output kept = pooled(x, [1], true, 1.0 + 1.0);
        output named = pooled(x, over = [1], keep = true, plus = 2.0);
        output twice = pooled_twice(x, 0, false);
        output lists = pooled_twice(x, [0], true);
        output rows: row_sparse[d, 2] = product(s, x, row_sparse);
        output matrix: dense[d, 2] = product(s, x, dense);
    }

    block product(x, y, storage) { dot(x, y, transpose_lhs = true, out = storage) }
}

#[test]
fn what_attributes_take_is_given_in_order() {
    let x = Dense::new([2, 2], vec![1.0, 2.0, 3.0, 4.0]).unwrap();
    let s = Csr::new(3, vec![0, 1, 2], vec![0_u32, 2], vec![1.0, 2.0]).unwrap();
    let mut model = InOrder::new(dims! {}, Seed(1)).unwrap();
    let batch = InOrderBatch { x: x.view(), s: s.view() };
    let outputs = model.forward(&batch).unwrap();
    assert_eq!(outputs.all.values(), [10.0]);
    assert_eq!(outputs.kept.values(), [5.0, 9.0]);
    assert_eq!(outputs.kept, outputs.named);
    assert_eq!(outputs.twice.values(), [9.0, 13.0]);
    assert_eq!((*outputs.twice.shape(), *outputs.lists.shape()), ([2].into(), [1, 2].into()));
    assert_eq!(outputs.lists.values(), [9.0, 13.0]);
    assert_eq!(outputs.rows.indices(), [0, 2]);
    assert_eq!(outputs.matrix.values(), [1.0, 2.0, 0.0, 0.0, 6.0, 8.0]);
}

#[test]
fn the_plan_names_what_is_computed_in_a_block() {
    let plan = FromBlocks::PLAN.to_string();
    assert!(plan.contains("twice.scores"), "{plan}");
}
