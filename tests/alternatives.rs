//! Models whose inputs may have one of several storage types.
use nnz::formats::{Csr, CsrView, Dense, DenseView, RowSparse};
use nnz::optimizer::Updater;
use nnz::prelude::*;

graph! {
    block score(x, w, b) { dot(x, w) + b }

    /// A scorer.
    pub model Scorer {
        const CLASSES: usize = 3;
        input x: csr | dense[n, d];
        label y: dense[n, CLASSES];
        param w: dense[d, 3] = Normal { mean: 0.0, std: 1.0 };
        param b: dense[CLASSES] = Constant(0.5);
        param(frozen) scale: dense[] = Constant(2.0);
        let scores = score(x, w, b) * scale;
        loss squared_error(scores, y);
        output scores;
        output squares = square(x);
    }

    model Two {
        dtype = f64;
        input x: csr | dense[n, d];
        input z: row_sparse | dense | csr[n, d];
        output sum = sum(x) + sum(z);
    }
}

/// A model before it got an alternative.
mod before {
    use super::*;
    graph! {
        pub model Linear {
            input x: csr[n, d];
            label y: dense[n, 1];
            param w: dense[d, 1] = Normal { mean: 0.0, std: 1.0 };
            loss squared_error(dot(x, w), y);
        }
    }
}

/// And after.
mod after {
    use super::*;
    graph! {
        pub model Linear {
            input x: csr | dense[n, d];
            label y: dense[n, 1];
            param w: dense[d, 1] = Normal { mean: 0.0, std: 1.0 };
            loss squared_error(dot(x, w), y);
        }
    }
}

fn data() -> (Csr, Dense, Dense) {
    let x = Csr::from_rows(
        4,
        [vec![(0, 1.0), (2, -2.0)], vec![], vec![(1, 3.0)], vec![(0, 0.5), (3, 1.0)]],
    )
    .unwrap();
    let y = Dense::new([4, 3], (0..12).map(|value| value as f32 / 4.0).collect()).unwrap();
    let dense = x.to_dense().unwrap();
    (x, dense, y)
}

fn close(a: &[f32], b: &[f32]) {
    assert_eq!(a.len(), b.len());
    for (a, b) in a.iter().zip(b) {
        assert!((a - b).abs() < 1e-5, "{a} {b}");
    }
}

#[test]
fn both_variants_give_the_same_values_in_types_of_their_own() {
    let (x, dense, y) = data();
    let mut of_csr = ScorerCsr::new(dims! { d: 4 }, Seed(1)).unwrap();
    let mut of_dense = Scorer::<Dense>::new(dims! { d: 4 }, Seed(1)).unwrap();
    let a = ScorerCsrBatch { x: x.view(), y: y.view() };
    let b = ScorerDenseBatch { x: dense.view(), y: y.view() };
    let (_, _): (CsrView, DenseView) = (a.x, b.x);
    let loss = of_csr.loss_and_grads(&a).unwrap();
    assert!((loss - of_dense.loss_and_grads(&b).unwrap()).abs() < 1e-5);
    close(of_csr.outputs().scores.values(), of_dense.outputs().scores.values());
    // What is computed from the input has its storage, and so has the gradient.
    let (sparse, full): (&Csr, &Dense) = (&of_csr.outputs().squares, &of_dense.outputs().squares);
    assert_eq!(sparse.to_dense().unwrap(), *full);
    let (rows, all): (&RowSparse, &Dense) = (&of_csr.gradients().w, &of_dense.gradients().w);
    close(rows.to_dense().unwrap().values(), all.values());
}

#[test]
fn what_csr_trains_dense_scores_and_goes_on_training() {
    let (x, dense, y) = data();
    let rule = || Sgd { learning_rate: 0.1, momentum: 0.9, ..Sgd::default() };
    let mut model = ScorerCsr::new(dims! { d: 4 }, Seed(1)).unwrap();
    let mut updater = Updater::for_model(rule(), &model).unwrap();
    let mut alone = ScorerDense::new(dims! { d: 4 }, Seed(1)).unwrap();
    let mut updater_alone = Updater::for_model(rule(), &alone).unwrap();
    let a = ScorerCsrBatch { x: x.view(), y: y.view() };
    let b = ScorerDenseBatch { x: dense.view(), y: y.view() };
    for _ in 0..3 {
        model.train_step(&a, &mut updater).unwrap();
        alone.train_step(&b, &mut updater_alone).unwrap();
        // There and back; the optimizer's state is that of the parameters.
        let mut moved = ScorerDense::from(model);
        updater.flush_model(&mut moved).unwrap();
        close(moved.w.values(), alone.w.values());
        close(
            moved.forward(&b).unwrap().scores.values(),
            alone.forward(&b).unwrap().scores.values(),
        );
        moved.train_step(&b, &mut updater).unwrap();
        alone.train_step(&b, &mut updater_alone).unwrap();
        model = moved.into();
    }
    updater.flush_model(&mut model).unwrap();
    close(model.w.values(), alone.w.values());
    assert_eq!((model.dims().get("d"), model.scale.values()), (Some(4), &[2.0][..]));
}

#[test]
fn a_checkpoint_of_one_is_one_of_the_other() {
    let path =
        std::env::temp_dir().join(format!("nnz-variants-{}.safetensors", std::process::id()));
    let saved = ScorerCsr::new(dims! { d: 4 }, Seed(1)).unwrap();
    checkpoint::save(&saved, &path).unwrap();
    let mut loaded = ScorerDense::new(dims! { d: 4 }, Seed(2)).unwrap();
    checkpoint::load(&mut loaded, &path).unwrap();
    assert_eq!(loaded.w.values(), saved.w.values());
    // A model that gets an alternative keeps its checkpoints.
    let narrow = before::Linear::new(dims! { d: 4 }, Seed(1)).unwrap();
    checkpoint::save(&narrow, &path).unwrap();
    let mut widened = after::LinearDense::new(dims! { d: 4 }, Seed(2)).unwrap();
    checkpoint::load(&mut widened, &path).unwrap();
    assert_eq!(widened.w.values(), narrow.w.values());
    assert!(checkpoint::load(&mut loaded, &path).is_err());
    std::fs::remove_file(path).unwrap();
}

#[test]
fn each_variant_has_a_plan_of_its_own() {
    let (sparse, dense) = (ScorerCsr::PLAN.to_string(), ScorerDense::PLAN.to_string());
    assert!(sparse.starts_with("ScorerCsr (f32)") && dense.starts_with("ScorerDense (f32)"));
    assert!(sparse.contains("dot_csr_dense(x, w)"), "{sparse}");
    assert!(dense.contains("dot_dense_dense(x, w)"), "{dense}");
}

#[test]
fn the_trainer_takes_the_variant_that_the_data_has() {
    let (x, dense, y) = data();
    let columns = || Dataset::builder().label("y", y.clone());
    let sparse = columns().input("x", x).build().unwrap();
    let full = columns().input("x", dense).build().unwrap();
    let mut model = ScorerCsr::new(dims! { d: 4 }, Seed(1)).unwrap();
    let mut trainer = Trainer::new(Sgd { learning_rate: 0.1, ..Sgd::default() })
        .epochs(3)
        .batch_size(2)
        .progress(Progress::Silent);
    trainer.fit(&mut model, &sparse).unwrap();
    let scores = trainer.predict(&mut model, &sparse).unwrap();
    let mut scorer = ScorerDense::from(model);
    close(trainer.predict(&mut scorer, &full).unwrap().values(), scores.values());
}

#[test]
fn inputs_are_combined() {
    let x = Csr::<f64>::from_rows(2, [vec![(1, 2.0)]]).unwrap();
    let z = Dense::from_rows(&[[1.0, 4.0]]);
    let mut model = Two::<Csr<f64>, Dense<f64>>::new(dims! {}, Seed(0)).unwrap();
    let batch = TwoCsrDenseBatch { x: x.view(), z: z.view() };
    assert_eq!(model.forward(&batch).unwrap().sum.values(), [7.0]);
    assert_eq!(TwoDenseRowSparse::NAME, "TwoDenseRowSparse");
}
