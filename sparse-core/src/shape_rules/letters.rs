//! Shape rules by letters, `[m, k] [k, n] -> [m, n]`, and by words.

use crate::attributes::Attributes;
use crate::operators::Operator;
use crate::shapes::{Dim, Dims, Fault, ShapeError, Substitution, names_of, show, terms};

/// The first of the rules separated by `|` whose ranks fit; the first one where none does.
pub(super) fn alternatives(
    rule: &str,
    operator: &Operator,
    attributes: &Attributes,
    operands: &[Dims],
    unify: &mut Substitution,
) -> Result<Dims, ShapeError> {
    let fits = |rule: &&str| {
        let patterns = terms(rule.split("->").next().unwrap_or_default());
        patterns.iter().zip(operands).all(|(pattern, dims)| {
            !pattern.starts_with('[') || names_of(pattern).len() == dims.len()
        })
    };
    let chosen = rule.split('|').find(fits).or(rule.split('|').next()).unwrap_or(rule);
    signature(chosen, operator, attributes, operands, unify)
}

fn signature(
    rule: &str,
    operator: &Operator,
    attributes: &Attributes,
    operands: &[Dims],
    unify: &mut Substitution,
) -> Result<Dims, ShapeError> {
    let malformed =
        || -> ! { panic!("shape rule `{rule}` of `{}` is not well formed", operator.name) };
    let Some((lhs, result)) = rule.split_once("->") else { malformed() };
    let patterns = terms(lhs);
    if patterns.len() < operands.len() {
        malformed();
    }
    // What each letter stands for, and where it was first seen.
    let mut letters: Vec<(&str, (usize, usize, Dim))> = Vec::new();
    let mut same: Option<usize> = None;
    for (operand, (pattern, dims)) in patterns.iter().zip(operands).enumerate() {
        match *pattern {
            "any" => {}
            "same" => match same {
                None => same = Some(operand),
                Some(first) => equal((first, &operands[first]), (operand, dims), unify)?,
            },
            // The first axis of the first operand; an array without axes is one row.
            "rows" => {
                let rows = &operands[0][..operands[0].len().min(1)];
                equal((0, rows), (operand, dims), unify)?;
            }
            pattern => {
                let names = names_of(pattern);
                if names.len() != dims.len() {
                    let (expected, found) = (names.len(), dims.clone());
                    return Err(ShapeError::Rank { operand, expected, found });
                }
                let flag = operator.transpose_flag(operand).filter(|flag| attributes.flag(flag));
                if let Some(flag) = flag.filter(|_| dims.len() < 2) {
                    let message = format!(
                        "`{flag}` turns a matrix, but `{{{operand}}}` has the shape {}",
                        show(dims)
                    );
                    return Err(ShapeError::Attribute { fault: Fault::Fit, message });
                }
                for (place, name) in names.iter().enumerate() {
                    let axis = if flag.is_some() { dims.len() - 1 - place } else { place };
                    let dim = unify.resolve(&dims[axis]);
                    if let Ok(wanted) = name.parse() {
                        if !unify.unify(&Dim::Size(wanted), &dim) {
                            return Err(ShapeError::Extent { operand, axis, wanted, found: dim });
                        }
                        continue;
                    }
                    match letters.iter().find(|(letter, _)| letter == name) {
                        None => letters.push((name, (operand, axis, dim))),
                        Some((_, first)) => {
                            if !unify.unify(&first.2, &dim) {
                                let first = first.clone();
                                let second = (operand, axis, dim);
                                return Err(ShapeError::Mismatch { first, second });
                            }
                        }
                    }
                }
            }
        }
    }
    let result = result.trim();
    if result.starts_with('[') {
        let dims = names_of(result).into_iter().map(|name| {
            if let Ok(size) = name.parse() {
                return Dim::Size(size);
            }
            let Some((_, (_, _, dim))) = letters.iter().find(|(letter, _)| *letter == name) else {
                malformed()
            };
            unify.resolve(dim)
        });
        return Ok(dims.collect());
    }
    let source = match result {
        "same" => same,
        name => operator.operand_index(name),
    };
    let Some(source) = source else { malformed() };
    Ok(unify.resolve_all(&operands[source]))
}

/// Makes the extents of an operand those that are wanted, which are the first ones of another
/// operand.
fn equal(
    (first, wanted): (usize, &[Dim]),
    (operand, dims): (usize, &Dims),
    unify: &mut Substitution,
) -> Result<(), ShapeError> {
    if wanted.len() != dims.len() {
        let (expected, found) = (wanted.len(), dims.clone());
        return Err(ShapeError::Rank { operand, expected, found });
    }
    for axis in 0..dims.len() {
        if !unify.unify(&wanted[axis], &dims[axis]) {
            return Err(ShapeError::Mismatch {
                first: (first, axis, unify.resolve(&wanted[axis])),
                second: (operand, axis, unify.resolve(&dims[axis])),
            });
        }
    }
    Ok(())
}
