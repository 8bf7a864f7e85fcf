//! Weight decay by use: what shrinks does so whatever its storage and shape, and a bias never does.

use crate::field_sums::Line;
use nnz::prelude::*;

graph! {
    /// A weight as a table that batches read by rows.
    pub model Table {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        let score = dot(x, w);
        loss squared_error(score, y);
        output score;
    }

    /// A weight as a matrix of one column.
    pub model Column {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: dense[d, 1] = Zeros;
        let score = dot(x, w);
        loss squared_error(score, y);
        output score;
    }

    /// A weight as a vector.
    pub model Vector {
        input x: csr[n, d];
        label y: dense[n];
        param w: dense[d] = Zeros;
        let score = dot(x, w);
        loss squared_error(score, y);
        output score;
    }

    /// A bias of rank 2.
    pub model WideBias {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: dense[d, 1] = Zeros;
        param b: dense[1, 1] = Zeros;
        let score = dot(x, w) + b;
        loss squared_error(score, y);
        output score;
    }

    /// Declarations that overrule the uses.
    pub model Overruled {
        input x: csr[n, d];
        label y: dense[n, 1];
        param(no_decay) w: row_sparse[d, 1] = Zeros;
        param(decay) b: dense[1] = Zeros;
        let score = dot(x, w) + b;
        loss squared_error(score, y);
        output score;
    }
}

/// The parameters after full batches of one column of ones with the label 1, under `½ |w|²`.
fn trained<M: Model<Element = f32>>(mut model: M) -> Vec<f32> {
    let x = Csr::from_rows(1, [[(0, 1.0f32)]; 4]).unwrap();
    let data = Dataset::new(x, vec![1.0f32; 4]).unwrap();
    let rule = Sgd { learning_rate: 0.25, weight_decay: 1.0, ..Sgd::default() };
    let trainer = Trainer::new(rule).batch_size(4).epochs(200);
    trainer.progress(nnz::training::Progress::Silent).fit(&mut model, &data).unwrap();
    let tables = model.parameters().into_iter();
    tables.map(|parameter| parameter.table.row(0)[0]).collect()
}

#[track_caller]
fn near(found: &[f32], expected: &[f32]) {
    let are_near =
        found.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-5);
    assert!(found.len() == expected.len() && are_near, "{found:?}, not {expected:?}");
}

#[test]
fn n5_a_weight_decays_whether_it_is_a_table_a_matrix_or_a_vector() {
    near(&trained(Table::new(dims! { d: 1 }, Seed(0)).unwrap()), &[0.5]);
    near(&trained(Column::new(dims! { d: 1 }, Seed(0)).unwrap()), &[0.5]);
    near(&trained(Vector::new(dims! { d: 1 }, Seed(0)).unwrap()), &[0.5]);
}

#[test]
fn n5_a_bias_does_not_decay_whatever_its_rank() {
    near(&trained(Line::new(dims! { d: 1 }, Seed(0)).unwrap()), &[0.0, 1.0]);
    near(&trained(WideBias::new(dims! { d: 1 }, Seed(0)).unwrap()), &[0.0, 1.0]);
}

#[test]
fn n5_a_declaration_overrules_the_use_and_the_plan_says_so() {
    near(&trained(Overruled::new(dims! { d: 1 }, Seed(0)).unwrap()), &[1.0, 0.0]);
    let line = |plan: &str, name: &str| {
        let lines = plan.lines().filter(|line| line.starts_with(name));
        lines.map(str::to_owned).next().unwrap_or_default()
    };
    let (usual, overruled) = (Line::PLAN.to_string(), Overruled::PLAN.to_string());
    assert!(line(&usual, "w ").ends_with("parameter, decays"), "{usual}");
    assert!(line(&usual, "b ").ends_with("parameter, no decay"), "{usual}");
    assert!(line(&overruled, "w ").ends_with("parameter, no decay"), "{overruled}");
    assert!(line(&overruled, "b ").ends_with("parameter, decays"), "{overruled}");
}
