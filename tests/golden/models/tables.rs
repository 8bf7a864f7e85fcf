//! The recorded models of several tables: factorization machine, matrix factorization, wide and
//! deep; each fused and unfused.

#![allow(unreachable_pub, reason = "`twins` declares models for the roots of tests")]

use super::{Family, Visit};
use crate::golden::case::Tensor;
use crate::golden::device::{Device, Failure};
use crate::golden::recorded::Recorded;
use nnz::core::storage::Storage;
use nnz::prelude::*;

twins! {
    /// A factorization machine, its second order by the operator for that.
    Machine, MachineUnfused {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w1: row_sparse[d, 1] = Zeros;
        param w1_bias: dense[1] = Zeros;
        param v: row_sparse[d, k] = Zeros;
        let score = dot(x, w1) + w1_bias + pairwise_interaction(x, v);
        loss logistic(score, y);
        output probability = sigmoid(score);
    }

    /// The same, as it is recorded. What `concat` joins has extents that are numbers.
    MachineWritten, MachineWrittenUnfused {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w1: row_sparse[d, 1] = Zeros;
        param w1_bias: dense[1] = Zeros;
        param v: row_sparse[d, 3] = Zeros;
        let halves = concat(dot(x, w1) + w1_bias, 0.5 * square(dot(x, v)), axis = 1);
        let squares = dot(square(x), square_sum(v, axis = 1, keepdims = true));
        let score = sum(halves, axis = 1, keepdims = true) + 0.5 * -squares;
        loss logistic(score, y);
        output probability = sigmoid(score);
    }

    /// Inner products of rows that ids name.
    Factors, FactorsUnfused {
        input user: dense<u32>[n];
        input item: dense<u32>[n];
        label rating: dense[n];
        param user_weight: row_sparse[users, k] = Zeros;
        param item_weight: row_sparse[items, k] = Zeros;
        let score = sum(embedding(user, user_weight) * embedding(item, item_weight), axis = 1);
        loss squared_error(score, rating);
        output score;
    }

    /// The same of dense tables, whose gradients are row_sparse all the same.
    DenseFactors, DenseFactorsUnfused {
        input user: dense<u32>[n];
        input item: dense<u32>[n];
        label rating: dense[n];
        param user_weight: dense[users, k] = Zeros;
        param item_weight: dense[items, k] = Zeros;
        let score = sum(embedding(user, user_weight) * embedding(item, item_weight), axis = 1);
        loss squared_error(score, rating);
        output score;
    }

    /// A linear model beside two layers, of which the first reads two embeddings and dense
    /// features.
    WideDeep, WideDeepUnfused {
        input x: csr[n, d];
        input first: dense<u32>[n];
        input second: dense<u32>[n];
        input numbers: dense[n, 3];
        label class: dense<u32>[n];
        param wide_w: row_sparse[d, k] = Zeros;
        param wide_b: dense[k] = Zeros;
        param emb0: dense[firsts, 2] = Zeros;
        param emb1: dense[seconds, 2] = Zeros;
        param fc1_w: dense[hidden, 7] = Zeros;
        param fc1_b: dense[hidden] = Zeros;
        param fc2_w: dense[k, hidden] = Zeros;
        param fc2_b: dense[k] = Zeros;
        let joined = concat(embedding(first, emb0), embedding(second, emb1), numbers, axis = 1);
        let deep = fully_connected(relu(fully_connected(joined, fc1_w, fc1_b)), fc2_w, fc2_b);
        let score = dot(x, wide_w) + wide_b + deep;
        loss softmax_cross_entropy(score, class);
        output probabilities = softmax(score);
    }
}

/// A model of several tables.
#[derive(Clone, Copy, Debug)]
pub(crate) enum OfTables {
    /// A factorization machine, as it is recorded or by the operator for it.
    Machine { written: bool, features: usize, factors: usize },
    /// Matrix factorization; the tables are stored so.
    Factors { stored: Storage, users: usize, items: usize, factors: usize },
    /// Wide and deep.
    WideDeep { features: usize, classes: usize, firsts: usize, seconds: usize, hidden: usize },
}

/// The recorded graph of a factorization machine.
const MACHINE: &str = "\
%0 = dot(data, w1)
%1 = broadcast_add(%0, w1_bias)
%2 = _square_sum(v, axis=1, keepdims=true)
%3 = square(data)
%4 = dot(%3, %2)
%5 = dot(data, v)
%6 = square(%5)
%7 = _mul_scalar(%6, scalar=0.5)
%8 = Concat(%1, %7, dim=1, num_args=2)
%9 = sum(%8, axis=1, keepdims=true)
%10 = negative(%4)
%11 = _mul_scalar(%10, scalar=0.5)
%12 = elemwise_add(%9, %11)
%13 = LogisticRegressionOutput(%12, label)";

/// The graph of matrix factorization as it would be recorded.
fn factors_graph(recorded: &Recorded<'_>) -> Result<String, String> {
    let embedding = |ids: &str, weight: &str| {
        let [rows, width] = recorded.extents(weight)?;
        let sparse = recorded.parameter(weight)?.gradient == Storage::RowSparse;
        Ok::<_, String>(format!(
            "Embedding({ids}, {weight}, input_dim={rows}, output_dim={width}, sparse_grad={sparse})"
        ))
    };
    Ok(format!(
        "\
%0 = {}
%1 = {}
%2 = elemwise_mul(%0, %1)
%3 = sum(%2, axis=1)
%4 = LinearRegressionOutput(%3, label)",
        embedding("user", "user_weight")?,
        embedding("item", "item_weight")?,
    ))
}

/// The graph of wide and deep as it would be recorded. There ids are columns of a matrix of
/// numbers, and a part of that is a matrix.
fn wide_deep_graph(recorded: &Recorded<'_>) -> Result<String, String> {
    let ([n0, k0], [n1, k1]) = (recorded.extents("emb0")?, recorded.extents("emb1")?);
    let ([hidden, _], [classes, _]) = (recorded.extents("fc1_w")?, recorded.extents("fc2_w")?);
    Ok(format!(
        "\
%0 = dot(csr_data, wide_w)
%1 = broadcast_add(%0, wide_b)
%2 = slice_axis(ids, axis=1, begin=0, end=1)
%3 = Embedding(%2, emb0, input_dim={n0}, output_dim={k0}, sparse_grad=true)
%4 = Reshape(%3, shape=[-1,{k0}])
%5 = slice_axis(ids, axis=1, begin=1, end=2)
%6 = Embedding(%5, emb1, input_dim={n1}, output_dim={k1}, sparse_grad=true)
%7 = Reshape(%6, shape=[-1,{k1}])
%8 = Concat(%4, %7, dense_data, dim=1, num_args=3)
%9 = FullyConnected(%8, fc1_w, fc1_b, num_hidden={hidden})
%10 = Activation(%9, act_type=\"relu\")
%11 = FullyConnected(%10, fc2_w, fc2_b, num_hidden={classes})
%12 = elemwise_add(%1, %11)
%13 = SoftmaxOutput(%12, label)"
    ))
}

impl Family for OfTables {
    fn choose(recorded: &Recorded<'_>) -> Result<Vec<Self>, String> {
        let graph = recorded.graph()?;
        if graph == MACHINE {
            let [features, factors] = recorded.extents("v")?;
            let machine = |written| OfTables::Machine { written, features, factors };
            return Ok(vec![machine(true), machine(false)]);
        }
        if factors_graph(recorded).is_ok_and(|expected| graph == expected) {
            let [users, factors] = recorded.extents("user_weight")?;
            let [items, _] = recorded.extents("item_weight")?;
            let stored = recorded.parameter("user_weight")?.storage;
            return Ok(vec![OfTables::Factors { stored, users, items, factors }]);
        }
        if wide_deep_graph(recorded).is_ok_and(|expected| graph == expected) {
            let [features, classes] = recorded.extents("wide_w")?;
            let ([firsts, _], [seconds, _]) =
                (recorded.extents("emb0")?, recorded.extents("emb1")?);
            let [hidden, _] = recorded.extents("fc1_w")?;
            return Ok(vec![OfTables::WideDeep { features, classes, firsts, seconds, hidden }]);
        }
        Err(format!("unknown graph\n{graph}"))
    }

    fn columns(&self, recorded: &Recorded<'_>) -> Result<Vec<Tensor>, String> {
        let mut columns = Vec::new();
        for array in recorded.data.iter().chain([&recorded.label]) {
            match (self, array.name.as_str(), &array.shape[..]) {
                // What the graph reads of it, a column for each input of ids.
                (OfTables::WideDeep { .. }, "ids", &[rows, width]) => {
                    columns.extend((0..width).map(|column| Tensor {
                        shape: vec![rows],
                        data: array.data.iter().skip(column).step_by(width).copied().collect(),
                        ..array.clone()
                    }));
                }
                _ => columns.push(array.clone()),
            }
        }
        Ok(columns)
    }

    fn is_one_loop(&self) -> bool {
        match self {
            OfTables::Machine { written, .. } => !written,
            // Rows that ids name are updated in a loop where the table is one of rows.
            OfTables::Factors { stored, .. } => *stored == Storage::RowSparse,
            OfTables::WideDeep { .. } => false,
        }
    }

    fn with_model(
        &self,
        fused: bool,
        on: &impl Device,
        visit: &mut impl Visit,
    ) -> Result<(), Failure> {
        /// The model of this name, or the one that is not fused.
        macro_rules! either {
            ($fused:ident, $unfused:ident, $dims:expr) => {
                if fused {
                    on.visit(&|| $fused::new($dims, Seed(0)), visit)
                } else {
                    on.visit(&|| $unfused::new($dims, Seed(0)), visit)
                }
            };
        }
        match *self {
            OfTables::Machine { written, features, factors } => {
                if written {
                    either!(MachineWritten, MachineWrittenUnfused, dims! { d: features })
                } else {
                    either!(Machine, MachineUnfused, dims! { d: features, k: factors })
                }
            }
            OfTables::Factors { stored, users, items, factors } => {
                let dims = || dims! { users: users, items: items, k: factors };
                match stored {
                    Storage::RowSparse => either!(Factors, FactorsUnfused, dims()),
                    _ => either!(DenseFactors, DenseFactorsUnfused, dims()),
                }
            }
            OfTables::WideDeep { features, classes, firsts, seconds, hidden } => {
                let dims = || {
                    dims! { d: features, k: classes, firsts: firsts, seconds: seconds, hidden: hidden }
                };
                either!(WideDeep, WideDeepUnfused, dims())
            }
        }
    }
}
