//! Element-wise operators as one loop, against the same models with `fuse = off`: bit for bit.

use nnz::core::inspect::Written;
use nnz::formats::RowSelection;
use nnz::prelude::*;

twins! {
    /// Over dense values: operands of the same shape, one for each row, one for each column, a
    /// single one, numbers.
    Network, NetworkUnfused {
        input a: dense[n, k];
        input of_row: dense[n, 1];
        input other: dense[n, 3];
        label y: dense[n, 1];
        param h: dense[k, 3] = Normal { mean: 0.0, std: 0.5 };
        param bias: dense[3] = Normal { mean: 0.0, std: 0.5 };
        param scale: dense[] = Constant(0.75);
        param g: dense[3, 1] = Normal { mean: 0.0, std: 0.5 };
        let hidden = tanh((dot(a, h) + bias) * scale - 2.0 * of_row) / (1.0 + abs(other));
        let both = power(abs(hidden), 1.5) * exp(-other) + maximum(hidden, other);
        let score = dot(both, g);
        loss squared_error(score, y);
        output score;
        output gate = sigmoid(other * bias) * (1.0 - sigmoid(other * bias));
    }

    /// Over what a csr stores, and over what another one does.
    Stored, StoredUnfused {
        input x: csr[n, d];
        input z: csr[n, d];
        label y: dense[n, 1];
        param w: row_sparse[d, 1] = Normal { mean: 0.0, std: 0.5 };
        param(frozen) scale: dense[1] = Constant(0.75);
        let log = log1p(abs(x)) * sign(x);
        let both = 2.0 * log * scale * square(sin(x));
        let score = dot(2.0 * tanh(z * 3.0), w);
        loss squared_error(score, y);
        output score;
        output both;
        output sum = sqrt(abs(x)) + tanh(z) * z;
    }

    /// Over stored rows.
    Rows, RowsUnfused {
        input r: row_sparse[m, 2];
        param t: row_sparse[m, 2] = Normal { mean: 0.0, std: 0.5 };
        let doubled = 2.0 * tanh(r);
        output some = doubled * r - relu(r / 3.0);
        output all = square(t) * t - 0.5 * t;
    }
}

const ROWS: usize = 6;

/// Values on which functions differ: zeros of both signs, huge and tiny ones, infinities, NaN.
const ODD: [f32; 12] = [
    0.0,
    -0.0,
    1.0,
    -2.5,
    1e-30,
    -1e-39,
    3e38,
    f32::INFINITY,
    f32::NEG_INFINITY,
    f32::NAN,
    0.3,
    -7.0,
];

fn odd(shape: [usize; 2], start: usize) -> Dense {
    let size = shape[0] * shape[1];
    Dense::new(shape, (start..start + size).map(|i| ODD[i * 5 % ODD.len()]).collect()).unwrap()
}

fn tame(shape: [usize; 2], start: usize) -> Dense {
    let size = shape[0] * shape[1];
    let values = (start..start + size).map(|i| (i * 7 % 13) as f32 * 0.25 - 1.5);
    Dense::new(shape, values.collect()).unwrap()
}

/// Numbers, of which NaN is any.
fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|x| if x.is_nan() { u32::MAX } else { x.to_bits() }).collect()
}

fn same_csr(found: &Csr, expected: &Csr) {
    assert_eq!(found.indptr(), expected.indptr());
    assert!(found.columns().iter().eq(expected.columns().iter()));
    assert_eq!(bits(found.values()), bits(expected.values()));
}

#[test]
fn dense_values_have_the_same_bits() {
    let dims = dims! { k: 4 };
    let mut fused = Network::new(dims.clone(), Seed(1)).unwrap();
    let mut unfused = NetworkUnfused::new(dims, Seed(1)).unwrap();
    // Each in the arrays of the one before.
    for n in [ROWS, 1, 0, 3] {
        for values in [tame, odd] {
            let (a, of_row, other) = (tame([n, 4], 1), tame([n, 1], 2), values([n, 3], 3));
            let y = tame([n, 1], 5);
            let batch = NetworkBatch {
                a: a.view(),
                of_row: of_row.view(),
                other: other.view(),
                y: y.view(),
            };
            let same = NetworkUnfusedBatch {
                a: a.view(),
                of_row: of_row.view(),
                other: other.view(),
                y: y.view(),
            };
            let loss = fused.loss_and_grads(&batch).unwrap();
            let expected = unfused.loss_and_grads(&same).unwrap();
            assert_eq!(bits(&[loss as f32]), bits(&[expected as f32]));
            let (found, expected) = (fused.gradients(), unfused.gradients());
            assert_eq!(bits(found.h.values()), bits(expected.h.values()));
            assert_eq!(bits(found.bias.values()), bits(expected.bias.values()));
            assert_eq!(bits(found.scale.values()), bits(expected.scale.values()));
            assert_eq!(bits(found.g.values()), bits(expected.g.values()));
            let (found, expected) =
                (fused.forward(&batch).unwrap(), unfused.forward(&same).unwrap());
            assert_eq!(found.gate.shape(), expected.gate.shape());
            assert_eq!(bits(found.gate.values()), bits(expected.gate.values()));
            assert_eq!(bits(found.score.values()), bits(expected.score.values()));
        }
    }
}

/// No entries, empty first and last rows, stored zeros, all of a row; whole, some of its rows, rows
/// in another order.
#[test]
fn stored_values_have_the_same_bits() {
    const WIDTH: usize = 5;
    let entry = |row: usize, column: usize| (column, ODD[(row * WIDTH + column) % ODD.len()]);
    let some = Csr::from_rows(
        WIDTH,
        [vec![], vec![0, 4], (0..WIDTH).collect(), vec![], vec![3], vec![]]
            .into_iter()
            .enumerate()
            .map(|(row, columns)| {
                columns.into_iter().map(|column| entry(row, column)).collect::<Vec<_>>()
            }),
    )
    .unwrap();
    let none = Csr::zeros(ROWS, WIDTH);
    let all = tame([ROWS, WIDTH], 1).to_csr().unwrap();
    let dims = dims! { d: WIDTH };
    let mut fused = Stored::new(dims.clone(), Seed(1)).unwrap();
    let mut unfused = StoredUnfused::new(dims, Seed(1)).unwrap();
    let labels = tame([ROWS, 1], 3);
    let (mut first, mut second) = (RowSelection::new(), RowSelection::new());
    for (x, z) in [(&some, &all), (&none, &some), (&all, &none), (&some, &some)] {
        let turned = [4, 1, 2, 2];
        let views = [
            (x.view(), z.view()),
            (x.view().rows(1..4).unwrap(), z.view().rows(2..5).unwrap()),
            (first.gather(x, &turned).unwrap(), second.gather(z, &turned).unwrap()),
        ];
        for (x, z) in views {
            let y = labels.view().rows(0..x.n_rows()).unwrap();
            let batch = StoredBatch { x, z, y };
            let same = StoredUnfusedBatch { x, z, y };
            let loss = fused.loss_and_grads(&batch).unwrap();
            let expected = unfused.loss_and_grads(&same).unwrap();
            assert_eq!(bits(&[loss as f32]), bits(&[expected as f32]));
            let (found, expected) = (&fused.gradients().w, &unfused.gradients().w);
            assert_eq!(found.indices(), expected.indices());
            assert_eq!(bits(found.values()), bits(expected.values()));
            let (found, expected) = (fused.outputs(), unfused.outputs());
            same_csr(&found.both, &expected.both);
            same_csr(&found.sum, &expected.sum);
            assert_eq!(bits(found.score.values()), bits(expected.score.values()));
        }
    }
}

#[test]
fn stored_rows_have_the_same_bits() {
    let dims = dims! { m: 4 };
    let mut fused = Rows::new(dims.clone(), Seed(1)).unwrap();
    let mut unfused = RowsUnfused::new(dims, Seed(1)).unwrap();
    for rows in [&[][..], &[0, 3], &[0, 1, 2, 3], &[2]] {
        let rows = rows.iter().map(|&row| (row, [ODD[row], ODD[11 - row]]));
        let r = RowSparse::from_rows(4, rows).unwrap();
        let found = fused.forward(&RowsBatch { r: r.view() }).unwrap();
        let expected = unfused.forward(&RowsUnfusedBatch { r: r.view() }).unwrap();
        for (found, expected) in [(&found.some, &expected.some), (&found.all, &expected.all)] {
            assert_eq!(found.indices(), expected.indices());
            assert_eq!(bits(found.values()), bits(expected.values()));
        }
    }
}

#[test]
fn values_between_take_no_memory() {
    let workspace = |plan: nnz::model::Plan, n: usize| {
        let mut sizes = nnz::core::inspect::Sizes::default();
        sizes.dim("n", n);
        sizes.dim("k", 4);
        plan.bind(sizes).memory().workspace.unwrap()
    };
    let (fused, unfused) = (workspace(Network::PLAN, 100), workspace(NetworkUnfused::PLAN, 100));
    assert!(fused < unfused, "{fused} {unfused}");
    let within = |plan: nnz::model::Plan| {
        plan.values.iter().filter(|value| matches!(value.written, Some(Written::Within(_)))).count()
    };
    assert_eq!((within(NetworkUnfused::PLAN), within(StoredUnfused::PLAN)), (0, 0));
    let text = Stored::PLAN.to_string();
    assert!(text.contains("over the stored elements of both"), "{text}");
}
