use super::*;

type State = [f32; 2];

fn counting(n_rows: usize, row_size: usize) -> Table<f32> {
    let values: Vec<f32> = (0..n_rows * row_size).map(|i| i as f32).collect();
    Table::from_values(row_size, &values)
}

/// Adds to the first weight of a row and sets its state, as a step would.
fn write(table: &mut Table<f32>, tenant: &Tenant, row: usize, change: f32, state: State) {
    assert!(row < table.n_rows());
    let n_states = table.row_size();
    let layout = Layout::of::<f32, State>(table.row_size(), n_states);
    let base = table.blocks::<State>(tenant, Recorder::NONE, n_states);
    // SAFETY: the row is one of the table's, the layout that of its blocks.
    unsafe {
        *base.add(row * layout.stride).cast::<f32>() += change;
        *base.add(row * layout.stride + layout.states).cast::<State>() = state;
    }
}

#[test]
fn whatever_was_written_last_counts() {
    for row_size in [1, 3] {
        let tenant = Tenant::default();
        let mut table = counting(4, row_size);
        assert!(table.states_of::<State>(&tenant).is_empty());
        write(&mut table, &tenant, 2, 0.5, [7.0, 8.0]);
        let second = (2 * row_size) as f32;
        assert_eq!(table.row(2)[0], second + 0.5);
        assert_eq!(table.values()[2 * row_size], second + 0.5);
        assert_eq!(table.row(3)[0], (3 * row_size) as f32);
        table.values_mut()[2 * row_size] = 100.0;
        write(&mut table, &tenant, 2, 1.0, [7.0, 9.0]);
        assert_eq!(table.values()[2 * row_size], 101.0);
        let states: Vec<State> = table.states_of(&tenant);
        assert_eq!(states.len(), 4 * row_size);
        assert_eq!((states[0], states[2 * row_size]), ([0.0; 2], [7.0, 9.0]));
        let copy = table.clone();
        assert_eq!(copy.values(), table.values());
        assert_eq!(copy.states_of::<State>(&tenant), states);
    }
}

#[test]
fn two_updaters_keep_their_own_states() {
    let (first, second) = (Tenant::default(), Tenant::default());
    let mut table = counting(3, 1);
    write(&mut table, &first, 0, 1.0, [1.0, 1.0]);
    write(&mut table, &second, 0, 1.0, [2.0, 2.0]);
    assert_eq!(table.values(), [2.0, 1.0, 2.0]);
    write(&mut table, &first, 1, 1.0, [3.0, 3.0]);
    assert_eq!(table.values(), [2.0, 2.0, 2.0]);
    assert_eq!(table.states_of::<State>(&first), [[1.0, 1.0], [3.0, 3.0], [0.0, 0.0]]);
    assert_eq!(table.states_of::<State>(&second), [[2.0, 2.0], [0.0, 0.0], [0.0, 0.0]]);
    drop(second);
    let third = Tenant::default();
    write(&mut table, &third, 2, 1.0, [4.0, 4.0]);
    assert_eq!(table.parked.len(), 1);
    assert_eq!(table.values(), [2.0, 2.0, 3.0]);
}

#[test]
fn tables_without_elements() {
    let tenant = Tenant::default();
    for (n_rows, row_size) in [(0, 3), (3, 0)] {
        let mut table = Table::<f32>::zeros(n_rows, row_size);
        table.blocks::<State>(&tenant, Recorder::NONE, row_size);
        assert!(table.is_empty() && table.values().is_empty() && table.values_mut().is_empty());
        assert!(table.states_of::<State>(&tenant).is_empty());
    }
}

#[cfg(target_os = "linux")]
#[test]
fn blocks_of_zeros_do_not_touch_their_memory() {
    let resident_pages = || -> usize {
        let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
        statm.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    let before = resident_pages();
    let tenant = Tenant::default();
    let mut table = Table::zeros(1 << 27, 1);
    write(&mut table, &tenant, 1 << 26, 1.0, [1.0, 1.0]);
    let touched = resident_pages().saturating_sub(before);
    // An eighth of the blocks' 2¹⁹ pages of 4 KiB, for what other tests do meanwhile.
    assert!(touched < 1 << 16, "{touched} pages became resident");
    assert_eq!(table.row(1 << 26), [1.0]);
}

/// Gives a row a slot, as a batch would.
fn give_slot(table: &mut Table<f32>, tenant: &Tenant, n_states: usize, row: usize) -> (u32, u32) {
    assert!(row < table.n_rows());
    let layout = Layout::with_slots::<f32, State>(1, n_states);
    let (base, first) = table.blocks_with_slots::<State>(tenant, Recorder::NONE, n_states, 1);
    // SAFETY: the row is one of the table's, the layout that of its blocks.
    let slot = unsafe { &mut *base.add(row * layout.stride + layout.slot.unwrap()).cast::<u32>() };
    let before = std::mem::replace(slot, first);
    (before, first)
}

#[test]
fn slots_come_and_go_beside_weights_and_states() {
    let tenant = Tenant::default();
    let mut table = counting(2000, 1);
    write(&mut table, &tenant, 1500, 0.5, [7.0, 8.0]);
    let (before, first) = give_slot(&mut table, &tenant, 1, 1500);
    assert!(before < first && table.has_slots(&tenant));
    // What was given before is below what is given now.
    let (before, second) = give_slot(&mut table, &tenant, 1, 1500);
    assert_eq!((before, second), (first, first + 1));
    let states: Vec<State> = table.states_of(&tenant);
    assert_eq!((states[1499], states[1500]), ([0.0; 2], [7.0, 8.0]));
    assert_eq!((table.row(1500), table.values()[1501]), (&[1500.5][..], 1501.0));
    // Another form knows no slots, nor does what comes after it.
    write(&mut table, &tenant, 3, 1.0, [1.0, 2.0]);
    assert!(!table.has_slots(&tenant));
    assert_eq!(table.states_of::<State>(&tenant)[1500], [7.0, 8.0]);
    let (before, first) = give_slot(&mut table, &tenant, 1, 1500);
    assert!(before == 0 && first > 0);
    assert_eq!((table.values()[3], table.values()[1500]), (4.0, 1500.5));
}

#[test]
fn slots_of_a_copy_are_its_own() {
    let tenant = Tenant::default();
    let mut table = counting(3, 1);
    give_slot(&mut table, &tenant, 0, 1);
    let mut copy = table.clone();
    for _ in 0..5 {
        give_slot(&mut table, &tenant, 0, 1);
    }
    for table in [&mut copy, &mut table] {
        let (before, first) = give_slot(table, &tenant, 0, 1);
        assert!(before < first);
    }
}

#[test]
fn a_form_is_changed_for_as_many_entries_as_rows() {
    let tenant = Tenant::default();
    let mut table = counting(100, 1);
    assert!(!table.slots_pay::<State>(&tenant, 0, 60));
    assert!(table.slots_pay::<State>(&tenant, 0, 60));
    give_slot(&mut table, &tenant, 0, 1);
    assert!(table.slots_pay::<State>(&tenant, 0, 1));
    // Somebody reads values, then somebody writes them.
    assert!(table.values().len() == 100 && table.slots_pay::<State>(&tenant, 0, 1));
    table.values_mut();
    assert!(!table.slots_pay::<State>(&tenant, 0, 60) && table.slots_pay::<State>(&tenant, 0, 60));
    // Blocks with states are made in any case.
    let other = Tenant::default();
    assert!(table.slots_pay::<State>(&other, 1, 1));
    write(&mut table, &other, 1, 1.0, [1.0, 1.0]);
    assert!(!table.slots_pay::<State>(&other, 1, 1));
    // But for the first change of blocks that have states.
    let mut table = counting(100, 1);
    write(&mut table, &other, 1, 1.0, [1.0, 1.0]);
    assert!(table.slots_pay::<State>(&other, 1, 1));
    // Nothing is to be copied.
    assert!(Table::<f32>::zeros(1 << 30, 1).slots_pay::<State>(&tenant, 0, 1));
}

/// Norms in either form, and without making the other one.
#[test]
fn n15_norms_cost_what_the_rows_do_that_were_written() {
    let tenant = Tenant::default();
    let mut table = Table::<f32>::zeros(10_000, 3);
    assert_eq!(table.norms(), Norms::default());
    table.values_mut()[3 * 70 + 1] = -3.0;
    table.values_mut()[29_999] = 4.0;
    let check = |table: &Table<f32>, expected: &[(usize, [f32; 3])]| {
        let mut rows = Vec::new();
        table.for_each_written_row(|row, weights| rows.push((row, weights.try_into().unwrap())));
        assert_eq!(rows, expected);
        let norms = table.norms();
        let all = || table.clone().values().to_vec().into_iter().map(f64::from);
        assert_eq!(norms.l1, all().map(f64::abs).sum::<f64>());
        assert_eq!(norms.sum_of_squares, all().map(|weight| weight * weight).sum::<f64>());
        assert_eq!(norms.n_rows_not_zero, expected.len() as u64);
    };
    check(&table, &[(70, [0.0, -3.0, 0.0]), (9_999, [0.0, 0.0, 4.0])]);
    write(&mut table, &tenant, 5_000, 0.5, [1.0, 1.0]);
    check(&table, &[(70, [0.0, -3.0, 0.0]), (5_000, [0.5, 0.0, 0.0]), (9_999, [0.0, 0.0, 4.0])]);
    assert!(table.values.get().is_none(), "the weights were gathered");
    // A row that became zero is none of them, in the form that was made before either.
    table.values_mut()[3 * 70 + 1] = 0.0;
    write(&mut table, &tenant, 5_000, 0.5, [1.0, 1.0]);
    check(&table, &[(5_000, [1.0, 0.0, 0.0]), (9_999, [0.0, 0.0, 4.0])]);
    assert_eq!(table.values()[3 * 70 + 1], 0.0);
}

/// Most of a table of 2²⁴ hashed columns is passed over at the speed of memory, a little at a time.
#[test]
fn n15_norms_of_a_large_table_are_those_of_its_written_rows() {
    let mut table = Table::<f32>::zeros(1 << 24, 1);
    let rows = (0..9_565usize).map(|k| k.wrapping_mul(0x9e37_79b9) % (1 << 24));
    rows.for_each(|row| table.values_mut()[row] = 2.0);
    let norms = table.norms();
    assert_eq!(norms.l1, 2.0 * norms.n_rows_not_zero as f64);
    assert!(norms.n_rows_not_zero > 9_000);
}

/// Norms by the weights of all rows, each read.
fn norms_of_all_rows(table: &Table<f32>) -> Norms {
    let mut norms = Norms::default();
    for row in (0..table.n_rows()).map(|row| table.row(row)) {
        row.iter().for_each(|weight| norms.l1 += f64::from(weight.abs()));
        row.iter().for_each(|weight| norms.sum_of_squares += f64::from(*weight).powi(2));
        norms.n_rows_not_zero += u64::from(row.iter().any(|weight| *weight != 0.0));
    }
    norms
}

/// Of pages of 2 MiB: with others the system maps less. Rows are powers of two, so that
/// no run of them lies in two pages: a read of it would map both.
#[test]
fn n15_norms_look_at_rows_in_pages_that_were_touched() {
    const N_ROWS: usize = 1 << 23;
    let rows = [3, 4, 1 << 21, N_ROWS - 1];
    let check = |table: &Table<f32>| {
        let n_looked_at = table.n_mapped_rows();
        let most = 3 * 3 * ((2 << 20) / (4 * table.row_size()));
        assert!(most < N_ROWS);
        if nnz_device::mapped_pages::MappedRanges::are_reported() {
            assert!(n_looked_at <= most, "{n_looked_at} rows of {most}");
        } else {
            eprintln!("skipped: the system does not report which pages are mapped");
            assert_eq!(n_looked_at, N_ROWS);
        }
        let norms = table.norms();
        assert_eq!(norms.n_rows_not_zero, rows.len() as u64);
        norms
    };
    let tenant = Tenant::default();
    for row_size in [1, 4] {
        let mut table = Table::<f32>::zeros(N_ROWS, row_size);
        rows.iter().for_each(|row| table.values_mut()[row * row_size] = *row as f32 + 0.1);
        check(&table);
        for _ in 0..2 {
            rows.iter().for_each(|row| write(&mut table, &tenant, *row, 0.5, [1.0, 2.0]));
            check(&table);
            table.values_mut()[0] = 0.0;
            check(&table);
        }
        rows.iter().for_each(|row| write(&mut table, &tenant, *row, 0.5, [1.0, 2.0]));
        table.blocks_with_slots::<State>(&tenant, Recorder::NONE, row_size, 1);
        let norms = check(&table);
        // This touches all of it, and takes seconds without optimisation.
        if row_size == 1 {
            assert_eq!(norms, norms_of_all_rows(&table));
        }
        table.blocks_with_slots::<State>(&tenant, Recorder::NONE, row_size, 1);
        assert_eq!(norms, table.norms());
    }
}

/// Whatever memory they lie in.
#[test]
fn n15_norms_of_filled_and_shared_tables_are_those_of_all_rows() {
    const N_ROWS: usize = 1 << 20;
    let check = |table: &Table<f32>| assert_eq!(table.norms(), norms_of_all_rows(table));
    let mut values = vec![0.0f32; 2 * N_ROWS];
    values.iter_mut().step_by(77_777).for_each(|value| *value = 0.3);
    check(&Table::from_values(2, &values));
    values.iter_mut().enumerate().for_each(|(i, value)| *value = (i % 100) as f32);
    check(&Table::from_values(2, &values));
    let mut run = Aligned::new(0.0f32, 2 * N_ROWS);
    run[N_ROWS + 1] = -2.0;
    let mut table = Table::of_run(N_ROWS, 2, run);
    check(&table);
    let mut shared = table.take_shared();
    check(&shared);
    shared.values_mut()[7] = 3.0;
    check(&shared);
    check(&table);
    let mut table = Table::<f32>::zeros_on_small_pages(N_ROWS, 2);
    table.values_mut()[2 * N_ROWS - 1] = 5.0;
    check(&table);
}

/// A file's bytes are there before they are mapped.
#[cfg(target_os = "linux")]
#[test]
fn n15_norms_of_a_mapped_file_are_those_of_all_rows() {
    const N_ROWS: usize = 3 << 20;
    let values: Vec<f32> = (0..N_ROWS).map(|row| (row % 1000 == 5) as u8 as f32).collect();
    let path = std::env::temp_dir().join(format!("nnz-mapped-table-{}", std::process::id()));
    std::fs::write(&path, bytemuck::cast_slice(&values)).unwrap();
    // SAFETY: this test alone has the file, and writes it no more.
    let file = unsafe { memmap2::Mmap::map(&std::fs::File::open(&path).unwrap()) }.unwrap();
    std::fs::remove_file(&path).unwrap();
    let run = Aligned::of_file(&std::sync::Arc::new(file), 0, N_ROWS).unwrap();
    let mut table = Table::of_run(N_ROWS, 1, run);
    assert_eq!(table.norms().n_rows_not_zero, values.iter().filter(|v| **v != 0.0).count() as u64);
    table.values_mut()[0] = 7.0;
    assert_eq!(table.norms(), norms_of_all_rows(&table));
}

#[test]
fn runs_of_ranges_of_bytes_ascend_and_are_disjoint() {
    let runs = |bytes: &[std::ops::Range<usize>]| -> Vec<_> {
        zeros::runs_of_bytes(bytes.iter().cloned(), 10, 7).collect()
    };
    assert_eq!(runs(&[]), []);
    assert_eq!(runs(&[0..1, 639..640, 640..642, 2000..2560]), [0..1, 1..2, 3..4]);
    assert_eq!(runs(&[600..1300, 4400..9000]), [0..3, 6..7]);
    let either = |one: &[std::ops::Range<usize>], other: &[std::ops::Range<usize>]| -> Vec<_> {
        in_either(one.iter().cloned(), other.iter().cloned()).collect()
    };
    assert_eq!(either(&[], &[]), []);
    assert_eq!(either(&[1..3, 7..9], &[]), [1..3, 7..9]);
    assert_eq!(either(&[1..3, 7..9], &[0..2, 2..8, 20..21]), [0..2, 2..3, 3..8, 8..9, 20..21]);
    assert_eq!(either(std::slice::from_ref(&(1..30)), &[2..3, 4..40]), [1..30, 30..40]);
}

/// Of no row there is nothing, whatever its size.
#[test]
fn norms_of_no_rows_are_zero() {
    for row_size in [0, 1, 1 << 58, usize::MAX] {
        assert_eq!(Table::<f32>::zeros(0, row_size).norms(), Norms::default());
    }
}
