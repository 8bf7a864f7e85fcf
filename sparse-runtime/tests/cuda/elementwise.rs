//! Element-wise functions and reductions: every row of the operator table that is one, against the
//! row's own formula.

use crate::device::gpu;
use crate::near;
use sparse_core::formula::{self, Formula};
use sparse_core::ir::{AttributeValue, Attributes, Axes, Number as AttributeNumber};
use sparse_core::operators::{AttributeKind, Combine, Kind, Operator, all, find};
use sparse_runtime::device::cuda::CudaError;
use sparse_runtime::formats::{Csr, Dense, RowSparse};
use sparse_runtime::kernels::binary::cuda::Number;
use sparse_runtime::kernels::cuda::{CudaContext, ScalarFunction};
use sparse_runtime::kernels::reduce::Over;
use sparse_runtime::kernels::reduce::cuda::ReduceFunction;
use sparse_runtime::kernels::{binary, reduce, unary};
use std::collections::BTreeSet;

/// Where functions have poles, bounds, halves and signs.
const POINTS: [f64; 14] =
    [-40.0, -2.5, -1.5, -0.5, -0.25, -0.0, 0.0, 1e-9, 0.5, 0.75, 2.5, 3.0, 90.0, f64::NAN];

/// Attributes of an operator, those that must be given being a half.
fn attributes(operator: &Operator) -> Attributes {
    let mut attributes = Attributes::default();
    for attribute in operator.attributes {
        if attribute.kind == AttributeKind::Number(None) {
            attributes.set(attribute.name, AttributeValue::Number(AttributeNumber(0.5)));
        }
    }
    attributes
}

/// What a formula is made of: functions, signs, and the way of naming attributes.
fn parts(operator: &Operator, formula: &Formula, known: &mut BTreeSet<String>) -> bool {
    match formula {
        Formula::Number(_) => known.insert("number".to_owned()),
        Formula::Name(name) => match operator.attribute(name) {
            Some(attribute) => known.insert(format!("{:?}", attribute.kind)),
            None => known.insert(name.clone()),
        },
        Formula::Negate(inner) => known.insert("-x".to_owned()) | parts(operator, inner, known),
        Formula::Binary(sign, lhs, rhs) => {
            known.insert(sign.symbol().to_owned())
                | parts(operator, lhs, known)
                | parts(operator, rhs, known)
        }
        Formula::Call(name, operands, _) => {
            let new = known.insert(format!("{name}()"));
            operands.iter().fold(new, |new, operand| parts(operator, operand, known) | new)
        }
    }
}

/// Of all operators those whose formulas have a part that none before them has: each is a kernel of
/// its own, which takes a fifth of a second to compile.
fn operators_with_new_parts() -> impl Iterator<Item = &'static Operator> {
    let mut known = BTreeSet::new();
    all().filter(move |operator| match operator.kind {
        Kind::Unary(formula) | Kind::Binary(_, formula) => {
            parts(operator, &formula::parse(formula).expect("a formula of the table"), &mut known)
        }
        _ => false,
    })
}

#[test]
fn functions_are_their_formulas() -> Result<(), CudaError> {
    let gpu = gpu();
    let mut context = CudaContext::new(&gpu);
    // A pair of all points; f64, so that what is compared is the function and not its rounding.
    let pairs = || POINTS.iter().flat_map(|&x| POINTS.iter().map(move |&y| (x, y)));
    let side = |of: fn((f64, f64)) -> f64| {
        Dense::new([POINTS.len(), POINTS.len()], pairs().map(of).collect()).unwrap().to_gpu(&gpu)
    };
    let (lhs, rhs) = (side(|pair| pair.0)?, side(|pair| pair.1)?);
    for operator in operators_with_new_parts() {
        let attributes = attributes(operator);
        let function = ScalarFunction::new(operator, &attributes).unwrap();
        let mut out = Dense::default();
        match operator.kind {
            Kind::Unary(_) => unary::cuda::stored(&mut out, lhs.view(), function, &mut context),
            _ => {
                binary::cuda::dense_dense(&mut out, lhs.view(), rhs.view(), function, &mut context)
            }
        }
        let expected: Vec<_> =
            pairs().map(|(x, y)| operator.elementwise(&attributes, &[x, y]).unwrap()).collect();
        near(operator.name, out.to_cpu()?.values(), &expected, 1e-12);
    }
    Ok(())
}

#[test]
fn arrays_broadcast_and_patterns_stay() -> Result<(), CudaError> {
    let gpu = gpu();
    let mut context = CudaContext::new(&gpu);
    let of = |name| ScalarFunction::new(find(name).unwrap(), &Attributes::default()).unwrap();

    let (matrix, row) = (
        Dense::new([2, 1, 3], (0..6u8).map(f32::from).collect()).unwrap(),
        Dense::new([4, 1], (0..4u8).map(|i| 10.0 * f32::from(i)).collect()).unwrap(),
    );
    let (matrix, row) = (matrix.to_gpu(&gpu)?, row.to_gpu(&gpu)?);
    let mut out = Dense::default();
    binary::cuda::dense_dense(&mut out, matrix.view(), row.view(), of("subtract"), &mut context);
    let out = out.to_cpu()?;
    assert_eq!(out.shape()[..], [2, 4, 3]);
    for (index, &value) in out.values().iter().enumerate() {
        let (i, j, k) = (index / 12, index / 3 % 4, index % 3);
        assert_eq!(value, (3 * i + k) as f32 - 10.0 * j as f32);
    }

    let x = Csr::from_coo(3, 9, [(0, 8, -1.0f32), (2, 0, 2.0), (2, 8, 0.0)]).unwrap();
    let (there, mut found) = (x.to_gpu(&gpu)?, Csr::default());
    unary::cuda::stored(&mut found, there.view(), of("square"), &mut context);
    assert_eq!(
        found.to_cpu()?,
        Csr::from_coo(3, 9, [(0, 8, 1.0), (2, 0, 4.0), (2, 8, 0.0)]).unwrap()
    );
    binary::cuda::stored_number(
        &mut found,
        there.view(),
        Number::Second(4.0),
        of("divide"),
        &mut context,
    );
    assert_eq!(found.to_cpu()?.values(), [-0.25, 0.5, 0.0]);
    binary::cuda::stored_number(
        &mut found,
        there.view(),
        Number::First(4.0),
        of("subtract"),
        &mut context,
    );
    assert_eq!(found.to_cpu()?.values(), [5.0, 2.0, 4.0]);

    let x = RowSparse::new([7, 2], vec![1, 6], vec![1.0f32, -2.0, 3.0, -4.0]).unwrap();
    let (there, mut found) = (x.to_gpu(&gpu)?, RowSparse::default());
    unary::cuda::stored(&mut found, there.view(), of("abs"), &mut context);
    assert_eq!(
        found.to_cpu()?,
        RowSparse::new([7, 2], vec![1, 6], vec![1.0, 2.0, 3.0, 4.0]).unwrap()
    );
    Ok(())
}

/// The value of a reduction of some elements by its row of the table.
fn reduced(operator: &Operator, attributes: &Attributes, elements: &[f64]) -> f64 {
    let Kind::Reduction(reduction) = operator.kind else { panic!("{}", operator.name) };
    let value = |formula: &str, variable: &dyn Fn(&str) -> Option<f64>| {
        operator.scalar(formula, attributes, variable).expect("a formula of the table")
    };
    let mapped = elements.iter().map(|&x| value(reduction.map, &|name| (name == "x").then_some(x)));
    let s = match reduction.combine {
        Combine::Sum => mapped.sum(),
        Combine::Product => mapped.product(),
        Combine::Largest => mapped.fold(f64::NEG_INFINITY, f64::max),
        Combine::Smallest => mapped.fold(f64::INFINITY, f64::min),
    };
    let n = elements.len() as f64;
    value(reduction.finish, &|name| match name {
        "s" => Some(s),
        "n" => Some(n),
        _ => None,
    })
}

#[test]
fn reductions_are_their_formulas() -> Result<(), CudaError> {
    let gpu = gpu();
    let mut context = CudaContext::new(&gpu);
    let shape = [3, 70, 5];
    let values: Vec<f64> =
        (0..3 * 70 * 5u32).map(|i| f64::from(i * 37 % 101) / 50.0 - 0.99).collect();
    let x = Dense::new(shape, values.clone()).unwrap().to_gpu(&gpu)?;
    let axes = [Axes::all(), [0].into(), [-1].into(), [0, 2].into()];
    for operator in all().filter(|operator| matches!(operator.kind, Kind::Reduction(_))) {
        // Every one over everything, one over any axes: what differs there is not the formula.
        let axes = if operator.name == "mean" { &axes[..] } else { &axes[..1] };
        for &axis in axes {
            let attributes = attributes(operator);
            let function = ReduceFunction::new(operator, &attributes).unwrap();
            let over = Over { axis, keepdims: false, exclude: false };
            let mut out = Dense::default();
            reduce::cuda::dense(&mut out, x.view(), over, function, &mut context);
            let found = out.to_cpu()?;
            let mut groups: Vec<(Vec<usize>, Vec<f64>)> = Vec::new();
            for (index, &value) in values.iter().enumerate() {
                let place = [index / 350, index / 5 % 70, index % 5];
                let kept: Vec<_> =
                    (0..3).filter(|&at| !over.reduces(at, 3)).map(|at| place[at]).collect();
                match groups.iter_mut().find(|(key, _)| *key == kept) {
                    Some((_, group)) => group.push(value),
                    None => groups.push((kept, vec![value])),
                }
            }
            groups.sort_by(|a, b| a.0.cmp(&b.0));
            let expected: Vec<_> =
                groups.iter().map(|(_, group)| reduced(operator, &attributes, group)).collect();
            near(operator.name, found.values(), &expected, 1e-12);
        }
    }
    Ok(())
}

#[test]
fn nothing_reduces_to_what_the_formula_starts_with() -> Result<(), CudaError> {
    let gpu = gpu();
    let mut context = CudaContext::new(&gpu);
    let x = Dense::<f32>::zeros([0, 3]).to_gpu(&gpu)?;
    let over = Over { axis: [0].into(), keepdims: true, exclude: false };
    let function = ReduceFunction::new(find("sum").unwrap(), &Attributes::default()).unwrap();
    let mut out = Dense::default();
    reduce::cuda::dense(&mut out, x.view(), over, function, &mut context);
    assert_eq!(out.to_cpu()?, Dense::zeros([1, 3]));
    Ok(())
}
