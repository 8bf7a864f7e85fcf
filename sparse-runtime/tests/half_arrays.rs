//! Arrays of `f16` and `bf16`.

use sparse_core::element::{Stored, bf16, f16};
use sparse_runtime::formats::{Csr, Dense, RowSparse};

#[test]
fn arrays_hold_halves() {
    let x = Csr::from_rows(4, [vec![(1, 0.5f32), (3, 70000.0)], vec![(0, 1.0 / 3.0)]]).unwrap();
    let half: Csr<f16> = x.cast();
    assert_eq!(half.cast::<f32>().values(), [0.5, f32::INFINITY, 0.333_251_95]);
    assert_eq!(
        half.to_string(),
        "csr [2, 4] f16, 3 stored (37.5 %)\n  0: (1) 0.5, (3) inf\n  1: (0) 0.33325195"
    );
    let brief: Dense<bf16> = x.to_dense().unwrap().cast();
    assert_eq!(brief.get(&[0, 3]), Some(bf16::from_f32(70000.0)));
    assert_eq!(brief.to_csr().unwrap().cast::<f32>().values(), [0.5, 70144.0, 0.333_984_38]);
    let rows: RowSparse<f16> = half.to_row_sparse().unwrap();
    assert_eq!(rows.to_csr().unwrap(), half);
    assert!(half.try_cast::<bf16>().is_err());
    assert_eq!("bf16".parse(), Ok(bf16::TYPE));
}
