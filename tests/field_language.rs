//! Traps of the language: what looks right and trains something else is refused, with the way out.

use nnz::model::ModelError;
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

/// Data of `n` samples for the models of sessions.
fn of_sessions(n: usize) -> Dataset {
    let (x, y) = (Dense::full([n, 3], 1.0f32), Dense::full([n, 1], 2.0f32));
    Dataset::builder().input("x", x).label("y", y).build().unwrap()
}

fn silent() -> Trainer<'static, Sgd> {
    Trainer::new(Sgd { learning_rate: 0.1, ..Sgd::default() }).progress(Progress::Silent)
}

#[test]
fn l10_a_loss_of_a_batch_without_labels_says_which_is_missing() {
    let mut eight = Eight::new(dims! {}, Seed(1)).unwrap();
    let x = Dense::full([8, 3], 1.0f32);
    let batch = EightBatch { x: x.view(), ..Default::default() };
    assert!(eight.forward(&batch).is_ok());
    let error = eight.loss(&batch).unwrap_err();
    let expected = ModelError::NoLabel { model: "Eight", label: "y", n_rows: 8 };
    assert!(matches!(&error, nnz::model::Error::Model(error) if *error == expected), "{error}");

    let mut nodes = Nodes::new(dims! { d: 12 }, Seed(1)).unwrap();
    let x = Csr::zeros(12, 12);
    let batch = NodesBatch { a: x.view(), x: x.view(), ..Default::default() };
    assert!(nodes.forward(&batch).is_ok());
    let mut updater = silent().updater(&nodes).unwrap();
    for error in [
        nodes.loss(&batch).unwrap_err(),
        nodes.loss_and_grads(&batch).unwrap_err(),
        nodes.train_step(&batch, &mut updater).unwrap_err(),
    ] {
        let text = error.to_string();
        assert!(text.contains("the batch has no label `y`"), "{text}");
        assert!(text.contains("one for each of the 12 samples"), "{text}");
        assert!(text.contains("or call `forward`"), "{text}");
    }

    let data = Dataset::<f32>::builder().input("x", Dense::full([8, 3], 1.0f32)).build().unwrap();
    let text = silent().batch_size(8).fit(&mut eight, &data).unwrap_err().to_string();
    assert!(text.contains("add it by `.label(\"y\", values)`"), "{text}");
    assert_eq!(silent().predict(&mut eight, &data).unwrap().values().len(), 8);
}

#[test]
fn l10_data_of_another_width_than_the_model_names_the_call_that_mends_it() {
    let error = |width: usize| {
        let x = Csr::<f32>::zeros(12, width);
        let a = Csr::zeros(12, 12);
        let batch = NodesBatch { a: a.view(), x: x.view(), ..Default::default() };
        let mut nodes = Nodes::new(dims! { d: 12 }, Seed(1)).unwrap();
        let error = nodes.forward(&batch).unwrap_err();
        let expected = ModelError::Features {
            model: "Nodes",
            input: "x",
            dim: "d",
            found: width,
            expected: 12,
        };
        assert!(matches!(&error, nnz::model::Error::Model(error) if *error == expected), "{error}");
        error.to_string()
    };
    let (fewer, more) = (error(7), error(20));
    assert!(fewer.contains("`x` has 7 columns, but `d` is 12"), "{fewer}");
    assert!(fewer.contains("read the data with `n_features(12)`"), "{fewer}");
    assert!(more.contains("make the model with `dims! { d: 20 }`"), "{more}");
    assert!(!more.contains("n_features"), "{more}");
    // What the first one says mends it.
    let text = b"1 1:1 3:1\n";
    let read: libsvm::Reader<f32> = libsvm::Reader::new().index_base(IndexBase::One).n_features(12);
    assert_eq!(
        {
            let read: Dataset = read.read_bytes("inline", text).unwrap();
            read
        }
        .n_features(),
        12
    );
}

#[test]
fn l10_a_last_batch_that_is_shorter_than_a_state_is_refused_before_the_first_step() {
    let data = of_sessions(20);
    let mut model = Sessions::new(dims! { sessions: 8 }, Seed(1)).unwrap();
    let error = silent().batch_size(8).fit(&mut model, &data).unwrap_err();
    let expected = ModelError::BatchSize {
        model: "Sessions",
        input: "x",
        dim: Some("sessions"),
        found: 4,
        expected: 8,
    };
    assert!(matches!(&error, nnz::Error::Model(error) if *error == expected), "{error}");
    let text = error.to_string();
    assert!(text.contains("the batch has 4 samples (`x`)"), "{text}");
    assert!(text.contains("the model fixes 8 (`sessions`)"), "{text}");
    assert!(text.contains("`.last_batch(LastBatch::Discard)`"), "{text}");
    assert_eq!(model.seen.values(), [0.0; 8]);

    let mut trainer = silent().batch_size(8).epochs(3).last_batch(LastBatch::Discard);
    trainer.fit(&mut model, &data).unwrap();
    assert_eq!(model.seen.values(), [6.0; 8]);

    // Batches of another size, and a number in the source.
    let mut eight = Eight::new(dims! {}, Seed(1)).unwrap();
    for (batch_size, found) in [(5, 5), (8, 4)] {
        let error = silent().batch_size(batch_size).fit(&mut eight, &data).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("the model fixes 8: train with `.batch_size(8)`"), "{text}");
        assert!(text.contains(&format!("the batch has {found} samples")), "{text}");
    }
    let text = silent().score(&mut eight, &data).unwrap_err().to_string();
    assert!(text.contains("a multiple of 8 samples"), "{text}");
}
