//! Names of the user's own, whatever they are: emitted code takes none for its own, and none of its
//! own for the user's.

use nnz::formats::{Csr, Dense};
use nnz::optimizer::Updater;
use nnz::prelude::*;

/// A model for each way in which emitted code looks, with operators and constants of the user's in
/// all of them.
macro_rules! models {
    (functions $($function:ident)*; constants $($constant:ident)*) => {
        ::nnz::graph! {
            $(operator $function(x) { each = $function; derivative = $function; })*

            /// One loop over rows of a csr, with constants as widths.
            pub model Linear {
                const columns;
                $(const $constant;)*
                input x: csr[n, d];
                label y: dense[n, columns];
                param w: row_sparse[d, columns] = Constant(start());
                param b: dense[columns] = Normal { mean: 0.0, std: start() };
                let pred = dot(x, w) + b;
                loss squared_error(pred, y);
                output pred;
            }

            /// Classes, which are ids or targets, and a weight of each row.
            pub model Classes {
                const columns;
                input x: csr[n, d];
                input weight: dense[n];
                label y: dense<u32>[n];
                label targets: dense[n, columns];
                param w: row_sparse[d, columns] = Zeros;
                param v: row_sparse[d, columns] = Zeros;
                loss softmax_cross_entropy(dot(x, w), y, weight = weight);
                loss softmax_cross_entropy(dot(x, v), targets);
                output probabilities = softmax(dot(x, w));
            }

            /// The same of one loss, and so one loop.
            pub model Targets {
                const columns;
                input x: csr[n, d];
                label y: dense[n, columns];
                param w: row_sparse[d, columns] = Zeros;
                let scores = dot(x, w);
                loss softmax_cross_entropy(scores, y);
                output probabilities = softmax(scores);
            }

            /// One loop over rows that ids name.
            pub model Lookups {
                const columns;
                input user: dense<u32>[n];
                input item: dense<u64>[n];
                label y: dense[n];
                param p: row_sparse[u, columns] = Constant(start());
                param q: row_sparse[i, columns] = Constant(start());
                param b: row_sparse[u] = Zeros;
                let score = sum(embedding(user, p) * embedding(item, q), axis = 1) + take(b, user);
                loss squared_error(score, y);
                output score;
            }

            /// A factorization machine.
            pub model Machine {
                const columns;
                input x: csr[n, d];
                label y: dense[n, 1];
                param w: row_sparse[d, 1] = Zeros;
                param v: row_sparse[d, columns] = Constant(start());
                let score = dot(x, w) + pairwise_interaction(x, v);
                loss logistic(score, y);
                output score;
            }

            /// One loop through layers for a row, scattered gradients for more.
            pub model Layers {
                const columns;
                input x: csr[n, d];
                input z: dense[n, 2];
                label y: dense[n, 1];
                param t: row_sparse[d, columns] = Constant(start());
                param h: dense[columns, 2] = Constant(start());
                param g: dense[4, 1] = Constant(start());
                param(frozen) c: dense[columns] = Ones;
                let hidden = relu(dot(embedding_bag(x, t) + c, h));
                let score = dot(concat(hidden, z, axis = 1), g);
                loss logistic(score, y);
                output score;
                output copy = softmax(hidden);
            }

            /// The user's functions, one after the other, and a state.
            pub model Functions {
                const columns;
                input x: dense[n, columns];
                label y: dense[n, columns];
                param w: dense[columns] = Ones;
                state mean_of_x: dense[columns] = Zeros;
                let all = 0.0 $(+ $function(x * w))*;
                loss squared_error(all, y);
                update mean_of_x = mean(x, axis = 0);
                output all;
            }

            /// Ids that the model computes, and rows of what they name.
            pub model Computed {
                const columns;
                input x: dense[n, columns];
                input k: dense<u32>[n];
                param(frozen) w: dense[columns, 2] = Ones;
                let best = argmax(x, axis = 1);
                output rows = take(w, best);
                output kept = slice_like(take(w, k), x, axes = [0]);
            }

            /// A step that is not fused.
            pub model Unfused {
                fuse = off;
                dtype = f64;
                const columns;
                input x: csr[n, columns];
                label y: dense[n, 1];
                param w: row_sparse[columns, 1] = Constant(start());
                let scaled = tanh(dot(x, w) * 2 + 1);
                loss squared_error(scaled, y);
                output scaled;
                output again = x;
            }
        }
    };
}

/// A model for each storage type of an input.
macro_rules! alternatives {
    () => {
        ::nnz::graph! {
            pub model Alternatives {
                const columns;
                input x: csr | dense[n, columns];
                input pattern: csr<unit>[n, columns];
                label y: dense[n, 1];
                param w: dense[columns, 1] = Constant(start());
                let score = dot(x, w) + dot(pattern, w);
                loss logistic(score, y);
                output score;
            }
        }
    };
}

/// Functions with the names that one would give to locals.
#[allow(dead_code, unreachable_pub)]
mod functions {
    macro_rules! functions {
        ($($name:ident)*) => {
            mod all {
                $(pub(super) fn $name(x: f32) -> f32 { 2.0 * x })*
            }
            use all::{$($name),*};

            pub(super) const COUNT: usize = [$(stringify!($name)),*].len();

            models! { functions $($name)*; constants }
            alternatives! {}
        };
    }

    functions! {
        batch updater record label row_weights made first count steps reads n_rows row s saved j share derivative labels source
        index adjust parallel visitor rows table dims seed grads x f out value check_ids shape_of
    }

    #[allow(non_upper_case_globals)]
    const columns: usize = 2;

    fn start() -> f64 {
        0.5
    }
}

/// Constants with these names, which no pattern may bind.
#[allow(dead_code, unreachable_pub, non_upper_case_globals)]
mod constants {
    macro_rules! constants {
        ($($name:ident)*) => {
            $(const $name: usize = 3;)*
            models! { functions double; constants $($name)* }
            alternatives! {}
        };
    }

    constants! {
        batch updater record label row_weights made first count steps reads mean n_rows row s saved j share derivative labels source
        index adjust parallel visitor model rows table loss grads f out value sizes dim_n dims seed fallback fuse dtype
    }

    const columns: usize = 2;

    fn double(x: f32) -> f32 {
        2.0 * x
    }

    fn start() -> f64 {
        0.5
    }
}

/// Types, traits and variants of these names are something else here, and nothing is imported by
/// itself.
#[allow(dead_code, unreachable_pub, non_camel_case_types, non_upper_case_globals)]
#[no_implicit_prelude]
mod types {
    macro_rules! types {
        ($($name:ident)*) => { $(pub(super) struct $name;)* };
    }

    types! {
        Option Some None Result Ok Err Vec String Box Self_ Copy Debug Csr Dense RowSparse Parameter Cpu Reads V S Error
        usize u32 u64 i64 f64 bool str
    }

    pub(super) trait Clone {}
    pub(super) trait Default {}
    pub(super) trait From {}
    pub(super) trait Into {}
    pub(super) trait Iterator {}
    pub(super) trait Send {}
    pub(super) trait Kernels {}
    pub(super) trait Model {}

    /// What a type of the language is called is free as well.
    pub(super) type f32 = ::core::primitive::f32;

    pub(super) const columns: ::core::primitive::usize = 2;

    fn double(x: f32) -> f32 {
        2.0 * x
    }

    pub(super) fn start() -> ::core::primitive::f64 {
        0.5
    }

    models! { functions double; constants }
}

/// The same by the user's import of everything.
#[allow(dead_code, unreachable_pub)]
mod imported {
    use super::types::*;
    alternatives! {}
}

#[test]
fn functions_are_called_by_their_names() {
    let mut model = functions::Functions::new(dims! {}, Seed(1)).unwrap();
    let (x, y) = (Dense::full([3, 2], 1.0), Dense::full([3, 2], 0.0));
    let batch = functions::FunctionsBatch { x: x.view(), y: y.view() };
    assert_eq!(model.forward(&batch).unwrap().all.values(), [2.0 * functions::COUNT as f32; 6]);
}

#[test]
fn constants_and_types_are_the_users() {
    let x = Csr::new(5, vec![0, 2, 3], vec![0_u32, 2, 1], vec![1.0, 2.0, 3.0]).unwrap();
    let y = Dense::full([2, 2], 1.0);
    let batch = constants::LinearBatch { x: x.view(), y: y.view() };
    let mut model = constants::Linear::new(dims! { d: 5 }, Seed(1)).unwrap();
    let mut updater = Updater::for_model(Sgd::default(), &model).unwrap();
    let loss = model.train_step(&batch, &mut updater).unwrap();
    let batch = types::LinearBatch { x: x.view(), y: y.view() };
    let mut model = types::Linear::new(dims! { d: 5 }, Seed(1)).unwrap();
    assert!((model.loss(&batch).unwrap() - loss).abs() < 1e-6);
}
