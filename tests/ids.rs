//! Ids of every type, from data to a model: as labels of classes, checked where they come in, never
//! wrapped.
use nnz::data::DataError;
use nnz::formats::{Ids, IdsView};
use nnz::model::ModelError;
use nnz::prelude::*;

/// The same model three times, for each type of ids; `fuse` decides how the step runs.
macro_rules! models {
    ($($name:ident $whole:ident $id:ident),*) => {
        graph! {
            $(
                /// One loop.
                pub model $name {
                    label y: dense<$id>[n];
                    input x: csr[n, d];
                    param w: row_sparse[d, 3] = Zeros;
                    let scores = dot(x, w);
                    loss softmax_cross_entropy(scores, y);
                    output scores;
                }

                /// One kernel after the other.
                pub model $whole {
                    fuse = off;
                    input x: csr[n, d];
                    label y: dense<$id>[n];
                    param w: row_sparse[d, 3] = Zeros;
                    let scores = dot(x, w);
                    loss softmax_cross_entropy(scores, y);
                    output scores;
                }
            )*
        }
    };
}

models!(OfU32 OfU32Unfused u32, OfU64 OfU64Unfused u64, OfI64 OfI64Unfused i64);

fn features() -> Csr {
    Csr::from_rows(4, (0..6).map(|row| [(row % 4, 1.0), (3, 0.5)].into_iter().take(1 + row % 3)))
        .unwrap()
}

const CLASSES: [u8; 6] = [2, 0, 1, 2, 0, 1];

fn data(ids: impl Into<Ids>) -> Dataset {
    Dataset::builder().input("x", features()).label("y", ids.into()).build().unwrap()
}

/// Weights and accuracy after training.
fn trained<M: Model<Element = f32>>(mut model: M, data: &Dataset) -> nnz::Result<(Vec<f32>, f64)> {
    let rule = Sgd { learning_rate: 0.5, momentum: 0.5, ..Sgd::default() };
    let mut trainer = Trainer::new(rule).epochs(5).batch_size(4).metric(Accuracy);
    trainer = trainer.progress(Progress::Silent);
    let report = trainer.fit(&mut model, data)?;
    let accuracy = report.last().unwrap().metrics[0].1;
    Ok((model.parameters()[0].values().to_vec(), accuracy))
}

#[test]
fn every_type_trains_to_the_same_weights() {
    let dims = || dims! { d: 4 };
    let narrow = data(Dense::from(CLASSES.map(u32::from).to_vec()));
    let wide = data(Dense::from(CLASSES.map(u64::from).to_vec()));
    let signed = data(Dense::from(CLASSES.map(i64::from).to_vec()));
    let (weights, accuracy) = trained(OfU32::new(dims(), Seed(1)).unwrap(), &narrow).unwrap();
    assert!(weights.iter().any(|weight| *weight != 0.0));
    let same = |found: nnz::Result<(Vec<f32>, f64)>| {
        assert_eq!(found.unwrap(), (weights.clone(), accuracy));
    };
    same(trained(OfU64::new(dims(), Seed(1)).unwrap(), &wide));
    same(trained(OfI64::new(dims(), Seed(1)).unwrap(), &signed));
    let (unfused, _) = trained(OfU32Unfused::new(dims(), Seed(1)).unwrap(), &narrow).unwrap();
    let close = |found: &[f32]| {
        assert!(found.iter().zip(&unfused).all(|(a, b)| (a - b).abs() < 1e-5), "{found:?}");
    };
    close(&weights);
    close(&trained(OfU64Unfused::new(dims(), Seed(1)).unwrap(), &wide).unwrap().0);
    close(&trained(OfI64Unfused::new(dims(), Seed(1)).unwrap(), &signed).unwrap().0);
}

#[test]
fn another_type_than_declared_is_refused() {
    let signed = data(Dense::from(CLASSES.map(i64::from).to_vec()));
    let error = trained(OfU32::new(dims! { d: 4 }, Seed(1)).unwrap(), &signed).unwrap_err();
    assert!(matches!(error, nnz::Error::Data(DataError::WrongElement { .. })), "{error:?}");
    assert_eq!(
        error.to_string(),
        "`y` is declared with elements `u32`, but the label `y` has `i64`: convert it, or change the declaration"
    );
}

/// What a step says of a batch whose second row has another class.
macro_rules! refused {
    ($model:ident, $batch:ident, $ids:expr) => {{
        let mut model = $model::new(dims! { d: 4 }, Seed(1)).unwrap();
        let (x, y) = (features(), Dense::from($ids));
        let batch = $batch { x: x.view().rows(0..2).unwrap(), y: y.view() };
        let error = model.loss(&batch).unwrap_err();
        // What is not needed is not checked.
        model.forward(&batch).unwrap();
        error
    }};
}

#[test]
fn ids_out_of_range_are_named_and_not_wrapped() {
    let message = |id: i128| {
        format!(
            "`y` holds id {id} in row 1 of the batch, but ids must be 0 or more and below 3 here"
        )
    };
    for id in [-1, i64::MIN, 3, i64::MAX, (1 << 32) + 1] {
        for error in [
            refused!(OfI64, OfI64Batch, vec![0, id]),
            refused!(OfI64Unfused, OfI64UnfusedBatch, vec![0, id]),
        ] {
            assert!(error.to_string().ends_with(&message(id.into())), "{error}");
        }
    }
    // Low words that would be classes, were they cut off.
    for id in [1 << 32, (1 << 63) + 2, u64::MAX] {
        let error = refused!(OfU64, OfU64Batch, vec![2, id]);
        assert!(error.to_string().ends_with(&message(id.into())), "{error}");
    }
    let error = refused!(OfU32, OfU32Batch, vec![2, u32::MAX]);
    assert!(error.to_string().ends_with(&message(u32::MAX.into())), "{error}");
}

graph! {
    /// The classes in the order of their scores, as ids.
    pub model Winners {
        input x: csr[n, d];
        label y: dense<u64>[n];
        param w: row_sparse[d, 3] = Normal { mean: 0.0, std: 1.0 };
        let p = dot(x, w);
        loss softmax_cross_entropy(p, y);
        output p;
        output winners = argmax(p, axis = 1);
        output order = argsort(p, descending = true);
        output first: dense<u64>[n, 2] = topk_ids(p, k = 2);
    }
}

#[test]
fn positions_are_outputs() {
    let (x, y) = (features(), Dense::from(CLASSES.map(u64::from).to_vec()));
    let mut model = Winners::new(dims! { d: 4 }, Seed(1)).unwrap();
    let batch = WinnersBatch { x: x.view(), y: y.view() };
    // Ids have no gradient, and are no obstacle to one.
    model.loss_and_grads(&batch).unwrap();
    model.forward(&batch).unwrap();
    let outputs = model.outputs();
    let winners: &Dense<u64> = &outputs.winners;
    for (row, winner) in winners.values().iter().enumerate() {
        let scores = outputs.p.row(row).unwrap();
        let mut order = [0u64, 1, 2];
        order.sort_by(|a, b| scores[*b as usize].total_cmp(&scores[*a as usize]));
        assert_eq!(outputs.order.row(row).unwrap(), order);
        assert_eq!(outputs.first.row(row).unwrap(), &order[..2]);
        assert_eq!(*winner, order[0]);
    }
    // What the model gives is what it can be told.
    let batch = WinnersBatch { x: x.view(), y: winners.view() };
    let mut told = Winners::new(dims! { d: 4 }, Seed(1)).unwrap();
    assert!(told.loss(&batch).unwrap() < 3f64.ln());
}

graph! {
    /// Scores that come with the batch: the number of classes is known then.
    pub model Scored {
        label y: dense<i64>[n];
        input s: dense[n, k];
        param t: dense[1] = Ones;
        loss softmax_cross_entropy(s * t, y);
    }
}

#[test]
fn a_bound_that_only_the_batch_has_is_checked() {
    let mut model = Scored::new(dims! {}, Seed(1)).unwrap();
    let scores = Dense::from_rows(&[[1.0, 2.0], [0.0, 0.0]]);
    let mut loss = |ids: Vec<i64>| {
        let y = Dense::from(ids);
        let batch = ScoredBatch { s: scores.view(), y: y.view() };
        model.loss(&batch)
    };
    assert!(loss(vec![0, 1]).unwrap().is_finite());
    let error = loss(vec![1, 2]).unwrap_err().to_string();
    assert!(error.contains("`y` holds id 2 in row 1") && error.contains("below 2"), "{error}");
}

#[test]
fn a_batch_by_hand_has_the_type_declared() {
    /// Gives ids of 32 bits, whatever is asked for.
    struct Source(Csr, Dense<u32>);

    impl<'a> nnz::model::BatchSource<'a, f32> for &'a Source {
        fn n_rows(&self) -> usize {
            self.0.n_rows()
        }
        fn csr(&self, _: usize) -> nnz::model::Result<CsrView<'a, f32>> {
            Ok(self.0.view())
        }
        fn dense(&self, index: usize) -> nnz::model::Result<DenseView<'a, f32>> {
            Err(ModelError::RowSparseInput { index }.into())
        }
        fn ids(&self, _: usize) -> nnz::model::Result<IdsView<'a>> {
            Ok((&self.1).into())
        }
    }

    let source = Source(features(), Dense::from(CLASSES.map(u32::from).to_vec()));
    let model = OfU32::new(dims! { d: 4 }, Seed(1)).unwrap();
    assert_eq!(model.bind(&&source).unwrap().y.values(), CLASSES.map(u32::from));
    let model = OfU64::new(dims! { d: 4 }, Seed(1)).unwrap();
    assert_eq!(
        model.bind(&&source).unwrap_err().to_string(),
        "model `OfU64`: `y` is declared with ids of type `u64`, but the batch has `u32`: \
         convert it, or declare `y: dense<u32>[…]`"
    );
}
