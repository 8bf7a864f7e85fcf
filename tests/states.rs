//! States: what is carried from batch to batch.
use nnz::formats::{Csr, Dense};
use nnz::model::ModelError;
use nnz::optimizer::Updater;
use nnz::predictor::Predictor;
use nnz::prelude::*;
use nnz::training::{predict, score, write_predictions};

graph! {
    /// Centred by the running mean of the features, as it was before the batch.
    pub model Centred {
        input x: dense[n, d];
        label y: dense[n, 1];
        param w: dense[d, 1] = Ones;
        /// The running mean.
        state centre: dense[d] = Zeros;
        state steps: dense[] = Zeros;
        let pred = dot(x - centre, w);
        loss squared_error(pred, y);
        update centre = 0.5 * centre + 0.5 * mean(x, axis = 0);
        update steps = steps + 1;
        output pred;
    }

    /// The same with what the states were, as data.
    pub model Given {
        input x: dense[n, d];
        input centre: dense[d];
        label y: dense[n, 1];
        param w: dense[d, 1] = Ones;
        let pred = dot(x - centre, w);
        loss squared_error(pred, y);
        output pred;
    }

    /// Two states that become each other, and one that a trained parameter flows into.
    pub model Exchanged {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Ones;
        state a: dense[2] = Ones;
        state b: dense[2] = Constant(2.0);
        state size: dense[] = Zeros;
        loss squared_error(dot(x, w), y);
        update a = b;
        update b = a;
        update size = square_sum(w);
    }
}

fn batches() -> Vec<(Dense, Dense)> {
    let x = [[[1.0f32, 2.0], [3.0, 4.0]], [[0.0, -2.0], [2.0, 2.0]], [[5.0, 1.0], [1.0, 1.0]]];
    let y = [[[0.5f32], [1.0]], [[-1.0], [0.0]], [[2.0], [1.0]]];
    x.iter().zip(&y).map(|(x, y)| (Dense::from_rows(x), Dense::from_rows(y))).collect()
}

fn rule() -> Sgd {
    Sgd { learning_rate: 0.1, ..Sgd::default() }
}

#[test]
fn a_step_reads_what_was_before_it_and_writes_the_update() {
    let mut model = Centred::new(dims! { d: 2 }, Seed(1)).unwrap();
    let mut given = Given::new(dims! { d: 2 }, Seed(1)).unwrap();
    let mut updater = Updater::for_model(rule(), &model).unwrap();
    let mut given_updater = Updater::for_model(rule(), &given).unwrap();
    // By hand: half of what was and half of the mean of the batch.
    let centres = [[0.0f32, 0.0], [1.0, 1.5], [1.0, 0.75], [2.0, 0.875]];
    for ((x, y), centre) in batches().iter().zip(&centres) {
        assert_eq!(model.centre.values(), centre);
        let centre = Dense::new([2], centre.to_vec()).unwrap();
        let batch = CentredBatch { x: x.view(), y: y.view() };
        let with = GivenBatch { x: x.view(), centre: centre.view(), y: y.view() };
        // Only a training step writes.
        model.forward(&batch).unwrap();
        model.loss_and_grads(&batch).unwrap();
        assert_eq!(model.centre.values(), centre.values());
        let loss = model.train_step(&batch, &mut updater).unwrap();
        assert_eq!(loss, given.train_step(&with, &mut given_updater).unwrap());
        // The gradient is that of a state that is data.
        assert_eq!(model.w.values(), given.w.values());
    }
    assert_eq!(model.centre.values(), centres[3]);
    assert_eq!(model.steps.values(), [3.0]);
}

#[test]
fn updates_are_computed_from_the_states_as_they_were() {
    let x = Csr::from_rows(3, [vec![(0, 1.0f32)], vec![(2, 2.0)]]).unwrap();
    let y = Dense::from_rows(&[[0.0f32], [1.0]]);
    let mut model = Exchanged::new(dims! { d: 3 }, Seed(1)).unwrap();
    let mut updater = Updater::for_model(rule(), &model).unwrap();
    let batch = ExchangedBatch { x: x.view(), y: y.view() };
    model.train_step(&batch, &mut updater).unwrap();
    assert_eq!((model.a.values(), model.b.values()), (&[2.0, 2.0][..], &[1.0, 1.0][..]));
    // Of the weights before the step.
    assert_eq!(model.size.values(), [3.0]);
    assert_ne!(model.w.values(), [1.0; 3]);
}

#[test]
fn a_state_is_saved_and_training_goes_on_from_it() {
    let path = std::env::temp_dir().join(format!("nnz-states-{}.safetensors", std::process::id()));
    let step = |model: &mut Centred, (x, y): &(Dense, Dense)| {
        // Without a rule that has state, an updater is as good as a new one.
        let mut updater = Updater::for_model(rule(), &*model).unwrap();
        let batch = CentredBatch { x: x.view(), y: y.view() };
        model.train_step(&batch, &mut updater).unwrap();
    };
    let batches = batches();
    let mut model = Centred::new(dims! { d: 2 }, Seed(1)).unwrap();
    step(&mut model, &batches[0]);
    checkpoint::save(&model, &path).unwrap();
    let mut resumed = Centred::new(dims! { d: 2 }, Seed(2)).unwrap();
    checkpoint::load(&mut resumed, &path).unwrap();
    for batch in &batches[1..] {
        step(&mut model, batch);
        step(&mut resumed, batch);
    }
    assert_eq!(resumed.centre.values(), model.centre.values());
    assert_eq!((resumed.steps.values(), resumed.w.values()), (&[3.0][..], model.w.values()));
    std::fs::remove_file(path).unwrap();
}

#[test]
fn the_plan_shows_states_and_why_nothing_is_fused() {
    let plan = Exchanged::PLAN.to_string();
    let line = plan.lines().find(|line| line.starts_with("size ")).unwrap();
    assert!(line.ends_with("state"), "{plan}");
    assert!(plan.contains("it updates the state `a`"), "{plan}");
    assert_eq!(Exchanged::PARAMETERS[1].gradient, None);
}

graph! {
    /// A count of batches, which shows in the output.
    pub model Counted {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        state batches: dense[] = Zeros;
        let score = dot(x, w);
        loss squared_error(score, y);
        update batches = batches + 1;
        output later = score + batches;
    }

    /// A recurrent model of some sessions side by side: a sample is the next event of each.
    pub model Recurrent {
        input x: dense[sessions, d];
        label y: dense[sessions, 1];
        param u: dense[d, 3] = Normal { mean: 0.0, std: 0.5 };
        param v: dense[3, 3] = Normal { mean: 0.0, std: 0.5 };
        param w: dense[3, 1] = Normal { mean: 0.0, std: 0.5 };
        state hidden: dense[sessions, 3] = Zeros;
        let now = tanh(dot(x, u) + dot(hidden, v));
        let pred = dot(now, w);
        loss squared_error(pred, y);
        update hidden = now;
        output pred;
    }

    /// An exponential moving average, which nothing trains.
    pub model Smoothed {
        input x: csr[n, d];
        state level: dense[d] = Zeros;
        output level_before = level * 1;
        update level = 0.75 * level + 0.25 * mean(x, axis = 0);
    }

    /// What came last is what comes next, but for a feature: the state is made of labels.
    pub model Lagged {
        input x: dense[n, 1];
        label y: dense[n, 1];
        param w: dense[1, 1] = Ones;
        state last: dense[] = Zeros;
        let pred = dot(x, w) + last;
        loss squared_error(pred, y);
        update last = mean(y);
        output pred;
    }
}

#[test]
fn l3_forward_leaves_a_state_as_six_steps_left_it_and_forward_carrying_updates_it() {
    let x = Csr::from_rows(3, [vec![(0, 1.0f32)], vec![(2, 2.0)]]).unwrap();
    let y = Dense::from_rows(&[[0.0f32], [1.0]]);
    let mut model = Counted::new(dims! { d: 3 }, Seed(1)).unwrap();
    let batch = CountedBatch { x: x.view(), y: y.view() };
    let mut updater = Updater::for_model(Sgd { learning_rate: 1e-30, ..rule() }, &model).unwrap();
    for _ in 0..6 {
        model.train_step(&batch, &mut updater).unwrap();
    }
    for _ in 0..2 {
        assert_eq!(model.forward(&batch).unwrap().later.values(), [6.0, 6.0]);
        assert_eq!(model.loss(&batch).unwrap(), 0.25);
        assert_eq!(model.batches.values(), [6.0]);
    }
    // Labels are not needed.
    let unlabelled = CountedBatch { x: x.view(), ..Default::default() };
    assert_eq!(model.forward_carrying(&unlabelled).unwrap().later.values(), [6.0, 6.0]);
    assert_eq!(model.batches.values(), [7.0]);
    assert_eq!(model.loss_carrying(&batch).unwrap(), 0.25);
    assert_eq!(
        (model.outputs().later.values(), model.batches.values()),
        (&[7.0; 2][..], &[8.0][..])
    );
    // A batch that does not fit changes nothing.
    let wide = Csr::from_rows(4, [vec![(0, 1.0f32)]]).unwrap();
    let wide = CountedBatch { x: wide.view(), ..Default::default() };
    assert!(model.forward_carrying(&wide).is_err());
    assert_eq!(model.batches.values(), [8.0]);
    assert!(Counted::PARAMETERS[1].is_state && !Counted::PARAMETERS[0].is_state);
}

/// Events of three sessions: the first one of each, then the second one of each, …
fn events(n: usize) -> Dataset {
    let of = |seed: usize| move |k: usize| ((k * 37 + seed) % 11) as f32 / 11.0 - 0.5;
    let x = Dense::new([n, 2], (0..2 * n).map(of(3)).collect()).unwrap();
    let y = Dense::new([n, 1], (0..n).map(of(7)).collect()).unwrap();
    Dataset::builder().input("x", x).label("y", y).build().unwrap()
}

/// Predictions and losses of a model that goes through events, batch after batch, by hand.
fn by_hand(model: &Recurrent, data: &Dataset) -> (Vec<f32>, f64) {
    use nnz::data::{BatchOptions, Batches, DataSource};
    let options = BatchOptions { batch_size: 3, ..Default::default() };
    let (mut model, mut other) = (model.clone(), model.clone());
    let mut batches = data.batches(Recurrent::INPUTS, &options).unwrap();
    batches.start_epoch(0).unwrap();
    let (mut outputs, mut losses) = (Vec::new(), Vec::new());
    while let Some(batch) = batches.next_batch().unwrap() {
        let batch = model.bind(&batch).unwrap();
        outputs.extend_from_slice(model.forward_carrying(&batch).unwrap().pred.values());
        losses.push(other.loss_carrying(&batch).unwrap());
    }
    assert_ne!(model.hidden.values(), [0.0; 9]);
    assert_eq!(model.hidden.values(), other.hidden.values());
    (outputs, losses.iter().sum::<f64>() / losses.len() as f64)
}

#[test]
fn l3_scores_and_predictions_of_data_in_sequence_carry_states_and_give_them_back() {
    let (train, test) = (events(60), events(15));
    let mut model = Recurrent::new(dims! { sessions: 3, d: 2 }, Seed(4)).unwrap();
    let trainer = Trainer::new(rule()).batch_size(3).epochs(2).shuffle(false);
    let mut trainer = trainer.progress(Progress::Silent);
    trainer.fit(&mut model, &InSequence(&train)).unwrap();
    let after = model.hidden.values().to_vec();
    assert_ne!(after, [0.0; 9]);

    let (outputs, loss) = by_hand(&model, &test);
    assert_eq!(predict(&mut model, &InSequence(&test), 3).unwrap().values(), outputs);
    assert_eq!(trainer.predict(&mut model, &InSequence(&test)).unwrap().values(), outputs);
    let found = score(&mut model, &InSequence(&test), &[], 3).unwrap().loss;
    assert!((found - loss).abs() < 1e-12, "{found} {loss}");
    assert_eq!(trainer.score(&mut model, &InSequence(&test)).unwrap().loss, found);
    let mut text = Vec::new();
    write_predictions(&mut model, &InSequence(&test), 3, &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    let written: Vec<f32> = text.lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(written, outputs);
    assert_eq!(model.hidden.values(), after);

    // Without a sequence all batches read the state that training left.
    let apart = predict(&mut model, &test, 3).unwrap();
    assert_eq!(apart.values()[..3], outputs[..3]);
    assert_ne!(apart.values(), outputs);
    assert_ne!(score(&mut model, &test, &[], 3).unwrap().loss, found);
    assert_eq!(model.hidden.values(), after);

    // Where a batch fails, too.
    assert!(predict(&mut model, &InSequence(&events(14)), 3).is_err());
    assert_eq!(model.hidden.values(), after);
}

#[test]
fn l3_evaluations_in_sequence_are_those_of_a_copy() {
    let (train, test) = (events(60), events(15));
    let fit = |in_sequence: bool| {
        let mut model = Recurrent::new(dims! { sessions: 3, d: 2 }, Seed(4)).unwrap();
        let trainer = || Trainer::new(rule()).batch_size(3).epochs(3).progress(Progress::Silent);
        let train = InSequence(&train);
        let report = if in_sequence {
            trainer().evaluation(&InSequence(&test)).fit(&mut model, &train)
        } else {
            trainer().evaluation(&test).fit(&mut model, &train)
        };
        let losses: Vec<f64> = report
            .unwrap()
            .epochs
            .iter()
            .map(|epoch| epoch.evaluation.as_ref().unwrap().loss)
            .collect();
        (model, losses)
    };
    let ((model, carried), (other, apart)) = (fit(true), fit(false));
    // Training is the same, whatever it is evaluated on.
    assert_eq!(model.hidden.values(), other.hidden.values());
    assert_eq!(model.u.values(), other.u.values());
    let last = by_hand(&model, &test).1;
    assert!((carried[2] - last).abs() < 1e-12, "{carried:?} {last}");
    assert_ne!(carried, apart);
    // An order that nobody asked for is that of the data.
    assert_eq!(model.hidden.values(), fit(true).0.hidden.values());
}

#[test]
fn l3_each_scorer_of_a_predictor_has_a_sequence_of_its_own() {
    let x = Csr::from_rows(1, [vec![(0, 1.0f32)]]).unwrap();
    let batch = CountedBatch { x: x.view(), ..Default::default() };
    let mut model = Counted::new(dims! { d: 1 }, Seed(1)).unwrap();
    model.batches.values_mut()[0] = 3.0;
    let predictor = Predictor::new(model);
    let (mut first, mut second) = (predictor.scorer().unwrap(), predictor.scorer().unwrap());
    let carried = [(); 3].map(|()| first.forward_carrying(&batch).unwrap().later.values()[0]);
    assert_eq!(carried, [3.0, 4.0, 5.0]);
    assert_eq!(first.score_row(&[0], &[1.0]).unwrap(), [6.0]);
    assert_eq!(first.forward(&batch).unwrap().later.values(), [6.0]);
    assert_eq!(second.forward_carrying(&batch).unwrap().later.values(), [3.0]);
    assert_eq!(predictor.scorer().unwrap().forward(&batch).unwrap().later.values(), [3.0]);
}

#[test]
fn l3_a_model_without_a_loss_has_states_too() {
    let x = Csr::from_rows(2, [vec![(0, 4.0f32)], vec![(0, 4.0), (1, 8.0)]]).unwrap();
    let mut model = Smoothed::new(dims! { d: 2 }, Seed(1)).unwrap();
    let batch = SmoothedBatch { x: x.view() };
    for before in [[0.0, 0.0], [1.0, 1.0], [1.75, 1.75]] {
        assert_eq!(model.forward(&batch).unwrap().level_before.values(), before);
        assert_eq!(model.forward_carrying(&batch).unwrap().level_before.values(), before);
    }
    let mut updater = Updater::for_model(rule(), &model).unwrap();
    for error in [
        model.loss_carrying(&batch).unwrap_err(),
        model.train_step(&batch, &mut updater).unwrap_err(),
    ] {
        assert!(matches!(error, nnz::model::Error::Model(ModelError::NoLoss { .. })), "{error}");
    }
}

#[test]
fn l3_states_made_of_labels_need_them_where_they_are_carried() {
    let x = Dense::<f32>::zeros([4, 1]);
    let y = Dense::from_rows(&[[1.0f32], [2.0], [3.0], [4.0]]);
    let data = Dataset::builder().input("x", x.clone()).label("y", y).build().unwrap();
    let mut model = Lagged::new(dims! {}, Seed(1)).unwrap();
    assert_eq!(predict(&mut model, &InSequence(&data), 1).unwrap().values(), [0.0, 1.0, 2.0, 3.0]);
    assert_eq!(predict(&mut model, &data, 1).unwrap().values(), [0.0; 4]);
    let batch = LaggedBatch { x: x.view(), ..Default::default() };
    assert!(model.forward(&batch).is_ok());
    let error = model.forward_carrying(&batch).unwrap_err();
    let expected = ModelError::NoLabel { model: "Lagged", label: "y", n_rows: 4 };
    assert!(matches!(&error, nnz::model::Error::Model(error) if *error == expected), "{error}");
    assert_eq!(model.last.values(), [0.0]);
    let unlabelled = Dataset::<f32>::builder().input("x", x).build().unwrap();
    let error = predict(&mut model, &InSequence(&unlabelled), 1).unwrap_err().to_string();
    assert!(error.contains("label `y` has no data"), "{error}");
    assert!(predict(&mut model, &unlabelled, 1).is_ok());
}
