//! States: what is carried from batch to batch.
use nnz::formats::{Csr, Dense};
use nnz::optimizer::Updater;
use nnz::prelude::*;

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
