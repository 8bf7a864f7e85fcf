//! Logistic regression to a relative suboptimality of 10⁻⁶ by variance reduction, from zero, λ =
//! 1/n: whole runs by a trainer and by the loops that an expert writes for that problem.
//!
//! How many epochs a run needs is found out before anything is measured. Of each problem there are
//! two workloads: both sides make as many epochs as the one that needs more, so that the ratio is
//! that of their steps; and each makes its own, `own epochs`, so that it is that of the times to
//! the goal. Rows come in another order at either side, and with an order one may be lucky and need
//! some epochs less: the latter are several runs, by as many orders.

mod hand;

use crate::data::{Arrays, Data, Matrix, Random};
use crate::steps::hand::Log;
use crate::steps::linear::Logistic;
use crate::workload::{Error, Named, Workload};
use hand::ByHand;
use nnz::optimizer::UpdateRule;
use nnz::prelude::*;
use std::path::Path;
use std::rc::Rc;

/// What a run ends at.
const SUBOPTIMALITY: f64 = 1e-6;

/// So many orders of rows either side has where its own epochs count.
const N_ORDERS: u64 = 20;

/// Epochs from snapshot to snapshot.
const UPDATE_FREQ: u64 = 2;

pub fn workloads(data: &Data) -> Vec<Named<'_>> {
    let problem = |name: &str, make: fn(&Data) -> Result<Problem, Error>, epochs: Epochs| {
        let ending = if epochs == Epochs::Own { ", own epochs" } else { "" };
        let (svrg, saga) = (format!("svrg {name}{ending}"), format!("saga {name}{ending}"));
        let of_svrg = move || {
            let problem = Rc::new(make(data)?);
            let rule = problem.sgd(1.0);
            let rate = rule.learning_rate as f32;
            let rule = Svrg { update_freq: UPDATE_FREQ, rule };
            workload(&problem, rule, epochs, move |by_hand, x, l2| {
                by_hand.svrg_epochs(x, rate, l2);
            })
        };
        let of_saga = move || {
            let problem = Rc::new(make(data)?);
            let rule = problem.sgd(1.0 / 3.0);
            let rate = rule.learning_rate as f32;
            workload(&problem, Saga { rule }, epochs, move |by_hand, x, l2| {
                by_hand.saga_epoch(x, rate, l2);
            })
        };
        [Named::new(svrg, of_svrg), Named::new(saga, of_saga)]
    };
    let of = |epochs| [problem("a9a", a9a, epochs), problem("tf-idf", tf_idf, epochs)];
    [Epochs::AsMany, Epochs::Own].into_iter().flat_map(of).flatten().collect()
}

/// Writes the data of both problems to a folder, as LibSVM text with indices from one: for others
/// to learn from.
pub fn write_problems(data: &Data, folder: &Path) -> Result<(), Error> {
    for (name, make) in [("a9a", a9a as fn(&Data) -> _), ("tf-idf", tf_idf)] {
        let problem: Problem = make(data)?;
        nnz::data::libsvm::write(folder.join(name).with_extension("svm"), &problem.data)?;
    }
    Ok(())
}

/// How many epochs are made of what either side needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Epochs {
    /// What the one needs that needs more.
    AsMany,
    /// What it needs itself.
    Own,
}

/// A data set, and what there is to be found.
struct Problem {
    data: Dataset,
    l2: f64,
    /// The largest curvature of a sample's loss.
    curvature: f64,
    optimum: f64,
}

impl Problem {
    fn new(data: Dataset) -> Result<Self, Error> {
        let x = Log::of(&data).ok_or("the data is csr with u32 columns")?;
        let square = |row| x.row(row).1.iter().map(|v| f64::from(v * v)).sum::<f64>();
        let largest = (0..x.n_rows()).map(square).fold(0.0, f64::max);
        let l2 = 1.0 / x.n_rows() as f64;
        let mut problem = Problem { l2, curvature: largest / 4.0 + l2, optimum: 0.0, data };
        // Far below what is asked for.
        let mut by_hand = ByHand::new(problem.log()?, 0);
        let rate = problem.sgd(1.0).learning_rate as f32;
        for _ in 0..40 {
            by_hand.svrg_epochs(problem.log()?, rate, l2 as f32);
        }
        problem.optimum = problem.objective(by_hand.weights())?;
        Ok(problem)
    }

    fn log(&self) -> Result<Log<'_>, Error> {
        Log::of(&self.data).ok_or_else(|| "the data is csr with u32 columns".into())
    }

    /// At a part of the reciprocal of the curvature.
    fn sgd(&self, part: f64) -> Sgd {
        Sgd { learning_rate: part / self.curvature, weight_decay: self.l2, ..Sgd::default() }
    }

    /// The mean loss and the penalty, in `f64`.
    fn objective(&self, weights: impl Iterator<Item = f32> + Clone) -> Result<f64, Error> {
        let table: Vec<f32> = weights.clone().collect();
        let penalty: f64 = weights.map(|w| f64::from(w).powi(2)).sum();
        Ok(crate::steps::linear::loss(self.log()?, (&table, 1)) + self.l2 / 2.0 * penalty)
    }

    fn is_solved(&self, weights: impl Iterator<Item = f32> + Clone) -> Result<bool, Error> {
        Ok(self.objective(weights)? <= self.optimum * (1.0 + SUBOPTIMALITY))
    }
}

fn workload<R: UpdateRule>(
    problem: &Rc<Problem>,
    rule: R,
    wanted: Epochs,
    epochs_by_hand: impl Fn(&mut ByHand, Log<'_>, f32) + Copy + 'static,
) -> Result<Workload<'static>, Error> {
    const MOST: u64 = 200;
    let by_snapshot = rule.variance_reduction().is_some_and(|reduction| {
        matches!(reduction, nnz::core::update_rules::VarianceReduction::Snapshot { .. })
    });
    let at_once = if by_snapshot { UPDATE_FREQ } else { 1 };

    let run = |rule: R, seed: u64, epochs: u64, data: &Dataset| -> Result<Logistic, Error> {
        let mut model = Logistic::new(dims! { d: data.n_features() }, Seed(0))?;
        let trainer = Trainer::new(rule).epochs(epochs).seed(seed);
        trainer.progress(Progress::Silent).fit(&mut model, data)?;
        Ok(model)
    };
    let weights = |model: &Logistic| model.w.values().to_vec().into_iter();
    let l2 = problem.l2 as f32;
    let by_hand = move |seed: u64, times: u64, x: Log<'_>| {
        let mut by_hand = ByHand::new(x, seed);
        (0..times).for_each(|_| epochs_by_hand(&mut by_hand, x, l2));
        by_hand
    };

    // Epochs by the trainer, and calls of the loops by hand, by each seed.
    let mut needed: Vec<(u64, u64)> = Vec::new();
    for seed in 0..if wanted == Epochs::Own { N_ORDERS } else { 1 } {
        let mut epochs = at_once;
        while epochs < MOST
            && !problem.is_solved(weights(&run(rule.clone(), seed, epochs, &problem.data)?))?
        {
            epochs += at_once;
        }
        let mut times = 0;
        let mut hand = ByHand::new(problem.log()?, seed);
        while times < MOST && !problem.is_solved(hand.weights())? {
            epochs_by_hand(&mut hand, problem.log()?, l2);
            times += 1;
        }
        if wanted == Epochs::AsMany {
            times = times.max(epochs / at_once);
            epochs = times * at_once;
        }
        needed.push((epochs, times));
    }
    let note = match wanted {
        Epochs::AsMany => String::new(),
        Epochs::Own => {
            let all = |of: fn(&(u64, u64)) -> u64| needed.iter().map(of).sum::<u64>();
            format!(" ({} : {})", all(|(epochs, _)| *epochs), all(|(_, times)| *times) * at_once)
        }
    };
    let needed = Rc::new(needed);
    let (ours, theirs) = ((problem.clone(), needed.clone()), (problem.clone(), needed.clone()));
    let (our_result, their_result) = (problem.clone(), problem.clone());
    Ok(Workload::per_second("runs/s", needed.len() as f64)
        .tolerance(4.0 * SUBOPTIMALITY)
        .note(note)
        .contestant(
            "nnz",
            None,
            move |model| {
                let (problem, needed) = &ours;
                for (seed, (epochs, _)) in (0..).zip(&**needed) {
                    *model = run(rule.clone(), seed, *epochs, &problem.data).ok();
                }
            },
            move |model: &Option<Logistic>| {
                let objective = model.as_ref().map(|model| our_result.objective(weights(model)));
                objective.and_then(Result::ok).unwrap_or(f64::NAN)
            },
        )
        .contestant(
            "by hand",
            None,
            move |last| {
                let (problem, needed) = &theirs;
                for (seed, (_, times)) in (0..).zip(&**needed) {
                    *last = problem.log().ok().map(|x| by_hand(seed, *times, x));
                }
            },
            move |last: &Option<ByHand>| {
                let objective = last.as_ref().map(|hand| their_result.objective(hand.weights()));
                objective.and_then(Result::ok).unwrap_or(f64::NAN)
            },
        ))
}

/// The census data, where its folder is; else as many rows of 14 of 123 features.
fn a9a(_: &Data) -> Result<Problem, Error> {
    const N_FEATURES: usize = 123;
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data");
    let folder = std::env::var("NNZ_DATA").unwrap_or_else(|_| beside.to_owned());
    let file = Path::new(&folder).join("a9a.gz");
    if file.exists() {
        let reader = libsvm::Reader::new().index_base(IndexBase::One).n_features(N_FEATURES);
        let data: Dataset = reader.read_path(file)?;
        // Labels of 0 and 1, as the loops by hand read them.
        let (Some(features), Some(nnz::data::ColumnValues::Dense(labels))) =
            (data.features(), data.labels())
        else {
            return Err("the file has labels that are numbers".into());
        };
        let labels = labels.values().iter().map(|label| label.max(0.0)).collect();
        return Problem::new(Dataset::new(features.clone(), labels)?);
    }
    let mut random = Random(6);
    // Fourteen groups of features, of which a row has one each.
    let row = |_| (0..14).map(|k| (k * 8 + (random.uniform() * 8.0) as usize, 1.0)).collect();
    let rows: Vec<Vec<(usize, f32)>> = (0..32_561).map(row).collect();
    Problem::new(labelled(Csr::from_rows(N_FEATURES, rows)?)?)
}

/// 20,000 rows of unit norm, 47,236 features.
fn tf_idf(data: &Data) -> Result<Problem, Error> {
    let mut x = data.matrix(Matrix::Stories)?.clone();
    let bounds: Vec<usize> = x.indptr().iter().map(|&end| end as usize).collect();
    for row in bounds.windows(2) {
        let values = &mut x.values_mut()[row[0]..row[1]];
        let norm = values.iter().map(|v| v * v).sum::<f32>().sqrt();
        values.iter_mut().for_each(|value| *value /= norm);
    }
    Problem::new(labelled(x)?)
}

/// Labels by hidden weights, one in ten of them wrong.
fn labelled(x: Csr) -> Result<Dataset, Error> {
    let mut random = Random(7);
    let hidden: Vec<f32> = (0..x.n_cols()).map(|_| random.uniform() as f32 - 0.5).collect();
    let arrays = Arrays::of(&x)?;
    let label = |row: usize| {
        let range = arrays.indptr[row] as usize..arrays.indptr[row + 1] as usize;
        let entries = arrays.columns[range.clone()].iter().zip(&arrays.values[range]);
        let score: f32 = entries.map(|(&column, value)| hidden[column as usize] * value).sum();
        f32::from((score > 0.0) != (random.uniform() < 0.1))
    };
    let labels = (0..arrays.n_rows()).map(label).collect();
    Ok(Dataset::new(x, labels)?)
}
