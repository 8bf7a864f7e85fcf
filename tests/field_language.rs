//! Traps of the language: what looks right and trains something else is refused, with the way out.

use nnz::prelude::*;
use nnz::training::Progress;

graph! {
    /// Labels that spread along the edges of a graph: its nodes are rows and columns.
    pub model Nodes {
        input a: csr[n, n];
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        let score = dot(a, dot(x, w));
        loss logistic(score, y);
        output score;
    }
}

graph! {
    /// As many sessions as a state has rows.
    pub model Sessions {
        input x: dense[sessions, 3];
        label y: dense[sessions, 1];
        param w: dense[3, 1] = Zeros;
        state seen: dense[sessions, 1] = Zeros;
        let score = dot(x, w);
        loss squared_error(score, y);
        update seen = seen + 1;
        output score;
    }

    /// A number of sessions.
    pub model Eight {
        input x: dense[8, 3];
        label y: dense[8, 1];
        param w: dense[3, 1] = Zeros;
        let score = dot(x, w);
        loss squared_error(score, y);
        output score;
    }
}

/// A ring of nodes, each with a feature of its own, and the label of its right neighbour.
fn ring(nodes: usize) -> Dataset {
    let right = |node: usize| (node + 1) % nodes;
    let a = Csr::from_rows(nodes, (0..nodes).map(|node| [(right(node), 1.0f32)])).unwrap();
    let x = Csr::from_rows(nodes, (0..nodes).map(|node| [(node, 1.0f32)])).unwrap();
    let y: Vec<f32> = (0..nodes).map(|node| f32::from(u8::from(right(node) % 3 == 0))).collect();
    Dataset::builder().input("a", a).input("x", x).label("y", y).build().unwrap()
}

#[test]
fn l2_samples_that_are_columns_as_well_are_not_shuffled() {
    let data = ring(12);
    let rule = || Sgd { learning_rate: 20.0, ..Sgd::default() };
    let trainer = || Trainer::new(rule()).batch_size(12).epochs(40).metric(Accuracy);
    let mut model = Nodes::new(dims! { d: 12 }, Seed(1)).unwrap();

    let error = trainer().progress(Progress::Silent).fit(&mut model, &data).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("the columns of `a` of model `Nodes` are the samples"), "{text}");
    assert!(text.contains("call `shuffle(false)`"), "{text}");
    assert!(model.w.values().iter().all(|weight| *weight == 0.0));

    let mut trainer = trainer().shuffle(false).progress(Progress::Silent);
    trainer.fit(&mut model, &data).unwrap();
    let report = trainer.score(&mut model, &data).unwrap();
    assert_eq!(report.metric("accuracy"), Some(1.0));
}

#[test]
fn l4_evaluations_scores_and_predictions_have_the_batches_of_the_model() {
    fn checked<M: Model<Element = f32>>(mut model: M, sessions: usize) {
        let n = 3 * sessions;
        let x = Dense::full([n, 3], 1.0f32);
        let y: Vec<f32> = vec![2.0; n];
        let data = Dataset::builder().input("x", x).label("y", Dense::new([n, 1], y).unwrap());
        let data = data.build().unwrap();
        let rule = Sgd { learning_rate: 0.1, ..Sgd::default() };
        let trainer = Trainer::new(rule).batch_size(sessions).epochs(20).evaluation(&data);
        let mut trainer = trainer.progress(Progress::Silent);
        let report = trainer.fit(&mut model, &data).unwrap();
        let evaluated = report.epochs[19].evaluation.as_ref().unwrap().loss;
        assert!(evaluated < 1e-3, "{evaluated}");
        assert!(trainer.score(&mut model, &data).unwrap().loss < 1e-3);
        assert_eq!(trainer.predict(&mut model, &data).unwrap().values().len(), n);
    }
    checked(Sessions::new(dims! { sessions: 8 }, Seed(1)).unwrap(), 8);
    checked(Eight::new(dims! {}, Seed(1)).unwrap(), 8);
}
