//! A worker's steps have the bits of steps by hand, by the public calls of a store and of models
//! with whole tables: whether a step computes with tables of the rows that it names or not.

use nnz::core::update_rules::UpdateRule;
use nnz::data::{BatchOptions, Batches, DataSource, LastBatch, Part};
use nnz::model::{BatchSource, RowIds};
use nnz::optimizer::ParameterSpec;
use nnz::prelude::*;
use nnz::store::{KvStore, LeafSum, OneProcess};

graph! {
    /// Bags, layers and a linear part, of one csr of units.
    model Deep {
        input x: csr<unit>[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        param t: row_sparse[d, 5] = Normal { mean: 0.0, std: 0.3 };
        param h: dense[5, 7] = Normal { mean: 0.0, std: 0.5 };
        param g: dense[7, 1] = Normal { mean: 0.0, std: 0.5 };
        param(frozen) shift: dense[1] = Constant(0.25);
        let score = dot(x, w) + dot(relu(dot(embedding_bag(x, t, mean = true), h)), g) + shift;
        loss logistic(score, y);
        output probability = sigmoid(score);
    }

    /// Too many elements of dense parameters for a loop over samples.
    model Kernels {
        input x: csr[n, d];
        label y: dense[n, 1];
        param t: row_sparse[d, 40] = Normal { mean: 0.0, std: 0.3 };
        param h: dense[40, 120] = Normal { mean: 0.0, std: 0.2 };
        param g: dense[120, 1] = Normal { mean: 0.0, std: 0.2 };
        let score = dot(tanh(dot(dot(x, t), h)), g);
        loss logistic(score, y);
        output probability = sigmoid(score);
    }

    /// Two dimensions of rows, which ids name, and two tables of each.
    model Ratings {
        input user: dense<u32>[n];
        input item: dense<u32>[n];
        label rating: dense[n];
        param p: row_sparse[users, 4] = Normal { mean: 0.0, std: 0.3 };
        param q: row_sparse[items, 4] = Normal { mean: 0.0, std: 0.3 };
        param of_user: row_sparse[users] = Zeros;
        param of_item: row_sparse[items] = Zeros;
        let score = sum(take(p, user) * take(q, item), axis = 1)
            + take(of_user, user) + take(of_item, item);
        loss squared_error(score, rating);
        output score;
    }

    /// The number of columns counts, so that steps take whole tables.
    model Whole {
        input x: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Zeros;
        let score = dot(x, w) + mean(x, axis = 1, keepdims = true);
        loss logistic(score, y);
        output probability = sigmoid(score);
    }
}

const EPOCHS: u64 = 3;

/// The values after training by hand on one worker.
fn by_hand<M, R, S>(
    model: &mut M,
    data: &S,
    rule: R,
    options: &BatchOptions,
    max_norm: Option<f64>,
) -> Result<()>
where
    M: Model<Element = f32>,
    R: UpdateRule,
    S: DataSource<f32>,
{
    let mut store = KvStore::<f32, _>::new(OneProcess, 8)?;
    for (parameter, info) in model.parameters().into_iter().zip(M::PARAMETERS) {
        if info.gradient.is_some() {
            let (n_rows, row_size) = (parameter.table.n_rows(), parameter.table.row_size());
            let spec = ParameterSpec::new(info.name, n_rows, row_size, info.gradient);
            store.init(spec, parameter.values())?;
        }
    }
    store.set_optimizer(rule)?;
    let trained = || M::PARAMETERS.iter().enumerate().filter(|(_, info)| info.gradient.is_some());
    let mut sums = vec![LeafSum::<f32>::new(); M::PARAMETERS.len()];
    let (mut ids, mut batches) = (RowIds::new(), data.batches(M::INPUTS, options)?);
    for epoch in 0..EPOCHS {
        batches.start_epoch(epoch)?;
        while let Some(batch) = batches.next_batch()? {
            let n = batch.n_rows();
            let bound = model.bind(&batch)?;
            for (index, info) in trained() {
                let rows = model.rows_read(&bound, index, &mut ids)?;
                let mut parameters = model.parameters_mut();
                store.pull_rows(info.name, rows, parameters[index].values_mut())?;
            }
            for leaf in store.own_leaves() {
                let rows = store.leaves().rows_of(leaf, n);
                if rows.is_empty() {
                    continue;
                }
                let share = rows.len() as f64 / n as f64;
                let bound = model.bind(&Part::new(&batch, rows))?;
                model.loss_and_grads(&bound)?;
                for (index, _) in trained() {
                    let gradient = model.gradient_mut(index).unwrap();
                    sums[index].add(leaf, gradient.view(), share)?;
                }
            }
            let mut sums = sums.iter_mut().zip(M::PARAMETERS);
            let sums = sums.by_ref().filter(|(_, info)| info.gradient.is_some());
            let mut sums = Vec::from_iter(sums.map(|(sum, info)| (info.name, sum)));
            match max_norm {
                Some(max_norm) => store.push_clipped(&mut sums, max_norm)?,
                None => {
                    sums.iter_mut().try_for_each(|(name, sum)| store.push(name, sum))?;
                }
            }
        }
        store.flush()?;
    }
    for (index, info) in trained() {
        store.pull(info.name, model.parameters_mut()[index].values_mut())?;
    }
    Ok(())
}

fn bits<M: Model<Element = f32>>(model: &M) -> Vec<u32> {
    let values = model.parameters().into_iter().map(|parameter| parameter.values().to_vec());
    values.flatten().map(f32::to_bits).collect()
}

fn steps_are_those_by_hand<M, R>(new: impl Fn() -> Result<M>, data: &Dataset<f32>, rule: R)
where
    M: Model<Element = f32> + Send + 'static,
    R: UpdateRule,
{
    // The last batch has fewer samples than there are leaves, or is filled up.
    for (last_batch, max_norm) in [(LastBatch::Short, None), (LastBatch::Pad, Some(0.05))] {
        let mut expected = new().unwrap();
        let options = BatchOptions { batch_size: 32, last_batch, ..BatchOptions::default() };
        by_hand(&mut expected, data, rule.clone(), &options, max_norm).unwrap();
        assert_ne!(bits(&expected), bits(&new().unwrap()));
        for n_workers in [1, 2, 3, 5, 13] {
            let mut model = new().unwrap();
            let trainer = Trainer::new(rule.clone()).batch_size(32).epochs(EPOCHS).shuffle(false);
            let mut trainer =
                trainer.last_batch(last_batch).clip_norm(max_norm).progress(Progress::Silent);
            trainer.fit_on_threads(&mut model, data, n_workers).unwrap();
            assert!(bits(&model) == bits(&expected), "{} {} on {n_workers}", M::NAME, R::NAME);
        }
    }
}

fn by_all_rules<M>(new: impl Fn() -> Result<M> + Copy, data: &Dataset<f32>)
where
    M: Model<Element = f32> + Send + 'static,
{
    let sgd = Sgd { momentum: 0.9, weight_decay: 0.01, ..Sgd::default() };
    steps_are_those_by_hand(new, data, sgd);
    steps_are_those_by_hand(new, data, AdaGrad::default());
    steps_are_those_by_hand(
        new,
        data,
        Adam { lazy_update: LazyUpdate::Touched, ..Adam::default() },
    );
}

/// 101 samples of 6 features.
fn clicks() -> Dataset<f32> {
    nnz::data::synthetic::click_log(101, 300, 6, 1).unwrap()
}

#[test]
fn steps_of_bags_and_layers_are_those_by_hand() {
    assert_eq!(Deep::ROW_DIMENSIONS, ["d"]);
    by_all_rules(|| Deep::new(dims! { d: 300 }, Seed(3)), &clicks());
}

#[test]
fn steps_by_kernels_are_those_by_hand() {
    assert_eq!(Kernels::ROW_DIMENSIONS, ["d"]);
    by_all_rules(|| Kernels::new(dims! { d: 300 }, Seed(3)), &clicks());
}

#[test]
fn steps_of_ids_are_those_by_hand() {
    assert_eq!(Ratings::ROW_DIMENSIONS, ["users", "items"]);
    let ids = |factor: u32, n: u32| Vec::from_iter((0..101u32).map(|row| row * row * factor % n));
    let data = Dataset::builder()
        .input("user", ids(7, 40))
        .input("item", ids(11, 23))
        .label("rating", Vec::from_iter((0..101).map(|row| (row as f32 * 0.7).sin())))
        .build()
        .unwrap();
    by_all_rules(|| Ratings::new(dims! { users: 40, items: 23 }, Seed(3)), &data);
}

#[test]
fn steps_with_whole_tables_are_those_by_hand() {
    assert!(Whole::ROW_DIMENSIONS.is_empty());
    by_all_rules(|| Whole::new(dims! { d: 300 }, Seed(3)), &clicks());
}
