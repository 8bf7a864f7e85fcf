//! Plans with the sizes of a model's dimensions and of a batch put in.

use super::bytes::{Size, bytes, grouped};
use super::{Bytes, Extent, Part, PlanTable, Written, graphviz, svg, text};
use std::collections::BTreeSet;
use std::fmt;

/// Sizes to fill into a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    dims: Vec<(String, usize)>,
    inputs: Vec<InputSize>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct InputSize {
    name: String,
    shape: Vec<usize>,
    stored: Option<usize>,
    ids: Option<Vec<u64>>,
}

/// A batch that tells its sizes. `graph!` implements it for the batch of a model.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a batch of a model",
    note = "`graph!` writes a batch beside each model: for `model Linear`, `LinearBatch {{ x, y, \
            ..Default::default() }}`"
)]
pub trait Measure {
    /// Adds the size of each input and label.
    fn measure(&self, sizes: &mut Sizes);
}

impl Sizes {
    /// Adds a named dimension.
    pub fn dim(&mut self, name: &str, extent: usize) {
        match self.dims.iter_mut().find(|(known, _)| known == name) {
            Some(entry) => entry.1 = extent,
            None => self.dims.push((name.to_owned(), extent)),
        }
    }

    /// Adds an input or label: its shape; the entries of a csr array or the rows of a row_sparse
    /// one; the ids in it, sorted and unique: the columns of a csr array, the rows of a row_sparse
    /// one, the elements of an array of ids.
    pub fn input(
        &mut self,
        name: &str,
        shape: &[usize],
        stored: Option<usize>,
        ids: Option<Vec<u64>>,
    ) {
        self.inputs.retain(|input| input.name != name);
        self.inputs.push(InputSize { name: name.to_owned(), shape: shape.to_vec(), stored, ids });
    }

    pub(super) fn extent(&self, extent: Extent<'_>) -> Size {
        match extent {
            Extent::Constant(size) => Size::Known(size as u128),
            Extent::Named(name) => match self.dims.iter().find(|(known, _)| known == name) {
                Some((_, size)) => Size::Known(*size as u128),
                None => Size::Symbol(name.to_owned()),
            },
        }
    }

    pub(super) fn shape(&self, shape: &[Extent<'_>]) -> String {
        let extents: Vec<String> = shape
            .iter()
            .map(|extent| match self.extent(*extent) {
                Size::Known(size) => size.to_string(),
                Size::Symbol(name) => name,
            })
            .collect();
        format!("[{}]", extents.join(", "))
    }

    /// The entries or rows of an input.
    pub(super) fn stored_in(&self, input: &str) -> Option<usize> {
        self.inputs.iter().find(|known| known.name == input)?.stored
    }

    /// How many ids occur in some of the inputs.
    pub(super) fn distinct_ids(&self, inputs: &[String]) -> Option<usize> {
        let find = |name: &String| {
            self.inputs
                .iter()
                .find(|known| known.name == *name)
                .and_then(|known| known.ids.as_ref())
        };
        if let [one] = inputs {
            return find(one).map(Vec::len);
        }
        let mut all: BTreeSet<u64> = BTreeSet::new();
        for input in inputs {
            all.extend(find(input)?);
        }
        Some(all.len())
    }

    /// Named dimensions of the inputs given, by the shapes that the plan declares.
    fn learn_dims(&mut self, plan: &PlanTable<'_>) {
        for index in 0..self.inputs.len() {
            let Some(value) = plan.value(&self.inputs[index].name) else { continue };
            for (axis, extent) in value.shape.iter().enumerate() {
                if let (Extent::Named(name), Some(&size)) =
                    (extent, self.inputs[index].shape.get(axis))
                {
                    self.dim(name, size);
                }
            }
        }
    }
}

/// A plan with sizes filled in: [`Display`](fmt::Display) is the table with numbers where they are
/// known.
#[derive(Clone, Debug, PartialEq)]
pub struct BoundPlan<'a> {
    plan: PlanTable<'a>,
    sizes: Sizes,
}

/// What a model takes, by what it is needed for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// The tables of all parameters.
    pub parameters: Bytes,
    /// The gradients of all parameters.
    pub gradients: Bytes,
    /// The outputs.
    pub outputs: Bytes,
    /// The batch: inputs and labels.
    pub batch: Bytes,
    /// The buffers between kernels: the largest value of each. `None` while a size is missing. A
    /// fused step does not use them.
    pub workspace: Option<u128>,
}

impl<'a> BoundPlan<'a> {
    pub(super) fn new(plan: PlanTable<'a>, mut sizes: Sizes) -> Self {
        sizes.learn_dims(&plan);
        BoundPlan { plan, sizes }
    }

    /// Fills the sizes of a batch in: extents, entries, and how many distinct columns there are,
    /// which is the number of rows of a gradient. O(nnz log nnz) time and O(nnz) memory: for
    /// looking, not for every step.
    #[must_use]
    pub fn bind(mut self, batch: &impl Measure) -> Self {
        batch.measure(&mut self.sizes);
        BoundPlan::new(self.plan, self.sizes)
    }

    /// The plan without sizes.
    pub fn plan(&self) -> &PlanTable<'a> {
        &self.plan
    }

    /// What a value takes, by its name in the source.
    pub fn bytes(&self, name: &str) -> Option<Bytes> {
        let position = self.plan.values.iter().position(|value| value.name == name)?;
        Some(bytes(&self.plan, position as u32, &self.sizes))
    }

    /// What all takes.
    pub fn memory(&self) -> Memory {
        let mut memory = Memory::default();
        let mut buffers: Vec<Option<u128>> = Vec::new();
        for position in self.plan.positions() {
            let value = &self.plan.values[position as usize];
            let bytes = bytes(&self.plan, position, &self.sizes);
            match (value.part, value.written) {
                (Part::Input | Part::Label, _) => memory.batch.add_all(&bytes),
                (Part::Parameter | Part::Frozen | Part::State, _) => {
                    memory.parameters.add_all(&bytes)
                }
                (_, Some(Written::Output(_))) => memory.outputs.add_all(&bytes),
                (_, Some(Written::Gradient(_))) => memory.gradients.add_all(&bytes),
                (_, Some(Written::Buffer(index))) => {
                    let index = index as usize;
                    if buffers.len() <= index {
                        buffers.resize(index + 1, Some(0));
                    }
                    let larger = |known: u128| bytes.number().map(|number| known.max(number));
                    buffers[index] = buffers[index].and_then(larger);
                }
                (_, Some(Written::Within(_)) | None) => {}
            }
        }
        memory.workspace = buffers.into_iter().sum();
        memory
    }

    /// As [`PlanTable::to_dot`], with the sizes filled in.
    pub fn to_dot(&self) -> String {
        graphviz::dot(&self.plan, &self.sizes)
    }

    /// As [`PlanTable::to_svg`], with the sizes filled in.
    pub fn to_svg(&self) -> String {
        svg::svg(&self.plan, &self.sizes)
    }
}

impl fmt::Display for BoundPlan<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&text::table(&self.plan, &self.sizes))?;
        f.write_str(&text::wrapped(&format!("memory: {}", self.memory())))
    }
}

/// `parameters 80 bytes, gradients 36 bytes, …`
impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            ("parameters", self.parameters.number()),
            ("gradients", self.gradients.number()),
            ("outputs", self.outputs.number()),
            ("batch", self.batch.number()),
            ("workspace", self.workspace),
        ];
        let words: Vec<String> = parts
            .into_iter()
            .filter_map(|(name, number)| Some((name, number.filter(|number| *number > 0)?)))
            .map(|(name, number)| format!("{name} {}", grouped(number)))
            .collect();
        if words.is_empty() {
            f.write_str("not known without a batch")
        } else {
            write!(f, "{} bytes", words.join(", "))
        }
    }
}
