//! Interpreter: runs a compiled graph value by value, each by its kernel, without a macro and
//! without fusion. Emitted code is tested against it, and it runs any graph by the kernels of
//! another device. It checks what kernels leave to their caller, and the inferred properties of
//! their results.

use crate::device::Cpu;
use crate::formats::{Dense, RowSparseView, Shape};
use crate::kernels::{Array, Context, Kernels, Operand, call_kernel};
use sparse_core::compile::Compiled;
use sparse_core::element::Float;
use sparse_core::ir::{Attributes, Graph, IdsExtent, Kind, ValueId};
use sparse_core::operators::Operator;
use sparse_core::passes::kernel_name;
use sparse_core::shapes::{Dim, show};
use sparse_core::storage::{ElementType, Storage};
use std::collections::HashMap;

/// A graph could not be run.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum InterpreterError {
    /// The graph did not compile.
    #[error("the model does not compile: {message}")]
    NotCompiled {
        /// The first error.
        message: String,
    },
    /// An input, label or parameter was not given.
    #[error("no array is given for `{name}`; add one to the inputs")]
    Missing {
        /// Its name.
        name: String,
    },
    /// An array has another storage than its declaration, or holds ids where numbers are declared.
    #[error("`{name}` is declared `{declared}`, but the array given is `{found}`")]
    Storage {
        /// The declaration's name.
        name: String,
        /// The storage declared.
        declared: String,
        /// The storage given.
        found: String,
    },
    /// An array's shape differs from the declared or inferred one.
    #[error("`{name}` has shape {found}, but {expected} was declared or inferred")]
    Shape {
        /// The value.
        name: String,
        /// The shape declared or inferred.
        expected: String,
        /// The shape found.
        found: Shape,
    },
    /// An id is negative, or not below the extent that it indexes.
    #[error(
        "`{name}` holds id {id} at position {position}, but ids must be 0 or more and below {bound}"
    )]
    Id {
        /// The ids.
        name: String,
        /// The position of the first one, row major.
        position: usize,
        /// The id.
        id: i128,
        /// The bound on ids.
        bound: usize,
    },
    /// A value has no kernel.
    #[error("`{name}` has no kernel `{kernel}` for its operands")]
    NoKernel {
        /// The value.
        name: String,
        /// The kernel's name.
        kernel: String,
    },
}

sparse_core::debug_of_errors!(InterpreterError);

/// The call of one kernel, on any device.
#[derive(Clone, Copy, Debug)]
pub struct Call<'g, 'a, T: Float> {
    /// The operator.
    pub operator: &'static Operator,
    /// The kernel's name, which is the same on every device.
    pub kernel: &'g str,
    /// The storage type of the result.
    pub result: Storage,
    /// The operands, in the order of the operator spec.
    pub operands: &'g [Operand<'a, T>],
    /// The attributes given.
    pub attributes: &'g Attributes,
}

/// The results of a graph.
#[derive(Clone, Debug)]
pub struct Values<'a, T: Float> {
    graph: &'a Graph,
    arrays: Vec<Option<Array<T>>>,
}

impl<T: Float> Values<'_, T> {
    /// Any value that is an array: given or computed.
    pub fn get(&self, id: ValueId) -> Option<&Array<T>> {
        self.arrays.get(id.0)?.as_ref()
    }

    /// An output by its name.
    pub fn output(&self, name: &str) -> Option<&Array<T>> {
        let output = self.graph.outputs.iter().find(|output| output.name == name)?;
        self.get(output.value)
    }

    /// The gradient of a parameter by its name.
    pub fn gradient(&self, parameter: &str) -> Option<&Array<T>> {
        let mut gradients = self.graph.gradients.iter();
        let (_, gradient) = gradients.find(|(id, _)| self.graph.label(*id) == parameter)?;
        self.get(*gradient)
    }

    /// The updated value of a state, by its name. The state itself stays as given.
    pub fn updated(&self, state: &str) -> Option<&Array<T>> {
        let mut updates = self.graph.updates.iter();
        let update = updates.find(|update| self.graph.label(update.state) == state)?;
        self.get(update.value)
    }

    /// The sum of the losses.
    pub fn loss(&self) -> f64 {
        let losses = self.graph.losses.iter().map(|loss| match self.get(*loss) {
            Some(Array::Dense(loss)) => {
                loss.values().first().map_or(f64::NAN, |loss| loss.as_f64())
            }
            _ => f64::NAN,
        });
        losses.sum()
    }
}

/// Computes outputs, losses and gradients. `inputs` has an array for each input, label and
/// parameter; a dense array for a value declared `row_sparse` is read as a table of all rows.
///
/// # Errors
///
/// [`InterpreterError`], naming the value.
pub fn evaluate<'a, T: Float>(
    compiled: &'a Compiled,
    inputs: &HashMap<String, Array<T>>,
) -> Result<Values<'a, T>, InterpreterError>
where
    Cpu: Kernels<T>,
{
    let mut context = Context::default();
    evaluate_by(compiled, inputs, |call, out| {
        Ok(call_kernel(call.kernel, out, call.operands, call.attributes, &mut context))
    })
}

/// Like [`evaluate`], with another executor: `compute` writes the result of a call, or returns
/// `None` if it has no kernel for the operands.
///
/// # Errors
///
/// [`InterpreterError`], naming the value; those of `compute`.
pub fn evaluate_by<'a, T: Float, E: From<InterpreterError>>(
    compiled: &'a Compiled,
    inputs: &HashMap<String, Array<T>>,
    mut compute: impl FnMut(&Call<'_, '_, T>, &mut Array<T>) -> Result<Option<()>, E>,
) -> Result<Values<'a, T>, E> {
    if let Some(error) = compiled.errors().next() {
        let message = error.text();
        return Err(InterpreterError::NotCompiled { message }.into());
    }
    let graph = &compiled.graph;
    let mut values = Values { graph, arrays: vec![None; graph.values.len()] };
    let mut extents = HashMap::new();
    for id in graph.ids() {
        if matches!(graph.value(id).kind, Kind::Constant(_) | Kind::Named(_) | Kind::Apply(_)) {
            continue;
        }
        let name = graph.label(id);
        let array = inputs.get(&name).ok_or(InterpreterError::Missing { name })?;
        check_storage(graph, id, array)?;
        check_shape(graph, id, array, &mut extents)?;
        values.arrays[id.0] = Some(array.clone());
    }
    for &id in &compiled.plan.all {
        let mut array = used(graph, id, &extents);
        check_ids(graph, id, &values, &extents)?;
        let kernel = kernel_name(graph, id).unwrap_or_default();
        let missing =
            || InterpreterError::NoKernel { name: graph.label(id), kernel: kernel.clone() };
        let apply = graph.apply_of(id).ok_or_else(missing)?;
        let operands: Option<Vec<_>> =
            apply.operands.iter().map(|of| operand_of(graph, *of, &values, &extents)).collect();
        let known = |name: &str| extents.get(name).map(|extent| *extent as f64);
        let attributes = apply.attributes.with_values(known);
        let attributes =
            attributes.map_err(|name| InterpreterError::Missing { name: name.to_owned() })?;
        let call = Call {
            operator: apply.operator,
            kernel: &kernel,
            result: graph.storage(id),
            operands: &operands.ok_or_else(missing)?,
            attributes: &attributes,
        };
        compute(&call, &mut array)?.ok_or_else(missing)?;
        check_shape(graph, id, &array, &mut extents)?;
        values.arrays[id.0] = Some(array);
    }
    Ok(values)
}

/// A destination that holds another array, as in a model's second step: elements that a kernel
/// leaves unwritten are NaN.
fn used<T: Float>(graph: &Graph, id: ValueId, extents: &HashMap<String, usize>) -> Array<T> {
    let size = graph.shape(id).into_iter().map(|dim| match dim {
        Dim::Size(size) => size as usize,
        Dim::Named(name) => extents.get(&name).copied().unwrap_or(1),
        Dim::Unknown(_) => 1,
    });
    let n = size.product();
    let junk = Dense::full([n, 1], T::nan());
    match graph.storage(id) {
        _ if graph.value(id).element.is_id() => Array::Ids(Dense::full([n, 1], u64::MAX).into()),
        Storage::Dense => Array::Dense(junk),
        Storage::Csr => Array::Csr(junk.view().to_csr().unwrap_or_default()),
        Storage::RowSparse => Array::RowSparse(junk.view().to_row_sparse().unwrap_or_default()),
    }
}

/// The ids that a value is computed by are positions in an axis, or below a number.
fn check_ids<T: Float>(
    graph: &Graph,
    id: ValueId,
    values: &Values<'_, T>,
    extents: &HashMap<String, usize>,
) -> Result<(), InterpreterError> {
    if let Some((ids, extent)) = graph.apply_of(id).and_then(|apply| graph.ids_below(apply))
        && let Some(Array::Ids(found)) = values.get(ids)
        && let Some(bound) = match extent {
            IdsExtent::Axis(of, axis) => {
                values.get(of).and_then(|of| of.shape().get(axis).copied())
            }
            IdsExtent::Size(size) => usize::try_from(size).ok(),
            IdsExtent::Named(name) => extents.get(name).copied(),
        }
        && let Some((position, id)) = found.view().first_beyond(bound)
    {
        return Err(InterpreterError::Id { name: graph.label(ids), position, id, bound });
    }
    Ok(())
}

fn operand_of<'a, T: Float>(
    graph: &Graph,
    id: ValueId,
    values: &'a Values<'_, T>,
    extents: &HashMap<String, usize>,
) -> Option<Operand<'a, T>> {
    if let Some(formula) = graph.number_of(id) {
        let known = |name: &str| extents.get(name).map(|extent| *extent as f64);
        let number = sparse_core::operators::scalar::value(&formula, &known).ok()?;
        return Some(Operand::Scalar(T::of(number)));
    }
    match (graph.storage(id), values.get(id)?) {
        (Storage::RowSparse, Array::Dense(table)) => {
            let table = RowSparseView::all(*table.shape(), table.values()).ok()?;
            Some(Operand::RowSparse(table))
        }
        (_, array) => Some(array.operand()),
    }
}

fn check_storage<T: Float>(
    graph: &Graph,
    id: ValueId,
    array: &Array<T>,
) -> Result<(), InterpreterError> {
    let (declared, element) = (graph.storage(id), graph.value(id).element);
    let fits = match array {
        Array::Ids(_) => declared == Storage::Dense && element.is_id(),
        Array::Unit(_) => declared == Storage::Csr && element == ElementType::Unit,
        Array::Dense(_) => declared != Storage::Csr && element.is_float(),
        _ => declared == array.storage() && element.is_float(),
    };
    if fits {
        return Ok(());
    }
    Err(InterpreterError::Storage {
        name: graph.label(id),
        declared: format!("{declared}<{element}>"),
        found: match array {
            Array::Ids(_) => "ids".to_owned(),
            Array::Unit(_) => "csr<unit>".to_owned(),
            _ => array.storage().to_string(),
        },
    })
}

/// Compares a shape with the inferred one, where a name stands for its first extent.
fn check_shape<T: Float>(
    graph: &Graph,
    id: ValueId,
    array: &Array<T>,
    extents: &mut HashMap<String, usize>,
) -> Result<(), InterpreterError> {
    let (expected, found) = (graph.shape(id), array.shape());
    let mut fits = expected.len() == found.rank();
    for (dim, &extent) in expected.iter().zip(found.iter()) {
        fits &= match dim {
            Dim::Size(size) => *size == extent as u64,
            Dim::Named(name) => *extents.entry(name.clone()).or_insert(extent) == extent,
            Dim::Unknown(_) => true,
        };
    }
    if fits {
        return Ok(());
    }
    let known = |dim: &Dim| match dim {
        Dim::Named(name) => extents.get(name).map(|extent| Dim::Size(*extent as u64)),
        _ => None,
    };
    let expected: Vec<Dim> = expected.into_iter().map(|dim| known(&dim).unwrap_or(dim)).collect();
    Err(InterpreterError::Shape { name: graph.label(id), expected: show(&expected), found })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::{Csr, Dense};
    use sparse_core::compile::compile;
    use sparse_core::ir::parse;

    const MODEL: &str = "\
model M f64
x = input csr f64 [n, d]
y = label dense f64 [n, 1]
w = param row_sparse f64 [d, 1] \"Zeros\"
b = param dense f64 [1] \"Zeros\"
s = dot(x, w)
p = add(s, b)
l = squared_error(p, y)
loss l
output p = p
";

    fn inputs() -> HashMap<String, Array<f64>> {
        let x = Csr::from_rows(3, [vec![(0, 1.0), (2, 2.0)], vec![(2, 3.0)]]).unwrap();
        HashMap::from([
            ("x".to_owned(), Array::Csr(x)),
            ("y".to_owned(), Array::Dense(Dense::from_rows(&[[1.0], [0.0]]))),
            ("w".to_owned(), Array::Dense(Dense::from_rows(&[[1.0], [9.0], [0.5]]))),
            ("b".to_owned(), Array::Dense(vec![0.25].into())),
        ])
    }

    #[test]
    fn linear_regression_by_hand() {
        let compiled = compile(parse(MODEL).unwrap());
        let values = evaluate(&compiled, &inputs()).unwrap();
        // p = [1 + 1 + 0.25, 1.5 + 0.25]; errors 1.25 and 1.75.
        let Some(Array::Dense(p)) = values.output("p") else { panic!("dense") };
        assert_eq!(p.values(), [2.25, 1.75]);
        assert_eq!(values.loss(), (1.25 * 1.25 + 1.75 * 1.75) / 4.0);
        let Some(Array::RowSparse(w)) = values.gradient("w") else { panic!("row_sparse") };
        assert_eq!(w.indices(), [0, 2]);
        assert_eq!(w.values(), [1.25 / 2.0, (2.0 * 1.25 + 3.0 * 1.75) / 2.0]);
        let Some(Array::Dense(b)) = values.gradient("b") else { panic!("dense") };
        assert_eq!(b.values(), [1.5]);
    }

    #[test]
    fn l3_a_state_is_read_as_it_was_and_updated_after_the_batch() {
        let text = "\
model M f64
x = input dense f64 [n, 2]
m = param(frozen) dense f64 [2] \"Zeros\"
c = subtract(x, m)
h = multiply(m, 0.5)
s = mean(x, axis = 0)
t = multiply(s, 0.5)
u = add(h, t)
update m = u
output c = c
";
        let compiled = compile(parse(text).unwrap());
        let mut inputs = HashMap::from([
            ("x".to_owned(), Array::Dense(Dense::from_rows(&[[1.0, 2.0], [3.0, 6.0]]))),
            ("m".to_owned(), Array::Dense(vec![0.0, 0.0].into())),
        ]);
        for (centred, mean) in
            [([1.0, 2.0, 3.0, 6.0], [1.0, 2.0]), ([0.0, 0.0, 2.0, 4.0], [1.5, 3.0])]
        {
            let values = evaluate(&compiled, &inputs).unwrap();
            let Some(Array::Dense(found)) = values.output("c") else { panic!("dense") };
            assert_eq!(found.values(), centred);
            let Some(Array::Dense(found)) = values.updated("m") else { panic!("dense") };
            assert_eq!(found.values(), mean);
            assert!(values.updated("x").is_none());
            let found = found.clone();
            inputs.insert("m".to_owned(), Array::Dense(found));
        }
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let compiled = compile(parse(MODEL).unwrap());
        type Inputs = HashMap<String, Array<f64>>;
        let error = |change: &dyn Fn(&mut Inputs)| {
            let mut inputs = inputs();
            change(&mut inputs);
            evaluate(&compiled, &inputs).unwrap_err().to_string()
        };
        let insert = |name: &'static str, array: Array<f64>| {
            error(&move |inputs| drop(inputs.insert(name.into(), array.clone())))
        };
        assert_eq!(
            error(&|inputs| drop(inputs.remove("b"))),
            "no array is given for `b`; add one to the inputs"
        );
        assert_eq!(
            insert("w", Array::Dense(Dense::zeros([4, 1]))),
            "`w` has shape [4, 1], but [3, 1] was declared or inferred"
        );
        assert_eq!(
            insert("x", Array::Dense(Dense::zeros([2, 3]))),
            "`x` is declared `csr<f64>`, but the array given is `dense`"
        );
        assert_eq!(
            insert("y", Array::Ids(Dense::<u32>::zeros([2, 1]).into())),
            "`y` is declared `dense<f64>`, but the array given is `ids`"
        );
        let softmax = compile(
            parse("model M f64\ns = input dense f64 [n, 3]\ny = label dense i64 [n]\nl = softmax_cross_entropy(s, y)\nloss l")
                .unwrap(),
        );
        let classes = |ids: Vec<i64>| {
            let scores = Array::Dense(Dense::<f64>::zeros([2, 3]));
            let ids = Array::Ids(Dense::from(ids).into());
            let inputs = HashMap::from([("s".to_owned(), scores), ("y".to_owned(), ids)]);
            evaluate(&softmax, &inputs).map(|values| values.loss())
        };
        assert!((classes(vec![0, 2]).unwrap() - 3f64.ln()).abs() < 1e-15);
        for bad in [-1, 3, i64::MIN] {
            assert_eq!(
                classes(vec![0, bad]).unwrap_err().to_string(),
                format!("`y` holds id {bad} at position 1, but ids must be 0 or more and below 3")
            );
        }
        let broken = compile(
            parse("model M f32\nx = input csr f32 [n, d]\ny = log(x)\noutput y = y").unwrap(),
        );
        let error = evaluate::<f32>(&broken, &HashMap::new()).unwrap_err();
        assert!(error.to_string().starts_with("the model does not compile: [NNZ"), "{error}");
    }
}
