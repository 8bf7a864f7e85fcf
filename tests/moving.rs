//! Operators that move elements, in models.

#![allow(clippy::unwrap_used)]

use nnz::prelude::*;

graph! {
    /// A function of arrays.
    pub model Parts {
        input x: csr[n, 6];
        input z: row_sparse[4, 2];
        let left = slice(x, begin = [_, 0], end = [_, 2]);
        let tail = slice_axis(z, axis = 0, begin = -2);
        output left;
        output tail;
        output backwards = slice(x, step = [-1, -2]);
        output wide = concat(x, left, x, axis = 1);
        output both = concat(z, tail, axis = 0);
    }

    /// Rows of a table that have a meaning of their own.
    pub model Bias {
        input x: csr[n, 5];
        label y: dense[n, 1];
        param w: row_sparse[6, 1] = Constant(1.0);
        let weights = slice(w, begin = [1]);
        let bias = slice(w, end = [1]);
        loss squared_error(dot(x, weights) + dense(bias), y);
    }
}

#[test]
fn parts_and_joins() {
    let x =
        Csr::from_rows(6, [vec![(0, 1.0), (3, 2.0), (5, 3.0)], vec![], vec![(1, 4.0)]]).unwrap();
    let z = RowSparse::new([4, 2], vec![0, 3], vec![1.0, 2.0, 3.0, 4.0]).unwrap();
    let mut model = Parts::new(dims! {}, Seed(1)).unwrap();
    let batch = PartsBatch { x: x.view(), z: z.view(), ..Default::default() };
    let found = model.forward(&batch).unwrap();
    assert_eq!(found.left, Csr::from_rows(2, [vec![(0, 1.0)], vec![], vec![(1, 4.0)]]).unwrap());
    let backwards = [vec![(2, 4.0)], vec![], vec![(0, 3.0), (1, 2.0)]];
    assert_eq!(found.backwards, Csr::from_rows(3, backwards).unwrap());
    assert_eq!(found.tail, RowSparse::new([2, 2], vec![1], vec![3.0, 4.0]).unwrap());
    let first = vec![(0, 1.0), (3, 2.0), (5, 3.0), (6, 1.0), (8, 1.0), (11, 2.0), (13, 3.0)];
    let last = vec![(1, 4.0), (7, 4.0), (9, 4.0)];
    assert_eq!(found.wide, Csr::from_rows(14, [first, vec![], last]).unwrap());
    let both = RowSparse::new([6, 2], vec![0, 3, 5], vec![1.0, 2.0, 3.0, 4.0, 3.0, 4.0]).unwrap();
    assert_eq!(found.both, both);
}

/// The gradient of a part of a row_sparse table is row_sparse.
#[test]
fn gradients_of_parts_of_a_table() {
    let x = Csr::from_rows(5, [vec![(1, 2.0)], vec![(1, 1.0), (4, 3.0)]]).unwrap();
    let y = Dense::new([2, 1], vec![0.0, 0.0]).unwrap();
    let mut model = Bias::new(dims! {}, Seed(1)).unwrap();
    let batch = BiasBatch { x: x.view(), y: y.view(), ..Default::default() };
    model.loss_and_grads(&batch).unwrap();
    // Scores 2 + 1 and 4 + 1; the gradient of each is half the error.
    let expected = RowSparse::new([6, 1], vec![0, 2, 5], vec![4.0, 5.5, 7.5]).unwrap();
    assert_eq!(model.gradients().w, expected);
}
