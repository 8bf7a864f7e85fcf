//! What a fallback inserts, as emitted code carries it out: as few conversions as possible, and
//! back where an annotation says so.

use nnz::prelude::*;

graph! {
    /// Annotated values and outputs are csr, whatever their operators give.
    pub model Back {
        fallback = allow;
        input x: csr[n, d];
        let y: csr[n, d] = sqrt(x) - 1.0;
        output y;
        output twice: csr[n, d] = 2.0 * y;
        output z: csr[n, d] = cos(x);
        output dense_y: dense[n, d] = cos(x);
    }

    /// One of two sparse operands is converted.
    pub model Least {
        fallback = allow;
        input x: csr[n, d];
        label y: dense[n, k];
        param w: row_sparse[d, k] = Constant(0.5);
        input mask: csr[d, k];
        let masked = mask * w;
        let score = dot(x, masked);
        output score;
        loss squared_error(score, y);
    }
}

fn x() -> Csr {
    Csr::from_rows(3, [vec![(0, 1.0), (2, 4.0)], vec![]]).unwrap()
}

#[test]
fn annotated_values_are_converted_back() {
    let x = x();
    let mut model = Back::new(dims! {}, Seed(0)).unwrap();
    let outputs = model.forward(&BackBatch { x: x.view() }).unwrap();
    let (y, twice, z): (&Csr, &Csr, &Csr) = (&outputs.y, &outputs.twice, &outputs.z);
    assert_eq!(y.to_dense().unwrap().values(), [0.0, -1.0, 1.0, -1.0, -1.0, -1.0]);
    // The zero is not stored.
    assert_eq!(y.nnz(), 5);
    assert_eq!(twice.to_dense().unwrap().values(), [0.0, -2.0, 2.0, -2.0, -2.0, -2.0]);
    let cosine: &Dense = &outputs.dense_y;
    assert_eq!(z.to_dense().unwrap().values(), cosine.values());
    assert_eq!(cosine.values()[1], 1.0);
    // The root is converted, and back for `y`; `x` once for both cosines, and back for `z` alone.
    assert_eq!(
        kernels(Back::PLAN.values),
        ["dense_csr", "csr_dense", "dense_csr", "csr_dense"],
        "{}",
        Back::PLAN
    );
}

#[test]
fn a_conversion_back_is_said_to_be_of_an_annotation() {
    let positions = 0..Back::PLAN.values.len() as u32;
    let notes = positions.filter_map(|position| Back::PLAN.fallback(position));
    let notes: Vec<String> = notes.map(|note| note.to_string()).collect();
    assert!(notes[0].starts_with("fallback: `subtract` converts `%"), "{notes:?}");
    assert!(
        notes[1].starts_with("fallback: the annotation of `y` converts `%")
            && notes[1]
                .ends_with(" from dense to csr [n, d]: 8·nnz(y) + 8·n + 8 bytes instead of 4·n·d"),
        "{notes:?}"
    );
    assert!(notes[2].starts_with("fallback: `cos` converts `x`"), "{notes:?}");
    // Both cosines are one value, which has the name of the output.
    assert!(
        notes[3].starts_with("fallback: the annotation of `z` converts `dense_y` from dense"),
        "{notes:?}"
    );
}

/// The kernels of the conversions that were inserted.
fn kernels<'a>(values: &'a [nnz::core::inspect::PlanValue<'a>]) -> Vec<&'a str> {
    let computed = values.iter().filter_map(|value| value.computed);
    computed.filter(|how| how.fallback).map(|how| how.kernel).collect()
}

#[test]
fn one_operand_is_converted() {
    assert_eq!(kernels(Least::PLAN.values), ["dense_row_sparse", "dense_csr"], "{}", Least::PLAN);
    let x = x();
    let y = Dense::new([2, 1], vec![1.0, 0.0]).unwrap();
    let mask = Csr::from_rows(1, [vec![(0, 2.0)], vec![], vec![(0, 1.0)]]).unwrap();
    let mut model = Least::new(dims! { d: 3, k: 1 }, Seed(0)).unwrap();
    let batch = LeastBatch { x: x.view(), y: y.view(), mask: mask.view() };
    assert_eq!(model.forward(&batch).unwrap().score.values(), [3.0, 0.0]);
    // The residuals over n are 1 and 0; the gradient of the entries that the mask has is one of
    // rows.
    let loss = model.loss_and_grads(&batch).unwrap();
    assert_eq!(loss, 1.0);
    assert_eq!(model.gradients().w, RowSparse::new([3, 1], vec![0, 2], vec![2.0, 4.0]).unwrap());
}
