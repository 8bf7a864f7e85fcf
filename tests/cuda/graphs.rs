//! Steps whose launches are made by a graph, against the same made one by one.

use crate::device::{Count, count, fail, gpu, is_real};
use crate::named::{self, Ratings, WideDeep};
use crate::uploads::Machine;
use crate::{Logistic, LogisticOff};
use nnz::data::{BatchOptions, Batches, DataSource, Order};
use nnz::device::cuda::CudaError;
use nnz::model::OnGpu;
use nnz::optimizer::Updater;
use nnz::prelude::*;

const ROWS: usize = 100;
const COLUMNS: usize = 60;
const BATCH: usize = 12;

/// The largest batches come first, one for each block; of those after them each has an entry more
/// than the one before it.
fn data() -> Dataset {
    let row = |row: usize| {
        let n = if row < 2 * BATCH { 8 } else { 5 + usize::from(row % BATCH < row / BATCH) };
        (0..n).map(move |entry| (entry * 7 + row % 7, ((row * 3 + entry) % 11) as f32 * 0.1 - 0.5))
    };
    let y = (0..ROWS).map(|row| (row % 3 % 2) as f32).collect();
    Dataset::builder()
        .input("x", Csr::from_rows(COLUMNS, (0..ROWS).map(row)).unwrap())
        .label("y", Dense::new([ROWS, 1], y).unwrap())
        .build()
        .unwrap()
}

/// What a model of some steps comes to.
struct Run {
    /// The bits of the losses and of the parameters.
    bits: Vec<u64>,
    /// The launches of each step, those of graphs, and the changes of these.
    launches: Vec<[usize; 3]>,
    /// Why there were no graphs.
    refused: Option<CudaError>,
}

/// Two epochs, the last step of which has fewer rows, at rates that change once.
fn run<M: Model<Element = f32>>(host: &M, data: &Dataset, one_by_one: bool) -> Run {
    let mut there = OnGpu::new(host, &gpu()).unwrap();
    let gpu = there.gpu().clone();
    gpu.wait_for_each_kernel(one_by_one);
    let rule = AdaGrad { learning_rate: 0.5, ..AdaGrad::default() };
    let mut updater = Updater::for_model(rule, &there).unwrap();
    updater.set_records_outputs(false);
    let options =
        BatchOptions { batch_size: BATCH, order: Order::Sequential, ..BatchOptions::default() };
    let mut batches = data.batches(M::INPUTS, &options).unwrap();
    let (mut losses, mut launches) = (Vec::new(), Vec::new());
    let counts = || {
        if is_real() {
            [0; 3]
        } else {
            [Count::Launches, Count::GraphLaunches, Count::GraphChanges].map(count)
        }
    };
    for epoch in 0..2 {
        batches.start_epoch(epoch).unwrap();
        while let Some(batch) = batches.next_batch().unwrap() {
            let before = counts();
            let batch = there.bind(&batch).unwrap();
            there.take_batch(&batch).unwrap();
            there.begin_step_on_taken(&mut updater, None, |_| ()).unwrap();
            let after = counts();
            launches.push([0, 1, 2].map(|of| after[of] - before[of]));
        }
        updater.set_learning_rate(0.25).unwrap();
    }
    there.late_losses(&mut losses).unwrap();
    updater.flush_model(&mut there).unwrap();
    let weights = there.parameters().into_iter().flat_map(|of| of.values().to_vec());
    let bits = losses.iter().map(|loss| loss.to_bits());
    let bits = bits.chain(weights.map(|weight| weight.to_bits().into())).collect();
    Run { bits, launches, refused: gpu.graphs_refused().cloned() }
}

fn hold<M: Model<Element = f32>>(host: &M, data: &Dataset) -> Run {
    let one_by_one = run(host, data, true);
    assert!(one_by_one.launches.iter().all(|[_, graphs, _]| *graphs == 0));
    let found = run(host, data, false);
    assert!(found.bits == one_by_one.bits);
    assert_eq!(found.refused, None);
    found
}

#[test]
fn launches_of_a_graph_are_those_that_were_made_one_by_one() {
    let data = data();
    let logistic = hold(&Logistic::new(dims! { d: COLUMNS }, Seed(3)).unwrap(), &data);
    let machine = hold(&Machine::new(dims! { d: COLUMNS, k: 4 }, Seed(3)).unwrap(), &data);
    let unfused = hold(&LogisticOff::new(dims! { d: COLUMNS }, Seed(3)).unwrap(), &data);
    let ratings = Ratings::new(named::sizes::<Ratings>(COLUMNS), Seed(3)).unwrap();
    let ratings = hold(&ratings, &named::rated(ROWS));
    let deep = hold(&WideDeep::new(named::sizes::<WideDeep>(COLUMNS), Seed(3)).unwrap(), &data);
    if is_real() {
        return;
    }
    // Batches alternate between two blocks, in each of which a step is the first of its kind, and
    // the second has what the graph is made of.
    let steady = 4..17;
    for [launches, graphs, changes] in &logistic.launches[steady.clone()] {
        assert_eq!([launches, graphs], [&0, &2], "{:?}", logistic.launches);
        assert!(*changes > 0, "other batches");
    }
    // Without a bias there are two launches up to the loss, as there are of layers.
    for of in [&machine, &deep] {
        for [launches, graphs, _] in &of.launches[steady.clone()] {
            assert_eq!([launches, graphs], [&2, &1], "{:?}", of.launches);
        }
    }
    // The batches of look-ups have equal shapes, but for the last one.
    for [launches, graphs, _] in &ratings.launches[steady.clone()] {
        assert_eq!([launches, graphs], [&0, &2], "{:?}", ratings.launches);
    }
    for of in [&logistic, &machine, &ratings, &deep] {
        assert!(of.launches[..2].iter().all(|[_, graphs, _]| *graphs == 0));
    }
    // The host waits within such a step.
    assert!(unfused.launches.iter().all(|[_, graphs, _]| *graphs == 0));
}

#[test]
fn where_graphs_are_refused_launches_are_made_one_by_one() {
    if is_real() {
        return;
    }
    let host = Logistic::new(dims! { d: COLUMNS }, Seed(3)).unwrap();
    let data = data();
    let expected = run(&host, &data, false);
    fail(c"graph");
    let found = run(&host, &data, false);
    assert!(found.bits == expected.bits);
    let Some(refused) = found.refused else { panic!("no error") };
    let call = "cuGraphInstantiateWithFlags";
    assert!(matches!(refused, CudaError::Driver { call: found, .. } if found == call), "{refused}");
    assert!(found.launches.iter().all(|[launches, graphs, _]| *launches > 0 && *graphs == 0));
}

#[test]
fn a_kernel_that_fails_in_a_graph_is_named() {
    if is_real() {
        return;
    }
    let data = data();
    let host = Logistic::new(dims! { d: COLUMNS }, Seed(3)).unwrap();
    for kernel in [c"mean_of_parts", c"write_runs", c"update"] {
        let mut there = OnGpu::new(&host, &gpu()).unwrap();
        let mut updater = Updater::for_model(Sgd::default(), &there).unwrap();
        updater.set_records_outputs(false);
        let options = BatchOptions { batch_size: BATCH, ..BatchOptions::default() };
        let mut batches = data.batches(Logistic::INPUTS, &options).unwrap();
        for step in 0..6 {
            let batch = batches.next_batch().unwrap().unwrap();
            let batch = there.bind(&batch).unwrap();
            if step == 5 {
                fail(kernel);
            }
            let before = count(Count::GraphLaunches);
            let found = there.train_step(&batch, &mut updater);
            assert!(step < 4 || count(Count::GraphLaunches) > before);
            assert!(step == 5 || found.is_ok(), "{found:?}");
        }
        let found = there.into_host().map(|_| ()).unwrap_err();
        let nnz::model::Error::Cuda(CudaError::Kernel { kernels, .. }) = &found else {
            panic!("{found:?}")
        };
        assert!(kernels.contains(&kernel.to_str().unwrap()), "{found:?}");
    }
}
