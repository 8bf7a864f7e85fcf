//! Models that only predict, from a file and from memory.

use nnz::model::ModelError;
use nnz::predictor::Predictor;
use nnz::prelude::*;

graph! {
    /// Something of each kind: a table by columns, a dense parameter, a frozen one.
    pub model Clicks {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Normal { mean: 0.0, std: 0.5 };
        param v: row_sparse[d, 3] = Normal { mean: 0.0, std: 0.5 };
        param(frozen) offset: dense[1] = Constant(0.25);
        param b: dense[1] = Zeros;
        let score = dot(x, w) + pairwise_interaction(x, v) + offset + b;
        loss logistic(score, y);
        output probability = sigmoid(score);
    }

    /// The same in another element type.
    pub model ClicksF64 {
        dtype = f64;
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        param v: row_sparse[d, 3] = Zeros;
        param(frozen) offset: dense[1] = Zeros;
        param b: dense[1] = Zeros;
        let score = dot(x, w) + pairwise_interaction(x, v) + offset + b;
        loss logistic(score, y);
        output probability = sigmoid(score);
    }

    /// An input of another kind.
    pub model OfIds {
        input id: dense<u32>[n];
        param w: row_sparse[d] = Normal { mean: 0.0, std: 0.5 };
        output score = take(w, id);
    }
}

/// A folder of this test's own.
fn folder(test: &str) -> std::path::PathBuf {
    let folder = std::env::temp_dir().join(format!("nnz-{test}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn trained() -> (Clicks, Dataset) {
    let data = nnz::data::synthetic::click_log(200, 64, 5, 3).unwrap();
    let mut model = Clicks::new(dims! { d: 64 }, Seed(1)).unwrap();
    let rule = AdaGrad { learning_rate: 0.1, ..AdaGrad::default() };
    let mut trainer = Trainer::new(rule).epochs(2).progress(Progress::Silent);
    trainer.fit(&mut model, &data).unwrap();
    (model, data)
}

fn send_and_sync<T: Send + Sync>(value: T) -> T {
    value
}

/// The model's own predictions, from the file and from memory, row by row on threads and all at
/// once.
#[test]
fn scores_are_those_of_the_model() {
    let folder = folder("predictor");
    let path = folder.join("model");
    let (mut model, data) = trained();
    checkpoint::save(&model, &path).unwrap();
    let expected = nnz::training::predict(&mut model, &data, 64).unwrap().into_values();
    let x = data.features().unwrap();
    let opened = send_and_sync(Predictor::<Clicks>::open(&path).unwrap());
    // What is mapped stays what it was when the file is replaced.
    checkpoint::save(&Clicks::new(dims! { d: 64 }, Seed(9)).unwrap(), &path).unwrap();
    let frozen = Predictor::new(model);
    let rows: Vec<(Vec<u32>, Vec<f32>)> = x
        .iter_rows()
        .map(|row| row.map(|(column, value)| (column as u32, value)).unzip())
        .collect();
    std::thread::scope(|scope| {
        for predictor in [&opened, &opened, &frozen] {
            let (rows, expected, data) = (&rows, &expected, &data);
            scope.spawn(move || {
                let mut scorer = predictor.scorer().unwrap();
                for ((columns, values), expected) in rows.iter().zip(expected) {
                    assert_eq!(scorer.score_row(columns, values).unwrap(), [*expected]);
                }
                let all = nnz::training::predict(scorer.model(), data, 33).unwrap();
                assert_eq!(all.values(), expected);
            });
        }
    });
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Writing a parameter of a scorer copies it: the others do not see it.
#[test]
fn scorers_share_what_none_of_them_writes() {
    let (model, _) = trained();
    let predictor = Predictor::new(model);
    let (mut first, mut second) = (predictor.scorer().unwrap(), predictor.scorer().unwrap());
    assert_eq!(first.model().w.values().as_ptr(), second.model().w.values().as_ptr());
    let before = second.score_row(&[3], &[1.0]).unwrap().to_vec();
    first.model().w.values_mut().fill(0.0);
    assert_eq!(second.score_row(&[3], &[1.0]).unwrap(), before);
    assert_ne!(first.score_row(&[3], &[1.0]).unwrap(), before);
}

#[test]
fn weights_are_rounded_to_another_type() {
    let (mut model, _) = trained();
    let rounded = Predictor::<ClicksF64>::rounded(&model).unwrap();
    let mut scorer = rounded.scorer().unwrap();
    let weights: Vec<f32> = scorer.model().v.values().iter().map(|&w| w as f32).collect();
    assert_eq!(weights, model.v.values());
    let x = Csr::from_rows(64, [[(3, 1.0f32), (40, 0.5)]]).unwrap();
    let expected = model.forward(&ClicksBatch { x: x.view(), ..Default::default() }).unwrap();
    let found = scorer.score_row(&[3, 40], &[1.0, 0.5]).unwrap()[0];
    assert!((found - f64::from(expected.probability.values()[0])).abs() < 1e-6, "{found}");
    let of_ids = OfIds::new(dims! { d: 3 }, Seed(1)).unwrap();
    assert!(matches!(Predictor::<ClicksF64>::rounded(&of_ids), Err(Error::Format(_))));
}

#[test]
fn what_cannot_be_scored_is_told() {
    let folder = folder("predictor-errors");
    let path = folder.join("model");
    let (model, _) = trained();
    checkpoint::save(&model, &path).unwrap();
    let mut scorer = Predictor::new(model).scorer().unwrap();
    assert!(matches!(scorer.score_row(&[64], &[1.0]), Err(Error::Format(_))));
    assert!(matches!(scorer.score_row(&[5, 3], &[1.0; 2]), Err(Error::Format(_))));
    assert!(matches!(scorer.score_row(&[5], &[1.0; 2]), Err(Error::Format(_))));
    let of_ids = OfIds::new(dims! { d: 3 }, Seed(1)).unwrap();
    let mut scorer = Predictor::new(of_ids).scorer().unwrap();
    let error = scorer.score_row(&[0], &[1.0]).unwrap_err();
    assert!(matches!(error, Error::Model(ModelError::NotARow { .. })), "{error}");
    let id = Dense::new([2], vec![2u32, 0]).unwrap();
    let scores = scorer.forward(&OfIdsBatch { id: id.view() }).unwrap();
    assert_eq!(scores.score.values().len(), 2);

    // Another graph, and a weight that is not what was saved.
    assert!(matches!(Predictor::<OfIds>::open(&path), Err(Error::Checkpoint(_) | Error::Dims(_))));
    let mut bytes = std::fs::read(&path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let Err(error) = Predictor::<Clicks>::open(&path) else { panic!("it is damaged") };
    assert!(error.to_string().contains("`b`"), "{error}");
    std::fs::remove_dir_all(&folder).unwrap();
}
