//! Weights after a step of a large batch that names one row, against `f64`.

use super::{Reads, Rows, Visitor, step};
use crate::linear::{Fixed, Scratch};
use crate::optimizer::{ParameterSpec, Updater};
use nnz_arrays::kernels::Parallel;
use nnz_arrays::parameter_memory::Table;
use nnz_optim::Sgd;
use sparse_core::storage::Storage;

const SIZE: usize = 4;

/// b₀ and ⟨p₁, p₂⟩.
#[derive(Clone, Copy)]
struct Numbers;

impl Reads<3, 2> for Numbers {
    fn each<V: Visitor>(visitor: &mut V) {
        visitor.element::<0, 0>();
        visitor.inner::<1, 1, 2>();
    }
}

/// The weights after one step of `n_rows` rows of data that name row 1 of each table, whose
/// gradients are the same.
fn after_a_step(n_rows: usize) -> [Vec<f32>; 3] {
    let sizes = [1, SIZE, SIZE];
    let spec =
        |i: usize| ParameterSpec::new(format!("p{i}"), 2, sizes[i], Some(Storage::RowSparse));
    let rule = Sgd { learning_rate: 1.0, ..Sgd::default() };
    let mut updater = Updater::<Sgd, f32>::new(rule, [0, 1, 2].map(spec).to_vec()).unwrap();
    let mut tables = [1.0, 1000.0, 0.5]
        .into_iter()
        .zip(sizes)
        .map(|(value, size)| Table::from_values(size, &vec![value; 2 * size]))
        .collect::<Vec<Table<f32>>>();
    let mut scratch = Scratch::default();
    let [a, b, c] = &mut tables[..] else { unreachable!() };
    let lent = [(0, a), (1, b), (2, c)];
    updater.begin_step().unwrap();
    let share = 1.0 / n_rows as f32;
    let rows = Rows { count: n_rows, ids: |_| [1; 3] };
    let row_function = |_: usize, numbers: &mut [f32], _: &mut [f32]| {
        numbers.fill(-2.0 * share);
        0.0
    };
    let (width, one) = (Fixed::<SIZE>, Parallel::Sequential);
    step(Numbers, rows, lent, &mut updater, width, one, &mut scratch, row_function).unwrap();
    updater.end_step().unwrap();
    let mut values = tables.iter().map(|table| table.values().to_vec());
    std::array::from_fn(|_| values.next().unwrap())
}

#[test]
fn n1b_a_row_that_all_rows_of_data_name_has_one_step() {
    for n_rows in [1 << 10, 1 << 17] {
        let [b, p, q] = after_a_step(n_rows);
        assert_eq!(b, [1.0, 3.0]);
        assert_eq!(p, [[1000.0; SIZE], [1001.0; SIZE]].concat());
        assert_eq!(q, [[0.5; SIZE], [2000.5; SIZE]].concat());
    }
}
