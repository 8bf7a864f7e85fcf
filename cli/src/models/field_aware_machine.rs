//! A field-aware factorization machine (Juan, Zhuang, Chin and Lin, RecSys 2016): a feature has
//! factors for each field that it may meet.

use nnz::prelude::*;

graph! {
    /// Σ xᵢ xⱼ ⟨v[i, fieldⱼ], v[j, fieldᵢ]⟩ over the pairs of stored elements of each row.
    operator field_interaction(x, field, v) {
        rule csr csr row_sparse -> dense = interaction;
        shape [n, d] [n, d] [d, f, k] -> [n, 1];
        reads v by columns(x);
        gradient v = field_interaction_gradient(x, field, v, grad);
    }

    /// The gradient of that with respect to the factors: rows of the batch's features alone.
    operator field_interaction_gradient(x, field, v, grad) {
        rule csr csr row_sparse dense -> row_sparse = gradient;
        shape [n, d] [n, d] [d, f, k] [n, 1] -> [d, f, k];
        reads v by columns(x);
        stores by columns(x);
    }

    /// A field-aware factorization machine; the output is the probability of the positive class.
    pub model FieldAwareMachine {
        input x: csr[n, d];
        input field: csr[n, d];
        label y: dense[n, 1];

        param w: row_sparse[d, 1] = Zeros;
        param v: row_sparse[d, fields, k] = Normal { mean: 0.0, std: 0.05 };
        param b: dense[1] = Zeros;

        let score = dot(x, w) + field_interaction(x, field, v) + b;

        loss logistic(score, y);
        output probability = sigmoid(score);
    }

    /// [`FieldAwareMachine`] with a weight for each sample.
    pub model WeightedFieldAwareMachine {
        input x: csr[n, d];
        input field: csr[n, d];
        label y: dense[n, 1];
        label weight: dense[n];

        param w: row_sparse[d, 1] = Zeros;
        param v: row_sparse[d, fields, k] = Normal { mean: 0.0, std: 0.05 };
        param b: dense[1] = Zeros;

        let score = dot(x, w) + field_interaction(x, field, v) + b;

        loss logistic(score, y, weight = weight);
        output probability = sigmoid(score);
    }
}

/// A stored element: its feature, its field and its value.
#[derive(Clone, Copy)]
struct Entry {
    feature: usize,
    field: usize,
    value: f32,
}

/// Calls a function with the number of each sample and its pairs of elements.
fn each_pair(x: CsrView<'_>, field: CsrView<'_>, mut pair: impl FnMut(usize, Entry, Entry)) {
    let mut entries: Vec<Entry> = Vec::new();
    for (sample, (stored, fields)) in x.iter_rows().zip(field.iter_rows()).enumerate() {
        entries.clear();
        entries.extend(stored.zip(fields).map(|((feature, value), (_, field))| {
            // Fields are small whole numbers, as the reader checks.
            Entry { feature, field: field as usize, value }
        }));
        for (place, first) in entries.iter().enumerate() {
            entries[place + 1..].iter().for_each(|second| pair(sample, *first, *second));
        }
    }
}

/// The factors of a feature for a field; none for a field that the model does not have.
fn factors(v: RowSparseView<'_>, feature: usize, field: usize) -> &[f32] {
    let k = v.shape().last().copied().unwrap_or(0);
    let row = v.row(feature).unwrap_or_default();
    row.get(field * k..(field + 1) * k).unwrap_or_default()
}

fn interaction(out: &mut Dense, x: CsrView<'_>, field: CsrView<'_>, v: RowSparseView<'_>) {
    let out = out.values_mut();
    each_pair(x, field, |sample, first, second| {
        let left = factors(v, first.feature, second.field);
        let right = factors(v, second.feature, first.field);
        let inner: f32 = left.iter().zip(right).map(|(left, right)| left * right).sum();
        out[sample] += first.value * second.value * inner;
    });
}

fn gradient(
    out: &mut RowSparse,
    x: CsrView<'_>,
    field: CsrView<'_>,
    v: RowSparseView<'_>,
    grad: DenseView<'_>,
) {
    let shape = *v.shape();
    let (row_size, k) = (shape.row_size(), shape.last().copied().unwrap_or(0));
    let mut ids: Vec<u64> = x.iter_columns().map(|feature| feature as u64).collect();
    ids.sort_unstable();
    ids.dedup();
    let mut sums = vec![0.0f32; ids.len() * row_size];
    each_pair(x, field, |sample, first, second| {
        let share = grad.values()[sample] * first.value * second.value;
        for (own, other) in [(first, second), (second, first)] {
            let Ok(position) = ids.binary_search(&(own.feature as u64)) else { continue };
            let start = position * row_size + other.field * k;
            let others = factors(v, other.feature, own.field);
            // A field that the model does not have has no factors.
            if let Some(sums) =
                sums.get_mut(start..start + k).filter(|_| other.field * k < row_size)
            {
                sums.iter_mut().zip(others).for_each(|(sum, other)| *sum += share * other);
            }
        }
    });
    if let Ok(sums) = RowSparse::new(shape, ids, sums) {
        *out = sums;
    }
}
